"""A watchdog that ends the process of an episode that blocks its thread and cannot be interrupted."""

from __future__ import annotations

import faulthandler
import re
from pathlib import Path
from types import TracebackType

__all__ = ["Watchdog", "busy_place"]

_FILE = "busy.txt"
_MOST_GRACE_S, _LEAST_GRACE_S = 10.0, 2.0
_PLACE = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)


class Watchdog:
    """A watchdog that ends this process after the limit and a grace period as long (at least 2, at most 10 seconds).

    The event loop interrupts an episode that waits at the limit; the watchdog ends one that blocks the thread. It works
    without the interpreter lock, so it also ends native code. The traceback is written to a file in the folder.

    Args:
        home: the folder of the run.
        limit_s: of an episode, in seconds; None: no limit.
    """

    def __init__(self, home: Path, limit_s: float | None) -> None:
        self._path = home / _FILE
        self._seconds = None if limit_s is None else limit_s + min(max(limit_s, _LEAST_GRACE_S), _MOST_GRACE_S)
        self._file = None if limit_s is None else self._path.open("w", encoding="utf-8")

    def __enter__(self) -> Watchdog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)

    def begin(self) -> None:
        """Start the timer."""
        if self._seconds is not None and self._file is not None:
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._file)

    def end(self) -> None:
        """Stop the timer."""
        if self._file is not None:
            faulthandler.cancel_dump_traceback_later()


def busy_place(home: Path) -> tuple[str, str] | None:
    """Return the place in the code where the watchdog ended a run, and the traceback; None if it did not."""
    try:
        trace = (home / _FILE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    places = _PLACE.findall(trace.rpartition("Thread 0x")[2])  # the main thread is the last
    if not places:
        return None
    file, line, function = places[0]
    return f"{Path(file).name}, line {line}, in {function}", trace
