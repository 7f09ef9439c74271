"""Similarity of states with goals: that of the states by rarity, lowered where the goals differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Ints
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Match
from seasoned.memory.index.rarity import RarityIndex
from seasoned.memory.index.rarity_weights import blocks_of, counted_sets
from seasoned.memory.index.term_keys import TermKeys
from seasoned.memory.values.ranking import best_first
from seasoned.states.transcript.goals import goal_terms, is_goal

__all__ = ["GOAL_SHARE", "GoalIndex", "without_goals"]

GOAL_SHARE = 0.5
_DIGITS = 12
_NO_GOAL = -1
_MORE = 4


def without_goals(keys_of: TermKeys) -> TermKeys:
    """Return what makes the same terms of features, and none of goals."""

    def keys_of_others(features: Sequence[str]) -> tuple[Ints, Ints]:
        others = [feature for feature in features if not is_goal(feature)]
        if len(others) == len(features):
            return keys_of(features)
        lengths = np.zeros(len(features), dtype=np.int64)
        of_others, keys = keys_of(others) if others else (lengths[:0], np.empty(0, dtype=np.uint64))
        lengths[[not is_goal(feature) for feature in features]] = of_others
        return lengths, keys

    return keys_of_others


class GoalIndex:
    """Compares the goals of states apart from the rest, and both together.

    A goal is a feature that begins with `seasoned.states.transcript.goals.GOAL_MARK`; a state has one at most (the
    first by number counts). With c the similarity of the other features (`RarityIndex`), which have no term in common
    with goals, two states a, b have the similarity

        s(a, b) = c(a, b) * (1 - w + w * g(a, b)),   w = GOAL_SHARE,

    where g is the cosine of the goals' terms, each weighted by `ln(1 + (N + 1) / (n_t + 1))` over the N counted goals,
    1 if neither has a goal, and 0 if one has. It is a product of positive semi-definite kernels, and so one itself
    (Schur). States without goals have the similarities c, to the last digit.

    Because g is at most 1, no set with a c below the k-th best s is among the k best. The 4 k best by c give such an s;
    all sets that reach it by c are compared, if that is not clear from the first ones. So the results equal a
    brute-force scan.

    Args:
        states: the index of the other features; it gives goals no terms (`without_goals`).

    Example:
        >>> from seasoned.memory.index.term_keys import subword_keys
        >>> from seasoned.states.transcript.goals import goal_feature
        >>> sets, index = JaccardIndex(), GoalIndex(RarityIndex(without_goals(subword_keys)))
        >>> tokens = {"open": 0, goal_feature(["cancel", "it"]): 1, goal_feature(["change", "it"]): 2}
        >>> index.states.terms.add(tokens)
        >>> index.add(tokens)
        >>> sets.add([(0, [0, 1], 10), (1, [0, 2], 11)])
        >>> query = {"open", goal_feature(["cancel", "now"])}
        >>> [(id_, round(near, 2)) for near, _, id_ in index.search([sets], query, k=2, threshold=0.0)]
        [(0, 0.81), (1, 0.5)]
    """

    def __init__(self, states: RarityIndex) -> None:
        self.states = states
        self.clear()

    def clear(self) -> None:
        """Forget all goals."""
        self._number_of: defaultdict[str, int] = defaultdict()
        self._number_of.default_factory = self._number_of.__len__
        self._terms_of: dict[int, Ints] = {}  # by feature
        self._pending: dict[int, Ints] = {}
        self._counted = -1
        self._weights: Floats = np.empty(0)
        self._sorted: Ints | None = None

    def add(self, features: Mapping[str, int]) -> None:
        """Add the goals among stored features, numbered above all stored ones before."""
        self._terms_of |= self._goals_of(features)
        self._sorted = None

    def replace_pending(self, features: Iterable[Mapping[str, int]]) -> None:
        """Take the goals among these for those of pending episodes, numbered above the stored ones."""
        self._pending = {}
        for of_layer in features:
            self._pending |= self._goals_of(of_layer)
        self._sorted = None

    def _goals_of(self, features: Mapping[str, int]) -> dict[int, Ints]:
        return {id_: self._numbers(text) for text, id_ in features.items() if is_goal(text)}

    def _numbers(self, goal: str) -> Ints:
        return np.array([self._number_of[term] for term in goal_terms(goal)], dtype=np.int64)

    def search(
        self, layers: Sequence[JaccardIndex], features: Collection[str], *, k: int, threshold: float
    ) -> list[Match]:
        """Return at most `k` matches, best first; see `RarityIndex.search`.

        Raises:
            InputError: k or the threshold is out of range.
        """
        goals = [feature for feature in features if is_goal(feature)]
        if not goals and not self._terms_of and not self._pending:
            return self.states.search(layers, features, k=k, threshold=threshold)
        others = [feature for feature in features if not is_goal(feature)]
        goal = min(goals) if goals else None
        found = self.states.search(layers, others, k=_MORE * k, threshold=threshold)
        scored = self._scored(layers, goal, found, threshold)
        if len(found) == _MORE * k and (len(scored) < k or scored[k - 1][0] <= found[-1][0]):
            least = scored[k - 1][0] if len(scored) >= k else threshold  # no set below it is among the k best
            n_sets = sum(map(len, layers))
            found = self.states.search(layers, others, k=n_sets, threshold=least)
            scored = self._scored(layers, goal, found, threshold)
        return scored[:k]

    def _scored(
        self, layers: Sequence[JaccardIndex], goal: str | None, found: Sequence[Match], threshold: float
    ) -> list[Match]:
        """Return the matches that reach the threshold with their goals, best first."""
        near, visits, ids = map(np.array, zip(*found, strict=True)) if found else (np.empty(0),) * 3
        near = (near * self._factors(goal, self._goals_at(layers, ids))).round(_DIGITS)
        order = best_first(near, visits, ids)
        order = order[near[order] >= threshold]
        return list(zip(near[order].tolist(), visits[order].tolist(), ids[order].tolist(), strict=True))

    def similarities(self, layers: Sequence[JaccardIndex], ids: Sequence[int]) -> Floats:
        """Return the similarities between S sets, shape (S, S), positive semi-definite up to rounding.

        Raises:
            KeyError: no layer holds one of the ids.
        """
        between = self.states.similarities(layers, ids)
        if not self._terms_of and not self._pending:
            return between
        goals = self._goals_at(layers, ids)
        distinct, place = np.unique(goals, return_inverse=True)
        vectors = self._vectors([self._terms(goal) for goal in distinct.tolist() if goal != _NO_GOAL])
        alike = np.zeros((len(distinct), len(distinct)))
        first = int(len(distinct) > 0 and distinct[0] == _NO_GOAL)
        alike[first:, first:] = np.clip(vectors @ vectors.T, 0.0, 1.0)
        np.fill_diagonal(alike, 1.0)
        product: Floats = between * (1.0 - GOAL_SHARE + GOAL_SHARE * alike)[np.ix_(place, place)]
        return product

    # ------------------------------------------------------------------------------------------ goals

    def _goals_at(self, layers: Sequence[JaccardIndex], ids: Sequence[int] | Ints) -> Ints:
        """Return the goal of each of these sets, as the number of its feature; -1 for none."""
        goals = np.full(len(ids), _NO_GOAL)
        if self._sorted is None:
            self._sorted = np.array(sorted([*self._terms_of, *self._pending]), dtype=np.int64)
        known, wanted = self._sorted, np.array(ids, dtype=np.int64)
        for block in blocks_of(layers):
            here, at = block.find(wanted)
            if not len(at) or not len(known):
                continue
            rows = block.taken(at)
            tokens = rows.tokens.astype(np.int64)
            is_known = known[np.minimum(np.searchsorted(known, tokens), len(known) - 1)] == tokens
            of_row = np.repeat(np.flatnonzero(here), rows.sizes)[is_known][::-1]
            goals[of_row] = tokens[is_known][::-1]  # the first of a set is written last
        return goals

    def _terms(self, goal: int) -> Ints:
        return self._terms_of[goal] if goal in self._terms_of else self._pending[goal]

    def _count(self) -> None:
        """Weigh the terms again if the number of goals has grown by a step; new terms have the weight of a new one."""
        n = counted_sets(len(self._terms_of))
        if n != self._counted:
            first = sorted(self._terms_of)[:n]
            flat = np.concatenate([np.empty(0, np.int64), *(self._terms_of[goal] for goal in first)])
            held = np.bincount(flat, minlength=len(self._number_of))
            self._weights, self._counted = np.log1p((n + 1.0) / (held + 1.0)), n
        n_new = len(self._number_of) - len(self._weights)
        if n_new:
            self._weights = np.concatenate([self._weights, np.full(n_new, np.log1p(n + 1.0))])

    def _vectors(self, goals: Sequence[Ints]) -> Floats:
        """Return the unit vectors of goals, over the terms that these have."""
        self._count()
        flat = np.concatenate([np.empty(0, np.int64), *goals])
        terms, column = np.unique(flat, return_inverse=True)
        vectors = np.zeros((len(goals), len(terms)))
        vectors[np.repeat(np.arange(len(goals)), [len(goal) for goal in goals]), column] = self._weights[flat]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _factors(self, goal: str | None, stored: Ints) -> Floats:
        """Return by what the similarities to sets with these goals are multiplied."""
        if goal is None:
            return np.where(stored == _NO_GOAL, 1.0, 1.0 - GOAL_SHARE)
        distinct, place = np.unique(stored, return_inverse=True)
        known = [self._terms(each) for each in distinct.tolist() if each != _NO_GOAL]
        self._count()
        terms = goal_terms(goal)
        numbers = np.array([self._number_of[term] for term in terms if term in self._number_of], dtype=np.int64)
        new = float(np.log1p(self._counted + 1.0))
        weights = np.zeros(len(self._weights))
        weights[numbers] = self._weights[numbers]
        norm = float(np.sqrt(weights @ weights + (len(terms) - len(numbers)) * new**2))
        flat = np.concatenate([np.empty(0, np.int64), *known])
        sizes = np.array([len(each) for each in known], dtype=np.int64)
        of_goal = np.repeat(np.arange(len(known)), sizes)
        products = np.bincount(of_goal, weights[flat] * self._weights[flat], minlength=len(known))
        norms = np.sqrt(np.bincount(of_goal, self._weights[flat] ** 2, minlength=len(known)))
        alike = np.zeros(len(distinct))
        alike[len(distinct) - len(known) :] = np.minimum(products / (norms * norm), 1.0)
        return (1.0 - GOAL_SHARE + GOAL_SHARE * alike)[place]
