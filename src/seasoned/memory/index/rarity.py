"""Exact top-k search by the cosine of feature sets, whose terms are weighted by rarity."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Block, Ints, Rows
from seasoned.memory.index.feature_terms import FeatureTerms
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Best, Match, TermVectors, VectorKernel
from seasoned.memory.index.rarity_weights import RarityWeights, blocks_of
from seasoned.memory.index.term_keys import TermKeys, subword_keys, sums_by_set
from seasoned.memory.index.vector_lists import FEW_POSTINGS, ListSearch, VectorQuery
from seasoned.memory.values.ranking import best_first
from seasoned.types.queries import check_nearest

__all__ = ["RarityIndex"]

_FEW_SETS = 64  # compared by the terms of their own features, and not of all features
_DIGITS = 12


class RarityIndex:
    """The cosine of feature sets by the terms of their features, each weighted by its rarity.

    A feature f has the terms T(f): itself, its words and their 4-grams (`seasoned.states.subwords.subword_terms`). Its
    vector v(f) has one dimension a term, with `w(t) = ln(1 + (N + 1) / (n_t + 1))` for each of its own: N is the number
    of counted sets (`counted_sets`), n_t that of the features with t in them, added up over those sets. A common term,
    which more than a twentieth of the features in use hold, and more than 1,000 (`common_above`), has the weight 0; but
    where it is the feature itself, it is a term that no other feature holds. A set has the sum of its features'
    vectors, and two sets a, b have the similarity

        c(a, b) = <x_a, x_b> / (|x_a| |x_b|),   x_a = sum_{f in a} v(f)

    in [0, 1], and `c({}, {}) = 1`. It is a cosine, so that a matrix of such similarities is positive semi-definite.
    With each feature as its only term it is the cosine of the sets, weighted by inverse document frequency.

    Sources: inverse document frequency, Spaerck Jones 1972 (J. Documentation 28); a word as the sum of its n-grams,
    Bojanowski, Grave, Joulin and Mikolov 2017 (TACL 5), where their vectors are learned. The ones keep the weight of a
    term that every set holds above 0, and that of a new one finite.

    Similarities are rounded to 12 digits. Sets without a term of the query are not found, except by the empty query.
    Results equal a brute-force scan: most similar first, ties by the later visit, then by the larger id.

    The lists are those of the features, not of the terms: the query x becomes the features g that share terms with it,
    and one in a set b adds `<x, v(g)>` to the product. Those most alike are read first. A set b of at most m features
    that holds only others, R, has a similarity of at most `sqrt(sum_{m largest in R} <x, v(g)>^2 / |v(g)|^2) / |x|`
    (by Cauchy and Schwarz, since `|x_b|^2 >= sum_{g in b} |v(g)|^2`), and of at most `m max_R <x, v(g)> / (|x| |x_b|)`:
    where this is below the k-th similarity found so far, their lists are not read (MaxScore: Turtle and Flood 1995,
    Inf. Process. Manage. 31). In NumPy that pays where few features share terms with the query; those of many are all
    read. The compiled search reads the lists of the largest summands `<x, v(g)>` first, and the others never where
    `sum_{m largest in R} <x, v(g)> / (|x| |x_b|)` leaves few sets to compare.

    Args:
        keys_of: makes the keys of the terms of features.

    Attributes:
        terms: the terms of the features; add each feature before sets that hold it.
        few_postings: at up to so many sets with features like the query's, all of their lists are read: that is cheaper
            than to find out which are needed.

    Example:
        >>> sets, index = JaccardIndex(), RarityIndex()
        >>> index.terms.add({"a": 0, "refund": 1, "refunds": 2, "lamp": 3})
        >>> sets.add([(0, [0, 1], 10), (1, [0, 2], 11), (2, [0, 3], 12)])
        >>> [(id_, round(near, 3)) for near, _, id_ in index.search([sets], {"a", "refund"}, k=3, threshold=0.0)]
        [(0, 1.0), (1, 0.529), (2, 0.087)]
    """

    def __init__(self, keys_of: TermKeys = subword_keys) -> None:
        self.terms = FeatureTerms(keys_of)
        self.few_postings = FEW_POSTINGS
        self._weights = RarityWeights(self.terms)
        self._dense: Floats = np.zeros(1024)  # what each feature adds to the product; all 0 between searches
        self._features_of: dict[int, Ints] = {}  # of the sets that were found last

    def clear(self) -> None:
        """Forget the weights: sets were removed, or ids are given to other sets."""
        self._weights.clear()
        self._features_of = {}

    def search(
        self, layers: Sequence[JaccardIndex], features: Collection[str], *, k: int, threshold: float
    ) -> list[Match]:
        """Return at most `k` matches, best first.

        Args:
            layers: the stored sets, then those of pending episodes, with ids above; a layer may repeat a set of one
                below, with a later visit.
            features: the query.
            k: how many, at least 1.
            threshold: the least similarity, in [0, 1].

        Raises:
            InputError: k or the threshold is out of range.
        """
        k, threshold = check_nearest(k, threshold)
        k = min(k, max(1, sum(map(len, layers))))  # a search has room for k
        self._weights.count(layers)
        if features:
            rows, similarities = self._found(layers, features, k, threshold)
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
        self._features_of = _by_id(chosen)
        return [match for _, match in best.values()]

    def similarities_to(self, layers: Sequence[JaccardIndex], features: Collection[str], ids: Sequence[int]) -> Floats:
        """Return the similarities of S sets to a query, shape (S,), as `search` finds them.

        Raises:
            KeyError: no layer holds one of the ids.
        """
        self._weights.count(layers)
        wanted = np.array(ids, dtype=np.int64)
        similarities = np.full(len(wanted), np.nan)
        terms, values, norm = self._weighted(features)
        few = len(wanted) <= _FEW_SETS
        if few:
            of_each = np.zeros(len(self._weights.of_terms))
            of_each[terms] = values
        else:
            of_each = np.zeros(max(self.terms.n_features, *(layer.n_tokens for layer in layers)))
            alike, sums = self.terms.sum_by_feature(terms, values)
            of_each[alike] = sums
        read: list[Rows] = []
        for layer in layers:
            for block in layer.blocks():
                here, rows = block.find(wanted)
                if not len(rows):
                    continue
                taken = block.taken(rows)
                norms = norm * self._weights.exact_norms(block, rows, layer.searching_kernel)
                of_tokens = self.terms.sums(taken.tokens, of_each) if few else of_each[taken.tokens]
                products = sums_by_set(of_tokens, taken.sizes)
                near = np.minimum(products / norms, 1.0) if features else 1.0 * (taken.sizes == 0)
                similarities[here] = near.round(_DIGITS)
                read.append(taken)
        if few:  # which may be compared with each other next
            self._features_of = _by_id(Rows.joined(read))
        if np.isnan(similarities).any():
            raise KeyError(int(wanted[np.isnan(similarities)][0]))
        return similarities

    def similarities(self, layers: Sequence[JaccardIndex], ids: Sequence[int]) -> Floats:
        """Return the similarities between S sets, shape (S, S), positive semi-definite up to rounding.

        Raises:
            KeyError: no layer holds one of the ids.
        """
        self._weights.count(layers)
        features_of = self._features_of
        if missing := [id_ for id_ in ids if id_ not in features_of]:
            wanted = np.array(missing, dtype=np.int64)
            parts = [block.taken(block.find(wanted)[1]) for block in blocks_of(layers)]
            features_of = features_of | _by_id(Rows.joined(parts))
        sets = [features_of[id_] for id_ in ids]
        sizes = np.array([len(features) for features in sets], dtype=np.int64)
        together = np.concatenate([np.empty(0, np.uint32), *sets])
        terms, kernel = self.terms, layers[0].searching_kernel
        products = kernel.products(together, sizes, terms.starts, terms.terms, self._weights.of_terms)
        norms = np.sqrt(products.diagonal())
        norms = np.where(norms > 0.0, norms, 1.0)
        between: Floats = np.clip(products / np.outer(norms, norms), 0.0, 1.0)
        empty = np.flatnonzero(sizes == 0)
        between[np.ix_(empty, empty)] = 1.0
        np.fill_diagonal(between, 1.0)
        return between

    # ------------------------------------------------------------------------------------------ candidates

    def _found(
        self, layers: Sequence[JaccardIndex], features: Collection[str], k: int, threshold: float
    ) -> tuple[Rows, Floats]:
        """Return sets with their similarities, the k best among them."""
        terms, values, norm = self._weighted(features)
        n_features = max(self.terms.n_features, *(layer.n_tokens for layer in layers))
        if len(self._dense) < n_features:
            self._dense = np.zeros(n_features)
        k *= max(1, sum(len(layer) > 0 for layer in layers))  # each layer may repeat a set
        kernel, alike = layers[0].searching_kernel, np.empty(0, dtype=np.int64)
        try:
            if isinstance(kernel, VectorKernel):
                alike = kernel.add_by_feature(terms, values, self.terms.lists(), self._dense)
                parts = self._nearest(kernel, layers, norm, Best(k, threshold)) if len(alike) else []
            else:
                query = VectorQuery.of(self._weights, terms, values, norm, self._dense)
                alike = query.features
                self._dense[alike] = query.products
                parts = ListSearch(self._weights, query, kernel, self.few_postings).rows(layers, k, threshold)
            rows = Rows.joined([block.taken(at) for block, at in parts])
            norms = [self._weights.exact_norms(block, at, kernel) for block, at in parts]
            products = sums_by_set(self._dense[rows.tokens], rows.sizes)
        finally:
            self._dense[alike] = 0.0
        # Rounded, so that the order of adding up decides no tie, and that a set equals itself.
        return rows, np.minimum(products / (np.concatenate([np.empty(0), *norms]) * norm), 1.0).round(_DIGITS)

    def _nearest(
        self, kernel: VectorKernel, layers: Sequence[JaccardIndex], norm: float, best: Best
    ) -> list[tuple[Block, Ints]]:
        """Return the rows that may be among the best, by compiled loops."""
        vectors = TermVectors(self.terms.starts, self.terms.terms, self._weights.of_terms)
        found = []
        for block in sorted(blocks_of(layers), key=len):  # a small block rules out most of a large one
            norms = self._weights.norms_of(block)
            found.append((block, *kernel.nearest(block, norms, vectors, self._dense, norm, best)))
        return [(block, rows[near >= best.least]) for block, rows, near in found]

    def _weighted(self, features: Collection[str]) -> tuple[Ints, Floats, float]:
        """Return the known terms of features that have a weight, their weights times counts, and the vector's norm."""
        weights = self._weights
        terms, counts, unknown = self.terms.count(features)
        values = counts * weights.of_terms[terms]
        norm = math.sqrt(float(counts @ values) + weights.of_new * float(unknown @ unknown))
        return terms[values > 0.0], values[values > 0.0], norm


def _by_id(rows: Rows) -> dict[int, Ints]:
    """Return the features of each set."""
    ends = np.cumsum(rows.sizes, dtype=np.int64).tolist()
    begins = [0, *ends[:-1]]
    return {id_: rows.tokens[a:b] for id_, a, b in zip(rows.ids.tolist(), begins, ends, strict=False)}
