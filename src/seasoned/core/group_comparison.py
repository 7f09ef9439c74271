"""Two groups of independent runs compared: an interval for the difference, an exact test, many tests at once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from seasoned.core.arrays import as_floats
from seasoned.core.statistics import Interval, t_quantile
from seasoned.errors import InputError

__all__ = ["difference_interval", "holm", "permutation_p_value"]

_CHUNK = 2_000_000
_TIE = 1e-12


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
    if not 0.0 < level < 1.0:
        raise InputError(f"level = {level}", "a confidence level is in (0, 1)", "0.95 is usual.")
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
        permutations: how many, at least 1.

    Raises:
        InputError: a value breaks its rule.

    Example:
        >>> permutation_p_value([1.0, 2.0], [1.0, 2.0])
        1.0
    """
    x, y = _group("first", first), _group("second", second)
    if seed < 0 or permutations < 1:
        raise InputError(f"seed = {seed}, permutations = {permutations}", "seed >= 0, permutations >= 1", "Change it.")
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


def holm(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return p-values adjusted for being many: those at most `level` reject with a family-wise error of `level`.

    In ascending order the i-th (from 0) is `max_{j<=i} min(1, (m - j) * p[j])` (Holm 1979, "A simple sequentially
    rejective multiple test procedure"); valid however the tests depend on each other.

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
        raise InputError(f"p-values {p.tolist()[:5]}", "p-values have shape (m,) and are in [0, 1]", "Check them.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))) if len(p) else 0.0
    return adjusted


def _group(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    x = as_floats(f"{name} runs", values)
    if x.ndim != 1 or len(x) < 2 or not np.isfinite(x).all():
        raise InputError(f"{name}: runs of shape {x.shape}", "a group has two or more finite runs", "Run more.")
    return x
