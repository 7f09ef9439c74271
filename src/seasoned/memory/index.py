"""Exact top-k Jaccard search over feature sets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from seasoned.errors import InputError, excerpt
from seasoned.memory.postings import Ints, PostedSets, TokenSets

__all__ = ["JaccardIndex", "check_nearest"]

_MAX_TAIL_WEIGHT = 16_384  # tokens and rows
_GROWTH = 2
# A search goes down these similarities to its threshold. Each takes several times as long as the one before.
_STEPS = (0.8, 0.6, 0.4, 0.2)
_STEP_MARGIN = 0.1


def check_nearest(k: object, threshold: object) -> tuple[int, float]:
    """Return `k` as an int that SQLite can hold, and the threshold as a float, if both can be asked for.

    Raises:
        InputError: k is not a whole number from 1, or the threshold is not a number in [0, 1].
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k = {excerpt(k)}", "k is a whole number, at least 1", "Ask for one neighbour or more.")
    numbers = int | float | np.integer | np.floating
    if isinstance(threshold, bool) or not isinstance(threshold, numbers) or not 0.0 <= threshold <= 1.0:
        raise InputError(f"threshold = {excerpt(threshold)}", "a similarity threshold is in [0, 1]", "0.8 is usual.")
    return min(int(k), sys.maxsize), float(threshold)


class JaccardIndex:
    """Feature sets by id; finds the k most similar to a query, exactly.

    `J(q, s) = |q & s| / |q | s|`, `J({}, {}) = 1`. Results equal a brute-force scan on every input: at or above the
    threshold, most similar first, ties by the later visit.

    The few sets that were added last are compared one by one. The others are in blocks with postings, each at least
    twice as large as the next, so that a set is posted anew only when its block has grown by a half. A search asks
    for very similar sets first and stops as soon as it has k: no other set can come before them.

    Example:
        >>> index = JaccardIndex()
        >>> index.add([(0, [1, 2, 3], 10), (1, [2, 3, 4], 11)])
        >>> index.search([1, 2, 3], n_features=3, k=2, threshold=0.4)
        [(0, 1.0), (1, 0.5)]
    """

    def __init__(self) -> None:
        self._blocks: list[PostedSets] = []  # large ones first
        self._tail = TokenSets.of([], [], [])
        self._in_query = np.zeros(1024, dtype=bool)

    def __len__(self) -> int:
        return sum(map(len, [*self._blocks, self._tail]))

    def add(self, sets: Iterable[tuple[int, Sequence[int] | npt.NDArray[np.uint32], int]]) -> None:
        """Add sets as (id, distinct token numbers, visit). A known id only moves its visit; a set never changes."""
        batch = list(sets)
        ids = np.array([set_id for set_id, _, _ in batch], dtype=np.int64)
        visits = np.array([visit for _, _, visit in batch], dtype=np.int64)
        known = np.zeros(len(batch), dtype=bool)
        for block in (*self._blocks, self._tail):
            known |= block.find(ids)[0]
        new = np.flatnonzero(~known)
        new = new[np.unique(ids[new], return_index=True)[1]]
        if len(new):
            self._append(TokenSets.of([batch[i][1] for i in new.tolist()], ids[new], visits[new]))
        for block in (*self._blocks, self._tail):
            here, rows = block.find(ids)
            block.visits[rows] = visits[here]  # of visits to one set, the last stays

    def _append(self, new: TokenSets) -> None:
        """Put new sets into the tail; post it when it is large, with all blocks that are not much larger."""
        blocks, parts = list(self._blocks), [self._tail, new]
        if sum(part.weight for part in parts) <= _MAX_TAIL_WEIGHT:
            tail = TokenSets.merged(parts)
        else:
            while blocks and blocks[-1].weight < _GROWTH * sum(part.weight for part in parts):
                parts.append(blocks.pop())
            tail = TokenSets.of([], [], [])
            blocks.append(PostedSets.merged(parts))
        highest = int(new.tokens.max(initial=0))
        if highest >= len(self._in_query):
            self._in_query = np.zeros(2 * highest + 2, dtype=bool)
        self._blocks, self._tail = blocks, tail

    @property
    def n_bytes(self) -> int:
        """The bytes of all its arrays."""
        return len(self._in_query) + sum(block.n_bytes for block in (*self._blocks, self._tail))

    def search(self, tokens: Sequence[int], *, n_features: int, k: int, threshold: float) -> list[tuple[int, float]]:
        """Return at most `k` pairs (id, similarity).

        Args:
            tokens: the query's known token numbers, distinct.
            n_features: the query's size, unknown features included.
            k: how many, >= 1.
            threshold: smallest similarity, in [0, 1].

        Raises:
            InputError: k or the threshold is out of range.
        """
        k, threshold = check_nearest(k, threshold)
        query = np.array([token for token in tokens if token < len(self._in_query)], dtype=np.uint32)
        self._in_query[query] = True
        try:
            return self._search(query, n_features, k, threshold)
        finally:
            self._in_query[query] = False

    def _search(self, query: Ints, n: int, k: int, threshold: float) -> list[tuple[int, float]]:
        rows = np.arange(len(self._tail))
        tail = self._tail, rows, _similarities(n, self._tail.sizes, self._tail.count(rows, self._in_query))
        best: list[tuple[int, float]] = []
        for least in [*(step for step in _STEPS if step > threshold + _STEP_MARGIN), threshold]:
            parts = [tail]
            for block in self._blocks:
                rows, shared = block.reaching(least, query, n, self._in_query)
                parts.append((block, rows, _similarities(n, block.sizes[rows], shared)))
            best = _best(parts, k, least)
            if len(best) == k:
                break
        return best


def _similarities(n: int, sizes: Ints, shared: Ints) -> npt.NDArray[np.float64]:
    """Return the Jaccard similarity of a set of n to sets of these sizes, which share that much with it."""
    union = n + sizes - shared
    return np.where(union > 0, shared / np.maximum(union, 1), 1.0)


def _best(
    parts: list[tuple[TokenSets, Ints, npt.NDArray[np.float64]]], k: int, least: float
) -> list[tuple[int, float]]:
    """Return the k best rows of all parts that are at least so similar, ties by the later visit."""
    near = np.concatenate([similarity for _, _, similarity in parts])
    if len(near) > k:
        least = max(least, float(np.partition(near, len(near) - k)[len(near) - k]))
    kept = [(block, rows[near >= least], near[near >= least]) for block, rows, near in parts]
    ids = np.concatenate([block.ids[rows] for block, rows, _ in kept])
    visits = np.concatenate([block.visits[rows] for block, rows, _ in kept])
    near = np.concatenate([similarity for _, _, similarity in kept])
    order = np.lexsort((-visits, -near))[:k]
    return list(zip(ids[order].tolist(), near[order].tolist(), strict=True))
