"""Shrinkage: posterior means, from the model that they are posterior means of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned.core import AdvantageEstimator, Cells, Sums, additive_values, derived_kappa, noise_variance, shared_values
from seasoned.errors import InputError

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)


def summed(returns_by_cell, n_actions):
    """Sums of {(state, action): returns}, from the definition."""
    rows = [(s, a, len(g), len(g), math.fsum(g), math.fsum(x * x for x in g)) for (s, a), g in returns_by_cell.items()]
    states, actions, counts, weights, totals, squares = (np.array(column) for column in zip(*rows, strict=True))
    cells = Cells(states, actions, counts.astype(float), weights.astype(float), totals, squares)
    by_action = [np.bincount(actions, column, n_actions) for column in (counts, weights, totals, squares)]
    return Sums(*by_action, cells)


# ------------------------------------------------------------------------------- noise


def test_noise_is_the_mean_square_about_each_action_with_one_degree_of_prior():
    seen = summed({(0, 0): [1.0, 3.0], (0, 1): [5.0, 5.0, 8.0]}, 2)
    # squared deviations 2 and 6, degrees 1 and 2, and one more at the spread of values, 4
    assert noise_variance(seen, spread=2.0) == (pytest.approx((4.0 + 2.0 + 6.0) / 4), 4.0)


def test_what_differs_between_states_is_no_noise():
    seen = summed({(0, 0): [0.0, 0.0, 0.0], (1, 0): [9.0, 9.0, 9.0]}, 1)
    assert noise_variance(seen, spread=1.0)[0] == pytest.approx(1.0 / 5)


def test_without_repetition_noise_is_the_scatter_and_kappa_is_one_observation():
    seen = summed({(0, 0): [1.0], (0, 1): [4.0]}, 2)
    noise, degrees = noise_variance(seen, spread=3.0)
    assert (noise, degrees) == (9.0, 1.0)
    assert derived_kappa(noise, 3.0) == 1.0
    assert derived_kappa(0.0, 0.0) == 1.0


@pytest.mark.parametrize(("noise_sd", "scatter"), [(0.2, 1.0), (1.0, 1.0), (3.0, 1.0)])
def test_the_derived_kappa_is_the_ratio_of_variances_that_made_the_data(noise_sd, scatter):
    """Under values N(0, t2) and returns N(value, s2): s2 / t2, within the error of its estimate."""
    rng = np.random.default_rng(5)
    cells = {(0, a): (rng.normal(0, scatter) + rng.normal(0, noise_sd, 30)).tolist() for a in range(200)}
    noise, _ = noise_variance(summed(cells, 200), spread=scatter)
    assert derived_kappa(noise, scatter) == pytest.approx(noise_sd**2 / scatter**2, rel=0.08)


@pytest.mark.parametrize("noise_sd", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_no_other_constant_errs_less_than_the_derived_one(noise_sd, n):
    """It is the posterior mean's, which has the least mean squared error: below fixed constants on either side."""
    rng = np.random.default_rng(11)
    values = rng.normal(0.0, 1.0, 4000)
    means = values + rng.normal(0.0, noise_sd / math.sqrt(n), 4000)

    def error(kappa):
        return float(np.mean((means * n / (n + kappa) - values) ** 2))

    best = error(derived_kappa(noise_sd**2, 1.0))
    assert all(best < error(other) for other in (0.0, noise_sd**2 / 4 - 0.001, noise_sd**2 * 4))


# ------------------------------------------------------------------------------- levels

cell_tables = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), st.lists(st.floats(-10, 10), min_size=1, max_size=4), min_size=1
)


def relabelled(table):
    """States and actions numbered without gaps."""
    states = {s: i for i, s in enumerate(sorted({s for s, _ in table}))}
    actions = {a: i for i, a in enumerate(sorted({a for _, a in table}))}
    return {(states[s], actions[a]): returns for (s, a), returns in table.items()}, len(actions)


@PROPERTY
@given(cell_tables, st.floats(0.1, 5))
def test_additive_values_minimise_their_objective(table, kappa):
    """No perturbation of effects (levels at their optimum) does better."""
    table, n_actions = relabelled(table)
    seen = summed(table, n_actions)
    got = additive_values(seen, kappa, noise=1.0)
    n_states = 1 + max(s for s, _ in table)

    def objective(effects):
        total = kappa * float(effects @ effects)
        for state in range(n_states):
            cells = [(a, g) for (s, a), g in table.items() if s == state]
            weight = sum(len(g) for _, g in cells)
            level = math.fsum(math.fsum(g) - len(g) * effects[a] for a, g in cells) / weight
            total += math.fsum(len(g) * (math.fsum(g) / len(g) - level - effects[a]) ** 2 for a, g in cells)
        return total

    effects = got.q - got.q.mean()
    effects -= effects.mean()  # with kappa > 0 the best effects sum to 0
    best = objective(effects)
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert objective(effects + rng.normal(0, 0.1, n_actions)) >= best - 1e-9


@PROPERTY
@given(st.lists(st.lists(st.floats(-10, 10), min_size=1, max_size=5), min_size=1, max_size=5))
def test_at_one_state_without_shrinkage_values_are_plain_means(returns):
    seen = summed({(0, a): g for a, g in enumerate(returns)}, len(returns))
    means = [math.fsum(g) / len(g) for g in returns]
    np.testing.assert_allclose(additive_values(seen, 0.0, 1.0).q, means, atol=1e-9)
    np.testing.assert_allclose(shared_values(seen, 0.0, 1.0).q, means, atol=1e-9)


@PROPERTY
@given(cell_tables, st.floats(0.1, 5), st.floats(-100, 100), st.integers(0, 3))
def test_what_one_state_is_worth_does_not_move_differences_between_actions(table, kappa, raised, which):
    table, n_actions = relabelled(table)
    moved = {(s, a): [g + raised * (s == which) for g in returns] for (s, a), returns in table.items()}
    before, after = (additive_values(summed(t, n_actions), kappa, 1.0).q for t in (table, moved))
    np.testing.assert_allclose(after - after.mean(), before - before.mean(), atol=1e-7)


def test_an_action_never_taken_beside_another_has_no_effect():
    seen = summed({(0, 0): [5.0, 5.0], (1, 1): [1.0, 1.0]}, 2)
    q = additive_values(seen, 1.0, 1.0).q
    assert q[0] == pytest.approx(q[1])


def test_levels_need_sums_by_state():
    one = np.ones(1)
    with pytest.raises(InputError, match="by distinct state"):
        additive_values(Sums(one, one, one, one), 1.0, 1.0)


# ------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize("levels", ["shared", "own"])
@pytest.mark.parametrize("n", [1, 3, 10])
def test_intervals_hold_the_true_advantage_as_often_as_they_say(levels, n):
    """Values N(m, 1), returns N(value, 1): at least 0.93 of the 95 % intervals hold A = value - mean value."""
    rng = np.random.default_rng(n)
    estimator = AdvantageEstimator("base_policy", "none", kappa=None, levels=levels)
    held, asked = 0, 0
    for _ in range(300):
        values = rng.normal(5.0, 1.0, 4)
        cells = {(0, a): (v + rng.normal(0, 1.0, n)).tolist() for a, v in enumerate(values)}
        got = estimator.estimate(summed(cells, 4), rows=np.arange(4), base_probs=np.full(4, 0.25), spread=1.0, rng=rng)
        true = values - values.mean()
        held += int(((got.low <= true) & (true <= got.high)).sum())
        asked += 4
    assert held / asked > 0.93
