"""Exploration: bonuses for actions with little evidence, in reward units, and the way back to untried actions.

Each rule returns the bonus that is added to the estimated value of each candidate. `None` in its place: no exploration.
A `FrontierGraph` says how near the next untried action is, and `frontier_shift` turns that into nats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number, check_one_of
from seasoned.core.arrays import Bools, Floats, Ints, as_floats, grow
from seasoned.core.modulation import capped_beta, log_softmax
from seasoned.core.transitions import Transitions, aligned, aligned_priors, whole_numbers
from seasoned.errors import InputError, excerpt

__all__ = [
    "EXPLORATION_RULES",
    "UCB",
    "CandidateStats",
    "ConfidenceBonus",
    "CountBonus",
    "Exploration",
    "ExplorationBonus",
    "FrontierGraph",
    "Otherwise",
    "Thompson",
    "frontier_shift",
]

Otherwise = Literal["baseline", "zero"]

_NEAR = 0.8  # the discount of a frontier one step away
_ENOUGH_MASS = 0.05  # untried actions with so much of the prior together count in full
_TOLERANCE = 1e-4
_LEAST = 1e-3  # 31 steps away
_POWER = 8.0  # a step towards the frontier has exp(8 * 2 * 0.22) = 36 times the odds of one back
_MOST_NATS = 3.0


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


class FrontierGraph:
    """How near the frontier is: `U(s, a)` by stored transitions, whatever they earned.

        U(s, a) = 0.8 mean V(s')        over the stored transitions of a tried action
        V(s) = max(u(s), max_a U(s, a)),   u(s) = min(1, (1 - pi(tried actions)) / 0.05)

    V is 0 after the end of the task and 1 where no action was tried. So `log V / log 0.8` is about the number of steps
    to the nearest action that nobody tried, and untried actions that the prior pi gives less than a twentieth together
    count by their mass. Without a prior no action is known to be untried, u = 0. An untried action has the value 1.

    It goes back to the frontier on purpose ("first return, then explore": Ecoffet, Huizinga, Lehman, Stanley and Clune
    2021, Nature 590; there by a saved state, here by the actions that led there). With a value of 1 for everything
    unknown it is R-MAX (Brafman and Tennenholtz 2002, JMLR 3) on the empirical model, where one visit makes an
    action known. The right hand side is a 0.8-contraction, so that there is one solution.

    Example:
        >>> graph = FrontierGraph()
        >>> graph.add([0, 1], [7, 7], rewards=[0.0, 0.0], next_states=[1, 2])
        >>> graph.converge()
        >>> graph.q([0, 1, 2], [7, 7, 7]).round(2).tolist()
        [0.64, 0.8, nan]
    """

    def __init__(self) -> None:
        self._model = Transitions()
        self._v = np.ones(0)
        self._known = np.zeros(0, dtype=bool)  # an action was tried there
        self._has_prior = np.zeros(0, dtype=bool)
        self._queued = np.zeros(0, dtype=bool)
        self._mass = np.zeros(0)  # by pair, of the prior; 0 where it does not name the action
        self._dirty = np.zeros(0, dtype=np.int64)

    def q(self, states: npt.ArrayLike, actions: npt.ArrayLike) -> Floats:
        """Return U of these pairs, shape (N,), in [0, 0.8]; NaN for an untried action."""
        pairs = self._model.find(*aligned(states, actions))
        values = np.full(len(pairs), np.nan)
        tried = pairs >= 0
        tried[tried] = self._model.n[pairs[tried]] > 0.0
        values[tried] = self._pair_values(pairs[tried])
        return values

    def add(
        self, states: npt.ArrayLike, actions: npt.ArrayLike, rewards: npt.ArrayLike, next_states: npt.ArrayLike
    ) -> None:
        """Store N transitions, as `ValueGraph.add` does; values follow in `converge`.

        Raises:
            InputError: a number is not whole, or the lengths disagree; nothing was stored.
        """
        s, a = aligned(states, actions)
        after, r = whole_numbers("next_states", next_states, least=-2), as_floats("rewards", rewards)
        if not len(s) == len(after) == len(r):
            raise InputError(
                f"{len(s)} states, {len(r)} rewards, {len(after)} next states",
                "a transition must have one of each",
                "Align them.",
            )
        if len(s):
            self._make_states(int(max(s.max(), after.max())) + 1)
            self._model.add(s, a, r, after, np.ones(len(s)))
            self._mass = grow(self._mass, self._model.n_pairs)
            self._update(np.unique(s))

    def clear(self, states: npt.ArrayLike, actions: npt.ArrayLike) -> None:
        """Delete the transitions of these pairs; unknown pairs are ignored."""
        pairs = np.unique(self._model.find(*aligned(states, actions)))
        pairs = pairs[pairs >= 0]
        self._model.clear(pairs)
        self._update(np.unique(self._model.state[pairs]).astype(np.int64))

    def set_priors(self, states: npt.ArrayLike, actions: npt.ArrayLike, probs: npt.ArrayLike) -> None:
        """Set the prior at these states, replacing any earlier one; only tried actions need be named.

        Raises:
            InputError: a value breaks its rule.
        """
        s, a, p = aligned_priors(states, actions, probs)
        touched = np.unique(s)
        if len(touched):
            self._make_states(int(touched[-1]) + 1)
            self._has_prior[touched] = True
            self._mass[self._model.pairs_of.gather(touched)[0]] = 0.0
            pairs = self._model.find(s, a)
            self._mass[pairs[pairs >= 0]] = p[pairs >= 0]
            self._queue(touched[self._known[touched]])

    def converge(self, budget: int | None = None) -> None:
        """Back values up until none moves by more than 0.0001, or about so many pairs and edges were read.

        The next call continues from there.

        Raises:
            InputError: the budget is not above 0.
        """
        left = math.inf if budget is None else check_number("budget", budget, above=0)
        while left > 0.0 and len(self._dirty):
            states, self._dirty = self._dirty, self._dirty[:0]
            self._queued[states] = False
            before = self._v[states]
            n_read = self._back_up(states)
            moved = states[np.abs(self._v[states] - before) > _TOLERANCE]
            edges, _ = self._model.edges_into.gather(moved)
            self._queue(np.unique(self._model.state[self._model.pair[edges]]).astype(np.int64))
            left -= n_read + len(edges)

    def _back_up(self, states: Ints) -> int:
        """Set V of these states from their successors; return how many pairs and edges were read."""
        pairs, which = self._model.pairs_of.gather(states)
        tried = self._model.n[pairs] > 0.0
        pairs, which = pairs[tried], which[tried]
        mass = np.bincount(which, self._mass[pairs], len(states))
        values = np.where(self._has_prior[states], np.clip((1.0 - mass) / _ENOUGH_MASS, 0.0, 1.0), 0.0)
        values[values < _TOLERANCE] = 0.0  # rounding of a prior that was tried in full
        np.maximum.at(values, which, self._pair_values(pairs))
        self._v[states] = np.where(self._known[states], values, 1.0)
        return len(pairs) + int(self._model.edges_of.sizes(pairs).sum()) + 1

    def _pair_values(self, pairs: Ints) -> Floats:
        """Return U of tried pairs from the current V; what follows an episode that was cut off is as if untried."""
        edges, which = self._model.edges_of.gather(pairs)
        n = self._model.edge_n[edges]
        n_led = np.bincount(which, n, len(pairs))
        n_cut = self._model.n[pairs] - n_led - self._model.n_terminal[pairs]
        total = np.bincount(which, n * self._v[self._model.after[edges]], len(pairs)) + np.maximum(n_cut, 0.0)
        values: Floats = _NEAR * total / self._model.n[pairs]
        return values

    def _queue(self, states: Ints) -> None:
        new = states[~self._queued[states]]
        self._queued[new] = True
        self._dirty = np.concatenate([self._dirty, new])

    def _update(self, states: Ints) -> None:
        """After a change of transitions, update which states have tried actions, and queue them."""
        pairs, which = self._model.pairs_of.gather(states)
        self._known[states] = np.bincount(which, self._model.n[pairs] > 0.0, len(states)) > 0.0
        self._queue(states)

    def _make_states(self, n: int) -> None:
        self._v = grow(self._v, n, 1.0)
        self._known, self._queued = grow(self._known, n), grow(self._queued, n)
        self._has_prior = grow(self._has_prior, n)


def frontier_shift(logits: npt.ArrayLike, values: npt.ArrayLike) -> Floats:
    """Return what is added to the logits of C actions to go towards the frontier, shape (C,), in nats, at most 0.

    `beta 8 log(U(a) / max U)`, with the largest beta in [0, 1] for which the policy spends no more nats of KL than the
    entropy of the model's own, and at most 3. So a model that is sure of an action is not moved, and one that is
    even can be moved to any one of 20. Nothing is added where U is even, or below 0.001 everywhere.

    Args:
        logits: shape (C,), of the model's own policy, in nats.
        values: shape (C,), U of each action, in [0, 1]; 1 for an untried one.

    Raises:
        InputError: the lengths disagree, or a value is out of range.

    Example:
        >>> even = np.log([0.5, 0.5])
        >>> bool(frontier_shift(even, [1.0, 0.5])[1] < -3.0)
        True
        >>> frontier_shift(np.log([0.999, 0.001]), [0.5, 1.0]).round(3).tolist()
        [-1.971, 0.0]
    """
    z, u = as_floats("logits", logits), as_floats("values", values)
    if z.shape != u.shape or not len(z) or not ((u >= 0.0) & (u <= 1.0)).all():
        raise InputError(f"values = {excerpt(values)}", "each action needs a value in [0, 1]", "See FrontierGraph.q.")
    most = float(u.max())
    if most < _LEAST:
        return np.zeros(len(u))
    log_probs = log_softmax(z)
    entropy = -float(np.exp(log_probs) @ log_probs)
    shift: Floats = _POWER * np.log(np.maximum(u, _LEAST * most) / most)
    limit = min(entropy, _MOST_NATS)
    if limit <= 0.0:
        return np.zeros(len(u))
    return capped_beta(log_probs, shift, 1.0, limit) * shift
