"""Attribution of steps to student and teacher: counts per episode, and notes in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seasoned.agents.loop.arm import Play
from seasoned.agents.loop.episode import play_episode
from seasoned.agents.loop.step_log import AnnotatedLog, EpisodeLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.errors import InputError
from seasoned.policies.cascade import CascadePrior, CascadeReader
from seasoned.protocols import Chooser, Environment, Policy, PriorReader
from seasoned.types import DECIDED, DecidedBody, Decision

__all__ = ["CascadePlay", "decision_notes"]


def decision_notes(decision: Decision | str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the note about the model that decided a step; none, unless a `CascadeReader` read its prior.

    Example:
        >>> decision_notes("go east")
        []
    """
    prior = decision.prior if isinstance(decision, Decision) else None
    if not isinstance(prior, CascadePrior):
        return []
    body = DecidedBody(prior.decided_by, prior.model, prior.reason, prior.agreement, prior.evidence)
    return [(DECIDED, body.record())]


@dataclass
class CascadePlay:
    """A `seasoned.agents.Play` for a `CascadeReader`: it counts the steps of student and teacher, and notes them.

    A memory stores the note with its step, in the same transaction. A teacher's answer is therefore stored as the
    executed step, with its reward and its provenance: `memory.notes(kind="decided")`.

    Args:
        play: plays the episode.
        steps: number of steps of each played episode.
        teacher_steps: number of steps of each played episode that the teacher decided.

    Raises:
        InputError: when it plays, if the reader is not a `CascadeReader`.
    """

    play: Play = play_episode
    steps: list[int] = field(default_factory=list)
    teacher_steps: list[int] = field(default_factory=list)

    async def __call__(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        """Play, and return the result of the episode; an episode that raises an error is not counted."""
        if not isinstance(reader, CascadeReader):
            raise InputError(
                f"reader = {type(reader).__name__}", "reader must be a CascadeReader", "Pass a CascadeReader."
            )
        deciders: list[str] = []

        def attribution(decision: Decision | str) -> Iterable[tuple[str, Mapping[str, Any]]]:
            notes = decision_notes(decision)
            deciders.extend([body["by"] for _, body in notes] or ["unknown"])
            return notes

        result = await self.play(environment, policy, reader, AnnotatedLog(log, attribution), seed=seed)
        self.steps.append(len(deciders))
        self.teacher_steps.append(deciders.count("teacher"))
        return result
