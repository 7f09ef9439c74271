"""Returns of a finished episode."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seasoned.core.arrays import Floats, as_floats
from seasoned.errors import InputError, excerpt

__all__ = ["check_gamma", "discounted_returns", "gamma_for_horizon"]


def check_gamma(gamma: float) -> float:
    """Return `gamma` if it is a discount, in [0, 1].

    Raises:
        InputError: it is not.

    Example:
        >>> check_gamma(0.95)
        0.95
    """
    if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0.0 <= gamma <= 1.0:
        raise InputError(f"gamma = {excerpt(gamma)}", "a discount is in [0, 1]", "Try 0.95, or 1 - 1/horizon.")
    return float(gamma)


def discounted_returns(rewards: npt.ArrayLike, gamma: float) -> Floats:
    """Return the discounted return of each step: the Monte-Carlo returns.

    `G[t] = sum_{u >= t} gamma^(u-t) * r[u]`, computed by its recursion `G[t] = r[t] + gamma * G[t+1]`.
    Source: JitRL, arXiv 2601.18510, the definition of the return. Rewards are stored and returns are derived, so a
    correction of one reward corrects every return before it.

    Args:
        rewards: shape (T,), in reward units; `rewards[t]` follows the action taken at step t.
        gamma: the discount, in [0, 1].

    Returns:
        Shape (T,), in reward units.

    Raises:
        InputError: gamma is outside [0, 1], a reward is not finite, or the shape is not (T,).

    Example:
        >>> discounted_returns([0.0, 0.0, 1.0], gamma=0.5).tolist()
        [0.25, 0.5, 1.0]
    """
    check_gamma(gamma)
    values = as_floats("rewards", rewards)
    if values.ndim != 1:
        rule = "rewards must have shape (T,)"
        raise InputError(f"rewards of shape {values.shape}", rule, "Pass one episode at a time.")
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"rewards[{at}] = {values[at]}", "a reward is finite", "Find out where it was computed.")
    returns = np.empty_like(values)
    following = 0.0
    for t in range(len(values) - 1, -1, -1):
        following = float(values[t]) + gamma * following
        returns[t] = following
    if not np.isfinite(returns).all():
        raise InputError(f"returns up to {np.abs(values).max()} a step", "a return is finite", "Scale the rewards.")
    return returns


def gamma_for_horizon(horizon_steps: float) -> float:
    """Return the discount under which a reward `horizon_steps` away keeps about 1/e of its weight.

    `gamma = 1 - 1/horizon`: the effective horizon `1 / (1 - gamma)` equals the task's length.

    Raises:
        InputError: the horizon is below one step.

    Example:
        >>> gamma_for_horizon(20)
        0.95
    """
    if not horizon_steps >= 1:
        raise InputError(
            f"horizon_steps = {horizon_steps}", "a horizon is at least one step", "Pass a typical episode length."
        )
    return 1.0 - 1.0 / horizon_steps
