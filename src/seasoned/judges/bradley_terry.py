"""Bradley-Terry strengths of contestants, from pairwise wins."""

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
    Incomplete Block Designs"). A difference of strengths is the log-odds of being preferred, as in preference learning
    (Christiano et al. 2017, arXiv 1706.03741). Strengths are not advantages, which are in reward units. The estimate
    maximises

        sum_ij wins[i, j] * log P(i beats j) - sum_i theta_i^2 / (2 prior_sd^2)

    which is strictly concave. The estimate therefore exists and is unique, also if a contestant never lost, if no two
    met, or if the judgements form a circle (all strengths are then 0); little evidence shrinks towards 0. Unlike a win
    rate it accounts for the strength of opponents. It is found by Newton's method; each step is halved until the value
    decreases by no more than rounding.

    Args:
        wins: shape (N, N), number of wins of i over j, >= 0; fractions are weights, and a tie is half a win for each.
        prior_sd: prior standard deviation of the strengths, in nats, > 0.

    Raises:
        InputError: a value breaks one of these rules, or N is 0.

    Example:
        >>> [round(x, 3) for x in bradley_terry([[0, 3], [1, 0]]).tolist()]
        [0.342, -0.342]
    """
    won = as_floats("wins", wins)
    if won.ndim != 2 or won.shape[0] != won.shape[1] or not won.size or not np.isfinite(won).all() or won.min() < 0:
        raise InputError(
            f"wins of shape {won.shape}",
            "wins must be a square table of finite numbers >= 0",
            "Count the wins of i over j.",
        )
    if np.diagonal(won).any():
        raise InputError("wins on the diagonal", "a contestant does not meet itself", "Set the diagonal to 0.")
    check_number("prior_sd", prior_sd, above=0.0)
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
        # Near the maximum a step gains less than the rounding error: only a greater loss means that it is too long.
        least = here - _ROUNDING * abs(here)
        scale = 1.0
        while scale > _TOLERANCE and value(theta + scale * step) < least:
            scale /= 2
        theta = theta + scale * step
        if np.abs(step).max() < _TOLERANCE * max(1.0, float(np.abs(theta).max())):
            break
    centred: Floats = theta - theta.mean() + 0.0
    return centred
