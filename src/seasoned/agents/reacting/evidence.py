"""What an agent asks of a memory, and evidence that tells what of it a prompt has shown already."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from seasoned.judges.judging import FeedbackMemory
from seasoned.protocols import EvidenceSource
from seasoned.types import Evidence, normalize_action

__all__ = ["AgentMemory", "Unshown"]

_VALUING = ("backup", "propensity_floor")  # of how steps are valued, not of which


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

    def evidence(self, state: str, **asked: Any) -> Evidence:
        """Return what all steps know, and how many were not shown; see `seasoned.protocols.EvidenceSource`."""
        known = self.memory.evidence(state, **asked)
        if not self.steps or not known.n_steps:
            return known
        asked = {name: value for name, value in asked.items() if name not in _VALUING}
        left_out = frozenset((*self.steps, *asked.pop("exclude_steps", ())))
        rest = self.memory.evidence(state, **asked, exclude_steps=left_out)
        n_left = {normalize_action(action): n for action, n in zip(rest.actions, rest.counts.tolist(), strict=True)}
        left = [n_left.get(normalize_action(action), 0.0) for action in known.actions]
        # Where a state drops out because all of it was shown, a farther one takes its place among the k nearest.
        return dataclasses.replace(known, unshown=np.minimum(left, known.counts))
