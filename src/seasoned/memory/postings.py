"""Blocks of token sets, and the inverted lists that find the similar ones among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Ints", "PostedSets", "TokenSets"]

Ints = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

_MAX_REPEATS = 8
_MAX_SIZE = np.iinfo(np.int32).max
# Comparing one token of a candidate takes about as long as reading this many postings.
_POSTINGS_A_TOKEN = 1.0
# Bounds are met up to this: rounding may only ever let a set too many through, for the exact comparison follows.
_SLACK = 1e-6


class TokenSets:
    """Rows, smallest set first: each a set of token numbers, its id and its latest visit."""

    def __init__(self, tokens: Ints, sizes: Ints, ids: Ints, visits: Ints) -> None:
        order = np.argsort(sizes, kind="stable")
        self.sizes, self.ids, self.visits = sizes[order], ids[order], visits[order]
        self.starts = np.cumsum(self.sizes, dtype=np.int64) - self.sizes
        in_order = bool((sizes[1:] >= sizes[:-1]).all())
        arrived = np.cumsum(sizes, dtype=np.int64) - sizes
        self.tokens = tokens if in_order else tokens[_ranges(arrived[order], self.sizes)]
        self._by_id = np.argsort(self.ids).astype(np.uint32)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def weight(self) -> int:
        """What posting it costs: its tokens and its rows."""
        return len(self.tokens) + len(self)

    @property
    def n_bytes(self) -> int:
        """The bytes of its arrays."""
        return sum(array.nbytes for array in vars(self).values())

    @classmethod
    def of(cls, sets: Sequence[Sequence[int] | Ints], ids: npt.ArrayLike, visits: npt.ArrayLike) -> Self:
        """Return one row for each set of token numbers."""
        arrays = [np.asarray(tokens, dtype=np.uint32) for tokens in sets]
        sizes = np.array([len(tokens) for tokens in arrays], dtype=np.int32)
        flat = np.concatenate([np.empty(0, dtype=np.uint32), *arrays])
        return cls(flat, sizes, np.asarray(ids, dtype=np.int64), np.asarray(visits, dtype=np.int64))

    @classmethod
    def merged(cls, parts: Iterable[TokenSets]) -> Self:
        """Return the rows of all parts; no id is in two of them."""
        blocks = list(parts)
        return cls(
            np.concatenate([block.tokens for block in blocks]),
            np.concatenate([block.sizes for block in blocks]),
            np.concatenate([block.ids for block in blocks]),
            np.concatenate([block.visits for block in blocks]),
        )

    def find(self, ids: Ints) -> tuple[Bools, Ints]:
        """Return which of these ids are here, and the rows of those."""
        if not len(self):
            return np.zeros(len(ids), dtype=bool), np.empty(0, dtype=np.int64)
        at = np.searchsorted(self.ids, ids, sorter=self._by_id)
        rows = self._by_id[np.minimum(at, len(self) - 1)]
        here = self.ids[rows] == ids
        return here, rows[here]

    def count(self, rows: Ints, in_query: Bools) -> Ints:
        """Return how many tokens each row shares with the query; `in_query` says of each token whether it has it."""
        sizes = self.sizes[rows]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        hits = np.concatenate([[0], np.cumsum(in_query[self.tokens[_ranges(self.starts[rows], sizes)]])])
        counts: Ints = hits[bounds[1:]] - hits[bounds[:-1]]
        return counts


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return the numbers `start, ..., start + length - 1` of every pair, one range after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    numbers = np.repeat(starts - (ends - lengths), lengths)
    numbers += np.arange(len(numbers))
    return numbers


def _stable_order(tokens: Ints) -> Ints:
    """Return the order that sorts these tokens, by halves: NumPy sorts 16-bit numbers by radix, in linear time."""
    order = np.argsort(tokens.astype(np.uint16), kind="stable")
    high = (tokens >> np.uint32(16)).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")] if high.any() else order


class PostedSets(TokenSets):
    """Rows with postings: for each token, the rows that hold it.

    For a query of n tokens, a set of s tokens reaches the similarity t only if `t n <= s <= n / t` (length filter) and
    if it shares `r(s) = ceil(t / (1 + t) (n + s))` tokens or more. Of any `n - r(s) + m` query tokens it then holds at
    least m (prefix filter, for m = 1: Chaudhuri, Ganti and Kaushik 2006, "A Primitive Operator for Similarity Joins").
    So the rarest are read, and rows that occur m times are compared exactly. As rows are in the order of their sizes,
    the sets that a list must be read for are one stretch of it: the more frequent the token, the fewer.
    """

    def __init__(self, tokens: Ints, sizes: Ints, ids: Ints, visits: Ints) -> None:
        super().__init__(tokens, sizes, ids, visits)
        order = _stable_order(self.tokens)
        self._postings = np.repeat(np.arange(len(self), dtype=np.uint32), self.sizes)[order]
        ordered = self.tokens[order]
        heads = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
        self._vocabulary = ordered[heads]
        self._bounds = np.concatenate([heads, [len(ordered)]])

    def reaching(self, threshold: float, query: Ints, n: int, in_query: Bools) -> tuple[Ints, Ints]:
        """Return the rows that may reach the threshold, and how many tokens each shares with the query.

        Args:
            threshold: in [0, 1].
            query: its known tokens, distinct, as uint32.
            n: its size, unknown tokens included.
            in_query: says of each token whether it is in the query.
        """
        nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        largest = n / threshold + _SLACK if threshold else math.inf
        first, last = self._rows_of(np.array([threshold * n - _SLACK, largest])).tolist()
        if first == last:
            return nothing
        share = threshold / (1 + threshold)
        required = max(0, math.ceil(share * (n + int(self.sizes[first])) - _SLACK))
        starts, lengths = self._lists(query)
        if len(starts) < required:
            return nothing
        ends = np.cumsum(lengths)
        everything = int(ends[-1]) + len(self) if len(ends) else len(self)
        m, cost = self._repeats(ends, required)
        if not m or cost > everything:
            return np.arange(first, last), self._count_all(starts, lengths)[first:last]
        # The list of rank i is read for the sets with i < len(starts) - r(s) + m.
        most = len(starts) - 1 + m - np.arange(len(starts) - required + m)
        stops = np.minimum(last, self._rows_of((most + _SLACK) / share - n + _SLACK))
        read = zip(starts.tolist(), lengths.tolist(), stops.tolist(), strict=False)  # the other lists are not read
        rows = self._repeated([self._stretch(start, length, first, stop) for start, length, stop in read], m)
        if float(self.sizes[rows].sum()) > everything:
            return rows, self._count_all(starts, lengths)[rows]
        return rows, self.count(rows, in_query)

    def _rows_of(self, sizes: Ints) -> Ints:
        """Return how many rows are smaller than each of these sizes."""
        # Of the type of the array that is searched: NumPy would convert all of that otherwise.
        rows: Ints = np.searchsorted(self.sizes, np.ceil(np.clip(sizes, 0, _MAX_SIZE)).astype(np.int32))
        return rows

    def _lists(self, query: Ints) -> tuple[Ints, Ints]:
        """Return where the lists of the query's tokens start and how long they are, shortest first."""
        if not len(self._vocabulary):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._vocabulary, query), len(self._vocabulary) - 1)
        at = at[self._vocabulary[at] == query]
        starts = self._bounds[at]
        lengths = self._bounds[at + 1] - starts
        order = np.argsort(lengths, kind="stable")
        return starts[order], lengths[order]

    def _repeats(self, ends: Ints, required: int) -> tuple[int, float]:
        """Return the cheapest m for lists that end there, one after the other, and its cost in postings read.

        A larger m reads more lists and leaves fewer candidates: about `N x^m / m!`, where x is what is read a row.
        """
        if not required:
            return 0, 0.0
        m = np.arange(1, min(required, _MAX_REPEATS) + 1)
        read = ends[len(ends) - required + m - 1]
        candidates = len(self) * np.cumprod(read[:, None] / len(self) / m, axis=1).diagonal()
        costs = read + candidates * (len(self.tokens) / len(self) * _POSTINGS_A_TOKEN)
        best = int(np.argmin(costs))
        return best + 1, float(costs[best])

    def _stretch(self, start: int, length: int, first: int, stop: int) -> Ints:
        """Return the rows of a list that lie in `[first, stop)`."""
        rows = self._postings[start : start + length]
        if stop < len(self):
            rows = rows[: rows.searchsorted(np.uint32(stop))]
        return rows[rows.searchsorted(np.uint32(first)) :] if first else rows

    def _repeated(self, lists: list[Ints], m: int) -> Ints:
        """Return the rows that are in m lists or more, ascending."""
        read = np.concatenate(lists)
        # Counts in a table of slots: a row that is read m times is in a slot that is.
        mask = (1 << min(32, (4 * len(read)).bit_length())) - 1
        slots = (read & np.uint32(mask)).astype(np.intp)
        read = read[np.bincount(slots)[slots] >= m]
        read.sort()
        found = read[m - 1 :][read[m - 1 :] == read[: len(read) - m + 1]]
        rows: Ints = found[np.concatenate([[True], found[1:] != found[:-1]])[: len(found)]].astype(np.int64)
        return rows

    def _count_all(self, starts: Ints, lengths: Ints) -> Ints:
        """Return how many of these lists each row is in."""
        lists = [self._postings[start : start + n] for start, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
        counts = np.zeros(len(self), dtype=np.int64)
        for first in range(0, len(lists), 4):  # some at a time, to need little room
            counts += np.bincount(np.concatenate(lists[first : first + 4]), minlength=len(self))
        return counts
