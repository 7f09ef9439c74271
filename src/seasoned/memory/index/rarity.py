"""Exact top-k search by the cosine of feature sets, each feature weighted by its rarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Block, Ints, Lists, Rows
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Kernel, Match
from seasoned.memory.index.rarity_weights import ROWS_A_FLOOR, Norms, RarityWeights, blocks_of, sums
from seasoned.memory.values.ranking import best_first
from seasoned.types.queries import check_nearest

__all__ = ["RarityIndex"]

_DIGITS = 12
# Bounds are met up to this: it is more than the error of a sum in any order, of norms in single precision and of the
# rounding to digits. It may only ever let a set too many through, for the exact comparison follows.
_SLACK = 1e-6
_FIRST_POSTINGS = 1000  # enough sets to know about how similar the k best are
_FEW = 2


class _Query(NamedTuple):
    """A set to search for.

    Attributes:
        tokens: its known tokens, rarest first, as uint32.
        squared: their squared weights.
        rest: of each number of tokens, the sum of the squared weights of those after them.
        norm: with its unknown features.
    """

    tokens: Ints
    squared: Floats
    rest: Floats
    norm: float


class _Found(NamedTuple):
    """Rows of a block that may share features with the query.

    Attributes:
        kernel: compares them.
        rows: their numbers.
        norms: of each row, times that of the query.
        products: the sums of the squared weights of the shared features, as far as they were read.
        unread: at most so much more.
    """

    block: Block
    kernel: Kernel
    rows: Ints
    norms: Floats
    products: Floats
    unread: Floats

    @property
    def at_least(self) -> Floats:
        """Lower bounds of the similarities."""
        bounds: Floats = self.products / self.norms
        return bounds

    @property
    def at_most(self) -> Floats:
        """Upper bounds of the similarities."""
        bounds: Floats = (self.products + self.unread) / self.norms
        return bounds

    def at(self, at: Ints) -> _Found:
        """Return some of the rows."""
        columns = (self.rows, self.norms, self.products, self.unread)
        return _Found(self.block, self.kernel, *(column[at] for column in columns))

    def compared(self, dense: Floats) -> _Found:
        """Return the rows with all features that they share; `dense` has the squared weights of the query by token."""
        products = self.kernel.add_tokens(self.block, self.rows, dense)
        return self._replace(products=products, unread=np.zeros(len(products)))


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

    The rarest features are searched first. Let R be the sum of w(f)^2 over the others. A set b that shares only those
    has a similarity of at most `min(R / |b|, sqrt(R)) / |q|` (by Cauchy and Schwarz): where this is below the k-th
    similarity found so far, their lists are not read (MaxScore: Turtle and Flood 1995, Inf. Process. Manage. 31).

    Example:
        >>> sets = JaccardIndex()
        >>> sets.add([(0, [1, 2], 10), (1, [1, 3], 11), (2, [1, 4], 12)])
        >>> index = RarityIndex()
        >>> [(id_, round(near, 3)) for near, _, id_ in index.search([sets], [1, 2], n_features=2, k=2, threshold=0.0)]
        [(0, 1.0), (2, 0.285)]
    """

    def __init__(self) -> None:
        self._weights = RarityWeights()
        self._dense: Floats = np.zeros(1024)  # the squared weight of each token of the query; all 0 between searches
        self._tokens_of: dict[int, Ints] = {}  # of the sets that were found last

    def clear(self) -> None:
        """Forget the weights: sets were removed, or ids are given to other sets."""
        self._weights.clear()
        self._tokens_of = {}

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
        self._weights.count(layers)
        if n_features:
            query = self._query(tokens, n_features, max(layer.n_tokens for layer in layers))
            self._dense[query.tokens] = query.squared
            try:
                rows = Rows.joined(self._candidates(layers, query, k, threshold))
                similarities = self._exact(rows, query.norm)
            finally:
                self._dense[query.tokens] = 0.0
        else:
            rows = Rows.joined([block.taken(np.flatnonzero(block.sizes == 0)) for block in blocks_of(layers)])
            similarities = np.ones(len(rows.ids))
        order = best_first(similarities, rows.visits, rows.ids)
        best: dict[int, tuple[int, Match]] = {}
        for at in order[similarities[order] >= threshold].tolist():
            id_ = int(rows.ids[at])  # a layer may hold a set of the layer below, with a later visit
            best.setdefault(id_, (at, (float(similarities[at]), int(rows.visits[at]), id_)))
            if len(best) == k:
                break
        chosen = rows.taken(np.array([at for at, _ in best.values()], dtype=np.intp))
        self._tokens_of = _by_id(chosen)
        return [match for _, match in best.values()]

    def similarities(self, layers: Sequence[JaccardIndex], ids: Sequence[int]) -> Floats:
        """Return the similarities between S sets, shape (S, S), positive semi-definite up to rounding.

        Raises:
            KeyError: no layer holds one of the ids.
        """
        self._weights.count(layers)
        tokens_of = self._tokens_of
        if missing := [id_ for id_ in ids if id_ not in tokens_of]:
            wanted = np.array(missing, dtype=np.int64)
            parts = [block.taken(block.find(wanted)[1]) for block in blocks_of(layers)]
            tokens_of = tokens_of | _by_id(Rows.joined(parts))
        sets = [tokens_of[id_] for id_ in ids]
        sizes = np.array([len(tokens) for tokens in sets], dtype=np.int64)
        tokens = np.concatenate([np.empty(0, np.uint32), *sets])
        norms = np.sqrt(sums(self._weights.squared(tokens), sizes))
        vocabulary, column, n_holders = np.unique(tokens, return_inverse=True, return_counts=True)
        shared = n_holders > 1  # the others add to the norms alone
        in_shared = shared[column]
        vectors = np.zeros((len(sets), int(shared.sum())))
        columns = (np.cumsum(shared) - 1)[column[in_shared]]
        vectors[np.repeat(np.arange(len(sets)), sizes)[in_shared], columns] = 1.0
        vectors *= np.sqrt(self._weights.squared(vocabulary[shared]))
        vectors /= np.where(norms > 0.0, norms, 1.0)[:, None]
        between: Floats = np.clip(vectors @ vectors.T, 0.0, 1.0)
        empty = np.flatnonzero(sizes == 0)
        between[np.ix_(empty, empty)] = 1.0
        np.fill_diagonal(between, 1.0)
        return between

    # ------------------------------------------------------------------------------------------ candidates

    def _query(self, tokens: Sequence[int], n_features: int, n_tokens: int) -> _Query:
        numbers = np.sort(np.asarray(tokens, dtype=np.int64))
        squared = self._weights.squared(numbers)
        order = np.argsort(-squared, kind="stable")
        squared = squared[order]
        rest = np.append(np.cumsum(squared[::-1])[::-1], 0.0)
        norm = np.sqrt(float(rest[0]) + (n_features - len(numbers)) * self._weights.of_new)
        if len(self._dense) < n_tokens:
            self._dense = np.zeros(n_tokens)
        return _Query(numbers[order].astype(np.uint32), squared, rest, float(norm))

    def _candidates(self, layers: Sequence[JaccardIndex], query: _Query, k: int, threshold: float) -> list[Rows]:
        """Return the sets that may be among the k best."""
        if not len(query.tokens):
            return []
        k *= sum(len(layer) > 0 for layer in layers)  # each layer may repeat a set
        if not k:
            return []
        compared: list[_Found] = []
        postings: list[_Postings] = []
        for layer in layers:
            for block in layer.blocks():
                norms, kernel = self._weights.norms_of(block), layer.searching_kernel
                if block.lists is None:
                    none_read = np.zeros(len(block))
                    every = _Found(
                        block, kernel, np.arange(len(block)), query.norm * norms.values, none_read, none_read
                    )
                    found = every.compared(self._dense)
                    compared.append(found.at(np.flatnonzero(found.products)))
                else:
                    postings.append(_Postings(block, block.lists, norms, kernel, query))
        n_postings = np.cumsum(sum((part.lengths for part in postings), np.zeros(len(query.tokens), dtype=np.int64)))
        n_read = 1 + int(np.searchsorted(n_postings, _FIRST_POSTINGS))
        partly = [part.read(n_read) for part in postings]
        least = self._least([*compared, *partly], k, threshold - _SLACK)
        compared += [part.read_all(found, n_read, least) for part, found in zip(postings, partly, strict=True)]
        least = self._least(compared, k, least)
        left = [found.at(np.flatnonzero(found.at_most >= least)) for found in compared]
        if sum(len(found.rows) for found in left) > _FEW * k:
            left = [found.compared(self._dense) for found in left]
            least = self._least(left, k, least)
            left = [found.at(np.flatnonzero(found.at_most >= least)) for found in left]
        return [found.block.taken(found.rows) for found in left]

    def _least(self, parts: Sequence[_Found], k: int, least: float) -> float:
        """Return a similarity that k of these sets reach, less the slack; at least `least`.

        It is the least one of the k sets that share most, as far as was read.
        """
        known = [found.at_least for found in parts]
        promising = [np.flatnonzero(bounds >= least) for bounds in known]
        n = sum(map(len, promising))
        if n < k:
            return least
        bounds = np.concatenate([of_part[at] for of_part, at in zip(known, promising, strict=True)])
        chosen = np.zeros(n, dtype=bool)
        chosen[np.argpartition(bounds, n - k)[n - k :]] = True
        reached = 1.0
        for found, at in zip(parts, promising, strict=True):
            best, chosen = at[chosen[: len(at)]], chosen[len(at) :]
            if len(best):
                reached = min(reached, float(found.at(best).compared(self._dense).at_least.min()))
        return max(least, reached - _SLACK)

    # ------------------------------------------------------------------------------------------ comparison

    def _exact(self, rows: Rows, norm: float) -> Floats:
        """Return the similarity of each set, summed in the order of its tokens."""
        norms = np.sqrt(sums(self._weights.squared(rows.tokens), rows.sizes))
        products = sums(self._dense[rows.tokens], rows.sizes)
        # Rounded, so that the order of adding up decides no tie, and that a set equals itself.
        similarities: Floats = np.minimum(products / (norms * norm), 1.0).round(_DIGITS)
        return similarities


class _Postings:
    """The lists of a block that belong to the tokens of a query, rarest first."""

    def __init__(self, block: Block, lists: Lists, norms: Norms, kernel: Kernel, query: _Query) -> None:
        self._block, self._lists, self._norms, self._kernel, self._query = block, lists, norms, kernel, query
        at = lists.vocabulary.searchsorted(query.tokens)
        here = lists.vocabulary[at] == query.tokens
        self._starts = lists.starts[at]
        self._ends = np.where(here, lists.starts[at + 1], self._starts)
        self.lengths = (self._ends - self._starts).astype(np.int64)

    def read(self, n: int) -> _Found:
        """Return the rows in the lists of the first n tokens."""
        ends, query = self._ends[:n], self._query
        found = self._kernel.add_up(self._lists, self._starts[:n], ends, query.squared, len(self._block))
        return self._found(*found, np.full(len(found[0]), query.rest[min(n, len(query.tokens))]))

    def _found(self, rows: Ints, products: Floats, unread: Floats) -> _Found:
        norms = self._query.norm * self._norms.values[rows]
        return _Found(self._block, self._kernel, rows, norms, products, unread)

    def read_all(self, partly: _Found, n_read: int, least: float) -> _Found:
        """Return the rows that may reach a similarity, and others, after the lists of the first tokens were read."""
        limits = self._limits(least)
        if not (self.lengths[n_read:] * (limits[n_read:] > 0)).any():
            return partly
        ends = self._ends.copy()
        for rank in np.flatnonzero(limits < len(self._block)).tolist():
            start = int(self._starts[rank])
            part = self._lists.rows[start : int(ends[rank])]
            ends[rank] = start + (int(np.searchsorted(part, np.uint16(limits[rank]))) if limits[rank] else 0)
        rows, products = self._kernel.add_up(self._lists, self._starts, ends, self._query.squared, len(self._block))
        n_lists = len(limits) - np.searchsorted(limits[::-1], rows, side="right")
        return self._found(rows, products, self._query.rest[n_lists])

    def _limits(self, least: float) -> Ints:
        """Return for each list the row from which on no set is similar enough that shares only this and later lists.

        They descend. The length of the block or more: there is no such row.
        """
        rest, reached = self._query.rest[:-1], least * self._query.norm
        if reached <= 0.0:
            return np.full(len(rest), len(self._block))
        limits: Ints = ROWS_A_FLOOR * np.searchsorted(self._norms.floors, rest / reached, side="right")
        limits[np.sqrt(rest) < reached] = 0
        return limits


def _by_id(rows: Rows) -> dict[int, Ints]:
    """Return the tokens of each set."""
    ends = np.cumsum(rows.sizes, dtype=np.int64).tolist()
    begins = [0, *ends[:-1]]
    return {id_: rows.tokens[a:b] for id_, a, b in zip(rows.ids.tolist(), begins, ends, strict=False)}
