"""SQLite as every store here uses it: a connection that never crosses a fork, and SQLite's errors in our tree."""

from __future__ import annotations

import abc
import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

from seasoned.errors import (
    ForeignStoreError,
    IntegrityError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)

__all__ = ["BUSY_TIMEOUT_S", "IN_RAM", "Connection", "store_errors"]

BUSY_TIMEOUT_S = 30.0
IN_RAM = ":memory:"


@contextlib.contextmanager
def store_errors(path: str, mend: str) -> Iterator[None]:
    """Turn SQLite's errors into ours; `mend` is the next step where the file is damaged."""
    try:
        yield
    except UnicodeDecodeError as error:  # Python fails so where SQLite quotes a damaged name
        raise IntegrityError(f"{path}: {error}", "the file is damaged", mend) from error
    except sqlite3.Error as error:
        extended = getattr(error, "sqlite_errorcode", None) or 0
        code = extended & 0xFF
        seen = f"{path}: {error}"
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreBusyError(
                seen,
                f"a writer waits at most {BUSY_TIMEOUT_S:.0f} s for the lock",
                "Look for a process that holds it; try again.",
            ) from error
        if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
            raise StoreFullError(
                seen, "a commit needs free disk space; nothing of it was kept", "Free space, then try again."
            ) from error
        if code == sqlite3.SQLITE_CANTOPEN and Path(path).exists() and not os.access(Path(path).parent, os.W_OK):
            raise ReadOnlyStoreError(
                seen,
                "writing, and reading a store that was not closed, needs a folder that can be written",
                "Open it with read_only=True; if it was not closed, open it once where its folder can be written.",
            ) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise ReadOnlyStoreError(
                seen, "writing needs a writable file and folder", "Check its permissions."
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise ForeignStoreError(
                seen, "a store is a seasoned SQLite file", "Choose another path; this file was left as it is."
            ) from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT):  # we never write what breaks a constraint
            raise IntegrityError(seen, "the file is damaged", mend) from error
        raise StoreError(seen, "the storage below must work", "See the message of SQLite above.") from error


class Connection(abc.ABC):
    """One SQLite connection, opened when it is needed. Safe to share between threads; it never crosses a fork.

    A forked child inherits SQLite's table of file locks, but not the locks: both processes believe that they hold them,
    and the first to close deletes the log that the other still writes to. So each connection is closed before a fork,
    and parent and child open their own at the next use. The fork waits until no other thread is inside.

    Args:
        path: a file, or ":memory:", which cannot follow into a child.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.generation = 0
        # Whole, since the process may change its folder before it opens the file again.
        self.file = None if path == IN_RAM else os.path.realpath(path)
        self._live: sqlite3.Connection | None = None
        self._refusal: tuple[str, str, str] | None = None
        with _registry:
            _connections.add(self)

    @abc.abstractmethod
    def _open(self) -> sqlite3.Connection:
        """Return a new connection."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The live connection of this process; hold the lock while using it.

        Raises:
            StoreError: the store was closed, or its connection was left behind by a fork.
        """
        if self._live is None:
            if self._refusal is not None:
                raise StoreError(*self._refusal)
            if self.file in _left_behind:
                raise StoreError(*_left_behind_refusal(self.path))
            self._live = self._open()
            self.generation += 1
        return self._live

    def in_transaction(self) -> bool:
        """Whether this process has a transaction open."""
        return self._live is not None and self._live.in_transaction

    def park(self) -> None:
        """Close the connection; the next use opens another."""
        with self.lock:
            if self._live is not None:
                self._live.close()
                self._live = None

    def close(self) -> None:
        """Close for good: whatever is asked later is refused."""
        with self.lock:
            self.park()
            self._refusal = (f"{self.path} was closed", "a closed store answers nothing", "Open it again.")

    def _before_fork(self) -> None:
        self.lock.acquire()
        # What the forking thread itself has in hand stays open, for the parent.
        if self.file is not None and not self.in_transaction():
            with contextlib.suppress(sqlite3.Error):
                self.park()

    def _after_fork_in_child(self) -> None:
        self.lock = threading.RLock()
        if self._live is None:
            return
        if self.file is None:
            self._refusal = (
                "a store in RAM, in a forked process",
                "it lives in the process that made it",
                "Name a file.",
            )
        else:
            _left_behind.add(self.file)
            self._refusal = _left_behind_refusal(self.path)
            _never_close(self._live)
        self._live = None


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()
_left_behind: set[str] = set()
"""Files whose locks this process believes to hold, and does not: they cannot be opened here."""
_registry = threading.Lock()
_forking = threading.Lock()
_held: list[Connection] = []


def _left_behind_refusal(path: str) -> tuple[str, str, str]:
    return f"{path}, in a process forked inside a transaction", "SQLite cannot follow", "Fork outside of it, or spawn."


def _never_close(connection: sqlite3.Connection) -> None:
    """Closing it here would write to the log that the parent is using; so would the garbage collector."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _before_fork() -> None:
    _forking.acquire()  # two threads that fork at once would wait for each other's locks
    while True:
        _registry.acquire()  # kept when nothing is left to hold, so that nothing is opened before the fork
        new = [connection for connection in _connections if connection not in _held]
        if not new:
            return
        _registry.release()
        for connection in new:
            connection._before_fork()
            _held.append(connection)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()
    _registry.release()
    _forking.release()


def _after_fork_in_child() -> None:
    global _registry, _forking  # theirs may be held by a thread that is not here
    _registry, _forking = threading.Lock(), threading.Lock()
    _held.clear()
    for connection in list(_connections):
        connection._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
