"""Valid actions kept on disk, one SQLite file: what took a second to find is looked up from then on."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from seasoned import sqlite_connection
from seasoned.errors import ForeignStoreError, IntegrityError, StoreError

__all__ = ["ActionCache", "default_file"]

_APPLICATION_ID = 0x5EA50CAD
_MEND = "Delete it; the actions will be found anew."
_TABLE = "CREATE TABLE IF NOT EXISTS actions (digest BLOB PRIMARY KEY, actions TEXT NOT NULL) WITHOUT ROWID"


def default_file() -> Path:
    """Return `$XDG_CACHE_HOME/seasoned/jericho-actions.db`, or the same under `~/.cache`."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "seasoned" / "jericho-actions.db"


class ActionCache:
    """Lists of actions by key. Many processes may share the file; the first to find a list has it kept.

    Args:
        file: made, with its folder, if it is missing.

    Raises:
        ForeignStoreError: the file is something else; it is left untouched.
        StoreError: the file cannot be opened.
    """

    def __init__(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{file.parent} ({error.strerror})",
                "the cache has a folder that can be written",
                "Set XDG_CACHE_HOME to one, or play with cache=none.",
            ) from error
        self._file = _File(str(file))
        with self._file.lock, sqlite_connection.store_errors(self._file.path, _MEND):
            _ = self._file.connection

    def get(self, parts: tuple[str, ...], find: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """Return the list kept under this key, or find it and keep it.

        Raises:
            StoreError: the file failed.
        """
        digest = hashlib.sha256(json.dumps(parts).encode()).digest()
        kept = self._read(digest)
        if kept is None:
            found = find()
            with self._file.lock, sqlite_connection.store_errors(self._file.path, _MEND):
                self._file.connection.execute(
                    "INSERT OR IGNORE INTO actions VALUES (?, ?)", (digest, json.dumps(found))
                )
            kept = self._read(digest) or found
        return kept

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, digest: bytes) -> tuple[str, ...] | None:
        with self._file.lock, sqlite_connection.store_errors(self._file.path, _MEND):
            row = self._file.connection.execute("SELECT actions FROM actions WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        try:
            actions = json.loads(row[0])
        except (TypeError, ValueError):
            actions = None
        if not isinstance(actions, list) or not all(isinstance(action, str) for action in actions):
            raise IntegrityError(f"{self._file.path}: {row[0]!r:.80}", "a list of actions can be read back", _MEND)
        return tuple(actions)


class _File(sqlite_connection.Connection):
    """The file: checked before it is touched, and made if it is missing."""

    def _open(self) -> sqlite3.Connection:
        path = Path(self.file or self.path)
        header = path.read_bytes()[:100] if path.is_file() else b""
        application_id = int.from_bytes(header[68:72], "big")
        if header and (header[:15] != b"SQLite format 3" or application_id != _APPLICATION_ID):
            raise ForeignStoreError(
                f"{path} begins with {header[:16]!r}, application id {application_id}",
                "a cache of actions is a file that seasoned made; this one was left untouched",
                "Move it away, or set XDG_CACHE_HOME to another folder.",
            )
        connection = sqlite3.connect(
            path, timeout=sqlite_connection.BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            if not header:  # table and application id in one transaction: a file is ours or empty, never in between
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection
