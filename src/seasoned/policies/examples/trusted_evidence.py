"""Evidence of the episodes that count, where others do not: what prompts are checked by under a rule of trust."""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

import numpy as np

from seasoned.core import N_RECENT, recent_moments
from seasoned.protocols import ReadableMemory
from seasoned.types import Evidence, EvidenceQuery, LatestSteps, RecentReturns, normalize_action
from seasoned.types.queries import MOST_LISTED
from seasoned.types.step_sums import CountedStep, state_sums, task_sums

__all__ = ["TrustedEvidence"]

_CACHED_STATES = 4096
_FEWEST_TO_CHANGE = 4  # steps at a state, as in the evidence of a memory


class TrustedEvidence:
    """An `EvidenceSource` that counts the steps of some episodes alone.

    The neighbour states are those of the whole memory. Of their steps, the 1,024 at the most similar states (of one
    state the latest) are read; those that count are summed as a memory sums all. States and actions without such steps
    are left out. The `recent` returns are those of the nearest 256 such steps, since the namespace's are of all
    episodes. `spread`, `n_episodes` and `n_states` stay those of all.

    Args:
        memory: a `seasoned.Memory`.
        counting: returns those of some episodes, by id, that count.
    """

    def __init__(self, memory: ReadableMemory, counting: Callable[[Collection[str]], Collection[str]]) -> None:
        self._memory = memory
        self._counting = counting
        self._features = functools.lru_cache(_CACHED_STATES)(memory.encoder.features)

    def evidence(self, query: EvidenceQuery) -> Evidence:
        """Return the evidence of the steps that count; see `Memory.evidence`.

        Raises:
            InputError: as for `Memory.evidence`.
        """
        found = self._memory.evidence(dataclasses.replace(query, listed=MOST_LISTED, labels=False))
        counting = self._counting({one.experience.episode_id for one in found.neighbors})
        rank_of: dict[frozenset[str], int] = {}  # the most similar state first, as in the evidence
        ranks = [rank_of.setdefault(self._features(one.experience.state), len(rank_of)) for one in found.neighbors]
        row_of = {normalize_action(action): row for row, action in enumerate(found.actions)}
        listed = [
            (CountedStep(rank, row_of[normalize_action(step.action)], step.return_, step.task, step.episode_id), near)
            for rank, near in zip(ranks, found.neighbors, strict=True)
            if (step := near.experience).episode_id in counting
        ]
        states = sorted({step.state for step, _ in listed})
        actions = sorted({step.action for step, _ in listed})
        place_of, of_action = ({each: place for place, each in enumerate(kept)} for kept in (states, actions))
        steps = [step._replace(state=place_of[step.state], action=of_action[step.action]) for step, _ in listed]
        sums = state_sums(steps)

        def by_action(column: np.ndarray) -> np.ndarray:
            return np.bincount(sums.actions, column, len(actions)).astype(np.float64)

        between, by_task = found.state_similarities, found.by_task
        situations = None if by_task is None or by_task.situations is None else by_task.situations[states]
        task = None if query.current_task is None else self._memory.redacted(query.current_task)
        counts = by_action(sums.counts)
        latest_first = [(step.task, step.return_) for step in steps[:N_RECENT]]
        return dataclasses.replace(
            found,
            actions=tuple(found.actions[row] for row in actions),
            counts=counts,
            weights=counts.copy(),
            totals=by_action(sums.totals),
            squares=by_action(sums.squares),
            neighbors=tuple(near for _, near in listed),
            by_state=sums,
            unshown=None,
            similarities=None if found.similarities is None else found.similarities[states],
            state_similarities=None if between is None else between[np.ix_(states, states)],
            recent=RecentReturns(*recent_moments(latest_first, task)),
            latest=None if found.latest is None else _latest(steps),
            by_task=None if by_task is None else task_sums(steps, task, situations),
        )


def _latest(steps: Sequence[CountedStep]) -> LatestSteps:
    """Return the latest steps at the nearest states with four steps or more; of each state the oldest first."""
    at: defaultdict[int, list[CountedStep]] = defaultdict(list)
    for step in steps:  # of one state the latest first
        at[step.state].append(step)
    read: list[CountedStep] = []
    for of_state in at.values():
        if len(of_state) >= _FEWEST_TO_CHANGE:
            if read and len(read) + min(len(of_state), N_RECENT) > N_RECENT:
                break
            read += reversed(of_state[:N_RECENT])
    columns = zip(*((step.state, step.action, step.return_) for step in read), strict=True) if read else ((), (), ())
    states, actions, returns = columns
    return LatestSteps(
        np.array(states, dtype=np.int64), np.array(actions, dtype=np.int64), np.array(returns, dtype=np.float64)
    )
