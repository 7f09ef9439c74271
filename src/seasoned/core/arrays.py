"""Arrays: type names, conversion of a caller's values, and lists of whole numbers that grow inside one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seasoned.errors import InputError, excerpt

__all__ = ["Bools", "Floats", "Ints", "RaggedLists", "as_floats", "grow"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_MIN_LENGTH = 16


def as_floats(name: str, values: npt.ArrayLike) -> Floats:
    """Return `values` as an array of floats.

    Raises:
        InputError: they are not numbers.

    Example:
        >>> as_floats("rewards", [0, 1]).tolist()
        [0.0, 1.0]
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} = {excerpt(values)}", f"{name} must be numbers", "Convert them first.") from error


def grow(array: npt.NDArray[Any], n: int, fill: float = 0) -> npt.NDArray[Any]:
    """Return an array with room for `n` entries or more: itself, or a copy of at least 1.5 times its length.

    Example:
        >>> len(grow(np.zeros(100), 101))
        150
    """
    if n <= len(array):
        return array
    bigger = np.full(max(n, len(array) + (len(array) >> 1), _MIN_LENGTH), fill, dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger


class RaggedLists:
    """Lists numbered from 0, each contiguous in one pool of 32-bit numbers.

    A list that exceeds its capacity moves to the end of the pool with twice the capacity. So appending takes amortised
    constant time, and the pool is at most four times as large as its contents.

    Example:
        >>> lists = RaggedLists()
        >>> lists.extend(np.array([2, 0, 2]), np.array([7, 8, 9]))
        >>> values, which = lists.gather(np.array([2, 1, 0]))
        >>> values.tolist(), which.tolist()
        ([7, 9, 8], [0, 0, 2])
    """

    def __init__(self) -> None:
        self._start = np.zeros(0, dtype=np.int64)
        self._size = np.zeros(0, dtype=np.int32)
        self._room = np.zeros(0, dtype=np.int32)
        self._pool = np.zeros(0, dtype=np.int32)
        self._used = 0

    @property
    def nbytes(self) -> int:
        """The size of the arrays, in bytes."""
        return self._start.nbytes + self._size.nbytes + self._room.nbytes + self._pool.nbytes

    def sizes(self, rows: Ints) -> Ints:
        """Return the length of each of these lists; 0 for a list that was never extended."""
        if not len(self._size):
            return np.zeros(len(rows), dtype=np.int64)
        known = rows < len(self._size)
        return np.where(known, self._size[np.where(known, rows, 0)], 0).astype(np.int64)

    def gather(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the values of these lists, list by list, and for each value the position of its list in `rows`."""
        sizes = self.sizes(rows)
        total = int(sizes.sum())
        which = np.repeat(np.arange(len(rows)), sizes)
        if not total:
            return np.zeros(0, dtype=np.int64), which
        starts = np.where(sizes > 0, self._start[np.where(sizes > 0, rows, 0)], 0)
        places = np.arange(total) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return self._pool[places].astype(np.int64), which

    def extend(self, rows: Ints, values: Ints) -> None:
        """Append `values[i]` to list `rows[i]`, in the order given."""
        if not len(rows):
            return
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values[order]
        lists, first, counts = np.unique(rows, return_index=True, return_counts=True)
        n = int(lists[-1]) + 1
        self._start, self._size, self._room = grow(self._start, n), grow(self._size, n), grow(self._room, n)
        self._make_room(lists, self._size[lists] + counts)
        nth = np.arange(len(rows)) - np.repeat(first, counts)
        self._pool[self._start[rows] + self._size[rows] + nth] = values
        self._size[lists] += counts.astype(np.int32)

    def _make_room(self, lists: Ints, needed: Ints) -> None:
        """Move the lists that would exceed their capacity to the end of the pool."""
        full = needed > self._room[lists]
        lists, needed = lists[full], needed[full]
        if not len(lists):
            return
        # The first capacity is exact: most lists never grow again.
        room = np.where(self._room[lists] == 0, needed, 2 * needed)
        starts = self._used + np.cumsum(room) - room
        self._used += int(room.sum())
        self._pool = grow(self._pool, self._used)
        held, which = self.gather(lists)
        sizes = self._size[lists].astype(np.int64)
        offsets = np.arange(len(held)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._pool[starts[which] + offsets] = held
        self._start[lists], self._room[lists] = starts, room
