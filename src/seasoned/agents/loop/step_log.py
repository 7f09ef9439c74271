"""Logs of a running episode: the protocol, a log in memory, and a log that adds notes to each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from seasoned.types import Decision, Ending, Step

__all__ = ["AnnotatedLog", "EpisodeLog", "StepLog", "StepNotes"]

StepNotes = Callable[[Decision | str], Iterable[tuple[str, Mapping[str, Any]]]]
"""Returns the notes about an executed decision, each a kind and a body."""


class EpisodeLog(Protocol):
    """Records the steps and the notes of one episode: a memory's recorder, or a `StepLog`."""

    ending: Ending
    final_state: str | None

    @property
    def steps(self) -> Sequence[Step]:
        """The executed steps so far."""
        ...

    def record(self, state: str, decision: Decision | str, reward: float = 0.0) -> None:
        """Add an executed step."""
        ...

    def note(self, kind: str, body: Mapping[str, Any], step: int | None = None) -> None:
        """Add a note about the episode, or about a step: a recorded one, or the next."""
        ...


@dataclass
class StepLog:
    """An `EpisodeLog` in memory, which can be copied into another log when the episode has ended.

    Example:
        >>> log = StepLog()
        >>> log.record("page:cart", "click(pay)", 1.0)
        >>> log.steps[0].action
        'click(pay)'
    """

    ending: Ending = "terminated"
    final_state: str | None = None
    _steps: list[Step] = field(default_factory=list, init=False)
    _decisions: list[Decision | str] = field(default_factory=list, init=False, repr=False)
    _notes: list[tuple[str, Mapping[str, Any], int | None]] = field(default_factory=list, init=False, repr=False)

    @property
    def steps(self) -> Sequence[Step]:
        """The executed steps so far, without priors."""
        return tuple(self._steps)

    def record(self, state: str, decision: Decision | str, reward: float = 0.0) -> None:
        """Add an executed step."""
        action = decision.action if isinstance(decision, Decision) else decision
        self._steps.append(Step(state, action, reward))
        self._decisions.append(decision)

    def note(self, kind: str, body: Mapping[str, Any], step: int | None = None) -> None:
        """Add a note about the episode, or about one of its steps."""
        self._notes.append((kind, body, step))

    def copy_to(self, log: EpisodeLog) -> None:
        """Record every step, with its decision, and every note in `log`."""
        for step, decision in zip(self._steps, self._decisions, strict=True):
            log.record(step.state, decision, step.reward)
        for kind, body, number in self._notes:
            log.note(kind, body, step=number)
        log.ending, log.final_state = self.ending, self.final_state


class AnnotatedLog:
    """An `EpisodeLog` that forwards to another one, and adds notes to each step as it is recorded.

    A memory's recorder commits the notes with their step, in one transaction.

    Args:
        log: records the steps and the notes.
        notes_of: returns the notes about each executed decision.

    Example:
        >>> log = StepLog()
        >>> annotated = AnnotatedLog(log, lambda decision: [("decided", {"by": "student"})])
        >>> annotated.record("page:cart", "click(pay)")
        >>> len(log.steps)
        1
    """

    def __init__(self, log: EpisodeLog, notes_of: StepNotes) -> None:
        self._log = log
        self._notes_of = notes_of
        self._n_steps = 0

    @property
    def ending(self) -> Ending:
        """The ending of the episode."""
        return self._log.ending

    @ending.setter
    def ending(self, ending: Ending) -> None:
        self._log.ending = ending

    @property
    def final_state(self) -> str | None:
        """The state after the last step; None if it is not known."""
        return self._log.final_state

    @final_state.setter
    def final_state(self, state: str | None) -> None:
        self._log.final_state = state

    @property
    def steps(self) -> Sequence[Step]:
        """The executed steps so far."""
        return self._log.steps

    def record(self, state: str, decision: Decision | str, reward: float = 0.0) -> None:
        """Add an executed step and its notes."""
        for kind, body in self._notes_of(decision):
            self._log.note(kind, body, step=self._n_steps)
        self._log.record(state, decision, reward)
        self._n_steps += 1

    def note(self, kind: str, body: Mapping[str, Any], step: int | None = None) -> None:
        """Add a note about the episode, or about one of its steps."""
        self._log.note(kind, body, step=step)
