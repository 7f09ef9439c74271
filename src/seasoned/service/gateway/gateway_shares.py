"""Shares of calls in a gateway: places among tokens, threads among modes, and the time that our work may add to one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from seasoned.errors import StoreBusyError

__all__ = ["MAX_CALLS", "CallPlaces", "ModeThreads", "WorkTime"]

MAX_CALLS = 256
"""Forwarded requests at a time: a server of models answers no more, and each holds its request and its answer."""

_THREADS_EACH = 4
_Answer = TypeVar("_Answer")


class CallPlaces:
    """Places for requests, each of one holder of a token.

    Where there are several tokens, one takes a further place only while it has fewer than are free. So one alone gets
    half of the places, k that want all get `n / (k + 1)` each, and there is one for a newcomer always: the dynamic
    threshold of Choudhury and Hahne (1998) for shared buffers.

    Args:
        is_shared: whether there are several tokens.
        n_places: how many there are.

    Example:
        >>> places = CallPlaces(is_shared=True, n_places=4)
        >>> with places.taken("ann"), places.taken("ann"), places.taken("bob"):
        ...     places.n_free
        1
    """

    def __init__(self, *, is_shared: bool, n_places: int = MAX_CALLS) -> None:
        self._is_shared, self._n_places = is_shared, n_places
        self._n_taken: Counter[Hashable] = Counter()

    @property
    def n_free(self) -> int:
        """The number of free places."""
        return self._n_places - self._n_taken.total()

    @contextlib.contextmanager
    def taken(self, holder: Hashable) -> Iterator[None]:
        """Take a place. Raises: StoreBusyError, if there is none for this holder."""
        rule, own, free = "", self._n_taken[holder], self.n_free
        if free <= 0:
            rule = f"at most {self._n_places} calls are forwarded at a time"
        elif self._is_shared and own >= free:
            rule = f"a token has at most as many calls at a time as it leaves free for others, here {own}"
        if rule:
            raise StoreBusyError("one call more", rule, "Send it again in a moment.")
        self._n_taken[holder] += 1
        try:
            yield
        finally:
            self._n_taken[holder] -= 1
            self._n_taken += Counter()  # without the zeros


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


class WorkTime:
    """The time that our own work may add to one call, all parts of it together; the upstream server's is not counted.

    Args:
        limit_s: in seconds.

    Attributes:
        limit_s: as given.
        left_s: seconds that are left.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = self.left_s = limit_s

    @contextlib.asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Take what a block needs. Raises: TimeoutError, once nothing is left."""
        began_s = time.perf_counter()
        try:
            async with asyncio.timeout(self.left_s):
                yield
        finally:
            self.left_s = max(0.0, self.left_s - (time.perf_counter() - began_s))

    async def in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        """Return the result of work, in a thread. Raises: TimeoutError, once nothing is left; the work goes on."""
        async with self.taken():
            return await asyncio.to_thread(work)
