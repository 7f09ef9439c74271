"""A cache of valid actions in one SQLite file: finding the actions of a situation takes up to a second."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from seasoned.errors import StoreError
from seasoned.sqlite_cache import CacheFile, CacheFormat, Codec, SqliteCache, SqlValue

__all__ = ["ActionCache", "default_cache_file"]

_FORMAT = CacheFormat(
    noun="a cache of actions",
    application_id=0x5EA50CAD,
    schema=("CREATE TABLE IF NOT EXISTS actions (digest BLOB PRIMARY KEY, actions TEXT NOT NULL) WITHOUT ROWID",),
    repair="Delete the file; the actions are found again.",
    version=0,
    relocate="Move it away, or set XDG_CACHE_HOME to another folder.",
)


def default_cache_file() -> Path:
    """Return `$XDG_CACHE_HOME/seasoned/jericho-actions.db`, or the same under `~/.cache`."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "seasoned" / "jericho-actions.db"


class ActionCache:
    """Lists of actions by key. Many processes may share the file; the first list stored under a key stays.

    Args:
        file: created, with its folder, if it is missing.

    Raises:
        ForeignStoreError: the file has another format; it is left untouched.
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
        self._lists: SqliteCache[tuple[bytes], tuple[str, ...]] = SqliteCache(
            CacheFile(file, _FORMAT), Codec("actions", ("digest", "actions"), json.dumps, _decode)
        )

    def get(self, parts: tuple[str, ...], find: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """Return the list stored under the key `parts`, or find it and store it.

        Raises:
            StoreError: the file failed.
        """
        key = (hashlib.sha256(json.dumps(parts).encode()).digest(),)
        actions = self._lists.get(key)
        if actions is None:
            new = find()
            self._lists.put(key, new)
            actions = self._lists.get(key) or new  # another process may have stored its list first
        return actions

    def close(self) -> None:
        """Close the file for good."""
        self._lists.file.close()


def _decode(stored: SqlValue) -> tuple[str, ...]:
    actions = json.loads(stored)  # type: ignore[arg-type]
    if not isinstance(actions, list) or not all(isinstance(action, str) for action in actions):
        raise ValueError(f"{stored!r:.80}")
    return tuple(actions)
