"""Effects of tasks on returns, where the state does not say which task is played and the action does."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from seasoned.checks import check_number
from seasoned.core.arrays import Bools, Floats, Ints
from seasoned.core.shrinkage import Cells
from seasoned.errors import InputError

__all__ = [
    "LEAST_IDENTIFYING_SHARE",
    "TaskCells",
    "identifying_cells",
    "share_of_identifying_steps",
    "task_effects",
    "within_tasks",
]

LEAST_IDENTIFYING_SHARE = 0.5
"""Share of steps from which on actions are taken to say which task is played."""

_LEAST_WEIGHT = 1e-12  # of a cell; less is nothing


@dataclass(frozen=True, slots=True)
class TaskCells:
    """Sums by distinct state, action and task, L of them.

    Args:
        states, actions: shape (L,), as in `Cells`.
        tasks: shape (L,), numbers of the tasks, from 0.
        counts: shape (L,), steps whose task is known. 0: of the steps of this state and action, only one task is known
            that took it, and how often is not.
        totals: shape (L,), sums of the returns of these steps, in reward units.
        episodes: shape (T,), the number of episodes of each task at these states, as far as they are known.
        situations: shape (S,), the number of what each state is apart from its goal; None: no state has a goal. What
            states say of the task is compared by these.
    """

    states: Ints
    actions: Ints
    tasks: Ints
    counts: Floats
    totals: Floats
    episodes: Ints
    situations: Ints | None = None


def share_of_identifying_steps(cells: TaskCells, to_query: Floats | None = None) -> float:
    """Return the share of steps whose action says which task is played, while their state does not.

    Of all steps, these are the ones of tasks with two episodes or more, at a state that another task met too, whose
    action no other task took. 0 if there are no steps. In [0, 1].

    Args:
        cells: the sums.
        to_query: shape (S,), the weight of a step at each state; 1 if None.

    Example:
        >>> order_numbers = TaskCells(*(np.array(x) for x in ([0, 0], [0, 1], [0, 1], [9.0, 9.0], [8.0, 1.0], [9, 9])))
        >>> share_of_identifying_steps(order_numbers)
        1.0
    """
    if len(cells.episodes) < 2:
        return 0.0
    weights = cells.counts if to_query is None else cells.counts * to_query[cells.states]
    n_steps = float(weights.sum())
    return float(weights[identifying_cells(cells)].sum()) / n_steps if n_steps else 0.0


def identifying_cells(cells: TaskCells) -> Bools:
    """Return which cells are those of `share_of_identifying_steps`; shape (L,)."""
    found: Bools = (cells.episodes[cells.tasks] > 1) & _identifying(cells)
    return found


def _identifying(cells: TaskCells) -> Bools:
    """Return which cells are at a state that another task met too, with an action that no other task took."""
    situations = cells.states if cells.situations is None else cells.situations[cells.states]
    n_tasks_at = _distinct_pairs(situations, cells.tasks)
    n_tasks_of = _distinct_pairs(cells.actions, cells.tasks)
    found: Bools = (n_tasks_at[situations] > 1) & (n_tasks_of[cells.actions] == 1)
    return found


def _distinct_pairs(first: Ints, second: Ints) -> Ints:
    """Return, for each number in `first`, with how many different numbers of `second` it occurs."""
    n_second = int(second.max(initial=-1)) + 1
    pairs = np.unique(first * n_second + second)
    return np.bincount(pairs // max(n_second, 1), minlength=int(first.max(initial=-1)) + 1)


def task_effects(
    cells: TaskCells, similarities: Floats, *, level: float, noise: float, mean: float, identified: Bools | None = None
) -> Floats:
    """Return each task's effect on its returns, shape (T,), in reward units.

    The mean return of n steps of task t at state s is `m + level(s) + b_t + error`, in units of the returns' variance
    with `Cov[level(s), level(s')] = rho k(s, s')` and errors of variance `1 - rho + eta / n`: what actions do is an
    error here. b_t are fixed effects, without a prior: their generalised least squares estimate (Aitken 1936; in panels
    the within estimator) is

        b = (Z' V^-1 Z)^-1 Z' V^-1 (y - m)

    with Z the indicators of tasks and V the covariance above. It is computed by the mixed model equations (Henderson
    1975), without b: a system of S equations, which is never singular. A task effect with a prior (random effects) is
    the wrong model here, since it must not correlate with the actions (Mundlak 1978; Hausman 1978), and an action that
    occurs in one task only is that task's indicator.

    Args:
        cells: the sums, each count above 0.
        similarities: shape (S, S), between the states.
        level, noise: rho in [0, 1) and eta above 0, as in `ProcessEstimator`.
        mean: m, in reward units.
        identified: shape (T,), the tasks that have an effect; all of them if None. It is 0 for the others, and for a
            task without cells.

    Raises:
        InputError: the similarities do not fit the cells, or a number breaks its rule.
    """
    check_number("level", level, 0, below=1, next_step="The default of the process is 0.3.")
    check_number("noise", noise, above=0, next_step="The default of the process is 0.1.")
    n_tasks, n_states = len(cells.episodes), len(similarities)
    if len(cells.states) and int(cells.states.max()) >= n_states:
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
    of_task = np.bincount(tasks, precision, n_tasks)
    has_effect = of_task > 0.0 if identified is None else identified & (of_task > 0.0)
    means = np.divide(
        np.bincount(tasks, precision * residuals, n_tasks), of_task, out=np.zeros(n_tasks), where=has_effect
    )
    # Without b the levels u solve (K^-1 / rho + N - B D^-1 B') u = r - B D^-1 r_t, and b = D^-1 (r_t - B' u).
    by_state = np.zeros((n_states, n_tasks))
    np.add.at(by_state, (states, tasks), precision)
    shares = np.divide(by_state, of_task, out=np.zeros_like(by_state), where=has_effect)
    between = np.diag(by_state.sum(axis=1)) - shares @ by_state.T
    right = np.bincount(states, precision * residuals, n_states) - by_state @ means
    spread = level * similarities
    levels = np.linalg.solve(np.eye(n_states) + spread @ between, spread @ right)
    effects: Floats = means - shares.T @ levels
    return effects


def within_tasks(
    cells: Cells,
    by_task: TaskCells,
    similarities: Floats,
    *,
    level: float,
    noise: float,
    mean: float,
    to_query: Floats | None = None,
) -> Cells:
    """Return the sums of returns less their task's effect, where actions say which task is played and states do not.

    There Q would be the success rate of a task, and an action would be good for being taken in an easy one. Returns are
    then compared within tasks: `G - b_t` (see `task_effects`). An action that all runs of its task took has no
    advantage over another such action, and a task with one run says nothing about an action of its own. The sums do not
    change if less than half of all steps identify a task with several runs (`share_of_identifying_steps`).

    Where states have goals, situations take the place of states: in the shares, in the effects, and in what an action
    of one task alone earned, which is the same under all goals of a situation.

    A task has an effect if at least half of its own steps identify it; those of other tasks are evidence as they are.
    Cells of which no task is known have weight 0 then: their returns are not comparable with the rest.

    Args:
        cells: sums by distinct state and action, in which steps may have faded.
        by_task: the sums of the same steps, or of part of them, by task. Each task's part of a cell has its share of
            what the cell has now.
        similarities, level, noise, mean: as for `task_effects`.
        to_query: shape (S,), similarities of the states to the query, by which steps count in the shares; 1 if None.

    Raises:
        InputError: as for `task_effects`.
    """
    if share_of_identifying_steps(by_task, to_query) < LEAST_IDENTIFYING_SHARE:
        return cells
    n_actions = 1 + max(int(cells.actions.max(initial=-1)), int(by_task.actions.max(initial=-1)))
    size = n_actions * len(similarities)
    at, of = by_task.states * n_actions + by_task.actions, cells.states * n_actions + cells.actions
    known = np.where(by_task.counts > 0.0, by_task.counts, 1.0)
    steps, totals = (np.bincount(at, column, size)[at] for column in (known, by_task.totals))
    weights, returns = (np.bincount(of, column, size)[at] for column in (cells.weights, cells.totals))
    part, left = known / steps, weights / steps
    held = weights > _LEAST_WEIGHT
    now = TaskCells(
        by_task.states[held],
        by_task.actions[held],
        by_task.tasks[held],
        (part * weights)[held],
        (left * by_task.totals + part * (returns - left * totals))[held],
        by_task.episodes,
    )
    n_tasks = len(by_task.episodes)
    identifying = _identifying(by_task)
    own = np.bincount(by_task.tasks, known * identifying, n_tasks)
    identified = own >= LEAST_IDENTIFYING_SHARE * np.bincount(by_task.tasks, known, n_tasks)
    if by_task.situations is not None:
        similarities = _between_situations(similarities, by_task.situations)
        now = dataclasses.replace(now, states=by_task.situations[now.states])
    effects = task_effects(now, similarities, level=level, noise=noise, mean=mean, identified=identified)[now.tasks]
    shifts, products, squares = (
        np.bincount(at[held], column, size)[of]
        for column in (now.counts * effects, now.totals * effects, now.counts * effects**2)
    )
    # A cell without weight is untried.
    has_task = (np.bincount(at, minlength=size)[of] > 0).astype(np.float64)
    compared = dataclasses.replace(
        cells,
        weights=has_task * cells.weights,
        totals=has_task * (cells.totals - shifts),
        squares=has_task * np.maximum(cells.squares - 2.0 * products + squares, 0.0),
    )
    if by_task.situations is None:
        return compared
    of_one_task = np.bincount(at, identifying & identified[by_task.tasks], size)[of] > 0
    return _one_under_all_goals(compared, by_task.situations[cells.states] * n_actions + cells.actions, of_one_task)


def _between_situations(similarities: Floats, situations: Ints) -> Floats:
    """Return the similarities between situations, the means of those of their states, and 1 to itself.

    Means are a product B K B' and what is added to the diagonal is not negative, so that they are positive
    semi-definite.
    """
    sizes = np.bincount(situations)
    of_state = np.eye(len(sizes))[:, situations] / np.maximum(sizes, 1)[:, None]
    between: Floats = of_state @ similarities @ of_state.T
    np.fill_diagonal(between, 1.0)
    return between


def _one_under_all_goals(cells: Cells, groups: Ints, pooled: Bools) -> Cells:
    """Return the sums in which the pooled cells of a group have the moments of all of them.

    The goals of one task's runs are one goal in other words: what an action of that task alone is worth does not depend
    on the words, and which of them a run that won had is chance.
    """
    weights, totals, squares = (
        np.bincount(groups[pooled], column[pooled], int(groups.max(initial=-1)) + 1)[groups]
        for column in (cells.weights, cells.totals, cells.squares)
    )
    shares = np.divide(cells.weights, weights, out=np.zeros_like(weights), where=pooled & (weights > _LEAST_WEIGHT))
    return dataclasses.replace(
        cells,
        totals=np.where(pooled, shares * totals, cells.totals),
        squares=np.where(pooled, shares * squares, cells.squares),
    )
