"""Intervals, the spread and tests of two groups: known quantiles, simulated coverage, invariances."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seasoned.core import mean_interval, robust_moments, robust_spread, t_quantile
from seasoned.core.statistics import difference_interval, holm, permutation_p_value
from seasoned.errors import InputError

# ------------------------------------------------------------------------------- Student's t

PROBABILITIES = (0.9, 0.95, 0.975, 0.995)
# Printed tables of Student's t, by degrees of freedom.
QUANTILES = {
    1: (3.0777, 6.3138, 12.7062, 63.6567),
    2: (1.8856, 2.9200, 4.3027, 9.9248),
    5: (1.4759, 2.0150, 2.5706, 4.0321),
    9: (1.3830, 1.8331, 2.2622, 3.2498),
    30: (1.3104, 1.6973, 2.0423, 2.7500),
    100: (1.2901, 1.6602, 1.9840, 2.6259),
}


@pytest.mark.parametrize("degrees", QUANTILES)
def test_t_quantiles_match_the_tables(degrees):
    quantiles = [t_quantile(p, degrees) for p in PROBABILITIES]
    assert quantiles == pytest.approx(QUANTILES[degrees], abs=6e-5)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 12, 30])
@pytest.mark.parametrize("probability", [0.01, 0.3, 0.6, 0.95, 0.995])
def test_t_density_integrates_to_the_probability(probability, degrees):
    """From the density, by Simpson's rule in the angle `theta = atan(t / sqrt(degrees))`."""
    log_c = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(math.pi) / 2
    end, steps = math.atan(t_quantile(probability, degrees) / math.sqrt(degrees)), 400
    density = [math.exp(log_c) * math.cos(end * i / steps) ** (degrees - 1) for i in range(steps + 1)]
    area = (density[0] + density[-1] + 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2])) * end / steps / 3
    assert 0.5 + area == pytest.approx(probability, abs=1e-9)


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.integers(1, 60))
def test_t_quantiles_are_symmetric_and_increasing(p, q, degrees):
    assert t_quantile(p, degrees) == pytest.approx(-t_quantile(1 - p, degrees), rel=1e-6, abs=1e-6)
    if p < q - 1e-9:
        assert t_quantile(p, degrees) < t_quantile(q, degrees)


def test_t_median_is_zero():
    assert t_quantile(0.5, 4) == pytest.approx(0.0, abs=1e-12)


def test_t_quantile_of_many_degrees_is_normal():
    assert t_quantile(0.975, 100_000) == pytest.approx(statistics.NormalDist().inv_cdf(0.975), abs=1e-4)


@pytest.mark.parametrize(
    ("probability", "degrees"), [(0.0, 5), (1.0, 5), (-0.1, 5), (math.nan, 5), (0.975, 0), (0.975, -1)]
)
def test_undefined_quantile_is_refused(probability, degrees):
    with pytest.raises(InputError) as caught:
        t_quantile(probability, degrees)
    assert str(probability) in caught.value.seen
    assert str(degrees) in caught.value.seen
    assert caught.value.rule
    assert caught.value.next_step


# ------------------------------------------------------------------------------- the mean of independent runs

small = st.lists(st.floats(-100, 100), min_size=2, max_size=9)
large = st.lists(st.floats(-100, 100), min_size=10, max_size=20)


def interval(values, **arguments):
    return mean_interval(values, **{"resamples": 500, **arguments})


@given(small)
def test_interval_of_fewer_than_ten_values_is_students(values):
    students = interval(values)
    half = t_quantile(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    assert (students.method, students.n, students.level) == ("t", len(values), 0.95)
    assert students.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert students.low == pytest.approx(statistics.fmean(values) - half, abs=1e-6)
    assert students.high == pytest.approx(statistics.fmean(values) + half, abs=1e-6)


@given(large, st.integers(0, 1000))
def test_interval_of_ten_or_more_values_is_a_bootstrap_within_the_data(values, seed):
    bootstrap = interval(values, seed=seed)
    assert (bootstrap.method, bootstrap.n) == ("bootstrap", len(values))
    # A resampled mean never leaves the data.
    assert min(values) - 1e-9 <= bootstrap.low <= bootstrap.high <= max(values) + 1e-9


@given(st.one_of(small, large), st.integers(0, 1000))
def test_equal_seeds_give_equal_intervals(values, seed):
    assert interval(values, seed=seed) == interval(values, seed=seed)


def test_another_seed_gives_another_bootstrap_interval():
    values = [float(i * i % 17) for i in range(12)]
    assert interval(values, seed=0) != interval(values, seed=1)


@given(st.one_of(small, large), st.floats(0.1, 10), st.floats(-100, 100))
def test_interval_shifts_and_scales_with_the_values(values, scale, shift):
    before, after = interval(values), interval([scale * v + shift for v in values])
    for name in ("mean", "low", "high"):
        assert getattr(after, name) == pytest.approx(scale * getattr(before, name) + shift, abs=1e-6)


@given(st.one_of(small, large))
def test_higher_level_gives_a_wider_interval(values):
    narrow, wide = interval(values, level=0.8), interval(values, level=0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@pytest.mark.parametrize("n", [2, 9, 10, 30])
def test_interval_of_equal_values_has_width_zero(n):
    result = interval([3.25] * n)
    assert (result.mean, result.low, result.high) == (3.25, 3.25, 3.25)


@pytest.mark.parametrize("n", [5, 10, 20])
def test_mean_interval_has_nominal_coverage(n):
    """400 samples: the share that covers has a standard error of 1.1 %, the band is three of them."""
    rng = np.random.default_rng(20)
    samples = rng.normal(1.5, 2.0, size=(400, n))
    intervals = [mean_interval(sample, resamples=2000, seed=i) for i, sample in enumerate(samples)]
    coverage = statistics.fmean(i.low <= 1.5 <= i.high for i in intervals)
    assert 0.917 <= coverage <= 0.983


def test_the_bootstrap_is_wider_than_plain_percentiles():
    """Plain percentiles undercover at small n; the expansion moves them outwards."""
    values = np.random.default_rng(3).normal(size=10)
    means = values[np.random.default_rng(9).integers(0, 10, size=(20_000, 10))].mean(axis=1)
    plain = np.quantile(means, [0.025, 0.975])
    bootstrap = mean_interval(values)
    assert bootstrap.low < plain[0]
    assert bootstrap.high > plain[1]
    # Hesterberg's factor: the half widths grow from z * sqrt((n-1)/n) to t standard errors, by 1.217 at n = 10.
    assert (bootstrap.high - bootstrap.low) / (plain[1] - plain[0]) == pytest.approx(
        2.2622 / 1.96 * math.sqrt(10 / 9), rel=0.05
    )


@pytest.mark.parametrize(
    "values",
    [[], [1.0], 1.0, [[1.0, 2.0]], [1.0, math.nan], [1.0, math.inf]],
    ids=["none", "one", "scalar", "2d", "nan", "inf"],
)
def test_invalid_values_are_refused(values):
    with pytest.raises(InputError) as caught:
        mean_interval(values)
    assert "shape" in caught.value.seen
    assert "two or more" in caught.value.rule
    assert caught.value.next_step


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, math.nan])
def test_a_bad_level_is_refused(level):
    with pytest.raises(InputError, match="level must be"):
        mean_interval([1.0, 2.0], level=level)


def test_interval_is_formatted_as_one_line():
    assert str(mean_interval([1.0, 2.0, 3.0])) == "+2.000 [-0.484, +4.484] (n=3, 95% t)"


# ------------------------------------------------------------------------------- the robust spread

histograms = st.dictionaries(st.integers(-50, 50), st.integers(1, 40), min_size=1, max_size=12).map(
    lambda h: ([float(v) for v in h], list(h.values()))
)


@given(histograms, st.floats(0.01, 100), st.sampled_from([1, -1]))
@example(([0.0, 1.0, 2.0], [10, 980, 10]), 1.0, -1)
@example(([float(v * v) for v in range(100)], [1] * 100), 1.0, -1)
def test_the_spread_scales_with_the_values(histogram, size, sign):
    values, counts = histogram
    scale, expected = sign * size, size * robust_spread(values, counts)
    assert robust_spread([scale * v for v in values], counts) == pytest.approx(expected, rel=1e-9)


@given(histograms, st.integers(-1000, 1000))
def test_spread_is_invariant_to_a_common_shift(histogram, shift):
    values, counts = histogram
    assert robust_spread([v + shift for v in values], counts) == pytest.approx(robust_spread(values, counts), rel=1e-9)


@given(histograms)
def test_spread_is_zero_only_for_equal_values(histogram):
    values, counts = histogram
    assert (robust_spread(values, counts) == 0.0) == (len(values) == 1)


@given(histograms, st.randoms(use_true_random=False))
def test_spread_is_independent_of_the_order_of_values(histogram, random):
    rows = list(zip(*histogram, strict=True))
    random.shuffle(rows)
    values, counts = zip(*rows, strict=True)
    assert robust_spread(values, counts) == pytest.approx(robust_spread(*histogram), rel=1e-12)


@given(histograms)
def test_spread_with_counts_equals_that_of_repeated_values(histogram):
    values, counts = histogram
    each = [v for v, n in zip(values, counts, strict=True) for _ in range(n)]
    assert robust_spread(each, [1] * len(each)) == pytest.approx(robust_spread(values, counts), rel=1e-9)


@given(histograms)
def test_spread_is_at_most_the_standard_deviation(histogram):
    values, counts = histogram
    each = [v for v, n in zip(values, counts, strict=True) for _ in range(n)]
    assert robust_spread(values, counts) <= statistics.pstdev(each) + 1e-9


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=50, unique=True))
def test_spread_without_tails_is_the_standard_deviation(values):
    # At most 50 equally frequent values: each is more than 1 % of all, so that nothing is clipped.
    assert robust_spread(values, [1] * len(values)) == pytest.approx(statistics.pstdev(values))


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=999),
        np.random.default_rng(1).uniform(size=999),
        np.arange(999) % 2,
        np.arange(999) % 20 == 0,
    ],
    ids=["normal", "uniform", "even odds", "one in twenty"],
)
@pytest.mark.parametrize("outlier", [1e6, -1e6])
def test_one_outlier_in_a_thousand_changes_the_spread_little(values, outlier):
    values = [float(v) for v in values]
    before = robust_spread(values, [1] * len(values))
    after = robust_spread([*values, outlier], [1] * (len(values) + 1))
    assert before / 1.5 < after < before * 1.5
    assert statistics.pstdev([*values, outlier]) > 1000 * before


def test_spread_of_rare_rewards_is_positive():
    # Fewer than 1 % differ: clipping would leave nothing, and everything would look equal.
    assert robust_spread([0.0, 1.0], [999, 1]) == pytest.approx(math.sqrt(0.001 * 0.999))


def test_spread_of_an_empty_histogram_is_zero():
    assert robust_spread([], []) == 0.0
    assert robust_spread([1.0, 2.0], [0, 0]) == 0.0


# ------------------------------------------------------------------------------- two groups


def test_difference_interval_equals_a_hand_computed_welch_interval():
    # Means 3 and 1; 4/3 + 5/24 = 37/24; degrees (37/24)^2 / ((4/3)^2/2 + (5/24)^2/3) = 2.63, rounded down to 2.
    difference = difference_interval([1.0, 3.0, 5.0], [0.0, 0.5, 1.5, 2.0])
    variance = 4 / 3 + np.var([0.0, 0.5, 1.5, 2.0], ddof=1) / 4
    assert difference.mean == 2.0
    assert difference.n == 3
    assert difference.high - difference.mean == pytest.approx(4.302653 * math.sqrt(variance))  # t(0.975, 2 degrees)
    assert difference.low + difference.high == pytest.approx(4.0)


def test_difference_interval_has_nominal_coverage():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        difference = difference_interval(rng.normal(1.0, 3.0, 6), rng.normal(0.0, 1.0, 15))
        covered += difference.low <= 1.0 <= difference.high
    assert covered >= 368  # 380 expected, one in 200 fair runs is below


def test_difference_interval_of_equal_groups_is_zero():
    difference = difference_interval([2.0, 2.0], [2.0, 2.0])
    assert (difference.low, difference.mean, difference.high) == (0.0, 0.0, 0.0)


def test_permutation_p_value_is_the_share_of_divisions_as_extreme():
    first, second = [3.0, 4.0, 9.0], [0.0, 1.0, 2.0, 2.5]
    pooled = first + second
    seen = abs(np.mean(first) - np.mean(second))
    divisions = list(itertools.combinations(range(7), 3))
    as_far = sum(
        abs(np.mean([pooled[i] for i in chosen]) - np.mean([pooled[i] for i in range(7) if i not in chosen]))
        >= seen - 1e-12
        for chosen in divisions
    )
    assert permutation_p_value(first, second) == pytest.approx(as_far / len(divisions), abs=0.01)


def test_permutation_p_value_keeps_its_level():
    rng = np.random.default_rng(2)
    p = [
        permutation_p_value(x[:12], x[12:], permutations=199, seed=i)
        for i, x in enumerate(rng.exponential(size=(600, 36)))
    ]
    for level, most in ((0.05, 44), (0.2, 146)):  # expected 30 and 120, plus 2.6 standard deviations
        assert sum(value <= level for value in p) <= most
    assert min(p) >= 1 / 200


def test_permutation_test_detects_a_shift():
    rng = np.random.default_rng(3)
    p_values = [
        permutation_p_value(rng.normal(1, 1, 20), rng.normal(0, 1, 20), permutations=499, seed=i) for i in range(60)
    ]
    assert sum(p <= 0.05 for p in p_values) >= 42  # the power is 0.87


def test_p_value_of_equal_values_is_one():
    assert permutation_p_value([1.0] * 10, [1.0] * 10) == 1.0


def test_p_value_is_invariant_to_sign_and_scale():
    x, y = [0.0, 1.0, 5.0], [2.0, 8.0, 9.0, 11.0]
    assert permutation_p_value(x, y, seed=4) == permutation_p_value([-v for v in x], [-v for v in y], seed=4)
    assert permutation_p_value(x, y, seed=4) == permutation_p_value(
        [v * 1e90 for v in x], [v * 1e90 for v in y], seed=4
    )


def test_holm_equals_hand_computed_values():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_like_its_step_down_definition(p):
    """The definition: in ascending order, stop at the first p above level / (m - i)."""
    level = 0.05
    rejected = set()
    for i, at in enumerate(sorted(range(len(p)), key=lambda j: p[j])):
        if p[at] * (len(p) - i) > level:
            break
        rejected.add(at)
    assert {i for i, adjusted in enumerate(holm(p)) if adjusted <= level} == rejected


@pytest.mark.parametrize(
    "call",
    [
        lambda: difference_interval([1.0], [1.0, 2.0]),
        lambda: difference_interval([1.0, math.nan], [1.0, 2.0]),
        lambda: difference_interval([1.0, 2.0], [1.0, 2.0], level=0.0),
        lambda: permutation_p_value([1.0, 2.0], []),
        lambda: permutation_p_value([1.0, 2.0], [1.0, 2.0], seed=-1),
        lambda: permutation_p_value([1.0, 2.0], [1.0, 2.0], permutations=0),
        lambda: holm([1.5]),
        lambda: holm([math.nan]),
        lambda: holm([[0.5]]),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.seen and caught.value.rule and caught.value.next_step


# ------------------------------------------------------------------------------- The unit of recent returns


@given(
    n_bulk=st.integers(20, 200),
    share=st.floats(0.2, 0.8),
    n_absurd=st.integers(1, 20),
    sizes=st.lists(st.floats(1e3, 1e100), min_size=1, max_size=3),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_absurd_values_at_one_end_up_to_a_tenth_leave_the_unit_of_the_others(n_bulk, share, n_absurd, sizes, sign):
    bulk = [float(i < share * n_bulk) for i in range(n_bulk)]
    absurd = [sign * sizes[i % len(sizes)] for i in range(min(n_absurd, (n_bulk + 1) // 10))]
    _, alone = robust_moments(bulk)
    mean, unit = robust_moments([*bulk, *absurd])
    assert -2.0 <= mean <= 2.0
    assert alone / 2 <= unit <= 20.0 * alone


@given(n=st.integers(20, 256), n_rare=st.integers(1, 12), size=st.floats(1e-3, 1e6))
def test_successes_that_are_rare_among_equal_values_set_the_unit(n, n_rare, size):
    values = [0.0] * n + [size] * n_rare
    assert robust_moments(values)[1] >= size * math.sqrt(n_rare / len(values)) / 3


@given(st.lists(st.floats(-100, 100), max_size=60), st.integers(-30, 30))
def test_unit_of_returns_is_in_the_unit_of_the_rewards(values, power):
    mean, unit = robust_moments(values)
    assert robust_moments([2.0**power * value for value in values]) == (2.0**power * mean, 2.0**power * unit)
