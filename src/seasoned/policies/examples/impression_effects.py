"""Effects of impressions: the outcomes of the steps at which examples were shown."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seasoned.core.impression_value import Observed, advantages_over_peers, observed_impressions
from seasoned.policies.examples.rejected_steps import KnownFeedback, rejected_steps
from seasoned.protocols import ReadableMemory
from seasoned.types import Episode, Experience, StepRef
from seasoned.types.impression import Impression, PeerComparison

__all__ = ["MAX_IMPRESSIONS", "EpisodeTrust", "ImpressionEffects", "ObservedEffects"]

MAX_IMPRESSIONS = 256
"""The number of the latest impressions of an example whose outcomes a retrieval reads."""

_CACHED_ANSWERS = 1 << 16


class EpisodeTrust:
    """Decides which episodes count.

    Args:
        memory: the memory that holds the episodes.
        trusted: returns whether an episode is trusted; called once per episode; None: all are.
        vouched_by: sources of feedback; an episode counts only with feedback from one of them. None: no such condition.
    """

    def __init__(
        self, memory: ReadableMemory, trusted: Callable[[Episode], bool] | None, vouched_by: frozenset[str] | None
    ) -> None:
        self._memory = memory
        self._trusted = trusted
        self._vouched_by = vouched_by
        self._is_trusted = functools.lru_cache(_CACHED_ANSWERS)(self._call_trusted)

    def __bool__(self) -> bool:
        """Whether there is a condition at all."""
        return self._trusted is not None or self._vouched_by is not None

    def _call_trusted(self, episode_id: str) -> bool:
        return self._trusted is None or bool(self._trusted(self._memory.get(episode_id)))

    def counts(self, episode_id: str, feedback_totals: Mapping[str, float]) -> bool:
        """Return whether an episode counts; `feedback_totals` is its feedback by source."""
        vouched = self._vouched_by is None or not self._vouched_by.isdisjoint(feedback_totals)
        return vouched and self._is_trusted(episode_id)

    def counting(self, episode_ids: Collection[str]) -> frozenset[str]:
        """Return those of these episodes that count."""
        ids = frozenset(episode_ids)
        totals = {} if self._vouched_by is None else self._memory.feedback_totals(ids)
        return frozenset(id_ for id_ in ids if self.counts(id_, totals.get(id_, {})))


class ObservedEffects(NamedTuple):
    """The effects of groups of steps that were shown.

    Args:
        observed: the outcomes of the steps at which each group's members were shown.
        n_shown: the number of these steps, by group.
        rejected: returns those of some steps that people or judges rejected.
    """

    observed: Observed
    n_shown: list[int]
    rejected: Callable[[Collection[Experience]], frozenset[StepRef]]


class ImpressionEffects:
    """Reads the outcomes of the steps at which examples were shown from the memory; nothing is cached.

    A step's advantage is its return less the mean return of the other steps at its distinct state, with the weight of
    `seasoned.core.impression_value.advantages_over_peers`: a step without others has weight 0. Episodes that do not
    count, and impressions in them, are left out of both.
    """

    def __init__(self, memory: ReadableMemory, gamma: float, trust: EpisodeTrust) -> None:
        self._memory = memory
        self._gamma = gamma
        self._trust = trust

    def observed(
        self,
        groups: Sequence[Sequence[StepRef]],
        *,
        alike: bool,
        exclude_task: str | None,
        feedback: KnownFeedback | None = None,
    ) -> ObservedEffects:
        """Return the effects of each group.

        Args:
            groups: the steps of each example.
            alike: a group is one state and action: other stored steps with both count with it.
            exclude_task: leave out the episodes of this task.
            feedback: on episodes that were read before; see `rejected_steps`.
        """
        row_of = {place: row for row, group in enumerate(groups) for place in (group[:1] if alike else group)}
        found = self._memory.impressions(
            list(row_of), alike=alike, gamma=self._gamma, exclude_task=exclude_task, most=MAX_IMPRESSIONS
        )
        summed = self._sums(self._counting(found), row_of, len(groups), exclude_task)
        return ObservedEffects(*summed, functools.partial(self.rejected, known=feedback))

    def rejected(self, steps: Collection[Experience], *, known: KnownFeedback | None = None) -> frozenset[StepRef]:
        """Return those of these steps that were rejected, by feedback on any episode, trusted or not."""
        return rejected_steps(self._memory, steps, known=known)

    def all(self) -> tuple[list[StepRef], Observed, list[int]]:
        """Return every step that was shown in an episode that counts, with its outcomes and number of impressions."""
        found = self._counting(self._memory.impressions(None, gamma=self._gamma))
        row_of = {place: row for row, place in enumerate(dict.fromkeys(one.example for one in found))}
        return list(row_of), *self._sums(found, row_of, len(row_of), None)

    def _counting(self, found: list[Impression]) -> list[Impression]:
        """Return the impressions in episodes that count."""
        if not self._trust:
            return found
        counting = self._trust.counting({one.place[0] for one in found})
        return [one for one in found if one.place[0] in counting]

    def _sums(
        self, found: Sequence[Impression], row_of: Mapping[StepRef, int], n: int, exclude_task: str | None
    ) -> tuple[Observed, list[int]]:
        if not found:
            return Observed(np.zeros(n), np.zeros(n), np.zeros(n)), [0] * n
        places = [one.place for one in found]
        comparisons = self._trusted_peers({one.place: one.peers for one in found}, exclude_task)
        rows = [row_of[one.example] for one in found]
        n_shown = Counter(row for row, _ in set(zip(rows, places, strict=True)))
        number_of: dict[str, int] = {}
        episodes = [number_of.setdefault(id_, len(number_of)) for id_, _ in places]
        advantages, weights = _advantages([comparisons[place] for place in places])
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
        """Return the steps' own advantages, NaN without peers, and their weights."""
        comparisons = self._trusted_peers(self._memory.peer_comparisons(places, gamma=self._gamma), None)
        without_peers = PeerComparison(0.0, 0, None)
        advantages, weights = _advantages([comparisons.get(place, without_peers) for place in places])
        return np.where(weights > 0.0, advantages, math.nan), weights

    def _trusted_peers(
        self, comparisons: Mapping[StepRef, PeerComparison], exclude_task: str | None
    ) -> Mapping[StepRef, PeerComparison]:
        """Return the comparisons with only those peers that count, of the latest 256 at a state."""
        if not self._trust or not comparisons:
            return comparisons
        peers = self._memory.peer_returns(list(comparisons), gamma=self._gamma, exclude_task=exclude_task)
        counting = self._trust.counting({id_ for returns in peers.values() for id_, _ in returns})
        trusted = {}
        for place, own in comparisons.items():
            returns = [return_ for id_, return_ in peers.get(place, ()) if id_ in counting]
            mean = math.fsum(returns) / len(returns) if returns else None
            trusted[place] = PeerComparison(own.return_, len(returns), mean)
        return trusted


def _advantages(comparisons: Sequence[PeerComparison]) -> tuple[np.ndarray, np.ndarray]:
    return advantages_over_peers(
        [one.return_ for one in comparisons],
        [math.nan if one.others_mean is None else one.others_mean for one in comparisons],
        [one.n_others for one in comparisons],
    )
