"""A cache in one SQLite file: typed tables of values that can be computed again."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from seasoned import sqlite_connection
from seasoned.errors import ForeignStoreError, IntegrityError, NewerStoreError, StoreError, excerpt

__all__ = ["CacheFile", "CacheFormat", "Codec", "SqlValue", "SqliteCache"]

SqlValue: TypeAlias = str | bytes | int
_Key = TypeVar("_Key", bound=tuple[SqlValue, ...])
_Value = TypeVar("_Value")

_MAX_PARAMETERS = 900


@dataclass(frozen=True, slots=True)
class CacheFormat:
    """The format of one kind of cache file.

    Args:
        noun: the name in messages, such as "an answer cache".
        application_id: SQLite's application id of the file; it separates this kind of cache from other files.
        schema: the statements that create the tables.
        repair: the next step in messages about a damaged file.
        version: the version of the schema (SQLite's `user_version`).
        relocate: the next step in messages about a foreign file.
        secure_delete: overwrite deleted content on disk.
    """

    noun: str
    application_id: int
    schema: tuple[str, ...]
    repair: str
    version: int = 1
    relocate: str = "Pass another path."
    secure_delete: bool = False


class CacheFile(sqlite_connection.Connection):
    """A connection to a cache file, created if it is missing: WAL, synchronous=NORMAL, safe across threads and forks.

    Args:
        path: the file.
        cache_format: its format.

    Raises:
        ForeignStoreError: the file has another format; it is left untouched.
        NewerStoreError: a newer seasoned wrote the file.
        StoreError: the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], cache_format: CacheFormat) -> None:
        super().__init__(os.fspath(path))
        self.format = cache_format
        with self.reading():
            pass

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection under its lock, SQLite's errors translated.

        Raises:
            StoreError: the file failed, or it was closed.
        """
        with self.lock, sqlite_connection.store_errors(self.path, self.format.repair):
            yield self.connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside a write transaction, which an exception rolls back.

        Raises:
            StoreError: the file failed, or it was closed.
        """
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def damaged(self, seen: str) -> IntegrityError:
        """Return the error of a stored value that cannot be decoded."""
        return IntegrityError(
            f"{self.path}: {seen}", f"a value stored in {self.format.noun} can be read back", self.format.repair
        )

    def _open(self) -> sqlite3.Connection:
        self._check_header()
        connection = sqlite3.connect(
            self.file or self.path,
            timeout=sqlite_connection.BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._create_schema(connection)
            sqlite_connection.retry_busy(connection, "PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA secure_delete={'ON' if self.format.secure_delete else 'OFF'}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_header(self) -> None:
        """Check a file by its first bytes, before SQLite opens it and could change it."""
        try:
            with open(self.file or self.path, "rb") as file:  # noqa: PTH123
                header = file.read(100)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(
                f"{self.path} ({error})", f"{self.format.noun} is a file that can be read", "Check the path."
            ) from error
        application_id = int.from_bytes(header[68:72], "big")
        if header and (header[:15] != b"SQLite format 3" or application_id != self.format.application_id):
            raise ForeignStoreError(
                f"{self.path} begins with {header[:16]!r}, application id {application_id}",
                f"{self.format.noun} is a file that seasoned made; this file was left untouched",
                self.format.relocate,
            )

    def _create_schema(self, connection: sqlite3.Connection) -> None:
        """Create schema and application id in one transaction: the file is complete or empty, never in between."""
        if not self._has_schema(connection):
            connection.execute("BEGIN IMMEDIATE")
            if not self._has_schema(connection):  # another process may have created it meanwhile
                for statement in self.format.schema:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self.format.application_id}")
                connection.execute(f"PRAGMA user_version = {self.format.version}")
            connection.execute("COMMIT")

    def _has_schema(self, connection: sqlite3.Connection) -> bool:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > self.format.version:
            raise NewerStoreError(
                f"{self.path} has version {version}",
                f"this seasoned reads versions up to {self.format.version}",
                "Upgrade seasoned.",
            )
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == self.format.application_id)


@dataclass(frozen=True, slots=True)
class Codec(Generic[_Value]):
    """How one table of a cache file stores its values.

    Args:
        table: the table's name.
        columns: the columns of the key, in the key's order, then the column of the value.
        encode: turns a value into its stored form.
        decode: turns a stored form into a value; a ValueError, KeyError or TypeError means that it is damaged.
    """

    table: str
    columns: tuple[str, ...]
    encode: Callable[[_Value], SqlValue]
    decode: Callable[[SqlValue], _Value]


class SqliteCache(Generic[_Key, _Value]):
    """One table of a cache file as a mapping from keys to values. Many threads and processes may share the file.

    A stored value is never replaced: the first writer of a key wins. A process that is killed loses at most the
    transaction it was writing.

    Args:
        file: the file.
        codec: the table, and how a value is stored.
    """

    def __init__(self, file: CacheFile, codec: Codec[_Value]) -> None:
        self.file = file
        self._codec = codec
        self._requests: dict[tuple[int, _Key], _Request] = {}
        *key_columns, value_column = codec.columns
        conditions = " AND ".join(f"{column} = ?" for column in key_columns)
        self._select = f"SELECT {value_column} FROM {codec.table} WHERE {conditions}"
        marks = ", ".join("?" for _ in codec.columns)
        self._insert = f"INSERT OR IGNORE INTO {codec.table} ({', '.join(codec.columns)}) VALUES ({marks})"

    def get(self, key: _Key) -> _Value | None:
        """Return the stored value; None if there is none.

        Raises:
            IntegrityError: the stored value is damaged.
            StoreError: the file failed.
        """
        with self.file.reading() as connection:
            row = connection.execute(self._select, key).fetchone()
        return None if row is None else self._decode(row[0])

    def get_many(self, keys: Iterable[_Key]) -> dict[_Key, _Value]:
        """Return the stored values of those keys that have one.

        Raises:
            IntegrityError: a stored value is damaged.
            StoreError: the file failed.
        """
        requested = list(keys)
        columns = self._codec.columns
        row = f"({', '.join('?' for _ in columns[1:])})"
        matches = " AND ".join(f"{column} = column{n}" for n, column in enumerate(columns[:-1], 1))
        batch_size = _MAX_PARAMETERS // (len(columns) - 1)
        stored: dict[tuple[SqlValue, ...], SqlValue] = {}
        with self.file.reading() as connection:
            for start in range(0, len(requested), batch_size):
                batch = requested[start : start + batch_size]
                rows = ", ".join(row for _ in batch)
                query = (
                    f"SELECT {', '.join(columns)} FROM (VALUES {rows})"
                    f" CROSS JOIN {self._codec.table} ON {matches}"  # each row by the index of the key, never a scan
                )
                for *key, value in connection.execute(query, [part for parts in batch for part in parts]):
                    stored[tuple(key)] = value
        return {key: self._decode(stored[key]) for key in requested if key in stored}

    def put(self, key: _Key, value: _Value) -> None:
        """Store a value, unless the key has one.

        Raises:
            StoreError: the file failed.
        """
        row = (*key, self._codec.encode(value))
        with self.file.reading() as connection:
            connection.execute(self._insert, row)

    def put_many(self, values: Mapping[_Key, _Value]) -> None:
        """Store values in one transaction; keys that have a value are passed over.

        Raises:
            StoreError: the file failed.
        """
        rows = [(*key, self._codec.encode(value)) for key, value in values.items()]
        with self.file.transaction() as connection:
            connection.executemany(self._insert, rows)

    async def get_or_compute(self, key: _Key, compute: Callable[[], Awaitable[_Value]]) -> _Value:
        """Return the stored value, or compute and store it; equal keys in flight on one event loop are computed once.

        An exception of `compute` is not stored; a waiting caller of the same key then computes.

        Raises:
            IntegrityError: the stored value is damaged.
            StoreError: the file failed.
        """
        async with self._one_at_a_time(key):
            stored = self.get(key)
            if stored is not None:
                return stored
            value = await compute()
            self.put(key, value)
            return value

    def _decode(self, stored: SqlValue) -> _Value:
        try:
            return self._codec.decode(stored)
        except (ValueError, KeyError, TypeError) as error:
            raise self.file.damaged(excerpt(str(error))) from error

    @asynccontextmanager
    async def _one_at_a_time(self, key: _Key) -> AsyncIterator[None]:
        """Admit one caller of a key at a time; the last one to leave removes the request."""
        flight = (id(asyncio.get_running_loop()), key)
        request = self._requests.setdefault(flight, _Request())
        request.callers += 1
        try:
            async with request.lock:
                yield
        finally:
            request.callers -= 1
            if not request.callers:
                del self._requests[flight]


class _Request:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.callers = 0
