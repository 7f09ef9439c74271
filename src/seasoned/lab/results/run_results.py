"""The results of an experiment, read from its folder: the episodes and the error of every run."""

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
    "LAB_FILE",
    "MEMORY_FILE",
    "ExperimentResults",
    "RunResult",
    "load_results",
    "planned_episodes",
    "run_folder",
]

_LAB_FORMAT = 1
LAB_FILE = "lab.json"
LAB_DRAFT = f"{LAB_FILE}.tmp"
ERROR_FILE = "error.json"
MEMORY_FILE = "memory.db"
FILLED_FOLDER = "filled"
"""The folder inside a run's folder with the record of the episodes that its memory was filled with."""
_SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class RunResult:
    """The results of one learning run, finished or not.

    Args:
        key: its task, arm and seed.
        folder: the folder with its record and its memory.
        episodes: the learning episodes in order; each was scored before it was learned from.
        transfer: by split, the episodes after the last learning episode.
        error: a line about the error that aborted it, or about damage in its folder; None if there is neither.
        done: whether every episode was played and can be read.
        lost: model usage that no episode includes: that of aborted episodes, and of learning from the episodes that the
            memory was filled with.
        code: names and hashes of the code of user-written environments; two hashes of a name if it changed.
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
    """The results of an experiment, finished or not.

    Args:
        suite: its suite.
        runs: every learning run of the suite, including those not begun.
        record: versions, machine, git revision, and sessions.
        folder: the folder of the experiment.
    """

    suite: Suite
    runs: tuple[RunResult, ...]
    record: Mapping[str, Any]
    folder: Path

    def of(self, task: str, arm: str) -> tuple[RunResult, ...]:
        """Return the finished runs of an arm at a task, by seed."""
        return tuple(each for each in self.runs if (each.key.task, each.key.arm) == (task, arm) and each.done)

    @property
    def remaining_episodes(self) -> int:
        """The number of episodes still to be played, transfer episodes included."""
        return sum(
            planned_episodes(self.suite, each.key) - len(each.episodes) - sum(map(len, each.transfer.values()))
            for each in self.runs
        )


def run_folder(folder: Path, run: RunKey) -> Path:
    """Return the folder of a run's record and memory."""
    return folder / "runs" / run.task / run.arm / str(run.seed)


def planned_episodes(suite: Suite, run: RunKey) -> int:
    """Return the number of episodes of a run, transfer episodes included.

    Example:
        >>> from seasoned.lab.suites.suite_toml import load_suite
        >>> planned_episodes(load_suite("quick"), RunKey("grid", "alone", 0))
        20
    """
    return suite.episodes(run) + sum(transfer.episodes for transfer in suite.task(run.task).transfer)


def load_results(folder: Path) -> ExperimentResults:
    """Read the folder of an experiment, which may still be running. A run with a damaged record gets an error.

    Raises:
        NotFoundError: the folder has no experiment.
        NewerStoreError: a newer seasoned wrote it.
        StoreError: an older seasoned wrote it, in a format that is no longer read.
        InputError: its `lab.json` is damaged.
    """
    suite, record = read_lab_file(folder)
    return ExperimentResults(suite, tuple(_load_run(folder, suite, run) for run in suite.runs()), record, folder)


def read_lab_file(folder: Path) -> tuple[Suite, dict[str, Any]]:
    """Return the suite and the record in the `lab.json` of a folder."""
    file = folder / LAB_FILE
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        _check_format(file, record["format"])
        data = record.pop("suite")
    except FileNotFoundError:
        raise NotFoundError(
            f"{folder}: no {LAB_FILE}", "an experiment's folder has this file", "Start with seasoned lab run SUITE."
        ) from None
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise InputError(f"{file}: {error}", "it is the file of an experiment", "Choose another folder.") from error
    return read_suite(data, str(file)), record


def _check_format(file: Path, version: object) -> None:
    if isinstance(version, bool) or not isinstance(version, int):
        raise TypeError(f"format {excerpt(version)}")
    if version != _LAB_FORMAT:
        kind, age = (NewerStoreError, "a newer") if version > _LAB_FORMAT else (StoreError, "an older")
        raise kind(
            f"{file} has format {version}, of {age} seasoned",
            f"this seasoned reads format {_LAB_FORMAT}",
            "Read it with the version that wrote it, or start again in another folder.",
        )


def write_lab_file(folder: Path, suite: Suite, record: Mapping[str, Any]) -> None:
    """Write the suite and the record atomically."""
    file = folder / LAB_FILE
    draft = folder / LAB_DRAFT
    draft.write_text(json.dumps({"format": _LAB_FORMAT, "suite": suite.to_json(), **record}, indent=2) + "\n")
    draft.replace(file)


def _load_run(folder: Path, suite: Suite, run: RunKey) -> RunResult:
    home = run_folder(folder, run)
    try:
        episodes = read_results(home)
        ends = [(each, home / f"transfer-{i}") for i, each in enumerate(suite.task(run.task).transfer)]
        played = [(each, read_results(end)) for each, end in ends]
        filled = read_results(home / FILLED_FOLDER)
        lost = sum(
            (read_lost_usage(end) for _, end in ends), read_lost_usage(home) + read_lost_usage(home / FILLED_FOLDER)
        )
        lost = sum((result.usage for result in filled), lost)
        code = frozenset().union(read_code(home), *(read_code(end) for _, end in ends))
        _check_memory(home / MEMORY_FILE)
    except SeasonedError as error:  # an error of this run only
        return RunResult(run, home, (), {}, str(error), False)
    transfer: dict[str, tuple[EpisodeResult, ...]] = {}
    for each, results in played:
        transfer[each.split] = transfer.get(each.split, ()) + results[: each.episodes]
    planned = suite.episodes(run)
    done = len(episodes) >= planned and all(len(results) >= each.episodes for each, results in played)
    failure = None if done else _read_error(home)
    return RunResult(run, home, episodes[:planned], transfer, failure, done, lost, code)


def _check_memory(file: Path) -> None:
    """Refuse a file that does not begin like SQLite; damage inside is detected when the memory is read."""
    try:
        with file.open("rb") as stream:
            head = stream.read(len(_SQLITE))
    except FileNotFoundError:
        return  # the run has not begun, or the record was copied without memories
    except OSError as error:
        raise InputError(f"{file}: {error}", "a run's memory can be read", "Check the disk.") from error
    if head not in (b"", _SQLITE):
        raise InputError(
            f"{file} begins with {excerpt(head)}",
            "a run's memory is an SQLite file",
            f"Restore it, or remove {file.parent} to play that run again.",
        )


def _read_error(home: Path) -> str | None:
    """Return the line about the error that aborted a run, or None."""
    try:
        return str(json.loads((home / ERROR_FILE).read_text(encoding="utf-8"))["error"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        return f"the run was aborted, and {ERROR_FILE} cannot be read: {error}"
