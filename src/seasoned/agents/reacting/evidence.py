"""What an agent asks of a memory, and evidence without the steps that a prompt already showed."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from seasoned.judges.judging import FeedbackMemory
from seasoned.protocols import EvidenceSource
from seasoned.types import Evidence

__all__ = ["AgentMemory", "Unshown"]


class AgentMemory(FeedbackMemory, EvidenceSource, Protocol):
    """What an agent asks of a memory; see `seasoned.Memory` for what each does."""

    def episode(
        self,
        task: str,
        *,
        model: str | None,
        policy: str | None,
        arm: str | None,
        subject: str | None,
    ) -> AbstractContextManager[Any]:
        """Return a recorder that commits the episode, with its notes, on exit."""
        ...


@dataclass(frozen=True)
class Unshown:
    """A memory in which some steps weigh nothing: those that the model reads in its prompt.

    The model's own policy already follows what it was shown. A shift by the same steps would count them twice; this is
    an `EvidenceSource` without them, and the rest is summed anew.

    Args:
        memory: what is asked.
        steps: (episode id, step) of what was shown.
    """

    memory: EvidenceSource
    steps: Collection[tuple[str, int]]

    def evidence(self, state: str, *, exclude_steps: Collection[tuple[str, int]] = (), **asked: Any) -> Evidence:
        """Return what the other steps know; see `seasoned.protocols.EvidenceSource`."""
        return self.memory.evidence(state, exclude_steps=frozenset((*self.steps, *exclude_steps)), **asked)
