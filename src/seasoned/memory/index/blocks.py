"""Blocks of token sets, with the inverted lists that find the similar ones among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "MAX_BLOCK_TOKENS",
    "MAX_ROWS",
    "NO_TOKEN",
    "Block",
    "Bools",
    "Ints",
    "Lists",
    "Poster",
    "Rows",
    "post_by_sorting",
    "ranges",
    "stable_order",
]

Ints = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

MAX_ROWS = 1 << 16  # a row of a block is a 16-bit number
MAX_BLOCK_TOKENS = 1 << 22
_ROWS_AT_ONCE = 2048
_BITS = np.uint64(1) << np.arange(64, dtype=np.uint64)
NO_TOKEN = np.uint32(0xFFFFFFFF)


class Lists(NamedTuple):
    """For each token, ascending, the rows that hold it: `rows[starts[i] : starts[i + 1]]` hold `vocabulary[i]`.

    One more token, larger than all, stands at the end with an empty list, so that every search in it finds something.
    """

    vocabulary: Ints
    starts: Ints
    rows: Ints


Poster = Callable[[Ints, Ints], Lists]
"""Lists from tokens and from where each row's tokens start."""


class Rows(NamedTuple):
    """Token sets as arrays: ids, sizes, all tokens one set after the other, latest visits."""

    ids: Ints
    sizes: Ints
    tokens: Ints
    visits: Ints

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts; the only part itself."""
        parts = [part for part in parts if len(part.ids)]
        if len(parts) == 1:
            return parts[0]
        parts = parts or [cls.none()]
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    @classmethod
    def none(cls) -> Rows:
        """Return no rows."""
        empty = [np.empty(0, dtype=kind) for kind in (np.int64, np.int32, np.uint32, np.int64)]
        return cls(*empty)

    def taken(self, at: Ints) -> Rows:
        """Return the sets at these places."""
        starts = np.cumsum(self.sizes, dtype=np.int64) - self.sizes
        tokens = self.tokens[ranges(starts[at], self.sizes[at])]
        return Rows(self.ids[at], self.sizes[at], tokens, self.visits[at])

    def chunks(self) -> Iterator[Rows]:
        """Cut into parts that each make a block."""
        ends = np.cumsum(self.sizes, dtype=np.int64)
        first = token = 0
        while first < len(self.ids):
            last = int(np.searchsorted(ends, token + MAX_BLOCK_TOKENS, side="right"))
            last = min(max(last, first + 1), first + MAX_ROWS)
            stop = int(ends[last - 1])
            yield Rows(self.ids[first:last], self.sizes[first:last], self.tokens[token:stop], self.visits[first:last])
            first, token = last, stop


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return the numbers `start, ..., start + length - 1` of every pair, one range after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    numbers = np.repeat(starts - (ends - lengths), lengths)
    numbers += np.arange(len(numbers))
    return numbers


def post_by_sorting(tokens: Ints, starts: Ints) -> Lists:
    """Return the lists of at most `MAX_ROWS` rows."""
    order = stable_order(tokens)
    rows = np.repeat(np.arange(len(starts) - 1, dtype=np.uint16), np.diff(starts))[order]
    ordered = tokens[order]
    heads = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    vocabulary = np.append(ordered[heads], NO_TOKEN)
    return Lists(vocabulary, np.append(heads, [len(ordered)] * 2).astype(np.uint32), rows)


def stable_order(tokens: Ints) -> Ints:
    """Return the order that sorts these tokens, by halves: NumPy sorts 16-bit numbers by radix, in linear time."""
    order = np.argsort(tokens.astype(np.uint16), kind="stable")
    high = (tokens >> np.uint32(16)).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")] if high.any() else order


class Block:
    """At most `MAX_ROWS` sets, smallest first, so that the sets of a range of sizes are a range of rows.

    The signature of a set has the bit `token mod 64` flipped for each token. Two sets whose signatures differ in d bits
    differ in d tokens or more.

    Args:
        rows: the sets.
        post: makes the lists; None for a block without, whose rows are all compared.
    """

    def __init__(self, rows: Rows, post: Poster | None) -> None:
        order = np.argsort(rows.sizes, kind="stable")
        self.sizes = sizes = rows.sizes[order]
        self.ids, self.visits = rows.ids[order], rows.visits[order]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.uint32)
        starts = (np.cumsum(rows.sizes, dtype=np.int64) - rows.sizes)[order]
        self.tokens = np.empty(len(rows.tokens), dtype=np.uint32)
        self.signatures = np.empty(len(sizes), dtype=np.uint64)
        for first in range(0, len(sizes), _ROWS_AT_ONCE):  # in room that stays in the cache
            part = slice(first, first + _ROWS_AT_ONCE)
            tokens = rows.tokens[ranges(starts[part], sizes[part])]
            begin = int(self.starts[first])
            self.tokens[begin : begin + len(tokens)] = tokens
            self.signatures[part] = _signatures(tokens, sizes[part])
        self.lists = None if post is None else post(self.tokens, self.starts)
        self.smallest, self.largest = (int(sizes[0]), int(sizes[-1])) if len(sizes) else (0, 0)
        by_id = np.argsort(self.ids)
        self._row_of, self._ids_in_order = by_id.astype(np.uint16), self.ids[by_id]
        self.lowest_id, self.highest_id = (int(self.ids.min()), int(self.ids.max())) if len(sizes) else (0, -1)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def weight(self) -> int:
        """The cost of posting it: its tokens and its rows."""
        return len(self.tokens) + len(self)

    @property
    def full(self) -> bool:
        """Whether it grows no more."""
        return len(self) > MAX_ROWS // 2 or len(self.tokens) > MAX_BLOCK_TOKENS // 2

    @property
    def rows(self) -> Rows:
        """Its sets."""
        return Rows(self.ids, self.sizes, self.tokens, self.visits)

    @property
    def n_bytes(self) -> int:
        """The bytes of its arrays."""
        own = (
            self.ids,
            self._ids_in_order,
            self.sizes,
            self.visits,
            self.starts,
            self.tokens,
            self.signatures,
            self._row_of,
        )
        return sum(array.nbytes for array in (*own, *(self.lists or ())))

    def taken(self, rows: Ints) -> Rows:
        """Return the sets of some rows."""
        sizes = self.sizes[rows]
        return Rows(self.ids[rows], sizes, self.tokens[ranges(self.starts[rows], sizes)], self.visits[rows])

    def find(self, ids: Ints) -> tuple[Bools, Ints]:
        """Return which of these ids are here, and the rows of those."""
        here = (ids >= self.lowest_id) & (ids <= self.highest_id)
        if here.any():
            at = np.minimum(self._ids_in_order.searchsorted(ids), len(self) - 1)
            here &= self._ids_in_order[at] == ids
            return here, self._row_of[at[here]].astype(np.intp)
        return here, np.empty(0, dtype=np.intp)

    def rows_up_to(self, size: float) -> int:
        """Return how many rows have at most so many tokens."""
        if size < self.smallest:
            return 0
        if size >= self.largest:
            return len(self)
        # Of the type of the array that is searched: NumPy would convert all of that otherwise.
        return int(np.searchsorted(self.sizes, np.int32(size), side="right"))


def _signatures(tokens: Ints, sizes: Ints) -> Ints:
    found = np.zeros(len(sizes), dtype=np.uint64)
    if len(tokens):
        filled = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[filled]
        found[filled] = np.bitwise_xor.reduceat(_BITS[tokens & np.uint32(63)], starts)
    return found
