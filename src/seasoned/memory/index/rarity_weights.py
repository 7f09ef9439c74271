"""Weights of features by rarity, and the norms of the sets that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Block, Ints
from seasoned.memory.index.jaccard import JaccardIndex

__all__ = ["ROWS_A_FLOOR", "Norms", "RarityWeights", "blocks_of", "counted_sets", "sums"]

ROWS_A_FLOOR = 64
_ALWAYS_RECOUNTED = 64
_GROWTH = 1.0 + 1.0 / 16.0


def counted_sets(n: int) -> int:
    """Return the number of sets, the first by id, whose features are counted in a memory of n sets.

    All of them up to 64. From there on the count grows in steps of a sixteenth, so that the weights, and with them
    the norms of all sets, are computed once in a step and not after every commit. It depends on n alone, and the first
    sets by id are the same for all who read one store.

    Example:
        >>> counted_sets(50), counted_sets(66), counted_sets(70)
        (50, 64, 68)
    """
    counted = _ALWAYS_RECOUNTED
    if n <= counted:
        return n
    while (larger := int(counted * _GROWTH)) <= n:
        counted = larger
    return counted


class Norms:
    """The norms of the sets of a block, in single precision: bounds of similarities need no more.

    Attributes:
        values: of each row, shape (rows,); 1 for an empty set.
        floors: of each group of 64 rows, the least norm of its rows and of all rows after them: ascending.
    """

    def __init__(self, block: Block, squared: Floats) -> None:
        norms = np.sqrt(sums(squared, block.sizes)).astype(np.float32)
        self.values: Floats = np.where(block.sizes > 0, norms, np.float32(1.0))
        least = np.minimum.reduceat(self.values, np.arange(0, len(norms), ROWS_A_FLOOR))
        self.floors: Floats = np.minimum.accumulate(least[::-1])[::-1].astype(np.float64)


class RarityWeights:
    """The squared weight of each feature, `w(f)^2 = ln(1 + (N + 1) / (N_f + 1))^2`, over the layers of an index.

    Attributes:
        of_new: the squared weight of a feature that no counted set holds.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the weights: sets were removed, or ids are given to other sets."""
        self.of_new = 0.0
        self._counted = -1
        self._state: list[tuple[int, int]] = []
        self._squared: Floats = np.zeros(0)
        self._norms: WeakKeyDictionary[Block, Norms] = WeakKeyDictionary()

    def count(self, layers: Sequence[JaccardIndex]) -> None:
        """Count the features again if the memory has grown by a step."""
        state = [(len(layer), layer.n_late) for layer in layers]
        if state == self._state:
            return
        grown = len(layers) == 1 == len(self._state) and state[0][1] == self._state[0][1]
        self._state = state
        if grown and counted_sets(state[0][0]) == self._counted:
            return
        ids = [np.concatenate([np.empty(0, np.int64), *(block.ids for block in layer.blocks())]) for layer in layers]
        every = np.unique(np.concatenate(ids)) if len(layers) > 1 else np.sort(ids[0])
        self._counted = counted_sets(len(every))
        highest = int(every[self._counted - 1]) if self._counted else -1
        frequencies = np.zeros(0)
        below = np.empty(0, dtype=np.int64)  # a layer may repeat a set of one below
        for layer, of_layer in zip(layers, ids, strict=True):
            for block in layer.blocks():
                repeated = np.isin(block.ids, below) if len(below) else np.zeros(len(block), dtype=bool)
                frequencies = _added(frequencies, block, np.flatnonzero((block.ids > highest) | repeated))
            below = np.concatenate([below, of_layer])
        self._squared = np.log1p((self._counted + 1.0) / (frequencies + 1.0)) ** 2
        self.of_new = float(np.log1p(self._counted + 1.0) ** 2)
        self._norms = WeakKeyDictionary()

    def squared(self, tokens: Ints) -> Floats:
        """Return the squared weight of each token."""
        if int(tokens.max(initial=0)) < len(self._squared):
            return self._squared[tokens]
        known = tokens < len(self._squared)
        result = np.full(len(tokens), self.of_new)
        result[known] = self._squared[tokens[known]]
        return result

    def norms_of(self, block: Block) -> Norms:
        """Return the norms of a block's sets, computed once until the weights change."""
        if block not in self._norms:
            self._norms[block] = Norms(block, self.squared(block.tokens))
        return self._norms[block]


def _added(frequencies: Floats, block: Block, without: Ints) -> Floats:
    """Return the frequencies with those of a block's tokens, some rows left out."""
    tokens: Ints
    own: Ints
    if block.lists is None:
        own = np.bincount(block.tokens)
        tokens = np.arange(len(own))
    else:
        tokens, own = block.lists.vocabulary[:-1], np.diff(block.lists.starts[:-1].astype(np.int64))
    n = 1 + int(tokens[-1]) if len(tokens) else 0
    if n > len(frequencies):
        frequencies = np.concatenate([frequencies, np.zeros(n - len(frequencies))])
    frequencies[tokens] += own
    if len(without):
        left_out = np.bincount(block.taken(without).tokens)
        frequencies[: len(left_out)] -= left_out
    return frequencies


def blocks_of(layers: Sequence[JaccardIndex]) -> Iterator[Block]:
    """Yield the blocks of all layers, the lowest layer first."""
    for layer in layers:
        yield from layer.blocks()


def sums(values: Floats, sizes: Ints) -> Floats:
    """Return the sum of each set's values, given one set after the other; 0 for an empty set."""
    found = np.zeros(len(sizes))
    filled = sizes > 0
    if filled.any():
        starts = (np.cumsum(sizes, dtype=np.int64) - sizes)[filled]
        found[filled] = np.add.reduceat(values, starts)
    return found
