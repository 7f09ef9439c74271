"""What an environment gave back, before a loop believes it."""

from __future__ import annotations

import inspect
from typing import Literal

from seasoned.errors import EnvError, excerpt
from seasoned.protocols import Environment, Observation

__all__ = ["observed"]

_WRITTEN = {"reset": "async def reset(self, *, seed=None)", "step": "async def step(self, action)"}


async def observed(environment: Environment, method: Literal["reset", "step"], given: object) -> Observation:
    """Await what `environment.reset(...)` or `environment.step(...)` gave, and return the observation.

    Raises:
        EnvError: it cannot be awaited, or what it came to is no `Observation`; or what the environment raised.

    Example:
        >>> import asyncio
        >>> from seasoned.envs import Grid
        >>> world = Grid(["S.G"])
        >>> asyncio.run(observed(world, "reset", world.reset(seed=0))).admissible
        ('east',)
    """
    seen = await given if inspect.isawaitable(given) else given
    if not inspect.isawaitable(given) or not isinstance(seen, Observation):
        raise EnvError(
            f"{environment.name}: {method} gave {excerpt(seen)}",
            f"{method} is `async def` and returns an Observation",
            f"Write `{_WRITTEN[method]}` and return Observation(state, admissible, ...).",
        )
    return seen
