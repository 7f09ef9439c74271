"""A pool of worker processes that end with their parent, also if it is interrupted or killed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import active_children, connection, get_context
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

__all__ = ["Processes", "open_processes"]

_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""A fork server starts workers quickly; where forks are unsafe (threads of the system), workers are spawned."""
_PRELOADED = ["seasoned.lab.runner.workers"]
_GRACE_S = 1.0
_INTERRUPTED_S = 5.0

_at_work = threading.Lock()
"""Held in a worker while it executes a function."""


class Processes:
    """A pool of processes. Ctrl-C interrupts a function in a worker, but not an idle worker.

    Args:
        pool: made by `open_processes`.
    """

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._others = set(active_children())
        self._ours: dict[int | None, BaseProcess] = {}

    @property
    def started(self) -> list[BaseProcess]:
        """The processes started so far."""
        return list(self._ours.values())

    @property
    def exit_code(self) -> int | None:
        """The exit code of the only process once it has ended, negative for a signal; None with several processes."""
        return self.started[0].exitcode if len(self._ours) == 1 else None

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call a function in a worker.

        Raises:
            BrokenProcessPool: a worker died; the pool cannot be used any more.
        """
        with _without_program():
            future = self._pool.submit(_work, function, *arguments)
        self._ours |= {each.pid: each for each in set(active_children()) - self._others}
        return future


@contextlib.contextmanager
def open_processes(number: int) -> Iterator[Processes]:
    """Open a pool. On an exception, the workers get one second to finish, and are then interrupted.

    A worker whose parent has ended interrupts itself, and exits after at most five seconds.
    """
    context = get_context(_METHOD)
    context.set_forkserver_preload(_PRELOADED)
    pool = ProcessPoolExecutor(number, mp_context=context, initializer=_begin_worker, initargs=(dict(os.environ),))
    processes = Processes(pool)
    try:
        yield processes
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _end(processes.started)
        raise
    pool.shutdown(wait=True, cancel_futures=True)


def _end(processes: list[BaseProcess]) -> None:
    """Wait for processes to end, then interrupt, then kill them. A second Ctrl-C kills at once."""
    try:
        running = _wait(processes, _GRACE_S)
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGINT)
        running = _wait(running, _INTERRUPTED_S)
    except BaseException:
        for process in processes:
            process.kill()
        raise
    for process in running:
        process.kill()


def _wait(processes: list[BaseProcess], seconds: float) -> list[BaseProcess]:
    """Return the processes that have not ended in time."""
    until = time.monotonic() + seconds
    running = {process.sentinel: process for process in processes}
    while running and (ended := connection.wait(list(running), timeout=max(until - time.monotonic(), 0.0))):
        for sentinel in ended:
            del running[sentinel]  # type: ignore[arg-type]
    return list(running.values())


@contextlib.contextmanager
def _without_program() -> Iterator[None]:
    """Start processes that do not import the main program of this one, whether it has a main guard or not.

    They inherit the blocked Ctrl-C, so that it does not interrupt their start.
    """
    program = sys.modules["__main__"]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _begin_worker(environment: dict[str, str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.clear()
    os.environ.update(environment)  # the fork server may be older than a variable
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os.kill(os.getpid(), signal.SIGINT)
    _at_work.acquire(timeout=_INTERRUPTED_S)
    os._exit(1)


def _work(function: Callable[..., Any], *arguments: Any) -> Any:
    with _at_work:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return function(*arguments)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
