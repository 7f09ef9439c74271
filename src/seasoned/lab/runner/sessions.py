"""The sessions of an experiment and their ends; the end of a killed session is derived from the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seasoned.lab.runner.file_lock import LOCK, is_locked
from seasoned.lab.runner.workers import journal_file

__all__ = ["ERROR_PREFIX", "INTERRUPTED", "KILLED", "RUNNING", "early_end_sentence", "session_endings"]

INTERRUPTED = "interrupted"
KILLED = "killed, or the machine stopped"
RUNNING = "nothing yet: it runs"
ERROR_PREFIX = "an error: "


def session_endings(
    sessions: Sequence[Mapping[str, Any]], folder: Path, *, begins: bool = False
) -> list[dict[str, Any]]:
    """Return the sessions, each with its end.

    A session that wrote no end was killed. Its `seconds` count until its last journal entry, with `at_least` true; they
    are None without an entry.

    Args:
        sessions: from the experiment's file.
        folder: of the experiment.
        begins: the caller holds the experiment's lock and begins the next session, so none of these is running.

    Example: >>> [each["stopped"] for each in session_endings([{"at": 0.0}, {"at": 1.0, "seconds": 2.0, "stopped":
    None}], Path("."))]
        ['killed, or the machine stopped', None]
    """
    endings = []
    for number, session in enumerate(sessions):
        each = dict(session)
        if "seconds" not in each:
            is_last = number == len(sessions) - 1  # each session replaces the journal
            last = _last_written(folder) if is_last else None
            began = each.get("at")
            each["seconds"] = last - began if last is not None and began is not None and last >= began else None
            each["at_least"] = True
            running = is_last and not begins and is_locked(folder / LOCK)
            each["stopped"] = RUNNING if running else KILLED
        endings.append(each)
    return endings


def early_end_sentence(stopped: str | None) -> str | None:
    """Return a sentence about the early end of the last session; None if it did not end early.

    Example:
        >>> early_end_sentence("interrupted")
        'The last session ended early: interrupted.'
        >>> early_end_sentence("seconds: 1 of 1")
        'The budget stopped the experiment: seconds: 1 of 1.'
    """
    if stopped is None or stopped == RUNNING:
        return None
    if stopped in (INTERRUPTED, KILLED) or stopped.startswith(ERROR_PREFIX):
        return f"The last session ended early: {stopped}."
    return f"The budget stopped the experiment: {stopped}."


def _last_written(folder: Path) -> float | None:
    """Return the time of the last journal entry, in seconds since 1970; None without an entry with a time."""
    try:
        *lines, _ = journal_file(folder).read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    times = [json.loads(line).get("at") for line in lines]
    return max((at for at in times if at is not None), default=None)
