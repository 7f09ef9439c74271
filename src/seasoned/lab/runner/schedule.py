"""Which run is played next, by which worker, and what becomes of a run whose worker died."""

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
    """Plays runs by workers.

    Args:
        folder, suite: of the experiment.
        job: what every run is played under.
        told: told of each episode.
        new: the tasks to look at before anything is played.
        begins: called when that is done.
    """

    folder: Path
    suite: Suite
    job: Job
    told: EpisodeCallback
    new: Sequence[Task] = ()
    begins: Callable[[], None] = lambda: None
    _offset: int = 0
    _looked: bool = False

    def play(self, kind: int | str, runs: list[RunKey]) -> None:
        """Play every run.

        A process that ends takes the runs of its neighbours with it. Each of them is played again by itself, so that
        the guilty one is known: what ends alone has failed.

        Raises:
            SeasonedError: what `preflight` raises, before anything is played.
        """
        left = list(runs)
        if not left:
            self.begins()
        fruitless = 0
        while left:
            before = len(left)
            suspects, ended = self._play_until_broken(kind, left)
            for run in suspects:
                if kind != 1:
                    guilty, ended = self._play_until_broken(1, [run])
                    if not guilty:
                        continue
                self._fail(run, ended)
            fruitless = fruitless + 1 if len(left) == before else 0
            if fruitless == _MOST_FRUITLESS:
                raise ConfigError(
                    f"the worker processes ended {fruitless} times before they played anything ({ended})",
                    "a worker imports seasoned and then plays",
                    "Look whether the system ends processes, for want of memory perhaps.",
                )

    def _fail(self, run: RunKey, ended: str) -> None:
        home = run_folder(self.folder, run)
        busy = busy_place(home)
        if busy is None:
            error = EnvError(
                f"{run}: its process ended ({ended})",
                "an environment or a model plays on, or raises",
                "Look at the environment, at memory and disk; then resume.",
            )
            write_error(home, error)
        else:
            error = EnvError(
                f"{run}: an episode has not ended, and could not be interrupted: {busy[0]}",
                f"it has {self.job.budget.episode_seconds:g} seconds",
                "Look what keeps it busy there, or allow more episode_seconds.",
            )
            write_error(home, error, busy[1])

    def _play_until_broken(self, kind: int | str, left: list[RunKey]) -> tuple[list[RunKey], str]:
        """Play runs, taking them out of `left`.

        Returns:
            those that were under way when a process ended, and how it ended.
        """
        under_way: dict[Future[str], RunKey] = {}
        with open_workers(kind) as workers:
            try:
                if not self._looked:
                    preflight(workers, self.job, self.new)
                    self._looked = True
                    self.begins()
                broken = self._play_with(workers, left, under_way, kind if isinstance(kind, int) else None)
            except BaseException:  # Ctrl-C
                request_stop(self.folder)
                raise
        if not broken:
            return [], ""
        known = started_runs(self.folder)
        left[:0] = [run for run in under_way.values() if run not in known]
        return [run for run in under_way.values() if run in known], workers.ended

    def _play_with(
        self, workers: Workers, left: list[RunKey], under_way: dict[Future[str], RunKey], most: int | None = None
    ) -> bool:
        """Play runs, `most` at a time, until none is left, or a process ended; return whether one did."""
        broken = False
        while (under_way or left) and not broken:
            for run in [run for run in left if self._may_begin(run, [*left, *under_way.values()])]:
                if most is not None and len(under_way) >= most:
                    break  # so that runs begin in the suite's order, whoever they wait for
                try:
                    future = workers.submit(play_learning_run, self.job, run)
                except BrokenProcessPool:
                    broken = True
                    break
                left.remove(run)
                under_way[future] = run
            done, _ = wait(under_way, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            self._offset = read_journal(self.folder, self._offset, self.told)
            for future in done:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    broken = True
                    continue
                if isinstance(error, KeyboardInterrupt):  # a Ctrl-C that this process is deaf to, or hears later
                    raise error
                run = under_way.pop(future)
                if error is not None:
                    write_error(run_folder(self.folder, run), error)
        return broken

    def _may_begin(self, run: RunKey, waiting: list[RunKey]) -> bool:
        """A run with another's budget begins when that run has ended."""
        of = self.suite.arm(run.arm).budget_of
        return of is None or RunKey(run.task, of, run.seed) not in waiting
