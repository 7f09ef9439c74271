"""Bonuses for actions that nobody tried here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seasoned.core.arrays import as_floats
from seasoned.errors import InputError

__all__ = ["ExplorationBonus"]


@dataclass(frozen=True, slots=True)
class ExplorationBonus:
    """Optimism about unseen actions: `Q(a) = V + alpha / n` with probability `rate`, else `Q(a) = V`.

    `n` is the number of neighbours, so that the bonus fades as evidence gathers. One draw per unseen action. Source:
    JitRL, arXiv 2601.18510, the exploration bonus (there lambda is our `rate`).

    Args:
        alpha: in reward units, finite and >= 0.
        rate: probability of the bonus, in [0, 1].

    Example:
        >>> ExplorationBonus(alpha=5.0, rate=1.0).draw(2, n_neighbors=10, rng=np.random.default_rng(0)).tolist()
        [0.5, 0.5]
    """

    alpha: float
    rate: float

    def __post_init__(self) -> None:
        as_floats("alpha and rate", [self.alpha, self.rate])
        if not 0.0 <= self.alpha < float("inf"):
            raise InputError(f"alpha = {self.alpha}", "alpha is finite and at least 0", "The paper's games use 5.")
        if not 0.0 <= self.rate <= 1.0:
            raise InputError(f"rate = {self.rate}", "a rate is a probability in [0, 1]", "The `seed` preset uses 0.3.")

    def draw(self, n_unseen: int, *, n_neighbors: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Return the bonus of each unseen action, shape (n_unseen,), in reward units.

        Without neighbours every action is unseen, a common bonus shifts nothing, and `alpha` itself is used.
        """
        fires = rng.random(n_unseen) < self.rate
        return np.where(fires, self.alpha / max(n_neighbors, 1), 0.0)
