"""A reader that merges the stored rows with those of the overlay, and the index over the overlay's layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeVar

from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Match
from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import EvidenceRow, LatestStep, RecentReturn, StepCell
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.ranking import latest_first, rank_key
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import Experience

__all__ = ["LayerIndex", "MergedReader", "nearest"]

_Row = TypeVar("_Row", bound=tuple[Any, ...])


class MergedReader(Reader):
    """Reads a namespace as if its pending episodes were derived.

    Args:
        store: the stored rows.
        namespace_id: the id of the namespace in both stores.
        over: a reader of the rows derived from the pending episodes.
        last: the last stored ordinal.
    """

    def __init__(self, store: Store, namespace_id: int, over: Reader, last: int) -> None:
        super().__init__(store, namespace_id)
        self.over = over
        self._first_visit = last + 1 << STEP_BITS

    def visits_of(self, steps: Collection[tuple[str, int]], task_filter: TaskFilter) -> dict[int, StepCell]:
        """Return the live steps among these, by visit."""
        return super().visits_of(steps, task_filter) | self.over.visits_of(steps, task_filter)

    def recent_visits(self, set_id: int, limit: int, task_filter: TaskFilter) -> list[int]:
        """Return the latest live visits to a distinct state, latest first."""
        stored, new = (
            super().recent_visits(set_id, limit, task_filter),
            self.over.recent_visits(set_id, limit, task_filter),
        )
        return latest_first([*stored, *new])[:limit]

    def visits_at(self, set_ids: Sequence[int], task_filter: TaskFilter) -> dict[int, list[int]]:
        """Return all live visits to each of some distinct states that has one, in no order."""
        visits = super().visits_at(set_ids, task_filter)
        for set_id, new in self.over.visits_at(set_ids, task_filter).items():
            visits[set_id] = list({*visits.get(set_id, ()), *new})
        return visits

    def latest_visits(self, set_ids: Sequence[int], task_filter: TaskFilter) -> dict[int, int]:
        """Return the latest live visit to each distinct state that is not left out; states without one are missing."""
        visits = super().latest_visits(set_ids, task_filter)
        for set_id, visit in self.over.latest_visits(set_ids, task_filter).items():
            visits[set_id] = latest_first([visit, visits.get(set_id, visit)])[0]
        return visits

    def latest_steps(
        self, view_id: int, n_at: Mapping[int, int], key: Literal["key_id", "id"], *, task_filter: TaskFilter, most: int
    ) -> dict[int, list[LatestStep]]:
        """Return the latest live steps at some distinct states, the latest first."""
        found = super().latest_steps(view_id, n_at, key, task_filter=task_filter, most=most)
        for set_id, new in self.over.latest_steps(view_id, n_at, key, task_filter=task_filter, most=most).items():
            steps = {step.visit: step for step in (*found[set_id], *new)}
            found[set_id] = [steps[visit] for visit in latest_first(steps)[:most]]
        return found

    def experiences(
        self, view_id: int, visits: Sequence[int], *, all_live: bool = True
    ) -> dict[int, tuple[Experience, int]]:
        """Return each visit's experience and the key of its action."""
        stored = [visit for visit in visits if visit < self._first_visit]
        pending = [visit for visit in visits if visit >= self._first_visit]
        old = super().experiences(view_id, stored, all_live=all_live)
        return old | self.over.experiences(view_id, pending, all_live=all_live)

    def evidence(self, view_id: int, set_ids: Sequence[int]) -> list[EvidenceRow]:
        """Return the aggregated evidence at some distinct states."""
        rows = {row[:2]: row for row in super().evidence(view_id, set_ids)}
        rows |= {row[:2]: row for row in self.over.evidence(view_id, set_ids)}
        return [rows[group] for group in sorted(rows)]

    def sums(self, sql: str, parameters: tuple[Any, ...], set_ids: Sequence[int], row_type: type[_Row]) -> list[_Row]:
        """Return sums over live steps at some distinct states: a row of each store where both have steps."""
        rows = [*super().sums(sql, parameters, set_ids, row_type), *self.over.sums(sql, parameters, set_ids, row_type)]
        return sorted(rows, key=lambda row: tuple(row[:2]))

    def action_texts(self, key_ids: Sequence[int]) -> dict[int, str]:
        """Return the first spelling of each action."""
        return super().action_texts(key_ids) | self.over.action_texts(key_ids)

    def mean_counts(self, view_id: int) -> dict[float, int]:
        """Return how many (distinct state, action) pairs have each mean return."""
        return self.over.mean_counts(view_id)  # the shadow store has a copy of the whole distribution

    def recent_returns(
        self, view_id: int, limit: int, task_filter: TaskFilter, *, with_tasks: bool
    ) -> list[RecentReturn]:
        """Return the returns of the latest live steps outside of the excluded task, latest first."""
        stored = super().recent_returns(view_id, limit, task_filter, with_tasks=with_tasks)
        new = self.over.recent_returns(view_id, limit, task_filter, with_tasks=with_tasks)
        steps = {step.visit: step for step in (*stored, *new)}
        return [steps[visit] for visit in latest_first(steps)[:limit]]

    def last_ordinal(self) -> int:
        """Return the number of the last episode."""
        return self.over.last_ordinal()


class LayerIndex:
    """An index over the feature sets visited after `visit`, and over the tokens numbered above `token`."""

    def __init__(self, token: int, visit: int) -> None:
        self.token, self.visit = token, visit
        self.token_of: dict[str, int] = {}
        self.index = JaccardIndex()

    def next_layer(self) -> LayerIndex:
        """Return an empty index for the layer above."""
        return LayerIndex(self.token, self.visit)

    def catch_up(self, reader: Reader) -> None:
        """Add the new tokens and feature sets."""
        tokens = reader.tokens_after(self.token)
        self.token_of.update(tokens)
        self.token = max(tokens.values(), default=self.token)
        for ids, sizes, members, visits in reader.sets_after(self.visit):
            self.index.add_arrays(ids, sizes, members, visits)
            self.visit = max(self.visit, int(visits.max()))


def _layer_tokens(layers: Sequence[LayerIndex], features: frozenset[str]) -> list[int]:
    """Return the numbers of those of these features that the layers number."""
    return [layer.token_of[feature] for layer in layers for feature in features if feature in layer.token_of]


def nearest(
    layers: Sequence[LayerIndex],
    stored: Sequence[Match],
    features: frozenset[str],
    tokens: Sequence[int],
    *,
    k: int,
    threshold: float,
) -> list[Match]:
    """Return the k most similar distinct states.

    Args:
        layers: the indexes of the overlay, the lowest layer first.
        stored: the matches among the stored states.
        features: the features of the query.
        tokens: the token numbers of the stored features among them.
        k, threshold: see `JaccardIndex.search`.
    """
    query = [*tokens, *_layer_tokens(layers, features)]
    # A state that a layer holds and does not return has k states before it.
    matches = list(stored)
    for layer in layers:
        if len(layer.index):
            matches += layer.index.match_many([query], n_features=[len(features)], k=k, threshold=threshold)[0]
    matches.sort(key=lambda match: rank_key(*match))
    best: dict[int, Match] = {}
    for match in matches:
        best.setdefault(match[2], match)
    return list(best.values())[:k]
