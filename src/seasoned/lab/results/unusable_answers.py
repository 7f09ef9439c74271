"""Model answers that arms wanted to learn from and could not use."""

from __future__ import annotations

import json
from collections.abc import Sequence

from seasoned.errors import InputError
from seasoned.lab.results.run_results import RunResult

__all__ = ["ASKS", "unusable_answers"]

ASKS = frozenset({"reflexion", "workflows", "evolve"})
"""Kinds of arms that request a text to learn from."""

_FILE = "faults.json"


def unusable_answers(runs: Sequence[RunResult], kind: str) -> tuple[str, ...] | None:
    """Return a line for each unusable answer of finished runs; None for an arm without such requests.

    Args:
        runs: finished runs. A run of a kind in `ASKS` without a file had no such answer.
        kind: of the arm.

    Raises:
        InputError: a file is damaged.
    """
    files = [path for run in runs if (path := run.folder / _FILE).exists()]
    if not files and (kind not in ASKS or not runs):
        return None
    answers: list[str] = []
    for path in files:
        try:
            lines = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path}: {error}", "a run's faults are a JSON list of texts", "Delete it.") from error
        if not isinstance(lines, list):
            raise InputError(f"{path}: {type(lines).__name__}", "a run's faults are a JSON list of texts", "Delete it.")
        answers += map(str, lines)
    return tuple(answers)
