"""One SQLite file: opening it safely, transactions, and its errors in our tree."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seasoned.errors import (
    ForeignStoreError,
    InputError,
    IntegrityError,
    NewerStoreError,
    NotFoundError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    excerpt,
)
from seasoned.memory.schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION

__all__ = ["Database", "store_errors"]

_BUSY_TIMEOUT_S = 30.0


@contextlib.contextmanager
def store_errors(path: str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except UnicodeDecodeError as error:  # Python fails so where SQLite quotes a damaged name
        raise IntegrityError(
            f"{path}: {error}", "the file is damaged", "Restore a backup, or export what `sqlite3 .recover` saves."
        ) from error
    except sqlite3.Error as error:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        seen = f"{path}: {error}"
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreBusyError(
                seen,
                f"a writer waits at most {_BUSY_TIMEOUT_S:.0f} s for the lock",
                "Look for a process that holds it; try again.",
            ) from error
        if code == sqlite3.SQLITE_FULL:
            raise StoreFullError(
                seen, "a commit needs free disk space; nothing of it was kept", "Free space, then add again."
            ) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise ReadOnlyStoreError(
                seen, "writing needs a writable file and folder", "Check its permissions."
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise ForeignStoreError(
                seen, "a memory is a seasoned SQLite file", "Choose another path; this file was left as it is."
            ) from error
        if code == sqlite3.SQLITE_CORRUPT:
            raise IntegrityError(
                seen, "the file is damaged", "Restore a backup, or export what `sqlite3 .recover` saves."
            ) from error
        raise StoreError(seen, "the storage below must work", "See the message of SQLite above.") from error


class Database:
    """A connection to one store. Safe to share between threads; a forked child opens its own connection.

    Args:
        path: a file, or ":memory:".
        create: make the file if it does not exist.
        read_only: refuse every write.
        synchronous: SQLite's setting; FULL means that what was committed survives a power cut.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool, read_only: bool, synchronous: str = "FULL"
    ) -> None:
        if not isinstance(path, str | os.PathLike) or "\0" in str(path):
            raise InputError(f"path = {excerpt(path)}", "a path is a str or a Path, without NUL", "Name a file.")
        self.path = str(os.fspath(path))
        self.read_only = read_only
        self.lock = threading.RLock()
        self.writes = 0
        self._synchronous = synchronous
        if self.path != ":memory:":
            file = Path(self.path)
            if file.is_dir():
                raise ForeignStoreError(f"{file} is a folder", "a memory is a file", "Name a file in it.")
            if not file.exists() and (read_only or not create):
                raise NotFoundError(
                    f"{file}", "this memory does not exist", "Check the path, or record an episode first."
                )
            if not file.parent.is_dir():
                raise StoreError(f"{file.parent}", "the folder of a memory exists", "Make it first.")
        with store_errors(self.path):
            self._connect()

    def _connect(self) -> None:
        self._pid = os.getpid()
        memory = self.path == ":memory:"
        target = self.path if memory else Path(self.path).absolute().as_uri() + ("?mode=ro" if self.read_only else "")
        self._connection = sqlite3.connect(
            target, uri=not memory, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        new = self._check_ownership()
        if not self.read_only:
            self._retry_busy("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        self._connection.execute("PRAGMA foreign_keys = ON")
        if new or self._pragma("user_version") < SCHEMA_VERSION:
            self._migrate()

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _retry_busy(self, sql: str) -> None:
        """Run a statement for which SQLite does not call its busy handler, while another process prepares the file."""
        deadline = time.monotonic() + _BUSY_TIMEOUT_S
        while True:
            try:
                self._connection.execute(sql)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _check_ownership(self) -> bool:
        """Return whether the file is new. Nothing is written before the file is known to be ours."""
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application, version = self._pragma("application_id"), self._pragma("user_version")
        if not tables and application == 0 and version == 0:
            return True
        if application != APPLICATION_ID:
            raise ForeignStoreError(
                f"{self.path}: an SQLite file with application id {application:#x}",
                f"a seasoned store has {APPLICATION_ID:#x}",
                "Choose another path; this file was left as it is.",
            )
        if version > SCHEMA_VERSION:
            raise NewerStoreError(
                f"{self.path}: schema {version}",
                f"this seasoned reads schemas up to {SCHEMA_VERSION}",
                "Upgrade seasoned; the file was left as it is.",
            )
        return False

    def _migrate(self) -> None:
        if self.read_only:
            raise ReadOnlyStoreError(
                f"{self.path}: schema {self._pragma('user_version')}",
                f"schema {SCHEMA_VERSION} is needed, and migrating writes",
                "Open it once for writing.",
            )
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated while this one waited for the lock.
            for version in range(self._pragma("user_version"), SCHEMA_VERSION):
                for statement in MIGRATIONS[version].split(";\n"):
                    if statement.strip():
                        self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {version + 1}")
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        """The live connection of this process."""
        if self._pid != os.getpid():
            # SQLite connections must not cross a fork; the parent's is dropped without being closed.
            if self.path == ":memory:":
                raise StoreError(
                    "a memory in RAM, in a forked process", "it lives in the process that made it", "Name a file."
                )
            self.lock = threading.RLock()
            self._connect()
        return self._connection

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return self.connection.execute(sql, parameters)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing. Holds the store's write lock, so that what is read inside stays true until the end."""
        with self.lock, store_errors(self.path):
            if self.read_only:
                raise ReadOnlyStoreError(self.path, "it was opened read-only", "Open it for writing.")
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
                self.writes += 1
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads of one and the same committed state."""
        with self.lock, store_errors(self.path):
            if self.connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")

    def version(self) -> tuple[int, int, int]:
        """Changes whenever anything was committed, by this connection or by any other. Costs microseconds."""
        # SQLite counts per connection, and a forked process has its own.
        return self.execute("PRAGMA data_version").fetchone()[0], self.writes, os.getpid()

    def close(self) -> None:
        """Close the connection; committed episodes are on disk already."""
        with self.lock:
            if self._pid == os.getpid():
                self._connection.close()
