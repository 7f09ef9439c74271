"""The search of token sets in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Block, Bools, Ints, Lists, post_by_sorting, ranges
from seasoned.memory.index.kernel import FEW_CANDIDATES, Match, SearchPlan, counted_terms
from seasoned.memory.values.ranking import best_first, cut_ties, may_precede

__all__ = ["NumpyKernel"]

_FEW_SLICES = 8  # up to so many rows, a count each is quicker than the sums of all at once
_LONG = 1024  # postings, of which it is worth to find the rows of the right sizes
_FEW_ROWS = 16384  # of a block, up to which a count for each row is cheaper than a search for the repeated ones
_LISTS_AT_ONCE = 8
_SAMPLE = 2048

Part = tuple[Block, Ints]
"""A block, and rows of it."""


class NumpyKernel:
    """Searches with NumPy alone."""

    name = "numpy"
    candidate_cost = 150.0

    def post(self, tokens: Ints, starts: Ints) -> Lists:
        """Return the lists of a block."""
        return post_by_sorting(tokens, starts)

    def norms(self, block: Block, rows: Ints, starts: Ints, terms: Ints, squared: Floats) -> Floats:
        """Return the norms of the vectors of these rows; 1 for a row without terms."""
        taken = block.taken(rows)
        of_row, found, counts = counted_terms(taken.tokens, taken.sizes, starts, terms, len(squared))
        totals = np.bincount(of_row, counts**2 * squared[found], minlength=len(rows))
        norms: Floats = np.sqrt(np.where(totals > 0.0, totals, 1.0))
        return norms

    def products(self, features: Ints, sizes: Ints, starts: Ints, terms: Ints, squared: Floats) -> Floats:
        """Return the products of the vectors of S sets, shape (S, S)."""
        of_set, found, counts = counted_terms(features, sizes, starts, terms, len(squared))
        values = counts * np.sqrt(squared[found])
        shared = np.bincount(found, minlength=len(squared)) > 1  # the others add to the norms alone
        column, in_shared = np.cumsum(shared) - 1, shared[found]
        vectors = np.zeros((len(sizes), int(shared.sum())))
        vectors[of_set[in_shared], column[found[in_shared]]] = values[in_shared]
        products: Floats = vectors @ vectors.T
        np.fill_diagonal(products, np.bincount(of_set, values**2, minlength=len(sizes)))
        return products

    def search(
        self, blocks: Sequence[Block], plans: Sequence[SearchPlan], k: int, in_query: Bools
    ) -> list[list[Match]]:
        """Return for each plan the k best sets that reach its similarity, best first."""
        found = []
        for plan in plans:
            in_query[plan.query.tokens] = True
            try:
                answer = _compared(blocks, plan, k, in_query) if plan.repeats else _counted(blocks, plan, k, in_query)
                found.append(answer)
            finally:
                in_query[plan.query.tokens] = False
        return found


# ---------------------------------------------------------------------------------- candidates, compared exactly


def _compared(blocks: Sequence[Block], plan: SearchPlan, k: int, in_query: Bools) -> list[Match]:
    parts = _candidates(blocks, plan)
    if sum(len(rows) for _, rows in parts) > max(FEW_CANDIDATES, 2 * k):
        parts = _promising(parts, plan, k, in_query)
    near = _similarities(parts, plan, in_query)
    return _best(near, *_visits_and_ids(parts), k, plan.least)


def _promising(parts: list[Part], plan: SearchPlan, k: int, in_query: Bools) -> list[Part]:
    """Return the rows that can be among the k best by their signatures, which bound the similarity from above."""
    bounds = np.concatenate([_bounds(part, plan) for part in parts])
    visits, ids = _visits_and_ids(parts)
    first = np.zeros(len(bounds), dtype=bool)
    first[_top(bounds, visits, k, 0.0)] = True
    # The others have to beat the k-th of those that are best by their bounds.
    near = _similarities(_where(parts, first), plan, in_query)
    last, visit, _ = _best(near, visits[first], ids[first], k, 0.0)[-1]
    if last < plan.least:
        return _where(parts, bounds >= plan.least)
    return _where(parts, may_precede(bounds, visits, last, visit))


def _where(parts: list[Part], chosen: Bools) -> list[Part]:
    """Return the chosen rows of all parts."""
    kept, begin = [], 0
    for block, rows in parts:
        at = chosen[begin : begin + len(rows)].nonzero()[0]
        if len(at):
            kept.append((block, rows[at]))
        begin += len(rows)
    return kept


def _visits_and_ids(parts: list[Part]) -> tuple[Ints, Ints]:
    if len(parts) == 1:
        [(block, rows)] = parts
        return block.visits[rows], block.ids[rows]
    none = np.empty(0, dtype=np.int64)
    visits = np.concatenate([none, *(block.visits[rows] for block, rows in parts)])
    return visits, np.concatenate([none, *(block.ids[rows] for block, rows in parts)])


def _candidates(blocks: Sequence[Block], plan: SearchPlan) -> list[Part]:
    """Return the rows that occur in so many of the lists, or have none to be in."""
    read = plan.query.tokens[: plan.n_read]
    least_read = plan.largest(plan.n_read - 1)
    parts: list[Part] = []
    lists: list[Ints] = []
    posted: list[Block] = []
    lengths: list[int] = []
    for block in blocks:
        first, last = block.rows_up_to(plan.too_small), block.rows_up_to(plan.largest(0))
        if first >= last:
            continue
        if block.lists is None:
            parts.append((block, np.arange(first, last)))
            continue
        vocabulary, starts, rows = block.lists
        at = vocabulary.searchsorted(read)
        found = (vocabulary[at] == read).nonzero()[0]
        begins, ends = starts[at[found]].tolist(), starts[at[found] + 1].tolist()
        here = [rows[begin:end] for begin, end in zip(begins, ends, strict=True)]
        if first or least_read < block.largest:
            for i, rank in enumerate(found.tolist()):
                if len(here[i]) > _LONG:
                    stop = block.rows_up_to(plan.largest(rank))
                    here[i] = here[i][slice(*here[i].searchsorted((first, stop)))]
        length = sum(map(len, here))
        if length and (len(block) <= _FEW_ROWS or length > len(block) // 6):
            times = np.bincount(np.concatenate(here), minlength=len(block))
            parts.append((block, (times >= plan.repeats).nonzero()[0]))
        elif length:
            lists += here
            posted.append(block)
            lengths.append(length)
    if not lists:
        return parts
    keys = np.concatenate(lists).astype(np.uint32)
    keys |= np.repeat(np.arange(len(posted), dtype=np.uint32) << np.uint32(16), lengths)
    keys = _repeated(keys, plan.repeats)
    ends = np.searchsorted(keys, np.arange(1, len(posted) + 1) << 16).tolist() if len(posted) > 1 else [len(keys)]
    begin = 0
    for block, end in zip(posted, ends, strict=True):
        if end > begin:
            parts.append((block, (keys[begin:end] & np.uint32(0xFFFF)).astype(np.intp)))
        begin = end
    return parts


def _repeated(read: Ints, m: int) -> Ints:
    """Return the numbers that occur m times or more, ascending."""
    # Counts in a table of slots: a number that is read m times is in a slot that is.
    mask = (1 << min(32, (4 * len(read)).bit_length())) - 1
    slots = (read & np.uint32(mask)).astype(np.intp)
    read = read[np.bincount(slots)[slots] >= m]
    read.sort()
    found = read[m - 1 :][read[m - 1 :] == read[: len(read) - m + 1]]
    rows: Ints = found[np.concatenate([[True], found[1:] != found[:-1]])[: len(found)]]
    return rows


def _bounds(part: Part, plan: SearchPlan) -> Floats:
    """Return an upper bound of the similarity of each row, from its signature."""
    block, rows = part
    sizes = block.sizes[rows]
    query = np.bitwise_xor.reduce(np.uint64(1) << (plan.query.tokens & np.uint32(63)).astype(np.uint64))
    shared = (len(plan.query.tokens) + sizes - _popcount(block.signatures[rows] ^ query)) // 2
    return _jaccard(plan.query.n, sizes, shared)


def _popcount(numbers: Ints) -> Ints:
    counts: Ints
    if hasattr(np, "bitwise_count"):  # from NumPy 2
        counts = np.bitwise_count(numbers).astype(np.int64)
    else:
        counts = np.unpackbits(numbers.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1, dtype=np.int64)
    return counts


def _similarities(parts: list[Part], plan: SearchPlan, in_query: Bools) -> Floats:
    """Return the similarity of each row of all parts."""
    if not parts:
        return np.empty(0)
    sizes = np.concatenate([block.sizes[rows] for block, rows in parts])
    shared: Ints
    if len(sizes) <= FEW_CANDIDATES:
        begins = [block.starts[rows].tolist() for block, rows in parts]
        slices = [
            block.tokens[begin : begin + size]
            for (block, rows), starts in zip(parts, begins, strict=True)
            for begin, size in zip(starts, block.sizes[rows].tolist(), strict=True)
        ]
        if len(slices) <= _FEW_SLICES:
            shared = np.array([np.count_nonzero(in_query[tokens]) for tokens in slices], dtype=np.int64)
        else:
            shared = _sums(in_query[np.concatenate(slices)], sizes)
    else:
        shared = np.concatenate([_shared(block, rows, in_query) for block, rows in parts])
    return _jaccard(plan.query.n, sizes, shared)


def _shared(block: Block, rows: Ints, in_query: Bools) -> Ints:
    """Return how many tokens each row shares with the query."""
    sizes = block.sizes[rows]
    return _sums(in_query[block.tokens[ranges(block.starts[rows], sizes)]], sizes)


def _sums(hits: Bools, sizes: Ints) -> Ints:
    ends = sizes.cumsum(dtype=np.int64)
    counts = np.zeros(len(hits) + 1, dtype=np.int64)
    hits.cumsum(out=counts[1:])
    sums: Ints = counts[ends] - counts[ends - sizes]
    return sums


# ---------------------------------------------------------------------------------- everything, counted


def _counted(blocks: Sequence[Block], plan: SearchPlan, k: int, in_query: Bools) -> list[Match]:
    best: list[tuple[Floats, Ints, Ints]] = [(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    least = plan.least
    for block in reversed(blocks):
        first, last = block.rows_up_to(plan.too_small), block.rows_up_to(plan.largest(0))
        if first >= last:
            continue
        shared = _shared(block, np.arange(len(block)), in_query) if block.lists is None else _count(block, plan)
        near = _jaccard(plan.query.n, block.sizes[first:last], shared[first:last])
        rows = _top(near, block.visits[first:last], k, least)
        best.append((near[rows], block.visits[first + rows], block.ids[first + rows]))
        least = max(least, _kth(near[rows], k))
    near, visits, ids = map(np.concatenate, zip(*best, strict=True))
    return _best(near, visits, ids, k, least)


def _count(block: Block, plan: SearchPlan) -> Ints:
    """Return how many of the query's tokens each row has."""
    counts = np.zeros(len(block), dtype=np.int64)
    if block.lists is None:
        return counts
    vocabulary, starts, rows = block.lists
    at = vocabulary.searchsorted(plan.query.tokens)
    at = at[vocabulary[at] == plan.query.tokens]
    lists = [rows[a:b] for a, b in zip(starts[at].tolist(), starts[at + 1].tolist(), strict=True)]
    for first in range(0, len(lists), _LISTS_AT_ONCE):  # to need little room
        counts += np.bincount(np.concatenate(lists[first : first + _LISTS_AT_ONCE]), minlength=len(block))
    return counts


# ---------------------------------------------------------------------------------- the best


def _jaccard(n: int, sizes: Ints, shared: Ints) -> Floats:
    """Return the Jaccard similarity of a set of n tokens to sets of these sizes, by the numbers of shared tokens."""
    union = n + sizes - shared
    return np.where(union > 0, shared / np.maximum(union, 1), 1.0)


def _kth(near: Floats, k: int) -> float:
    """Return the k-th largest; 0 if there are fewer."""
    if len(near) < k:
        return 0.0
    while True:  # the part above the k-th of a sample, again: a partition of many ties is slow
        sample = near[: max(_SAMPLE, 2 * k)]
        least = float(np.partition(sample, len(sample) - k)[len(sample) - k])
        above = near[near > least]
        if len(above) < k:
            return least
        near = above


def _top(near: Floats, visits: Ints, k: int, least: float) -> Ints:
    """Return the rows of the k best of at least this similarity, and rows that only the id puts after the last one."""
    rows: Ints = (near >= max(least, _kth(near, k))).nonzero()[0]
    return rows if len(rows) <= k else rows[cut_ties(near[rows], visits[rows], k)]


def _best(near: Floats, visits: Ints, ids: Ints, k: int, least: float) -> list[Match]:
    """Return the k best that reach a similarity, in the order of `values.ranking`."""
    rows = _top(near, visits, k, least)
    near, visits, ids = near[rows], visits[rows], ids[rows]
    order = best_first(near, visits, ids)[:k]
    return list(zip(near[order].tolist(), visits[order].tolist(), ids[order].tolist(), strict=True))
