"""A log that writes notes beside each step, as it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from seasoned.agents.loop.episode import StepLog
from seasoned.types import Decision

__all__ = ["NotedLog"]

About = Callable[[Decision | str], Iterable[tuple[str, Mapping[str, Any]]]]
"""What there is to note about a decision: kinds and bodies."""


@runtime_checkable
class _Noting(Protocol):
    """A log that keeps notes, such as a memory's recorder."""

    def note(self, kind: str, body: Mapping[str, Any], step: int | None = None) -> Any:
        """Keep a note about a step."""
        ...


class NotedLog:
    """Passes everything on to `log`; what is noted about a step is in memory with it, in the same transaction.

    A log that keeps no notes (`StepLog`) gets the steps alone; `about` is asked all the same.

    Args:
        log: a memory's recorder, or a `StepLog`.
        about: says what to note about each executed decision.
    """

    def __init__(self, log: StepLog, about: About) -> None:
        object.__setattr__(self, "_log", log)
        object.__setattr__(self, "_about", about)
        object.__setattr__(self, "_step", 0)

    def record(self, state: str, decision: Decision | str, reward: float = 0.0) -> None:
        """Add an executed step, and what is noted about it."""
        for kind, body in self._about(decision):
            self.note(kind, body, step=self._step)
        self._log.record(state, decision, reward)
        object.__setattr__(self, "_step", self._step + 1)

    def note(self, kind: str, body: Mapping[str, Any], step: int | None = None) -> None:
        """Pass a note on to a log that keeps them."""
        if isinstance(self._log, _Noting):
            self._log.note(kind, body, step=step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._log, name, value)
