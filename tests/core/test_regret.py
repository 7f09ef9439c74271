"""Regret of the exploration rules on a bandit with known means, measured on the estimator itself.

Regret of T rounds that grows like T^e has `R(T) / R(T/4) = 4^e`; sublinear means e < 1. Means over seeded runs.
"""

from __future__ import annotations

import numpy as np
import pytest

from seasoned.core import UCB, AdvantageEstimator, Sums, Thompson, kl_objective, modulate, robust_spread, sample_index

MEANS = np.array([0.3, 0.5, 0.7, 0.4, 0.1])
NOISE_SD = 0.5
BETA = 4.0
PRIOR = np.log(np.full(5, 0.2))


def run(estimator, seed, rounds, *, selection):
    """Regret after each round: in expected reward under argmax, in `E_p[A] - KL / beta` when sampling."""
    rng = np.random.default_rng(seed)
    counts, totals, squares = np.zeros(5), np.zeros(5), np.zeros(5)
    true = MEANS - MEANS.mean()
    best = kl_objective(np.exp(modulate(PRIOR, true, BETA)), true, PRIOR, BETA)
    lost = np.zeros(rounds)
    for t in range(rounds):
        tried = counts > 0
        means = totals[tried] / counts[tried]
        estimate = estimator.estimate(
            Sums(counts, counts, totals, squares),
            rows=np.where(tried, np.arange(5), -1),
            base_probs=np.full(5, 0.2),
            spread=robust_spread(means, np.ones(len(means))) if len(means) else 0.0,
            rng=rng,
        )
        if selection == "argmax":
            arm = int(np.argmax(estimate.advantages))
            lost[t] = MEANS.max() - MEANS[arm]
        else:
            p = np.exp(modulate(PRIOR, estimate.advantages, BETA))
            arm = sample_index(p, rng)
            lost[t] = best - kl_objective(p, true, PRIOR, BETA)
        reward = rng.normal(MEANS[arm], NOISE_SD)
        counts[arm] += 1
        totals[arm] += reward
        squares[arm] += reward**2
    return np.cumsum(lost)


def exponent(exploration, *, selection="argmax", scale="spread", seeds=10, rounds=800):
    estimator = AdvantageEstimator("base_policy", scale, None, exploration)
    regret = np.mean([run(estimator, seed, rounds, selection=selection) for seed in range(seeds)], axis=0)
    return float(np.log(regret[-1] / regret[rounds // 4 - 1]) / np.log(4.0)), float(regret[-1] / rounds)


@pytest.mark.parametrize("rule", [UCB(), pytest.param(Thompson(), marks=pytest.mark.slow)])
def test_argmax_with_a_bonus_has_sublinear_regret(rule):
    e, per_round = exponent(rule)
    assert e < 0.8
    assert per_round < 0.12  # choosing at random loses 0.3 a round


@pytest.mark.slow
def test_greedy_argmax_has_linear_regret():
    e, per_round = exponent(None)
    assert e > 0.95
    assert per_round > 0.1


def test_sampling_has_sublinear_regret_in_the_objective_of_the_closed_form():
    e, per_round = exponent(None, selection="sample", scale="none")
    assert e < 0.8
    assert per_round < 0.02
