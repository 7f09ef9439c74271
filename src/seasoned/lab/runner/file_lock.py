"""One process at a time: locks that the system takes back when their holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from seasoned.errors import ConfigError, InputError

__all__ = ["LOCK", "hold_lock", "is_locked"]

LOCK = "lock"
"""The file in a folder of an experiment by whose lock one process at a time runs it."""

_POLL_S = 0.1


@contextlib.contextmanager
def hold_lock(file: Path, seen: str, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock of a file, so that nobody else does: neither a process nor another holder in this one.

    Args:
        file: made if it is not there; it stays.
        seen: what somebody else is doing, where the lock is not to be had.
        wait_s: how long to wait for it, in seconds.

    Raises:
        ConfigError: somebody else holds it.
        InputError: the file cannot be made or locked.

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
        opened = file.open("a")
    except OSError as error:
        raise _unusable(file, error) from error
    with opened:
        while True:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise ConfigError(seen, "one process at a time does that", "Wait, or stop the other.") from None
                time.sleep(_POLL_S)
            except OSError as error:
                raise _unusable(file, error) from error
        yield


def is_locked(file: Path) -> bool:
    """Whether somebody holds the lock of a file; nobody does where there is none.

    Example:
        >>> is_locked(Path("no such folder/lock"))
        False
    """
    try:
        with file.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # it is not there, or cannot be locked by anybody
    return False


def _unusable(file: Path, error: OSError) -> InputError:
    return InputError(f"{file}: {error}", "an experiment's folder can be written and locked", "Choose another folder.")
