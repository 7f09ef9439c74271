"""What followed where examples were shown."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seasoned.core.impression_value import Observed, advantages_over_peers, observed_impressions
from seasoned.policies.examples.example_source import ExampleSource
from seasoned.policies.examples.rejected_steps import rejected
from seasoned.types import Episode, Experience, StepRef
from seasoned.types.impression import Impression, PeerComparison

__all__ = ["MOST", "EpisodeTrust", "ImpressionEffects", "ObservedEffects"]

MOST = 256
"""Of how many of the latest steps at which an example was shown a retrieval reads what followed."""

_REMEMBERED = 1 << 16
_NONE = np.empty(0, dtype=np.int64)


class EpisodeTrust:
    """Says which episodes count.

    Args:
        memory: whose they are.
        trusted: says of an episode whether it is believed; asked once of each; None: all are.
        vouched_by: sources, one of which has to have said something of it; None: nobody has to.
    """

    def __init__(
        self, memory: ExampleSource, trusted: Callable[[Episode], bool] | None, vouched_by: frozenset[str] | None
    ) -> None:
        self._memory = memory
        self._trusted = trusted
        self._vouched_by = vouched_by
        self._ask = functools.lru_cache(_REMEMBERED)(self._asked)

    def __bool__(self) -> bool:
        """Whether there is anything to ask."""
        return self._trusted is not None or self._vouched_by is not None

    def _asked(self, episode_id: str) -> bool:
        return self._trusted is None or bool(self._trusted(self._memory.get(episode_id)))

    def counts(self, episode_id: str, credited: Mapping[str, float]) -> bool:
        """Whether an episode counts, on which these sources have said something."""
        return (self._vouched_by is None or not self._vouched_by.isdisjoint(credited)) and self._ask(episode_id)

    def counting(self, episode_ids: Collection[str]) -> frozenset[str]:
        """Return which of these count."""
        ids = frozenset(episode_ids)
        credited = {} if self._vouched_by is None else self._memory.feedback_totals(ids)
        return frozenset(id_ for id_ in ids if self.counts(id_, credited.get(id_, {})))


class ObservedEffects(NamedTuple):
    """What is known of groups of places.

    Args:
        observed: what followed where each group's members were shown.
        n_shown: at how many steps that was.
        rejected: says which of some steps people or judges rejected.
    """

    observed: Observed
    n_shown: list[int]
    rejected: Callable[[Collection[Experience]], frozenset[StepRef]]


class ImpressionEffects:
    """What followed where examples were shown, as the memory says it now; nothing is remembered.

    A step's advantage is its return less the mean return of the others at its distinct state, and it weighs as
    `seasoned.core.advantages_over_peers` says: a step that is alone there says nothing. Episodes that do not count, and
    what was shown in them, are among neither.
    """

    def __init__(self, memory: ExampleSource, gamma: float, trust: EpisodeTrust) -> None:
        self._memory = memory
        self._gamma = gamma
        self._trust = trust

    def observed(
        self, groups: Sequence[Sequence[StepRef]], *, alike: bool, exclude_task: str | None
    ) -> ObservedEffects:
        """Return what followed where each group's members were shown, at how many steps, and what was rejected.

        Args:
            groups: places that stand for one example.
            alike: a group is one state and action: whatever is the same counts with it, wherever it is stored.
            exclude_task: nothing of what happened in episodes with this task.
        """
        row_of = {place: row for row, group in enumerate(groups) for place in (group[:1] if alike else group)}
        found = self._memory.impressions(
            list(row_of), alike=alike, gamma=self._gamma, exclude_task=exclude_task, most=MOST
        )
        summed = self._summed_up(self._counting(found), row_of, len(groups), exclude_task)
        return ObservedEffects(*summed, self.rejected)

    def rejected(self, steps: Collection[Experience]) -> frozenset[StepRef]:
        """Return which of these steps were rejected; whoever it is that counts, all are listened to here."""
        return rejected(self._memory, steps)

    def all(self) -> tuple[list[StepRef], Observed, list[int]]:
        """Return every place that was shown where it counts, with what `observed` returns of each."""
        found = self._counting(self._memory.impressions(None, gamma=self._gamma))
        row_of = {place: row for row, place in enumerate(dict.fromkeys(one.example for one in found))}
        return list(row_of), *self._summed_up(found, row_of, len(row_of), None)

    def _counting(self, found: list[Impression]) -> list[Impression]:
        """Leave out what episodes say that do not count."""
        if not self._trust:
            return found
        counting = self._trust.counting({one.place[0] for one in found})
        return [one for one in found if one.place[0] in counting]

    def _summed_up(
        self, found: Sequence[Impression], row_of: Mapping[StepRef, int], n: int, exclude_task: str | None
    ) -> tuple[Observed, list[int]]:
        if not found:
            return observed_impressions(_NONE, _NONE, (), (), n), [0] * n
        places = [one.place for one in found]
        beside = self._believed({one.place: one.peers for one in found}, exclude_task)
        rows = [row_of[one.example] for one in found]
        n_shown = Counter(row for row, _ in set(zip(rows, places, strict=True)))
        number_of: dict[str, int] = {}
        episodes = [number_of.setdefault(id_, len(number_of)) for id_, _ in places]
        advantages, weights = _advantages([beside[place] for place in places])
        shares = np.array([one.share for one in found]) * weights
        known = shares > 0.0
        observed = observed_impressions(
            np.array(rows, dtype=np.int64)[known],
            np.array(episodes, dtype=np.int64)[known],
            shares[known],
            advantages[known],
            n,
        )
        return observed, [n_shown[row] for row in range(n)]

    def own(self, places: Sequence[StepRef]) -> tuple[np.ndarray, np.ndarray]:
        """Return the places' own advantages, NaN where nothing is known, and how much each weighs."""
        beside = self._believed(self._memory.peer_comparisons(places, gamma=self._gamma), None)
        alone = PeerComparison(0.0, 0, None)
        advantages, weights = _advantages([beside.get(place, alone) for place in places])
        return np.where(weights > 0.0, advantages, math.nan), weights

    def _believed(
        self, beside: Mapping[StepRef, PeerComparison], exclude_task: str | None
    ) -> Mapping[StepRef, PeerComparison]:
        """Return the same beside only those that count, of the latest 256 at a state."""
        if not self._trust or not beside:
            return beside
        others = self._memory.peer_returns(list(beside), gamma=self._gamma, exclude_task=exclude_task)
        counting = self._trust.counting({id_ for there in others.values() for id_, _ in there})
        found = {}
        for place, own in beside.items():
            returns = [return_ for id_, return_ in others.get(place, ()) if id_ in counting]
            mean = math.fsum(returns) / len(returns) if returns else None
            found[place] = PeerComparison(own.return_, len(returns), mean)
        return found


def _advantages(beside: Sequence[PeerComparison]) -> tuple[np.ndarray, np.ndarray]:
    return advantages_over_peers(
        [one.return_ for one in beside],
        [math.nan if one.others_mean is None else one.others_mean for one in beside],
        [one.n_others for one in beside],
    )
