"""From who beat whom to how much better each is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number
from seasoned.core.arrays import as_floats
from seasoned.errors import InputError
from seasoned.types import Floats

__all__ = ["bradley_terry"]

_TOLERANCE = 1e-10
_ROUNDING = 1e-12
_MAX_ITERATIONS = 200


def bradley_terry(wins: npt.ArrayLike, *, prior_sd: float = 1.0) -> Floats:
    """Return the most likely strengths of N contestants, in nats (log-odds): they sum to 0.

    The model is `P(i beats j) = 1 / (1 + exp(-(theta_i - theta_j)))` (Bradley and Terry 1952, "Rank Analysis of
    Incomplete Block Designs"), so that a difference of strengths is the log-odds of being preferred, as in preference
    learning (Christiano et al. 2017, arXiv 1706.03741). They are no advantages: those are in reward units. The estimate
    maximises

        sum_ij wins[i, j] * log P(i beats j) - sum_i theta_i^2 / (2 prior_sd^2)

    which is strictly concave: it exists and is unique also where one never lost, nobody met, or the judgements
    contradict each other in a circle (then all are 0), and it draws little evidence towards 0. Unlike a win rate it
    takes account of whom one met. Found by Newton's method, each step halved until it loses nothing beyond rounding.

    Args:
        wins: shape (N, N), how often i beat j, >= 0; fractions are weights, and a tie is half a win for each.
        prior_sd: standard deviation of the strengths before anything was seen, in nats, > 0.

    Raises:
        InputError: a value breaks one of these rules, or there is nobody.

    Example:
        >>> [round(x, 3) for x in bradley_terry([[0, 3], [1, 0]]).tolist()]
        [0.342, -0.342]
    """
    won = as_floats("wins", wins)
    if won.ndim != 2 or won.shape[0] != won.shape[1] or not won.size or not np.isfinite(won).all() or won.min() < 0:
        raise InputError(
            f"wins of shape {won.shape}", "they are a square table of finite numbers >= 0", "Count who beat whom."
        )
    if np.diagonal(won).any():
        raise InputError("wins on the diagonal", "nobody beats itself", "Set the diagonal to 0.")
    if check_number("prior_sd", prior_sd) <= 0:
        raise InputError(f"prior_sd = {prior_sd}", "a standard deviation is above 0", "Try 1.")
    precision = prior_sd**-2
    theta = np.zeros(len(won))

    def value(at: Floats) -> float:
        gaps = at[:, None] - at[None, :]
        return float(-(won * np.logaddexp(0.0, -gaps)).sum() - precision * (at @ at) / 2)

    for _ in range(_MAX_ITERATIONS):
        beats = np.exp(-np.logaddexp(0.0, theta[None, :] - theta[:, None]))  # the transpose is 1 - beats, uncancelled
        gradient = (won * beats.T - won.T * beats).sum(axis=1) - precision * theta
        bends = (won + won.T) * beats * beats.T
        curvature = np.diag(bends.sum(axis=1) + precision) - bends
        step = np.linalg.solve(curvature, gradient)
        here = value(theta)
        # Near the top a step gains less than rounding loses: only what is lost beyond that makes a step too long.
        least = here - _ROUNDING * abs(here)
        scale = 1.0
        while scale > _TOLERANCE and value(theta + scale * step) < least:
            scale /= 2
        theta = theta + scale * step
        if np.abs(step).max() < _TOLERANCE * max(1.0, float(np.abs(theta).max())):
            break
    centred: Floats = theta - theta.mean() + 0.0
    return centred
