"""V from Q under a prior, for many states at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["soft_values"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LEAST_MASS = 1e-290  # products with it are still normal numbers


def soft_values(q: Floats, mass: Floats, group: Ints, has_prior: Bools, beta: float, unnamed_mass: float) -> Floats:
    """Return `V = (1/beta) log sum_a pi(a) exp(beta * Q(a))` of G states; at beta 0 the limit `sum_a pi(a) Q(a)`.

    pi is uniform over the tried actions where a state has no prior. Where it has one: the masses given, of which
    `unnamed_mass` in all goes to the tried actions that it does not name, shared equally, if there are any; what is
    missing to 1 is on untried actions, whose Q is taken to be the pi-weighted mean of the tried ones. V is monotone in
    Q, and a constant added to all Q adds to V: so V moves no further than Q does, and a Bellman step contracts.

    Args:
        q: shape (A,), of the tried actions, in reward units.
        mass: shape (A,), the prior's; NaN where it does not name the action, or there is none.
        group: shape (A,), the state of each, ascending; each of 0 ... G - 1 has one action at least.
        has_prior: shape (G,).
        beta: nats per reward unit, at least 0.
        unnamed_mass: in (0, 1).

    Example:
        >>> q, mass, group = np.array([0.0, 1.0]), np.array([0.25, 0.5]), np.array([0, 0])
        >>> soft_values(q, mass, group, np.array([True]), beta=0.0, unnamed_mass=0.1).round(3)
        array([0.667])
    """
    n = len(has_prior)
    named = has_prior[group] & ~np.isnan(mass)
    own = np.where(named, np.maximum(mass, _LEAST_MASS), 0.0)
    n_unnamed = np.bincount(group[~named], minlength=n)
    to_unnamed = np.where(has_prior, np.where(n_unnamed > 0, unnamed_mass, 0.0), 1.0)
    pi = np.where(named, own * (1.0 - to_unnamed)[group], (to_unnamed / np.maximum(n_unnamed, 1))[group])
    untried = (1.0 - to_unnamed) * np.maximum(0.0, 1.0 - np.bincount(group, own, n))
    tried = np.bincount(group, pi, n)
    # Relative to the best, so that nothing overflows and a large constant costs no digits.
    best = np.maximum.reduceat(q, np.searchsorted(group, np.arange(n)))
    below = q - best[group]
    mean_below = np.bincount(group, pi * below, n) / tried
    if beta == 0.0:
        return best + mean_below
    with np.errstate(over="ignore", divide="ignore"):
        total = tried + untried
        less = np.bincount(group, pi * np.expm1(beta * below), n) + untried * np.expm1(beta * mean_below)
        # Two forms: the first is exact where beta is small, the second where little mass is on the best.
        near = np.log1p(np.maximum(less / total, -0.5))
        far = np.log((np.bincount(group, pi * np.exp(beta * below), n) + untried * np.exp(beta * mean_below)) / total)
        result: Floats = best + np.where(less > -0.5 * total, near, far) / beta
    return result
