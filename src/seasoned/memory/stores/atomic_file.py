"""A file that appears whole or not at all, in place of a store or where there was none."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from seasoned import sqlite_connection
from seasoned.checks import check_file_name
from seasoned.errors import (
    InputError,
    NewerStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    excerpt,
)
from seasoned.memory.stores.partial_folder import partial_folder
from seasoned.memory.stores.registry import is_file
from seasoned.memory.stores.sqlite import check_ours

__all__ = ["StoreFile", "check_path", "whole_file"]

_BESIDE = ("-wal", "-shm", "-journal")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class StoreFile(sqlite_connection.Connection):
    """A bare connection to an SQLite file: no migration, no change of its settings.

    Args:
        path: the file.
        mode: `ro` or `rw`, as in SQLite's URLs; no file is made.
        timeout_s: how long to wait for a lock.
    """

    def __init__(self, path: Path, mode: str, timeout_s: float = sqlite_connection.BUSY_TIMEOUT_S) -> None:
        super().__init__(str(path))
        self._mode = mode
        self._timeout_s = timeout_s

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{Path(str(self.file)).as_uri()}?mode={self._mode}",
            uri=True,
            timeout=self._timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )

    def pragma(self, name: str) -> str:
        """Return or set a setting; returns the first row."""
        return str(self.connection.execute(f"PRAGMA {name}").fetchone()[0])

    def schema(self) -> int:
        """Return the version of the store's schema.

        Raises:
            ForeignStoreError: the file is not a store.
            NewerStoreError: it was written by a newer seasoned.
        """
        application, version = int(self.pragma("application_id")), int(self.pragma("user_version"))
        check_ours(self.path, application if version >= 1 else 0, version)  # a store has a schema
        return version


def check_path(path: object) -> None:
    """Raise InputError unless this can name a file or a database."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path) or not str(path):
        raise InputError(f"path = {excerpt(path)}", "a path is a str or a Path, without NUL", "Name a store.")
    if is_file(path):
        check_file_name(path)


@contextlib.contextmanager
def whole_file(
    target: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    mode: int = 0o666,
    record: Callable[[], object] | None = None,
) -> Iterator[Path]:
    """Yield a new file beside `target`; when the block ends well, it is synced to disk and becomes `target`.

    A store that is overwritten keeps its file: its content is replaced in one transaction, so that neither a crash nor
    its log can mix old and new; while anybody has it open, it is refused. Anything else is replaced by a rename. The
    new file is made in a folder that no other user can read (`partial_folder`). One that a killed process left is
    removed by the next copy to the same target, and by an erasure in a memory that recorded the target.

    Args:
        target: where it appears.
        overwrite: whether something may be there.
        mode: the permissions of a new file, less the umask.
        record: called once the target is checked, before anything is made beside it: a copy that a killed process
            leaves is recorded then.

    Raises:
        InputError: `target` exists and `overwrite` is False; or it is no file.
        ForeignStoreError: it is an SQLite file of another program.
        StoreBusyError: it is a store that is in use.
        StoreFullError, ReadOnlyStoreError, StoreError: the folder cannot be written.
    """
    check_path(target)
    place = Path(target)
    _check_target(place, overwrite)
    if record is not None:
        record()
    with contextlib.ExitStack() as open_:
        with _os_errors(place):
            partial = open_.enter_context(partial_folder(place)) / place.name
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield partial
        with _os_errors(place):
            _sync(partial)
            _publish(partial, place, overwrite)
            _sync(place.parent)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _check_target(target: Path, overwrite: bool) -> None:
    if target.is_dir():
        raise InputError(f"{target} is a folder", "the target must be a file", "Name a file in it.")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent}", "the folder of the target must exist", "Make it first.")
    if overwrite:
        return
    for suffix in ("", *_BESIDE):
        if _beside(target, suffix).exists():
            raise InputError(
                f"{_beside(target, suffix)} exists",
                "nothing is overwritten unasked",
                "Name another file; `export`, `backup` and `restore` also take --overwrite.",
            )


@contextlib.contextmanager
def _os_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        seen = f"{target}: {error.strerror}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFullError(seen, "a copy needs free disk space; nothing was written", "Free space.") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise ReadOnlyStoreError(seen, "writing needs a writable folder", "Check its permissions.") from error
        raise StoreError(seen, "the storage below must work", "See the message above.") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish(partial: Path, target: Path, overwrite: bool) -> None:
    if not overwrite:
        _appear(partial, target)
    elif not (target.exists() and _replace_content(partial, target)):
        _replace_file(partial, target)


def _appear(partial: Path, target: Path) -> None:
    """Give the file its name, unless another process used that name meanwhile."""
    try:
        os.link(partial, target)
    except FileExistsError:
        _check_target(target, overwrite=False)
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _check_target(target, overwrite=False)
        partial.rename(target)


def _replace_content(partial: Path, target: Path) -> bool:
    """Replace the content of a store in one transaction of SQLite; return whether `target` is a store that can be."""
    live, new = StoreFile(target, "rw", timeout_s=1.0), StoreFile(partial, "ro")
    try:
        with live.lock, new.lock:
            live.pragma("locking_mode = EXCLUSIVE")
            if live.pragma("schema_version") == "0":
                return False  # an empty file
            with contextlib.suppress(NewerStoreError):
                live.schema()
            live.pragma("journal_mode = WAL")
            live.connection.execute("BEGIN EXCLUSIVE")
            live.connection.execute("COMMIT")
            live.connection.execute("PRAGMA synchronous = FULL")
            new.connection.backup(live.connection)
            live.pragma("journal_mode = DELETE")
            return True
    except sqlite3.Error as error:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in _DAMAGED:
            return False
        if code in _BUSY:
            raise StoreBusyError(
                f"{target} is in use",
                "a store is overwritten only while no process has it open",
                "Close it everywhere first.",
            ) from error
        with sqlite_connection.store_errors(str(target), "Restore to another path."):
            raise
    finally:
        live.close()
        new.close()


def _replace_file(partial: Path, target: Path) -> None:
    """Replace a file that is no store, or a damaged one. Its log must never be applied to the new file."""
    if target.exists():
        before = target.stat()
        partial.chmod(before.st_mode & 0o7777)
        with contextlib.suppress(OSError):
            os.chown(partial, before.st_uid, before.st_gid)
    aside = {
        _beside(target, suffix): _beside(partial, suffix) for suffix in _BESIDE if _beside(target, suffix).exists()
    }
    for old, new in aside.items():
        old.replace(new)
    try:
        partial.replace(target)
    except OSError:
        for old, new in aside.items():
            new.replace(old)
        raise
