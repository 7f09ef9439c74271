"""Private folders for copies in the making: locked by their owner, and removed by others once the owner is dead."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["partial_folder", "partials_of", "remove_dead_partials"]

_SUFFIX = ".partial"


@contextlib.contextmanager
def partial_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder `.NAME.RANDOM.partial` beside `target`, which no other user can read.

    It is removed at the end, and locked until then. The kernel releases the lock of a killed process, so that
    `remove_dead_partials` can tell its folder from one in use; a process number could be in use again.

    Raises:
        OSError: the folder cannot be made.
    """
    remove_dead_partials(target)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_SUFFIX, dir=target.parent))
        try:
            lock = _lock(folder)
        except (BlockingIOError, FileNotFoundError):  # another took it for a dead one's, and removes or removed it
            continue
        if lock is None or _is_at(folder, lock):
            break
        os.close(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def partials_of(target: Path) -> list[Path]:
    """Return the partial copies beside `target`, also files of earlier versions, in use or not."""
    try:
        found = sorted(target.parent.iterdir())
    except OSError:
        return []
    return [path for path in found if path.name.startswith(f".{target.name}.") and path.name.endswith(_SUFFIX)]


def remove_dead_partials(target: Path) -> list[Path]:
    """Remove the partial copies beside `target` whose owner is dead, and return those that are left."""
    return [partial for partial in partials_of(target) if not _removed(partial)]


def _removed(partial: Path) -> bool:
    try:
        lock = _lock(partial) if partial.is_dir() and not partial.is_symlink() else None
    except OSError:  # in use, or another user's
        return False
    if lock is None:
        return False
    try:
        shutil.rmtree(partial)
    except OSError:
        return not partial.exists()
    finally:
        os.close(lock)
    return True


def _lock(folder: Path) -> int | None:
    """Return a descriptor that holds the lock of a folder; None where folders cannot be locked.

    Raises:
        BlockingIOError: another process or thread holds it.
        OSError: the folder is gone, or another user's.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # a file system without such locks
        os.close(descriptor)
        return None
    return descriptor


def _is_at(folder: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except OSError:
        return False
