"""Advantages: the value of each action less the value of the policy at the same states."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from seasoned.checks import check_number, check_one_of
from seasoned.core.arrays import Bools, Floats, Ints
from seasoned.core.exploration import CandidateStats, Exploration
from seasoned.core.returns import UntriedReturn
from seasoned.core.shrinkage import (
    Sums,
    Values,
    additive_values,
    derived_kappa,
    noise_variance,
    scatter_variance,
    shared_values,
)
from seasoned.core.statistics import t_quantile

__all__ = ["AdvantageEstimate", "AdvantageEstimator", "Baseline", "Levels", "Scale"]

Baseline = Literal["neighbors", "base_policy", "action_means"]
Scale = Literal["none", "spread", "max_abs", "max"]
Levels = Literal["shared", "own"]

_INTERVAL = 0.95
_DEVIATIONS = 1.959963984540054  # 95 % of a normal distribution
_MANY_DEGREES = 200
_NOT_ESTIMABLE = 1e-6


@dataclass(frozen=True)
class AdvantageEstimate:
    """The advantages of C candidates, in the given order.

    Args:
        values: shape (C,), plain mean returns, NaN where untried.
        advantages: shape (C,), the shift of a logit per unit of beta: the estimate, moderated, and with the bonus; 0
            without evidence.
        estimated: shape (C,), the estimate of `(Q(a) - V) / scale`, neither moderated nor with a bonus. NaN where
            untried (the process has one there, too).
        low, high: shape (C,), the 95 % interval of `estimated`; NaN where that is, and infinite if the effect of an
            action cannot be separated from its states.
        bonuses: shape (C,), the part of the advantages that is exploration.
        baseline: V, in reward units; None without evidence for it.
        scale: the divisor of the advantages, in reward units.
        kappa: the shrinkage, in steps.
        preferred: shape (C,), the part of `estimated` that the model's own policy has (`seasoned.core.PriorMean`): the
            rest is what the returns say beyond it. None: no part.
    """

    values: Floats
    advantages: Floats
    estimated: Floats
    low: Floats
    high: Floats
    bonuses: Floats
    baseline: float | None
    scale: float
    kappa: float
    preferred: Floats | None = None

    def shifted(self, shifts: Floats, deviations: Floats) -> AdvantageEstimate:
        """Return the estimate with an independent one of other evidence added; the half widths add in squares.

        Args:
            shifts: shape (C,), in units of advantage.
            deviations: shape (C,), their standard deviations.
        """
        estimated = np.where(np.isnan(self.estimated), 0.0, self.estimated) + shifts
        half = np.hypot(np.where(np.isnan(self.low), 0.0, self.high - self.low) / 2.0, _DEVIATIONS * deviations)
        return dataclasses.replace(
            self, advantages=self.advantages + shifts, estimated=estimated, low=estimated - half, high=estimated + half
        )

    def discounted(self, shares: Floats) -> AdvantageEstimate:
        """Return the estimate with each advantage and its interval times a share in [0, 1]; bonuses do not change.

        At a share of 0 there is no estimate (NaN).

        Args:
            shares: shape (C,), the share of the evidence for each candidate that counts.
        """
        learned = (self.advantages - self.bonuses) * shares
        estimated, low, high = (np.full(len(shares), np.nan) for _ in range(3))
        for scaled, whole in ((estimated, self.estimated), (low, self.low), (high, self.high)):
            np.multiply(whole, shares, out=scaled, where=shares > 0.0)
        preferred = None if self.preferred is None else self.preferred * shares
        advantages = learned + self.bonuses
        return dataclasses.replace(
            self, advantages=advantages, estimated=estimated, low=low, high=high, preferred=preferred
        )


@dataclass(frozen=True, slots=True)
class _Posterior:
    """By candidate, shape (C,): whether it was tried, plain mean, posterior mean and variance; then the parts of V.

    `half_width` is of the interval of the difference to a V that is no mean of these values.
    """

    known: Bools
    means: Floats
    q: Floats
    variances: Floats
    kappa: float
    values: Values | None
    weights_in_v: Floats | None
    baseline: float | None
    half_width: float | None = None


@dataclass(frozen=True, slots=True)
class AdvantageEstimator:
    """Turns evidence into advantages: `A(a) = (Q(a) - V) / scale`, and 0 for an untried action.

    `Q(a)` are posterior means: the mean return of the neighbours that took `a`, shrunk towards the common mean by
    `kappa` steps (see `seasoned.core.shrinkage`). At kappa = 0 they are the plain means of JitRL, arXiv 2601.18510. A
    single step changes neither its action's value nor V by much.

    `V`, by `baseline`:
        `neighbors`: the weighted mean return of all neighbours, candidates or not (JitRL, arXiv 2601.18510);
        `base_policy`: `sum pi(a) Q(a) / sum pi(a)` over the tried candidates, pi being the model's own policy. Ours: as
        the policy improves, neighbours agree, a visit-weighted mean approaches Q of the best action, and the advantage
        that made the policy good vanishes. The value of the *base* policy does not change with the visits;
        `action_means`: the same as `neighbors` if every candidate was tried; otherwise the unweighted mean over actions
        of their mean returns, in which an untried candidate has the value that exploration assigns to it. The rule of
        JitRL's public code, for comparison.

    `scale`: `none`; `spread`: the namespace's robust spread of mean returns by state and action, so that beta has the
        same meaning in every task, and for any concentration of the visits; `max_abs`: the largest absolute advantage
        (JitRL); `max`: the largest advantage if one is positive, else the absolute value of the smallest (its public
        code). With the last two the best of nearly equal actions gets the same advantage as a clear winner.
    `kappa`: in steps, the evidence at which half of an action's difference counts: 1, the unit information prior
        (Kass and Wasserman 1995, J. Amer. Statist. Assoc. 90), weighs as much as one observation; None derives it from
        the variance of returns of repeated actions (`derived_kappa`).
    `levels`: `shared`: all neighbours have one common mean. `own`: each distinct state has a level of its own, so that
        an action is compared with others at the same states (`additive_values`).

    Where one candidate alone was tried, Q = V under `base_policy`. If its mean return is below what is expected of an
    untried action, m (`seasoned.core.untried_return`), then V = m, so that what failed is given up for what nobody
    tried: `A(a) = n / (n + kappa) (mean - m) / scale`, its interval of the variance of the mean, with one return of the
    spread around m a priori. A success there has no advantage: nothing is known to be worse.

    Intervals: `A(a) -+ t sqrt(c' Cov c) / scale`, where `A = c'Q`, Cov is the posterior covariance, and t has its
    degrees of freedom. Differences between states widen them (`level_variance`). They take the scale, kappa and V's
    weights as known: if the noise is nine times the scatter of values and visits are uneven, their coverage is 0.89
    instead of 0.95. With `levels="own"` they assume that an action's effect is the same at all states.

    The presets of `seasoned.JitRL` are configurations of this one estimator.

    Example:
        >>> sums = Sums(np.array([2.0, 1.0]), np.array([2.0, 1.0]), np.array([2.0, 0.4]), np.array([2.5, 0.16]))
        >>> estimate = AdvantageEstimator("neighbors", kappa=0.0).estimate(
        ...     sums, rows=np.array([0, 1]), base_probs=np.array([0.5, 0.5]), spread=1.0, rng=np.random.default_rng(0))
        >>> estimate.advantages.round(3).tolist()
        [0.2, -0.4]
    """

    baseline: Baseline = "base_policy"
    scale: Scale = "spread"
    kappa: float | None = 1.0
    exploration: Exploration | None = None
    levels: Levels = "shared"

    def __post_init__(self) -> None:
        check_one_of("baseline", self.baseline, get_args(Baseline))
        check_one_of("scale", self.scale, get_args(Scale))
        check_one_of("levels", self.levels, get_args(Levels))
        if self.kappa is not None:
            check_number("kappa", self.kappa, at_least=0, next_step="0 switches shrinkage off.")

    def estimate(
        self,
        sums: Sums,
        *,
        rows: Ints,
        base_probs: Floats,
        spread: float,
        rng: np.random.Generator,
        untried: UntriedReturn | None = None,
    ) -> AdvantageEstimate:
        """Return the advantages of C candidates.

        Args:
            sums: sums over all neighbours, by action (A actions), candidates or not.
            rows: shape (C,), each candidate's row in `sums`; -1 if it is untried.
            base_probs: shape (C,), the model's own policy.
            spread: robust return spread, in reward units; 0 when all returns are equal.
            rng: for exploration.
            untried: what is expected of an untried action; None: unknown.

        Raises:
            InputError: `levels="own"` without sums by state.
        """
        found = self._posterior(sums, rows, base_probs, spread)
        if untried is not None and self.baseline == "base_policy" and found.known.sum() == 1 < len(rows):
            found, spread = _against_untried(found, sums, rows, untried, spread)
        bonus = self._bonus(sums, rows, found, rng)
        baseline, bonuses = self._with_bonus(sums, found, bonus)
        exact, half = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        if found.values is not None and found.weights_in_v is not None and baseline is not None:
            exact[found.known] = found.q[found.known] - baseline
            half[found.known] = (
                _half_widths(found.values, found.weights_in_v, rows[found.known])
                if found.half_width is None
                else found.half_width
            )
        advantages = np.where(np.isnan(exact), 0.0, exact) + bonuses
        scale = self._scale(advantages, spread)
        return AdvantageEstimate(
            values=found.means,
            advantages=advantages / scale,
            estimated=exact / scale,
            low=(exact - half) / scale,
            high=(exact + half) / scale,
            bonuses=bonuses / scale,
            baseline=baseline,
            scale=scale,
            kappa=found.kappa,
        )

    def _posterior(self, sums: Sums, rows: Ints, base_probs: Floats, spread: float) -> _Posterior:
        """Return the posterior of each candidate and of V, before exploration."""
        noise, degrees = noise_variance(sums, spread)
        scatter = scatter_variance(sums, spread, noise, degrees)
        kappa = derived_kappa(noise, scatter) if self.kappa is None else self.kappa
        known = np.append(sums.weights > 0.0, False)[rows]
        tried = rows[known]
        means, q = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        # If all returns are equal, the scatter of values is unknown: one unit of reward, as in the scale.
        variances = np.full(len(rows), scatter if scatter > 0.0 else 1.0)
        if not sums.weights.sum() > 0.0:
            return _Posterior(known, means, q, variances, kappa, None, None, None)
        values = (additive_values if self.levels == "own" else shared_values)(sums, kappa, noise, degrees)
        means[known] = sums.totals[tried] / sums.weights[tried]
        q[known], variances[known] = values.q[tried], np.diag(values.covariance)[tried]
        weights_in_v = self._weights_in_v(sums, tried, base_probs[known])
        baseline = self._baseline(sums, values, weights_in_v)
        return _Posterior(known, means, q, variances, kappa, values, weights_in_v, baseline)

    def _bonus(self, sums: Sums, rows: Ints, found: _Posterior, rng: np.random.Generator) -> Floats:
        """Return the bonus of exploration for each candidate, in reward units; 0 without exploration."""
        if self.exploration is None:
            return np.zeros(len(rows))
        counts, deviations = _counts_and_deviations(sums, rows)
        stats = CandidateStats(
            counts, found.means, deviations, found.variances, found.baseline or 0.0, int(sums.counts.sum())
        )
        return self.exploration.bonus(stats, rng)

    def _with_bonus(self, sums: Sums, found: _Posterior, bonus: Floats) -> tuple[float | None, Floats]:
        """Return V and the bonuses; under `action_means` the optimistic value of an untried candidate enters V."""
        bonuses, untried = bonus.copy(), ~found.known
        if self.baseline != "action_means" or found.values is None or found.baseline is None or not untried.any():
            return found.baseline, bonuses
        mean = float(np.mean([*found.values.q[sums.weights > 0.0], *(found.baseline + bonus[untried])]))
        bonuses[untried] += found.baseline - mean
        return mean, bonuses

    def _weights_in_v(self, sums: Sums, tried: Ints, base_probs: Floats) -> Floats | None:
        """Return the weight of each action in V, shape (A,), summing to 1; None if no candidate was tried."""
        if self.baseline != "base_policy":
            visits: Floats = sums.weights / sums.weights.sum()
            return visits
        if not len(tried):
            return None
        # A sharp prior can make the tried actions' probabilities underflow; their ratios remain valid.
        pi = np.maximum(base_probs, np.finfo(np.float64).tiny)
        weights = np.zeros(len(sums.weights))
        weights[tried] = pi / pi.sum()
        return weights

    def _baseline(self, sums: Sums, values: Values, weights_in_v: Floats | None) -> float | None:
        if weights_in_v is None:
            return None
        if self.baseline != "base_policy" and self.levels == "shared":
            return float(sums.totals.sum() / sums.weights.sum())  # the mean return, without shrinkage
        return float(weights_in_v @ values.q)

    def _scale(self, advantages: Floats, spread: float) -> float:
        if self.scale == "spread":
            return spread if spread > 0.0 else 1.0
        largest = {
            "none": 1.0,
            "max_abs": float(np.abs(advantages).max()),
            "max": float(advantages.max() if advantages.max() > 0.0 else np.abs(advantages).max()),
        }[self.scale]
        return largest if largest > 0.0 else 1.0


def _against_untried(
    found: _Posterior, sums: Sums, rows: Ints, untried: UntriedReturn, spread: float
) -> tuple[_Posterior, float]:
    """Return the posterior and the scale if one candidate alone was tried, and returned less than untried ones may."""
    if not found.means[found.known][0] < untried.mean:
        return found, spread
    [row] = rows[found.known]
    steps, total = float(sums.weights[row]), float(sums.totals[row])
    own = found.kappa / (steps + found.kappa)  # the share of the prior
    within = max(0.0, float(sums.squares[row]) - total * total / steps)
    noise = (untried.spread**2 + within) / max(steps, 1.0)  # with one degree a priori
    half_width = _t(steps) * math.sqrt(noise / (steps + found.kappa))
    q = np.where(found.known, own * untried.mean + (1.0 - own) * found.means, found.q)
    none = np.zeros(len(sums.weights))
    against = dataclasses.replace(found, q=q, weights_in_v=none, baseline=untried.mean, half_width=half_width)
    return against, spread if spread > 0.0 else untried.spread


def _counts_and_deviations(sums: Sums, rows: Ints) -> tuple[Floats, Floats]:
    """Return the numbers of steps and the standard deviations (population) of the returns, by candidate."""
    safe = np.where(sums.weights > 0.0, sums.weights, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = np.fmax(sums.squares / safe - (sums.totals / safe) ** 2, 0.0)
    return np.append(sums.counts, 0.0)[rows], np.append(np.sqrt(variances), np.nan)[rows]


def _half_widths(values: Values, weights_in_v: Floats, tried: Ints) -> Floats:
    """Return half of the interval of `c'Q` for each advantage's contrast c; infinite without evidence for it."""
    contrasts = -np.repeat(weights_in_v[None, :], len(tried), axis=0)
    contrasts[np.arange(len(tried)), tried] += 1.0
    of_actions = np.diag(values.covariance)
    if np.count_nonzero(values.covariance) == np.count_nonzero(of_actions):  # independent values: no matrix product
        variances = contrasts**2 @ of_actions
    else:
        variances = ((contrasts @ values.covariance) * contrasts).sum(axis=1)
    result: Floats = _t(values.degrees) * np.sqrt(np.maximum(variances, 0.0))
    if values.estimable is not None:
        result[np.abs(contrasts @ values.estimable - contrasts).max(axis=1) > _NOT_ESTIMABLE] = np.inf
    return result


def _t(degrees: float) -> float:
    return t_quantile(0.5 + _INTERVAL / 2, max(1, round(min(degrees, _MANY_DEGREES))))
