"""Task effects: the generalised least squares of their definition, and what they leave of the returns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.core import Cells, TaskCells, share_of_identifying_steps, task_effects, within_tasks
from seasoned.errors import InputError


def cells_by_task(rows, n_tasks):
    states, actions, tasks, counts, totals = (np.array(column) for column in zip(*rows, strict=True))
    episodes = np.bincount(tasks, counts, n_tasks).astype(np.int64)
    return TaskCells(states, actions, tasks, counts.astype(float), totals.astype(float), episodes)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4))
def test_effects_equal_dense_generalised_least_squares(seed, n_states, n_tasks):
    """Of the tasks that have one; the returns of the others tell about the levels alone."""
    rng = np.random.default_rng(seed)
    vectors = rng.random((n_states, 6))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    kernel = vectors @ vectors.T
    pairs = [(s, t) for s in range(n_states) for t in range(n_tasks) if rng.random() < 0.7 or s == t % n_states]
    rows = [(s, i, t, rng.integers(1, 5), rng.normal()) for i, (s, t) in enumerate(pairs)]
    cells, rho, eta, m = cells_by_task(rows, n_tasks), 0.3, 0.1, 0.4
    identified = np.arange(n_tasks) % 3 != seed % 4  # all of them, if seed % 4 == 3
    found = task_effects(cells, kernel, level=rho, noise=eta, mean=m, identified=identified)

    indicators = (cells.tasks[:, None] == np.flatnonzero(identified)).astype(float)
    covariance = rho * kernel[np.ix_(cells.states, cells.states)] + np.diag(1 - rho + eta / cells.counts)
    weighed = indicators.T @ np.linalg.inv(covariance)
    expected = np.zeros(n_tasks)
    expected[identified] = np.linalg.solve(weighed @ indicators, weighed @ (cells.totals / cells.counts - m))
    assert found == pytest.approx(expected, abs=1e-8)


COLUMNS = ("states", "actions", "tasks", "counts", "totals", "episodes")


def cells_of(by_task):
    n = by_task.counts
    return Cells(by_task.states, by_task.actions, n, n, by_task.totals, by_task.totals**2 / n + 0.1)


def order_numbers(wins):
    """One state, one action a task, ten runs of each."""
    return cells_by_task([(0, task, task, 10, won) for task, won in enumerate(wins)], len(wins))


def test_returns_of_actions_that_name_their_task_are_all_as_expected():
    by_task = order_numbers([9, 1, 5])
    n = by_task.counts
    cells = Cells(by_task.states, by_task.actions, n, n, by_task.totals, by_task.totals)
    left = within_tasks(cells, by_task, np.eye(1), level=0.3, noise=0.1, mean=0.5)
    assert left.totals / left.weights == pytest.approx([0.5, 0.5, 0.5])
    within = by_task.totals - by_task.totals**2 / n  # squared deviations from the cell's mean do not change
    assert left.squares - left.totals**2 / n == pytest.approx(within)


def test_shared_actions_states_of_one_task_and_single_runs_do_not_identify():
    shared = cells_by_task([(0, 0, 0, 5, 4), (0, 0, 1, 5, 1)], 2)
    own_states = cells_by_task([(0, 0, 0, 5, 4), (1, 1, 1, 5, 1)], 2)
    single = cells_by_task([(0, 0, 0, 1, 1), (0, 1, 1, 1, 0)], 2)
    assert [share_of_identifying_steps(one) for one in (shared, own_states, single)] == [0.0, 0.0, 0.0]
    cells = Cells(*(np.array(column) for column in ([0], [0], [10.0], [10.0], [5.0], [5.0])))
    assert within_tasks(cells, shared, np.eye(1), level=0.3, noise=0.1, mean=0.5) is cells


def test_single_runs_count_in_the_share_and_steps_weigh_as_their_state_is_similar():
    rows = [(0, 0, 0, 2, 1), *((0, 1, task, 1, 1) for task in range(1, 7)), (1, 2, 7, 10, 1), (1, 3, 8, 10, 9)]
    cells = cells_by_task(rows, 9)
    assert share_of_identifying_steps(cells, np.array([1.0, 0.0])) == 0.25
    assert share_of_identifying_steps(cells, np.array([1.0, 0.1])) == 0.4


def test_the_effect_leaves_the_returns_of_tasks_whose_actions_others_take_as_they_are():
    by_task = cells_by_task([(0, 0, 0, 9, 8), (0, 1, 1, 9, 1), (0, 2, 2, 1, 1), (0, 2, 3, 2, 1), (0, 3, 3, 0, 0)], 4)
    n = np.array([9.0, 9.0, 3.0, 7.0, 5.0])
    totals = np.array([8.0, 1.0, 2.0, 0.0, 5.0])
    cells = Cells(np.zeros(5, dtype=np.int64), np.arange(5), n, n, totals, totals)
    left = within_tasks(cells, by_task, np.eye(1), level=0.3, noise=0.1, mean=0.5)
    assert left.totals[0] / 9 == pytest.approx(left.totals[1] / 9)
    assert left.totals[2:4].tolist() == [2.0, 0.0]
    assert left.weights.tolist() == [9.0, 9.0, 3.0, 7.0, 0.0]  # the last one is of an unknown task


def test_similarities_of_too_few_states_are_refused():
    with pytest.raises(InputError, match="similarity"):
        task_effects(cells_by_task([(1, 0, 0, 1, 1)], 1), np.eye(1), level=0.3, noise=0.1, mean=0.0)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3))
def test_states_of_one_situation_are_compared_as_one_state(seed, n_situations, runs):
    """Each run of a task is a state of its own; its cells get the mean that one state for all of them would have."""
    rng = np.random.default_rng(seed)
    rows, situations = [], []
    for situation in range(n_situations):
        for task in range(3):
            for _ in range(runs + 1):
                rows.append((len(situations), task, task, 1, rng.normal()))
                situations.append(situation)
    totals = {}
    for state, _, task, _, total in rows:
        totals[situations[state], task] = totals.get((situations[state], task), 0.0) + total
    own = cells_by_task(rows, 3)
    merged = cells_by_task([(situation, task, task, runs + 1, total) for (situation, task), total in totals.items()], 3)
    by_situation = TaskCells(*(getattr(own, name) for name in COLUMNS), situations=np.array(situations))
    same = (np.array(situations)[:, None] == situations).astype(float)
    to_each_other = 0.5 * same + 0.5 * np.eye(len(situations))
    settings = {"level": 0.3, "noise": 0.1, "mean": 0.4}
    found = within_tasks(cells_of(own), by_situation, to_each_other, **settings)
    expected = within_tasks(cells_of(merged), merged, np.eye(n_situations), **settings)
    for situation, task in {(situations[s], task) for s, _, task, *_ in rows}:
        here = (np.array(situations) == situation) & (own.tasks == task)
        there = (merged.states == situation) & (merged.tasks == task)
        mean = expected.totals[there].sum() / expected.weights[there].sum()
        assert found.totals[here] / found.weights[here] == pytest.approx(np.full(runs + 1, mean), abs=1e-9)
    assert share_of_identifying_steps(own) == 0.0


@given(st.integers(0, 10**6))
def test_situations_that_are_the_states_change_nothing(seed):
    rng = np.random.default_rng(seed)
    rows = [(s, 2 * t + int(a), t, 3, rng.normal()) for s in range(2) for t in range(3) for a in range(2)]
    cells = cells_by_task(rows, 3)
    named = TaskCells(*(getattr(cells, name) for name in COLUMNS), situations=np.arange(2))
    kernel = np.array([[1.0, 0.4], [0.4, 1.0]])
    found, expected = (
        within_tasks(cells_of(cells), by_task, kernel, level=0.3, noise=0.1, mean=0.2) for by_task in (named, cells)
    )
    assert found.totals == pytest.approx(expected.totals, abs=1e-9)
    assert found.squares == pytest.approx(expected.squares, abs=1e-9)
