"""Memories, as policies and agents use them: the protocols."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from seasoned.types import Evidence, EvidenceQuery

__all__ = ["EvidenceSource"]


@runtime_checkable
class EvidenceSource(Protocol):
    """A memory that returns evidence about a state; all that a policy needs of a memory."""

    def evidence(self, query: EvidenceQuery) -> Evidence:
        """Return the evidence from the `query.k` steps (or distinct states) most similar to `query.state`.

        With `backup` the totals are of values backed up through the memory's graph. With `propensity_floor` a step
        weighs `1 / max(propensity, floor)`. `unshown` in the evidence counts the steps that are not in `shown_steps`,
        which holds (episode id, step); if `shown_steps` is empty it may be None.
        """
        ...
