"""Test of each task for a change between its older and its recent returns."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from seasoned.checks import check_number, check_whole
from seasoned.core import Interval, mean_interval
from seasoned.core.statistics import difference_interval, holm, permutation_p_value
from seasoned.errors import InputError
from seasoned.lab.diagnosis.replay import counted_episodes
from seasoned.memory import Memory
from seasoned.types import Episode

__all__ = ["MIN_DRIFT_EPISODES", "Drift", "DriftVerdict", "TaskDrift", "drift", "task_drifts"]

DriftVerdict = Literal["fell", "rose", "no change found", "too few"]

MIN_DRIFT_EPISODES = 10
_MAX_EPISODES = 1000
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class TaskDrift:
    """The recent episodes of one task, compared with its older ones. Means are in reward units per episode.

    Args:
        task: the text of the task.
        n_older, n_recent: number of episodes in each group.
        older, recent: mean total reward with an interval.
        difference: mean of the recent less mean of the older episodes, with an interval.
        p_value: of the hypothesis that the episodes are exchangeable; `adjusted` for the number of tasks.
        verdict: `fell` or `rose` where `adjusted` is at most the level; `too few`: not tested, all numbers None.
        pooled: the number of tasks with too few episodes that are tested together here; 0: one task.
    """

    task: str
    n_older: int
    n_recent: int
    older: Interval | None
    recent: Interval | None
    difference: Interval | None
    p_value: float | None
    adjusted: float | None
    verdict: DriftVerdict
    pooled: int = 0


@dataclass(frozen=True, slots=True)
class Drift:
    """Every task, by rising p.

    Args:
        tasks: one entry per task.
        level: the family-wise error.
        min_episodes: a group has at least this many episodes, or its task is not tested.
    """

    tasks: tuple[TaskDrift, ...]
    level: float
    min_episodes: int


def drift(
    memory: Memory,
    *,
    recent: int | None = None,
    min_episodes: int = MIN_DRIFT_EPISODES,
    level: float = LEVEL,
    seed: int = 0,
) -> Drift:
    """Test for each task whether the mean return of its recent episodes differs from that of its older ones.

    Of a task's last 1,000 episodes that count, the last third (or the last `recent`) is compared with the rest. An
    episode's return is its total reward, feedback included, undiscounted. The two-sided permutation test on the
    difference of the means (`seasoned.core.statistics.permutation_p_value`) assumes only that episodes are exchangeable
    if nothing changed; Holm's adjustment bounds the probability of any false alarm among all tasks by `level`. Seeded.

    Tasks with too few episodes are tested together, in the order of their episodes: a change in which of them come,
    from easy to hard, counts there too.

    The returns of an agent that learns are expected to rise. Where they fall, the environment, the model or the
    feedback changed, or memory does harm.

    Args:
        memory: the memory to test.
        recent: the number of recent episodes of a task; None: the last third of them.
        min_episodes: tasks with fewer in either group are not tested, at least 5.
        level: family-wise error, in (0, 1).
        seed: of the permutations.

    Raises:
        InputError: no task has enough episodes, or a value breaks its rule.

    Example:
        >>> from seasoned import Episode, Step
        >>> with Memory.open(":memory:") as memory:
        ...     for day in range(40):
        ...         _ = memory.add(Episode("checkout", [Step("page:pay", "click(confirm)", float(day < 25))]))
        ...     [checkout] = drift(memory).tasks
        >>> checkout.verdict, round(checkout.older.mean, 2), checkout.recent.mean
        ('fell', 0.93, 0.0)
    """
    if recent is not None:
        check_whole("recent", recent, 1)
    check_whole("min_episodes", min_episodes, 5)
    check_number("level", level, above=0.0, below=1.0, next_step="0.05 is usual.")
    check_whole("seed", seed, 0)
    tasks = task_drifts(counted_episodes(memory), recent=recent, min_episodes=min_episodes, level=level, seed=seed)
    if not any(task.p_value is not None for task in tasks):
        most = max((task.n_older + task.n_recent for task in tasks), default=0)
        raise InputError(
            f"{len(tasks)} tasks with up to {most} episodes that count",
            f"a task is tested from {min_episodes} recent and {min_episodes} older episodes on",
            "Record more, or choose groups of similar size: --recent.",
        )
    return Drift(tuple(tasks), level, min_episodes)


def task_drifts(
    episodes: Sequence[Episode],
    *,
    recent: int | None = None,
    min_episodes: int = MIN_DRIFT_EPISODES,
    level: float = LEVEL,
    seed: int = 0,
) -> list[TaskDrift]:
    """Return the test of each task, as `drift` does, for episodes in commit order; too few episodes are no error."""
    by_task: defaultdict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        by_task[episode.task].append(math.fsum(step.reward for step in episode.steps))
    groups = {task: _divided(values[-_MAX_EPISODES:], recent) for task, values in by_task.items()}
    small = {task for task, pair in groups.items() if min(map(len, pair)) < max(2, min_episodes)}
    pool = f"{len(small)} tasks with too few episodes, together"
    if len(small) > 1 and pool not in groups:
        values = [math.fsum(step.reward for step in one.steps) for one in episodes if one.task in small]
        groups[pool] = _divided(values[-_MAX_EPISODES:], recent)
    tested = {task: pair for task, pair in groups.items() if min(map(len, pair)) >= max(2, min_episodes)}
    p_values = [permutation_p_value(new, old, seed=seed + i) for i, (old, new) in enumerate(tested.values())]
    adjusted = dict(zip(tested, zip(p_values, holm(p_values).tolist(), strict=True), strict=True))
    results = []
    for task, (old, new) in groups.items():
        if task not in adjusted and task not in by_task:
            continue
        if task not in adjusted:
            results.append(TaskDrift(task, len(old), len(new), None, None, None, None, None, "too few"))
            continue
        difference = difference_interval(new, old)
        p_value, corrected = adjusted[task]
        changed: DriftVerdict = "fell" if difference.mean < 0.0 else "rose"
        results.append(
            TaskDrift(
                task,
                len(old),
                len(new),
                mean_interval(old),
                mean_interval(new),
                difference,
                p_value,
                corrected,
                changed if corrected <= level else "no change found",
                len(small) if task == pool and task not in by_task else 0,
            )
        )
    return sorted(results, key=lambda result: (result.adjusted is None, result.adjusted or 0.0, result.task))


def _divided(values: list[float], recent: int | None) -> tuple[list[float], list[float]]:
    """Split into older and recent returns."""
    n_recent = len(values) // 3 if recent is None else min(recent, len(values))
    return values[: len(values) - n_recent], values[len(values) - n_recent :]
