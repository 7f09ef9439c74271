"""Exact top-k Jaccard search over feature sets."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seasoned.errors import InputError, excerpt

__all__ = ["JaccardIndex", "check_nearest"]

_MIN_TAIL_TOKENS = 65_536


Ints = npt.NDArray[np.int64]


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


class _Growing:
    """A NumPy array of whole numbers with amortised append."""

    def __init__(self, dtype: type[np.int64] | type[np.uint32]) -> None:
        self._data: npt.NDArray[Any] = np.empty(1024, dtype=dtype)
        self.n = 0

    def extend(self, values: npt.ArrayLike) -> None:
        new = np.asarray(values, dtype=self._data.dtype)
        if self.n + len(new) > len(self._data):
            grown = np.empty(max(2 * len(self._data), self.n + len(new)), dtype=self._data.dtype)
            grown[: self.n] = self._data[: self.n]
            self._data = grown
        self._data[self.n : self.n + len(new)] = new
        self.n += len(new)

    @property
    def array(self) -> npt.NDArray[Any]:
        return self._data[: self.n]


class JaccardIndex:
    """Feature sets by id; finds the k most similar to a query, exactly.

    `J(q, s) = |q & s| / |q | s|`, `J({}, {}) = 1`. Results equal a brute-force scan on every input: at or above the
    threshold, most similar first, ties by the later visit.

    A set that reaches the threshold t shares at least `ceil(t |q|)` features with the query. So it holds one of the
    query's `|q| - ceil(t |q|) + 1` rarest features, and only sets in those postings are counted (prefix filter;
    Chaudhuri, Ganti and Kaushik 2006, "A Primitive Operator for Similarity Joins"). Sets added since the postings were
    last built are counted one by one; they are few.

    Example:
        >>> index = JaccardIndex()
        >>> index.add([(0, [1, 2, 3], 10), (1, [2, 3, 4], 11)])
        >>> index.search([1, 2, 3], n_features=3, k=2, threshold=0.4)
        [(0, 1.0), (1, 0.5)]
    """

    def __init__(self) -> None:
        self._tokens = _Growing(np.uint32)  # every set's tokens, one set after the other
        self._ends = _Growing(np.int64)
        self._ids = _Growing(np.int64)
        self._visits = _Growing(np.int64)
        self._row_of: dict[int, int] = {}
        self._posted_rows = 0  # rows below are in the postings; the others are the tail
        self._postings = np.empty(0, dtype=np.int32)
        self._posting_starts = np.zeros(1, dtype=np.int64)
        self._in_query = np.zeros(1024, dtype=bool)

    def __len__(self) -> int:
        return len(self._row_of)

    def add(self, sets: Iterable[tuple[int, Sequence[int] | npt.NDArray[np.uint32], int]]) -> None:
        """Add sets as (id, distinct token numbers, visit). A known id only moves its visit; a set never changes."""
        tokens: list[npt.NDArray[np.uint32]] = []
        ends: list[int] = []
        ids: list[int] = []
        visits: list[int] = []
        total = self._tokens.n
        for set_id, members, visit in sets:
            row = self._row_of.setdefault(set_id, self._ids.n + len(ids))
            if row < self._ids.n:
                self._visits.array[row] = visit
                continue
            if row < self._ids.n + len(ids):
                visits[row - self._ids.n] = visit
                continue
            array = np.asarray(members, dtype=np.uint32)
            total += len(array)
            tokens.append(array)
            ends.append(total)
            ids.append(set_id)
            visits.append(visit)
        if not ids:
            return
        self._tokens.extend(np.concatenate(tokens))
        self._ends.extend(ends)
        self._ids.extend(ids)
        self._visits.extend(visits)
        highest = max((int(array.max()) for array in tokens if len(array)), default=0)
        if highest >= len(self._in_query):
            self._in_query = np.zeros(2 * highest + 2, dtype=bool)
        posted = self._start(self._posted_rows)
        if self._tokens.n - posted > max(_MIN_TAIL_TOKENS, posted // 4):
            self._post()

    def _start(self, row: int) -> int:
        return int(self._ends.array[row - 1]) if row else 0

    def _post(self) -> None:
        """Build the postings of all rows: for each token, the rows that hold it."""
        tokens, ends = self._tokens.array, self._ends.array
        sizes = np.diff(ends, prepend=0)
        rows = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self._postings = rows[np.argsort(tokens, kind="stable")]
        self._posting_starts = np.concatenate([[0], np.cumsum(np.bincount(tokens, minlength=len(self._in_query)))])
        self._posted_rows = len(sizes)

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
        if not self._ids.n:
            return []
        query = np.asarray([token for token in tokens if token < len(self._in_query)], dtype=np.int64)
        # Rounding may only ever let a set too many through: the exact comparison follows.
        least_shared = max(0, math.ceil(threshold * n_features - 1e-9))
        if least_shared > len(query):
            return []
        self._in_query[query] = True
        try:
            parts = [self._posted_overlaps(query, least_shared), self._tail_overlaps()]
        finally:
            self._in_query[query] = False
        rows = np.concatenate([part[0] for part in parts])
        shared = np.concatenate([part[1] for part in parts])
        return self._best(rows, shared, n_features, k, threshold)

    def _posted_overlaps(self, query: Ints, least_shared: int) -> tuple[Ints, Ints]:
        """Rows that may reach the threshold, and how many features each shares with the query."""
        n = self._posted_rows
        if not n:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        known = query[query < len(self._posting_starts) - 1]
        starts, stops = self._posting_starts[known], self._posting_starts[known + 1]
        lengths = stops - starts
        if least_shared == 0:
            return np.arange(n), self._count_all(starts, stops, n)
        n_prefix = len(known) - least_shared + 1
        if n_prefix <= 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        rarest = np.argsort(lengths, kind="stable")[:n_prefix]
        rows = np.unique(np.concatenate([self._postings[starts[i] : stops[i]] for i in rarest])).astype(np.int64)
        ends = self._ends.array
        sizes = ends[rows] - np.where(rows > 0, ends[rows - 1], 0)
        rows = rows[sizes >= least_shared]
        if self._cost_of_rows(rows) > int(lengths.sum()) + n:
            return rows, self._count_all(starts, stops, n)[rows]
        return rows, self._count_rows(rows)

    def _cost_of_rows(self, rows: Ints) -> int:
        return int(len(rows) * self._tokens.n / self._ids.n)

    def _tail_overlaps(self) -> tuple[Ints, Ints]:
        rows = np.arange(self._posted_rows, self._ids.n)
        return rows, self._count_rows(rows)

    def _count_all(self, starts: Ints, stops: Ints, n: int) -> Ints:
        lists = [self._postings[start:stop] for start, stop in zip(starts, stops, strict=True)]
        return np.bincount(np.concatenate(lists) if lists else np.empty(0, dtype=np.int64), minlength=n)

    def _count_rows(self, rows: Ints) -> Ints:
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        ends = self._ends.array
        stops = ends[rows]
        sizes = stops - np.where(rows > 0, ends[rows - 1], 0)
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        positions = np.arange(bounds[-1]) + np.repeat(stops - sizes - bounds[:-1], sizes)
        hits = np.concatenate([[0], np.cumsum(self._in_query[self._tokens.array[positions]])])
        counts: Ints = hits[bounds[1:]] - hits[bounds[:-1]]
        return counts

    def _best(self, rows: Ints, shared: Ints, n_features: int, k: int, threshold: float) -> list[tuple[int, float]]:
        ends = self._ends.array
        sizes = ends[rows] - np.where(rows > 0, ends[rows - 1], 0)
        union = n_features + sizes - shared
        similarity = np.where(union > 0, shared / np.maximum(union, 1), 1.0)
        kept = similarity >= threshold
        rows, similarity = rows[kept], similarity[kept]
        if len(rows) > k:
            kth = np.partition(similarity, len(similarity) - k)[len(similarity) - k]
            near = similarity >= kth
            rows, similarity = rows[near], similarity[near]
        order = np.lexsort((-self._visits.array[rows], -similarity))[:k]
        return [(int(self._ids.array[rows[i]]), float(similarity[i])) for i in order]
