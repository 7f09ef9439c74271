"""What an agent asks of a memory, and evidence that tells what of it a prompt has shown already."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from seasoned.judges.judge_feedback import FeedbackMemory
from seasoned.protocols import EvidenceSource
from seasoned.types import Episode, Evidence

__all__ = ["AgentMemory", "DiscountedEvidence"]


class AgentMemory(FeedbackMemory, EvidenceSource, Protocol):
    """What an agent asks of a memory; see `seasoned.Memory` for what each does."""

    def episode(
        self, task: str, *, model: str | None, policy: str | None, arm: str | None, subject: str | None
    ) -> AbstractContextManager[Any]:
        """Return a recorder that commits the episode, with its notes, on exit."""
        ...

    def add_many(self, episodes: Sequence[Episode]) -> list[str]:
        """Store episodes, all or none; one that is stored under its id already, with its content, is left alone."""
        ...


@dataclass(frozen=True)
class DiscountedEvidence:
    """A memory some of whose steps the model reads in its prompt: they stay in the estimate, and add no weight to it.

    The model's own policy already follows what it was shown, and a shift by the same steps would count them twice. With
    n the stored steps of an action and s those shown, a policy shifts by `beta * A * (n - s) / n`. A is estimated from
    all of them: what is shown was chosen because it went well, so that the rest alone would make the action look worse
    than it is.

    Args:
        memory: what is asked.
        steps: (episode id, step) of what was shown.
    """

    memory: EvidenceSource
    steps: Collection[tuple[str, int]]

    def evidence(self, state: str, *, shown_steps: Collection[tuple[str, int]] = (), **asked: Any) -> Evidence:
        """Return what all steps know, and how many were not shown; see `seasoned.protocols.EvidenceSource`."""
        return self.memory.evidence(state, shown_steps=frozenset((*self.steps, *shown_steps)), **asked)
