"""The schedule of an experiment's runs over workers, with recovery from workers that die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from seasoned.errors import ConfigError, EnvError
from seasoned.lab.results.run_results import run_folder
from seasoned.lab.runner.learning_run import write_error
from seasoned.lab.runner.preflight import preflight
from seasoned.lab.runner.watchdog import busy_place
from seasoned.lab.runner.workers import (
    EpisodeCallback,
    Job,
    Workers,
    open_workers,
    play_learning_run,
    read_journal,
    request_stop,
    started_runs,
)
from seasoned.lab.suites.suite import RunKey, Suite, Task

__all__ = ["Schedule"]

_POLL_S = 0.2
_MOST_FRUITLESS = 3


@dataclass
class Schedule:
    """The schedule of the runs of an experiment.

    Args:
        folder, suite: of the experiment.
        job: the settings of all runs.
        on_episode: called with each episode.
        new_tasks: the tasks whose environments are checked before the first episode.
        begins: called after this check.
    """

    folder: Path
    suite: Suite
    job: Job
    on_episode: EpisodeCallback
    new_tasks: Sequence[Task] = ()
    begins: Callable[[], None] = lambda: None
    _offset: int = 0
    _checked: bool = False

    def play(self, kind: int | str, runs: list[RunKey]) -> None:
        """Play every run.

        If a process ends, the runs of all workers are lost. Each of them is then played again alone: a run whose
        process ends again has failed.

        Raises:
            SeasonedError: raised by `preflight`, before the first episode.
        """
        remaining = list(runs)
        if not remaining:
            self.begins()
        fruitless = 0
        while remaining:
            before = len(remaining)
            suspects, ended = self._play_until_broken(kind, remaining)
            for run in suspects:
                if kind != 1:
                    failed, ended = self._play_until_broken(1, [run])
                    if not failed:
                        continue
                self._fail(run, ended)
            fruitless = fruitless + 1 if len(remaining) == before else 0
            if fruitless == _MOST_FRUITLESS:
                raise ConfigError(
                    f"the worker processes ended {fruitless} times before they played anything ({ended})",
                    "a worker imports seasoned and then plays",
                    "Check whether the system ends processes, for lack of memory for example.",
                )

    def _fail(self, run: RunKey, ended: str) -> None:
        home = run_folder(self.folder, run)
        place = busy_place(home)
        if place is None:
            error = EnvError(
                f"{run}: its process ended ({ended})",
                "an environment or a model returns or raises, and does not end the process",
                "Check the environment, memory and disk; then resume.",
            )
            write_error(home, error)
        else:
            error = EnvError(
                f"{run}: an episode has not ended, and could not be interrupted: {place[0]}",
                f"an episode ends within {self.job.budget.episode_seconds:g} seconds",
                "Find out what keeps it busy there, or allow more episode_seconds.",
            )
            write_error(home, error, place[1])

    def _play_until_broken(self, kind: int | str, remaining: list[RunKey]) -> tuple[list[RunKey], str]:
        """Play runs and remove them from `remaining`, until none is left or a process ends.

        Returns:
            the runs that were under way when a process ended, and the reason of its end.
        """
        under_way: dict[Future[str], RunKey] = {}
        with open_workers(kind) as workers:
            try:
                if not self._checked:
                    preflight(workers, self.job, self.new_tasks)
                    self._checked = True
                    self.begins()
                broken = self._play_with(workers, remaining, under_way, kind if isinstance(kind, int) else None)
            except BaseException:  # Ctrl-C
                request_stop(self.folder)
                raise
        if not broken:
            return [], ""
        started = started_runs(self.folder)
        remaining[:0] = [run for run in under_way.values() if run not in started]
        return [run for run in under_way.values() if run in started], workers.ended

    def _play_with(
        self, workers: Workers, remaining: list[RunKey], under_way: dict[Future[str], RunKey], most: int | None = None
    ) -> bool:
        """Play at most `most` runs at a time, until none is left or a process ends; return whether one ended."""
        broken = False
        while (under_way or remaining) and not broken:
            for run in [run for run in remaining if self._may_begin(run, [*remaining, *under_way.values()])]:
                if most is not None and len(under_way) >= most:
                    break  # so that runs begin in the suite's order
                try:
                    future = workers.submit(play_learning_run, self.job, run)
                except BrokenProcessPool:
                    broken = True
                    break
                remaining.remove(run)
                under_way[future] = run
            done, _ = wait(under_way, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            self._offset = read_journal(self.folder, self._offset, self.on_episode)
            for future in done:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    broken = True
                    continue
                if isinstance(error, KeyboardInterrupt):  # Ctrl-C that reached the worker before this process
                    raise error
                run = under_way.pop(future)
                if error is not None:
                    write_error(run_folder(self.folder, run), error)
        return broken

    def _may_begin(self, run: RunKey, waiting: list[RunKey]) -> bool:
        """Return whether a run may begin: with `budget_of`, the run of that arm must have ended."""
        of = self.suite.arm(run.arm).budget_of
        return of is None or RunKey(run.task, of, run.seed) not in waiting
