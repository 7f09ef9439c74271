"""Similarity of states with goals: that of the states by rarity, lowered where the goals differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Bools, Ints, Rows, ranges
from seasoned.memory.index.goal_weights import NO_GOAL, GoalWeights
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Match
from seasoned.memory.index.rarity import RarityIndex
from seasoned.memory.index.rarity_weights import blocks_of
from seasoned.memory.index.term_keys import TermKeys
from seasoned.memory.values.ranking import best_first
from seasoned.states.transcript.goals import is_goal
from seasoned.types.queries import check_nearest

__all__ = ["GOAL_SHARE", "GoalIndex", "without_goals"]

GOAL_SHARE = 0.5
_DIGITS = 12
_SLACK = 1e-9  # more than the rounding
_MORE = 4
_MANY = 64  # sets for each that is wanted: up to so many are compared one by one


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

    where g is the similarity of the goals (`GoalWeights`), 1 if neither has a goal, and 0 if one has. It is a product
    of positive semi-definite kernels, and so one itself (Schur). States without goals have the similarities c, to the
    last digit.

    The results equal a brute-force scan. Let s_k be the k-th best s among the 4 k best sets by c and, where these do
    not settle it, 4 k sets with the best goals. A set that reaches s_k has a goal with `1 - w + w g >= s_k / c_max`: if
    at most 64 k sets have such goals, these are compared. Otherwise all with `c >= s_k / (1 - w + w g_max)` are.

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
        self._goals = GoalWeights()

    def clear(self) -> None:
        """Forget all goals."""
        self._goals.clear()

    def add(self, features: Mapping[str, int]) -> None:
        """Add the goals among stored features, numbered above all stored ones before."""
        self._goals.add(features)

    def replace_pending(self, features: Iterable[Mapping[str, int]]) -> None:
        """Take the goals among these for those of pending episodes, numbered above the stored ones."""
        self._goals.replace_pending(features)

    def search(
        self, layers: Sequence[JaccardIndex], features: Collection[str], *, k: int, threshold: float
    ) -> list[Match]:
        """Return at most `k` matches, best first; see `RarityIndex.search`.

        Raises:
            InputError: k or the threshold is out of range.
        """
        goals, others = _goals_and_others(features)
        if not goals and not self._goals:
            return self.states.search(layers, features, k=k, threshold=threshold)
        goal = min(goals) if goals else None

        def scored(found: Sequence[Match]) -> list[Match]:
            return self._scored(layers, found, threshold, lambda stored: _factors(self._goals.to_query(goal, stored)))

        if not others:
            check_nearest(k, threshold)
            return scored(self._without_others(layers))[:k]
        found = self.states.search(layers, others, k=_MORE * k, threshold=threshold)
        best = scored(found)
        if len(found) < _MORE * k or (len(best) >= k and best[k - 1][0] > found[-1][0]):
            return best[:k]
        return self._among_all(layers, others, goal, found, best, k, threshold)

    def best_of(
        self,
        layers: Sequence[JaccardIndex],
        features: Collection[str],
        sets: Sequence[Match],
        *,
        k: int,
        threshold: float,
    ) -> list[Match]:
        """Return at most `k` of some sets, best first: the result of `search` if these were all sets.

        Args:
            layers, features, k, threshold: as for `search`.
            sets: matches of any search; their similarities do not count.

        Raises:
            InputError: k or the threshold is out of range.
            KeyError: no layer holds one of the sets.
        """
        k, threshold = check_nearest(k, threshold)
        if not sets:
            return []
        goals, others = _goals_and_others(features)
        _, visits, ids = map(np.array, zip(*sets, strict=True))
        near = self.states.similarities_to(layers, others, ids.tolist())
        if goals or self._goals:
            stored, alone = self._goals_at(layers, ids)
            if not others:
                near[alone] = 1.0
            near = (near * _factors(self._goals.to_query(min(goals, default=None), stored))).round(_DIGITS)
        order = best_first(near, visits, ids)
        order = order[(near[order] > 0.0) & (near[order] >= threshold)][:k]
        return list(zip(near[order].tolist(), visits[order].tolist(), ids[order].tolist(), strict=True))

    def _among_all(
        self,
        layers: Sequence[JaccardIndex],
        others: Sequence[str],
        goal: str | None,
        found: Sequence[Match],
        best: list[Match],
        k: int,
        threshold: float,
    ) -> list[Match]:
        """Return the k best of all sets, where the first matches by c do not settle which these are."""
        known = np.append(NO_GOAL, self._goals.known)
        factors = _factors(np.append(goal is None, self._goals.to_known(goal)))
        c_first, c_last, highest = found[0][0], found[-1][0], float(factors.max())
        bound = round(c_last * highest, _DIGITS)
        # Of the sets of one c, those found are the latest.
        if len(best) >= k and (best[k - 1][0] > bound or (best[k - 1][0] == bound and c_first == c_last)):
            return best[:k]

        def scored(found: Sequence[Match]) -> list[Match]:
            return self._scored(layers, found, threshold, lambda stored: factors[np.searchsorted(known, stored)])

        good = known[np.argsort(-factors, kind="stable")[: _MORE * k]]
        found = self._joined(layers, others, found, *self._sets_with(layers, good, _MORE * k))
        best = scored(found)
        least = (best[k - 1][0] if len(best) >= k else threshold) - _SLACK  # no set below it is among the k best
        good = known[factors * c_first >= least]
        ids, visits = self._sets_with(layers, good, _MANY * k)
        if NO_GOAL not in good and len(ids) < _MANY * k:
            return scored(self._joined(layers, others, found, ids, visits))[:k]
        every = max(1, sum(map(len, layers)))
        reached = min(1.0, max(threshold, least / highest))
        return scored(self.states.search(layers, others, k=every, threshold=reached))[:k]

    def _sets_with(self, layers: Sequence[JaccardIndex], goals: Ints, most: int) -> tuple[Ints, Ints]:
        """Return the ids and visits of sets that hold one of these goals, some of them if there are more than `most`.

        A set may occur twice, and none is returned for -1.
        """
        wanted = np.sort(goals[goals != NO_GOAL]).astype(np.uint32)
        ids, visits = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        n_left = most
        for block in blocks_of(layers) if len(wanted) else ():
            if block.lists is None:
                at = np.minimum(np.searchsorted(wanted, block.tokens), len(wanted) - 1)
                held = np.flatnonzero(wanted[at] == block.tokens)
                rows = np.searchsorted(block.starts, held, side="right") - 1
            else:
                vocabulary, starts, postings = block.lists
                at = np.searchsorted(vocabulary, wanted)
                at = at[vocabulary[at] == wanted]
                first, last = starts[at].astype(np.int64), starts[at + 1].astype(np.int64)
                rows = postings[ranges(first, last - first)].astype(np.intp)
            rows = rows[:n_left]
            n_left -= len(rows)
            ids.append(block.ids[rows])
            visits.append(block.visits[rows])
        return np.concatenate(ids), np.concatenate(visits)

    def _joined(
        self, layers: Sequence[JaccardIndex], others: Sequence[str], found: Sequence[Match], ids: Ints, visits: Ints
    ) -> list[Match]:
        """Return the matches by the other features, and these sets as such matches."""
        known = {id_ for _, _, id_ in found}
        new = {id_: visit for id_, visit in _latest(ids, visits).items() if id_ not in known}
        near = self.states.similarities_to(layers, others, list(new)).tolist()
        return [*found, *((c, visit, id_) for c, (id_, visit) in zip(near, new.items(), strict=True) if c > 0.0)]

    def _without_others(self, layers: Sequence[JaccardIndex]) -> list[Match]:
        """Return the sets without features other than a goal, as matches of a query without."""
        ids, visits = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for block in blocks_of(layers):
            rows = np.arange(block.rows_up_to(1))
            rows = rows[_only_goals(block.taken(rows), self._goals.known)]
            ids.append(block.ids[rows])
            visits.append(block.visits[rows])
        return [(1.0, visit, id_) for id_, visit in _latest(np.concatenate(ids), np.concatenate(visits)).items()]

    def _scored(
        self,
        layers: Sequence[JaccardIndex],
        found: Sequence[Match],
        threshold: float,
        factors: Callable[[Ints], Floats],
    ) -> list[Match]:
        """Return the matches that reach the threshold with their goals, best first."""
        near, visits, ids = map(np.array, zip(*found, strict=True)) if found else (np.empty(0),) * 3
        near = (near * factors(self._goals_at(layers, ids)[0])).round(_DIGITS)
        order = best_first(near, visits, ids)
        order = order[near[order] >= threshold]
        return list(zip(near[order].tolist(), visits[order].tolist(), ids[order].tolist(), strict=True))

    def similarities(self, layers: Sequence[JaccardIndex], ids: Sequence[int]) -> Floats:
        """Return the similarities between S sets, shape (S, S), positive semi-definite up to rounding.

        Raises:
            KeyError: no layer holds one of the ids.
        """
        between = self.states.similarities(layers, ids)
        if not self._goals:
            return between
        goals, alone = self._goals_at(layers, ids)
        between[np.ix_(alone, alone)] = 1.0
        distinct, place = np.unique(goals, return_inverse=True)
        product: Floats = between * _factors(self._goals.between(distinct))[np.ix_(place, place)]
        return product

    def situations(self, layers: Sequence[JaccardIndex], features: Collection[str], ids: Sequence[int]) -> Ints | None:
        """Return the number of each set's situation, shape (S,): what it is apart from its goal; None without goals.

        The goal that is pursued now is part of the situation: the sets with the goal of the query are one situation,
        and those with any other goals another.

        Args:
            layers: the indexes that hold the sets.
            features: of the query.
            ids: of S sets.

        Raises:
            KeyError: no layer holds one of the ids.
        """
        if not self._goals:
            return None
        known, wanted = self._goals.known, np.array(ids, dtype=np.int64)
        goals, _ = self._goals_at(layers, wanted)
        goal = min(_goals_and_others(features)[0], default=None)
        pursued = (self._goals.to_query(goal, goals) > 1.0 - _SLACK).tolist()
        number_of: dict[tuple[bool, bytes], int] = {}
        situations = np.zeros(len(wanted), dtype=np.int64)
        for block in blocks_of(layers):
            here, at = block.find(wanted)
            rows, first = block.taken(at), 0
            is_goal = _are_in(known, rows.tokens)
            for place, size in zip(np.flatnonzero(here).tolist(), rows.sizes.tolist(), strict=True):
                of_set = slice(first, first + size)
                others = np.sort(rows.tokens[of_set][~is_goal[of_set]])
                situations[place] = number_of.setdefault((pursued[place], others.tobytes()), len(number_of))
                first += size
        return situations

    def _goals_at(self, layers: Sequence[JaccardIndex], ids: Sequence[int] | Ints) -> tuple[Ints, Ints]:
        """Return the goal of each of these sets, the number of its feature, -1 for none; and which hold no other."""
        goals, alone = np.full(len(ids), NO_GOAL), np.zeros(len(ids), dtype=bool)
        known, wanted = self._goals.known, np.array(ids, dtype=np.int64)
        for block in blocks_of(layers):
            here, at = block.find(wanted)
            if not len(at):
                continue
            rows = block.taken(at)
            alone[here] = _only_goals(rows, known)
            if not len(known):
                continue
            tokens = rows.tokens.astype(np.int64)
            is_known = _are_in(known, tokens)
            of_row = np.repeat(np.flatnonzero(here), rows.sizes)[is_known][::-1]
            goals[of_row] = tokens[is_known][::-1]  # the first of a set is written last
        return goals, np.flatnonzero(alone)


def _goals_and_others(features: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the features that are goals, and the others."""
    goals = list(filter(is_goal, features))
    return goals, [feature for feature in features if not is_goal(feature)] if goals else list(features)


def _factors(alike: Floats) -> Floats:
    """Return by what the similarity of two states is multiplied, from that of their goals."""
    factors: Floats = 1.0 - GOAL_SHARE + GOAL_SHARE * alike
    return factors


def _are_in(known: Ints, tokens: Ints) -> Bools:
    """Return which tokens are among the known ones, which ascend; at least one is known."""
    tokens = tokens.astype(np.int64)
    found: Bools = known[np.minimum(np.searchsorted(known, tokens), len(known) - 1)] == tokens
    return found


def _only_goals(rows: Rows, goals: Ints) -> Bools:
    """Return which of these sets hold nothing but a goal, or nothing."""
    alone: Bools = rows.sizes == 0
    single = np.flatnonzero(rows.sizes == 1)
    ends = np.cumsum(rows.sizes, dtype=np.int64)
    alone[single] = np.isin(rows.tokens[ends[single] - 1].astype(np.int64), goals)
    return alone


def _latest(ids: Ints, visits: Ints) -> dict[int, int]:
    """Return each set with its latest visit: a layer may hold a set of the layer below."""
    latest: dict[int, int] = {}
    for id_, visit in zip(ids.tolist(), visits.tolist(), strict=True):
        latest[id_] = max(visit, latest.get(id_, visit))
    return latest
