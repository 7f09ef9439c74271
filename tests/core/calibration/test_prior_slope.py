"""The slope of returns on the model's preference equals the posterior of its definition, and trusts no chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.core import (
    Cells,
    PriorMean,
    PriorSlope,
    ProcessEstimator,
    SimilarStates,
    prior_leads,
    prior_slope,
    t_quantile,
)
from seasoned.errors import InputError


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6))
def test_leads_add_up_to_0(weights):
    leads = prior_leads(np.array(weights) / sum(weights))
    assert leads.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_an_even_policy_has_no_leads(n):
    assert prior_leads(np.full(n, 1 / n)).tolist() == pytest.approx([0.0] * n)


@given(st.integers(0, 10**6), st.integers(8, 60), st.floats(-3, 3))
def test_slope_is_the_posterior_mean_less_one_deviation(seed, n, b):
    rng = np.random.default_rng(seed)
    x, e, mean, unit = rng.uniform(-0.5, 0.5, n), rng.uniform(0.0, 0.5, n), rng.normal(), rng.uniform(0.1, 5.0)
    y = mean + unit * (b * x - e + rng.normal(size=n))
    # A flat prior on c, b and d ~ N(0, 1), noise of variance 1: the posterior by its normal equations.
    tails = -(-n // 10)
    x_cut, e_cut = (np.clip(v, np.sort(v)[tails], np.sort(v)[n - 1 - tails]) for v in (x, e))
    design = np.column_stack([np.ones(n), x_cut, e_cut])
    precision = design.T @ design + np.diag([0.0, 1.0, 1.0])
    posterior = np.linalg.solve(precision, design.T @ np.clip((y - mean) / unit, -2.0, 2.0))
    deviation = np.sqrt(np.linalg.inv(precision)[1, 1])
    found = prior_slope(x, e, y, mean=mean, unit=unit)
    expected = posterior[1] - deviation
    if expected > 1e-9:
        assert found is not None
        assert (found.slope, found.deviation, found.mean_lead, found.n) == pytest.approx(
            (expected, deviation, x_cut.mean(), n)
        )
    elif expected < -1e-9:
        assert found is None


def test_equal_leads_and_few_steps_say_nothing():
    assert prior_slope([0.25] * 40, [0.3] * 40, [1.0, 0.0] * 20, mean=0.5, unit=0.5) is None
    assert prior_slope([], [], [], mean=0.0, unit=1.0) is None
    assert prior_slope([0.9, -0.9] * 3, [0.5] * 6, [1.0, 0.0] * 3, mean=0.5, unit=0.1) is None


def test_a_preference_that_misleads_is_not_turned_around():
    assert prior_slope([0.4, -0.4] * 50, [0.3] * 100, [0.0, 1.0] * 50, mean=0.5, unit=0.5) is None


@pytest.mark.parametrize("absurd", [1.7e308, -1.7e308, 1e9])
@pytest.mark.parametrize("lead", [0.4, 1.0, -1.0])
@pytest.mark.filterwarnings("error")
def test_one_absurd_step_moves_the_slope_little(absurd, lead):
    leads, expected, returns = [0.4, -0.4] * 50, [0.3] * 100, [1.0, 0.0] * 50
    plain = prior_slope(leads, expected, returns, mean=0.5, unit=0.5)
    moved = prior_slope([*leads, lead], [*expected, 1.0], [*returns, absurd], mean=0.5, unit=0.5)
    assert moved.slope == pytest.approx(plain.slope, abs=0.11)


@pytest.mark.parametrize("n", [1, 4, 10])
def test_up_to_a_tenth_of_the_steps_find_no_preference_where_the_others_have_none(n):
    leads, expected = [0.0] * 100 + [1.0, -1.0] * (n // 2) + [1.0] * (n % 2), [0.0] * (100 + n)
    returns = [0.0, 1.0] * 50 + [1.0, 0.0] * (n // 2) + [1.0] * (n % 2)
    assert prior_slope(leads, expected, returns, mean=0.5, unit=0.5) is None


@pytest.mark.parametrize(("sure", "unsure"), [(0.95, 0.55), (0.85, 0.6)])
def test_a_model_that_is_sure_where_tasks_are_easy_is_hardly_taken_for_right(sure, unsure):
    rng, slopes = np.random.default_rng(0), []
    for _ in range(100):
        easy = rng.random(256) < 0.5
        p = np.where(easy, sure, unsure)
        leads = np.where(rng.random(256) < p, p, 1.0 - p) - 0.5  # as the model chooses; it makes no difference
        returns = (rng.random(256) < np.where(easy, 0.75, 0.25)) * 1.0
        found = prior_slope(leads, p**2 + (1.0 - p) ** 2 - 0.5, returns, mean=0.5, unit=0.5)
        slopes.append(0.0 if found is None else found.slope)
    assert np.mean(slopes) < 0.35  # above 1.3 by a regression on the leads alone


def test_chance_is_seldom_taken_for_knowledge():
    rng, expected = np.random.default_rng(0), np.full(256, 0.2)
    found = [
        prior_slope(rng.uniform(-0.5, 0.5, 256), expected, rng.integers(0, 2, 256), mean=0.5, unit=0.5)
        for _ in range(1000)
    ]
    # One deviation of a normal is exceeded by chance in 0.159 of the cases, and by little.
    assert sum(one is not None for one in found) / 1000 == pytest.approx(0.159, abs=0.04)
    assert max(one.slope for one in found if one is not None) < 3.5 * 0.21


@pytest.mark.parametrize(
    ("leads", "expected", "returns", "unit"),
    [([0.1], [0.0], [1.0, 2.0], 1.0), ([0.1], [0.0, 0.0], [1.0], 1.0), ([0.1, 0.2], [0.0, 0.0], [1.0, 2.0], 0.0)],
)
def test_invalid_input_is_refused(leads, expected, returns, unit):
    with pytest.raises(InputError):
        prior_slope(leads, expected, returns, mean=0.0, unit=unit)


def test_mean_is_in_units_around_the_mean_lead_and_0_where_it_is_unknown():
    slope = PriorSlope(2.0, 0.5, 0.1, 100)
    elsewhere = {"candidates": np.array([0, -1]), "similarities": np.zeros(2)}
    prior = PriorMean.of(slope, np.array([0.7, 0.3]), np.array([0.4, np.nan]), **elsewhere)
    assert prior.of_candidates == pytest.approx([2.0 * (0.2 - 0.1), 2.0 * (-0.2 - 0.1)])
    assert prior.of_cells == pytest.approx([2.0 * (0.4 - 0.1), 0.0])
    half = t_quantile(0.975, 99) * 0.5  # of the advantage: the probability less the expected probability
    assert prior.half_widths == pytest.approx([half * abs(0.7 - 0.58), half * abs(0.3 - 0.58)])


def test_the_more_alike_a_state_the_more_its_leads_are_those_of_the_decision():
    prior = PriorMean.of(
        PriorSlope(2.0, 0.5, 0.1, 100),
        np.array([0.7, 0.3]),
        np.array([-0.5, -0.5, np.nan, -0.5]),
        candidates=np.array([0, 0, 1, -1]),
        similarities=np.array([1.0, 0.75, 0.5, 1.0]),
    )
    leads = [0.2, 0.75 * 0.2 - 0.25 * 0.5, -0.5 * 0.2 + 0.5 * 0.1, -0.5]
    assert prior.of_cells == pytest.approx([2.0 * (lead - 0.1) for lead in leads])


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4))
def test_the_process_estimates_what_returns_say_beyond_the_prior_mean(seed, n_states, n_actions):
    """`Q = mu + posterior of (returns - mu at their pairs)`, mu being the prior's mean."""
    rng = np.random.default_rng(seed)
    states, actions = (column.ravel() for column in np.meshgrid(range(n_states), range(n_actions)))
    n = rng.integers(1, 5, len(states)).astype(np.float64)
    means, unit = rng.normal(size=len(states)), rng.uniform(0.2, 2.0)
    vectors = rng.random((n_states + 1, 4)) + 0.01
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    kernel = vectors @ vectors.T
    near = SimilarStates(kernel[:-1, -1], kernel[:-1, :-1])
    pi = rng.dirichlet(np.ones(n_actions + 1))
    prior = PriorMean(rng.normal(size=n_actions + 1), rng.normal(size=len(states)), np.zeros(n_actions + 1))
    candidates = {"rows": np.array([*range(n_actions), -1]), "base_probs": pi, "mean": 0.3, "unit": unit}

    def cells(of_returns):
        return Cells(states, actions, n, n, n * of_returns, n * of_returns**2)

    found = ProcessEstimator().estimate(cells(means), near, **candidates, prior=prior)
    beyond = ProcessEstimator().estimate(cells(means - unit * prior.of_cells), near, **candidates)
    of_prior = prior.of_candidates - pi @ prior.of_candidates
    assert (found.preferred, beyond.preferred) == (pytest.approx(of_prior), None)
    assert found.estimated == pytest.approx(beyond.estimated + of_prior, abs=1e-6)
    assert found.values[:-1] == pytest.approx(  # what was seen, not what was expected
        [n[actions == a] @ means[actions == a] / n[actions == a].sum() for a in range(n_actions)]
    )


def test_much_evidence_at_the_state_itself_outweighs_the_prior():
    cells = Cells(*(np.array(column) for column in ([0, 0], [0, 1], *[[1e4, 1e4]] * 2, [0.0, 1e4], [0.0, 1e4])))
    prior = PriorMean.of(
        PriorSlope(3.0, 0.1, 0.0, 256),
        np.array([0.9, 0.1]),
        np.array([-0.5, 0.5]),  # another model's
        candidates=np.array([0, 1]),
        similarities=np.ones(2),
    )
    estimate = ProcessEstimator().estimate(
        cells,
        SimilarStates(np.ones(1), np.eye(1)),
        rows=np.array([0, 1]),
        base_probs=np.array([0.9, 0.1]),
        mean=0.5,
        unit=0.5,
        prior=prior,
    )
    assert estimate.estimated[1] - estimate.estimated[0] == pytest.approx(2.0, abs=0.01)  # 1 less 0, in units of 0.5
