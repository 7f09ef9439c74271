"""What an experiment found, read back from its folder: every run's episodes, and what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seasoned.agents import EpisodeResult, read_results
from seasoned.errors import InputError, NewerStoreError, NotFoundError
from seasoned.lab.experiments.suite import Cell, Suite
from seasoned.lab.experiments.suite_reading import read_suite

__all__ = ["FILE", "FORMAT", "CellResults", "Results", "cell_folder", "load_results"]

FORMAT = 1
FILE = "lab.json"


@dataclass(frozen=True, slots=True)
class CellResults:
    """One learning run, as far as it went.

    Args:
        cell: which.
        folder: where its record and its memory are.
        episodes: those it learned from, in order; each was scored before it was learned from.
        transfer: by split, the episodes played in the end, with nothing learned from them.
        error: what broke it off, in a line; None if nothing did.
        done: whether every episode of it was played.
    """

    cell: Cell
    folder: Path
    episodes: tuple[EpisodeResult, ...]
    transfer: Mapping[str, tuple[EpisodeResult, ...]]
    error: str | None
    done: bool


@dataclass(frozen=True, slots=True)
class Results:
    """An experiment, as far as it went.

    Args:
        suite: what was asked.
        cells: every learning run of the suite, those not begun included.
        record: versions, machine, git revision, and when it ran.
        folder: where it all is.
    """

    suite: Suite
    cells: tuple[CellResults, ...]
    record: Mapping[str, Any]
    folder: Path

    def of(self, task: str, arm: str) -> tuple[CellResults, ...]:
        """Return the finished runs of an arm at a task, by seed."""
        return tuple(each for each in self.cells if (each.cell.task, each.cell.arm) == (task, arm) and each.done)


def cell_folder(folder: Path, cell: Cell) -> Path:
    """Return where a run's record and memory are kept."""
    return folder / "runs" / cell.task / cell.arm / str(cell.seed)


def load_results(folder: Path) -> Results:
    """Read an experiment's folder; it may still be running.

    Raises:
        NotFoundError: it holds no experiment.
        NewerStoreError: another version of seasoned wrote it.
        InputError: a record is damaged.
    """
    suite, record = read_lab_file(folder)
    return Results(suite, tuple(_load_cell(folder, suite, cell) for cell in suite.cells()), record, folder)


def read_lab_file(folder: Path) -> tuple[Suite, dict[str, Any]]:
    """Return the suite of an experiment's folder, and the rest of its file."""
    file = folder / FILE
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        version, data = record["format"], record.pop("suite")
    except FileNotFoundError:
        raise NotFoundError(
            f"{folder}: no {FILE}", "an experiment's folder holds one", "Begin with seasoned lab run SUITE."
        ) from None
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise InputError(f"{file}: {error}", "it is an experiment's own file", "Choose another folder.") from error
    if version != FORMAT:
        raise NewerStoreError(
            f"{file} has format {version!r}",
            f"this seasoned reads format {FORMAT}",
            "Read it with the version that wrote it, or begin anew in another folder.",
        )
    return read_suite(data, str(file)), record


def write_lab_file(folder: Path, suite: Suite, record: Mapping[str, Any]) -> None:
    """Write the suite and the record, whole or not at all."""
    file = folder / FILE
    draft = file.with_name(f"{FILE}.tmp")
    draft.write_text(json.dumps({"format": FORMAT, "suite": suite.to_json(), **record}, indent=2) + "\n")
    draft.replace(file)


def _load_cell(folder: Path, suite: Suite, cell: Cell) -> CellResults:
    home = cell_folder(folder, cell)
    episodes = read_results(home)
    played = [(each, read_results(home / f"transfer-{i}")) for i, each in enumerate(suite.task(cell.task).transfer)]
    transfer: dict[str, tuple[EpisodeResult, ...]] = {}
    for each, found in played:
        transfer[each.split] = transfer.get(each.split, ()) + found[: each.episodes]
    wanted = suite.episodes(cell)
    done = len(episodes) >= wanted and all(len(found) >= each.episodes for each, found in played)
    return CellResults(cell, home, episodes[:wanted], transfer, read_error(home), done)


def read_error(home: Path) -> str | None:
    """Return what broke a run off, in a line, if something did."""
    try:
        return str(json.loads((home / "error.json").read_text(encoding="utf-8"))["error"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise InputError(f"{home / 'error.json'}: {error}", "a run's error is JSON", "Delete it.") from error
