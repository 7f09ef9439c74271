"""Whether the recent episodes of a task earned something else than the older ones."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from seasoned.core import Interval, mean_interval
from seasoned.core.statistics import difference_interval, holm, permutation_p_value
from seasoned.errors import InputError, excerpt
from seasoned.lab.diagnosis.replay import counted_episodes
from seasoned.memory import Memory
from seasoned.types import Episode

__all__ = ["MIN_EPISODES", "Drift", "TaskDrift", "Verdict", "drift", "task_drifts"]

Verdict = Literal["fell", "rose", "no change found", "too few"]

MIN_EPISODES = 10
MAX_EPISODES = 1000
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class TaskDrift:
    """One task's recent episodes against its older ones. Means are in reward units per episode.

    Args:
        task: its text.
        n_older, n_recent: episodes in each group.
        older, recent: mean total reward with an interval.
        difference: recent less older, with an interval.
        p_value: of "the episodes are exchangeable"; `adjusted` for the number of tasks.
        verdict: `fell` or `rose` where `adjusted` is at most the level; `too few`: not tested, all numbers None.
    """

    task: str
    n_older: int
    n_recent: int
    older: Interval | None
    recent: Interval | None
    difference: Interval | None
    p_value: float | None
    adjusted: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Drift:
    """Every task, the most suspicious first. `level` is the family-wise error, `min_episodes` the least per group."""

    tasks: tuple[TaskDrift, ...]
    level: float
    min_episodes: int


def drift(
    memory: Memory, *, recent: int | None = None, min_episodes: int = MIN_EPISODES, level: float = LEVEL, seed: int = 0
) -> Drift:
    """Test for each task whether its recent episodes earn something else than its older ones.

    Of a task's last 1,000 episodes that count, the last third (or the last `recent`) against those before. An episode's
    return is its total reward, feedback included, undiscounted. The two-sided permutation test on the difference of the
    means (`seasoned.core.permutation_p_value`) assumes only that, if nothing changed, the order of episodes
    tells nothing; Holm's adjustment keeps the chance of any false alarm among all tasks at `level`. Seeded.

    An agent that learns is expected to rise. What falls no longer fits: the environment, the model or the feedback
    changed, or memory does harm.

    Args:
        memory: whose episodes.
        recent: how many episodes of a task are recent; None: the last third of them.
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
        ...     [found] = drift(memory).tasks
        >>> found.verdict, round(found.older.mean, 2), found.recent.mean
        ('fell', 0.93, 0.0)
    """
    for name, value, least in (("recent", recent, 1), ("min_episodes", min_episodes, 5)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise InputError(f"{name} = {excerpt(value)}", f"it is a whole number, at least {least}", "Change it.")
    if not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise InputError(f"level = {excerpt(level)}", "an error level is in (0, 1)", "0.05 is usual.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed = {excerpt(seed)}", "it is a whole number, at least 0", "Keep the default.")
    found = task_drifts(counted_episodes(memory), recent=recent, min_episodes=min_episodes, level=level, seed=seed)
    if not any(one.p_value is not None for one in found):
        most = max((one.n_older + one.n_recent for one in found), default=0)
        raise InputError(
            f"{len(found)} tasks with up to {most} episodes that count",
            f"a task is tested from {min_episodes} recent and {min_episodes} older episodes on",
            "Record more; or make the groups alike: --recent.",
        )
    return Drift(tuple(found), level, min_episodes)


def task_drifts(
    episodes: Sequence[Episode],
    *,
    recent: int | None = None,
    min_episodes: int = MIN_EPISODES,
    level: float = LEVEL,
    seed: int = 0,
) -> list[TaskDrift]:
    """Return what `drift` finds in episodes that are given in commit order, without refusing where all are too few."""
    by_task: defaultdict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        by_task[episode.task].append(math.fsum(step.reward for step in episode.steps))
    groups = {task: _divided(values[-MAX_EPISODES:], recent) for task, values in by_task.items()}
    tested = {task: pair for task, pair in groups.items() if min(map(len, pair)) >= max(2, min_episodes)}
    p_values = [permutation_p_value(new, old, seed=seed + i) for i, (old, new) in enumerate(tested.values())]
    adjusted = dict(zip(tested, zip(p_values, holm(p_values).tolist(), strict=True), strict=True))
    found = []
    for task, (old, new) in groups.items():
        if task not in adjusted:
            found.append(TaskDrift(task, len(old), len(new), None, None, None, None, None, "too few"))
            continue
        difference = difference_interval(new, old)
        p_value, corrected = adjusted[task]
        changed: Verdict = "fell" if difference.mean < 0.0 else "rose"
        found.append(
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
            )
        )
    return sorted(found, key=lambda one: (one.adjusted is None, one.adjusted or 0.0, one.task))


def _divided(values: list[float], recent: int | None) -> tuple[list[float], list[float]]:
    """The older and the recent ones."""
    n_recent = len(values) // 3 if recent is None else min(recent, len(values))
    return values[: len(values) - n_recent], values[len(values) - n_recent :]
