"""An end to what keeps its thread busy: it hears no interruption, so its process ends with it."""

from __future__ import annotations

import faulthandler
import re
from pathlib import Path
from types import TracebackType

__all__ = ["Watchdog", "busy_place"]

FILE = "busy.txt"
_MOST_GRACE_S, _LEAST_GRACE_S = 10.0, 2.0
_PLACE = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)


class Watchdog:
    """Ends this process where a limit has passed, and as long again (2 seconds at least, 10 at most).

    What waits is interrupted at the limit by whoever plays; this is for what does not wait. It needs no turn of the
    interpreter, so that a library which never gives one back ends too. Where it was goes into a file of the folder.

    Args:
        home: the folder of the run.
        limit_s: of an episode, in seconds; None: nothing is watched.
    """

    def __init__(self, home: Path, limit_s: float | None) -> None:
        self._path = home / FILE
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
        """Watch from now on."""
        if self._seconds is not None and self._file is not None:
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._file)

    def end(self) -> None:
        """Watch no more."""
        if self._file is not None:
            faulthandler.cancel_dump_traceback_later()


def busy_place(home: Path) -> tuple[str, str] | None:
    """Return where the process of a run was when a watch ended it, and its whole traceback; None if none did."""
    try:
        trace = (home / FILE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    places = _PLACE.findall(trace.rpartition("Thread 0x")[2])  # the main thread is the last
    if not places:
        return None
    file, line, function = places[0]
    return f"{Path(file).name}, line {line}, in {function}", trace
