"""By how much the model preferred the actions of stored steps, from their priors."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seasoned.core import prior_leads, softmax
from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import StepPrior
from seasoned.memory.retrieval.return_moments import ReturnMoments
from seasoned.memory.values.corruption import damaged
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import EvidenceQuery, normalize_action
from seasoned.types.evidence import StateSums, TakenLeads

__all__ = ["PriorLeadReader"]

_MOST_CHARACTERS = 1 << 14  # of a stored prior; the leads of a longer one are unknown
_MOST_KEPT = 1 << 10  # steps
_PRIORS = (
    "SELECT step.visit, action.text, logprobs FROM step "
    "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
    "JOIN prior ON prior.namespace_id = step.namespace_id AND prior.id = prior_id "
    "WHERE step.namespace_id = ? AND live AND length(logprobs) <= ? AND step.visit IN {values}"
)


class _StepLeads(NamedTuple):
    """The leads of a step's candidates by normalised action, and that of the action taken."""

    by_action: Mapping[str, float]
    taken: float


class PriorLeadReader:
    """Reads the priors of steps, and keeps the leads of the latest that were asked for.

    Every method runs inside one snapshot. A stored prior never changes.

    Args:
        moments: of the namespace's returns.
        reader: returns the reader of the rows of the current snapshot.
    """

    def __init__(self, moments: ReturnMoments, reader: Callable[[], Reader]) -> None:
        self._moments = moments
        self._reader = reader
        self._kept: OrderedDict[int, _StepLeads | None] = OrderedDict()

    def clear(self) -> None:
        """Forget everything: rows were deleted or changed, or other episodes are pending."""
        self._kept.clear()

    def taken(self, query: EvidenceQuery, view_id: int, gamma: float, task_filter: TaskFilter) -> TakenLeads | None:
        """Return the leads of the latest steps that count for the task, if asked for; None where all are 0."""
        if not query.leads:
            return None
        steps = self._moments.latest_of_task(query, view_id, gamma, task_filter)
        leads = self._leads([step.visit for step in steps])
        known = [(found.taken, step.return_) for step in steps if (found := leads[step.visit]) is not None]
        if not any(lead for lead, _ in known):
            return None
        columns = np.array(known, dtype=np.float64).T
        return TakenLeads(columns[0], columns[1])

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
        keys = [normalize_action(action) for action in actions]
        found = np.full(len(sums.states), np.nan)
        for row, (state, action) in enumerate(zip(sums.states.tolist(), sums.actions.tolist(), strict=True)):
            at_state = leads.get(latest.get(ranked[state], -1))
            if at_state is not None:
                found[row] = at_state.by_action.get(keys[action], -1.0 / len(at_state.by_action))
        return dataclasses.replace(sums, leads=found)

    def _leads(self, visits: Sequence[int]) -> dict[int, _StepLeads | None]:
        """Return the leads at these steps; None for one without a prior that can be read."""
        missing = [visit for visit in visits if visit not in self._kept]
        reader = self._reader()
        rows = reader.sums(_PRIORS, (reader.namespace_id, _MOST_CHARACTERS), missing, StepPrior) if missing else []
        priors = {row.visit: row for row in rows}
        for visit in missing:
            self._kept[visit] = self._of(priors[visit]) if visit in priors else None
        found = {}
        for visit in visits:
            self._kept.move_to_end(visit)
            found[visit] = self._kept[visit]
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    def _of(self, prior: StepPrior) -> _StepLeads:
        try:
            logprobs = json.loads(prior.logprobs)
            actions = [normalize_action(action) for action in logprobs]
            leads = prior_leads(softmax(list(logprobs.values()))).tolist()
        except (ValueError, TypeError, AttributeError) as error:
            raise damaged(self._reader().path, f"a prior that is no object of logprobs: {error}") from error
        by_action = {action: lead if abs(lead) > 1e-9 else 0.0 for action, lead in zip(actions, leads, strict=True)}
        return _StepLeads(by_action, by_action.get(normalize_action(prior.action), -1.0 / max(len(by_action), 1)))
