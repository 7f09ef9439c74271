"""Processes that work for this one, and end with it: in good order, when it is interrupted, and when it is killed."""

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
"""A clean process to fork from is quick; where a fork is not safe with the system's own threads, each begins anew."""
_PRELOADED = ["seasoned.lab.runner.workers"]
_GRACE_S = 1.0
_INTERRUPTED_S = 5.0

_at_work = threading.Lock()
"""Held in a worker while it works."""


class Processes:
    """Runs functions in a pool of processes. Ctrl-C interrupts what a worker does, and not a worker that waits.

    Args:
        pool: made by `open_processes`.
    """

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._others = set(active_children())
        self._ours: dict[int | None, BaseProcess] = {}

    @property
    def started(self) -> list[BaseProcess]:
        """Every process that was started."""
        return list(self._ours.values())

    @property
    def exit_code(self) -> int | None:
        """Of the one process, once it has ended; negative for a signal. None where there are several."""
        return self.started[0].exitcode if len(self._ours) == 1 else None

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call a function in some worker.

        Raises:
            BrokenProcessPool: a worker died; the pool is of no use any more.
        """
        with _without_program():
            future = self._pool.submit(_work, function, *arguments)
        self._ours |= {each.pid: each for each in set(active_children()) - self._others}
        return future


@contextlib.contextmanager
def open_processes(number: int) -> Iterator[Processes]:
    """Open a pool. Left by an exception, the workers have a second to end what they do, and are interrupted then.

    A worker whose parent is gone interrupts itself, and ends after five seconds whatever it does.
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
    """Wait for processes to end; interrupt, and kill in the end, those that do not. A second Ctrl-C kills at once."""
    try:
        left = _wait(processes, _GRACE_S)
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGINT)
        left = _wait(left, _INTERRUPTED_S)
    except BaseException:
        for process in processes:
            process.kill()
        raise
    for process in left:
        process.kill()


def _wait(processes: list[BaseProcess], seconds: float) -> list[BaseProcess]:
    """Return those that have not ended in time."""
    until = time.monotonic() + seconds
    left = {process.sentinel: process for process in processes}
    while left and (ended := connection.wait(list(left), timeout=max(until - time.monotonic(), 0.0))):
        for sentinel in ended:
            del left[sentinel]  # type: ignore[arg-type]
    return list(left.values())


@contextlib.contextmanager
def _without_program() -> Iterator[None]:
    """A process that begins here does not begin by running the program that began it, guarded or not.

    Nor does Ctrl-C interrupt it while it begins: what is blocked here is blocked there, until it is ready.
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
    os.environ.update(environment)  # what it was forked from may have begun before a variable was set
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
