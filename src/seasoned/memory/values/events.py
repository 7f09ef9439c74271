"""Feedback events: appended, superseded or revoked, and never edited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from seasoned.memory.values.content_hash import digest
from seasoned.memory.values.derived_ids import reweighted_at_us, reweighted_event_id
from seasoned.memory.values.row_checksum import row_checksum

__all__ = ["Event"]


@dataclass(frozen=True, slots=True)
class Event:
    """A feedback event: `reward * weight` is added to its step's reward until it is revoked.

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
