"""Branches that are files: the live one's content is replaced in one transaction, while nobody has it open."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from seasoned import sqlite_connection
from seasoned.errors import StoreBusyError
from seasoned.lab.forks.carry_over import carry, carry_copies
from seasoned.lab.forks.fork_access import open_branch
from seasoned.lab.forks.handover import Exchange
from seasoned.lab.forks.snapshot_diff import Base, base_of, grown, lines_of
from seasoned.memory import Memory
from seasoned.memory.maintenance.backup import backup, restore
from seasoned.memory.parts.retention import Copy
from seasoned.memory.stores.atomic_file import StoreFile, whole_file
from seasoned.memory.stores.sqlite_schema import SCHEMA_VERSION
from seasoned.protocols import StateEncoder

__all__ = ["copy", "switch"]

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def copy(
    live: str | os.PathLike[str], candidate: str | os.PathLike[str], encoder: StateEncoder | None
) -> dict[str, Base]:
    """Copy a file as of one instant, and return what it held."""
    backup(live, candidate, encoder=encoder)
    return _bases(candidate, encoder)


def switch(exchange: Exchange) -> tuple[str, int]:
    """Put the candidate's content, with what the live file got since the fork, in the place of the live file's.

    Returns:
        Where the replaced content is kept, and how many episodes were carried.

    Raises:
        StoreBusyError: somebody has the live file open.
    """
    live, candidate, encoder = exchange.live, exchange.candidate, exchange.encoder
    retired = f"{live}.retired-{exchange.id}"
    carried = 0
    with _held(Path(live)) as held, tempfile.TemporaryDirectory(prefix=".promoting-", dir=Path(live).parent) as folder:
        _note_copy(held, retired)
        with whole_file(retired, mode=Path(live).stat().st_mode & 0o777) as partial:
            _copy(held, partial)
        try:
            new = Path(folder) / "new.db"
            restore(candidate, new, encoder=encoder)  # which notes no copy: this one is gone in a moment
            for name in Memory.namespaces(retired):
                carried += _carry(retired, new, candidate, name, exchange.base.get(name), encoder)
            _single_file(new)
            before, after = _bases(retired, encoder), _bases(new, encoder)
        except BaseException:
            Path(retired).unlink()  # nothing took its place
            raise
        exchange.intend((retired, exchange.namespace), before, after)
        _replace(new, held, live)
    exchange.ended()
    return retired, carried


def _carry(retired: str, new: Path, candidate: str, name: str, base: Base | None, encoder: StateEncoder | None) -> int:
    """Add what the replaced file got since, and the copies that it knew of; return how many episodes were new."""
    with open_branch(retired, name, encoder) as old:
        since = lines_of(old) if base is None else grown(old, base)
        gamma, known, encoder = old.gamma, old.copies(), old.encoder
    if candidate not in {one.path for one in known}:
        known.append(Copy("backup", candidate, time.time()))
    with Memory.open(new, namespace=name, gamma=gamma, encoder=encoder) as memory:
        carried = carry(memory, since)
        memory.verify()
    carry_copies(known, new, name)
    return carried


def _bases(path: str | os.PathLike[str], encoder: StateEncoder | None) -> dict[str, Base]:
    found = {}
    for name in Memory.namespaces(path):
        with open_branch(path, name, encoder) as memory:
            found[name] = base_of(lines_of(memory))
    return found


@contextlib.contextmanager
def _held(place: Path) -> Iterator[StoreFile]:
    """Hold a store so that nobody else can read or write it; it stays whole if this process is killed."""
    held = StoreFile(place, "rw", timeout_s=1.0)
    try:
        with held.lock:
            try:
                held.pragma("locking_mode = EXCLUSIVE")
                held.schema()
                held.pragma("journal_mode = WAL")
                held.connection.execute("BEGIN EXCLUSIVE")
                held.connection.execute("COMMIT")
                held.connection.execute("PRAGMA synchronous = FULL")
            except sqlite3.Error as error:
                if ((getattr(error, "sqlite_errorcode", None) or 0) & 0xFF) in _BUSY:
                    raise StoreBusyError(
                        f"{place} is in use",
                        "a memory is replaced only while nobody has it open",
                        "Close it everywhere.",
                    ) from error
                with sqlite_connection.store_errors(str(place), "See the message above."):
                    raise
            yield held
            with sqlite_connection.store_errors(str(place), "See the message above."):
                held.pragma("journal_mode = DELETE")
    finally:
        held.close()


def _note_copy(held: StoreFile, path: str) -> None:
    """Have every namespace name a copy before it is made: so an erasure misses none."""
    with sqlite_connection.store_errors(held.path, "Free space."):
        if held.schema() < SCHEMA_VERSION:
            return  # it may know of no copies yet
        ask = held.connection.execute
        ask("BEGIN IMMEDIATE")
        try:
            ask("UPDATE namespace SET copies = copies + 1")
            ask(
                "INSERT INTO copy (namespace_id, seq, kind, path, created_at) "
                "SELECT id, copies, 'backup', ?, ? FROM namespace",
                (path, time.time()),
            )
            ask("COMMIT")
        except BaseException:
            held.connection.rollback()
            raise


def _copy(held: StoreFile, target: Path) -> None:
    new = StoreFile(target, "rw")
    try:
        with new.lock, sqlite_connection.store_errors(str(target), "Free space."):
            held.connection.backup(new.connection)
            new.pragma("journal_mode = DELETE")
    finally:
        new.close()


def _single_file(path: Path) -> None:
    file = StoreFile(path, "rw")
    try:
        with file.lock, sqlite_connection.store_errors(str(path), "Try again."):
            file.pragma("journal_mode = DELETE")
    finally:
        file.close()


def _replace(new: Path, held: StoreFile, live: str) -> None:
    """Replace what the live file holds, in one transaction."""
    file = StoreFile(new, "ro")
    try:
        with file.lock, sqlite_connection.store_errors(live, "Free space; the live memory is as it was."):
            file.connection.backup(held.connection)
    finally:
        file.close()
