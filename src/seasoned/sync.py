"""Synchronous calls of async protocols, by one generic wrapper."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Sync"]


class Sync:
    """Calls an object's async methods from synchronous code, on an event loop of its own.

    Every coroutine method is called and awaited; other attributes are passed through. Close it, or use it as a context
    manager. If an event loop is already running, as in a notebook, the wrapper's own loop runs in another thread while
    the running one waits; in a coroutine, `await` the object's own methods instead.

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
            return self._run(lambda: self._runner.run(value(*args, **kwargs)))

        return call

    def __enter__(self) -> Sync:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the target, if it can be closed, and the event loop."""
        if hasattr(self._target, "aclose"):
            self._run(lambda: self._runner.run(_close(self._target)))
        self._run(self._runner.close)

    def _run(self, call: Callable[[], Any]) -> Any:
        """Call `call` here, or in another thread if a loop is running here, since a thread can run only one loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return call()
        with ThreadPoolExecutor(1, thread_name_prefix="seasoned-sync") as thread:
            loop = thread.submit(self._runner.get_loop).result()
            try:
                return thread.submit(call).result()
            except KeyboardInterrupt:  # raised in this thread, which only waits: cancel the tasks of the other one
                thread.shutdown(wait=False, cancel_futures=True)
                for task in asyncio.all_tasks(loop):
                    loop.call_soon_threadsafe(task.cancel)
                raise


async def _close(target: Any) -> None:
    """Close the target; `aclose` of a custom object may be synchronous."""
    result = target.aclose()
    if inspect.isawaitable(result):
        await result
