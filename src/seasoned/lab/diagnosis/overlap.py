"""Overlap of a log with another policy: the mean importance ratio, and the share of actions that were never taken."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from seasoned.core import Interval
from seasoned.core.statistics import t_quantile
from seasoned.errors import InputError

__all__ = ["check_support", "mean_ratio", "mean_weight", "untaken_share", "widen_interval"]

_LOWEST, _HIGHEST = 0.8, 1.25
_MARGIN = 1.05
_LEVEL = 0.95


def mean_ratio(ratios: Sequence[Sequence[float]]) -> Interval:
    """Return the mean over all steps of `pi_new / propensity`, with its interval over episodes, which are independent.

    Each ratio has mean 1 given the steps before it, if the log supports the new policy. So `sum_t (ratio[i,t] - 1)` of
    an episode has mean 0, however long the episode is, and the interval is Student's t for the mean of these sums.

    Args:
        ratios: one sequence per episode, none of them empty; two episodes or more.

    Example:
        >>> print(mean_ratio([[0.5, 1.5], [1.5], [0.5]]))
        +1.000 [+0.068, +1.932] (n=3, 95% t)
    """
    length = float(np.mean([len(one) for one in ratios]))
    return _interval([1.0 + math.fsum(ratio - 1.0 for ratio in one) / length for one in ratios])


def mean_weight(ratios: Sequence[Sequence[float]]) -> Interval:
    """Return the mean over episodes of the product of an episode's ratios, with its interval.

    It has mean 1 as well if the log supports the new policy; missing support at several steps multiplies up. It is the
    share of the new policy's episodes that the log supports.

    Args:
        ratios: as for `mean_ratio`.

    Example:
        >>> print(mean_weight([[0.5, 0.5], [1.5, 1.5], [0.5]]))
        +1.000 [-1.707, +3.707] (n=3, 95% t)
    """
    return _interval([math.prod(one) for one in ratios])


def untaken_share(
    ratios: Sequence[Sequence[float]], untaken: Sequence[Sequence[float]], *, whole_episodes: bool
) -> float:
    """Return the share of the new policy's decisions or episodes with an action that no step of the log took.

    The share is from 0 to 1. For decisions it is the mean of `untaken`. For episodes it is `mean_i sum_t w[i,t-1]
    untaken[i,t]`, with w the product of the ratios up to a step: the probability of a first such action at t is
    `E[w[t-1] untaken[t]]` over the log.

    Args:
        ratios: as for `mean_ratio`.
        untaken: for the same steps, the new policy's probability of the actions that the log never took.
        whole_episodes: True: the share of episodes; False: of decisions.

    Example:
        >>> untaken_share([[1.0, 1.0]], [[0.1, 0.1]], whole_episodes=False)
        0.1
        >>> untaken_share([[1.0, 1.0]], [[0.1, 0.1]], whole_episodes=True)
        0.2
    """
    if not whole_episodes:
        return math.fsum(math.fsum(one) for one in untaken) / sum(map(len, untaken))
    probabilities = [
        math.fsum(math.prod(ratio[:at]) * here for at, here in enumerate(one))
        for ratio, one in zip(ratios, untaken, strict=True)
    ]
    return min(1.0, math.fsum(probabilities) / len(probabilities))


def widen_interval(interval: Interval, share: float, low: float, high: float) -> Interval:
    """Return the interval if a share of the mean has an unknown value from `low` to `high` (Manski 1990, bounds).

    Returns of actions that are not in the log may be as low as its lowest, or as high as its highest; more episodes do
    not narrow this.

    Example:
        >>> widen_interval(Interval(0.5, 0.4, 0.6, 9, 0.95, "t"), 0.1, low=0.0, high=1.0).high
        0.64
    """
    return dataclasses.replace(
        interval,
        low=min(interval.low, (1.0 - share) * interval.low + share * low),
        high=max(interval.high, (1.0 - share) * interval.high + share * high),
    )


def check_support(ratios: Sequence[Sequence[float]], *, whole_episodes: bool) -> Interval:
    """Return the mean ratio, or refuse a log that does not support the new policy.

    The mean of the importance weights is the usual diagnostic of support and propensities: its expectation is exactly 1
    where every action of the new policy had a propensity above 0 (the arithmetic mean test of Li, Chen, Kleban and
    Gupta 2015, "Counterfactual estimation and optimization of click metrics in search engines"). Self-normalised
    estimates and the effective sample size do not show missing support: actions that are not in the log have no weight.

    Tested are the mean ratio and, where the estimate weighs by products of ratios, the mean weight. A mean outside
    [0.8, 1.25] is refused, and one whose 95 % interval lies wholly below 0.95 or above 1.05. If weights have heavy
    tails, the mean approaches 1 only with many episodes; with fewer, the estimate is biased towards the behaviour, and
    its interval covers the true value less often than its level.

    Args:
        ratios: as for `mean_ratio`.
        whole_episodes: whether the estimate weighs by products of ratios.

    Raises:
        InputError: the means are not compatible with 1.

    Example:
        >>> print(check_support([[0.5], [1.5]] * 30, whole_episodes=True))
        +1.000 [+0.870, +1.130] (n=60, 95% t)
    """
    steps = mean_ratio(ratios)
    means = {"a mean importance ratio": steps}
    if whole_episodes:
        means["a mean importance weight of whole episodes"] = mean_weight(ratios)
    for name, seen in means.items():
        if not _LOWEST <= seen.mean <= _HIGHEST or seen.high < 2.0 - _MARGIN or seen.low > _MARGIN:
            raise InputError(
                f"{name} of {seen.mean:.3g} [{seen.low:.3g}, {seen.high:.3g}] over {seen.n} episodes",
                "it is 1 where the log supports the policy and the propensities are right: the mean is in "
                f"[{_LOWEST:g}, {_HIGHEST:g}], and its {_LEVEL:.0%} interval meets [{2.0 - _MARGIN:.3g}, {_MARGIN:g}]",
                "Log more exploration (a lower beta; selection='sample', not the argmax), or evaluate a policy nearer "
                "to the one that played.",
            )
    return steps


def _interval(values: Sequence[float]) -> Interval:
    x = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # a product that overflows has no mean near 1
        mean = float(x.mean())
        half = t_quantile(0.5 + _LEVEL / 2, len(x) - 1) * float(x.std(ddof=1)) / math.sqrt(len(x))
    return Interval(mean, mean - half, mean + half, len(x), _LEVEL, "t")
