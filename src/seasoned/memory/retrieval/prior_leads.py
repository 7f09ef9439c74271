"""By how much the model preferred the actions of stored steps, from their priors."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from seasoned.core import prior_slope, recent_of_task
from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import RecentReturn, StepPrior
from seasoned.memory.retrieval.return_moments import ReturnMoments
from seasoned.memory.values.corruption import damaged
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import EvidenceQuery, normalize_action
from seasoned.types.evidence import RecentReturns, StateSums, TakenLeads

__all__ = ["PriorLeadReader"]

_MOST_CHARACTERS = 1 << 14  # of a stored prior; the leads of a longer one are unknown
_MOST_KEPT = 1 << 16  # probabilities
_ROUNDING = 1e-9
_PRIORS = (
    "SELECT step.visit, action.text, logprobs FROM step "
    "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
    "JOIN prior ON prior.namespace_id = step.namespace_id AND prior.id = prior_id "
    "WHERE step.namespace_id = ? AND live AND length(logprobs) <= ? AND step.visit IN {values}"
)


class _StepPolicy:
    """The model's own policy at a step; its length is the number of candidates.

    Args:
        prior: of the step, as it is stored.
    """

    __slots__ = ("_by_key", "_total", "_weights", "expected", "taken")

    def __init__(self, prior: StepPrior) -> None:
        logprobs: dict[str, float] = json.loads(prior.logprobs)
        top = max(logprobs.values())
        self._weights = {action: math.exp(logprob - top) for action, logprob in logprobs.items()}
        self._by_key: dict[str, float] | None = None
        self._total = math.fsum(self._weights.values())
        if not math.isfinite(self._total):
            raise ValueError("a logprob is no number")
        self.taken = self.lead(prior.action)
        squares = math.fsum(weight * weight for weight in self._weights.values())
        self.expected = squares / self._total**2 - 1.0 / len(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def lead(self, action: str) -> float:
        """Return by how much the model preferred an action (`seasoned.core.prior_leads`)."""
        weight = self._weights.get(action)
        if weight is None:  # in another spelling, or not proposed
            if self._by_key is None:
                self._by_key = {normalize_action(other): weight for other, weight in self._weights.items()}
            weight = self._by_key.get(normalize_action(action), 0.0)
        lead = weight / self._total - 1.0 / len(self._weights)
        return lead if abs(lead) > _ROUNDING else 0.0


class PriorLeadReader:
    """Reads the priors of steps, and keeps those that were read last.

    Every method runs inside one snapshot. A stored prior never changes.

    Args:
        moments: of the namespace's returns.
        reader: returns the reader of the rows of the current snapshot.
    """

    def __init__(self, moments: ReturnMoments, reader: Callable[[], Reader]) -> None:
        self._moments = moments
        self._reader = reader
        self._kept: OrderedDict[int, _StepPolicy | None] = OrderedDict()
        self._n_kept = 0
        self._latest: tuple[Sequence[RecentReturn], str | None, TakenLeads | None] | None = None

    def clear(self) -> None:
        """Forget everything: rows were deleted or changed, or other episodes are pending."""
        self._kept.clear()
        self._n_kept, self._latest = 0, None

    def taken(
        self, query: EvidenceQuery, view_id: int, gamma: float, task_filter: TaskFilter, recent: RecentReturns | None
    ) -> TakenLeads | None:
        """Return the leads of the latest steps that count for the task, if asked for; None where returns do not rise.

        Fewer than half of these steps do not speak for the model of the others.

        Args:
            query: the query.
            view_id: of the discount.
            gamma: discount of the returns.
            task_filter: which task is excluded.
            recent: the moments of the latest returns.
        """
        if not query.leads or recent is None:
            return None
        steps, task = self._moments.latest_steps(query, view_id, gamma, task_filter), query.current_task
        if self._latest is None or self._latest[0] is not steps or self._latest[1] != task:
            of_task = [steps[at] for at in recent_of_task([step.task for step in steps], task)]
            self._latest = steps, task, self._taken_at(of_task)
        found, unit = self._latest[2], recent.spread if recent.spread > 0.0 else 1.0
        return found if found is not None and prior_slope(*found, mean=recent.mean, unit=unit) is not None else None

    def _taken_at(self, steps: Sequence[RecentReturn]) -> TakenLeads | None:
        leads = self._leads([step.visit for step in steps])
        known = [
            (found.taken, found.expected, step.return_) for step in steps if (found := leads[step.visit]) is not None
        ]
        if 2 * len(known) < len(steps) or not any(lead for lead, _, _ in known):
            return None
        return TakenLeads(*np.array(known, dtype=np.float64).T)

    def on(
        self,
        sums: StateSums | None,
        taken: TakenLeads | None,
        ranked: Sequence[int],
        actions: Sequence[str],
        task_filter: TaskFilter,
    ) -> StateSums | None:
        """Return the sums with the lead of each pair's action by the prior of the latest step at its state.

        An action that the model did not propose there has a probability of 0.

        Args:
            sums: by distinct state and action.
            taken: the leads of the latest steps; None: nothing is read, and the sums are as they were.
            ranked: the distinct states.
            actions: the action texts.
            task_filter: which task is excluded.
        """
        if sums is None or taken is None:
            return sums
        latest = self._reader().latest_visits(list(ranked), task_filter)
        leads = self._leads(list(latest.values()))
        found = np.full(len(sums.states), np.nan)
        for row, (state, action) in enumerate(zip(sums.states.tolist(), sums.actions.tolist(), strict=True)):
            at_state = leads.get(latest.get(ranked[state], -1))
            if at_state is not None:
                found[row] = at_state.lead(actions[action])
        return dataclasses.replace(sums, leads=found)

    def _leads(self, visits: Sequence[int]) -> dict[int, _StepPolicy | None]:
        """Return the leads at these steps; None for one without a prior that can be read."""
        missing = [visit for visit in visits if visit not in self._kept]
        reader = self._reader()
        rows = reader.sums(_PRIORS, (reader.namespace_id, _MOST_CHARACTERS), missing, StepPrior) if missing else []
        priors = {row.visit: row for row in rows}
        for visit in missing:
            self._kept[visit] = policy = self._of(priors[visit]) if visit in priors else None
            self._n_kept += _n_probabilities(policy)
        found = {visit: self._kept[visit] for visit in visits}
        while self._n_kept > _MOST_KEPT:
            self._n_kept -= _n_probabilities(self._kept.popitem(last=False)[1])
        return found

    def _of(self, prior: StepPrior) -> _StepPolicy:
        try:
            return _StepPolicy(prior)
        except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise damaged(self._reader().path, f"a prior that is no object of logprobs: {error}") from error


def _n_probabilities(policy: _StepPolicy | None) -> int:
    return 1 if policy is None else len(policy)
