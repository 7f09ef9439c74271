"""Processes that work for this one, and end with it: in good order, when it is interrupted, and when it is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import active_children, connection, get_context
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = ["Processes", "open_processes"]

_WATCH_S = 0.5
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

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call a function in some worker.

        Raises:
            BrokenProcessPool: a worker died; the pool is of no use any more.
        """
        return self._pool.submit(_work, function, *arguments)


@contextlib.contextmanager
def open_processes(number: int) -> Iterator[Processes]:
    """Open a pool. Left by an exception, the workers have a second to end what they do, and are interrupted then.

    A worker whose parent is gone interrupts itself, and ends after five seconds whatever it does.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(
        number, mp_context=get_context("spawn"), initializer=_begin_worker, initargs=(os.getpid(),)
    )
    try:
        yield Processes(pool)
    except BaseException:
        ours = [process for process in active_children() if process not in others]
        pool.shutdown(wait=False, cancel_futures=True)
        _end(ours)
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


def _begin_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
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
