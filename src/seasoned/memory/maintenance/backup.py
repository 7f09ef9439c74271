"""Backup and restore of stores: atomic, verified, and possible during writes."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seasoned import sqlite_connection
from seasoned.errors import (
    ForeignStoreError,
    InputError,
    IntegrityError,
    NotFoundError,
    ReadOnlyStoreError,
    StoreBusyError,
    UnknownNameError,
)
from seasoned.memory.memory import Memory
from seasoned.memory.namespace import list_entries
from seasoned.memory.retention.copies import Copy, record_copies
from seasoned.memory.stores.atomic_file import StoreFile, check_path, whole_file
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.registry import display_path, is_file, open_store, store_kind
from seasoned.memory.stores.sqlite_schema import SCHEMA_VERSION
from seasoned.memory.transfer.merge import encoder_of, merge_stores
from seasoned.protocols import StateEncoder

__all__ = ["BackupResult", "backup", "restore"]


@dataclass(frozen=True, slots=True)
class BackupResult:
    """Result of a backup or a restore.

    `hashes`: of each namespace, from `verify` of the copy; None if its encoder is unknown here, so that only SQLite
    checked it. `noted`: whether the source recorded this copy, so that an erasure can name it.
    """

    source: str
    target: str
    schema: int
    bytes: int
    hashes: dict[str, str | None]
    noted: bool


def backup(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    encoder: StateEncoder | None = None,
) -> BackupResult:
    """Copy a store into a file, as of one instant, while others read and write it.

    The copy is one file without a log, checked (by SQLite, and by `verify` namespace by namespace) before it gets its
    name; a failure leaves no file. Until then no other user can read it. A store on PostgreSQL is merged into a new
    file, each namespace as of one instant. A store of an older schema is copied unchanged. The source records the copy
    before it is filled, so that an erasure names it, finished or not.

    Args:
        source: a file or `postgresql://...`.
        target: a file.
        overwrite: whether the target may exist.
        encoder: for namespaces whose encoder is not built in.

    Raises:
        InputError: the target exists, is no file, or is the source.
        NotFoundError, ForeignStoreError, NewerStoreError: the source does not exist, or is no readable store.
        IntegrityError: the source is damaged.
        StoreError: the target cannot be written, or is a store in use.

    Example:
        >>> import tempfile
        >>> from seasoned import Episode, Memory, Step
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Memory.open(f"{folder.name}/agent.db") as memory:
        ...     _ = memory.add(Episode("shop", [Step("cart", "pay", 1.0)]))
        ...     copied = backup(f"{folder.name}/agent.db", f"{folder.name}/copy.db")
        ...     copied.hashes["default"] == memory.verify().hash
        True
        >>> folder.cleanup()
    """
    for path in (source, target):
        check_path(path)
    if not is_file(target):
        raise InputError(
            f"the target {display_path(target)}",
            "a backup must be a file",
            "To copy into a server: seasoned memory merge.",
        )
    noted: list[bool] = []

    def record() -> None:  # before the copy exists: an erasure misses none
        noted.append(_record(source, os.path.realpath(target)))

    if not is_file(source):
        with contextlib.closing(open_store(source, create=False, read_only=True)) as store:
            shown = store.path
            if not list_entries(store):
                raise NotFoundError(
                    f"{shown}: no namespace of this role",
                    "a backup holds the namespaces of the role that makes it",
                    "Connect as each tenant in turn; the server's own pg_dump backs up all at once.",
                )
            with whole_file(target, overwrite=overwrite, record=record) as partial:
                merge_stores(partial, [store], None, encoder, checked=False)
                return _finish(partial, shown, target, encoder, noted=any(noted))
    place = _existing(source)
    _refuse_same(place, target)
    schema = _check_store(place)
    mode = stat.S_IMODE(place.stat().st_mode)
    with whole_file(
        target, overwrite=overwrite, mode=mode, record=record if schema == SCHEMA_VERSION else None
    ) as partial:
        _copy(place, partial, "Restore a backup, or export the rows that `sqlite3 .recover` saves.")
        return _finish(partial, str(place), target, encoder, noted=any(noted))


def restore(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    encoder: StateEncoder | None = None,
) -> BackupResult:
    """Restore a store from a backup, which is checked first; a failure leaves the target unchanged.

    A store in use is not overwritten, since its open connections would continue with cached data. On PostgreSQL the
    backup is merged into a database without namespaces.

    Args:
        source: the backup.
        target: a file or `postgresql://...`.
        overwrite: whether the target may exist.
        encoder: for namespaces whose encoder is not built in.

    Raises:
        InputError: the target exists, is no file, or is the backup.
        NotFoundError, ForeignStoreError, NewerStoreError: the backup does not exist, or is no readable store.
        IntegrityError: the backup is damaged or incomplete.
        StoreError: the target cannot be written, or is a store in use.
    """
    for path in (source, target):
        check_path(path)
    if not is_file(source):
        raise InputError(
            f"the source {display_path(source)}",
            "a backup must be a file",
            "To copy from a server: seasoned memory backup.",
        )
    place = _existing(source)
    _check_store(place)
    if not is_file(target):
        return _restore_to_server(place, str(target), overwrite, encoder)
    _refuse_same(place, target)
    with whole_file(target, overwrite=overwrite, mode=stat.S_IMODE(place.stat().st_mode)) as partial:
        _copy(place, partial, "Use another backup.")
        return _finish(partial, str(place), target, encoder, noted=False)


def _restore_to_server(place: Path, url: str, overwrite: bool, encoder: StateEncoder | None) -> BackupResult:
    if overwrite:
        raise InputError(
            "overwrite", "a database on a server is not overwritten", "Restore into an empty one, or merge."
        )
    with contextlib.closing(open_store(url, create=True, read_only=False)) as store:
        shown = store.path
        with store.snapshot():
            known = list(list_entries(store))
    if known:
        raise InputError(
            f"{shown} has namespaces {', '.join(map(repr, known[:10]))}",
            "a backup must be restored into an empty database",
            "To add the missing records: seasoned memory merge.",
        )
    _check_whole(place, "Use another backup.")
    hashes = _hashes(place, encoder)
    with contextlib.closing(open_store(place, create=False, read_only=True)) as source:
        merge_stores(url, [source], None, encoder, checked=False)
    return BackupResult(str(place), shown, store_kind(url).schema_version, place.stat().st_size, hashes, noted=False)


# -------------------------------------------------------------------------------------- before anything is written


def _existing(path: str | os.PathLike[str]) -> Path:
    place = Path(path)
    if not place.exists():
        raise NotFoundError(f"{place}", "this file does not exist", "Check the path.")
    if not place.is_file():
        raise ForeignStoreError(f"{place} is no regular file", "a store must be a file", "Name a file.")
    return place


def _refuse_same(source: Path, target: str | os.PathLike[str]) -> None:
    if os.path.realpath(source) == os.path.realpath(target) or (Path(target).exists() and source.samefile(target)):
        raise InputError(f"{target}", "a store must not be copied onto itself", "Name another file.")


def _check_store(place: Path) -> int:
    """Return the schema of a store."""
    file = StoreFile(place, "ro")
    try:
        with file.lock, sqlite_connection.store_errors(str(place), "Use another copy of it."):
            return file.schema()
    finally:
        file.close()


# ---------------------------------------------------------------------------------------------- copying


def _copy(source: Path, partial: Path, mend: str) -> None:
    """Copy the committed content, log included, into one file without a log."""
    old, new = StoreFile(source, "ro"), StoreFile(partial, "rw")
    try:
        with old.lock, new.lock, sqlite_connection.store_errors(str(source), mend):
            old.connection.backup(new.connection)
    finally:
        old.close()
        new.close()
    _check_whole(partial, mend, shown=source)


def _check_whole(place: Path, mend: str, shown: Path | None = None) -> None:
    file = StoreFile(place, "ro")
    try:
        with file.lock, sqlite_connection.store_errors(str(shown or place), mend):
            found = file.pragma("integrity_check")
    finally:
        file.close()
    if found != "ok":
        raise IntegrityError(f"{shown or place}: SQLite says {found[:300]!r}", "a store must be whole", mend)


def _finish(
    partial: Path, shown: str, target: str | os.PathLike[str], encoder: StateEncoder | None, *, noted: bool
) -> BackupResult:
    file = StoreFile(partial, "rw")
    try:
        with file.lock, sqlite_connection.store_errors(str(target), "Try again."):
            file.pragma("journal_mode = DELETE")  # one file, readable in a read-only folder
            schema = file.schema()
    finally:
        file.close()
    if schema == SCHEMA_VERSION:
        hashes = _hashes(partial, encoder)
    else:
        with _migrated(partial) as scratch:
            hashes = _hashes(scratch, encoder)
    return BackupResult(shown, str(target), schema, partial.stat().st_size, hashes, noted)


@contextlib.contextmanager
def _migrated(old: Path) -> Iterator[Path]:
    """Yield a temporary copy of an older store, migrated to the present schema."""
    scratch = old.with_name(f"{old.name}.scratch")
    try:
        shutil.copyfile(old, scratch)
        Memory.namespaces(scratch, read_only=False)
        yield scratch
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            scratch.with_name(scratch.name + suffix).unlink(missing_ok=True)


def _hashes(place: Path, given: StateEncoder | None) -> dict[str, str | None]:
    """Verify each namespace with a known encoder; return the hashes."""
    hashes: dict[str, str | None] = {}
    for name, identity in Memory.namespaces(place).items():
        try:
            encoder = encoder_of(identity, given)
        except UnknownNameError:
            hashes[name] = None
            continue
        with Memory.open(place, namespace=name, encoder=encoder, create=False, read_only=True) as memory:
            hashes[name] = memory.verify().hash
    return hashes


def _record(source: str | os.PathLike[str], path: str) -> bool:
    """Record a backup in all namespaces of its source; return False for a read-only or busy source."""
    copy = Copy("backup", path, time.time())

    def attempt(store: Store, namespace_id: int) -> None:
        with store.transaction(namespace_id):
            record_copies(store, namespace_id, [copy])

    try:
        with contextlib.closing(open_store(source, create=False, read_only=False)) as store:
            with store.snapshot():
                ids = [entry.id for entry in list_entries(store).values()]
            for namespace_id in ids:
                store.retrying(functools.partial(attempt, store, namespace_id))
        return True
    except (ReadOnlyStoreError, StoreBusyError):
        return False
