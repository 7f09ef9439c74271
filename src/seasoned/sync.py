"""Synchronous calls of async protocols, by one generic wrapper."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import os
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Protocol

from seasoned.errors import InputError

__all__ = ["Cancellable", "Cancellation", "Sync", "cancelled_by"]


class Cancellable(Protocol):
    """A call that another thread may cancel, such as a future."""

    def cancel(self) -> object:
        """Cancel it; does nothing to one that has ended."""
        ...


class Cancellation:
    """Cancels calls of `Sync`, from any thread: the one that runs, and those that begin in its context after that.

    They raise `concurrent.futures.CancelledError`. What a coroutine left to another thread goes on to its end there.
    Other calls take part by `cancelled_by`.

    Example:
        >>> class Clock:
        ...     async def tick(self) -> str:
        ...         return "tock"
        >>> cancellation = Cancellation()
        >>> with Sync(Clock()) as clock, cancellation:
        ...     clock.tick(), cancellation.cancel()
        ...     clock.tick()
        Traceback (most recent call last):
        ...
        concurrent.futures._base.CancelledError
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._call: Cancellable | None = None

    @property
    def is_cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Cancel the call that runs, and each later one."""
        with self._lock:
            self._is_cancelled = True
            if self._call is not None:
                self._call.cancel()

    def begin(self, call: Cancellable) -> None:
        """Take the call that runs now."""
        with self._lock:
            self._call = call
            if self._is_cancelled:
                call.cancel()

    def end(self) -> bool:
        """Let the call go, which has ended; return whether it was cancelled."""
        with self._lock:
            self._call = None
            return self._is_cancelled

    def __enter__(self) -> Cancellation:
        self._token = _cancellation.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _cancellation.reset(self._token)


_cancellation: contextvars.ContextVar[Cancellation | None] = contextvars.ContextVar("cancellation", default=None)


@contextlib.contextmanager
def cancelled_by(call: Cancellable) -> Iterator[None]:
    """Let the cancellation of this context, if there is one, end a call: by its method `cancel`, from any thread.

    Raises:
        concurrent.futures.CancelledError: it was cancelled, whatever came of it.
    """
    cancellation = _cancellation.get()
    if cancellation is None:
        yield
        return
    cancellation.begin(call)
    try:
        yield
    finally:
        if cancellation.end():
            raise concurrent.futures.CancelledError


class Sync:
    """Calls an object's async methods from synchronous code.

    Every coroutine method is called and awaited; other attributes are passed through. Close it, or use it as a context
    manager. All open wrappers of a process share one event loop, in a thread of its own, so that several of them can
    use one model: an async connection belongs to one loop. A notebook, whose own loop is running, can use it too; in a
    coroutine, `await` the object's own methods instead. A coroutine that blocks its thread delays the others.

    Raises:
        InputError: a method is called by a coroutine on the loop that it would run on.

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
        self._thread: _LoopThread | None = None
        self._held: _LoopThread | None = None  # so that what another wrapper opened is closed on the same loop
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not inspect.iscoroutinefunction(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._run(value(*args, **kwargs))

        return call

    def __enter__(self) -> Sync:
        with self._lock:
            if self._held is None:
                self._held = _LoopThread.enter()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the target, if it can be closed; the last wrapper closes the event loop."""
        try:
            if hasattr(self._target, "aclose"):
                self._run(_close(self._target))
        finally:
            entered, self._thread, self._held = (self._thread, self._held), None, None
            for thread in entered:
                if thread is not None:
                    thread.leave()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        with self._lock:
            if self._thread is None or self._thread.pid != os.getpid():  # a forked process has no such thread
                self._thread = _LoopThread.enter()
            thread = self._thread
        if thread.waits_for_caller():
            coroutine.close()
            raise InputError(
                "a Sync called from a coroutine on its own event loop",
                "it would wait for itself",
                "Await the object's own method there.",
            )
        return thread.call(coroutine)


class _LoopThread(threading.Thread):
    """A thread that runs the event loop of all open wrappers, until the last one leaves it.

    A coroutine on this loop that waits for another wrapper's would wait for itself. So a wrapper that is first called
    there has the loop of one more thread.
    """

    _lock = threading.RLock()
    _outermost: _LoopThread | None = None

    @classmethod
    def enter(cls) -> _LoopThread:
        """Return the thread for a wrapper that is called here; each call needs a `leave`."""
        caller = threading.current_thread()
        with cls._lock:
            found = caller._inner if isinstance(caller, _LoopThread) else cls._outermost
            if found is None or found.pid != os.getpid():
                found = cls(caller if isinstance(caller, _LoopThread) else None)
                found.start()
            found._n_wrappers += 1
        return found

    def __init__(self, outer: _LoopThread | None) -> None:
        super().__init__(name="seasoned-sync", daemon=True)
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._n_wrappers = 0
        self._inner: _LoopThread | None = None
        self._outer = outer
        self._refer(self)

    def _refer(self, thread: _LoopThread | None) -> None:
        if self._outer is None:
            type(self)._outermost = thread
        else:
            self._outer._inner = thread

    def waits_for_caller(self) -> bool:
        """Return whether the calling thread is this one, or one for which a coroutine of this one waits."""
        caller: threading.Thread | None = threading.current_thread()
        while isinstance(caller, _LoopThread):
            if caller is self:
                return True
            caller = caller._outer
        return False

    def leave(self) -> None:
        """Let one wrapper go; the last one ends the thread."""
        if self.pid != os.getpid():
            return
        with self._lock:
            self._n_wrappers -= 1
            if self._n_wrappers:
                return
            self._refer(None)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join()

    def run(self) -> None:
        """Run the loop until it is stopped; then cancel what is left, and close it."""
        with contextlib.closing(self._loop) as loop:
            asyncio.set_event_loop(loop)
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())

    def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return a coroutine's result. An interrupt cancels it, waits until it has ended, and is raised again."""
        errors: list[BaseException] = []

        async def run() -> Any:
            try:
                return await coroutine
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # SystemExit in a task would end the loop
                errors.append(error)

        cancellation = _cancellation.get()
        if cancellation is not None and cancellation.is_cancelled:
            coroutine.close()
            raise concurrent.futures.CancelledError
        running = run()
        try:
            future = asyncio.run_coroutine_threadsafe(running, self._loop)
            if cancellation is not None:
                cancellation.begin(future)
            result = future.result()
        except KeyboardInterrupt:  # raised in this thread, perhaps before it waits
            self._end(running)
            coroutine.close()  # does nothing to one that has begun
            raise
        if errors:
            raise errors[0]
        return result

    def _end(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Cancel a coroutine that this loop may have begun, and wait until it has ended."""
        ended = threading.Event()

        def cancel() -> None:  # runs on the loop after whatever began the coroutine
            for task in asyncio.all_tasks(self._loop):
                if task.get_coro() is coroutine:
                    task.add_done_callback(lambda _: ended.set())
                    task.cancel()
                    return
            coroutine.close()
            ended.set()

        self._loop.call_soon_threadsafe(cancel)
        ended.wait()


async def _close(target: Any) -> None:
    """Close the target; `aclose` of a custom object may be synchronous."""
    result = target.aclose()
    if inspect.isawaitable(result):
        await result
