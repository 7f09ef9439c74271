"""The protocol of search kernels over token sets, and the plan of a search. One kernel is in NumPy, one compiled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Block, Bools, Ints, Lists, ranges
from seasoned.registry import Registry

__all__ = [
    "FEW_CANDIDATES",
    "KERNELS",
    "SLACK",
    "Best",
    "FeatureLists",
    "Kernel",
    "Match",
    "Query",
    "RowNorms",
    "SearchPlan",
    "TermVectors",
    "VectorKernel",
    "counted_terms",
    "plan_searches",
]

KERNELS = Registry(
    "index kernel",
    {
        "numba": "seasoned.memory.index.kernel_numba:NumbaKernel",
        "numpy": "seasoned.memory.index.kernel_numpy:NumpyKernel",
    },
)

# Bounds are met up to this: rounding may only ever let a set too many through, for the exact comparison follows.
SLACK = 1e-6
_MAX_REPEATS = 8
# More candidates than these are first compared by their signatures, which rule out most of those that are much less
# similar than the best. At a least similarity of `_SIGNATURES_RULE_OUT` or more a share of `_SURVIVING` is left.
FEW_CANDIDATES = 256
_SIGNATURES_RULE_OUT = 0.7
_SURVIVING = 0.4
# A search that reads more than so many postings asks for very similar sets first.
_CHEAP_POSTINGS = 40_000
_BLOCK_COST = 2000.0  # the cost of finding the lists of a block, in postings read
_STEPS = (0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)

Match = tuple[float, int, int]
"""Similarity, visit, id."""


class Query(NamedTuple):
    """A set to search for.

    Attributes:
        tokens: its known tokens, rarest first, as uint32.
        ends: how many postings the first, the first two, ... of these tokens have.
        n: its size, unknown tokens included.
    """

    tokens: Ints
    ends: list[int]
    n: int


class SearchPlan(NamedTuple):
    """A plan to find the sets that reach a similarity.

    A set of s tokens reaches the similarity t only if `t n <= s <= n / t` (length filter) and if it shares
    `r(s) = ceil(t / (1 + t) (n + s))` tokens or more. Of any `n - r(s) + m` query tokens it then holds at least m
    (prefix filter, for m = 1: Chaudhuri, Ganti and Kaushik 2006, "A Primitive Operator for Similarity Joins").
    So the lists of the rarest are read, and rows that occur m times are compared exactly.

    Attributes:
        query: the set.
        least: the similarity, in [0, 1].
        repeats: m; 0 to count the tokens of every set.
        n_read: how many lists are read.
        cost: in postings read.
    """

    query: Query
    least: float
    repeats: int
    n_read: int
    cost: float

    @property
    def too_small(self) -> float:
        """The largest size that is too small."""
        return math.ceil(self.least * self.query.n - SLACK) - 1

    def largest(self, rank: int) -> float:
        """Return the size up to which the list of this rank is read."""
        n, least = self.query.n, self.least
        if not least:
            return math.inf
        largest = n / least + SLACK
        if not self.repeats:
            return largest
        # r(s) for which this rank is the last that is read.
        required = len(self.query.tokens) - 1 - rank + self.repeats
        return min(largest, (required + SLACK) * (1 + least) / least - n + SLACK)


class Kernel(Protocol):
    """Builds postings and reads them."""

    name: str
    candidate_cost: float
    """The cost of an exact comparison, in postings read."""

    def post(self, tokens: Ints, starts: Ints) -> Lists:
        """Return the lists of a block."""

    def norms(self, block: Block, rows: Ints, starts: Ints, terms: Ints, squared: Floats) -> Floats:
        """Return the norms of the vectors of these rows; 1 for a row without terms.

        Feature f has the terms `terms[starts[f] : starts[f + 1]]`. A row's vector holds for each term the number of its
        features with it, times the term's weight; `squared` has the squared weight of each term.
        """

    def products(self, features: Ints, sizes: Ints, starts: Ints, terms: Ints, squared: Floats) -> Floats:
        """Return the products of the vectors of S sets, shape (S, S), equal on both sides of the diagonal.

        The features of the sets are given one set after the other; vectors, and the other arguments, as for `norms`.
        """

    def search(
        self, blocks: Sequence[Block], plans: Sequence[SearchPlan], k: int, in_query: Bools
    ) -> list[list[Match]]:
        """Return for each plan the k best sets that reach its similarity, best first.

        `in_query` has a place for every token, and is all False before and after.
        """


class TermVectors(NamedTuple):
    """The terms of features: feature f has `terms[starts[f] : starts[f + 1]]`; and the squared weight of each term."""

    starts: Ints
    terms: Ints
    squared: Floats


class RowNorms(Protocol):
    """Norms of the rows of a block."""

    @property
    def at_least(self) -> Floats:
        """Lower bounds."""

    @property
    def exact(self) -> Floats:
        """Those that are known, NaN for the others; a search fills in what it computes."""


class Best:
    """The best similarities that a search has found.

    Args:
        k: how many it keeps.
        threshold: the least similarity that counts.

    Attributes:
        similarities: a heap, the least first.
        n: how many there are, and a number that the search counts with.
    """

    def __init__(self, k: int, threshold: float) -> None:
        self.similarities: Floats = np.zeros(k)
        self.n: Ints = np.zeros(2, dtype=np.int64)
        self._threshold = threshold

    @property
    def least(self) -> float:
        """What a set must reach to be among the best, less the slack."""
        is_full = int(self.n[0]) == len(self.similarities)
        return max(self._threshold, float(self.similarities[0]) if is_full else 0.0) - SLACK


@runtime_checkable
class VectorKernel(Kernel, Protocol):
    """A kernel that also searches by the cosine of vectors of terms."""

    def add_by_feature(self, terms: Ints, values: Floats, lists: FeatureLists, sums: Floats) -> Ints:
        """Add the values of terms, above 0, to the sum of each feature that holds them; return these features."""

    def nearest(
        self, block: Block, norms: RowNorms, vectors: TermVectors, products: Floats, norm: float, best: Best
    ) -> tuple[Ints, Floats]:
        """Return the rows of a block that may be among the best, and their similarities up to rounding.

        `products` has for each feature what it adds to the product with the query, 0 for those that share no terms
        with it; `norm` is the query's. The similarities, and norms that were computed, are added to `best` and `norms`.
        """


class FeatureLists(NamedTuple):
    """For each term its features, of the first `n_listed`; for each feature its terms, `n_terms` in all."""

    list_starts: Ints
    holders: Ints
    starts: Ints
    terms: Ints
    n_listed: int
    n_terms: int


def counted_terms(features: Ints, sizes: Ints, starts: Ints, terms: Ints, n_terms: int) -> tuple[Ints, Ints, Floats]:
    """Return the terms of sets of features: the place of a set, a term, and how many of its features have that.

    The sets are given one after the other; feature f has the terms `terms[starts[f] : starts[f + 1]]`.
    """
    begins = starts[features]
    lengths = starts[features.astype(np.int64) + 1] - begins
    of_set = np.repeat(np.repeat(np.arange(len(sizes)), sizes), lengths)
    width = max(1, n_terms)
    keys = np.sort(of_set * width + terms[ranges(begins, lengths)])
    heads = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    place, term = np.divmod(keys[heads], width)
    return place, term, np.diff(np.append(heads, len(keys))).astype(np.float64)


def _planned(query: Query, least: float, n_rows: int, fixed_cost: float, candidate_cost: float) -> SearchPlan | None:
    """Return the cheapest way to find the sets that are at least so similar; None if there can be none.

    A larger m reads more lists and leaves fewer candidates: about `N x^m / m!`, where x is the postings read per row.
    """
    share = least / (1 + least)
    smallest = max(0, math.ceil(least * query.n - SLACK))
    required = math.ceil(share * (query.n + smallest) - SLACK)
    n_known = len(query.tokens)
    if required > n_known:
        return None
    everything = fixed_cost + float(n_rows + (query.ends[-1] if n_known else 0))
    best = SearchPlan(query, least, 0, n_known, everything)
    for m in range(1, min(max(required, 0), _MAX_REPEATS) + 1):
        n_read = n_known - required + m
        read = query.ends[n_read - 1]
        if fixed_cost + read >= best.cost:
            break  # a larger m reads more
        candidates = min(n_rows, n_rows * (read / n_rows) ** m / math.factorial(m))
        compared = candidates * candidate_cost
        if least >= _SIGNATURES_RULE_OUT:
            compared = min(compared, candidate_cost * (FEW_CANDIDATES + candidates * _SURVIVING))
        cost = fixed_cost + read + compared
        if cost < best.cost:
            best = SearchPlan(query, least, m, n_read, cost)
    return best


def plan_searches(
    query: Query, threshold: float, n_rows: int, n_blocks: int, candidate_cost: float
) -> list[SearchPlan]:
    """Return the plans to run one after the other until one finds k sets: no other set can precede those.

    The first plans find only very similar sets, where that is far cheaper; the last one all that reach the threshold.
    """
    fixed_cost = _BLOCK_COST * n_blocks
    last = _planned(query, threshold, n_rows, fixed_cost, candidate_cost)
    if last is None:
        return []
    if last.cost <= fixed_cost + _CHEAP_POSTINGS:
        return [last]
    steps = [last]
    for least in sorted(step for step in _STEPS if step > threshold):
        step = _planned(query, least, n_rows, fixed_cost, candidate_cost)
        if step is None:
            break
        if step.cost < steps[-1].cost / 4:
            steps.append(step)
    return steps[::-1]
