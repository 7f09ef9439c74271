"""Who decided each step of an episode: counted, and noted beside the step in memory."""

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
    """Return what there is to note about who decided a step: nothing, unless a `CascadeReader` was asked.

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
    """A `seasoned.agents.Play` for a `CascadeReader`: it counts who decided, and notes it beside each step.

    What a step's note says is in memory with the step, in the same transaction, where the log keeps notes (a memory's
    recorder does; `play_run(keep_aborted=False)` has a log of its own, and does not). So a teacher's answer is stored
    as the step that was executed, with what it earned, and its own provenance: `memory.notes(kind="decided")`.

    Args:
        play: plays the episode.
        steps: by episode played, its steps.
        teacher_steps: by episode played, those that the teacher decided.

    Raises:
        InputError: when it plays: the reader is no `CascadeReader`.
    """

    play: Play = play_episode
    steps: list[int] = field(default_factory=list)
    teacher_steps: list[int] = field(default_factory=list)

    async def __call__(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        """Play, and return how the episode went; an episode that breaks off is not counted."""
        if not isinstance(reader, CascadeReader):
            raise InputError(
                f"a reader of the kind {type(reader).__name__}", "a cascade says who decided", "Pass a CascadeReader."
            )
        by: list[str] = []

        def about(decision: Decision | str) -> Iterable[tuple[str, Mapping[str, Any]]]:
            notes = decision_notes(decision)
            by.extend([body["by"] for _, body in notes] or ["unknown"])
            return notes

        result = await self.play(environment, policy, reader, AnnotatedLog(log, about), seed=seed)
        self.steps.append(len(by))
        self.teacher_steps.append(by.count("teacher"))
        return result
