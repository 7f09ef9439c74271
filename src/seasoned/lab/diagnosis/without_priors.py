"""Audit and value of episodes without the model's logprobs, as in an import."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from seasoned.checks import check_whole
from seasoned.core import Interval, mean_interval
from seasoned.lab.diagnosis.outcome_checks import (
    Concordance,
    OutcomeScores,
    overall_concordance,
    score,
    within_tasks_concordance,
)
from seasoned.lab.diagnosis.replay import counted_episodes
from seasoned.memory import Memory
from seasoned.types import Episode

__all__ = ["PlainAudit", "PlayedValue", "audit_without_priors", "have_no_priors", "played_value"]


@dataclass(frozen=True, slots=True)
class PlainAudit:
    """Advantages of the actions that were taken, against outcomes.

    Args:
        policy: the preset.
        n_episodes: number of episodes, each scored by a memory without it.
        sampled: which these are, in words.
        within_tasks: pairs of one task: whether the episode that earned more has the higher advantages.
        over_episodes: the same of all pairs.
        after_higher, after_lower: mean total reward of the episodes whose advantages are above their task's mean, and
            of those below; None with fewer than two.
    """

    policy: str
    n_episodes: int
    sampled: str
    within_tasks: Concordance
    over_episodes: Concordance
    after_higher: Interval | None
    after_lower: Interval | None


@dataclass(frozen=True, slots=True)
class PlayedValue:
    """The total reward of the episodes as they were played.

    Args:
        n_episodes, n_tasks: numbers of episodes and of tasks.
        value: mean total reward per episode, each counted once.
        by_task: mean over tasks of the task's mean; None with one task.
    """

    n_episodes: int
    n_tasks: int
    value: Interval | None
    by_task: Interval | None


def have_no_priors(memory: Memory) -> bool:
    """Return whether there are episodes that count, and none of their steps has the model's logprobs."""
    episodes = counted_episodes(memory)
    return bool(episodes) and all(step.prior is None for episode in episodes for step in episode.steps)


def audit_without_priors(
    memory: Memory, *, policy: str, settings: Mapping[str, Any], last: int | None = None, seed: int = 0
) -> PlainAudit:
    """Return how the advantages of the actions that were taken go with outcomes.

    Args:
        memory: the memory to audit.
        policy: the preset.
        settings: of it, changed.
        last: use this many latest episodes only.
        seed: of the deal into two halves, of the bootstrap and of the shuffles.

    Raises:
        UnknownNameError, InputError: there is no such preset or setting.
    """
    if last is not None:
        check_whole("last", last, 1, next_step="None takes all episodes.")
    episodes = counted_episodes(memory)[-(last or 0) :]
    found = score(memory, episodes, policy=policy, settings=settings, seed=seed)
    higher, lower = _by_side(found)
    return PlainAudit(
        policy,
        len(found.tasks),
        found.sampled,
        within_tasks_concordance(found, seed),
        overall_concordance(found, seed),
        mean_interval(higher) if len(higher) > 1 else None,
        mean_interval(lower) if len(lower) > 1 else None,
    )


def _by_side(found: OutcomeScores) -> tuple[list[float], list[float]]:
    """Return the totals of episodes above and below the mean score of their task by the memory that scored them."""
    higher: list[float] = []
    lower: list[float] = []
    for group in chain.from_iterable(found.comparable()):
        mean = float(found.scores[group].mean())
        for at in group:
            ahead = float(found.scores[at]) - mean
            if abs(ahead) > 1e-9:
                (higher if ahead > 0.0 else lower).append(float(found.totals[at]))
    return higher, lower


def played_value(episodes: Sequence[Episode]) -> PlayedValue:
    """Return the mean total reward of episodes as they were played, over episodes and over tasks."""
    by_task: defaultdict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        by_task[episode.task].append(math.fsum(step.reward for step in episode.steps))
    totals = [total for of_task in by_task.values() for total in of_task]
    means = [float(np.mean(of_task)) for of_task in by_task.values()]
    return PlayedValue(
        len(totals),
        len(means),
        mean_interval(totals) if len(totals) > 1 else None,
        mean_interval(means) if len(means) > 1 else None,
    )
