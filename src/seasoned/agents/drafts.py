"""An episode's steps, kept until it is known whether they count."""

from __future__ import annotations

from seasoned.agents.episode import StepLog
from seasoned.types import Decision

__all__ = ["Draft"]


class Draft(StepLog):
    """Steps with their decisions, to be recorded when the episode has ended; or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[tuple[str, Decision | str, float]] = []

    def record(self, state: str, decision: Decision | str, reward: float = 0.0) -> None:
        """Keep an executed step."""
        super().record(state, decision, reward)
        self._records.append((state, decision, reward))

    def copy(self, log: StepLog) -> None:
        """Record everything in `log`."""
        for state, decision, reward in self._records:
            log.record(state, decision, reward)
        log.ending, log.final_state = self.ending, self.final_state
