"""Reading in layers: what is stored, and over it what was derived from arrivals."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.reading.reader import EvidenceRow, Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.task_filter import Outside
from seasoned.types import Experience

__all__ = ["LayerIndex", "Layered", "Ranked", "nearest"]

Ranked = list[tuple[int, float]]
"""(set id, similarity), best first."""


class Layered(Reader):
    """Reads a namespace as it will be when what has arrived is folded.

    Args:
        store: what is stored, and
        namespace_id: where.
        over: reads what was derived from the arrivals.
        last: the last ordinal that is stored.
    """

    def __init__(self, store: Store, namespace_id: int, over: Reader, last: int) -> None:
        super().__init__(store, namespace_id)
        self.over = over
        self._first_visit = last + 1 << STEP_BITS

    def visits_of(self, steps: Collection[tuple[str, int]], outside: Outside) -> dict[int, tuple[int, int]]:
        """Return the live visits of steps, each with its distinct state and action."""
        return super().visits_of(steps, outside) | self.over.visits_of(steps, outside)

    def recent_visits(self, set_id: int, limit: int, outside: Outside) -> list[int]:
        """Return the latest live visits to a distinct state, latest first."""
        new = self.over.recent_visits(set_id, limit, outside)
        return new if len(new) == limit else new + super().recent_visits(set_id, limit - len(new), outside)

    def latest_visits(self, set_ids: Sequence[int], outside: Outside) -> dict[int, int]:
        """Return the latest live visit to each distinct state that is not left out; states without one are missing."""
        return super().latest_visits(set_ids, outside) | self.over.latest_visits(set_ids, outside)

    def experiences(self, view_id: int, visits: Sequence[int]) -> dict[int, tuple[Experience, int]]:
        """Return each visit's experience and the key of its action."""
        old = super().experiences(view_id, [visit for visit in visits if visit < self._first_visit])
        return old | self.over.experiences(view_id, [visit for visit in visits if visit >= self._first_visit])

    def evidence(self, view_id: int, set_ids: Sequence[int]) -> list[EvidenceRow]:
        """Return the aggregated evidence at some distinct states."""
        rows = {row[:2]: row for row in super().evidence(view_id, set_ids)}
        rows |= {row[:2]: row for row in self.over.evidence(view_id, set_ids)}
        return [rows[group] for group in sorted(rows)]

    def sums(self, sql: str, parameters: tuple[Any, ...], set_ids: Sequence[int]) -> list[Any]:
        """Return sums over live steps at some distinct states: a row for each layer where both have steps."""
        rows = [*super().sums(sql, parameters, set_ids), *self.over.sums(sql, parameters, set_ids)]
        return sorted(rows, key=lambda row: tuple(row[:2]))

    def action_texts(self, key_ids: Sequence[int]) -> dict[int, str]:
        """Return the first spelling of each action."""
        return super().action_texts(key_ids) | self.over.action_texts(key_ids)

    def spread(self, view_id: int) -> float:
        """Return the robust spread of the mean returns of all (distinct state, action) pairs, in reward units."""
        return self.over.spread(view_id)  # the whole distribution is copied

    def last_ordinal(self) -> int:
        """Return the number of the last episode."""
        return self.over.last_ordinal()


class LayerIndex:
    """Finds the feature sets that were visited after `visit`, with the tokens numbered above `token`."""

    def __init__(self, token: int, visit: int) -> None:
        self.token, self.visit = token, visit
        self.token_of: dict[str, int] = {}
        self.index = JaccardIndex()

    def above(self) -> LayerIndex:
        """Return one of what comes after."""
        return LayerIndex(self.token, self.visit)

    def follow(self, reader: Reader) -> None:
        """Take in what is new."""
        for token_id, text in reader.tokens_after(self.token):
            self.token_of[text] = token_id
            self.token = max(self.token, token_id)
        for ids, sizes, tokens, visits in reader.sets_after(self.visit):
            self.index.add_arrays(ids, sizes, tokens, visits)
            self.visit = max(self.visit, int(visits.max()))


def nearest(
    layers: Sequence[LayerIndex],
    below: Ranked,
    features: frozenset[str],
    tokens: Sequence[int],
    *,
    k: int,
    threshold: float,
) -> Ranked:
    """Return the k most similar distinct states, given those among the stored ones.

    Args:
        layers: indexes of what lies above, the lowest first.
        below: what the index of what is stored answers.
        features: of the state that is asked for.
        tokens: the numbers of those that are stored.
        k: see `JaccardIndex.search`, and
        threshold: likewise.
    """
    known = [layer.token_of[feature] for layer in layers for feature in features if feature in layer.token_of]
    asked = [*tokens, *known]
    # The last layer first: its visits are later. A state that it has, but does not name, has k before it.
    best: dict[int, float] = {}
    for layer in reversed(layers):
        if len(layer.index):
            for set_id, near in layer.index.search(asked, n_features=len(features), k=k, threshold=threshold):
                best.setdefault(set_id, near)
    for set_id, near in below:
        best.setdefault(set_id, near)
    return sorted(best.items(), key=lambda pair: -pair[1])[:k]
