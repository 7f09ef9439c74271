"""Threads in which the modes of a gateway work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ModeThreads"]

_THREADS_EACH = 4
_Answer = TypeVar("_Answer")


class ModeThreads:
    """A few threads for each mode of each namespace, so that a slow one takes none from the others.

    Work waits for a thread no longer than its caller does: what nobody waits for is never begun.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str], ThreadPoolExecutor] = {}
        self._turns: dict[tuple[str, str], asyncio.Semaphore] = {}

    async def run(self, namespace: str, mode: str, work: Callable[[], _Answer]) -> _Answer:
        """Return the result of work, in a thread of a mode. If the caller is cancelled, work that was begun goes on."""
        key = namespace, mode
        if key not in self._pools:
            self._pools[key] = ThreadPoolExecutor(_THREADS_EACH, f"seasoned-{mode}")
            self._turns[key] = asyncio.Semaphore(_THREADS_EACH)
        turn, loop = self._turns[key], asyncio.get_running_loop()
        await turn.acquire()
        begun = self._pools[key].submit(work)

        def release(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(turn.release)

        begun.add_done_callback(release)
        return await asyncio.wrap_future(begun)

    def close(self) -> None:
        """End the threads when their work is done."""
        for pool in self._pools.values():
            pool.shutdown(wait=False)
