"""An experiment: a suite in a folder, played by workers, and resumed after any interruption."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seasoned.agents import provenance
from seasoned.errors import ConfigError, InputError, SeasonedError
from seasoned.lab.arms.cascade_arm import check_fill
from seasoned.lab.arms.registry import check_arm
from seasoned.lab.results.run_results import (
    LAB_DRAFT,
    LAB_FILE,
    ExperimentResults,
    load_results,
    read_lab_file,
    write_lab_file,
)
from seasoned.lab.runner.file_lock import LOCK, hold_lock
from seasoned.lab.runner.schedule import Schedule
from seasoned.lab.runner.sessions import ERROR_PREFIX, INTERRUPTED, session_endings
from seasoned.lab.runner.spending_limit import SpendingCounter
from seasoned.lab.runner.workers import Job, clear_signals, request_stop
from seasoned.lab.suites.suite import ExperimentBudget, RunKey, Suite, Task
from seasoned.protocols import Usage

__all__ = ["Experiment", "Progress"]

_WAIT_S = 30.0

Progress = Callable[[str], None]
"""Called with a line about each episode."""


@dataclass
class Experiment:
    """A suite and the folder of its runs.

    Args:
        folder: of the experiment; one process at a time runs it.
        suite: the suite.
        made: the folders that `begin` created, the experiment's first.

    Example:
        >>> from seasoned.lab.suites.suite_toml import load_suite
        >>> Experiment.begin(Path("lab/quick"), load_suite("quick")).run()  # doctest: +SKIP
    """

    folder: Path
    suite: Suite
    made: tuple[Path, ...] = ()

    @staticmethod
    def begin(folder: Path, suite: Suite) -> Experiment:
        """Create the folder of an experiment, or open the same experiment there.

        If no episode was played yet, the suite replaces another one in the folder.

        Raises:
            ConfigError: the folder has another experiment, or another process runs it.
            InputError: the folder cannot be created, or has other files; an arm cannot be built, or leaves its student
                no episode to play.
        """
        for arm in suite.arms:
            check_arm(arm)
        check_fill(suite)
        made = tuple(each for each in (folder, *folder.parents) if not each.exists())
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: {error}", "an experiment is a folder", "Choose another folder.") from error
        if not (folder / LAB_FILE).exists():
            _check_empty(folder)
            with hold_lock(folder / LOCK, f"{folder} is being created", wait_s=_WAIT_S):
                if not (folder / LAB_FILE).exists():  # else another process has just created it
                    write_lab_file(folder, suite, {"began_at": time.time(), "sessions": [], **provenance()})
        known, record = read_lab_file(folder)
        if known.to_json() != suite.to_json():
            if _nothing_was_played(folder):  # so that errors in a suite can be corrected
                with hold_lock(folder / LOCK, f"{folder} is being run"):
                    shutil.rmtree(folder / "runs", ignore_errors=True)
                    write_lab_file(folder, suite, record)
                return Experiment(folder, suite, made)
            raise ConfigError(
                f"{folder} has another experiment: {known.name} ({_difference(known, suite)})",
                "a folder has one experiment",
                "Choose another folder, or resume the other experiment: seasoned lab resume.",
            )
        return Experiment(folder, known, made)

    @staticmethod
    def find(folder: Path) -> Experiment:
        """Return the experiment of a folder.

        Raises:
            NotFoundError: the folder has no experiment.
        """
        return Experiment(folder, read_lab_file(folder)[0])

    def run(
        self,
        *,
        workers: int | str = 1,
        budget: ExperimentBudget | None = None,
        cache: Path | None = None,
        begins: Callable[[], None] = lambda: None,
        progress: Progress = lambda line: None,
        command: str | None = None,
    ) -> ExperimentResults:
        """Play the remaining episodes, and return the results.

        Finished runs are not played again. A failed run does not stop the others; it is tried again when the experiment
        is run again. When the budget is spent, runs stop after their current episode.

        Before the first episode, every environment of the tasks without any episode is opened and closed once, and the
        model is made.

        Args:
            workers: number of processes, or `ray` for a Ray cluster. If an environment ends its process, its own run
                fails.
            budget: replaces the suite's; usage of earlier sessions counts, except for seconds.
            cache: the file of the model's answers; None: a file in the folder.
            begins: called after all checks, before the first episode.
            progress: called with a line about each episode.
            command: the command line; the record keeps the first one, and that of each session.

        Raises:
            ConfigError: another process runs it.
            InputError: `workers` is neither a number nor `ray`, or dollars are limited for a model without a price.
            SeasonedError: an environment cannot be opened, or the model cannot be made; nothing was played.
        """
        _check_workers(workers)
        budget = self.suite.budget if budget is None else budget
        if budget.usd is not None and not _has_price(self.suite):
            raise InputError(
                f"a budget of {budget.usd} dollars for {self.suite.model!r}",
                "a limit in dollars needs the model's prices",
                "Give both prices per million tokens (model_settings in the suite), or limit tokens.",
            )
        cache = self.folder / "answers.db" if cache is None else cache
        with hold_lock(self.folder / LOCK, f"{self.folder} is being run"):
            before = load_results(self.folder)
            usage = sum((c.lost + sum((e.usage for e in _episodes(c)), Usage()) for c in before.runs), Usage())
            spending = SpendingCounter(budget, usage)
            todo = [each.key for each in before.runs if not each.done]
            record = dict(before.record)
            session: dict[str, Any] = {"at": time.time(), "workers": workers, **provenance()}
            if command is not None:
                record.setdefault("command", command)
                session["command"] = command
            record["sessions"] = [*session_endings(record.get("sessions", []), self.folder, begins=True), session]
            write_lab_file(
                self.folder, self.suite, record
            )  # before the first episode, so that a killed session is recorded
            clear_signals(self.folder)

            def on_episode(run: RunKey, score: float | None, steps: int, usage: Usage) -> None:
                spending.add(usage)
                if score is not None:
                    progress(_progress_line(run, score, steps))
                if spending.limit:
                    request_stop(self.folder)

            stopped: str | None = None
            try:
                if spending.limit:
                    begins()
                else:
                    job = Job(str(self.folder.resolve()), str(cache.resolve()), budget, usage)
                    Schedule(self.folder, self.suite, job, on_episode, self._new_tasks(before), begins).play(
                        workers, todo
                    )
            except KeyboardInterrupt:
                stopped = INTERRUPTED
                raise
            except SeasonedError as error:
                stopped = f"{ERROR_PREFIX}{error.seen}"
                raise
            finally:
                session |= {"seconds": time.time() - session["at"], "stopped": stopped or spending.limit}
                write_lab_file(self.folder, self.suite, record)
                clear_signals(self.folder)
        return load_results(self.folder)

    def discard(self) -> None:
        """Remove the folder if `begin` created it and no run has written a record."""
        if self.made and not any((self.folder / "runs").rglob("*.json*")):
            shutil.rmtree(self.folder, ignore_errors=True)
            for parent in self.made[1:]:
                with contextlib.suppress(OSError):  # it is in use by now
                    parent.rmdir()

    def _new_tasks(self, before: ExperimentResults) -> list[Task]:
        """Return the tasks without any episode; an environment that opened once may fail later in its own runs."""
        played = {each.key.task for each in before.runs if _episodes(each)}
        planned = {each.key.task for each in before.runs}
        return [task for task in self.suite.tasks if task.name in planned - played]


def _check_empty(folder: Path) -> None:
    """Refuse a folder with other files than those of a killed `begin`."""
    if any(each.name not in (LOCK, LAB_DRAFT) for each in folder.iterdir()):
        if (folder / LAB_FILE).exists():
            return  # created by another process in the meantime
        raise InputError(
            f"{folder} is not empty, and has no experiment",
            "an experiment has a folder of its own",
            "Choose another folder.",
        )


def _episodes(run: Any) -> list[Any]:
    return [*run.episodes, *(episode for played in run.transfer.values() for episode in played)]


def _progress_line(run: RunKey, score: float, steps: int) -> str:
    return f"{run.task}, {run.arm}, seed {run.seed}: {score:g} points in {steps} steps"


def _has_price(suite: Suite) -> bool:
    return (
        suite.model == "uniform"
        or suite.model.startswith("local")
        or "usd_per_million_prompt_tokens" in suite.model_settings
    )


def _check_workers(workers: object) -> None:
    number = isinstance(workers, int) and not isinstance(workers, bool) and workers >= 1
    if not number and workers != "ray":
        raise InputError(f"workers = {workers!r}", "workers must be a number of processes, or 'ray'", "Try 2.")


def _nothing_was_played(folder: Path) -> bool:
    return not any(file.stat().st_size for file in (folder / "runs").rglob("episodes.jsonl"))


def _difference(one: Suite, other: Suite) -> str:
    ours, theirs = one.to_json(), other.to_json()
    return ", ".join(name for name in ours if ours[name] != theirs[name]) + " differ"
