"""File locks that the system releases when their holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from seasoned.errors import ConfigError, InputError

__all__ = ["LOCK", "hold_lock", "is_locked"]

LOCK = "lock"
"""The name of the lock file in the folder of an experiment."""

_POLL_S = 0.1


@contextlib.contextmanager
def hold_lock(file: Path, seen: str, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the exclusive lock of a file, against other processes and against other holders in this one.

    Args:
        file: created if it does not exist, and not removed.
        seen: the message if another holder has the lock.
        wait_s: time to wait for the lock, in seconds.

    Raises:
        ConfigError: another holder has the lock.
        InputError: the file cannot be created or locked.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, hold_lock(Path(folder) / "lock", "it is in use"):
        ...     with hold_lock(Path(folder) / "lock", "it is in use"):
        ...         pass
        Traceback (most recent call last):
        ...
        seasoned.errors.ConfigError: it is in use: one process at a time does that. Wait, or stop the other.
    """
    until = time.monotonic() + wait_s
    try:
        stream = file.open("a")
    except OSError as error:
        raise _lock_error(file, error) from error
    with stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise ConfigError(seen, "one process at a time does that", "Wait, or stop the other.") from None
                time.sleep(_POLL_S)
            except OSError as error:
                raise _lock_error(file, error) from error
        yield


def is_locked(file: Path) -> bool:
    """Return whether the lock of a file is held; False without a file.

    Example:
        >>> is_locked(Path("no such folder/lock"))
        False
    """
    try:
        with file.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # it does not exist, or cannot be locked
    return False


def _lock_error(file: Path, error: OSError) -> InputError:
    return InputError(f"{file}: {error}", "an experiment's folder can be written and locked", "Choose another folder.")
