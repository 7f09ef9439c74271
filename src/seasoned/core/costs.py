"""Costs: the cost of a success, and the break-even point of an outlay, as exact ratios of sums with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number, check_whole
from seasoned.core.arrays import Floats, as_floats
from seasoned.core.statistics import BOOTSTRAP_MIN_RUNS, Interval, check_level, t_quantile
from seasoned.errors import InputError

__all__ = ["BreakEven", "break_even", "break_even_interval", "ratio_difference", "ratio_interval"]

_RESAMPLES = 10_000
_CHUNK = 2_000_000
_ROUNDING = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The break-even point of an outlay.

    Args:
        episodes: the smallest number of episodes after which it has paid for itself; None: never.
        reason: the result in words, with the cause if it is never.
    """

    episodes: int | None
    reason: str

    def __str__(self) -> str:
        return self.reason


def break_even(filling: float, alone: float, cascade: float) -> BreakEven:
    """Return the smallest n >= 0 with `filling + n * cascade < n * alone`, by more than the rounding of floats.

    `n = floor(filling / (alone - cascade)) + 1`, where a quotient less than one part in 10^9 below a whole number is
    rounded up to it: 20 episodes that save 0.05 each have not yet paid for 1. If `cascade >= alone`, an episode saves
    nothing, and there is no such n.

    Args:
        filling: the cost before the first episode, at least 0.
        alone: an episode's cost without it, at least 0.
        cascade: an episode's cost with it, at least 0; all in one unit, such as USD.

    Raises:
        InputError: a number is negative, or not finite.

    Example:
        >>> print(break_even(29.5, alone=0.059, cascade=0.024))
        after 843 episodes (0.035 saved by each, 29.5 spent beforehand)
        >>> break_even(1.0, alone=0.10, cascade=0.05).episodes
        21
    """
    spent = {"filling": filling, "alone": alone, "cascade": cascade}
    for name, value in spent.items():
        check_number(name, value, at_least=0, next_step="Leave out an unknown cost.")
    saved = Fraction(alone) - Fraction(cascade)
    if saved <= 0:
        return BreakEven(None, f"never: an episode costs {cascade:.4g} with it, and {alone:.4g} without")
    n = math.floor(Fraction(filling) / saved * (1 + _ROUNDING)) + 1
    return BreakEven(n, f"after {n} episodes ({float(saved):.4g} saved by each, {filling:.4g} spent beforehand)")


def break_even_interval(
    filling: float,
    alone: npt.ArrayLike,
    cascade: npt.ArrayLike,
    *,
    successes: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[int | None, int | None]:
    """Return the interval of the break-even point, in episodes; None: never.

    The percentile bootstrap over paired episodes: both costs of an episode are resampled together. The percentiles are
    moved outwards as in `seasoned.core.mean_interval`.

    Args:
        filling: as for `break_even`; taken as known.
        alone, cascade: shape (n,), each episode's cost, n >= 10, paired.
        successes: of alone and of cascade, shape (n,) each: the cost alone is then scaled to the number of successes of
            the cascade, `sum alone * sum S_cascade / sum S_alone`. None: episodes are compared, successful or not.
        level: confidence, in (0, 1).
        seed: of the resampling.

    Raises:
        InputError: a shape or a number breaks its rule, there are fewer than 10 pairs, or there is no success alone, so
            that the cost of a success alone is undefined.

    Example:
        >>> break_even_interval(1.0, [0.3, 0.2] * 6, [0.1] * 12)
        (6, 9)
    """
    ones = np.ones(np.shape(alone))
    one, other = (ones, ones) if successes is None else successes
    a, b, s, t = _pairs(
        ("alone", alone), ("cascade", cascade), ("successes alone", one), ("successes in the cascade", other)
    )
    break_even(filling, float(a.mean()), float(b.mean()))  # checks its arguments
    if not s.sum() > 0.0:
        rule = "the cost of a success needs one success or more"
        raise InputError("successes alone are all 0", rule, "Compare episodes: leave successes out.")
    sums = _resampled(a, seed, b, s, t)
    with np.errstate(invalid="ignore"):  # resamples without success in either arm are left out
        saved = (_ratios(sums[0], sums[2]) * sums[3] - sums[1]) / len(a)
    low, high = _percentiles(saved[~np.isnan(saved)], level, len(a))
    return _paid_after(filling, high), _paid_after(filling, low)


def _paid_after(filling: float, saved: float) -> int | None:
    if math.isinf(saved):
        return 1
    return break_even(filling, max(0.0, saved), 0.0).episodes


def ratio_interval(
    numerators: npt.ArrayLike, denominators: npt.ArrayLike, *, level: float = 0.95, seed: int = 0
) -> Interval:
    """Return `sum numerators / sum denominators` over independent episodes, such as USD per success.

    Its interval is the percentile bootstrap over episodes, percentiles moved outwards as in
    `seasoned.core.mean_interval`. A resample without any denominator has an infinite ratio, so `high` may be infinite.

    Args:
        numerators: shape (n,), at least 0 each, n >= 10.
        denominators: shape (n,), at least 0 each, not all 0.
        level: confidence, in (0, 1).
        seed: of the resampling.

    Raises:
        InputError: a shape or a number breaks its rule, or there are fewer than 10 episodes.

    Example:
        >>> print(ratio_interval([0.1] * 12, [1, 0] * 6))
        +0.200 [+0.120, +0.600] (n=12, 95% bootstrap)
    """
    a, b = _pairs(("numerators", numerators), ("denominators", denominators))
    ratio = _ratio(a, b)
    low, high = _percentiles(_ratios(*_resampled(a, seed, b)), level, len(a))
    return Interval(ratio, low, high, len(a), level, "bootstrap")


def ratio_difference(
    first: tuple[npt.ArrayLike, npt.ArrayLike],
    second: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the first ratio of sums less the second, over paired episodes; both arms are resampled together.

    A resample with one denominator of 0 is infinite; a resample with both denominators 0 is left out.

    Args:
        first, second: (numerators, denominators) as for `ratio_interval`, all of one length.
        level: confidence, in (0, 1).
        seed: of the resampling.

    Raises:
        InputError: as for `ratio_interval`.

    Example:
        >>> one = ([0.2] * 12, [1] * 12)
        >>> print(ratio_difference(one, ([0.1] * 12, [1] * 12)))
        +0.100 [+0.100, +0.100] (n=12, 95% bootstrap)
    """
    a, b, c, d = _pairs(
        ("first numerators", first[0]),
        ("first denominators", first[1]),
        ("second numerators", second[0]),
        ("second denominators", second[1]),
    )
    difference = _ratio(a, b) - _ratio(c, d)
    sums = _resampled(a, seed, b, c, d)
    with np.errstate(invalid="ignore"):
        differences = _ratios(sums[0], sums[1]) - _ratios(sums[2], sums[3])
    low, high = _percentiles(differences[~np.isnan(differences)], level, len(a))
    return Interval(difference, low, high, len(a), level, "bootstrap")


def _pairs(*named: tuple[str, npt.ArrayLike]) -> list[Floats]:
    arrays = [as_floats(name, values) for name, values in named]
    for (name, _), values in zip(named, arrays, strict=True):
        if values.shape != arrays[0].shape or values.ndim != 1 or len(values) < BOOTSTRAP_MIN_RUNS:
            raise InputError(
                f"{name} of shape {values.shape}",
                f"{name} must have one number for each of {BOOTSTRAP_MIN_RUNS} paired episodes or more",
                "Play more episodes, the same ones in both arms.",
            )
        if not np.isfinite(values).all() or (values < 0.0).any():
            seen = f"{name} from {values.min()} to {values.max()}"
            raise InputError(seen, f"{name} must be finite and at least 0", "Give the price of every call.")
    return arrays


def _ratio(numerators: Floats, denominators: Floats) -> float:
    if not denominators.sum() > 0.0:
        rule = "a ratio needs a denominator above 0"
        raise InputError("denominators are all 0", rule, "Play until there is a success.")
    return float(numerators.sum() / denominators.sum())


def _ratios(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.full_like(a, np.inf), where=b > 0.0)


def _resampled(values: Floats, seed: int, *others: Floats) -> list[Floats]:
    """Return sums over resampled episodes, the same episodes for every array."""
    rng = np.random.default_rng(check_whole("seed", seed, 0))
    table = np.stack([values, *others])
    n = len(values)
    rows = max(1, _CHUNK // n)
    parts = [
        table[:, rng.integers(0, n, size=(min(rows, _RESAMPLES - begin), n))].sum(axis=2)
        for begin in range(0, _RESAMPLES, rows)
    ]
    return list(np.concatenate(parts, axis=1))


def _percentiles(values: Floats, level: float, n: int) -> tuple[float, float]:
    check_level(level)
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * t_quantile(0.5 + level / 2, n - 1))
    low, high = np.quantile(values, [tail, 1.0 - tail], method="inverted_cdf")  # infinities cannot be interpolated
    return float(low), float(high)
