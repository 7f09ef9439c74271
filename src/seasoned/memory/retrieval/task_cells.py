"""Sums of returns by distinct state, action and task, for comparisons within tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seasoned.core import N_RECENT
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import TaskSums

__all__ = ["TaskReader"]

_MOST_AT_ONE_STATE = 256
_MOST_STEPS = 1024


class _TaskRow(NamedTuple):
    ordinal: int
    unused: int
    task: str


class TaskReader:
    """Reads which task each step of the neighbours is of. Every method runs inside one snapshot.

    Nothing is read where the latest 256 steps of the namespace are all of one task.

    Args:
        reader: returns the reader of the rows of the current snapshot.
    """

    def __init__(self, reader: Callable[[], Reader]) -> None:
        self._reader = reader
        self._several: dict[int, bool] = {}
        self._tasks: dict[int, str] = {}

    def clear(self) -> None:
        """Forget everything: there was a commit, or other episodes are pending."""
        self._several.clear()
        self._tasks.clear()

    def sums(
        self,
        view_id: int,
        n_at: Mapping[int, int],
        keys: Sequence[int],
        task_filter: TaskFilter,
        current: str | None = None,
    ) -> TaskSums | None:
        """Return the sums at the nearest states; None if the latest steps are all of one task.

        Of a state the latest 256 steps are read; of all states 1,024, those of the most similar ones.

        Args:
            view_id: the view of the returns.
            n_at: the number of steps at each distinct state, the most similar first.
            keys: of the actions; the sums have their places.
            task_filter: which task is excluded.
            current: the task being played.
        """
        if not self._several_tasks(view_id):
            return None
        reader, read, n_steps = self._reader(), dict[int, int](), 0
        for set_id, n in n_at.items():
            n_steps += min(n, _MOST_AT_ONE_STATE)
            if read and n_steps > _MOST_STEPS:
                break
            read[set_id] = n
        found = reader.latest_steps(view_id, read, "key_id", task_filter=task_filter, most=_MOST_AT_ONE_STATE)
        self._read_tasks({step.visit >> STEP_BITS for steps in found.values() for step in steps})
        place_of, rank_of = {key: place for place, key in enumerate(keys)}, {s: rank for rank, s in enumerate(n_at)}
        number_of: dict[str, int] = {}
        episodes: defaultdict[int, set[int]] = defaultdict(set)
        cells: defaultdict[tuple[int, int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for set_id, steps in found.items():
            for step in steps:
                ordinal = step.visit >> STEP_BITS
                if step.key not in place_of or ordinal not in self._tasks:
                    continue
                task = number_of.setdefault(self._tasks[ordinal], len(number_of))
                episodes[task].add(ordinal)
                cell = cells[rank_of[set_id], place_of[step.key], task]
                cell[0] += 1.0
                cell[1] += step.return_
        states, actions, tasks = np.array(list(cells), dtype=np.int64).reshape(-1, 3).T
        counts, totals = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 2).T
        n_episodes = np.array([len(episodes[task]) for task in range(len(number_of))], dtype=np.int64)
        return TaskSums(states, actions, tasks, counts, totals, n_episodes, number_of.get(current or "", -1))

    def _several_tasks(self, view_id: int) -> bool:
        if view_id not in self._several:
            latest = self._reader().recent_returns(view_id, N_RECENT, TaskFilter(None), with_tasks=True)
            self._several[view_id] = len({step.task for step in latest}) > 1
        return self._several[view_id]

    def _read_tasks(self, ordinals: set[int]) -> None:
        missing = sorted(ordinals - self._tasks.keys())
        if missing:
            reader = self._reader()
            sql = "SELECT ordinal, 0, task FROM episode WHERE namespace_id = ? AND ordinal IN {values}"
            self._tasks |= {
                row.ordinal: row.task for row in reader.sums(sql, (reader.namespace_id,), missing, _TaskRow)
            }
