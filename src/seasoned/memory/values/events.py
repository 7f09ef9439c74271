"""Feedback as an event: appended, superseded, revoked, never edited."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from typing import Any

from seasoned.memory.values.content_hash import digest

__all__ = ["ALTERNATIVE", "Event", "feedback_id", "first_id"]

ALTERNATIVE = "alternative"
"""The arm of an answer that somebody gave, and nobody executed: an episode that feedback has made."""

_WEIGHED = re.compile(r"~([0-9a-f]{16})[0-9a-f]{16}\Z")


def first_id(event_id: str) -> str:
    """Return the id of the event that was given, of one that weighs it anew; of one that was given, its own.

    Example:
        >>> first_id("a~000642f3c1d8e0003fe0000000000000"), first_id("a")
        ('a', 'a')
    """
    return _WEIGHED.sub("", event_id)


def feedback_id(event_id: str) -> str:
    """Return the id of the feedback that an event of typed feedback comes from, however it was weighed since.

    Example:
        >>> feedback_id("a.0"), feedback_id("a.0~000642f3c1d8e0003fe0000000000000")
        ('a', 'a')
    """
    return first_id(event_id).rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Event:
    """A feedback event: `reward * weight` is added to its step's reward until it is revoked.

    `kind`: of the typed feedback that it comes from (see `Memory.feedback`); None for a bare reward.
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
        """Return what was said, without what later happened to it."""
        names = ("id", "episode_id", "step", "reward", "weight", "source", "author", "created_at")
        return {name: getattr(self, name) for name in names} | ({} if self.kind is None else {"kind": self.kind})

    def digest(self) -> bytes:
        """Return the hash of what was said."""
        return digest("feedback", self.record())

    @property
    def weighed_us(self) -> int:
        """When it weighed what had been said, in microseconds since 1970; -1 for an event that was given."""
        found = _WEIGHED.search(self.id)
        return int(found[1], 16) if found else -1

    def weighed(self, weight: float, at_us: int) -> Event:
        """Return what was said, as it counts with another weight; it was still said when it was said.

        The id tells the first event, then when it was weighed, then the weight. So it sorts after those of earlier
        weighings, and one id has one content, in whichever store it was made.
        """
        id_ = f"{first_id(self.id)}~{at_us:016x}{struct.pack('>d', weight).hex()}"
        return replace(self, id=id_, weight=weight, revoked_at=None, superseded_by=None)
