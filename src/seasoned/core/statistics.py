"""Statistics of independent runs: intervals for small samples, tests of two groups, and a robust spread."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number, check_whole
from seasoned.core.arrays import Floats, as_floats
from seasoned.errors import InputError

__all__ = [
    "N_RECENT",
    "Interval",
    "check_level",
    "difference_interval",
    "holm",
    "mean_interval",
    "permutation_p_value",
    "recent_moments",
    "recent_of_task",
    "robust_moments",
    "robust_spread",
    "share_interval",
    "t_quantile",
]

BOOTSTRAP_MIN_RUNS = 10
N_RECENT = 256
"""How many of the latest returns set the unit of a Gaussian process."""

_CHUNK = 2_000_000
_TIE = 1e-12
_SUM_ROUNDING = 1e-9
_ENOUGH_OF_TASK = 16
_ABSURD = 30.0  # times the deviation of the bulk; beta times advantages of a 30th of a unit are a nat and a half


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over `n` independent runs, with its interval [`low`, `high`] at `level`, and the interval's method."""

    mean: float
    low: float
    high: float
    n: int
    level: float
    method: str

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}] (n={self.n}, {self.level:.0%} {self.method})"


def check_level(level: float) -> float:
    """Return `level` if it is a confidence level, above 0 and below 1.

    Raises:
        InputError: it is not.

    Example:
        >>> check_level(0.95)
        0.95
    """
    return check_number("level", level, above=0, below=1, next_step="0.95 is usual.")


def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t with integer degrees of freedom.

    By bisection on the closed form of its distribution (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    Example:
        >>> round(t_quantile(0.975, 9), 4)
        2.2622
    """
    if not 0.0 < probability < 1.0 or degrees < 1:
        rule = "probability must be above 0 and below 1, and degrees at least 1"
        raise InputError(f"t_quantile({probability}, {degrees})", rule, "Use two runs or more.")
    return -_upper_quantile(1.0 - probability, degrees) if probability < 0.5 else _upper_quantile(probability, degrees)


@functools.lru_cache(maxsize=1 << 12)  # every decision asks for a few
def _upper_quantile(probability: float, degrees: int) -> float:
    low, high = 0.0, math.pi / 2  # the angle theta = atan(t / sqrt(degrees))
    for _ in range(100):
        theta = (low + high) / 2
        low, high = (theta, high) if 0.5 + _central_area(theta, degrees) / 2 < probability else (low, theta)
    return math.tan((low + high) / 2) * math.sqrt(degrees)


def _central_area(theta: float, degrees: int) -> float:
    """Return P(|t| < sqrt(degrees) * tan(theta))."""
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0
    for j in range(2 if odd else 1, degrees, 2):
        total += term
        term *= cosine * cosine * j / (j + 1)
    return (theta + sine * total) * 2 / math.pi if odd else sine * total


def share_interval(k: int, n: int, *, level: float = 0.95) -> Interval:
    """Return the share k / n with its score interval (Wilson 1927), which holds at small n and at 0 and n too.

    Args:
        k: successes, in [0, n].
        n: trials, at least 1.
        level: confidence, in (0, 1).

    Raises:
        InputError: a number breaks its rule.

    Example:
        >>> found = share_interval(7, 8)
        >>> found.mean, round(found.low, 3), round(found.high, 3)
        (0.875, 0.529, 0.978)
    """
    check_whole("n", n, 1)
    check_whole("k", k, 0)
    if k > n:
        raise InputError(f"k = {k}, n = {n}", "there are no more successes than trials", "Count them again.")
    z = NormalDist().inv_cdf(0.5 + check_level(level) / 2.0)
    share = k / n
    center = (share + z * z / (2 * n)) / (1.0 + z * z / n)
    half = z / (1.0 + z * z / n) * math.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n))
    return Interval(share, max(0.0, center - half), min(1.0, center + half), n, level, "Wilson")


def mean_interval(values: npt.ArrayLike, *, level: float = 0.95, seed: int = 0, resamples: int = 20_000) -> Interval:
    """Return an interval for the mean of independent runs; for paired arms pass the differences.

    With 10 runs or more, the expanded percentile bootstrap: percentiles of resampled means, moved outwards so that they
    do not undercover at small n (`alpha' = Phi(-sqrt(n/(n-1)) * t)`; Hesterberg 2015, "What Teachers Should Know About
    the Bootstrap"). With fewer, Student's t interval. Seeded: the same values give the same interval.

    Args:
        values: shape (n,), one number per independent run, n >= 2.
        level: confidence, in (0, 1).
        seed: of the resampling.
        resamples: number of bootstrap samples.

    Raises:
        InputError: fewer than two runs (one run has no interval), or a value that is not finite.

    Example:
        >>> print(mean_interval([1.0, 2.0, 3.0]))
        +2.000 [-0.484, +4.484] (n=3, 95% t)
    """
    x = as_floats("runs", values)
    if x.ndim != 1 or len(x) < 2 or not np.isfinite(x).all():
        raise InputError(f"runs of shape {x.shape}", "an interval needs two or more finite runs", "Run more seeds.")
    check_level(level)
    check_whole("seed", seed, 0)
    check_whole("resamples", resamples, 1)
    n, mean = len(x), float(x.mean())
    t = t_quantile(0.5 + level / 2, n - 1)
    if n < BOOTSTRAP_MIN_RUNS:
        half = t * float(x.std(ddof=1)) / math.sqrt(n)
        return Interval(mean, mean - half, mean + half, n, level, "t")
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * t)
    rng = np.random.default_rng(seed)
    means = x[rng.integers(0, n, size=(resamples, n))].mean(axis=1)
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Interval(mean, float(low), float(high), n, level, "bootstrap")


def robust_spread(values: npt.ArrayLike, counts: npt.ArrayLike) -> float:
    """Return the standard deviation of values clipped to their 1 % and 99 % quantiles, in their unit.

    One extreme reward among a thousand changes it little. If the clipped values are all equal (fewer than 1 % differ),
    it is the plain standard deviation; it is 0 only if all values are equal, or there are none.

    Args:
        values: shape (B,), distinct values.
        counts: shape (B,), the frequency of each value.

    Example:
        >>> robust_spread([0.0, 1.0], [50, 50])
        0.5
    """
    x, n = as_floats("values", values), as_floats("counts", counts)
    if x.shape != n.shape:
        raise InputError(f"{len(x)} values and {len(n)} counts", "each value must have a count", "Align them.")
    if not n.sum() > 0:
        return 0.0
    order = np.argsort(x, kind="stable")
    x, n = x[order], n[order]
    rank = np.cumsum(n) / n.sum()  # the two cuts are symmetric: losses and gains are treated alike
    low, high = x[np.searchsorted(rank, 0.01, side="right")], x[min(int(np.searchsorted(rank, 0.99)), len(x) - 1)]
    for candidate in (np.clip(x, low, high), x):
        if candidate[0] != candidate[-1]:
            mean = np.average(candidate, weights=n)
            return float(np.sqrt(np.average((candidate - mean) ** 2, weights=n)))
    return 0.0


def robust_moments(values: npt.ArrayLike) -> tuple[float, float]:
    """Return the mean and the standard deviation of values clipped at both ends, in their unit.

    The lowest and the highest 1 %, but at least one value at each end, count as the next one. More count so where a few
    absurd values would set the unit of all others: as many as leave any deviation at all, at most 10 % at each end, if
    the deviation is then less than a 30th. Successes that are rare among equal values are no such case.

    If all clipped values are equal but for rounding, to v, the mean is v, and the deviation is `|v|`, or that of all
    values if v is 0; it is 0 if all values are equal, or there are none.

    Args:
        values: shape (n,).

    Example:
        >>> robust_moments([0.0, 1.0, 0.0, 1.0, 1e6])
        (0.6, 0.48989794855663565)
        >>> robust_moments([0.0, 1.0] * 50 + [1e6] * 5)[1] < 0.5
        True
    """
    x = np.sort(as_floats("values", values))
    if not len(x):
        return 0.0, 0.0
    clipped = _clipped(x, max(1, len(x) // 100))
    if not _equal(clipped):
        bulk = _clipped(x, _most_clipped(x))
        if float(clipped.std()) > _ABSURD * float(bulk.std()):
            clipped = bulk
        return float(clipped.mean()), float(clipped.std())
    middle = float(x[len(x) // 2])
    return middle, 0.0 if _equal(x) else abs(middle) or float(x.std())


def recent_moments(latest: Sequence[tuple[str, float]], task: str | None) -> tuple[float, float, int]:
    """Return the robust mean and deviation of the latest returns, in their unit, and the number of these returns.

    They are those of the task if 16 or more of the returns are, else all of them: a task of 350 points does not set
    the unit of a task of 1 point.

    Args:
        latest: (task, return) of the latest steps, at most `N_RECENT` of them.
        task: the task being played, if any.

    Example:
        >>> recent_moments([("game", 0.0), ("game", 350.0)] * 20 + [("shop", 0.0), ("shop", 1.0)] * 20, "shop")
        (0.5, 0.5, 40)
    """
    returns = [latest[at][1] for at in recent_of_task([of for of, _ in latest], task)]
    return *robust_moments(returns), len(returns)


def recent_of_task(tasks: Sequence[str], task: str | None) -> list[int]:
    """Return the positions of the latest steps that count for a task: its own if they are 16 or more, else all.

    Example:
        >>> recent_of_task(["game", "shop"] * 20, "shop")[:3], recent_of_task(["game", "shop"], "shop")
        ([1, 3, 5], [0, 1])
    """
    of_task = [at for at, of in enumerate(tasks) if of == task]
    return of_task if len(of_task) >= _ENOUGH_OF_TASK else list(range(len(tasks)))


def _clipped(ascending: Floats, n: int) -> Floats:
    """Return the values with the n lowest and the n highest of them as the next one; themselves if too few are left."""
    return np.clip(ascending, ascending[n], ascending[-1 - n]) if len(ascending) > 2 * n else ascending


def _most_clipped(ascending: Floats) -> int:
    """Return the largest n, at most a tenth of the values, with which the clipped values are not all equal."""
    low, high = 0, len(ascending) // 10
    while low < high:  # more clipped values are never less equal
        middle = (low + high + 1) // 2
        low, high = (low, middle - 1) if _equal(_clipped(ascending, middle)) else (middle, high)
    return low


def _equal(ascending: Floats) -> bool:
    """Return whether all values are equal but for the rounding of sums."""
    largest = max(abs(float(ascending[0])), abs(float(ascending[-1])))
    return float(ascending[-1]) - float(ascending[0]) <= _SUM_ROUNDING * largest


def difference_interval(first: npt.ArrayLike, second: npt.ArrayLike, *, level: float = 0.95) -> Interval:
    """Return an interval for the mean of `first` less the mean of `second`, two independent groups.

    Welch's t interval (Welch 1947), its degrees of freedom by Satterthwaite's formula, rounded down. Its `n` is the
    size of the smaller group.

    Args:
        first, second: shape (n,), one number per independent run, n >= 2 each.
        level: confidence, in (0, 1).

    Raises:
        InputError: a group has fewer than two runs, or a value is not finite; or the level breaks its rule.

    Example:
        >>> print(difference_interval([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]))
        +1.000 [-1.267, +3.267] (n=3, 95% Welch)
    """
    x, y = _group("first", first), _group("second", second)
    check_level(level)
    n = min(len(x), len(y))
    difference = float(x.mean() - y.mean())
    a, b = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
    degrees = n - 1
    if a + b > 0.0:
        share = a / (a + b)  # (a + b)^2 / (a^2 / (n_x - 1) + b^2 / (n_y - 1)), without squares that underflow
        degrees = max(1, int(1.0 / (share**2 / (len(x) - 1) + (1.0 - share) ** 2 / (len(y) - 1)) + 1e-9))
    half = t_quantile(0.5 + level / 2, degrees) * math.sqrt(a + b)
    return Interval(difference, difference - half, difference + half, n, level, "Welch")


def permutation_p_value(
    first: npt.ArrayLike, second: npt.ArrayLike, *, seed: int = 0, permutations: int = 9999
) -> float:
    """Return the two-sided p-value of "the two groups are exchangeable" by the difference of their means.

    `p = (1 + #{|d*| >= |d|}) / (1 + permutations)`, d* the difference after a random division into groups of the same
    sizes: never below `1 / (1 + permutations)`, and P(p <= x) <= x for every x if the runs are exchangeable (Phipson
    and Smyth 2010, "Permutation p-values should never be zero"). Seeded.

    Args:
        first, second: shape (n,), one number per run, n >= 2 each.
        seed: of the divisions.
        permutations: the number of divisions, at least 1.

    Raises:
        InputError: a value breaks its rule.

    Example:
        >>> permutation_p_value([1.0, 2.0], [1.0, 2.0])
        1.0
    """
    x, y = _group("first", first), _group("second", second)
    check_whole("seed", seed, 0)
    check_whole("permutations", permutations, 1)
    pooled = np.concatenate([x, y])
    pooled = pooled - pooled.mean()  # then |d| is proportional to |the sum of the first group|
    if largest := float(np.abs(pooled).max()):
        pooled /= largest
    seen = abs(float(pooled[: len(x)].sum())) - _TIE * len(pooled)
    rng = np.random.default_rng(seed)
    as_far = 0
    size = max(1, _CHUNK // len(pooled))
    for start in range(0, permutations, size):
        rows = np.tile(pooled, (min(size, permutations - start), 1))
        shuffled = rng.permuted(rows, axis=1)[:, : len(x)].sum(axis=1)
        as_far += int((np.abs(shuffled) >= seen).sum())
    return (1 + as_far) / (1 + permutations)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return p-values adjusted for multiple tests: rejecting those up to `level` has a family-wise error of `level`.

    In ascending order the i-th (from 0) is `max_{j<=i} min(1, (m - j) * p[j])` (Holm 1979, "A simple sequentially
    rejective multiple test procedure"); valid under any dependence between the tests.

    Args:
        p_values: shape (m,), each in [0, 1].

    Raises:
        InputError: one is not in [0, 1].

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    p = as_floats("p-values", p_values)
    if p.ndim != 1 or not ((p >= 0.0) & (p <= 1.0)).all():
        raise InputError(f"p-values {p.tolist()[:5]}", "p-values must have shape (m,) and be in [0, 1]", "Check them.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))) if len(p) else 0.0
    return adjusted


def _group(name: str, values: npt.ArrayLike) -> Floats:
    x = as_floats(f"{name} runs", values)
    if x.ndim != 1 or len(x) < 2 or not np.isfinite(x).all():
        raise InputError(f"{name}: runs of shape {x.shape}", "a group needs two or more finite runs", "Run more.")
    return x
