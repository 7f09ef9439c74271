"""The sessions of an experiment, and how each ended: one that was killed could not write that down itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seasoned.lab.runner.file_lock import LOCK, is_locked
from seasoned.lab.runner.workers import journal_file

__all__ = ["ERROR", "INTERRUPTED", "KILLED", "RUNNING", "early_end_sentence", "session_endings"]

INTERRUPTED = "interrupted"
KILLED = "killed, or the machine stopped"
RUNNING = "nothing yet: it runs"
ERROR = "an error: "


def session_endings(
    sessions: Sequence[Mapping[str, Any]], folder: Path, *, begins: bool = False
) -> list[dict[str, Any]]:
    """Return the sessions, each with how it ended.

    One that wrote no end was killed. The last thing that it wrote says how long it ran at least: its `seconds` are
    None where it wrote nothing, and `at_least` is true.

    Args:
        sessions: as the experiment's file has them.
        folder: of the experiment.
        begins: the caller holds the experiment's lock and begins the next session, so that none of these still runs.

    Example: >>> [each["stopped"] for each in session_endings([{"at": 0.0}, {"at": 1.0, "seconds": 2.0, "stopped":
    None}], Path("."))]
        ['killed, or the machine stopped', None]
    """
    found = []
    for number, session in enumerate(sessions):
        each = dict(session)
        if "seconds" not in each:
            is_last = number == len(sessions) - 1  # what earlier ones wrote is gone
            last = _last_written(folder) if is_last else None
            began = each.get("at")
            each["seconds"] = last - began if last is not None and began is not None and last >= began else None
            each["at_least"] = True
            runs = is_last and not begins and is_locked(folder / LOCK)
            each["stopped"] = RUNNING if runs else KILLED
        found.append(each)
    return found


def early_end_sentence(stopped: str | None) -> str | None:
    """Return a sentence on what ended the last session before its runs did, if something has.

    Example:
        >>> early_end_sentence("interrupted")
        'The last session did not come to its end: interrupted.'
        >>> early_end_sentence("seconds: 1 of 1")
        'The budget stopped the experiment: seconds: 1 of 1.'
    """
    if stopped is None or stopped == RUNNING:
        return None
    if stopped in (INTERRUPTED, KILLED) or stopped.startswith(ERROR):
        return f"The last session did not come to its end: {stopped}."
    return f"The budget stopped the experiment: {stopped}."


def _last_written(folder: Path) -> float | None:
    """When a worker last told of something, in seconds since 1970; None if none did, or does not say when."""
    try:
        *lines, _ = journal_file(folder).read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    times = [json.loads(line).get("at") for line in lines]
    return max((at for at in times if at is not None), default=None)
