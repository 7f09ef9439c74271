"""Values of actions at one moment, by the estimator of `default`: what a prompt must not contradict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from seasoned.core import LEAST_IDENTIFYING_SHARE, AdvantageEstimate, identifying_cells, share_of_identifying_steps
from seasoned.policies.call_evidence import action_rows, task_cells
from seasoned.policies.jitrl import JitRL
from seasoned.protocols import EvidenceSource
from seasoned.types import Evidence, EvidenceQuery, normalize_action

__all__ = ["UNTRIED", "ActionValuer", "ActionValues"]

_ROUNDING = 1e-6  # of advantages, in units
_N_STATES = 16  # fewer than a decision needs, since prompts are written more often than examples change
_AMONG = 64
UNTRIED = "\x00"
"""Stands for an untried action; no action is this text."""


class ActionValues:
    """Values of the actions that were taken at states like one state, and of one that nobody tried.

    Args:
        evidence: about the state.
        estimate: of the advantages of the evidence's actions, then of an untried one, under an even policy.
    """

    def __init__(self, evidence: Evidence, estimate: AdvantageEstimate) -> None:
        self._evidence = evidence
        self._advantages, self._low, self._high = estimate.estimated, estimate.low, estimate.high
        self._values = (estimate.baseline or 0.0) + estimate.scale * estimate.estimated
        self._of_one_task = _actions_of_one_task(evidence)

    def _row(self, action: str) -> int:
        return int(action_rows([action], self._evidence)[0])

    def is_no_model(self, action: str, floor: Callable[[float], bool]) -> bool:
        """Return whether a prompt must not say that this action went best at a moment like this.

        It must not if the action is expected to fail here (`floor`), and to return less than an untried one; if another
        action that was tried is better than its 95 % interval; or, if it only says which task is played
        (`seasoned.core.within_tasks`), unless it is better than an untried one.
        """
        row = self._row(action)
        if row < 0:
            return False
        ahead = float(self._advantages[row] - self._advantages[-1])
        if row in self._of_one_task:
            return ahead <= _ROUNDING
        fails = ahead < -_ROUNDING and not floor(float(self._values[row]))
        return fails or float(self._advantages[:-1].max()) > float(self._high[row]) + _ROUNDING

    def is_no_warning(self, action: str, floor: Callable[[float], bool]) -> bool:
        """Return whether a prompt must not say that this action is to be avoided at a moment like this.

        It must not if the action is expected to succeed here, and no other, tried or not, to return more; or, if the
        action only says which task is played, unless an untried one is better.
        """
        row = self._row(action)
        if row < 0:
            return False
        own = float(self._advantages[row]) + _ROUNDING
        if row in self._of_one_task:
            return own >= float(self._advantages[-1])
        value = float(self._values[row])
        return bool(value >= 0.0 and floor(value) and own >= np.delete(self._advantages, row).max())

    def returns_here(self, action: str) -> list[float]:
        """Return the returns of the steps with this action at this very state, the latest first; at most 50.

        None unless the valuer reads steps.
        """
        row = self._row(action)
        key = None if row < 0 else normalize_action(self._evidence.actions[row])
        near = self._evidence.neighbors
        return [
            one.experience.return_
            for one in near
            if one.similarity >= 1.0 - _ROUNDING and normalize_action(one.experience.action) == key
        ]


class _NearEvidence:
    """Evidence from the states most alike among those with the most common features, with or without its steps."""

    def __init__(self, memory: EvidenceSource, *, with_steps: bool) -> None:
        self._memory = memory
        self._with_steps = with_steps

    def evidence(self, query: EvidenceQuery) -> Evidence:
        listed = query.listed if self._with_steps else 0
        return self._memory.evidence(dataclasses.replace(query, among=_AMONG, frontier=False, listed=listed))


class ActionValuer:
    """Estimates the values of actions at a moment, as `default` does without moderation, from the 16 states most alike.

    They are the nearest by rarity, as for a decision. Where the state came back (16 stored states or more share half of
    its features: Jaccard), only these are compared, the 64 with the largest share; where 8 do, those that share 0.3. It
    is quicker: in 100,000 long states the search of all takes longer than everything else. A prompt explores no
    frontier.

    Args:
        memory: the source of evidence.
        gamma: discount of the returns; None: the memory's own.
        with_steps: whether `ActionValues.returns_here` will be asked, for which steps are read.
    """

    def __init__(self, memory: EvidenceSource, gamma: float | None = None, *, with_steps: bool = False) -> None:
        memory = _NearEvidence(memory, with_steps=with_steps)
        stated = {"gamma": gamma, "k": _N_STATES, "choices": "rewards", "moderation": 0.0, "prior_slope": False}
        self._policy = JitRL(memory, **stated)
        self._but_task = JitRL(memory, **stated, exclude_same_task=True)

    def at(self, state: str, *, task: str | None = None, exclude_task: str | None = None) -> ActionValues | None:
        """Return the values at a state; None if nothing was tried at a state like it.

        Args:
            state: the observation.
            task: the task being played.
            exclude_task: leave out the steps of this task.
        """
        policy = self._policy if exclude_task is None else self._but_task
        evidence = policy.evidence(state, task=task if exclude_task is None else exclude_task)
        if not evidence.weights.any():
            return None
        actions = (*evidence.actions, UNTRIED)
        even = np.full(len(actions), 1.0 / len(actions))
        return ActionValues(evidence, policy.estimate(actions, even, evidence, np.random.default_rng(0)))


def _actions_of_one_task(evidence: Evidence) -> frozenset[int]:
    """Return the rows of the actions that only say which task is played, where returns are compared within tasks."""
    sums, similarities = evidence.by_task, evidence.similarities
    if sums is None or similarities is None:
        return frozenset()
    cells = task_cells(sums)
    if share_of_identifying_steps(cells, similarities) < LEAST_IDENTIFYING_SHARE:
        return frozenset()
    return frozenset(sums.actions[identifying_cells(cells)].tolist())
