"""Feedback events: appended, superseded or revoked, and never edited."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from seasoned.memory.values.content_hash import digest
from seasoned.memory.values.derived_ids import reweighted_at_us, reweighted_event_id
from seasoned.memory.values.row_checksum import row_checksum
from seasoned.types import Choice, Label

__all__ = ["Event", "EventReward", "feedback_sum"]


@dataclass(frozen=True, slots=True)
class Event:
    """A feedback event: part of its step's reward until it is revoked (`feedback_sum`).

    Args:
        id: names it in its namespace.
        episode_id: the episode.
        step: index of the step.
        reward: in reward units.
        weight: factor of the reward.
        source: `human`, `judge`, `tests`, ...
        author: the person or program of that source.
        created_at: seconds since 1970.
        revoked_at: when it was revoked or superseded; None for an unrevoked event.
        superseded_by: the id of the event that superseded it.
        kind: the kind of the typed feedback that it comes from (see `Memory.feedback`); None for a bare reward.
    """

    id: str
    episode_id: str
    step: int
    reward: float
    weight: float
    source: str
    author: str | None
    created_at: float
    revoked_at: float | None = None
    superseded_by: str | None = None
    kind: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the event as plain data, without its revocation."""
        names = ("id", "episode_id", "step", "reward", "weight", "source", "author", "created_at")
        return {name: getattr(self, name) for name in names} | ({} if self.kind is None else {"kind": self.kind})

    def digest(self) -> bytes:
        """Return the hash of `record`."""
        return digest("feedback", self.record())

    def checksum(self) -> bytes:
        """Return the checksum of the event's row."""
        return row_checksum("feedback", self.digest(), self.revoked_at, self.superseded_by is not None)

    @property
    def reweighted_at_us(self) -> int:
        """The time of reweighting in microseconds since 1970; -1 for an original event."""
        return reweighted_at_us(self.id)

    def reweighted(self, weight: float, at_us: int) -> Event:
        """Return this event with another weight; `created_at` stays the time of the original event."""
        id_ = reweighted_event_id(self.id, weight, at_us)
        return replace(self, id=id_, weight=weight, revoked_at=None, superseded_by=None)


class EventReward(NamedTuple):
    """The part of a feedback event that sums need; `visit` is its step."""

    visit: int
    reward: float
    weight: float
    kind: str | None


def feedback_sum(events: Collection[EventReward], *, alone: bool) -> float:
    """Return what the events that count on one step add to its reward: `sum weight * reward`, but for labels.

    Each label is a verdict on the same question, so labels count by their mean, weighted by the events' weights: nine
    people who name the executed option and one who names another make 0.9, not 9. A label says how good the option of a
    decision was, and so does a reward or a thumb beside it: where the step is the only one of its episode, the label
    replaces them. On the last of several steps they are about the whole episode, and are added. A choice is a
    comparison, and is added too.

    Args:
        events: that are neither revoked nor in quarantine.
        alone: whether the step is the only one of its episode.

    Example:
        >>> reward = EventReward(0, 0.7, 1.0, None)
        >>> right, wrong = EventReward(0, 1.0, 1.0, "label"), EventReward(0, 0.0, 1.0, "label")
        >>> feedback_sum([reward], alone=True), feedback_sum([reward, right, right, right, wrong], alone=True)
        (0.7, 0.75)
        >>> feedback_sum([reward, right], alone=False)
        1.7
    """
    labels = [event for event in events if event.kind == Label.kind and event.weight]
    if not labels:
        return math.fsum(event.reward * event.weight for event in events)
    others = [event for event in events if event.kind != Label.kind and (event.kind == Choice.kind or not alone)]
    mean = math.fsum(event.reward * event.weight for event in labels) / math.fsum(event.weight for event in labels)
    return math.fsum([mean, *(event.reward * event.weight for event in others)])
