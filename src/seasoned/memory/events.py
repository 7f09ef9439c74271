"""Feedback as an event: appended, superseded, revoked, never edited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seasoned.memory.canonical import digest

__all__ = ["Event"]


@dataclass(frozen=True, slots=True)
class Event:
    """A feedback event: `reward * weight` is added to its step's reward until it is revoked."""

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

    def record(self) -> dict[str, Any]:
        """Return what was said, without what later happened to it."""
        names = ("id", "episode_id", "step", "reward", "weight", "source", "author", "created_at")
        return {name: getattr(self, name) for name in names}

    def digest(self) -> bytes:
        """Return the hash of what was said."""
        return digest("feedback", self.record())
