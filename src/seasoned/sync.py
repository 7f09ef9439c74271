"""One generic way to call async protocols from synchronous code, so that no body is written twice."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

__all__ = ["Sync"]


class Sync:
    """Calls an object's async methods from synchronous code, on an event loop of its own.

    Every coroutine method is called and awaited; everything else passes through. Close it, or use it as a context.

    Example:
        >>> class Clock:
        ...     async def tick(self) -> str:
        ...         return "tock"
        >>> with Sync(Clock()) as clock:
        ...     clock.tick()
        'tock'
    """

    def __init__(self, target: object) -> None:
        self._target = target
        self._runner = asyncio.Runner()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not inspect.iscoroutinefunction(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._runner.run(value(*args, **kwargs))

        return call

    def __enter__(self) -> Sync:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the target, if it can be closed, and the event loop."""
        if hasattr(self._target, "aclose"):
            self._runner.run(self._target.aclose())
        self._runner.close()
