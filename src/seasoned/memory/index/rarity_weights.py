"""Weights of terms by rarity, and the norms of the sets whose features hold them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Block, Ints
from seasoned.memory.index.feature_terms import FeatureTerms
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Kernel
from seasoned.memory.index.term_keys import sums_by_set

__all__ = ["ROWS_A_FLOOR", "Norms", "RarityWeights", "blocks_of", "common_above", "counted_sets"]

ROWS_A_FLOOR = 64
_ALWAYS_RECOUNTED = 64
_GROWTH = 1.0 + 1.0 / 16.0
_FEWEST_COMMON = 1000.0
_COMMON_SHARE = 0.05


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


def common_above(n_features: int) -> float:
    """Return the number of features above which a term that they hold is common, and says nothing.

    A twentieth of the features in use, but 1,000 at least. A search adds up all features that share terms with the
    query, so that this bounds its cost for each term of the query. Of six terms a feature at most 120 are common: the
    prefix of most ids, or the endings of a large vocabulary. In 44,000 runs of English docstrings none is: "  tion" is
    in 1,910.

    Example:
        >>> common_above(5_000), common_above(500_000)
        (1000.0, 25000.0)
    """
    return max(_FEWEST_COMMON, _COMMON_SHARE * n_features)


class Norms:
    """The norms of the sets of a block.

    Attributes:
        at_least: lower bounds of each row's norm, in single precision, shape (rows,); 1 for an empty set. The norm
            itself is larger where features of a set share terms.
        exact: the norms of the rows that were compared already, NaN for the others.
        floors: of each group of 64 rows, the least bound of its rows and of all rows after them: ascending.
    """

    def __init__(self, block: Block, squared: Floats) -> None:
        self.exact: Floats = np.full(len(block), np.nan)
        self._tokens, self._sizes, self._squared = block.tokens, block.sizes, squared

    @functools.cached_property
    def at_least(self) -> Floats:
        """Computed when a search of all rows needs them: that takes milliseconds in a large block."""
        norms = np.sqrt(sums_by_set(self._squared[self._tokens], self._sizes)).astype(np.float32)
        bounds: Floats = np.where(norms > 0.0, norms, np.float32(1.0))
        return bounds

    @functools.cached_property
    def floors(self) -> Floats:
        """Computed with the bounds."""
        least = np.minimum.reduceat(self.at_least, np.arange(0, len(self._sizes), ROWS_A_FLOOR))
        floors: Floats = np.minimum.accumulate(least[::-1])[::-1].astype(np.float64)
        return floors


class RarityWeights:
    """The weights of terms, `w(t) = ln(1 + (N + 1) / (n_t + 1))`, over the layers of an index.

    n_t counts for each of N sets the features that hold t. A common term has the weight 0.

    Attributes:
        terms: the terms of each feature.
        of_new: the squared weight of a term that no counted set holds.
        of_terms: the squared weight of each term; 0 for a common one.
        frequencies: how many of the counted sets hold each feature; later features are missing.
        of_features: the squared norm of each feature's vector: the sum of the squared weights of its terms.
    """

    def __init__(self, terms: FeatureTerms) -> None:
        self.terms = terms
        self.clear()

    def clear(self) -> None:
        """Forget the weights: sets were removed, or ids are given to other sets."""
        self.of_new = 0.0
        self.of_terms: Floats = np.empty(0)
        self.of_features: Floats = np.empty(0)
        self.frequencies: Floats = np.empty(0)
        self._counted = -1
        self._state: list[tuple[int, int]] = []
        self._norms: WeakKeyDictionary[Block, Norms] = WeakKeyDictionary()

    def count(self, layers: Sequence[JaccardIndex]) -> None:
        """Count the terms again if the memory has grown by a step."""
        if self.terms.update():
            self.clear()
        state = [(len(layer), layer.n_late) for layer in layers]
        if state != self._state:
            grown = len(layers) == 1 == len(self._state) and state[0][1] == self._state[0][1]
            if not (grown and counted_sets(state[0][0]) == self._counted):
                self._count(layers)
            self._state = state  # last: a count that was interrupted is repeated
        n_new = self.terms.n_terms - len(self.of_terms)
        if n_new:
            self.of_terms = np.concatenate([self.of_terms, np.full(n_new, self.of_new)])
        first = len(self.of_features)
        if first < self.terms.n_features:
            starts = self.terms.starts[first:]
            of_each = self.of_terms[self.terms.terms[starts[0] :]]
            self.of_features = np.concatenate([self.of_features, sums_by_set(of_each, np.diff(starts))])

    def _count(self, layers: Sequence[JaccardIndex]) -> None:
        ids = [np.concatenate([np.empty(0, np.int64), *(block.ids for block in layer.blocks())]) for layer in layers]
        every = np.unique(np.concatenate(ids)) if len(layers) > 1 else np.sort(ids[0])
        self._counted = counted_sets(len(every))
        highest = int(every[self._counted - 1]) if self._counted else -1
        frequencies = np.zeros(self.terms.n_features)
        below = np.empty(0, dtype=np.int64)  # a layer may repeat a set of one below
        for layer, of_layer in zip(layers, ids, strict=True):
            for block in layer.blocks():
                repeated = np.isin(block.ids, below) if len(below) else np.zeros(len(block), dtype=bool)
                frequencies = _added(frequencies, block, np.flatnonzero((block.ids > highest) | repeated))
            below = np.concatenate([below, of_layer])
        self.frequencies = frequencies[: self.terms.n_features]
        self.terms.set_common(self._common_terms())
        of_each = np.repeat(self.frequencies, np.diff(self.terms.starts))
        held = np.bincount(self.terms.terms, of_each, minlength=self.terms.n_terms)
        self.of_terms = np.log1p((self._counted + 1.0) / (held + 1.0)) ** 2
        self.of_terms[self.terms.common] = 0.0
        self.of_new = float(np.log1p(self._counted + 1.0) ** 2)
        self.of_features = np.empty(0)
        self._norms = WeakKeyDictionary()

    def _common_terms(self) -> Ints:
        """Return the terms that more than `common_above(F)` of the F features of the counted sets hold."""
        in_use = np.zeros(self.terms.n_features, dtype=bool)
        in_use[: len(self.frequencies)] = self.frequencies > 0.0
        n_holders = np.bincount(self.terms.terms, np.repeat(in_use, np.diff(self.terms.starts)), self.terms.n_terms)
        n_holders[self.terms.common] += n_holders[self.terms.alone]
        common: Ints = np.flatnonzero(n_holders > common_above(int(np.count_nonzero(in_use))))
        return common

    def exact_norms(self, block: Block, rows: Ints, kernel: Kernel) -> Floats:
        """Return the norms of some rows of a block, computed once until the weights change; 1 for an empty set."""
        norms = self.norms_of(block).exact
        missing = rows[np.isnan(norms[rows])]
        if len(missing):
            norms[missing] = kernel.norms(block, missing, self.terms.starts, self.terms.terms, self.of_terms)
        return norms[rows]

    def norms_of(self, block: Block) -> Norms:
        """Return the norms of a block's sets, until the weights change."""
        if block not in self._norms:
            self._norms[block] = Norms(block, self.of_features)
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
