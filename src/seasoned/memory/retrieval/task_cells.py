"""Sums of returns by distinct state, action and task, for comparisons within tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import EvidenceRow, LatestStep
from seasoned.memory.retrieval.choice_reader import ChoiceEffect, without_choices
from seasoned.memory.retrieval.label_sums import LabelledSums
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import Ints, TaskSums

__all__ = ["TaskReader"]

_MOST_AT_ONE_STATE = 256
_MOST_STEPS = 1024
_MOST_KNOWN = 1 << 17
_MOST_COUNTED = 8192
_LIVE = (
    "SELECT ordinal, 0, task FROM episode WHERE EXISTS (SELECT 1 FROM step "
    f"WHERE step.namespace_id = episode.namespace_id AND step.visit = ordinal << {STEP_BITS} AND live)"
)


class _TaskRow(NamedTuple):
    ordinal: int
    unused: int
    task: str


class TaskReader:
    """Reads which task each step of the neighbours is of. Every method runs inside one snapshot.

    No steps are read in a namespace of one task.

    Args:
        reader: returns the reader of the rows of the current snapshot.
    """

    def __init__(self, reader: Callable[[], Reader]) -> None:
        self._reader = reader
        self._several: bool | None = None
        self._only: tuple[str, int] | None = None
        self._tasks: dict[int, str] = {}
        self._live: dict[int, str] = {}  # the tasks of those of the latest episodes that have live steps
        self._runs: Counter[str] = Counter()
        self._counted = 0
        self._judged: set[int] = set()

    def clear(self) -> None:
        """Forget everything: rows were deleted or changed, or other episodes are pending."""
        self._several, self._only, self._counted = None, None, 0
        self._tasks.clear()
        self._live.clear()
        self._runs.clear()
        self._judged.clear()

    def advance(self) -> None:
        """Go on after a commit that only added rows: the tasks of the episodes before it are the same."""
        self._several = self._several or None
        if len(self._tasks) > _MOST_KNOWN:
            self._tasks.clear()

    def add_judged(self, ordinals: Iterable[int]) -> None:
        """Look again at those of these episodes that were counted: by new feedback their steps may be live."""
        first = self._counted - _MOST_COUNTED
        self._judged.update(ordinal for ordinal in ordinals if first < ordinal <= self._counted)

    def of(self, ordinals: Set[int]) -> dict[int, str]:
        """Return the task of each of these episodes, by ordinal; those that do not exist are missing."""
        self._read_tasks(ordinals)
        return {ordinal: self._tasks[ordinal] for ordinal in ordinals if ordinal in self._tasks}

    def sums(
        self,
        view_id: int,
        rows: Sequence[EvidenceRow],
        ranked: Sequence[int],
        keys: Sequence[int],
        task_filter: TaskFilter,
        current: str | None,
        effects: Mapping[int, ChoiceEffect],
        labels: LabelledSums | None = None,
        situations: Ints | None = None,
    ) -> TaskSums:
        """Return the sums at the nearest states.

        Of a state the latest 256 steps are read; of all states 1,024, those of the most similar ones. Of cells whose
        steps are all older, the task of the last step is read, of 1,024 cells at most.

        Args:
            view_id: the view of the returns.
            rows: of evidence, without choices.
            ranked: the distinct states, the most similar first.
            keys: of the actions; the sums have their places.
            task_filter: which task is excluded.
            current: the task being played; without one, it is the only task of the namespace, if there is one.
            effects: of the choices on steps, which the sums leave out.
            labels: observations by labels, which are added: those of alike decisions at one state under the task of the
                last of them.
            situations: of the states, see `TaskSums`. With them a state is often of one run, so that the runs of a task
                with live steps are counted among the latest 8,192 episodes of the namespace too.
        """
        rank_of, place_of = ({id_: place for place, id_ in enumerate(ids)} for ids in (ranked, keys))
        last: dict[tuple[int, int], int] = {}  # the last episode of each cell: rank of its state, place of its action
        n_at = dict.fromkeys(ranked, 0)
        for row in rows:
            n_at[row.set_id] += row.n_steps
            cell = rank_of[row.set_id], place_of[row.key_id]
            if row.ordinal > last.get(cell, -1):
                last[cell] = row.ordinal
        only = self._only_task(last.values())
        if only is not None:
            alone = _of_one_task(rows, rank_of, place_of, situations, is_current=current in (None, only))
            return alone if labels is None else labels.with_tasks(alone, [0] * len(labels.ordinals))
        found = self._latest_steps(view_id, n_at, task_filter)
        answers = {visit >> STEP_BITS for visit, effect in effects.items() if effect.is_answer}
        self._read_tasks({step.visit >> STEP_BITS for steps in found.values() for step in steps})
        number_of: dict[str, int] = {}
        episodes: defaultdict[int, set[int]] = defaultdict(set)
        cells: dict[tuple[int, int, int], list[float]] = {}

        def cell_of(rank: int, place: int, ordinal: int) -> list[float]:
            task = number_of.setdefault(self._tasks[ordinal], len(number_of))
            episodes[task].add(ordinal)
            return cells.setdefault((rank, place, task), [0.0, 0.0])

        for set_id, steps in found.items():
            for step in without_choices(steps, effects):
                ordinal = step.visit >> STEP_BITS
                if step.key in place_of and ordinal in self._tasks:
                    sums = cell_of(rank_of[set_id], place_of[step.key], ordinal)
                    sums[0] += 1.0
                    sums[1] += step.return_
        known = {cell[:2] for cell in cells}
        unread = ((cell, ordinal) for cell, ordinal in last.items() if cell not in known and ordinal not in answers)
        older = sorted(unread)[:_MOST_STEPS]
        self._read_tasks({ordinal for _, ordinal in older})
        for cell, ordinal in older:
            if ordinal in self._tasks:
                cell_of(*cell, ordinal)
        states, actions, tasks = np.array(list(cells), dtype=np.int64).reshape(-1, 3).T
        counts, totals = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 2).T
        n_episodes = np.array([len(episodes[task]) for task in range(len(number_of))], dtype=np.int64)
        if situations is not None and (n_episodes == 1).any():
            n_episodes = np.maximum(n_episodes, self._latest_runs(number_of))
        current_task = number_of.get(current or "", -1)
        by_task = TaskSums(states, actions, tasks, counts, totals, n_episodes, current_task, situations)
        if labels is None:
            return by_task
        task_of = self.of(set(labels.ordinals))
        return labels.with_tasks(by_task, [number_of.get(task_of.get(at, ""), -1) for at in labels.ordinals])

    def _latest_runs(self, tasks: Iterable[str]) -> Ints:
        """Return how many of the latest episodes have live steps and are of each task.

        It is a function of the stored rows, whichever of them were read before.
        """
        reader = self._reader()
        last = reader.last_ordinal()
        if last > self._counted or self._judged:
            first = max(last - _MOST_COUNTED, 0)
            values, ids = (max(first, self._counted),), [reader.namespace_id]
            rows = reader.sums(f"{_LIVE} AND ordinal > ? AND namespace_id IN {{values}}", values, ids, _TaskRow)
            if judged := sorted(self._judged - self._live.keys()):
                sql = f"{_LIVE} AND namespace_id = ? AND ordinal IN {{values}}"
                rows += reader.sums(sql, (reader.namespace_id,), judged, _TaskRow)
            self._live |= {row.ordinal: row.task for row in rows}
            self._live = {ordinal: task for ordinal, task in self._live.items() if ordinal > first}
            self._runs = Counter(self._live.values())
            self._counted = last
            self._judged.clear()
        return np.array([self._runs[task] for task in tasks], dtype=np.int64)

    def _latest_steps(
        self, view_id: int, n_at: Mapping[int, int], task_filter: TaskFilter
    ) -> Mapping[int, Sequence[LatestStep]]:
        """Return the latest steps of the most similar states."""
        read, n_steps = dict[int, int](), 0
        for set_id, n in n_at.items():
            n_steps += min(n, _MOST_AT_ONE_STATE)
            if read and n_steps > _MOST_STEPS:
                break
            read[set_id] = n
        return self._reader().latest_steps(view_id, read, "key_id", task_filter=task_filter, most=_MOST_AT_ONE_STATE)

    def _only_task(self, ordinals: Collection[int]) -> str | None:
        """Return the task of every episode of the namespace; None if there are several, or no such ordinals."""
        if self._several or not ordinals:
            return None
        first = min(ordinals)
        self._read_tasks({first})
        task = self._tasks.get(first)
        if task is not None and self._several is None:
            reader = self._reader()
            known = -1 if self._only is None or self._only[0] != task else self._only[1]
            of_another = "task <> ? AND ordinal > ? AND namespace_id IN {values} LIMIT 1"
            sql = f"SELECT ordinal, 0, task FROM episode WHERE {of_another}"
            self._several = bool(reader.sums(sql, (task, known), [reader.namespace_id], _TaskRow))
            self._only = None if self._several else (task, reader.last_ordinal())
        return None if self._several else task

    def _read_tasks(self, ordinals: Set[int]) -> None:
        missing = sorted(ordinal for ordinal in ordinals if ordinal not in self._tasks)
        if missing:
            reader = self._reader()
            sql = "SELECT ordinal, 0, task FROM episode WHERE namespace_id = ? AND ordinal IN {values}"
            self._tasks |= {
                row.ordinal: row.task for row in reader.sums(sql, (reader.namespace_id,), missing, _TaskRow)
            }


def _of_one_task(
    rows: Sequence[EvidenceRow],
    rank_of: Mapping[int, int],
    place_of: Mapping[int, int],
    situations: Ints | None,
    *,
    is_current: bool,
) -> TaskSums:
    """Return the sums of rows that are all of one task."""
    states = np.array([rank_of[row.set_id] for row in rows], dtype=np.int64)
    actions = np.array([place_of[row.key_id] for row in rows], dtype=np.int64)
    counts, totals = np.array([(row.n_steps, row.total) for row in rows], dtype=np.float64).reshape(-1, 2).T
    n_episodes = np.array([len({row.ordinal for row in rows})], dtype=np.int64)
    current = 0 if is_current else -1
    return TaskSums(states, actions, np.zeros_like(states), counts, totals, n_episodes, current, situations)
