"""Two groups compared: an interval that covers, a test that is exact, an adjustment for many."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned.core.group_comparison import difference_interval, holm, permutation_p_value
from seasoned.errors import InputError

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)


def test_welch_by_hand():
    # Means 3 and 1; 4/3 + 5/24 = 37/24; degrees (37/24)^2 / ((4/3)^2/2 + (5/24)^2/3) = 2.63, rounded down to 2.
    found = difference_interval([1.0, 3.0, 5.0], [0.0, 0.5, 1.5, 2.0])
    variance = 4 / 3 + np.var([0.0, 0.5, 1.5, 2.0], ddof=1) / 4
    assert found.mean == 2.0
    assert found.n == 3
    assert found.high - found.mean == pytest.approx(4.302653 * math.sqrt(variance))  # t(0.975, 2 degrees)
    assert found.low + found.high == pytest.approx(4.0)


def test_the_difference_is_covered():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        found = difference_interval(rng.normal(1.0, 3.0, 6), rng.normal(0.0, 1.0, 15))
        covered += found.low <= 1.0 <= found.high
    assert covered >= 368  # 380 expected, one in 200 fair runs is below


def test_equal_groups_differ_by_nothing():
    found = difference_interval([2.0, 2.0], [2.0, 2.0])
    assert (found.low, found.mean, found.high) == (0.0, 0.0, 0.0)


def test_the_p_value_is_the_share_of_divisions_as_far_apart():
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


def test_false_alarms_are_as_rare_as_the_level_says():
    rng = np.random.default_rng(2)
    p = [
        permutation_p_value(x[:12], x[12:], permutations=199, seed=i)
        for i, x in enumerate(rng.exponential(size=(600, 36)))
    ]
    for level, most in ((0.05, 44), (0.2, 146)):  # expected 30 and 120, plus 2.6 standard deviations
        assert sum(value <= level for value in p) <= most
    assert min(p) >= 1 / 200


def test_a_shift_is_found():
    rng = np.random.default_rng(3)
    found = [
        permutation_p_value(rng.normal(1, 1, 20), rng.normal(0, 1, 20), permutations=499, seed=i) for i in range(60)
    ]
    assert sum(p <= 0.05 for p in found) >= 42  # the power is 0.87


def test_all_equal_is_no_evidence():
    assert permutation_p_value([1.0] * 10, [1.0] * 10) == 1.0


def test_the_two_sides_and_the_scale_make_no_difference():
    x, y = [0.0, 1.0, 5.0], [2.0, 8.0, 9.0, 11.0]
    assert permutation_p_value(x, y, seed=4) == permutation_p_value([-v for v in x], [-v for v in y], seed=4)
    assert permutation_p_value(x, y, seed=4) == permutation_p_value(
        [v * 1e90 for v in x], [v * 1e90 for v in y], seed=4
    )


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@PROPERTY
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_its_step_down_rule_rejects(p):
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
