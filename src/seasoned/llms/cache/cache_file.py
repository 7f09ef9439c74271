"""The file of a cache: one SQLite file, checked before it is touched, and made if it is missing."""

from __future__ import annotations

import sqlite3

from seasoned import sqlite_connection
from seasoned.errors import ForeignStoreError, NewerStoreError, StoreError

__all__ = ["CacheFile"]


class CacheFile(sqlite_connection.Connection):
    """A connection to a file of what can be asked again, and is durable enough for that: WAL, synchronous=NORMAL.

    Args:
        path: the file.
        application_id: tells this kind of cache from other files.
        version: of its schema, from 1.
        schema: statements that make its tables.
        what: its name in messages, such as "an answer cache".
        overwrites: whether what is deleted is overwritten on disk.
    """

    def __init__(
        self, path: str, application_id: int, version: int, schema: tuple[str, ...], what: str, *, overwrites: bool
    ) -> None:
        super().__init__(path)
        self._application_id = application_id
        self._version = version
        self._schema = schema
        self._what = what
        self._overwrites = overwrites

    def _open(self) -> sqlite3.Connection:
        self._check_header()
        connection = sqlite3.connect(
            self.file or self.path,
            timeout=sqlite_connection.BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._make(connection)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA secure_delete={'ON' if self._overwrites else 'OFF'}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_header(self) -> None:
        try:
            with open(self.file or self.path, "rb") as file:  # noqa: PTH123
                header = file.read(100)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(
                f"{self.path} ({error})", f"{self._what} is a file that can be read", "Check the path."
            ) from error
        application_id = int.from_bytes(header[68:72], "big")
        if header and (header[:15] != b"SQLite format 3" or application_id != self._application_id):
            raise ForeignStoreError(
                f"{self.path} begins with {header[:16]!r}, application id {application_id}",
                f"{self._what} is a file that seasoned made; this one was left untouched",
                "Pass another path.",
            )

    def _make(self, connection: sqlite3.Connection) -> None:
        """Schema and application id in one transaction: a file is ours or empty, never in between."""
        if not self._known(connection):
            connection.execute("BEGIN IMMEDIATE")
            if not self._known(connection):  # two that make it at once: the second finds it made
                for statement in self._schema:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self._application_id}")
                connection.execute(f"PRAGMA user_version = {self._version}")
            connection.execute("COMMIT")

    def _known(self, connection: sqlite3.Connection) -> bool:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > self._version:
            raise NewerStoreError(
                f"{self.path} has version {version}", f"this seasoned reads up to {self._version}", "Upgrade seasoned."
            )
        return version > 0
