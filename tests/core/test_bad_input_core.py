"""The maths refuses input that is not numbers or distributions, with the value seen, the rule and the next step."""

import math

import pytest

from seasoned.core import (
    AdvantageEstimator,
    ExplorationBonus,
    discounted_returns,
    kl_divergence,
    log_softmax,
    mean_interval,
    mix_in,
    robust_spread,
    sample_index,
    softmax,
)
from seasoned.errors import InputError


@pytest.mark.parametrize(
    ("call", "seen"),
    [
        (lambda: softmax(["a"]), "'a'"),
        (lambda: log_softmax([]), "shape (0,)"),
        (lambda: log_softmax([0.0, math.nan]), "nan"),
        (lambda: mean_interval(["a", "b"]), "'a'"),
        (lambda: mean_interval([1.0, 2.0], seed=-1), "-1"),
        (lambda: mean_interval([1.0, 2.0], resamples=0), "0"),
        (lambda: mix_in([0.0], -1, 0.1), "-1"),
        (lambda: mix_in(["x"], 1, 0.1), "'x'"),
        (lambda: ExplorationBonus("a", 0.1), "'a'"),
        (lambda: ExplorationBonus(-1.0, 0.1), "-1"),
        (lambda: ExplorationBonus(math.nan, 0.1), "nan"),
        (lambda: AdvantageEstimator(kappa="a"), "'a'"),
        (lambda: AdvantageEstimator(kappa=math.inf), "inf"),
        (lambda: discounted_returns([1e308, 1e308], 1.0), "1e+308"),
        (lambda: kl_divergence([-1.0, 2.0], [0.5, 0.5]), "-1"),
        (lambda: kl_divergence([0.5, 0.5], [0.0, 0.0]), "0"),
        (lambda: sample_index([0.0, 0.0], None), "0"),
        (lambda: robust_spread([1.0, 2.0], [1.0]), "2 values"),
    ],
)
def test_bad_input_is_refused(call, seen):
    with pytest.raises(InputError) as caught:
        call()
    assert seen in caught.value.seen
    assert caught.value.rule
    assert caught.value.next_step
