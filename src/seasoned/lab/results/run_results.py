"""What an experiment found, read back from its folder: every run's episodes, and what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seasoned.agents import EpisodeResult, read_code, read_lost_usage, read_results
from seasoned.errors import InputError, NewerStoreError, NotFoundError, SeasonedError, StoreError, excerpt
from seasoned.lab.suites.suite import RunKey, Suite
from seasoned.lab.suites.suite_toml import read_suite
from seasoned.protocols import Usage

__all__ = [
    "FILE",
    "FORMAT",
    "MEMORY",
    "ExperimentResults",
    "RunResult",
    "load_results",
    "planned_episodes",
    "run_folder",
]

FORMAT = 1
FILE = "lab.json"
ERROR = "error.json"
MEMORY = "memory.db"
FILLED = "filled"
"""The folder, in a run's, of the record of the episodes that its memory was filled with."""
DRAFT = f"{FILE}.tmp"
_SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class RunResult:
    """One learning run, as far as it went.

    Args:
        key: which.
        folder: where its record and its memory are.
        episodes: those it learned from, in order; each was scored before it was learned from.
        transfer: by split, the episodes played in the end, with nothing learned from them.
        error: what broke it off, or what is damaged in its folder, in a line; None if nothing is wrong.
        done: whether every episode of it was played, and can be read.
        lost: what is in no episode's figures: what episodes that broke off had asked of the model, and what was asked
            to learn from the episodes that a memory was filled with.
        code: names and hashes of the code that environments of one's own were made by; two of a name if it changed.
    """

    key: RunKey
    folder: Path
    episodes: tuple[EpisodeResult, ...]
    transfer: Mapping[str, tuple[EpisodeResult, ...]]
    error: str | None
    done: bool
    lost: Usage = field(default_factory=Usage)
    code: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class ExperimentResults:
    """An experiment, as far as it went.

    Args:
        suite: what was asked.
        runs: every learning run of the suite, those not begun included.
        record: versions, machine, git revision, and when it ran.
        folder: where it all is.
    """

    suite: Suite
    runs: tuple[RunResult, ...]
    record: Mapping[str, Any]
    folder: Path

    def of(self, task: str, arm: str) -> tuple[RunResult, ...]:
        """Return the finished runs of an arm at a task, by seed."""
        return tuple(each for each in self.runs if (each.key.task, each.key.arm) == (task, arm) and each.done)

    @property
    def left(self) -> int:
        """How many episodes are still to be played, those of the transfers included."""
        return sum(
            planned_episodes(self.suite, each.key) - len(each.episodes) - sum(map(len, each.transfer.values()))
            for each in self.runs
        )


def run_folder(folder: Path, run: RunKey) -> Path:
    """Return where a run's record and memory are kept."""
    return folder / "runs" / run.task / run.arm / str(run.seed)


def planned_episodes(suite: Suite, run: RunKey) -> int:
    """Return how many episodes a run plays, those of the transfers included.

    Example:
        >>> from seasoned.lab.suites.suite_toml import load_suite
        >>> planned_episodes(load_suite("quick"), RunKey("grid", "alone", 0))
        20
    """
    return suite.episodes(run) + sum(transfer.episodes for transfer in suite.task(run.task).transfer)


def load_results(folder: Path) -> ExperimentResults:
    """Read an experiment's folder; it may still be running. A run whose record is damaged has an error that says so.

    Raises:
        NotFoundError: it holds no experiment.
        NewerStoreError: a newer seasoned wrote it.
        StoreError: an older one did, whose format is no longer read.
        InputError: its `lab.json` is damaged.
    """
    suite, record = read_lab_file(folder)
    return ExperimentResults(suite, tuple(_load_run(folder, suite, run) for run in suite.runs()), record, folder)


def read_lab_file(folder: Path) -> tuple[Suite, dict[str, Any]]:
    """Return the suite of an experiment's folder, and the rest of its file."""
    file = folder / FILE
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        _check_format(file, record["format"])
        data = record.pop("suite")
    except FileNotFoundError:
        raise NotFoundError(
            f"{folder}: no {FILE}", "an experiment's folder holds one", "Begin with seasoned lab run SUITE."
        ) from None
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise InputError(f"{file}: {error}", "it is an experiment's own file", "Choose another folder.") from error
    return read_suite(data, str(file)), record


def _check_format(file: Path, version: object) -> None:
    if isinstance(version, bool) or not isinstance(version, int):
        raise TypeError(f"format {excerpt(version)}")
    if version != FORMAT:
        kind, age = (NewerStoreError, "a newer") if version > FORMAT else (StoreError, "an older")
        raise kind(
            f"{file} has format {version}, of {age} seasoned",
            f"this seasoned reads format {FORMAT}",
            "Read it with the version that wrote it, or begin anew in another folder.",
        )


def write_lab_file(folder: Path, suite: Suite, record: Mapping[str, Any]) -> None:
    """Write the suite and the record, whole or not at all."""
    file = folder / FILE
    draft = folder / DRAFT
    draft.write_text(json.dumps({"format": FORMAT, "suite": suite.to_json(), **record}, indent=2) + "\n")
    draft.replace(file)


def _load_run(folder: Path, suite: Suite, run: RunKey) -> RunResult:
    home = run_folder(folder, run)
    try:
        episodes = read_results(home)
        ends = [(each, home / f"transfer-{i}") for i, each in enumerate(suite.task(run.task).transfer)]
        played = [(each, read_results(end)) for each, end in ends]
        filled = read_results(home / FILLED)
        lost = sum((read_lost_usage(end) for _, end in ends), read_lost_usage(home) + read_lost_usage(home / FILLED))
        lost = sum((result.usage for result in filled), lost)
        code = frozenset().union(read_code(home), *(read_code(end) for _, end in ends))
        _check_memory(home / MEMORY)
    except SeasonedError as error:  # the trouble of this run, and not of the others
        return RunResult(run, home, (), {}, str(error), False)
    transfer: dict[str, tuple[EpisodeResult, ...]] = {}
    for each, found in played:
        transfer[each.split] = transfer.get(each.split, ()) + found[: each.episodes]
    wanted = suite.episodes(run)
    done = len(episodes) >= wanted and all(len(found) >= each.episodes for each, found in played)
    why = None if done else _read_error(home)
    return RunResult(run, home, episodes[:wanted], transfer, why, done, lost, code)


def _check_memory(file: Path) -> None:
    """Refuse what is plainly no memory; one that is damaged inside is found when it is read."""
    try:
        with file.open("rb") as opened:
            head = opened.read(len(_SQLITE))
    except FileNotFoundError:
        return  # not begun; or a record without its memories
    except OSError as error:
        raise InputError(f"{file}: {error}", "a run's memory can be read", "Look at the disk.") from error
    if head not in (b"", _SQLITE):
        raise InputError(
            f"{file} begins with {excerpt(head)}",
            "a run's memory is an SQLite file",
            f"Bring it back, or remove {file.parent} to play that run anew.",
        )


def _read_error(home: Path) -> str | None:
    """Return what broke a run off, in a line, if something did."""
    try:
        return str(json.loads((home / ERROR).read_text(encoding="utf-8"))["error"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        return f"it broke off, and {ERROR} cannot be read: {error}"
