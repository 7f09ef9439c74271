"""Where learning runs are played: in this process, in local processes, or on a Ray cluster.

A worker tells of each episode by one line appended to a file of the experiment's folder, and stops when it finds the
folder's `stop` file: all that workers and the experiment share is a folder, so it is the same for every kind of worker.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from seasoned.agents import EpisodeResult
from seasoned.lab.experiments.cell import OutOfBudget, Workbench
from seasoned.lab.experiments.processes import Processes, open_processes
from seasoned.lab.experiments.suite import Cell
from seasoned.protocols import Usage
from seasoned.registry import load_extra

__all__ = ["Told", "Workers", "open_workers", "play_cell", "stop", "told_since"]

Outcome = str
"""How a worker's run ended: `done`, `failed` (the reason is in its folder) or `stopped` (out of budget)."""

_benches: dict[tuple[str, str, float | None], Workbench] = {}


class Told(Protocol):
    """Told of an episode that some worker played."""

    def __call__(self, cell: Cell, score: float, steps: int, usage: Usage) -> None:
        """Take it in."""
        ...


class Workers(Protocol):
    """What plays runs at the same time."""

    def submit(self, folder: str, cache: str, episode_seconds: float | None, cell: Cell, /) -> Future[Outcome]:
        """Play a run: `play_cell`, somewhere else."""
        ...


def play_cell(folder: str, cache: str, episode_seconds: float | None, cell: Cell) -> Outcome:
    """Play one run in a worker; the model stays open for the next."""
    home, key = Path(folder), (folder, cache, episode_seconds)
    if key not in _benches:
        _benches[key] = Workbench(home, Path(cache), episode_seconds)
    if _stop_file(home).exists():
        return "stopped"
    _append(home, {"begin": asdict(cell), "pid": os.getpid()})

    def tell(cell: Cell, result: EpisodeResult) -> None:
        _append(
            home,
            {"cell": asdict(cell), "score": result.score, "steps": result.steps, "usage": asdict(result.usage)},
        )
        if _stop_file(home).exists():
            raise OutOfBudget

    try:
        return "done" if _benches[key].play(cell, tell) else "failed"
    except OutOfBudget:
        return "stopped"


def stop(folder: Path) -> None:
    """Have every worker stop after the episode that it plays."""
    _stop_file(folder).touch()


def clear(folder: Path) -> None:
    """Forget what workers of an earlier time told, and that they were stopped."""
    _stop_file(folder).unlink(missing_ok=True)
    _journal(folder).unlink(missing_ok=True)


def told_since(folder: Path, offset: int, told: Told) -> int:
    """Pass on what workers told since `offset` bytes; return the new offset."""
    try:
        with _journal(folder).open("rb") as file:
            file.seek(offset)
            *lines, _ = file.read().split(b"\n")
    except FileNotFoundError:
        return offset
    for line in lines:
        offset += len(line) + 1
        entry = json.loads(line)
        if "cell" in entry:
            told(Cell(**entry["cell"]), entry["score"], entry["steps"], Usage(**entry["usage"]))
    return offset


def begun(folder: Path) -> set[Cell]:
    """Return the runs that some worker has begun."""
    try:
        lines = _journal(folder).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return set()
    return {Cell(**entry["begin"]) for entry in map(json.loads, lines) if "begin" in entry}


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

    def submit(self, folder: str, cache: str, episode_seconds: float | None, cell: Cell, /) -> Future[Outcome]:
        return self._processes.submit(play_cell, folder, cache, episode_seconds, cell)


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
    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def submit(self, folder: str, cache: str, episode_seconds: float | None, cell: Cell, /) -> Future[Outcome]:
        future: Future[Outcome] = self._ray.remote(play_cell).remote(folder, cache, episode_seconds, cell).future()
        return future


def _append(folder: Path, entry: dict[str, Any]) -> None:
    """One write of one line: lines of several processes do not mix."""
    with _journal(folder).open("ab", buffering=0) as file:
        file.write(json.dumps(entry).encode() + b"\n")


def _journal(folder: Path) -> Path:
    return folder / "progress.jsonl"


def _stop_file(folder: Path) -> Path:
    return folder / "stop"
