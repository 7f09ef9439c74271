"""Which run is played next, by which worker, and what becomes of a run whose worker died."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from seasoned.errors import ConfigError
from seasoned.lab.experiments.cell import write_error
from seasoned.lab.experiments.results import cell_folder
from seasoned.lab.experiments.suite import Cell, Suite
from seasoned.lab.experiments.workers import Told, Workers, begun, open_workers, stop, told_since

__all__ = ["Schedule"]

_POLL_S = 0.2
_MOST_FRUITLESS = 3


@dataclass
class Schedule:
    """Plays runs by workers.

    Args:
        folder, suite: of the experiment.
        cache: the file of the model's answers.
        told: told of each episode.
        episode_seconds: how long an episode may take; None: as long as it likes.
    """

    folder: Path
    suite: Suite
    cache: Path
    told: Told
    episode_seconds: float | None = None
    _offset: int = 0

    def play(self, kind: int | str, cells: list[Cell]) -> None:
        """Play every run.

        A process that dies takes the runs of its neighbours with it. Each of them is played again by itself, so that
        the guilty one is known: what dies alone has failed.
        """
        left = list(cells)
        fruitless = 0
        while left:
            before = len(left)
            for cell in self._play_until_broken(kind, left):
                if self._play_until_broken(1, [cell]):
                    write_error(cell_folder(self.folder, cell), RuntimeError("the process that played it died, twice"))
            fruitless = fruitless + 1 if len(left) == before else 0
            if fruitless == _MOST_FRUITLESS:
                raise ConfigError(
                    f"the worker processes died {fruitless} times before they played anything",
                    "a worker begins by importing the program that began it",
                    "Put what the program does under `if __name__ == '__main__':`, or play with one worker.",
                )

    def _play_until_broken(self, kind: int | str, left: list[Cell]) -> list[Cell]:
        """Play runs, taking them out of `left`; return those that were under way when a process died."""
        under_way: dict[Future[str], Cell] = {}
        with open_workers(kind) as workers:
            try:
                broken = self._play_with(workers, left, under_way)
            except BaseException:  # Ctrl-C
                stop(self.folder)
                raise
        if not broken:
            return []
        known = begun(self.folder)
        left.extend(cell for cell in under_way.values() if cell not in known)
        return [cell for cell in under_way.values() if cell in known]

    def _play_with(self, workers: Workers, left: list[Cell], under_way: dict[Future[str], Cell]) -> bool:
        """Play runs until none is left, or a process died; return whether one did."""
        broken = False
        folder, cache = str(self.folder.resolve()), str(self.cache.resolve())  # a worker may be somewhere else
        while (under_way or left) and not broken:
            for cell in [cell for cell in left if self._may_begin(cell, [*left, *under_way.values()])]:
                try:
                    future = workers.submit(folder, cache, self.episode_seconds, cell)
                except BrokenProcessPool:
                    broken = True
                    break
                left.remove(cell)
                under_way[future] = cell
            done, _ = wait(under_way, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            self._offset = told_since(self.folder, self._offset, self.told)
            for future in done:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    broken = True
                    continue
                cell = under_way.pop(future)
                if error is not None:
                    write_error(cell_folder(self.folder, cell), error)
        return broken

    def _may_begin(self, cell: Cell, waiting: list[Cell]) -> bool:
        """A run with another's budget begins when that run has ended."""
        of = self.suite.arm(cell.arm).budget_of
        return of is None or Cell(cell.task, of, cell.seed) not in waiting
