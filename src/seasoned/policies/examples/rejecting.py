"""Which steps people rejected: no models, whatever was worse beside them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection

from seasoned.errors import NotFoundError
from seasoned.policies.examples.example import Place
from seasoned.policies.examples.source import ExampleSource
from seasoned.types import Experience, Step

__all__ = ["rejected"]

_ROUNDING = 1e-9


def rejected(memory: ExampleSource, steps: Collection[Experience]) -> frozenset[Place]:
    """Return which of these steps people rejected, as the memory says it now.

    A step is rejected if unrevoked feedback on it, or on its episode, adds up to less than 0: the weighted sum over all
    sources, without those in quarantine. The environment's rewards do not matter: where each step costs something, the
    cheapest may still be a model. One whose episode was erased since is no model either.

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
    said = memory.credits({step.episode_id for step in steps})
    net = {id_: math.fsum(by_source.values()) for id_, by_source in said.items() if by_source}
    played: dict[str, tuple[Step, ...]] = {}  # with the environment's rewards
    for id_, total in net.items():
        if total >= -_ROUNDING:
            with contextlib.suppress(NotFoundError):
                played[id_] = tuple(memory.get(id_).steps)

    def is_rejected(step: Experience) -> bool:
        if step.episode_id not in net:
            return False
        own = played.get(step.episode_id)
        return own is None or step.reward - own[step.step].reward < -_ROUNDING

    return frozenset((step.episode_id, step.step) for step in steps if is_rejected(step))
