"""Spreads and means of a namespace's returns, for the units of decisions: read once per commit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from seasoned.core import N_RECENT, recent_moments, robust_moments, robust_spread
from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import EvidenceRow, RecentReturn
from seasoned.memory.retrieval.choice_reader import ChoiceReader, without_choices
from seasoned.memory.retrieval.task_cells import TaskReader
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.memory.writing.evidence_views import histogram_bin
from seasoned.types import EvidenceQuery, RecentReturns

__all__ = ["ReturnMoments"]

_ENOUGH_NEAR = 8
_MOST_KEPT = 16  # of the lists of latest returns: one for each excluded task
_MOST_READ_RECENT = 16 * N_RECENT  # where many of the latest steps are there for choices alone

_RecentKey = tuple[int, TaskFilter, bool, bool]
"""A view, the excluded task, whether choices are left out, and whether tasks are read."""


class _OfTask(NamedTuple):
    """The moments of the latest returns for a task, and whether all of these returns are of it."""

    moments: RecentReturns
    are_all: bool


class _WithTasks(NamedTuple):
    """The latest returns: as they were read, each of these with its task, and the latter alone."""

    steps: Sequence[RecentReturn]
    of_step: dict[RecentReturn, RecentReturn]
    latest: Sequence[RecentReturn]


class ReturnMoments:
    """The moments of one namespace. Every method runs inside one snapshot.

    Args:
        choices: reads the choices of the namespace.
        tasks: reads the tasks of its episodes.
        reader: returns the reader of the rows of the current snapshot.
    """

    def __init__(self, choices: ChoiceReader, tasks: TaskReader, reader: Callable[[], Reader]) -> None:
        self._choices = choices
        self._tasks = tasks
        self._reader = reader
        self._spreads: dict[int, float] = {}
        self._spreads_without_choices: dict[int, float] = {}
        self._recent: dict[_RecentKey, Sequence[RecentReturn]] = {}
        self._with_tasks: dict[int, _WithTasks] = {}  # by view
        self._moments: dict[_RecentKey, tuple[Sequence[RecentReturn], dict[str | None, _OfTask]]] = {}

    def clear(self) -> None:
        """Forget everything: rows were deleted or changed, or other episodes are pending."""
        self.advance()
        self._with_tasks.clear()
        self._moments.clear()

    def advance(self) -> None:
        """Go on after a commit that only added rows: what follows from returns that are still the latest is kept."""
        self._spreads.clear()
        self._spreads_without_choices.clear()
        self._recent.clear()
        if len(self._moments) > _MOST_KEPT:
            self._moments.clear()

    def spread(self, view_id: int) -> float:
        """Return the robust spread of the namespace's returns."""
        if view_id not in self._spreads:
            self._spreads[view_id] = self._reader().spread(view_id)
        return self._spreads[view_id]

    def spread_without_choices(self, query: EvidenceQuery, view_id: int, gamma: float) -> float:
        """Return the spread without what choices contribute to mean returns; all choices are read for it."""
        if view_id in self._spreads_without_choices:
            return self._spreads_without_choices[view_id]
        corrections: defaultdict[tuple[int, int], list[EvidenceRow]] = defaultdict(list)
        for row in self._choices.at(self._choices.set_ids, view_id, gamma, TaskFilter(None)).corrections:
            corrections[row.set_id, row.key_id].append(row)
        if corrections:
            counts = Counter(self._reader().mean_counts(view_id))
            for row in self._reader().evidence(view_id, sorted({set_id for set_id, _ in corrections})):
                own = corrections.get((row.set_id, row.key_id))
                if own:
                    counts[histogram_bin(row.total / row.weight)] -= 1
                    fades = [query.decay ** (row.ordinal - one.ordinal) for one in own]
                    if row.n_steps + sum(one.n_steps for one in own) > 0:
                        total = row.total + sum(fade * one.total for fade, one in zip(fades, own, strict=True))
                        weight = row.weight + sum(fade * one.weight for fade, one in zip(fades, own, strict=True))
                        counts[histogram_bin(total / weight)] += 1
            left = {mean: count for mean, count in counts.items() if count > 0}
            self._spreads_without_choices[view_id] = robust_spread(list(left), list(left.values()))
        else:
            self._spreads_without_choices[view_id] = self.spread(view_id)
        return self._spreads_without_choices[view_id]

    def recent(
        self, query: EvidenceQuery, view_id: int, gamma: float, task_filter: TaskFilter, listed: Iterable[RecentReturn]
    ) -> RecentReturns:
        """Return the moments of the latest returns: of the task, if it has enough among them.

        If it has not, those of the task's steps among the listed neighbours count, unless they are few or all equal.
        """
        task = query.current_task
        key, latest_steps = self._latest_steps(query, view_id, gamma, task_filter)
        if key not in self._moments or self._moments[key][0] is not latest_steps:
            self._moments[key] = latest_steps, {}
        by_task = self._moments[key][1]
        if task not in by_task:
            latest = [(step.task, step.return_) for step in latest_steps]
            are_all = task is None or all(step.task == task for step in latest_steps)
            by_task[task] = _OfTask(RecentReturns(*recent_moments(latest, task)), are_all)
        moments, are_all = by_task[task]
        if are_all or moments.n < len(latest_steps):
            return moments
        near = [step.return_ for step in listed if step.task == task]
        mean, spread = robust_moments(near)
        return RecentReturns(mean, spread, len(near)) if len(near) >= _ENOUGH_NEAR and spread > 0.0 else moments

    def latest_steps(
        self, query: EvidenceQuery, view_id: int, gamma: float, task_filter: TaskFilter
    ) -> Sequence[RecentReturn]:
        """Return the latest steps, the same object until one of them changes."""
        return self._latest_steps(query, view_id, gamma, task_filter)[1]

    def _latest_steps(
        self, query: EvidenceQuery, view_id: int, gamma: float, task_filter: TaskFilter
    ) -> tuple[_RecentKey, Sequence[RecentReturn]]:
        """Return the latest steps, with their tasks where the query has one, and the key under which they are kept."""
        with_tasks = query.current_task is not None
        key = view_id, task_filter, query.compare_choices, with_tasks
        if key not in self._recent:
            self._recent[key] = (
                self._recent_without_choices(view_id, gamma, task_filter, with_tasks=with_tasks)
                if query.compare_choices
                else self._latest(view_id, N_RECENT, task_filter, with_tasks=with_tasks)
            )
        return key, self._recent[key]

    def _latest(self, view_id: int, limit: int, task_filter: TaskFilter, *, with_tasks: bool) -> Sequence[RecentReturn]:
        """Return the latest returns; tasks that were read before a commit are not read again."""
        if task_filter or not with_tasks:
            return self._reader().recent_returns(view_id, limit, task_filter, with_tasks=with_tasks)
        steps = self._reader().recent_returns(view_id, limit, task_filter, with_tasks=False)
        known = self._with_tasks.get(view_id)
        if known is None or known.steps is not steps:
            of_step = {} if known is None else known.of_step
            tasks = self._tasks.of({step.visit >> STEP_BITS for step in steps if step not in of_step})
            new = (step for step in steps if step not in of_step and step.visit >> STEP_BITS in tasks)
            of_step = of_step | {
                step: RecentReturn(step.visit, step.return_, tasks[step.visit >> STEP_BITS]) for step in new
            }
            of_step = {step: of_step[step] for step in steps if step in of_step}
            known = self._with_tasks[view_id] = _WithTasks(steps, of_step, list(of_step.values()))
        return known.latest

    def _recent_without_choices(
        self, view_id: int, gamma: float, task_filter: TaskFilter, *, with_tasks: bool
    ) -> Sequence[RecentReturn]:
        """Return the latest returns without what choices contribute to them; more steps are read for those left out."""
        limit = N_RECENT
        while True:
            steps = self._latest(view_id, limit, task_filter, with_tasks=with_tasks)
            effects = self._choices.effects([step.visit for step in steps], gamma)
            if not effects and limit == N_RECENT:
                return steps
            rest = list(without_choices(steps, effects))
            if len(rest) >= N_RECENT or len(steps) < limit or limit >= _MOST_READ_RECENT:
                return rest[:N_RECENT]
            limit *= 4
