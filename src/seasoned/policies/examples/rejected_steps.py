"""Which steps people or judges rejected: no models, whatever was worse beside them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from seasoned.policies.examples.example_source import ExampleSource
from seasoned.types import LATE_REWARD, Experience, StepRef

__all__ = ["rejected"]

_ROUNDING = 1e-12


def rejected(memory: ExampleSource, steps: Collection[Experience]) -> frozenset[StepRef]:
    """Return which of these steps people or judges rejected, as the memory says it now.

    A step is rejected if unrevoked feedback on it adds up to less than 0, or feedback on it and on all that followed in
    its episode does: the weighted sum over all sources, people and judges alike, without those in quarantine. So a bad
    end rejects what led to it, but not what was praised for itself; and what followed a correction stands. An episode's
    first step is rejected if the whole episode was.

    The environment's rewards do not matter: where each step costs something, the cheapest may still be a model. Nor do
    they where they come late, and are stored as feedback (its source is `seasoned.types.LATE_REWARD`). One whose
    episode was erased since is no model either.

    Args:
        memory: whose they are.
        steps: stored ones.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add(Episode("buy a lamp", [Step("page:cart", "click(back)", -1.0)], "e1"))
        ...     steps = memory.experiences([("e1", 0)]).values()
        ...     before = rejected(memory, steps)
        ...     _ = memory.feedback("e1", -1.0, source="human")
        ...     before, rejected(memory, memory.experiences([("e1", 0)]).values())
        (frozenset(), frozenset({('e1', 0)}))
    """
    if not steps:
        return frozenset()
    said = memory.step_feedback({step.episode_id for step in steps}, but_sources={LATE_REWARD})

    def is_rejected(step: Experience) -> bool:
        of_episode = said.get(step.episode_id)
        if of_episode is None:
            return True
        from_here = [one for n, there in of_episode.items() if n >= step.step for one in there]
        return _is_against(of_episode.get(step.step, ())) or _is_against(from_here)

    return frozenset((step.episode_id, step.step) for step in steps if is_rejected(step))


def _is_against(said: Sequence[float]) -> bool:
    """Whether it adds up to less than 0, and not for rounding alone."""
    return math.fsum(said) < -_ROUNDING * math.fsum(map(abs, said))
