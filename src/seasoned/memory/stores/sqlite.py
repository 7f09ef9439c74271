"""One SQLite file as a store: opening it safely, and its transactions."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from seasoned import sqlite_connection
from seasoned.checks import check_file_name
from seasoned.errors import (
    ForeignStoreError,
    InputError,
    IntegrityError,
    NewerStoreError,
    NotFoundError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    excerpt,
)
from seasoned.memory.stores.base import InternedIds, MigrationReport, Rewriting, TableKey, Version
from seasoned.memory.stores.sqlite_schema import APPLICATION_ID, COLUMNS, MIGRATIONS, SCHEMA_VERSION
from seasoned.memory.values.content_hash import text_digest
from seasoned.memory.values.row_checksum import row_checksum

__all__ = ["SqliteStore", "check_ours"]

_CACHE_KIB = 16 * 1024  # a batch changes pages all over the indexes; a page that does not fit is written more than once
_MAX_MARKS = 500  # SQLite binds a limited number of values to one statement
_CHECKPOINT_PAGES = 4000  # of the log; a page that several commits change is copied into the file once
_T = TypeVar("_T")


def _store_errors(path: str) -> contextlib.AbstractContextManager[None]:
    """Turn SQLite's errors into ours."""
    return sqlite_connection.store_errors(path, "Restore a backup, or export the rows that `sqlite3 .recover` saves.")


def check_ours(path: str, application: int, version: int) -> None:
    """Refuse a file that is no seasoned store, or of a newer version, by its header.

    Raises:
        ForeignStoreError, NewerStoreError: it is left as it was.
    """
    if application != APPLICATION_ID:
        raise ForeignStoreError(
            f"{path}: an SQLite file with application id {application:#x}",
            f"a seasoned store has {APPLICATION_ID:#x}",
            "Choose another path; this file was left as it is.",
        )
    if version > SCHEMA_VERSION:
        raise NewerStoreError(
            f"{path}: schema {version}",
            f"this seasoned reads schemas up to {SCHEMA_VERSION}",
            "Upgrade seasoned; the file was left as it is.",
        )


class SqliteStore(sqlite_connection.Connection):
    """A connection to one store. Safe to share between threads; a forked child opens its own connection.

    Args:
        path: a file, or ":memory:".
        create: make the file if it does not exist.
        read_only: refuse every write.
        synchronous: SQLite's setting; FULL means that commits survive a power cut.
        timeout_s: how long to wait for a lock, after the opening; None: 30 s.
    """

    schema_version = SCHEMA_VERSION
    tenant_condition = "TRUE"
    pending = None

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool,
        read_only: bool,
        synchronous: str = "FULL",
        timeout_s: float | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike) or "\0" in str(path):
            raise InputError(f"path = {excerpt(path)}", "a path is a str or a Path, without NUL", "Name a file.")
        check_file_name(path)
        super().__init__(str(os.fspath(path)))
        self.read_only = read_only
        self.writes = 0
        self.interned: InternedIds = {}
        self._epochs: dict[int, int] = {}
        self._synchronous = synchronous
        self._busy_s = sqlite_connection.BUSY_TIMEOUT_S if timeout_s is None else timeout_s
        self._frozen: tuple[int, ...] | None = None
        self._opened: tuple[int, int] | None = None
        if self.file is not None:
            file = Path(self.path)
            if file.is_dir():
                raise ForeignStoreError(f"{file} is a folder", "a memory must be a file", "Name a file in it.")
            if file.exists() and not file.is_file():  # SQLite would wait for a pipe's writer, deaf to signals
                raise ForeignStoreError(f"{file} is a pipe or a device", "a memory must be a file", "Name a file.")
            if not file.exists() and (read_only or not create):
                raise NotFoundError(
                    f"{file}", "this memory does not exist", "Check the path, record an episode first, or create it."
                )
            if not file.parent.is_dir():
                raise StoreError(f"{file.parent}", "the folder of a memory must exist", "Make it first.")
            _refuse_orphaned_log(Path(self.file))
        with self.lock, _store_errors(self.path):
            self.check_open()

    @classmethod
    def migrate(
        cls, path: str, tenants: Sequence[str] = (), passwords: Mapping[str, str] | None = None
    ) -> MigrationReport:
        """Bring a file to `schema_version`. See `stores.base.StoreKind.migrate`."""
        if tenants or passwords is not None:
            raise InputError(f"tenants of the file {path}", "a file has no tenants", "Name a postgresql:// database.")
        cls(path, create=False, read_only=False).close()
        return MigrationReport(path, cls.schema_version, (), ())

    def _open(self) -> sqlite3.Connection:
        # A file that vanished since is an error, and is not created again.
        mode = "ro" if self.read_only else "rw" if self.generation else "rwc"
        self.interned.clear()  # the path may name another file now
        self._frozen = None
        if self.file is not None and self.read_only and _is_closed_for_us(Path(self.file)):
            mode += "&immutable=1"  # SQLite would create a second file in its folder
            self._frozen = _signature(Path(self.file))
        connection = sqlite3.connect(
            self.path if self.file is None else f"{Path(self.file).as_uri()}?mode={mode}",
            uri=self.file is not None,
            timeout=sqlite_connection.BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        _set_busy_timeout(connection, self._busy_s)
        self._opened = None if self.file is None else _identity(self.file)
        return connection

    def _check_in_place(self) -> None:
        """Refuse to write if the path does not name the opened file any more: the log would be lost, or be another's.

        Raises:
            StoreError: the file was moved, removed or replaced.
        """
        if self.file is not None and _identity(self.file) != self._opened:
            raise StoreError(
                f"{self.path} was moved, removed or replaced while it was open",
                "a store is its file and its log, which have their places by name; nothing was written",
                "Put the file back; or close the memory, and open the file where it is now.",
            )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        new = self._check_ownership(connection)
        if not self.read_only:
            sqlite_connection.retry_busy(connection, "PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.create_function("octet_length", 1, _octet_length, deterministic=True)  # SQLite has it from 3.43
        connection.execute("PRAGMA secure_delete = ON")  # deleted rows are overwritten with zeros
        if new or _pragma(connection, "user_version") < SCHEMA_VERSION:
            self._migrate(connection)

    def _check_ownership(self, connection: sqlite3.Connection) -> bool:
        """Return whether the file is new. Nothing is written before the file is known to be ours."""
        connection.execute("BEGIN")  # one snapshot: another process may be creating the store
        try:
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
        finally:
            connection.execute("COMMIT")
        if not tables and application == 0 and version == 0:
            return True
        check_ours(self.path, application, version)
        return False

    def _migrate(self, connection: sqlite3.Connection) -> None:
        if self.read_only:
            raise ReadOnlyStoreError(
                f"{self.path}: schema {_pragma(connection, 'user_version')}",
                f"schema {SCHEMA_VERSION} is needed, and migrating writes",
                "Run `seasoned memory migrate` on it, or open it once for writing.",
            )
        _add_functions(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated while this one waited for the lock.
            version = _pragma(connection, "user_version")
            for statement in _statements(version) if version else _new_schema():
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def check_open(self) -> None:
        """Raise StoreError if the store was closed."""
        with self.lock:
            _ = self.connection

    def check_key(self, name: str, value: str) -> None:
        """Any text is a key in a file."""

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run one statement, inside a transaction or a snapshot."""
        return self.connection.execute(sql, parameters)

    def execute_in(self, sql: str, parameters: tuple[Any, ...], values: Sequence[Any]) -> list[Any]:
        """Run a statement that has `IN {values}` after its marks, for any number of values; return all rows."""
        rows: list[Any] = []
        for start in range(0, len(values), _MAX_MARKS):
            chunk = values[start : start + _MAX_MARKS]
            marks = f"({', '.join('?' * len(chunk))})"
            rows += self.connection.execute(sql.replace("{values}", marks), (*parameters, *chunk)).fetchall()
        return rows

    def lookup(
        self, key: TableKey, columns: str, equal: tuple[Any, ...], values: Sequence[Any], *, group_by: str = ""
    ) -> list[Any]:
        """Return columns of the rows that a key selects: `equal` values, and any of `values`."""
        return self.execute_in(key.select(columns, group_by), equal, values)

    @contextlib.contextmanager
    def trace(self) -> Iterator[list[str]]:
        """Record the statements that are executed inside the context, with their values."""
        statements: list[str] = []
        connection = self.connection
        connection.set_trace_callback(statements.append)
        try:
            yield statements
        finally:
            connection.set_trace_callback(None)

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write new rows, in the column order of `sqlite_schema.COLUMNS`."""
        self._write("INSERT", table, rows)

    def upsert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows; a row of the same primary key is replaced."""
        self._write("INSERT OR REPLACE", table, rows)

    def _write(self, verb: str, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        columns = COLUMNS[table]
        marks = ", ".join("?" * len(columns))
        self.connection.executemany(f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def update(
        self, table: str, columns: tuple[str, ...], keys: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Change columns of rows: each row holds their new values, then those of its keys."""
        changes, which = ", ".join(f"{name} = ?" for name in columns), " AND ".join(f"{name} = ?" for name in keys)
        self.connection.executemany(f"UPDATE {table} SET {changes} WHERE {which}", rows)

    @contextlib.contextmanager
    def transaction(self, namespace_id: int | None, *, wait_s: float | None = None) -> Iterator[None]:
        """Commit everything or nothing. Holds the store's write lock, so that rows read inside do not change."""
        with self.lock, _store_errors(self.path):
            self.check_open()
            if self.read_only:
                raise ReadOnlyStoreError(self.path, "it was opened read-only", "Open it for writing.")
            if self.in_transaction():
                raise StoreError(f"{self.path}: a write inside another", "one ends before the next", "End it first.")
            try:
                self._take_write_lock(wait_s)
                if namespace_id is not None:
                    self._begin_write(namespace_id)
                yield
                self._check_in_place()
                self.writes += 1  # before the commit: an interrupt in between must not hide it from `version`
                self.execute("COMMIT")
            except BaseException:
                self.interned.clear()  # it may hold ids that were rolled back
                if self.in_transaction():
                    self.execute("ROLLBACK")
                raise

    def _take_write_lock(self, wait_s: float | None) -> None:
        connection = self.connection
        if wait_s is not None:
            _set_busy_timeout(connection, wait_s)
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            if wait_s is not None:
                _set_busy_timeout(connection, self._busy_s)

    def _begin_write(self, namespace_id: int) -> None:
        """Increment a namespace's revision, and drop its interned ids if its epoch moved."""
        row = self.execute(
            "UPDATE namespace SET revision = revision + 1 WHERE id = ? RETURNING epoch", (namespace_id,)
        ).fetchall()
        for (epoch,) in row:
            if self._epochs.get(namespace_id) != epoch:
                self.interned.pop(namespace_id, None)
            self._epochs[namespace_id] = epoch

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads of one and the same committed state."""
        with self.lock, _store_errors(self.path):
            if self.in_transaction():
                yield
                return
            if self._has_moved():
                self.park()  # and open the changed file
            try:
                self.execute("BEGIN")
                yield
            finally:
                if self.in_transaction():
                    self.execute("COMMIT")
            if self._has_moved():
                raise StoreBusyError(
                    f"{self.path} was written while it was read",
                    "where nothing can be written, SQLite takes no lock for reading",
                    "Ask again.",
                )

    def _has_moved(self) -> bool:
        """Whether a file that was opened as immutable was changed."""
        return self._frozen is not None and self.file is not None and _signature(Path(self.file)) != self._frozen

    def version(self, namespace_id: int) -> Version:
        """Changes whenever anything was committed, by this connection or by any other. Costs microseconds."""
        data_version = self.execute("PRAGMA data_version").fetchone()[0]
        # SQLite counts the commits of others per connection.
        return Version((data_version, self.writes, self.generation), self.generation)

    def retrying(self, attempt: Callable[[], _T]) -> _T:
        """Run it: a file is there or it is not."""
        return attempt()

    def problems(self) -> list[str]:
        """Return the errors that SQLite finds in the file."""
        found = [str(row[0]) for row in self.execute("PRAGMA integrity_check").fetchall()]
        broken = self.execute("PRAGMA foreign_key_check").fetchall()
        dangling = [f"{len(broken)} rows refer to rows that do not exist"] if broken else []
        return [f"SQLite says {problem!r}" for problem in found if problem != "ok"] + dangling

    def size_bytes(self) -> int | None:
        """Return the size of the file, pages in its log included."""
        row = self.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
        return int(row[0])

    def give_up_connection(self) -> None:
        """Do nothing: no server is waited for."""

    def compact(self) -> Rewriting:
        """Rewrite the file without free pages, and empty its log."""
        with self.lock, _store_errors(self.path):
            self.check_open()
            if self.read_only:
                raise ReadOnlyStoreError(self.path, "it was opened read-only", "Open it for writing.")
            self._check_in_place()
            self.execute("VACUUM")
            deadline = time.monotonic() + sqlite_connection.BUSY_TIMEOUT_S
            while self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > deadline:
                    raise StoreBusyError(
                        f"{self.path}: another process reads an old snapshot",
                        "the log can be emptied when no process reads it",
                        "End that process, then compact again.",
                    )
                time.sleep(0.05)
            self._check_in_place()
        return Rewriting(rewritten=True)


def _identity(file: str) -> tuple[int, int] | None:
    """Return device and inode of the file that a path names now; None: there is none."""
    try:
        stat = os.stat(file)  # noqa: PTH116 - before every commit, and a Path takes ten times as long
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _log_bytes(file: Path) -> int:
    log = file.with_name(f"{file.name}-wal")
    return log.stat().st_size if log.exists() else 0


def _signature(file: Path) -> tuple[int, ...]:
    stat = file.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, _log_bytes(file)


def _is_closed_for_us(file: Path) -> bool:
    """Whether the file has no log, in a folder that we cannot write to. Others may write: see `_has_moved`."""
    return file.exists() and not os.access(file.parent, os.W_OK) and not _log_bytes(file)


def _refuse_orphaned_log(file: Path) -> None:
    """Refuse a log without its file: SQLite would delete the log, and with it the last commits."""
    if _log_bytes(file) and not (file.exists() and file.stat().st_size):
        raise IntegrityError(
            f"{file} is empty or gone, and its log {file.name}-wal is not",
            "a store is its file and its log together",
            "Put the file back next to its log; or restore a backup, and move the log away.",
        )


def _octet_length(value: str | bytes) -> int:
    return len(value.encode() if isinstance(value, str) else value)


def _set_busy_timeout(connection: sqlite3.Connection, wait_s: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * wait_s)}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _add_functions(connection: sqlite3.Connection) -> None:
    connection.create_function("text_digest", 1, text_digest, deterministic=True)
    connection.create_function("row_checksum", -1, row_checksum, deterministic=True)


def _statements(version: int) -> Iterator[str]:
    """Yield what brings a store of this schema version to the present one."""
    for migration in MIGRATIONS[version:]:
        yield from filter(str.strip, migration.split(";\n"))


@functools.cache
def _new_schema() -> tuple[str, ...]:
    """Return what all migrations lead to from an empty store: a third of their statements, in a fifth of the time."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _add_functions(connection)
        for statement in _statements(0):
            connection.execute(statement)
        definitions = connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid")
        return tuple(sql for (sql,) in definitions)
