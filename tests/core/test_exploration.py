"""The bonus: `alpha / n` with probability `rate`, else nothing; one draw per unseen action."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned.core import ExplorationBonus
from seasoned.errors import InputError

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)


@PROPERTY
@given(st.floats(0, 100), st.floats(0, 1), st.integers(0, 20), st.integers(1, 1000), st.integers(0, 2**32 - 1))
def test_every_bonus_is_alpha_over_n_or_nothing(alpha, rate, n_unseen, n_neighbors, seed):
    drawn = ExplorationBonus(alpha, rate).draw(n_unseen, n_neighbors=n_neighbors, rng=np.random.default_rng(seed))
    assert drawn.shape == (n_unseen,)
    assert set(drawn.tolist()) <= {0.0, alpha / n_neighbors}


@PROPERTY
@given(st.floats(0.1, 100), st.integers(1, 20), st.integers(1, 1000), st.integers(0, 2**32 - 1))
def test_a_rate_of_1_always_fires_and_of_0_never(alpha, n_unseen, n_neighbors, seed):
    def draw(rate):
        bonus = ExplorationBonus(alpha, rate)
        return bonus.draw(n_unseen, n_neighbors=n_neighbors, rng=np.random.default_rng(seed)).tolist()

    assert draw(1.0) == [alpha / n_neighbors] * n_unseen
    assert draw(0.0) == [0.0] * n_unseen


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.65])
def test_it_fires_at_its_rate(rate):
    n = 20_000
    drawn = ExplorationBonus(1.0, rate).draw(n, n_neighbors=1, rng=np.random.default_rng(7))
    assert drawn.mean() == pytest.approx(rate, abs=4 * math.sqrt(rate * (1 - rate) / n))


def test_actions_are_drawn_one_by_one():
    drawn = ExplorationBonus(1.0, 0.5).draw(200, n_neighbors=1, rng=np.random.default_rng(0))
    assert 0 < drawn.sum() < 200


def test_without_neighbours_the_bonus_is_alpha():
    assert ExplorationBonus(5.0, 1.0).draw(2, n_neighbors=0, rng=np.random.default_rng(0)).tolist() == [5.0, 5.0]


def test_the_same_seed_draws_the_same():
    bonus = ExplorationBonus(1.0, 0.5)
    first, second = (bonus.draw(50, n_neighbors=3, rng=np.random.default_rng(4)).tolist() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("alpha", "rate", "seen"),
    [
        (-0.1, 0.5, "alpha = -0.1"),
        (math.inf, 0.5, "alpha = inf"),
        (math.nan, 0.5, "alpha = nan"),
        (1.0, -0.1, "rate = -0.1"),
        (1.0, 1.1, "rate = 1.1"),
        (1.0, math.nan, "rate = nan"),
    ],
)
def test_a_bad_setting_is_refused(alpha, rate, seen):
    with pytest.raises(InputError) as caught:
        ExplorationBonus(alpha, rate)
    assert caught.value.seen == seen
    assert caught.value.rule
    assert caught.value.next_step
