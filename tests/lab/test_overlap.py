"""The overlap test: mean ratios are 1 with full support, and a log without it is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seasoned.core import Interval
from seasoned.core.off_policy import sequence_value
from seasoned.core.statistics import t_quantile
from seasoned.errors import InputError
from seasoned.lab.diagnosis.overlap import check_support, mean_ratio, mean_weight, untaken_share, widen_interval


def log(seed, *, behavior, target, n=60, steps=2):
    """Return ratios of two actions; the log played the first with probability `behavior`."""
    first = np.random.default_rng(seed).random((n, steps)) < behavior
    return np.where(first, target / behavior, (1 - target) / (1 - behavior)).tolist()


def refused(ratios, **options):
    try:
        check_support(ratios, **{"whole_episodes": True, **options})
    except InputError:
        return True
    return False


def test_mean_ratio_is_over_steps_and_its_interval_over_episodes():
    ratios = [[0.5, 2.0, 1.5], [1.0], [0.25, 0.75], [3.0]]
    interval = mean_ratio(ratios)
    assert interval.mean == pytest.approx(np.mean([ratio for one in ratios for ratio in one]))
    sums = [sum(one) - len(one) for one in ratios]
    half = t_quantile(0.975, 3) * np.std(sums, ddof=1) / 2 / np.mean([len(one) for one in ratios])
    assert (interval.high - interval.mean, interval.mean - interval.low) == pytest.approx((half, half))


def test_repeated_steps_of_an_episode_do_not_narrow_the_interval():
    """Ten equal steps of an episode give the interval of one."""
    once, often = ([[ratio] * steps for ratio in (0.5, 1.5, 0.5, 1.5)] for steps in (1, 10))
    a, b = mean_ratio(once), mean_ratio(often)
    assert (a.low, a.high) == pytest.approx((b.low, b.high))


def test_mean_weight_is_the_mean_of_products():
    ratios = [[0.5, 2.0, 1.5], [1.0], [0.25, 0.75]]
    assert mean_weight(ratios).mean == pytest.approx(np.mean([math.prod(one) for one in ratios]))


def test_log_with_full_support_is_seldom_refused():
    assert sum(refused(log(seed, behavior=0.5, target=0.65)) for seed in range(200)) <= 4


@pytest.mark.parametrize("whole_episodes", [True, False])
def test_log_without_an_action_is_refused_with_seen_rule_and_next_step(whole_episodes):
    lacking = log(0, behavior=1 - 1e-9, target=0.4)
    with pytest.raises(InputError) as caught:
        check_support(lacking, whole_episodes=whole_episodes)
    assert caught.value.seen.startswith("a mean importance ratio of 0.4 [0.4, 0.4] over 60 episodes")
    assert "[0.8, 1.25]" in caught.value.rule
    assert "[0.95, 1.05]" in caught.value.rule
    assert "exploration" in caught.value.next_step
    assert "nearer" in caught.value.next_step


def test_small_but_certain_lack_of_support_is_refused():
    assert refused([[0.9]] * 30)
    assert not refused([[0.96]] * 30)
    assert refused([[1.1]] * 30)


def test_lack_of_support_multiplies_over_the_steps_of_episodes():
    ratios = [[0.97] * 20] * 30
    assert not refused(ratios, whole_episodes=False)
    with pytest.raises(InputError, match=r"whole episodes of 0\.544"):
        check_support(ratios, whole_episodes=True)


def test_overflowing_products_are_refused():
    assert refused([[1.04] * 40_000] * 4 + [[1.0] * 40_000] * 4)


@pytest.mark.parametrize(
    ("n", "steps", "behavior", "target"),
    [(60, 1, 0.97, 0.8), (60, 2, 0.95, 0.6), (60, 2, 0.5, 0.65), (200, 8, 0.97, 0.8), (200, 8, 0.5, 0.6)],
)
def test_accepted_intervals_cover_the_true_value(n, steps, behavior, target):
    """Each step earns 1 with the first action, so the true value is `steps * target`."""
    printed = covered = 0
    for seed in range(80):
        ratios = log(seed, behavior=behavior, target=target, n=n, steps=steps)
        earned = np.isclose(ratios, target / behavior).astype(float)
        try:
            interval = sequence_value(earned, ratios, resamples=300, seed=seed, min_effective=10).value
            check_support(ratios, whole_episodes=True)
        except InputError:
            continue
        printed += 1
        covered += interval.low <= steps * target <= interval.high
    assert printed >= 15
    assert covered >= 0.9 * printed


def test_untaken_share_of_episodes_counts_each_episode_once():
    """The new policy takes an action that the log lacks with 0.1 at each of three steps; else both are equal."""
    n_sing = 1 - 0.9**3
    assert untaken_share([[0.9] * 3] * 5, [[0.1] * 3] * 5, whole_episodes=True) == pytest.approx(n_sing)
    assert untaken_share([[0.9] * 3] * 5, [[0.1] * 3] * 5, whole_episodes=False) == pytest.approx(0.1)
    assert untaken_share([[1.0], [1.0, 1.0]], [[0.0], [0.0, 0.0]], whole_episodes=True) == 0.0
    assert untaken_share([[9.0, 9.0]], [[0.5, 0.5]], whole_episodes=True) == 1.0


def test_widened_interval_contains_the_original():
    interval = Interval(0.5, 0.4, 0.6, 30, 0.95, "bootstrap")
    assert widen_interval(interval, 0.0, -9.0, 9.0) == interval
    wide = widen_interval(interval, 0.1, 0.0, 2.0)
    assert (wide.mean, wide.low, wide.high) == (0.5, pytest.approx(0.36), pytest.approx(0.74))
    assert widen_interval(interval, 0.1, 0.45, 0.5) == interval
