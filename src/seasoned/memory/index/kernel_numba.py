"""The search of token sets, compiled by numba: the extra `fast`. Imported only when such a kernel is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index import compiled_vectors as vectors
from seasoned.memory.index.blocks import MAX_ROWS, NO_TOKEN, Block, Bools, Ints, Lists, post_by_sorting
from seasoned.memory.index.compiled import CompiledFunctions
from seasoned.memory.index.kernel import SLACK, Best, FeatureLists, Match, RowNorms, SearchPlan, TermVectors

__all__ = ["NumbaKernel"]

_AT_ONCE = 256  # queries

_compiled = CompiledFunctions(globals())


@_compiled("int64(uint64)")
def _popcount(bits: Any) -> Any:
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_compiled("int64(int32[::1], float64)")
def _rows_up_to(sizes: Any, size: Any) -> Any:
    """Return how many rows have at most so many tokens."""
    if len(sizes) == 0 or size >= sizes[-1]:
        return np.int64(len(sizes))
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) >> 1
        if sizes[middle] <= size:
            low = middle + 1
        else:
            high = middle
    return np.int64(low)


@_compiled("int64(uint32[::1], uint32)")
def _place(vocabulary: Any, token: Any) -> Any:
    """Return where the first token is that is not less."""
    low, high = 0, len(vocabulary)
    while low < high:
        middle = (low + high) >> 1
        if vocabulary[middle] < token:
            low = middle + 1
        else:
            high = middle
    return np.int64(low)


@_compiled("float64(int64, int64, int64)")
def _jaccard(n: Any, size: Any, shared: Any) -> Any:
    union = n + size - shared
    return shared / union if union > 0 else 1.0


@_compiled("boolean(float64, int64, int64, float64, int64, int64)")
def _less(near: Any, visit: Any, number: Any, other_near: Any, other_visit: Any, other_number: Any) -> Any:
    """Whether a result comes after another in the order of `values.ranking`."""
    if near != other_near:
        return near < other_near
    if visit != other_visit:
        return visit < other_visit
    return number < other_number


@_compiled("int64(float64[::1], int64[::1], int64[::1], int64, float64, int64, int64)")
def _offer(near: Any, visits: Any, ids: Any, n: Any, new_near: Any, new_visit: Any, new_id: Any) -> Any:
    """Put a set into the heap of the best, the least of which is first; return how many there are then."""
    if n < len(near):
        at = n
        n += 1
        while at > 0:  # up, from the end
            above = (at - 1) >> 1
            if not _less(new_near, new_visit, new_id, near[above], visits[above], ids[above]):
                break
            near[at], visits[at], ids[at] = near[above], visits[above], ids[above]
            at = above
    else:
        if not _less(near[0], visits[0], ids[0], new_near, new_visit, new_id):
            return n
        at = 0
        while 2 * at + 1 < n:  # down, from the place of the least, which leaves
            below = 2 * at + 1
            if below + 1 < n and _less(
                near[below + 1], visits[below + 1], ids[below + 1], near[below], visits[below], ids[below]
            ):
                below += 1
            if not _less(near[below], visits[below], ids[below], new_near, new_visit, new_id):
                break
            near[at], visits[at], ids[at] = near[below], visits[below], ids[below]
            at = below
    near[at], visits[at], ids[at] = new_near, new_visit, new_id
    return n


_LISTS = "uint32[::1], uint32[::1], uint16[::1]"
_BEST = "float64[::1], int64[::1], int64[::1], int64"


@_compiled(f"int64({_LISTS}, int32[::1], uint32[::1], float64[::1], int64, int64, uint8[::1], uint16[::1])")
def _repeated(
    vocabulary: Any,
    starts: Any,
    rows: Any,
    sizes: Any,
    read: Any,
    limits: Any,
    m: Any,
    first: Any,
    times: Any,
    found: Any,
) -> Any:
    """Find the rows that are in m of the lists of the tokens to read; return how many there are."""
    n_found = n_postings = 0
    for rank in range(len(read)):
        at = _place(vocabulary, read[rank])
        if vocabulary[at] != read[rank]:
            continue
        n_postings += starts[at + 1] - starts[at]
        stop = _rows_up_to(sizes, limits[rank])
        for p in range(starts[at], starts[at + 1]):
            row = rows[p]
            if row >= stop:
                break
            if row >= first and times[row] < m:
                times[row] += np.uint8(1)
                if times[row] == m:
                    found[n_found] = row
                    n_found += 1
    if n_postings * 8 > len(sizes):
        times[: len(sizes)] = 0
        return n_found
    for token in read:
        at = _place(vocabulary, token)
        if vocabulary[at] == token:
            for p in range(starts[at], starts[at + 1]):
                times[rows[p]] = 0
    return n_found


@_compiled(f"void({_LISTS}, uint32[::1], int32[::1])")
def _count(vocabulary: Any, starts: Any, rows: Any, query_tokens: Any, counts: Any) -> None:
    """Count for each row how many of these tokens it has."""
    for token in query_tokens:
        at = _place(vocabulary, token)
        if vocabulary[at] == token:
            for p in range(starts[at], starts[at + 1]):
                counts[rows[p]] += 1


@_compiled(f"int64(int32[::1], int64[::1], int64[::1], int32[::1], int64, int64, int64, float64, {_BEST})")
def _rank(
    sizes: Any,
    ids: Any,
    visits: Any,
    counts: Any,
    first: Any,
    last: Any,
    n: Any,
    least: Any,
    near: Any,
    latest: Any,
    numbers: Any,
    n_best: Any,
) -> Any:
    """Offer the rows of a range, which share so many tokens with the query; return how many are the best then."""
    size, needed = np.int64(-1), 0.0
    for row in range(first, last):
        if sizes[row] != size:  # the tokens that sets of this size must share to be among the best
            size = np.int64(sizes[row])
            bound = max(least, near[0]) if n_best == len(near) else least
            needed = bound / (1.0 + bound) * (n + size) - SLACK
        if counts[row] < needed:
            continue
        similarity = _jaccard(n, size, counts[row]) if counts[row] > 0 or n == 0 else 0.0
        if similarity < least:
            continue
        if n_best < len(near) or _less(near[0], latest[0], numbers[0], similarity, visits[row], ids[row]):
            n_best = _offer(near, latest, numbers, n_best, similarity, visits[row], ids[row])
            size = np.int64(-1)
    return n_best


@_compiled(
    "int64(uint32[::1], uint32[::1], int32[::1], uint64[::1], int64[::1], int64[::1], uint16[::1], int64, boolean[::1],"
    f" int64, uint64, int64, float64, {_BEST})"
)
def _compare(
    tokens: Any,
    starts: Any,
    sizes: Any,
    signatures: Any,
    ids: Any,
    visits: Any,
    rows: Any,
    n_rows: Any,
    in_query: Any,
    n_known: Any,
    signature: Any,
    n: Any,
    least: Any,
    near: Any,
    latest: Any,
    numbers: Any,
    n_best: Any,
) -> Any:
    """Offer these rows as far as their signatures let them be similar; return how many are the best then."""
    for row in rows[:n_rows]:
        at_most = (n_known + sizes[row] - _popcount(signature ^ signatures[row])) >> 1
        similarity = _jaccard(n, sizes[row], at_most)
        if similarity < least:
            continue
        if n_best == len(near) and not _less(near[0], latest[0], numbers[0], similarity, visits[row], ids[row]):
            continue
        shared = 0
        for p in range(starts[row], starts[row + 1]):
            shared += in_query[tokens[p]]
        similarity = _jaccard(n, sizes[row], shared)
        if similarity >= least:
            n_best = _offer(near, latest, numbers, n_best, similarity, visits[row], ids[row])
    return n_best


@_compiled(
    f"void(uint32[::1], uint32[::1], int32[::1], uint64[::1], int64[::1], int64[::1], {_LISTS},"
    " uint32[::1], int64[:, ::1], float64[::1], float64[::1],"
    " boolean[::1], uint8[::1], int32[::1], uint16[::1],"
    " float64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1])"
)
def _search(
    tokens: Any,
    starts: Any,
    sizes: Any,
    signatures: Any,
    ids: Any,
    visits: Any,  # the block
    vocabulary: Any,
    list_starts: Any,
    list_rows: Any,  # its lists
    all_tokens: Any,
    queries: Any,
    leasts: Any,
    all_limits: Any,  # the questions
    in_query: Any,
    times: Any,
    counts: Any,
    found: Any,  # room to work in; all 0 but the last
    best_near: Any,
    best_visits: Any,
    best_ids: Any,
    n_best: Any,  # the answers so far
) -> None:
    begin = begin_limits = 0
    for q in range(len(leasts)):
        n_known, n_read, m, n, too_small = queries[q]
        query_tokens, begin = all_tokens[begin : begin + n_known], begin + n_known
        limits, begin_limits = all_limits[begin_limits : begin_limits + n_read + 1], begin_limits + n_read + 1
        near, latest, numbers = best_near[q], best_visits[q], best_ids[q]
        first, last = _rows_up_to(sizes, np.float64(too_small)), _rows_up_to(sizes, limits[n_read])
        if first >= last:
            continue
        if len(vocabulary) and m == 0:
            _count(vocabulary, list_starts, list_rows, query_tokens, counts)
            n_best[q] = _rank(sizes, ids, visits, counts, first, last, n, leasts[q], near, latest, numbers, n_best[q])
            counts[: len(ids)] = 0
            continue
        if len(vocabulary):
            read = query_tokens[:n_read]
            n_found = _repeated(vocabulary, list_starts, list_rows, sizes, read, limits, m, first, times, found)
        else:
            n_found = last - first
            for i in range(n_found):
                found[i] = first + i
        if n_found == 0:
            continue
        signature = np.uint64(0)
        for token in query_tokens:
            in_query[token] = True
            signature ^= np.uint64(1) << np.uint64(token & np.uint32(63))
        n_best[q] = _compare(
            tokens,
            starts,
            sizes,
            signatures,
            ids,
            visits,
            found,
            n_found,
            in_query,
            n_known,
            signature,
            n,
            leasts[q],
            near,
            latest,
            numbers,
            n_best[q],
        )
        for token in query_tokens:
            in_query[token] = False


@_compiled("int64(uint32[::1], uint32[::1], uint32[::1], uint32[::1], uint32[::1], uint16[::1])")
def _post(tokens: Any, starts: Any, ends: Any, vocabulary: Any, list_starts: Any, rows: Any) -> Any:
    """Fill the lists; return how many there are. `ends` has a place for each token number, all 0."""
    for token in tokens:
        ends[token] += np.uint32(1)
    n, end = 0, np.uint32(0)
    for token in range(len(ends)):
        length = ends[token]
        if length > 0:
            vocabulary[n] = token
            list_starts[n] = end
            n += 1
        ends[token] = end
        end += length
    list_starts[n] = list_starts[n + 1] = end
    vocabulary[n] = NO_TOKEN
    for row in range(len(starts) - 1):
        for p in range(starts[row], starts[row + 1]):
            token = tokens[p]
            rows[ends[token]] = row
            ends[token] += np.uint32(1)
    return n


class NumbaKernel:
    """Searches with compiled loops."""

    name = "numba"
    candidate_cost = 100.0

    def __init__(self) -> None:
        _compiled.compile()
        vectors.compile_vectors()
        self._repeats = np.zeros(MAX_ROWS, dtype=np.uint8)
        self._counts = np.zeros(MAX_ROWS, dtype=np.int32)
        self._found = np.zeros(MAX_ROWS, dtype=np.uint16)
        self._products = np.zeros(MAX_ROWS)
        self._seen = np.zeros(MAX_ROWS, dtype=np.uint8)
        self._rows, self._near = np.zeros(MAX_ROWS, dtype=np.int64), np.zeros(MAX_ROWS)
        self._n_held, self._of_term = np.zeros(1024, dtype=np.uint32), np.zeros(1024)

    def post(self, tokens: Ints, starts: Ints) -> Lists:
        """Return the lists of a block."""
        highest = int(tokens.max(initial=0))
        if highest > 2 * len(tokens):  # numbers far apart: sorting needs less room than counting
            return post_by_sorting(tokens, starts)
        room = min(len(tokens), highest + 1) + 2
        vocabulary, list_starts = np.empty(room, dtype=np.uint32), np.empty(room, dtype=np.uint32)
        rows = np.empty(len(tokens), dtype=np.uint16)
        n = _post(tokens, starts, np.zeros(highest + 1, dtype=np.uint32), vocabulary, list_starts, rows)
        return Lists(vocabulary[: n + 1].copy(), list_starts[: n + 2].copy(), rows)

    def norms(self, block: Block, rows: Ints, starts: Ints, terms: Ints, squared: Floats) -> Floats:
        """Return the norms of the vectors of these rows; 1 for a row without terms."""
        self._hold(len(squared))
        norms = np.empty(len(rows))
        vectors.norms_of_rows(block.tokens, block.starts, rows, starts, terms, squared, self._n_held, norms)
        return norms

    def products(self, features: Ints, sizes: Ints, starts: Ints, terms: Ints, squared: Floats) -> Floats:
        """Return the products of the vectors of S sets, shape (S, S)."""
        self._hold(len(squared))
        room = int((starts[features.astype(np.int64) + 1] - starts[features]).sum())
        numbers, set_of, count_of = np.empty((2, room), dtype=np.uint32), np.empty(room, dtype=np.int64), np.empty(room)
        products = np.zeros((len(sizes), len(sizes)))
        vectors.products_of_sets(
            features, sizes, starts, terms, squared, self._n_held, *numbers, set_of, count_of, products
        )
        return products

    def add_by_feature(self, terms: Ints, values: Floats, lists: FeatureLists, sums: Floats) -> Ints:
        """Add the values of terms to the sum of each feature that holds them; return these features."""
        if len(self._of_term) < lists.n_terms:
            self._of_term = np.zeros(2 * lists.n_terms)
        found = np.empty(len(sums), dtype=np.int64)
        return found[: vectors.add_by_feature(terms, values, *lists[:5], self._of_term, sums, found)]

    def nearest(
        self, block: Block, norms: RowNorms, vectors_of: TermVectors, products: Floats, norm: float, best: Best
    ) -> tuple[Ints, Floats]:
        """Return the rows of a block that may be among the best, and their similarities up to rounding."""
        self._hold(len(vectors_of.squared))
        own = (block.tokens, block.starts, block.sizes, *(block.lists or _NO_LISTS), norms.at_least, norms.exact)
        room = (self._products, self._seen, self._rows, self._near)
        heap = (best.similarities, best.n, best.least)
        n = vectors.nearest_rows(*own, *vectors_of, self._n_held, products, norm, *heap, *room)
        return self._rows[:n].copy(), self._near[:n].copy()

    def _hold(self, n_terms: int) -> None:
        if len(self._n_held) < n_terms:
            self._n_held = np.zeros(2 * n_terms, dtype=np.uint32)

    def search(
        self, blocks: Sequence[Block], plans: Sequence[SearchPlan], k: int, in_query: Bools
    ) -> list[list[Match]]:
        """Return for each question the k best sets that are similar enough, best first."""
        found: list[list[Match]] = []
        for first in range(0, len(plans), _AT_ONCE):
            found += self._search(blocks, plans[first : first + _AT_ONCE], k, in_query)
        return found

    def _search(
        self, blocks: Sequence[Block], plans: Sequence[SearchPlan], k: int, in_query: Bools
    ) -> list[list[Match]]:
        query_tokens = np.concatenate([plan.query.tokens for plan in plans])
        queries = [(len(plan.query.tokens), plan.n_read, plan.repeats, plan.query.n, plan.too_small) for plan in plans]
        limits = [limit for plan in plans for limit in (*map(plan.largest, range(plan.n_read)), plan.largest(0))]
        questions = (query_tokens, np.array(queries), np.array([plan.least for plan in plans]), np.array(limits))
        room = (in_query, self._repeats, self._counts, self._found)
        near, n_best = np.zeros((len(plans), k)), np.zeros(len(plans), dtype=np.int64)
        visits, ids = np.zeros((len(plans), k), dtype=np.int64), np.zeros((len(plans), k), dtype=np.int64)
        for block in reversed(blocks):
            lists = block.lists or _NO_LISTS
            own = (block.tokens, block.starts, block.sizes, block.signatures, block.ids, block.visits)
            _search(*own, *lists, *questions, *room, near, visits, ids, n_best)
        answers = []
        for q, n in enumerate(n_best.tolist()):
            best = zip(near[q, :n].tolist(), visits[q, :n].tolist(), ids[q, :n].tolist(), strict=True)
            answers.append(sorted(best, reverse=True))
        return answers


_NO_LISTS = Lists(np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint16))
