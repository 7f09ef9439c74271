"""An episode's steps, kept until it is known whether they count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seasoned.agents.loop.episode import StepLog
from seasoned.types import Decision

__all__ = ["Draft"]


class Draft(StepLog):
    """Steps with their decisions and notes, to be recorded when the episode has ended; or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[tuple[str, Decision | str, float]] = []
        self._notes: list[tuple[str, Mapping[str, Any], int | None]] = []

    def record(self, state: str, decision: Decision | str, reward: float = 0.0) -> None:
        """Keep an executed step."""
        super().record(state, decision, reward)
        self._records.append((state, decision, reward))

    def note(self, kind: str, body: Mapping[str, Any], step: int | None = None) -> None:
        """Keep what was said or thought about the episode, or about one of its steps."""
        self._notes.append((kind, body, step))

    def copy(self, log: StepLog) -> None:
        """Record everything in `log`; notes only where it keeps them."""
        for state, decision, reward in self._records:
            log.record(state, decision, reward)
        note: Any = getattr(log, "note", None)
        for kind, body, step in self._notes if note is not None else ():
            note(kind, body, step=step)
        log.ending, log.final_state = self.ending, self.final_state
