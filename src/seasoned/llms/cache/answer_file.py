"""The file of a model's answers, by the digest of the exact question; what is asked twice at once is asked once."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from seasoned import sqlite_connection
from seasoned.errors import IntegrityError, excerpt
from seasoned.llms.cache.cache_file import CacheFile

__all__ = ["AnswerFile"]

_APPLICATION_ID = 0x5EA50CAC
_VERSION = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers (digest TEXT PRIMARY KEY, model TEXT NOT NULL, completion TEXT NOT NULL)"
    " WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS capabilities (model TEXT PRIMARY KEY, capabilities TEXT NOT NULL) WITHOUT ROWID",
)


class AnswerFile:
    """Answers on disk, as text. Many processes and threads may share the file.

    Args:
        path: the file; made if it is missing.

    Raises:
        ForeignStoreError: the file is something else; it is left untouched.
        NewerStoreError: a newer seasoned wrote it.
        StoreError: the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = CacheFile(os.fspath(path), _APPLICATION_ID, _VERSION, _SCHEMA, "an answer cache", overwrites=False)
        self._asking: dict[tuple[int, str], _Turn] = {}
        with self._using():
            pass

    @property
    def path(self) -> str:
        """The file."""
        return self._file.path

    @asynccontextmanager
    async def turn(self, digest: str) -> AsyncIterator[None]:
        """Let one caller per question through at a time; the last one to leave takes the question away."""
        key = (id(asyncio.get_running_loop()), digest)
        turn = self._asking.setdefault(key, _Turn())
        turn.callers += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.callers -= 1
            if not turn.callers:
                del self._asking[key]

    def answer(self, digest: str) -> str | None:
        """Return what was answered; None if it was never asked."""
        return self._read("SELECT completion FROM answers WHERE digest = ?", digest)

    def keep(self, digest: str, model: str, answer: str) -> None:
        """Keep an answer, unless there is one."""
        self._write("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", digest, model, answer)

    def capabilities(self, model: str) -> str | None:
        """Return what the model can do; None if it was never asked."""
        return self._read("SELECT capabilities FROM capabilities WHERE model = ?", model)

    def keep_capabilities(self, model: str, capabilities: str) -> None:
        """Keep what the model can do, unless it is known."""
        self._write("INSERT OR IGNORE INTO capabilities VALUES (?, ?)", model, capabilities)

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Turn what a stored text cannot be read as into an error.

        Raises:
            IntegrityError: a stored answer cannot be read back.
        """
        try:
            yield
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError(
                f"{self.path}: {excerpt(str(error))}", "a stored answer can be read back", "Delete the cache."
            ) from error

    def close(self) -> None:
        """Close the file; the next question opens it again."""
        self._file.park()

    def _read(self, query: str, key: str) -> str | None:
        with self._using() as connection:
            row = connection.execute(query, (key,)).fetchone()
        return None if row is None else str(row[0])

    def _write(self, statement: str, *values: str) -> None:
        with self._using() as connection:
            connection.execute(statement, values)

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._file.lock, sqlite_connection.store_errors(self._file.path, "Delete it; answers will be asked anew."):
            yield self._file.connection


class _Turn:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.callers = 0
