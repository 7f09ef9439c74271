"""Off-policy evaluation: the value of a policy from another policy's episodes with known propensities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number, check_whole
from seasoned.core.arrays import Floats, Ints, as_floats
from seasoned.core.returns import check_gamma, discounted_returns
from seasoned.core.statistics import Interval, check_level, t_quantile
from seasoned.errors import InputError

__all__ = ["OffPolicyEstimate", "effective_sample_size", "one_step_value", "sequence_value"]

Counts = Ints

_CHUNK = 2_000_000
"""The largest number of resampled counts in memory."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class OffPolicyEstimate:
    """A policy's value, estimated from another policy's episodes. Values are in reward units.

    Args:
        value: the estimate, with its interval; its `n` is the number of episodes.
        behavior: the mean return of the behaviour policy, which played the episodes.
        difference: the estimate less `behavior`, with an interval from the same resamples.
        effective: effective sample size, in episodes.
    """

    value: Interval
    behavior: float
    difference: Interval
    effective: float


def effective_sample_size(weights: npt.ArrayLike) -> float:
    """Return the number of equally weighted samples with the same precision: `(sum w)^2 / sum w^2`.

    Source: Kong 1992, "A note on importance sampling using standardized weights". From 1 (one sample has all the
    weight) to n (equal weights); 0 if all weights are 0.

    Args:
        weights: shape (n,), n >= 1, at least 0 and finite.

    Raises:
        InputError: a weight is negative or not finite, or there is none.

    Example:
        >>> effective_sample_size([1.0, 1.0, 0.0, 0.0])
        2.0
    """
    w = as_floats("weights", weights)
    if w.ndim != 1 or not len(w) or not np.isfinite(w).all() or (w < 0.0).any():
        rule = "weights must be one or more finite numbers, at least 0"
        raise InputError(f"weights of shape {w.shape}", rule, "Check them.")
    largest = float(w.max())
    if largest == 0.0:
        return 0.0
    w = w / largest  # so that no square overflows or vanishes
    return float(w.sum() ** 2 / (w @ w))


def sequence_value(
    rewards: Sequence[npt.ArrayLike],
    ratios: Sequence[npt.ArrayLike],
    *,
    gamma: float = 1.0,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 2000,
    min_effective: float = 2.0,
) -> OffPolicyEstimate:
    """Return the value of a policy over whole episodes: weighted per-decision importance sampling.

    `value = sum_t gamma^t * sum_i w[i,t] r[i,t] / sum_i w[i,t]` with `w[i,t] = prod_{u<=t} ratio[i,u]` and
    `ratio = pi_new(action) / propensity`. Source: Precup, Sutton and Singh 2000, "Eligibility traces for off-policy
    policy evaluation"; normalised separately at every step t, which makes it consistent (Thomas 2015, "Safe
    reinforcement learning"). After its end an episode has reward 0 and keeps its last weight, so that with all ratios 1
    the value is exactly the mean return. It is biased towards the behaviour at a small effective size, which is the
    smallest over t of Kong's `(sum_i w[i,t])^2 / sum_i w[i,t]^2`.

    The interval: percentiles of resampled episodes, moved outwards as in `seasoned.core.mean_interval`, with the
    effective size as the number of independent runs. Seeded. Resamples without weight at some step are left out.

    Args:
        rewards: one array per episode, shape (T_i,), in reward units; T_i >= 1.
        ratios: likewise, each >= 0 and finite.
        gamma: discount of the value, in [0, 1].
        level: confidence, in (0, 1).
        seed: of the resampling.
        resamples: number of bootstrap samples.
        min_effective: refuse an effective size below this, at least 2.

    Raises:
        InputError: a value breaks its rule, or the effective size is too small.

    Example:
        >>> played = [[0.0, 1.0], [1.0]]
        >>> sequence_value(played, [[1.0, 1.0], [1.0]]).value.mean
        1.0
    """
    check_gamma(gamma)
    checked = _checked(rewards, ratios)
    n, horizon = len(checked), max(len(r) for r, _ in checked)
    earned = np.zeros((n, horizon))
    logs = np.zeros((n, horizon))
    for i, (reward, ratio) in enumerate(checked):
        earned[i, : len(reward)] = reward
        with np.errstate(divide="ignore"):
            logs[i, : len(ratio)] = np.log(ratio)
    logs = np.cumsum(logs, axis=1)  # after its end an episode keeps its weight: its later ratios are 1
    top = logs.max(axis=0)
    # Only proportions within a step matter: the largest weight is 1, so that long episodes neither vanish nor overflow.
    weights = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    effective = min(effective_sample_size(weights[:, t]) for t in range(horizon))
    discounts = gamma ** np.arange(horizon)
    returns = earned @ discounts

    def values(counts: Counts) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((counts @ (weights * earned) / (counts @ weights)) @ discounts)

    def behaviors(counts: Counts) -> Floats:
        return np.asarray(counts @ returns / n)

    instead = ", or estimate its effect on one decision at a time (one-step)"
    return _estimate(values, behaviors, n, effective, level, seed, resamples, min_effective, instead)


def one_step_value(
    rewards: Sequence[npt.ArrayLike],
    ratios: Sequence[npt.ArrayLike],
    *,
    gamma: float = 1.0,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 2000,
    min_effective: float = 2.0,
) -> OffPolicyEstimate:
    """Return the mean return from a step on if the policy makes that one decision: self-normalised weights.

    `value = sum_{i,t} ratio[i,t] G[i,t] / sum_{i,t} ratio[i,t]`; after step t the behaviour policy continues. Source:
    Swaminathan and Joachims 2015, "The self-normalized estimator for counterfactual learning", with every step as a
    contextual bandit round. It estimates the effect of a change on each single decision, at the states that the
    behaviour visited; for one-step episodes it equals `sequence_value`. Steps of one episode depend on each other: the
    effective size is Kong's over episodes, each with the sum of its ratios, and episodes are resampled.

    Args:
        rewards, ratios, gamma, level, seed, resamples, min_effective: as for `sequence_value`; gamma discounts G.

    Raises:
        InputError: as for `sequence_value`.

    Example:
        >>> one_step_value([[1.0], [0.0], [0.0]], [[0.5], [0.5], [1.0]]).value.mean
        0.25
    """
    check_gamma(gamma)
    checked = _checked(rewards, ratios)
    n = len(checked)
    followed = [discounted_returns(reward, gamma) for reward, _ in checked]
    heaviest = max(float(ratio.max()) for _, ratio in checked) or 1.0
    weighted = np.array([float(ratio / heaviest @ g) for (_, ratio), g in zip(checked, followed, strict=True)])
    weight = np.array([float((ratio / heaviest).sum()) for _, ratio in checked])
    totals = np.array([float(g.sum()) for g in followed])
    lengths = np.array([len(g) for g in followed], dtype=np.float64)

    def values(counts: Counts) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(counts @ weighted / (counts @ weight))

    def behaviors(counts: Counts) -> Floats:
        return np.asarray(counts @ totals / (counts @ lengths))

    return _estimate(values, behaviors, n, effective_sample_size(weight), level, seed, resamples, min_effective, "")


def _estimate(
    values: Callable[[Counts], Floats],
    behaviors: Callable[[Counts], Floats],
    n: int,
    effective: float,
    level: float,
    seed: int,
    resamples: int,
    min_effective: float,
    instead: str,
) -> OffPolicyEstimate:
    check_level(level)
    check_whole("seed", seed, 0)
    check_whole("resamples", resamples, 1)
    check_number("min_effective", min_effective, at_least=2, next_step="10 is usual.")
    if effective < min_effective - _ROUNDING:
        raise InputError(
            f"an effective sample size of {effective:.3g} from {n} episodes",
            f"an estimate needs at least {min_effective:g}",
            f"The policy is far from the behaviour: record more episodes, evaluate a smaller change{instead}.",
        )
    independent = int(effective + _ROUNDING)
    once = np.ones((1, n), dtype=np.int64)
    value, behavior = float(values(once)[0]), float(behaviors(once)[0])
    rng = np.random.default_rng(seed)
    even = np.full(n, 1.0 / n)
    drawn: list[tuple[Floats, Floats]] = []
    size = max(1, _CHUNK // n)
    for start in range(0, resamples, size):
        counts = rng.multinomial(n, even, size=min(size, resamples - start))
        drawn.append((values(counts), behaviors(counts)))
    sampled, base = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    known = np.isfinite(sampled)
    # As core.statistics does for n independent runs.
    scale = math.sqrt(independent / (independent - 1))
    tail = NormalDist().cdf(-scale * t_quantile(0.5 + level / 2, independent - 1))

    def interval(mean: float, resampled: Floats) -> Interval:
        low, high = np.quantile(resampled[known], [tail, 1.0 - tail])
        return Interval(mean, float(low), float(high), n, level, "bootstrap")

    return OffPolicyEstimate(
        interval(value, sampled), behavior, interval(value - behavior, sampled - base), float(effective)
    )


def _checked(rewards: Sequence[npt.ArrayLike], ratios: Sequence[npt.ArrayLike]) -> list[tuple[Floats, Floats]]:
    """Return every episode's rewards and ratios, as arrays of one shape."""
    if len(rewards) != len(ratios) or not len(rewards):
        raise InputError(
            f"{len(rewards)} episodes of rewards, {len(ratios)} of ratios",
            "there must be one episode or more, each with both",
            "Align them.",
        )
    checked = []
    for i, (reward, ratio) in enumerate(zip(rewards, ratios, strict=True)):
        r, rho = as_floats("rewards", reward), as_floats("ratios", ratio)
        if r.ndim != 1 or r.shape != rho.shape or not len(r):
            raise InputError(
                f"episode {i}: rewards of shape {r.shape}, ratios of shape {rho.shape}",
                "both must have shape (T,), T >= 1",
                "Give every step its reward and its ratio.",
            )
        if not np.isfinite(r).all() or not np.isfinite(rho).all() or (rho < 0.0).any():
            raise InputError(
                f"episode {i}: rewards from {r.min()} to {r.max()}, ratios from {rho.min()} to {rho.max()}",
                "rewards must be finite, and ratios finite and at least 0",
                "A ratio is pi_new(action) / propensity, with a propensity above 0.",
            )
        checked.append((r, rho))
    return checked
