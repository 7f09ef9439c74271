"""Exact top-k search by the cosine of feature sets, each feature weighted by its rarity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Block, Ints, Rows
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Match
from seasoned.memory.values.ranking import best_first
from seasoned.types.queries import check_nearest

__all__ = ["RarityIndex", "counted_sets"]

_ALWAYS_RECOUNTED = 4096
_GROWTH = 1.0 + 1.0 / 16.0
_DIGITS = 12
_ROUNDING = 1e-9  # more than the error of a sum in any order, and more than half a unit of the last digit


def counted_sets(n: int) -> int:
    """Return the number of sets, the first by id, whose features are counted in a memory of n sets.

    All of them up to 4,096. From there on the count grows in steps of a sixteenth, so that the weights, and with them
    the norms of all sets, are computed once in a step and not after every commit. It depends on n alone, and the first
    sets by id are the same for all who read one store.

    Example:
        >>> counted_sets(100), counted_sets(4200), counted_sets(4400)
        (100, 4096, 4352)
    """
    counted = _ALWAYS_RECOUNTED
    if n <= counted:
        return n
    while (larger := int(counted * _GROWTH)) <= n:
        counted = larger
    return counted


class RarityIndex:
    """The cosine of feature sets, over the blocks of `JaccardIndex`es.

    With `w(f) = ln(1 + (N + 1) / (N_f + 1))`, N the number of counted sets (`counted_sets`) and N_f of those that hold
    f, two sets a, b have the similarity

        c(a, b) = sum_{f in a & b} w(f)^2 / sqrt(sum_{f in a} w(f)^2 * sum_{f in b} w(f)^2)

    in [0, 1], and `c({}, {}) = 1`. It is the cosine of vectors with one dimension a feature, so that a matrix of such
    similarities is positive semi-definite. Inverse document frequency: Spaerck Jones 1972 (J. Documentation 28); the
    ones keep the weight of a feature that every set holds above 0, and that of a new one finite.

    Similarities are rounded to 12 digits. Sets without a feature of the query are not found, except by the empty query.
    Results equal a brute-force scan: most similar first, ties by the later visit, then by the larger id.

    Example:
        >>> sets = JaccardIndex()
        >>> sets.add([(0, [1, 2], 10), (1, [1, 3], 11), (2, [1, 4], 12)])
        >>> index = RarityIndex()
        >>> [(id_, round(near, 3)) for near, _, id_ in index.search([sets], [1, 2], n_features=2, k=2, threshold=0.0)]
        [(0, 1.0), (2, 0.285)]
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the weights: sets were removed, or ids are given to other sets."""
        self._counted = -1
        self._state: list[tuple[int, int]] = []
        self._squared_weights: Floats = np.zeros(0)
        self._of_new = 0.0
        self._norms: WeakKeyDictionary[Block, Floats] = WeakKeyDictionary()

    def search(
        self, layers: Sequence[JaccardIndex], tokens: Sequence[int], *, n_features: int, k: int, threshold: float
    ) -> list[Match]:
        """Return at most `k` matches, best first.

        Args:
            layers: the stored sets, then those of pending episodes, with ids above; a layer may repeat a set of one
                below, with a later visit.
            tokens: the query's known token numbers, distinct.
            n_features: the query's size, unknown features included.
            k: how many, at least 1.
            threshold: the least similarity, in [0, 1].

        Raises:
            InputError: k or the threshold is out of range.
        """
        k, threshold = check_nearest(k, threshold)
        self._count(layers)
        query = np.sort(np.asarray(tokens, dtype=np.int64))
        in_query = self._squared(query)
        norm = np.sqrt(float(in_query.sum()) + (n_features - len(query)) * self._of_new)
        dense = np.zeros(1 + max(len(self._squared_weights), int(query.max(initial=-1))))
        dense[query] = in_query
        parts = [self._candidates(block, query, dense, n_features, norm, k) for block in _blocks(layers)]
        rows = Rows.joined(parts)
        if not len(rows.ids):
            return []
        similarities = self._exact(rows, dense, n_features, norm)
        order = best_first(similarities, rows.visits, rows.ids)
        order = order[similarities[order] >= threshold] if n_features else order
        best: dict[int, Match] = {}
        for at in order.tolist():  # a layer may hold a set of the layer below, with a later visit
            best.setdefault(int(rows.ids[at]), (float(similarities[at]), int(rows.visits[at]), int(rows.ids[at])))
            if len(best) == k:
                break
        return list(best.values())

    def similarities(self, layers: Sequence[JaccardIndex], ids: Sequence[int]) -> Floats:
        """Return the similarities between S sets, shape (S, S), positive semi-definite up to rounding.

        Raises:
            KeyError: no layer holds one of the ids.
        """
        self._count(layers)
        wanted = np.asarray(ids, dtype=np.int64)
        tokens_of: dict[int, Ints] = {}
        for block in _blocks(layers):
            here, at = block.find(wanted)
            if not here.any():
                continue
            taken = block.rows.taken(at)
            ends = np.cumsum(taken.sizes, dtype=np.int64)
            tokens_of |= dict(zip(wanted[here].tolist(), np.split(taken.tokens, ends[:-1]), strict=True))
        sets = [tokens_of[id_] for id_ in wanted.tolist()]
        sizes = np.array([len(tokens) for tokens in sets], dtype=np.int64)
        vocabulary, column = np.unique(np.concatenate([np.empty(0, np.uint32), *sets]), return_inverse=True)
        vectors = np.zeros((len(sets), len(vocabulary)))
        vectors[np.repeat(np.arange(len(sets)), sizes), column] = 1.0
        vectors *= np.sqrt(self._squared(vocabulary.astype(np.int64)))
        norms = np.sqrt((vectors * vectors).sum(axis=1))
        vectors /= np.where(norms > 0.0, norms, 1.0)[:, None]
        between: Floats = np.clip(vectors @ vectors.T, 0.0, 1.0)
        empty = sizes == 0
        between[np.ix_(empty, empty)] = 1.0
        np.fill_diagonal(between, 1.0)
        return between

    # ------------------------------------------------------------------------------------------ weights

    def _count(self, layers: Sequence[JaccardIndex]) -> None:
        """Count the features again if the memory has grown by a step."""
        state = [(len(layer), layer.n_late) for layer in layers]
        if state == self._state:
            return
        grown = len(layers) == 1 == len(self._state) and state[0][1] == self._state[0][1]
        self._state = state
        if grown and counted_sets(state[0][0]) == self._counted:
            return
        parts: list[Rows] = []
        ids = np.empty(0, dtype=np.int64)
        for layer in layers:
            rows = Rows.joined([block.rows for block in layer.blocks()])
            # A layer may repeat a set of one below.
            parts.append(rows.taken(np.flatnonzero(~np.isin(rows.ids, ids))) if len(ids) else rows)
            ids = np.concatenate([ids, parts[-1].ids])
        rows = Rows.joined(parts)
        n = counted_sets(len(ids))
        if n < len(ids):
            rows = rows.taken(np.flatnonzero(rows.ids <= np.partition(ids, n - 1)[n - 1]))
        frequencies = np.bincount(rows.tokens).astype(np.float64)
        self._squared_weights = np.log1p((n + 1.0) / (frequencies + 1.0)) ** 2
        self._of_new = float(np.log1p(n + 1.0) ** 2)
        self._counted, self._norms = n, WeakKeyDictionary()

    def _squared(self, tokens: Ints) -> Floats:
        """Return the squared weight of each token."""
        known = tokens < len(self._squared_weights)
        result = np.full(len(tokens), self._of_new)
        result[known] = self._squared_weights[tokens[known]]
        return result

    def _norms_of(self, block: Block) -> Floats:
        """Return the norms of a block's sets; an empty set has 1."""
        if block not in self._norms:
            norms = np.sqrt(_sums(self._squared(block.tokens), block.sizes))
            self._norms[block] = np.where(block.sizes > 0, norms, 1.0)
        return self._norms[block]

    # ------------------------------------------------------------------------------------------ comparison

    def _candidates(self, block: Block, query: Ints, dense: Floats, n: int, norm: float, k: int) -> Rows:
        """Return the sets of a block that may be among the k best, by similarities that are not summed in order."""
        if not n:
            return block.rows.taken(np.flatnonzero(block.sizes == 0))
        if block.lists is None:
            products = _sums(_at(dense, block.tokens), block.sizes)
        else:
            products = np.zeros(len(block))
            lists = block.lists
            at = np.searchsorted(lists.vocabulary, query.astype(np.uint32))
            for token, place in zip(query.tolist(), at.tolist(), strict=True):
                if lists.vocabulary[place] == token:
                    products[lists.rows[lists.starts[place] : lists.starts[place + 1]]] += dense[token]
        found = np.flatnonzero(products > 0.0)
        rough = products[found] / (self._norms_of(block)[found] * norm)
        if len(found) > k:
            least = np.partition(rough, len(rough) - k)[len(rough) - k] - _ROUNDING
            found = found[rough >= least]
        return block.rows.taken(found)

    def _exact(self, rows: Rows, dense: Floats, n: int, norm: float) -> Floats:
        """Return the similarity of each set, summed in the order of its tokens."""
        if not n:
            return np.ones(len(rows.ids))
        products = _sums(_at(dense, rows.tokens), rows.sizes)
        norms = np.sqrt(_sums(self._squared(rows.tokens), rows.sizes))
        # Rounded, so that the order of adding up decides no tie, and that a set equals itself.
        similarities: Floats = np.minimum(products / (norms * norm), 1.0).round(_DIGITS)
        return similarities


def _blocks(layers: Sequence[JaccardIndex]) -> Iterator[Block]:
    for layer in layers:
        yield from layer.blocks()


def _at(dense: Floats, tokens: Ints) -> Floats:
    """Return the entry of each token; 0 for tokens past the end."""
    values: Floats = np.where(tokens < len(dense), dense[np.minimum(tokens, len(dense) - 1)], 0.0)
    return values


def _sums(values: Floats, sizes: Ints) -> Floats:
    """Return the sum of each set's values, given one set after the other; 0 for an empty set."""
    sums = np.zeros(len(sizes))
    filled = sizes > 0
    if filled.any():
        starts = (np.cumsum(sizes, dtype=np.int64) - sizes)[filled]
        sums[filled] = np.add.reduceat(values, starts)
    return sums
