"""How much better each action turned out than what the policy would have got anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from seasoned.core.arrays import as_floats
from seasoned.core.exploration import ExplorationBonus
from seasoned.errors import InputError

__all__ = ["AdvantageEstimator", "Baseline", "Estimate", "Scale"]

Floats = npt.NDArray[np.float64]
Baseline = Literal["neighbors", "base_policy"]
Scale = Literal["none", "spread"]


@dataclass(frozen=True)
class Estimate:
    """For C candidates: `values` (plain means, NaN where untried), `advantages`, `bonuses`; V and the scale."""

    values: Floats
    advantages: Floats
    bonuses: Floats
    baseline: float | None
    scale: float


@dataclass(frozen=True, slots=True)
class AdvantageEstimator:
    """Turns evidence into advantages: `A(a) = (Q(a) - V) / scale`, and 0 for an untried action.

    `Q(a) = (totals[a] + kappa * mu) / (weights[a] + kappa)`: the weighted mean return of the neighbours that took `a`,
    shrunk towards the mean return `mu` of all neighbours. It is the posterior mean of an action's value where values
    scatter around `mu` with variance t2 and returns around values with variance s2, for `kappa = s2 / t2`. At kappa = 0
    it is the plain mean of JitRL, arXiv 2601.18510. An action seen once moves neither itself nor V very far.

    `V`, by `baseline`:
        `neighbors`: the weighted mean return of all neighbours, candidates or not (JitRL, arXiv 2601.18510);
        `base_policy`: `sum pi(a) Q(a) / sum pi(a)` over the tried candidates, pi being the model's own policy. Ours: as
        the policy improves, neighbours agree, a visit-weighted mean approaches Q of the best action, and the advantage
        that made the policy good vanishes. The value of the *base* policy does not move with the visits.

    `scale`: `none`, or `spread`: the namespace's robust spread of mean returns by state and action, so that beta means
    the same in every task, and does not come to mean more as visits gather at one action.
    `kappa`: in steps; the evidence at which half of an action's difference from `mu` counts.

    The presets of `seasoned.JitRL` are configurations of this one estimator.

    Example:
        >>> estimate = AdvantageEstimator("neighbors", kappa=0.0).estimate(
        ...     weights=np.array([2.0, 1.0]), totals=np.array([2.0, 0.4]), base_probs=np.array([0.5, 0.5]),
        ...     neighbor_weight=3.0, neighbor_total=2.4, n_neighbors=3, spread=1.0, rng=np.random.default_rng(0))
        >>> estimate.advantages.round(3).tolist()
        [0.2, -0.4]
    """

    baseline: Baseline = "base_policy"
    scale: Scale = "spread"
    kappa: float = 1.0
    exploration: ExplorationBonus | None = None

    def __post_init__(self) -> None:
        for name, value, kind in (("baseline", self.baseline, Baseline), ("scale", self.scale, Scale)):
            if value not in get_args(kind):
                raise InputError(f"{name} = {value!r}", f"{name} is one of {', '.join(get_args(kind))}", "Choose one.")
        as_floats("kappa", [self.kappa])
        if not 0.0 <= self.kappa < float("inf"):
            raise InputError(
                f"kappa = {self.kappa}", "kappa is finite and at least 0 steps", "0 switches shrinkage off."
            )

    def estimate(
        self,
        *,
        weights: Floats,
        totals: Floats,
        base_probs: Floats,
        neighbor_weight: float,
        neighbor_total: float,
        n_neighbors: int,
        spread: float,
        rng: np.random.Generator,
    ) -> Estimate:
        """Return the advantages of C candidates.

        Args:
            weights: shape (C,), summed neighbour weight per candidate; 0 where untried.
            totals: shape (C,), weighted sums of returns, in reward units.
            base_probs: shape (C,), the model's own policy.
            neighbor_weight, neighbor_total: the same two sums over all neighbours, candidates or not.
            n_neighbors: stored steps among the neighbours.
            spread: robust return spread, in reward units; 0 when all returns are equal.
            rng: for the exploration bonus.

        Returns:
            The estimate; `baseline` is None when no neighbour speaks for it.
        """
        tried = weights > 0
        values = np.full(len(weights), np.nan)
        np.divide(totals, weights, out=values, where=tried)
        mu = neighbor_total / neighbor_weight if neighbor_weight > 0 else 0.0
        shrunk = (totals[tried] + self.kappa * mu) / (weights[tried] + self.kappa)
        baseline = self._baseline(shrunk, base_probs[tried], neighbor_weight, mu)
        scale = spread if self.scale == "spread" and spread > 0 else 1.0
        advantages = np.zeros(len(weights))
        if baseline is not None:
            advantages[tried] = (shrunk - baseline) / scale
        bonuses = np.zeros(len(weights))
        if self.exploration is not None:
            bonuses[~tried] = self.exploration.draw(int((~tried).sum()), n_neighbors=n_neighbors, rng=rng) / scale
        return Estimate(values, advantages + bonuses, bonuses, baseline, scale)

    def _baseline(self, shrunk: Floats, base_probs: Floats, neighbor_weight: float, mu: float) -> float | None:
        if self.baseline == "neighbors":
            return mu if neighbor_weight > 0 else None
        if not len(shrunk):
            return None
        # A prior may be so sharp that the tried actions' probabilities underflow; their ratios still mean something.
        pi = np.maximum(base_probs, np.finfo(np.float64).tiny)
        return float(pi @ shrunk / pi.sum())
