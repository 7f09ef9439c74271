"""Sums of evidence from listed steps, where some steps or their returns are others than the memory's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from seasoned.types.evidence import Ints, StateSums, TaskSums

__all__ = ["CountedStep", "state_sums", "task_sums"]


class CountedStep(NamedTuple):
    """A step that counts: the number of its distinct state, the row of its action, its return, and its episode."""

    state: int
    action: int
    return_: float
    task: str
    episode_id: str


def state_sums(steps: Iterable[CountedStep]) -> StateSums:
    """Return the sums by distinct state and action, in the order in which these occur first.

    Example:
        >>> sums = state_sums([CountedStep(0, 0, reward, "t", "e") for reward in (1.0, 3.0)])
        >>> sums.counts.tolist(), sums.totals.tolist(), sums.squares.tolist()
        ([2.0], [4.0], [10.0])
    """
    cells: dict[tuple[int, int], list[float]] = {}
    for step in steps:
        summed = cells.setdefault((step.state, step.action), [0.0] * 3)
        for i, amount in enumerate((1.0, step.return_, step.return_**2)):
            summed[i] += amount
    states, actions = np.array(list(cells), dtype=np.int64).reshape(-1, 2).T
    counts, totals, squares = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 3).T
    return StateSums(states, actions, counts, counts.copy(), totals, squares)


def task_sums(steps: Iterable[CountedStep], current: str | None, situations: Ints | None = None) -> TaskSums:
    """Return the sums by distinct state, action and task.

    Args:
        steps: the steps.
        current: the task being played.
        situations: of the states, see `TaskSums`.
    """
    number_of: dict[str, int] = {}
    episodes: defaultdict[int, set[str]] = defaultdict(set)
    cells: dict[tuple[int, int, int], list[float]] = {}
    for step in steps:
        task = number_of.setdefault(step.task, len(number_of))
        episodes[task].add(step.episode_id)
        summed = cells.setdefault((step.state, step.action, task), [0.0, 0.0])
        summed[0] += 1.0
        summed[1] += step.return_
    states, actions, tasks = np.array(list(cells), dtype=np.int64).reshape(-1, 3).T
    counts, totals = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 2).T
    n_episodes = np.array([len(episodes[task]) for task in range(len(number_of))], dtype=np.int64)
    return TaskSums(states, actions, tasks, counts, totals, n_episodes, number_of.get(current or "", -1), situations)
