"""Where learning runs are played: in local processes, or on a Ray cluster.

A worker tells of each episode by one line appended to a file of the experiment's folder, and stops when it finds the
folder's `stop` file: all that workers and the experiment share is a folder, so it is the same for every kind of worker.
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

Outcome = str
"""How a worker's run ended: `done`, `failed` (the reason is in its folder) or `stopped` (out of budget)."""


@dataclass(frozen=True)
class Job:
    """What every run of an experiment is played under.

    Args:
        folder: the experiment's.
        cache: the file of the model's answers.
        budget: a worker stops after the episode that spends it; seconds are the experiment's own business.
        spent: what earlier parts of the experiment cost.
    """

    folder: str
    cache: str
    budget: ExperimentBudget = field(default_factory=ExperimentBudget)
    spent: Usage = field(default_factory=Usage)


_benches: dict[tuple[str, str, float | None], Workbench] = {}


class EpisodeCallback(Protocol):
    """Told of an episode that some worker played; of one that broke off, only what it cost."""

    def __call__(self, run: RunKey, score: float | None, steps: int, usage: Usage) -> None:
        """Take it in."""
        ...


class Workers(Protocol):
    """What does things at the same time, somewhere else."""

    @property
    def ended(self) -> str:
        """How the one process ended that did, as far as that is known."""
        ...

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call a function in some worker."""
        ...


def workbench_of(job: Job) -> Workbench:
    """Return this worker's bench for an experiment; its model stays open for the next run."""
    key = (job.folder, job.cache, job.budget.episode_seconds)
    if key not in _benches:
        _benches[key] = Workbench(Path(job.folder), Path(job.cache), job.budget.episode_seconds)
    return _benches[key]


def play_learning_run(job: Job, run: RunKey) -> Outcome:
    """Play one run in a worker."""
    home = Path(job.folder)
    bench = workbench_of(job)
    if _stop_file(home).exists():
        return "stopped"
    _append(home, {"begin": asdict(run), "pid": os.getpid()})
    spending = SpendingCounter(dataclasses.replace(job.budget, seconds=None), job.spent)
    offset = 0

    def spend(run: RunKey, score: float | None, steps: int, usage: Usage) -> None:
        spending.add(usage)

    def tell(run: RunKey, result: EpisodeResult | None, usage: Usage) -> None:
        nonlocal offset
        score, steps = (None, 0) if result is None else (result.score, result.steps)
        _append(home, {"cell": asdict(run), "score": score, "steps": steps, "usage": asdict(usage)})
        if spending.is_limited:  # by what every worker has spent, and not only this one
            offset = read_journal(home, offset, spend)
        if result is not None and (spending.limit or _stop_file(home).exists()):
            raise OutOfBudget

    try:
        return "done" if bench.play(run, tell) else "failed"
    except OutOfBudget:
        return "stopped"


def request_stop(folder: Path) -> None:
    """Have every worker stop after the episode that it plays."""
    _stop_file(folder).touch()


def clear_signals(folder: Path) -> None:
    """Forget what workers of an earlier time told, and that they were stopped."""
    _stop_file(folder).unlink(missing_ok=True)
    journal_file(folder).unlink(missing_ok=True)


def read_journal(folder: Path, offset: int, told: EpisodeCallback) -> int:
    """Pass on what workers told since `offset` bytes; return the new offset."""
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
            told(RunKey(**entry["cell"]), entry["score"], entry["steps"], Usage(**entry["usage"]))
    return offset


def started_runs(folder: Path) -> set[RunKey]:
    """Return the runs that some worker has begun."""
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
            return "how is not known"
        if code >= 0:
            return f"exit code {code}"
        known = {int(each): each.name for each in signal.Signals}
        return known.get(-code, f"signal {-code}")

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        return self._processes.submit(function, *arguments)


@contextlib.contextmanager
def _ray() -> Iterator[Workers]:
    """A cluster that RAY_ADDRESS names, or one of this machine; its nodes share the experiment's folder."""
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
    """A run whose process or node is gone is played once more by Ray itself."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    @property
    def ended(self) -> str:
        return "Ray knows how"

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = self._ray.remote(max_retries=1)(function).remote(*arguments).future()
        return future


def _append(folder: Path, entry: dict[str, Any]) -> None:
    """One write of one line, which says when: lines of several processes do not mix."""
    with journal_file(folder).open("ab", buffering=0) as file:
        file.write(json.dumps({**entry, "at": time.time()}).encode() + b"\n")


def journal_file(folder: Path) -> Path:
    """Return the file in which workers tell of what they do, a JSON object a line."""
    return folder / "progress.jsonl"


def _stop_file(folder: Path) -> Path:
    return folder / "stop"
