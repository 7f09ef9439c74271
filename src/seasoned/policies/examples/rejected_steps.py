"""Steps that people or judges rejected: they are never models."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TypeAlias

from seasoned.protocols import ReadableMemory
from seasoned.types import LATE_REWARD, Experience, StepRef

__all__ = ["KnownFeedback", "rejected_steps"]

_ROUNDING = 1e-12


KnownFeedback: TypeAlias = dict[str, dict[int, list[float]] | None]
"""The amounts of feedback by episode and step, of the episodes that were read; None for one that is not stored."""


def rejected_steps(
    memory: ReadableMemory, steps: Collection[Experience], *, known: KnownFeedback | None = None
) -> frozenset[StepRef]:
    """Return those of these steps that people or judges rejected, by the memory's current feedback.

    A step is rejected if the unrevoked feedback on it adds up to less than 0, or if the feedback on it and on all later
    steps of its episode does. The sum is weighted, and over all sources, people and judges alike, except those in
    quarantine. So a bad end rejects the steps before it, unless praise of later steps outweighs it, and steps after a
    correction are not rejected. The first step is rejected if the whole episode was.

    The environment's rewards do not count: if each step has a cost, the cheapest may still be a model. Late rewards,
    which are stored as feedback of the source `seasoned.types.LATE_REWARD`, do not count either. A step of an episode
    that was erased meanwhile is rejected.

    Args:
        memory: the memory that holds the steps.
        steps: stored steps.
        known: feedback that was read before, which is not read again; what is read is added.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add(Episode("buy a lamp", [Step("page:cart", "click(back)", -1.0)], "e1"))
        ...     steps = memory.experiences([("e1", 0)]).values()
        ...     before = rejected_steps(memory, steps)
        ...     _ = memory.feedback("e1", -1.0, source="human")
        ...     before, rejected_steps(memory, memory.experiences([("e1", 0)]).values())
        (frozenset(), frozenset({('e1', 0)}))
    """
    if not steps:
        return frozenset()
    feedback = {} if known is None else known
    new = {step.episode_id for step in steps} - feedback.keys()
    if new:
        feedback |= dict.fromkeys(new)
        feedback |= memory.step_feedback(new, but_sources={LATE_REWARD})

    def is_rejected(step: Experience) -> bool:
        by_step = feedback[step.episode_id]
        if by_step is None:
            return True
        from_here = [amount for n, amounts in by_step.items() if n >= step.step for amount in amounts]
        return _is_negative(by_step.get(step.step, ())) or _is_negative(from_here)

    return frozenset((step.episode_id, step.step) for step in steps if is_rejected(step))


def _is_negative(amounts: Sequence[float]) -> bool:
    """Return whether the amounts add up to less than 0, beyond rounding."""
    return math.fsum(amounts) < -_ROUNDING * math.fsum(map(abs, amounts))
