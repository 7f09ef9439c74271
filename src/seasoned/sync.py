"""One generic way to call async protocols from synchronous code, so that no body is written twice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Sync"]


class Sync:
    """Calls an object's async methods from synchronous code, on an event loop of its own.

    Every coroutine method is called and awaited; everything else passes through. Close it, or use it as a context.
    Where an event loop runs already, as in a notebook, its own loop runs in a thread beside it, and the other one
    waits; in a coroutine, `await` the object's own methods instead.

    Example:
        >>> class Clock:
        ...     async def tick(self) -> str:
        ...         return "tock"
        >>> with Sync(Clock()) as clock:
        ...     clock.tick()
        'tock'
    """

    def __init__(self, target: object) -> None:
        self._target: Any = target
        self._runner = asyncio.Runner()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not inspect.iscoroutinefunction(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._beside(lambda: self._runner.run(value(*args, **kwargs)))

        return call

    def __enter__(self) -> Sync:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the target, if it can be closed, and the event loop."""
        if hasattr(self._target, "aclose"):
            self._beside(lambda: self._runner.run(_closed(self._target)))
        self._beside(self._runner.close)

    def _beside(self, call: Callable[[], Any]) -> Any:
        """Call it here, or in a thread where a loop runs here: a thread has one running loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return call()
        with ThreadPoolExecutor(1, thread_name_prefix="seasoned-sync") as thread:
            loop = thread.submit(self._runner.get_loop).result()
            try:
                return thread.submit(call).result()
            except KeyboardInterrupt:  # heard here, where nothing but waiting is done: end what the other thread does
                thread.shutdown(wait=False, cancel_futures=True)
                for task in asyncio.all_tasks(loop):
                    loop.call_soon_threadsafe(task.cancel)
                raise


async def _closed(target: Any) -> None:
    """Close what can be closed; one of somebody's own may close at once."""
    closing = target.aclose()
    if inspect.isawaitable(closing):
        await closing
