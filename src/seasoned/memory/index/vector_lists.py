"""The search by rarity in NumPy: the lists of features alike are read, those most alike first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Block, Ints, Lists, ranges
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Kernel
from seasoned.memory.index.rarity_weights import ROWS_A_FLOOR, Norms, RarityWeights

__all__ = ["FEW_POSTINGS", "ListSearch", "VectorQuery", "add_tokens", "add_up", "places"]

FEW_POSTINGS = 1 << 18
# Bounds are met up to this: it is more than the error of a sum in any order, of norms in single precision and of the
# rounding to digits. It may only ever let a set too many through, for the exact comparison follows.
_SLACK = 1e-6
_MANY_FEATURES = 512  # as with subwords, in a vocabulary of thousands: the bounds for so many leave out too little
_FIRST_POSTINGS = 1000  # enough sets to know about how similar the k best are
_FEW = 2
_SAMPLE = 2048
_CHEAP = 4.0
_LONG = 1024  # postings, of which it is worth to find those of the rows that may be similar enough
_SPARSE = 8  # rows for each posting, from which on sorting the postings is cheaper than a sum for each row


def places(vocabulary: Ints, features: Ints) -> Ints:
    """Return where in the vocabulary those of these features are that it holds, ascending as they are."""
    at: Ints = vocabulary.searchsorted(features)
    here: Ints = at[vocabulary[at] == features]
    return here


def add_up(lists: Lists, starts: Ints, ends: Ints, weights: Floats, norms: Floats, least: float) -> tuple[Ints, Floats]:
    """Return the rows in `lists.rows[start:end]` for each start and end, ascending or not, each once.

    And for each row the sum of the weights of these parts that hold it, in their order. Weights are above 0. Rows
    whose sum is less than `least` times their norm are left out; there is a norm for each row of the block.
    """
    lengths = (ends - starts).astype(np.intp)
    rows = lists.rows[ranges(starts, lengths)]
    of_each = np.repeat(weights, lengths)
    products: Floats
    if len(rows) * _SPARSE > len(norms):
        products = np.bincount(rows, of_each, len(norms)).astype(np.float64)  # without rows it counts
        found: Ints = np.flatnonzero((products > 0.0) & (products >= least * norms))
        return found, products[found]
    order = np.argsort(rows, kind="stable")
    found = rows[order].astype(np.intp)
    heads = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]])[: len(found)])
    products = np.add.reduceat(of_each[order], heads) if len(heads) else np.empty(0)
    found = found[heads]
    near = products >= least * norms[found]
    return found[near], products[near]


def add_tokens(block: Block, rows: Ints, values: Floats) -> Floats:
    """Return for each of these rows the sum of the values of its tokens; every token has a value."""
    sizes = block.sizes[rows]
    filled = sizes > 0
    starts = block.starts[rows[filled]]
    added = np.zeros(len(rows))
    if len(starts):
        of_tokens = values[block.tokens[ranges(starts, sizes[filled])]]
        added[filled] = np.add.reduceat(of_tokens, np.cumsum(sizes[filled], dtype=np.int64) - sizes[filled])
    return added


class VectorQuery(NamedTuple):
    """A set to search for, with the vector x of its terms.

    Attributes:
        features: the stored features g that share terms with it, ascending, as uint32.
        products: of each, `<x, v(g)>`: what it adds to the product of x and of a set that holds it.
        squares: of each, `<x, v(g)>^2 / |v(g)|^2`: how much alike it is.
        frequencies: of each, in how many sets it is, about.
        norm: |x|, its unknown terms included.
        dense: the products by the number of any feature; 0 for those that share no terms.
    """

    features: Ints
    products: Floats
    squares: Floats
    frequencies: Floats
    norm: float
    dense: Floats

    @classmethod
    def of(cls, weights: RarityWeights, terms: Ints, values: Floats, norm: float, dense: Floats) -> VectorQuery:
        """Return the query with these terms; `dense` has a place for each feature, and is filled in by the caller."""
        alike, products = weights.terms.sum_by_feature(terms, values)
        squares = products**2 / weights.of_features[alike]
        counted = alike < len(weights.frequencies)
        frequencies = np.zeros(len(alike))
        frequencies[counted] = weights.frequencies[alike[counted]]
        return cls(alike.astype(np.uint32), products, squares, frequencies, norm, dense)


class _Ranking:
    """The features of a query, those most alike first, with bounds of what the later ones can add.

    Attributes:
        features: their numbers.
        products: what each adds to the product.
        n_postings: in how many sets the first, the first two, ... of them are, about.
    """

    def __init__(self, query: VectorQuery) -> None:
        order = np.argsort(-query.squares)
        self.features, self.products = query.features[order], query.products[order]
        self.n_postings = np.cumsum(query.frequencies[order])
        self._sums_after = np.append(np.cumsum(self.products[::-1])[::-1], 0.0)
        self._most_after = np.append(np.maximum.accumulate(self.products[::-1])[::-1], 0.0)
        self._squares_up_to = np.concatenate([[0.0], np.cumsum(query.squares[order])])

    def __len__(self) -> int:
        return len(self.features)

    def rest_of_products(self, n: Ints, largest: int) -> Floats:
        """Return how much the features after the first n add at most to the product of a set of this size."""
        rest: Floats = np.minimum(self._sums_after[n], largest * self._most_after[n])
        return rest

    def rest_of_squares(self, n: Ints, largest: int) -> Floats:
        """Return the sum of as many squares after the first n as such a set may hold."""
        rest: Floats = self._squares_up_to[np.minimum(n + largest, len(self))] - self._squares_up_to[n]
        return rest


class _Found(NamedTuple):
    """Rows of a block that may share terms with the query.

    Attributes:
        rows: their numbers.
        norms: lower bounds of the norm of each row, times that of the query.
        products: the products of their vectors with the query's, as far as they were read.
        unread: at most so much more.
    """

    block: Block
    rows: Ints
    norms: Floats
    products: Floats
    unread: Floats

    @property
    def at_most(self) -> Floats:
        """Upper bounds of the similarities."""
        bounds: Floats = (self.products + self.unread) / self.norms
        return bounds

    def at(self, at: Ints) -> _Found:
        """Return some of the rows."""
        columns = (self.rows, self.norms, self.products, self.unread)
        return _Found(self.block, *(column[at] for column in columns))

    def compared(self, dense: Floats) -> _Found:
        """Return the rows with their whole products; `dense` has what each feature adds."""
        products = add_tokens(self.block, self.rows, dense)
        return self._replace(products=products, unread=np.zeros(len(products)))


class ListSearch:
    """Searches the lists of all blocks for one query.

    Args:
        weights: of the terms.
        query: its `dense` is filled in.
        kernel: computes norms.
        few_postings: see `RarityIndex`.
    """

    def __init__(self, weights: RarityWeights, query: VectorQuery, kernel: Kernel, few_postings: int) -> None:
        self._weights, self._query, self._kernel, self._few_postings = weights, query, kernel, few_postings

    def rows(self, layers: Sequence[JaccardIndex], k: int, threshold: float) -> list[tuple[Block, Ints]]:
        """Return the rows that may be among the k best."""
        query = self._query
        if not len(query.features):
            return []
        found: list[_Found] = []
        postings: list[_Postings] = []
        for layer in layers:
            for block in layer.blocks():
                norms = self._weights.norms_of(block)
                if block.lists is None:
                    none_read = np.zeros(len(block))
                    every = _Found(block, np.arange(len(block)), query.norm * norms.at_least, none_read, none_read)
                    every = every.compared(query.dense)
                    found.append(every.at(np.flatnonzero(every.products)))
                else:
                    postings.append(_Postings(block, block.lists, norms, query))
        least = threshold - _SLACK
        if len(query.features) > _MANY_FEATURES or query.frequencies.sum() <= self._few_postings:
            for n_read, part in enumerate(sorted(postings, key=len)):  # a small block rules out most of a large one
                if n_read.bit_count() == 1:  # after 1, 2, 4, ... blocks: each rules out less than the one before
                    least = self._least(found, query, k, least)
                    found = _reaching(found, least)
                found.append(part.read(least))
        elif postings:
            ranking = _Ranking(query)
            n_first = 1 + int(np.searchsorted(ranking.n_postings, _FIRST_POSTINGS))
            partly = [part.read_first(ranking, n_first) for part in postings]
            least = self._least([*found, *partly], query, k, least)
            found += [
                part.read_rest(ranking, of_first, n_first, least)
                for part, of_first in zip(postings, partly, strict=True)
            ]
        least = self._least(found, query, k, least)
        left = _reaching(found, least)
        if sum(len(part.rows) for part in left) > _FEW * k:
            left = [part.compared(query.dense) for part in left]
            left = _reaching(left, self._least(left, query, k, least))
        return [(part.block, part.rows) for part in left]

    def _least(self, parts: Sequence[_Found], query: VectorQuery, k: int, least: float) -> float:
        """Return a similarity that k of these sets reach, less the slack; at least `least`.

        It is the least one of the k sets that share most, as far as was read.
        """
        known = [found.products / found.norms for found in parts]
        floor = least
        for shares in known:  # a partition of few is quick: of those above the k-th of a sample
            if len(shares) > _SAMPLE > k:
                floor = max(floor, float(np.partition(shares[:_SAMPLE], _SAMPLE - k)[_SAMPLE - k]))
        promising = [np.flatnonzero(shares >= floor) for shares in known]
        n = sum(map(len, promising))
        if n < k:
            return least
        shares = np.concatenate([of_part[at] for of_part, at in zip(known, promising, strict=True)])
        chosen = np.zeros(n, dtype=bool)
        chosen[np.argpartition(shares, n - k)[n - k :]] = True
        reached = 1.0
        for found, at in zip(parts, promising, strict=True):
            best, chosen = found.at(at[chosen[: len(at)]]), chosen[len(at) :]
            if len(best.rows):
                products = best.compared(query.dense).products
                reached = min(reached, float((products / (self._norms(best) * query.norm)).min()))
        return max(least, reached - _SLACK)

    def _norms(self, found: _Found) -> Floats:
        return self._weights.exact_norms(found.block, found.rows, self._kernel)


class _Postings:
    """The lists of a block that belong to the features of a query."""

    def __init__(self, block: Block, lists: Lists, norms: Norms, query: VectorQuery) -> None:
        self._block, self._lists, self._norms, self._query = block, lists, norms, query

    def __len__(self) -> int:
        return len(self._block)

    def read(self, least: float) -> _Found:
        """Return the rows that may reach a similarity, after all lists were read."""
        vocabulary, starts, _ = self._lists
        at = places(vocabulary, self._query.features)
        rows, products = self._add_up(starts[at], starts[at + 1], self._query.dense[vocabulary[at]], least)
        norms = self._query.norm * self._norms.at_least[rows]
        return _Found(self._block, rows, norms, products, np.zeros(len(rows)))

    def read_first(self, ranking: _Ranking, n: int) -> _Found:
        """Return the rows in the lists of the first n features."""
        starts, ends, products = self._lists_of(ranking.features[:n], ranking.products[:n])
        rows, products = self._add_up(starts, ends, products)
        return self._found(rows, products, ranking, np.full(len(rows), min(n, len(ranking))))

    def read_rest(self, ranking: _Ranking, partly: _Found, n_first: int, least: float) -> _Found:
        """Return the rows that may reach a similarity, and others, after the lists of the first features were read."""
        limits = self._limits(ranking, least)
        n_needed = int(np.count_nonzero(limits))
        if n_needed <= n_first:
            return partly
        if ranking.n_postings[-1] <= _CHEAP * ranking.n_postings[n_needed - 1]:
            return self.read(least)  # which is cheaper than to compare what the needed ones leave
        needed = ranking.features[:n_needed], ranking.products[:n_needed], limits[:n_needed]
        starts, ends, products, stops = self._lists_of(*needed)
        # Short lists are read whole: that lets more sets through, and never too few.
        for at in np.flatnonzero((ends - starts > _LONG) & (stops < len(self._block))).tolist():
            part = self._lists.rows[int(starts[at]) : int(ends[at])]
            ends[at] = starts[at] + np.searchsorted(part, np.uint16(stops[at]))
        rows, sums_of_rows = self._add_up(starts, ends, products)
        n_read = len(limits) - np.searchsorted(limits[::-1], rows, side="right")
        return self._found(rows, sums_of_rows, ranking, n_read)

    def _lists_of(self, features: Ints, *of_each: Ints) -> tuple[Ints, ...]:
        """Return where the lists of these features start and end, of those in the block, and columns of these."""
        at = self._lists.vocabulary.searchsorted(features)
        here = np.flatnonzero(self._lists.vocabulary[at] == features)
        at = at[here]
        return self._lists.starts[at], self._lists.starts[at + 1], *(column[here] for column in of_each)

    def _add_up(self, starts: Ints, ends: Ints, products: Floats, least: float = 0.0) -> tuple[Ints, Floats]:
        least *= self._query.norm
        return add_up(self._lists, starts, ends, products, self._norms.at_least, least)

    def _found(self, rows: Ints, products: Floats, ranking: _Ranking, n_read: Ints) -> _Found:
        at_least = self._norms.at_least[rows].astype(np.float64)
        # By Cauchy and Schwarz, and by the largest summands.
        unread = np.sqrt(ranking.rest_of_squares(n_read, self._block.largest)) * at_least
        unread = np.minimum(unread, ranking.rest_of_products(n_read, self._block.largest))
        return _Found(self._block, rows, self._query.norm * at_least, products, unread)

    def _limits(self, ranking: _Ranking, least: float) -> Ints:
        """Return for each list the row from which on no set is similar enough that has only this and later features.

        They descend. The length of the block or more: there is no such row.
        """
        reached, ranks = least * self._query.norm, np.arange(len(ranking))
        if reached <= 0.0:
            return np.full(len(ranks), len(self._block))
        rest = ranking.rest_of_products(ranks, self._block.largest)
        limits: Ints = ROWS_A_FLOOR * np.searchsorted(self._norms.floors, rest / reached, side="right")
        limits[np.sqrt(ranking.rest_of_squares(ranks, self._block.largest)) < reached] = 0
        return limits


def _reaching(parts: Sequence[_Found], least: float) -> list[_Found]:
    """Return the rows that may reach a similarity."""
    return [part.at(np.flatnonzero(part.at_most >= least)) for part in parts]
