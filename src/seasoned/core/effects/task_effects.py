"""Effects of tasks on returns, where the state does not say which task is played and the action does."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from seasoned.checks import check_number
from seasoned.core.arrays import Floats, Ints
from seasoned.core.shrinkage import Cells
from seasoned.errors import InputError

__all__ = ["TaskCells", "share_of_identifying_steps", "task_effects", "within_tasks"]

_LEAST_IDENTIFYING = 0.5
_LEAST_WEIGHT = 1e-12  # of a cell; less is nothing


@dataclass(frozen=True, slots=True)
class TaskCells:
    """Sums by distinct state, action and task, L of them.

    Args:
        states, actions: shape (L,), as in `Cells`.
        tasks: shape (L,), numbers of the tasks, from 0.
        counts: shape (L,), steps, each above 0.
        totals: shape (L,), sums of returns, in reward units.
        episodes: shape (T,), the number of episodes of each task at these states.
    """

    states: Ints
    actions: Ints
    tasks: Ints
    counts: Floats
    totals: Floats
    episodes: Ints


def share_of_identifying_steps(cells: TaskCells) -> float:
    """Return the share of steps whose action says which task is played, while their state does not.

    Of the steps of tasks with two episodes or more, these are the ones at a state that another task met too, whose
    action no other task took. 0 if there are no such tasks. In [0, 1].

    Example:
        >>> order_numbers = TaskCells(*(np.array(x) for x in ([0, 0], [0, 1], [0, 1], [9.0, 9.0], [8.0, 1.0], [9, 9])))
        >>> share_of_identifying_steps(order_numbers)
        1.0
    """
    repeated = cells.episodes[cells.tasks] > 1
    n_steps = float(cells.counts[repeated].sum())
    if not n_steps:
        return 0.0
    n_tasks_at = _distinct_pairs(cells.states, cells.tasks)
    n_tasks_of = _distinct_pairs(cells.actions, cells.tasks)
    identifies = repeated & (n_tasks_at[cells.states] > 1) & (n_tasks_of[cells.actions] == 1)
    return float(cells.counts[identifies].sum()) / n_steps


def _distinct_pairs(first: Ints, second: Ints) -> Ints:
    """Return, for each number in `first`, with how many different numbers of `second` it occurs."""
    pairs = np.unique(np.stack([first, second], axis=1), axis=0)
    return np.bincount(pairs[:, 0], minlength=int(first.max(initial=-1)) + 1)


def task_effects(cells: TaskCells, similarities: Floats, *, level: float, noise: float, mean: float) -> Floats:
    """Return each task's effect on its returns, shape (T,), in reward units.

    The mean return of n steps of task t at state s is `m + level(s) + b_t + error`, in units of the returns' variance
    with `Cov[level(s), level(s')] = rho k(s, s')` and errors of variance `1 - rho + eta / n`: what actions do is an
    error here. b_t are fixed effects, without a prior: their generalised least squares estimate (Aitken 1936; in panels
    the within estimator) is

        b = (Z' V^-1 Z)^-1 Z' V^-1 (y - m)

    with Z the indicators of tasks and V the covariance above. A task effect with a prior (random effects) is the wrong
    model here, since it must not correlate with the actions (Mundlak 1978; Hausman 1978), and an action that occurs in
    one task only is that task's indicator.

    Args:
        cells: the sums.
        similarities: shape (S, S), between the states.
        level, noise: rho in [0, 1) and eta above 0, as in `ProcessEstimator`.
        mean: m, in reward units.

    Raises:
        InputError: the similarities do not fit the cells, or a number breaks its rule.
    """
    check_number("level", level, 0, below=1, next_step="The default of the process is 0.3.")
    check_number("noise", noise, above=0, next_step="The default of the process is 0.1.")
    n_tasks = len(cells.episodes)
    if len(cells.states) and int(cells.states.max()) >= len(similarities):
        raise InputError(
            f"similarities of shape {similarities.shape}, a state {int(cells.states.max())}",
            "each state of the cells has a similarity to each other",
            "Pass the similarities that belong to the cells.",
        )
    keys, of = np.unique(cells.states * n_tasks + cells.tasks, return_inverse=True)
    states, tasks = keys // n_tasks, keys % n_tasks
    counts = np.bincount(of, cells.counts, len(keys))
    residuals = np.bincount(of, cells.totals, len(keys)) / counts - mean
    precision: Floats = 1.0 / (1.0 - level + noise / counts)
    # V^-1 = D - D P (K^-1 / rho + P' D P)^-1 P' D, P the indicators of states: systems of S and of T equations.
    by_state = np.zeros((len(similarities), n_tasks))
    np.add.at(by_state, (states, tasks), precision)
    at_state = np.bincount(states, precision * residuals, len(similarities))
    spread = level * similarities
    sides = np.concatenate([by_state, at_state[:, None]], axis=1)
    solved = np.linalg.solve(np.eye(len(similarities)) + spread * by_state.sum(axis=1), spread @ sides)
    normal = np.diag(np.bincount(tasks, precision, n_tasks)) - by_state.T @ solved[:, :-1]
    right = np.bincount(tasks, precision * residuals, n_tasks) - by_state.T @ solved[:, -1]
    effects: Floats = np.linalg.lstsq(normal, right, rcond=None)[0].astype(np.float64)
    return effects


def within_tasks(
    cells: Cells, by_task: TaskCells, similarities: Floats, *, level: float, noise: float, mean: float
) -> Cells:
    """Return the sums of returns less their task's effect, where actions say which task is played and states do not.

    There Q would be the success rate of a task, and an action would be good for being taken in an easy one. Returns are
    then compared within tasks: `G - b_t` (see `task_effects`). An action that all runs of its task took has no
    advantage over another such action, and a task with one run says nothing about its actions. The sums do not change
    if less than half of the steps of tasks with several runs identify their task (`share_of_identifying_steps`).

    Args:
        cells: sums by distinct state and action, in which steps may have faded.
        by_task: the sums of the same steps, or of the latest of them, by task. Each task's part of a cell has its share
            of what the cell has now.
        similarities, level, noise, mean: as for `task_effects`.

    Raises:
        InputError: as for `task_effects`.
    """
    if share_of_identifying_steps(by_task) < _LEAST_IDENTIFYING:
        return cells
    n_actions = 1 + max(int(cells.actions.max(initial=-1)), int(by_task.actions.max(initial=-1)))
    size = n_actions * len(similarities)
    at, of = by_task.states * n_actions + by_task.actions, cells.states * n_actions + cells.actions
    steps, totals = (np.bincount(at, column, size)[at] for column in (by_task.counts, by_task.totals))
    weights, returns = (np.bincount(of, column, size)[at] for column in (cells.weights, cells.totals))
    part, left = by_task.counts / steps, weights / steps
    held = weights > _LEAST_WEIGHT
    now = TaskCells(
        by_task.states[held],
        by_task.actions[held],
        by_task.tasks[held],
        (part * weights)[held],
        (left * by_task.totals + part * (returns - left * totals))[held],
        by_task.episodes,
    )
    effects = task_effects(now, similarities, level=level, noise=noise, mean=mean)[now.tasks]
    shifts, products, squares = (
        np.bincount(at[held], column, size)[of]
        for column in (now.counts * effects, now.totals * effects, now.counts * effects**2)
    )
    return dataclasses.replace(
        cells, totals=cells.totals - shifts, squares=np.maximum(cells.squares - 2.0 * products + squares, 0.0)
    )
