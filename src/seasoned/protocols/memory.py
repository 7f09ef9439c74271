"""Memories, as policies and agents use them: the protocols."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Protocol, runtime_checkable

from seasoned.types import Backup, Evidence

__all__ = ["EvidenceSource"]


@runtime_checkable
class EvidenceSource(Protocol):
    """A memory that returns evidence about a state; all that a policy needs of a memory."""

    def evidence(
        self,
        state: str,
        *,
        k: int,
        unit: Literal["steps", "states"],
        threshold: float,
        gamma: float | None,
        similarity_power: float = 0.0,
        decay: float = 1.0,
        exclude_task: str | None = None,
        backup: Backup | None = None,
        propensity_floor: float | None = None,
        shown_steps: Collection[tuple[str, int]] = (),
    ) -> Evidence:
        """Return the evidence from the `k` steps (or distinct states) most similar to `state`.

        With `backup` the totals are of values backed up through the memory's graph. With `propensity_floor` a step
        weighs `1 / max(propensity, floor)`. `unshown` in the evidence counts the steps that are not in `shown_steps`,
        which holds (episode id, step); if `shown_steps` is empty it may be None.
        """
        ...
