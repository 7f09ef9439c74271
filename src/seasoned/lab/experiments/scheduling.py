"""Which run is played next, by which worker, and what becomes of a run whose worker died."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from seasoned.lab.experiments.cell import write_error
from seasoned.lab.experiments.results import cell_folder
from seasoned.lab.experiments.suite import Cell, Suite
from seasoned.lab.experiments.workers import Told, begun, open_workers, play_cell, told_since

__all__ = ["Schedule"]

_POLL_S = 0.2


@dataclass
class Schedule:
    """Plays runs by workers.

    Args:
        folder, suite: of the experiment.
        cache: the file of the model's answers.
        told: told of each episode.
    """

    folder: Path
    suite: Suite
    cache: Path
    told: Told
    _offset: int = 0

    def play(self, kind: int | str, cells: list[Cell]) -> None:
        """Play every run.

        A process that dies takes the runs of its neighbours with it. Each of them is played again by itself, so that
        the guilty one is known: what dies alone has failed.
        """
        left = list(cells)
        while left:
            for cell in self._play_until_broken(kind, left):
                if self._play_until_broken(1, [cell]):
                    home = cell_folder(self.folder, cell)
                    home.mkdir(parents=True, exist_ok=True)
                    write_error(home, RuntimeError("the process that played it died, twice"))

    def _play_until_broken(self, kind: int | str, left: list[Cell]) -> list[Cell]:
        """Play runs, taking them out of `left`; return those that were under way when a process died."""
        with open_workers(kind) as workers:
            under_way: dict[Future[str], Cell] = {}
            broken = False
            while (under_way or left) and not broken:
                for cell in [cell for cell in left if self._may_begin(cell, [*left, *under_way.values()])]:
                    left.remove(cell)
                    under_way[workers.submit(play_cell, str(self.folder), str(self.cache), cell)] = cell
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
        if not broken:
            return []
        known = begun(self.folder)
        left.extend(cell for cell in under_way.values() if cell not in known)
        return [cell for cell in under_way.values() if cell in known]

    def _may_begin(self, cell: Cell, waiting: list[Cell]) -> bool:
        """A run with another's budget begins when that run has ended."""
        of = self.suite.arm(cell.arm).budget_of
        return of is None or Cell(cell.task, of, cell.seed) not in waiting
