"""Register of a namespace's exports and backups, so that an erasure can name them; and unfinished copies."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import NamedTuple

from seasoned import sqlite_connection
from seasoned.memory.stores.atomic_file import StoreFile
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.partial_folder import partials_of, remove_dead_partials
from seasoned.memory.stores.registry import is_file
from seasoned.memory.stores.sqlite_schema import SCHEMA_VERSION
from seasoned.memory.values.corruption import decode
from seasoned.memory.values.row_checksum import row_checksum

__all__ = [
    "CALLS",
    "PARTIAL",
    "SESSIONS",
    "Copy",
    "call_folders",
    "partial_copies",
    "read_copies",
    "record_copies",
    "record_copy_in_file",
    "session_files",
]

PARTIAL = "partial"
"""Kind of a copy that is still being made, or that a killed process left."""

CALLS = "calls"
"""Kind of a folder of a service whose files hold calls or decisions that wait to be stored, or are refused for good."""

SESSIONS = "sessions"
"""Kind of what a chat keeps beside the memory of its repository: the log of a session, or files of all its sessions."""

_CALL_FOLDERS = ("calls", "decisions")


@dataclass(frozen=True, slots=True)
class Copy:
    """An export or a backup of a memory; an erasure does not reach it.

    Args:
        kind: `export` or `backup`; `partial` for an unfinished one, and `calls` for a folder of a service with calls or
            decisions, and `sessions` for files of a chat, all of which are found and not recorded.
        path: the file or folder, or the namespace of a server.
        created_at: seconds since 1970.
    """

    kind: str
    path: str
    created_at: float


class _CopyRow(NamedTuple):
    kind: str
    path: str
    created_at: float


def read_copies(store: Store, namespace_id: int) -> list[Copy]:
    """Return the recorded copies in order, inside the caller's snapshot or transaction."""
    rows = store.execute("SELECT kind, path, created_at FROM copy WHERE namespace_id = ? ORDER BY seq", (namespace_id,))
    return [Copy(*row) for row in decode(store.path, rows.fetchall(), _CopyRow)]


def partial_copies(store_path: str, copies: Iterable[Copy], *, remove: bool) -> list[Copy]:
    """Return the unfinished copies beside a store and beside its recorded copies.

    Args:
        store_path: the path of the store.
        copies: the recorded ones.
        remove: remove those whose owner is dead, and return the others.
    """
    found: dict[str, Copy] = {}
    for path in dict.fromkeys([store_path, *(copy.path for copy in copies)]):
        if not is_file(path):
            continue
        target = Path(path).absolute()
        for partial in remove_dead_partials(target) if remove else partials_of(target):
            with contextlib.suppress(OSError):  # it may just have been finished
                found[os.fspath(partial)] = Copy(PARTIAL, os.fspath(partial), partial.stat().st_mtime)
    return list(found.values())


def call_folders(store_path: str) -> list[Copy]:
    """Return the folders beside a store's file in which a service has left calls or decisions."""
    if not is_file(store_path):
        return []
    found: dict[str, float] = {}
    for name in _CALL_FOLDERS:
        for file in Path(f"{store_path}.{name}").absolute().glob("*/*.call"):
            with contextlib.suppress(OSError):  # it may just have been stored
                folder = os.fspath(file.parent)
                found[folder] = min(file.stat().st_mtime, found.get(folder, math.inf))
    return [Copy(CALLS, folder, at) for folder, at in sorted(found.items())]


def session_files(store_path: str, namespace: str, subject: str) -> list[Copy]:
    """Return the files in which a chat keeps the session that the subject names, the log first; without it, the folder.

    Texts of changed files, and the user's earlier requests, are kept for all sessions of a repository together.
    """
    folder = Path(f"{store_path}.sessions", namespace).absolute()
    is_chat = is_file(store_path) and folder.parent.name == f"{Path(store_path).name}.sessions" and namespace != ".."
    if not is_chat or not folder.is_dir():
        return []
    log = folder / f"{subject}.jsonl"
    others = set(folder.glob("*-*.jsonl")) - {log}
    files = sorted(set(folder.iterdir()) - others, key=lambda file: (file != log, file))
    found = []
    for file in files if log in files else [folder]:
        with contextlib.suppress(OSError):  # it may just have been removed
            found.append(Copy(SESSIONS, os.fspath(file), file.stat().st_mtime))
    return found


def record_copies(store: Store, namespace_id: int, copies: Iterable[Copy]) -> None:
    """Record copies inside the caller's transaction of the namespace; those that are recorded already are skipped."""
    known = set(read_copies(store, namespace_id))
    new = [copy for copy in dict.fromkeys(copies) if copy not in known]
    if not new:
        return
    store.execute("UPDATE namespace SET copies = copies + ? WHERE id = ?", (len(new), namespace_id))
    last = store.execute("SELECT copies FROM namespace WHERE id = ?", (namespace_id,)).fetchone()[0]
    first = last - len(new) + 1
    store.insert("copy", [(namespace_id, first + n, *astuple(copy), _checksum(copy)) for n, copy in enumerate(new)])


def _checksum(copy: Copy) -> bytes:
    return row_checksum("copy", *astuple(copy))


def record_copy_in_file(file: StoreFile, path: str) -> None:
    """Record a backup in every namespace of a file; a file of an older schema is left alone."""
    with sqlite_connection.store_errors(file.path, "Free space."):
        if file.schema() < SCHEMA_VERSION:
            return  # older schemas may have no table of copies
        execute = file.connection.execute
        copy = Copy("backup", path, time.time())
        execute("BEGIN IMMEDIATE")
        try:
            execute("UPDATE namespace SET copies = copies + 1")
            execute(
                "INSERT INTO copy (namespace_id, seq, kind, path, created_at, checksum) "
                "SELECT id, copies, ?, ?, ?, ? FROM namespace",
                (*astuple(copy), _checksum(copy)),
            )
            execute("COMMIT")
        except BaseException:
            file.connection.rollback()
            raise
