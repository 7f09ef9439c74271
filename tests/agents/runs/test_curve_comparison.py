"""Blocks and differences of learning curves, against numbers computed by hand."""

from __future__ import annotations

import math
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from seasoned.agents import block_means, compare_curves
from seasoned.errors import InputError

WITH = [[0, 2, 1, 3, 4, 4, 6, 8], [1, 1, 2, 2, 5, 3, 4, 4], [0, 0, 0, 2, 3, 3, 2, 4]]
ALONE = [[1, 1, 1, 1, 2, 0, 1, 3], [0, 0, 2, 0, 1, 1, 3, 3], [2, 0, 1, 1, 0, 0, 0, 2]]
T_975_2 = 4.302652729911275  # Student's t, 97.5 %, 2 degrees of freedom: a table's value


def by_t(values):
    """The t interval of three values, by its formula."""
    half = T_975_2 * stdev(values) / math.sqrt(3)
    return mean(values), mean(values) - half, mean(values) + half


def test_block_means_equal_hand_computed_values():
    assert block_means(WITH).tolist() == [[1, 2, 4, 7], [1, 2, 4, 4], [0, 1, 3, 3]]
    assert block_means(WITH, blocks=2).tolist() == [[1.5, 5.5], [1.5, 4.0], [0.5, 3.0]]
    assert block_means(WITH, blocks=8).tolist() == WITH


def test_comparison_equals_hand_computed_values():
    comparison = compare_curves(WITH, ALONE)
    assert [block.mean for block in comparison.with_blocks] == pytest.approx([2 / 3, 5 / 3, 11 / 3, 14 / 3])
    assert [block.mean for block in comparison.without_blocks] == pytest.approx([2 / 3, 1, 2 / 3, 2])
    # The last block: 7 - 2, 4 - 3, 3 - 1. Last minus first, with memory: 7 - 1, 4 - 1, 3 - 0.
    for interval, differences in ((comparison.with_minus_without, [5, 1, 2]), (comparison.last_minus_first, [6, 3, 3])):
        assert (interval.mean, interval.low, interval.high) == pytest.approx(by_t(differences))
        assert (interval.n, interval.level) == (3, 0.95)


def test_interval_of_the_difference_uses_pairs():
    """Seeds differ by more than the arms, so that only pairs show the difference."""
    luck = np.arange(12.0)[:, None] * 100.0
    comparison = compare_curves(luck + np.ones((12, 4)), luck + np.zeros((12, 4)))
    interval = comparison.with_minus_without
    assert (interval.mean, interval.low, interval.high) == (1.0, 1.0, 1.0)


TABLES = arrays(np.float64, (5, 8), elements=st.floats(-100, 100))


@given(TABLES, TABLES)
def test_interval_contains_its_mean_and_is_antisymmetric(ours, alone):
    comparison, turned = compare_curves(ours, alone), compare_curves(alone, ours)
    there, back = comparison.with_minus_without, turned.with_minus_without
    assert there.low <= there.mean <= there.high
    assert (there.mean, there.low, there.high) == pytest.approx((-back.mean, -back.high, -back.low), abs=1e-9)
    assert comparison.with_blocks == turned.without_blocks
    assert block_means(ours).mean() == pytest.approx(ours.mean(), abs=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: block_means([[1, 2, 3]]),
        lambda: block_means([[1, 2, 3, 4, 5]]),
        lambda: block_means([[]]),
        lambda: block_means([1, 2, 3, 4]),
        lambda: block_means([[[1, 2, 3, 4]]]),
        lambda: block_means([[1, 2, 3, 4]], blocks=3),
        lambda: compare_curves(WITH, ALONE[:2]),
        lambda: compare_curves(WITH, [row[:4] for row in ALONE][:1]),
        lambda: compare_curves(WITH[:1], ALONE[:1]),
        lambda: compare_curves([[0, 0, 0, math.nan]] * 3, [[0, 0, 0, 0]] * 3),
    ],
)
def test_tables_of_wrong_shape_are_refused(call):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.seen and caught.value.rule and caught.value.next_step
