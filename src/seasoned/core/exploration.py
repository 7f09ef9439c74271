"""Exploration: bonuses for actions with little evidence, in reward units.

Each rule returns the bonus that is added to the estimated value of each candidate. `None` in its place: no exploration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np

from seasoned.checks import check_number, check_one_of
from seasoned.core.arrays import Bools, Floats

__all__ = [
    "EXPLORATION_RULES",
    "UCB",
    "CandidateStats",
    "ConfidenceBonus",
    "CountBonus",
    "Exploration",
    "ExplorationBonus",
    "Otherwise",
    "Thompson",
]

Otherwise = Literal["baseline", "zero"]


@dataclass(frozen=True, slots=True)
class CandidateStats:
    """The evidence about C candidates.

    Args:
        counts: shape (C,), stored steps among the neighbours; 0 where untried.
        means: shape (C,), plain mean returns, NaN where untried.
        deviations: shape (C,), standard deviations of the returns (population), NaN where untried.
        variances: shape (C,), posterior variances of the values, reward units squared; where untried, the scatter of
            values (1 while all returns are equal).
        baseline: V, the assumed value of an untried action.
        n_neighbors: stored steps among the neighbours, with any action.
    """

    counts: Floats
    means: Floats
    deviations: Floats
    variances: Floats
    baseline: float
    n_neighbors: int

    @property
    def untried(self) -> Bools:
        """Shape (C,): whether each candidate is untried."""
        return np.isnan(self.means)


@runtime_checkable
class Exploration(Protocol):
    """A rule of exploration."""

    def bonus(self, stats: CandidateStats, rng: np.random.Generator) -> Floats:
        """Return the bonus on each candidate's value (V if untried), shape (C,), in reward units."""
        ...


@dataclass(frozen=True, slots=True)
class ExplorationBonus:
    """A bonus for untried actions: `Q(a) = V + alpha / n` with probability `rate`.

    Otherwise `Q(a) = V`, or `Q(a) = 0` with `otherwise="zero"`. `n` is the number of neighbours, so the bonus falls as
    evidence grows. One draw per untried action. Source: JitRL, arXiv 2601.18510, the exploration bonus (its lambda is
    our `rate`), which uses 0. A value of 0 is arbitrary if all returns are far from it, so V is our default.

    Args:
        alpha: in reward units, finite and >= 0.
        rate: probability of the bonus, in [0, 1].
        otherwise: the value of an untried action without the bonus: `baseline` or `zero`.

    Example:
        >>> stats = CandidateStats(np.zeros(2), np.full(2, np.nan), np.full(2, np.nan), np.ones(2), 0.2, n_neighbors=10)
        >>> ExplorationBonus(alpha=5.0, rate=1.0).bonus(stats, np.random.default_rng(0)).tolist()
        [0.5, 0.5]
    """

    alpha: float
    rate: float
    otherwise: Otherwise = "baseline"

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0, next_step="The paper's games use 5.")
        check_number("rate", self.rate, 0, 1, next_step="The `seed` preset uses 0.3.")
        check_one_of("otherwise", self.otherwise, get_args(Otherwise))

    def bonus(self, stats: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.bonus`.

        Without neighbours every action is untried, a common bonus shifts nothing, and `alpha` itself is used.
        """
        return _bonus(stats, rng, self.alpha, self.rate, 0.0 if self.otherwise == "baseline" else -stats.baseline)


@dataclass(frozen=True, slots=True)
class ConfidenceBonus:
    """The bonus of JitRL's public code for games: less likely if a tried action looks reliable.

    `conf(a) = (max(0, mu) / (1 + sigma / mu))^0.65 * max(n / 4, 1)` for actions taken at least twice, with the mean mu
    and the standard deviation sigma of their returns; `rate = clip(1 / (1 + max conf), 0.05, 0.8)`, 0.8 if there is no
    such action. Otherwise `Q(a) = 0`. For comparison only: `conf` has the unit of a return to the power 0.65, so the
    rate depends on the unit of the returns.

    Args:
        alpha: in reward units, finite and >= 0.

    Example:
        >>> stats = CandidateStats(np.array([4, 0]), np.array([1, np.nan]), np.array([0, np.nan]), np.ones(2), 1.0, 4)
        >>> ConfidenceBonus(alpha=1.0).rate(stats)
        0.5
    """

    alpha: float

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0, next_step="The public code uses 1.")

    def rate(self, stats: CandidateStats) -> float:
        """Return the probability with which an untried action gets the bonus."""
        repeated = stats.counts >= 2
        if not repeated.any():
            return 0.8
        mu, sigma, n = stats.means[repeated], stats.deviations[repeated], stats.counts[repeated]
        good = mu > 0.0
        conf = np.zeros(len(mu))
        conf[good] = (mu[good] / (1.0 + sigma[good] / mu[good])) ** 0.65 * np.maximum(n[good] / 4.0, 1.0)
        return float(np.clip(1.0 / (1.0 + conf.max()), 0.05, 0.8))

    def bonus(self, stats: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.bonus`."""
        return _bonus(stats, rng, self.alpha, self.rate(stats), -stats.baseline)


def _bonus(stats: CandidateStats, rng: np.random.Generator, alpha: float, rate: float, otherwise: float) -> Floats:
    untried = stats.untried
    fires = rng.random(int(untried.sum())) < rate
    added = np.zeros(len(untried))
    added[untried] = np.where(fires, alpha / max(stats.n_neighbors, 1), otherwise)
    return added


@dataclass(frozen=True, slots=True)
class UCB:
    """An upper confidence bound: `Q(a) + c sqrt(2 ln(1 + N) var(a))`, N the number of neighbours.

    UCB1 (Auer, Cesa-Bianchi and Fischer 2002, Machine Learning 47, theorem 1) with the posterior variance
    `s2 / (n + kappa)` in place of `1 / n`, which is for rewards in [0, 1] of unknown variance. The variance of an
    untried action is the scatter of values, so it is tried when `ln N` is large enough, and not before all others.

    Args:
        c: 1 is the theoretical value; a smaller one explores less.

    Example:
        >>> stats = CandidateStats(np.ones(1), np.zeros(1), np.zeros(1), np.array([0.5]), 0.0, n_neighbors=1)
        >>> UCB().bonus(stats, np.random.default_rng(0)).round(3).tolist()
        [0.833]
    """

    c: float = 1.0

    def __post_init__(self) -> None:
        check_number("c", self.c, 0, next_step="1 is the theoretical value.")

    def bonus(self, stats: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.bonus`."""
        del rng
        result: Floats = self.c * np.sqrt(2.0 * np.log1p(stats.n_neighbors) * stats.variances)
        return result


@dataclass(frozen=True, slots=True)
class Thompson:
    """A draw from the posterior of each value, `N(Q(a), s2 / (n + kappa))`, in place of its mean.

    Thompson 1933, Biometrika 25; for Gaussian values Agrawal and Goyal 2013 (AISTATS). The value of an untried action
    is drawn around V with the scatter of values. With `selection="argmax"` this is Thompson sampling; sampling from the
    modulated policy as well adds noise.

    Args:
        scale: 1 draws from the posterior; smaller explores less.

    Example:
        >>> stats = CandidateStats(np.ones(1), np.zeros(1), np.zeros(1), np.array([0.0]), 0.0, n_neighbors=1)
        >>> Thompson().bonus(stats, np.random.default_rng(0)).tolist()
        [0.0]
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, next_step="1 draws from the posterior.")

    def bonus(self, stats: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.bonus`."""
        result: Floats = self.scale * np.sqrt(stats.variances) * rng.standard_normal(len(stats.counts))
        return result


@dataclass(frozen=True, slots=True)
class CountBonus:
    """A bonus that falls with the number of visits: `alpha / sqrt(1 + n(a))`.

    MBIE-EB (Strehl and Littman 2008, J. Comput. Syst. Sci. 74) with one visit added, so that the bonus of an untried
    action is finite. For values backed up through the memory graph, the graph's `novelty` propagates such a bonus; see
    `seasoned.core.ValueGraph`.

    Args:
        alpha: the bonus of an untried action, in reward units, finite and >= 0.

    Example:
        >>> stats = CandidateStats(np.array([3]), np.zeros(1), np.zeros(1), np.zeros(1), 0.0, n_neighbors=3)
        >>> CountBonus(alpha=1.0).bonus(stats, np.random.default_rng(0)).tolist()
        [0.5]
    """

    alpha: float

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0, next_step="A tenth of the largest return is a start.")

    def bonus(self, stats: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.bonus`."""
        del rng
        result: Floats = self.alpha / np.sqrt(1.0 + stats.counts)
        return result


EXPLORATION_RULES: dict[str, type[Exploration]] = {
    rule.__name__: rule for rule in (ConfidenceBonus, CountBonus, ExplorationBonus, Thompson, UCB)
}
"""The rules by name, for settings in plain data, such as those of a suite or a command."""
