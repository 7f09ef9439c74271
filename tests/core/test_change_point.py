"""Fading equals the posterior of its change point by brute force, forgets what no longer fits, and little else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.core import Cells, LatestReturns, ReturnLabels, faded
from seasoned.errors import InputError


def summed(states, actions, returns, older=()):
    """Cells of all steps: the latest ones, and older ones as (state, action, return)."""
    steps = [*older, *zip(states, actions, returns, strict=True)]
    pairs = sorted({(s, a) for s, a, _ in steps})
    of = {pair: np.array([g for s, a, g in steps if (s, a) == pair]) for pair in pairs}
    n = np.array([float(len(of[pair])) for pair in pairs])
    totals = np.array([of[pair].sum() for pair in pairs])
    squares = np.array([(of[pair] ** 2).sum() for pair in pairs])
    return Cells(np.array([s for s, _ in pairs]), np.array([a for _, a in pairs]), n, n, totals, squares)


def latest(states, actions, returns):
    return LatestReturns(np.array(states), np.array(actions), np.array(returns, dtype=float))


def log_density(y, eta):
    """Of returns of one action in one segment: a common value from N(0, 1), and noise."""
    covariance = np.ones((len(y), len(y))) + eta * np.eye(len(y))
    return -0.5 * (len(y) * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))


@given(st.integers(0, 10**6), st.integers(4, 12), st.sampled_from([0.001, 0.01, 0.04]))
def test_a_step_counts_with_the_probability_that_nothing_changed_since(seed, n_steps, rate):
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, 3, n_steps)
    returns = rng.normal(size=n_steps) + 2.0 * (np.arange(n_steps) > rng.integers(0, n_steps))
    mean, unit = 0.5, 1.3
    y = np.clip((returns - mean) / unit, -2.0, 2.0)
    eta = {}
    for action in set(actions.tolist()):
        differences = np.diff(y[actions == action])
        eta[action] = (2.0 + (differences**2 / 2.0).sum()) / (4.0 + len(differences))

    def joint(change):
        segments = (slice(0, change), slice(change, None))
        return sum(
            log_density(part, eta[action])
            for segment in segments
            for action in eta
            if len(part := y[segment][actions[segment] == action])
        )

    changes = range(1, n_steps - 2)
    logs = np.array([np.log1p(-rate * (n_steps - 2)) + joint(0), *(np.log(rate) + joint(c) for c in changes)])
    probabilities = np.exp(logs - logs.max())
    probabilities /= probabilities.sum()
    counted = np.array([probabilities[0] + probabilities[1:][np.array(changes) <= t].sum() for t in range(n_steps)])

    cells = faded(
        summed([0] * n_steps, actions, returns),
        latest([0] * n_steps, actions, returns),
        rate=rate,
        mean=mean,
        unit=unit,
    )
    expected = [counted[actions == action].sum() for action in cells.actions]
    assert cells.weights == pytest.approx(np.array(expected))
    assert cells.totals == pytest.approx(
        np.array([counted[actions == a] @ returns[actions == a] for a in cells.actions])
    )


@given(st.integers(0, 10**6), st.sampled_from([1.0, 1e-100, 1e6, 1e100]))
def test_sums_stay_finite_and_no_weight_grows(seed, size):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    states, actions = rng.integers(0, 3, n), rng.integers(0, 3, n)
    returns = size * np.where(rng.random(n) < 0.2, rng.normal(size=n), rng.integers(0, 2, n))
    older = [(int(s), int(a), float(size * rng.normal())) for s, a in rng.integers(0, 3, (int(rng.integers(0, 9)), 2))]
    cells = summed(states, actions, returns, older)
    after = faded(cells, latest(states, actions, returns), rate=0.002, mean=0.0, unit=size)
    assert (after.weights >= 0.0).all() and (after.weights <= cells.weights * (1.0 + 1e-12)).all()
    assert np.isfinite(after.totals).all() and np.isfinite(after.squares).all() and (after.squares >= 0.0).all()


def test_older_steps_that_contradict_the_latest_are_forgotten():
    older = [(0, 0, 1.0)] * 500 + [(0, 1, 0.0)] * 500
    returns = [0.0] * 5
    cells = faded(
        summed([0] * 5, [0] * 5, returns, older), latest([0] * 5, [0] * 5, returns), rate=0.002, mean=0.5, unit=0.5
    )
    assert cells.weights.tolist() == pytest.approx([5.0, 0.0], abs=0.1)  # of the other action too
    assert cells.totals.tolist() == pytest.approx([0.0, 0.0], abs=0.1)


@pytest.mark.parametrize("outliers", [[0.0], [-1e6], [1e100]])
def test_one_odd_return_is_not_taken_for_a_change(outliers):
    returns = [1.0] * 20 + outliers
    zeros = [0] * len(returns)
    cells = summed(zeros, zeros, returns)
    assert faded(cells, latest(zeros, zeros, returns), rate=0.002, mean=0.5, unit=0.5).weights[0] > 0.8 * len(returns)


def test_state_that_does_not_change_keeps_nearly_all_its_weight():
    kept = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        actions, returns = rng.integers(0, 2, 60), rng.normal(size=60)
        cells = summed([0] * 60, actions, returns)
        kept.append(faded(cells, latest([0] * 60, actions, returns), rate=0.002, mean=0.0, unit=1.0).weights.sum() / 60)
    assert np.mean(kept) > 0.9


def test_another_state_and_a_rate_of_zero_keep_their_sums():
    returns = [1.0] * 20 + [0.0] * 5
    states, zeros = [0] * 25, [0] * 25
    cells = summed(states, zeros, returns, [(1, 0, 1.0)] * 30)
    after = faded(cells, latest(states, zeros, returns), rate=0.002, mean=0.5, unit=0.5)
    assert after.weights.tolist() == pytest.approx([5.0, 30.0], abs=0.1)
    still = faded(cells, latest(states, zeros, returns), rate=0.0, mean=0.5, unit=0.5)
    assert (still.weights == cells.weights).all() and (still.totals == cells.totals).all()


def test_labels_on_untaken_actions_fade_with_their_step_and_move_nothing():
    returns = [1.0] * 10 + [0.0] * 5
    zeros, steps = [0] * 15, np.arange(15)
    alone = faded(summed(zeros, zeros, returns), latest(zeros, zeros, returns), rate=0.002, mean=0.5, unit=0.5)
    told = summed(zeros, zeros, returns, [(0, action, 0.0) for action in range(1, 100) for _ in steps])
    none = np.zeros(99 * 15)
    labels = ReturnLabels(np.repeat(steps, 99), np.tile(np.arange(1, 100), 15), 1.0 + none, none, none)
    after = faded(
        told, dataclasses.replace(latest(zeros, zeros, returns), labels=labels), rate=0.002, mean=0.5, unit=0.5
    )
    assert after.weights.tolist() == pytest.approx([float(alone.weights[0])] * 100, abs=1e-12)
    assert after.totals.tolist() == pytest.approx([float(alone.totals[0])] + [0.0] * 99, abs=1e-12)


def test_labels_that_weigh_more_fade_like_their_steps():
    returns = [1.0] * 10 + [0.0] * 5
    zeros, steps = [0] * 15, np.arange(15)
    alone = faded(summed(zeros, zeros, returns), latest(zeros, zeros, returns), rate=0.002, mean=0.5, unit=0.5)
    told = summed(zeros, zeros, returns, [(0, 1, 0.5) for _ in range(45)])
    each = np.full(15, 3.0)
    labels = ReturnLabels(steps, np.ones(15, int), each, 0.5 * each, 0.25 * each)
    after = faded(
        told, dataclasses.replace(latest(zeros, zeros, returns), labels=labels), rate=0.002, mean=0.5, unit=0.5
    )
    weight = float(alone.weights[0])
    for found, of_one in ((after.weights, weight), (after.totals, 0.5 * weight), (after.squares, 0.25 * weight)):
        assert found[1] == pytest.approx(3.0 * of_one, abs=1e-9)


@pytest.mark.parametrize("given_", [{"rate": -0.1}, {"rate": 0.6}, {"rate": float("nan")}, {"unit": 0.0}])
def test_rate_or_unit_out_of_range_is_refused(given_):
    cells = summed([0], [0], [1.0])
    with pytest.raises(InputError):
        faded(cells, latest([0], [0], [1.0]), **{"rate": 0.002, "mean": 0.0, "unit": 1.0} | given_)
