"""Optimism about actions of which little is known, in reward units.

Each rule gives what is added to the estimated value of each candidate. `None` in its place explores nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np

from seasoned.core.arrays import Bools, Floats
from seasoned.errors import InputError

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
    """What is known of C candidates.

    Args:
        counts: shape (C,), stored steps among the neighbours; 0 where untried.
        means: shape (C,), plain mean returns, NaN where untried.
        deviations: shape (C,), standard deviations of the returns (population), NaN where untried.
        variances: shape (C,), posterior variances of the values, reward units squared; where untried, the scatter of
            values (1 while all returns are equal).
        baseline: V, which an untried action is taken to be worth.
        n_neighbors: stored steps among the neighbours, whatever was done there.
    """

    counts: Floats
    means: Floats
    deviations: Floats
    variances: Floats
    baseline: float
    n_neighbors: int

    @property
    def untried(self) -> Bools:
        """Shape (C,): which candidates nobody tried here."""
        return np.isnan(self.means)


@runtime_checkable
class Exploration(Protocol):
    """A rule of exploration."""

    def optimism(self, seen: CandidateStats, rng: np.random.Generator) -> Floats:
        """Return what is added to each candidate's value, shape (C,), in reward units; to V where it is untried."""
        ...


def _check(name: str, value: float, rule: str, hint: str, *, most: float = float("inf")) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0.0 <= value <= most or value == float("inf"):
        raise InputError(f"{name} = {value!r}", rule, hint)


@dataclass(frozen=True, slots=True)
class ExplorationBonus:
    """A bonus for untried actions: `Q(a) = V + alpha / n` with probability `rate`.

    Otherwise `Q(a) = V`, or `Q(a) = 0` with `otherwise="zero"`. `n` is the number of neighbours, so that the bonus
    fades as evidence gathers. One draw per untried action. Source: JitRL, arXiv 2601.18510, the exploration bonus
    (there lambda is our `rate`), which takes 0; a value of 0 means nothing where all returns are far from it, so V is
    ours.

    Args:
        alpha: in reward units, finite and >= 0.
        rate: probability of the bonus, in [0, 1].
        otherwise: what an untried action is worth when the bonus does not fire: `baseline` or `zero`.

    Example:
        >>> seen = CandidateStats(np.zeros(2), np.full(2, np.nan), np.full(2, np.nan), np.ones(2), 0.2, n_neighbors=10)
        >>> ExplorationBonus(alpha=5.0, rate=1.0).optimism(seen, np.random.default_rng(0)).tolist()
        [0.5, 0.5]
    """

    alpha: float
    rate: float
    otherwise: Otherwise = "baseline"

    def __post_init__(self) -> None:
        _check("alpha", self.alpha, "alpha is finite and at least 0", "The paper's games use 5.")
        _check("rate", self.rate, "a rate is a probability in [0, 1]", "The `seed` preset uses 0.3.", most=1.0)
        if self.otherwise not in get_args(Otherwise):
            raise InputError(f"otherwise = {self.otherwise!r}", "it is 'baseline' or 'zero'", "Choose one.")

    def optimism(self, seen: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.optimism`.

        Without neighbours every action is untried, a common bonus shifts nothing, and `alpha` itself is used.
        """
        return _bonus(seen, rng, self.alpha, self.rate, 0.0 if self.otherwise == "baseline" else -seen.baseline)


@dataclass(frozen=True, slots=True)
class ConfidenceBonus:
    """The bonus of JitRL's public code for games: rarer where an action that was tried looks reliable.

    `conf(a) = (max(0, mu) / (1 + sigma / mu))^0.65 * max(n / 4, 1)` for actions taken at least twice, with the mean mu
    and the standard deviation sigma of their returns; `rate = clip(1 / (1 + max conf), 0.05, 0.8)`, 0.8 if there is
    none. Else `Q(a) = 0`. For comparison: `conf` has the unit of a return to the power 0.65, so the rate depends on
    whether points are counted in ones or in hundreds.

    Args:
        alpha: in reward units, finite and >= 0.

    Example:
        >>> seen = CandidateStats(np.array([4, 0]), np.array([1, np.nan]), np.array([0, np.nan]), np.ones(2), 1.0, 4)
        >>> ConfidenceBonus(alpha=1.0).rate(seen)
        0.5
    """

    alpha: float

    def __post_init__(self) -> None:
        _check("alpha", self.alpha, "alpha is finite and at least 0", "The public code uses 1.")

    def rate(self, seen: CandidateStats) -> float:
        """Return the probability with which an untried action gets the bonus."""
        judged = seen.counts >= 2
        if not judged.any():
            return 0.8
        mu, sigma, n = seen.means[judged], seen.deviations[judged], seen.counts[judged]
        good = mu > 0.0
        conf = np.zeros(len(mu))
        conf[good] = (mu[good] / (1.0 + sigma[good] / mu[good])) ** 0.65 * np.maximum(n[good] / 4.0, 1.0)
        return float(np.clip(1.0 / (1.0 + conf.max()), 0.05, 0.8))

    def optimism(self, seen: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.optimism`."""
        return _bonus(seen, rng, self.alpha, self.rate(seen), -seen.baseline)


def _bonus(seen: CandidateStats, rng: np.random.Generator, alpha: float, rate: float, otherwise: float) -> Floats:
    untried = seen.untried
    fires = rng.random(int(untried.sum())) < rate
    added = np.zeros(len(untried))
    added[untried] = np.where(fires, alpha / max(seen.n_neighbors, 1), otherwise)
    return added


@dataclass(frozen=True, slots=True)
class UCB:
    """An upper confidence bound: `Q(a) + c sqrt(2 ln(1 + N) var(a))`, N being the number of neighbours.

    UCB1 (Auer, Cesa-Bianchi and Fischer 2002, Machine Learning 47, theorem 1) with the posterior variance
    `s2 / (n + kappa)` in place of `1 / n`, which is for rewards in [0, 1] of unknown variance. An untried action has
    the scatter of values, so it is tried once `ln N` has grown enough, and not before everything else.

    Args:
        c: 1 is the theory's; smaller explores less.

    Example:
        >>> seen = CandidateStats(np.ones(1), np.zeros(1), np.zeros(1), np.array([0.5]), 0.0, n_neighbors=1)
        >>> UCB().optimism(seen, np.random.default_rng(0)).round(3).tolist()
        [0.833]
    """

    c: float = 1.0

    def __post_init__(self) -> None:
        _check("c", self.c, "c is finite and at least 0", "1 is the theory's.")

    def optimism(self, seen: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.optimism`."""
        del rng
        result: Floats = self.c * np.sqrt(2.0 * np.log1p(seen.n_neighbors) * seen.variances)
        return result


@dataclass(frozen=True, slots=True)
class Thompson:
    """A draw from the posterior of each value, `N(Q(a), s2 / (n + kappa))`, in place of its mean.

    Thompson 1933, Biometrika 25; for Gaussian values Agrawal and Goyal 2013 (AISTATS). An untried action is drawn about
    V with the scatter of values. With `selection="argmax"` this is Thompson sampling; sampling from the modulated
    policy as well is noisier.

    Args:
        scale: 1 draws from the posterior; smaller explores less.

    Example:
        >>> seen = CandidateStats(np.ones(1), np.zeros(1), np.zeros(1), np.array([0.0]), 0.0, n_neighbors=1)
        >>> Thompson().optimism(seen, np.random.default_rng(0)).tolist()
        [0.0]
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        _check("scale", self.scale, "scale is finite and at least 0", "1 draws from the posterior.")

    def optimism(self, seen: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.optimism`."""
        result: Floats = self.scale * np.sqrt(seen.variances) * rng.standard_normal(len(seen.counts))
        return result


@dataclass(frozen=True, slots=True)
class CountBonus:
    """A bonus that falls with the visits: `alpha / sqrt(1 + n(a))`.

    MBIE-EB (Strehl and Littman 2008, J. Comput. Syst. Sci. 74) with one visit added, so that an untried action has a
    finite bonus. With values backed up through the memory graph the bonus is looked for ahead as well, see
    `seasoned.core.ValueGraph`.

    Args:
        alpha: the bonus of an untried action, in reward units, finite and >= 0.

    Example:
        >>> seen = CandidateStats(np.array([3]), np.zeros(1), np.zeros(1), np.zeros(1), 0.0, n_neighbors=3)
        >>> CountBonus(alpha=1.0).optimism(seen, np.random.default_rng(0)).tolist()
        [0.5]
    """

    alpha: float

    def __post_init__(self) -> None:
        _check("alpha", self.alpha, "alpha is finite and at least 0", "A tenth of the largest return is a start.")

    def optimism(self, seen: CandidateStats, rng: np.random.Generator) -> Floats:
        """See `Exploration.optimism`."""
        del rng
        result: Floats = self.alpha / np.sqrt(1.0 + seen.counts)
        return result


EXPLORATION_RULES: dict[str, type[Exploration]] = {
    rule.__name__: rule for rule in (ConfidenceBonus, CountBonus, ExplorationBonus, Thompson, UCB)
}
"""The rules by name, for settings that are plain data: a suite's, or those of a command."""
