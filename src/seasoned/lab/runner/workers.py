"""Workers that play learning runs: local processes, or a Ray cluster.

A worker appends a line about each episode to the journal in the experiment's folder, and stops when the folder has a
`stop` file. The folder is the only shared state, so this works for every kind of worker.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from seasoned.agents import EpisodeResult
from seasoned.lab.runner.child_processes import Processes, open_processes
from seasoned.lab.runner.learning_run import OutOfBudget, Workbench
from seasoned.lab.runner.spending_limit import SpendingCounter
from seasoned.lab.suites.suite import ExperimentBudget, RunKey
from seasoned.protocols import Usage
from seasoned.registry import load_extra

__all__ = [
    "EpisodeCallback",
    "Job",
    "Workers",
    "clear_signals",
    "journal_file",
    "open_workers",
    "play_learning_run",
    "read_journal",
    "request_stop",
    "started_runs",
    "workbench_of",
]

RunStatus = str
"""The end of a run in a worker: `done`, `failed` (the error is in its folder) or `stopped` (out of budget)."""


@dataclass(frozen=True)
class Job:
    """The settings of all runs of an experiment.

    Args:
        folder: of the experiment.
        cache: the file of the model's answers.
        budget: a worker stops after the episode that spends it; the experiment itself limits the seconds.
        spent: usage of earlier sessions.
    """

    folder: str
    cache: str
    budget: ExperimentBudget = field(default_factory=ExperimentBudget)
    spent: Usage = field(default_factory=Usage)


_workbenches: dict[tuple[str, str, float | None], Workbench] = {}


class EpisodeCallback(Protocol):
    """A function that is called with each episode of a worker; the score of an aborted episode is None."""

    def __call__(self, run: RunKey, score: float | None, steps: int, usage: Usage) -> None:
        """Handle one episode."""
        ...


class Workers(Protocol):
    """An executor of functions in other processes."""

    @property
    def ended(self) -> str:
        """The reason why the process of a single worker ended, as far as it is known."""
        ...

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call a function in a worker."""
        ...


def workbench_of(job: Job) -> Workbench:
    """Return this worker's workbench for an experiment; its model stays open for the next run."""
    key = (job.folder, job.cache, job.budget.episode_seconds)
    if key not in _workbenches:
        _workbenches[key] = Workbench(Path(job.folder), Path(job.cache), job.budget.episode_seconds)
    return _workbenches[key]


def play_learning_run(job: Job, run: RunKey) -> RunStatus:
    """Play one run in a worker."""
    home = Path(job.folder)
    workbench = workbench_of(job)
    if _stop_file(home).exists():
        return "stopped"
    _append(home, {"begin": asdict(run), "pid": os.getpid()})
    spending = SpendingCounter(dataclasses.replace(job.budget, seconds=None), job.spent)
    offset = 0

    def spend(run: RunKey, score: float | None, steps: int, usage: Usage) -> None:
        spending.add(usage)

    def on_episode(run: RunKey, result: EpisodeResult | None, usage: Usage) -> None:
        nonlocal offset
        score, steps = (None, 0) if result is None else (result.score, result.steps)
        _append(home, {"cell": asdict(run), "score": score, "steps": steps, "usage": asdict(usage)})
        if spending.is_limited:  # by the usage of all workers
            offset = read_journal(home, offset, spend)
        if result is not None and (spending.limit or _stop_file(home).exists()):
            raise OutOfBudget

    try:
        return "done" if workbench.play(run, on_episode) else "failed"
    except OutOfBudget:
        return "stopped"


def request_stop(folder: Path) -> None:
    """Make every worker stop after its current episode."""
    _stop_file(folder).touch()


def clear_signals(folder: Path) -> None:
    """Remove the journal and the stop file of an earlier session."""
    _stop_file(folder).unlink(missing_ok=True)
    journal_file(folder).unlink(missing_ok=True)


def read_journal(folder: Path, offset: int, on_episode: EpisodeCallback) -> int:
    """Pass the journal's episodes from `offset` bytes on to a function, and return the new offset."""
    try:
        with journal_file(folder).open("rb") as file:
            file.seek(offset)
            *lines, _ = file.read().split(b"\n")
    except FileNotFoundError:
        return offset
    for line in lines:
        offset += len(line) + 1
        entry = json.loads(line)
        if "cell" in entry:
            on_episode(RunKey(**entry["cell"]), entry["score"], entry["steps"], Usage(**entry["usage"]))
    return offset


def started_runs(folder: Path) -> set[RunKey]:
    """Return the runs that a worker has started."""
    try:
        lines = journal_file(folder).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return set()
    return {RunKey(**entry["begin"]) for entry in map(json.loads, lines) if "begin" in entry}


@contextlib.contextmanager
def open_workers(kind: str | int) -> Iterator[Workers]:
    """Open workers: a number of local processes, or `ray`.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    if kind == "ray":
        with _ray() as workers:
            yield workers
        return
    with open_processes(int(kind)) as processes:
        yield _LocalWorkers(processes)


class _LocalWorkers:
    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    @property
    def ended(self) -> str:
        code = self._processes.exit_code
        if code is None:
            return "the reason is unknown"
        if code >= 0:
            return f"exit code {code}"
        known = {int(each): each.name for each in signal.Signals}
        return known.get(-code, f"signal {-code}")

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        return self._processes.submit(function, *arguments)


@contextlib.contextmanager
def _ray() -> Iterator[Workers]:
    """Open the cluster at RAY_ADDRESS, or one on this machine; its nodes share the experiment's folder."""
    ray = load_extra("ray", "ray")
    ours = not ray.is_initialized()
    if ours:
        ray.init(logging_level="ERROR", log_to_driver=False, include_dashboard=False)
    try:
        yield _RayWorkers(ray)
    finally:
        if ours:
            ray.shutdown()


class _RayWorkers:
    """Workers on Ray, which retries a run once if its process or node ends."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    @property
    def ended(self) -> str:
        return "see the logs of Ray"

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = self._ray.remote(max_retries=1)(function).remote(*arguments).future()
        return future


def _append(folder: Path, entry: dict[str, Any]) -> None:
    """Append a line with its time in a single write, so that lines of several processes do not mix."""
    with journal_file(folder).open("ab", buffering=0) as file:
        file.write(json.dumps({**entry, "at": time.time()}).encode() + b"\n")


def journal_file(folder: Path) -> Path:
    """Return the path of the workers' journal, with a JSON object per line."""
    return folder / "progress.jsonl"


def _stop_file(folder: Path) -> Path:
    return folder / "stop"
