"""Processes that die in the middle: forked, and killed right before a statement that they give to SQLite."""

from __future__ import annotations

import os
import signal
import sqlite3


def dying_at(statement):
    """A profiler that kills its own process right before the n-th statement that SQLite is given."""
    left = statement

    def watch(frame, event, called):
        nonlocal left
        of = getattr(called, "__self__", None)
        if event == "c_call" and called.__name__ in ("execute", "executemany") and isinstance(of, sqlite3.Connection):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return watch


def forked(work):
    """Do some work in a child; return its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child):
    """How a child ended: an exit code, or minus a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
