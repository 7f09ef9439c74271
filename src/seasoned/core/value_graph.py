"""Value graph: values backed up through the graph of stored transitions, within a budget per call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number
from seasoned.core.arrays import Bools, Floats, Ints, as_floats, grow
from seasoned.core.modulation import check_beta
from seasoned.core.returns import check_gamma
from seasoned.core.transitions import Transitions, aligned, aligned_priors, whole_numbers
from seasoned.errors import InputError, excerpt

__all__ = ["TERMINAL", "UNKNOWN", "ValueGraph", "soft_values"]


TERMINAL = -1
"""As a next state: the task was over, and nothing follows."""

UNKNOWN = -2
"""As a next state: the episode was cut off, and the next state is not known."""

_LEAST_BATCH = 64
_LEAST_MASS = 1e-290  # products with it are still normal numbers
_ROUND_COST = 300  # the fixed time of a round, as a number of pairs and edges backed up in that time


class ValueGraph:
    """The values of KL-regularised control on the stored experience.

    `Q(s, a) = mean over the stored transitions of (r + gamma * V(s'))` (+ a bonus for novelty, if set),
    `V(s) = (1/beta) * log sum_a pi(a|s) exp(beta * Q(s, a))`; at beta 0 its limit `sum_a pi(a|s) Q(s, a)`, for large
    beta nearly the maximum. It is the soft Bellman equation with a prior (Todorov 2006, "Linearly-solvable Markov
    decision problems"; Rubin, Shamir and Tishby 2012, "Trading value and information in MDPs"), on the empirical model
    (certainty equivalence). The right hand side is a gamma-contraction in the sup norm, so there is one solution, also
    with cycles and self-loops, and any order of backups that includes every state converges to it. The order here is
    that of prioritised sweeping (Moore and Atkeson 1993), in batches of states.

    - pi: the probabilities of `set_priors`, or uniform over the tried actions. Tried actions that the prior does not
      name share `UNNAMED_MASS`. Prior mass on untried actions has the prior-weighted mean Q of the tried ones.
    - V = 0 after a terminal transition. If an episode was cut off and the next state is unknown (`UNKNOWN`, or a state
      without tried actions), its reward counts, and the next value is the mean over the other transitions of that
      state and action; without others it is `frontier`, until more is known.
    - `novelty / sqrt(n(s, a))` is added to every Q, so V includes the bonuses of rarely tried actions any number of
      steps ahead: MBIE-EB (Strehl and Littman 2008, J. Comput. Syst. Sci. 74). An untried action has the mean Q of the
      tried ones, so it shares their bonus and has none of its own.
    - Equal transitions are stored once, with a count, and a state and action share one sum of rewards: memory grows
      with distinct transitions.

    Args:
        gamma: discount, in [0, 1).
        beta: nats per unit of reward, at least 0.
        novelty: the bonus of an action tried once, in reward units, at least 0; 0 for no bonus.
        frontier: value of a state without any information, in reward units.
        tolerance: `converge` stops when the error of every value is at most `tolerance` times the largest reward seen.

    Raises:
        InputError: a value breaks its rule.

    Example:
        >>> graph = ValueGraph(gamma=0.5, beta=0.0)
        >>> graph.add([0, 1], [7, 7], rewards=[0.0, 1.0], next_states=[1, TERMINAL])
        >>> graph.converge()
        0.0
        >>> graph.q([0, 1], [7, 7]).tolist()
        [0.5, 1.0]
    """

    UNNAMED_MASS = 0.1

    def __init__(
        self, gamma: float, beta: float, *, novelty: float = 0.0, frontier: float = 0.0, tolerance: float = 1e-6
    ) -> None:
        if not check_gamma(gamma) < 1.0:
            raise InputError(f"gamma = {gamma}", "values on a graph with cycles need gamma below 1", "Try 0.95.")
        self.gamma, self.beta = float(gamma), check_beta(beta)
        self.novelty, self.frontier = check_number("novelty", novelty, at_least=0), check_number("frontier", frontier)
        self.tolerance = check_number("tolerance", tolerance, above=0, below=1)
        self._model = Transitions()
        # By state.
        self._v = np.zeros(0)
        self._pending = np.zeros(0)  # at least |backup of V(s) - V(s)|
        self._known = np.zeros(0, dtype=bool)  # an action was tried there
        self._queued = np.zeros(0, dtype=bool)
        self._moves = np.zeros(0)  # scratch, all 0
        self._has_prior = np.zeros(0, dtype=bool)
        # By pair of a state and an action.
        self._mass = np.zeros(0)  # of the prior; NaN where it does not name the action
        self._n_followed = np.zeros(0)  # transitions after which V was known, at the last backup
        self._pair_moves = np.zeros(0)  # scratch, all 0
        self._dirty = np.zeros(0, dtype=np.int64)
        self._largest = max(abs(self.frontier), self.novelty)

    # ------------------------------------------------------------------------------------------ contents

    @property
    def n_pairs(self) -> int:
        """Pairs of a state and an action that were ever stored."""
        return self._model.n_pairs

    @property
    def n_edges(self) -> int:
        """Distinct transitions with a next state."""
        return self._model.n_edges

    @property
    def nbytes(self) -> int:
        """The size of the arrays, in bytes."""
        arrays = (
            self._model,
            self._v,
            self._pending,
            self._known,
            self._queued,
            self._moves,
            self._has_prior,
            self._mass,
            self._n_followed,
            self._pair_moves,
            self._dirty,
        )
        return sum(array.nbytes for array in arrays)

    @property
    def error_bound(self) -> float:
        """The largest possible error of any V, in reward units; infinite until new transitions are backed up.

        It is the largest pending change of a V, over `1 - gamma`.
        """
        return float(self._pending.max(initial=0.0)) / (1.0 - self.gamma)

    def v(self, states: npt.ArrayLike) -> Floats:
        """Return V of these states, shape (N,), in reward units; NaN for a state without tried actions."""
        wanted = whole_numbers("states", states)
        values = np.full(len(wanted), np.nan)
        there = wanted < len(self._known)
        there[there] = self._known[wanted[there]]
        values[there] = self._v[wanted[there]]
        return values

    def q(self, states: npt.ArrayLike, actions: npt.ArrayLike) -> Floats:
        """Return Q of these pairs, shape (N,), in reward units; NaN for an untried action."""
        pairs = self._model.find(*aligned(states, actions))
        values = np.full(len(pairs), np.nan)
        tried = pairs >= 0
        tried[tried] = self._model.n[pairs[tried]] > 0.0
        values[tried] = self._pair_values(pairs[tried])
        return values

    # ------------------------------------------------------------------------------------------ experience

    def add(
        self,
        states: npt.ArrayLike,
        actions: npt.ArrayLike,
        rewards: npt.ArrayLike,
        next_states: npt.ArrayLike,
        counts: npt.ArrayLike | None = None,
    ) -> None:
        """Store N transitions; values follow in `converge`.

        Args:
            states, actions: shape (N,), whole numbers from 0; arrays by state are as long as the largest number.
            rewards: shape (N,), finite, in reward units.
            next_states: shape (N,); `TERMINAL` or `UNKNOWN` if there is none.
            counts: shape (N,), the frequency of each, above 0; None: once each. Expected proportions are valid too.

        Raises:
            InputError: a value breaks its rule; nothing was stored.
        """
        s, a = aligned(states, actions)
        after = whole_numbers("next_states", next_states, least=UNKNOWN)
        r = as_floats("rewards", rewards)
        n = np.ones(len(s)) if counts is None else as_floats("counts", counts)
        if not len(s) == len(after) == len(r) == len(n):
            raise InputError(
                f"{len(s)} states, {len(r)} rewards, {len(after)} next states, {len(n)} counts",
                "a transition must have one of each",
                "Align them.",
            )
        if not (np.isfinite(r).all() and np.isfinite(n).all() and (n > 0.0).all()):
            raise InputError(
                f"rewards {excerpt(rewards)}, counts {excerpt(counts)}",
                "both must be finite, and counts above 0",
                "Correct the computation that produced them.",
            )
        if not len(s):
            return
        self._largest = max(self._largest, float(np.abs(r).max()))
        self._make_states(int(max(s.max(), after.max())) + 1)
        self._model.add(s, a, r, after, n)
        self._make_pairs(self._model.n_pairs)
        self._update_known(np.unique(s))

    def clear(self, states: npt.ArrayLike, actions: npt.ArrayLike) -> None:
        """Delete the transitions of these pairs, so that they can be added again; unknown pairs are ignored."""
        pairs = np.unique(self._model.find(*aligned(states, actions)))
        pairs = pairs[pairs >= 0]
        self._model.clear(pairs)
        self._update_known(np.unique(self._model.state[pairs]).astype(np.int64))

    def set_priors(self, states: npt.ArrayLike, actions: npt.ArrayLike, probs: npt.ArrayLike) -> None:
        """Set pi at these states, replacing any earlier one; only tried actions need be named.

        Args:
            states, actions: shape (N,). Pairs that were never added are left out: they are untried actions.
            probs: shape (N,), in [0, 1]; the probabilities of one state sum to at most 1.

        Raises:
            InputError: a value breaks its rule.
        """
        s, a, p = aligned_priors(states, actions, probs)
        touched = np.unique(s)
        if not len(touched):
            return
        if (np.bincount(np.searchsorted(touched, s), p) > 1.0 + 1e-6).any():
            rule = "the probabilities of a state must sum to at most 1"
            raise InputError(f"probs = {excerpt(probs)}", rule, "Normalise them.")
        self._make_states(int(touched[-1]) + 1)
        self._has_prior[touched] = True
        self._mass[self._model.pairs_of.gather(touched)[0]] = np.nan
        pairs = self._model.find(s, a)
        self._mass[pairs[pairs >= 0]] = p[pairs >= 0]
        self._touch(touched[self._known[touched]])

    # ------------------------------------------------------------------------------------------ values

    def converge(self, budget: int | None = None) -> float:
        """Back values up, the largest pending changes first, until they converge or the budget is spent.

        Args:
            budget: the approximate number of pairs and edges to read, for at least one state; None: no limit. The next
                call continues from there.

        Returns:
            `error_bound`, in reward units.

        Raises:
            InputError: the budget is not above 0.
        """
        if budget is not None and not budget > 0:
            raise InputError(f"budget = {budget}", "budget must be above 0", "Pass None for no limit.")
        left = np.inf if budget is None else float(budget)
        # Changes smaller than the second term are rounding.
        threshold = self._largest * max(self.tolerance * (1.0 - self.gamma), 1e-15 / (1.0 - self.gamma))
        while left > 0.0 and len(self._dirty):
            n_read, affected = self._back_up(self._most_pending(left))
            left -= n_read + _ROUND_COST
            self._queue(affected[self._pending[affected] > threshold])
        return self.error_bound

    def _most_pending(self, left: float) -> Ints:
        """Take from the queue the quarter of states with the largest pending changes, within the budget."""
        dirty = self._dirty
        n = max(_LEAST_BATCH, len(dirty) // 4)
        if n < len(dirty):
            order = np.argpartition(-self._pending[dirty], n)
            taken, self._dirty = dirty[order[:n]], dirty[order[n:]]
        else:
            taken, self._dirty = dirty, dirty[:0]
        # An estimate, since most pairs have one edge.
        cost = np.cumsum(2 * self._model.pairs_of.sizes(taken))
        if cost[-1] > left:
            n = max(1, int(np.searchsorted(cost, left)))
            self._dirty = np.concatenate([self._dirty, taken[n:]])
            taken = taken[:n]
        self._queued[taken] = False
        return taken

    def _back_up(self, states: Ints) -> tuple[int, Ints]:
        """Set V of these states from their successors, and propagate the pending changes to their predecessors.

        Returns:
            The number of pairs and edges read, and the predecessors, with repetition.
        """
        self._pending[states] = 0.0
        states = states[self._known[states]]
        pairs, which = self._model.pairs_of.gather(states)
        tried = self._model.n[pairs] > 0.0
        pairs, which = pairs[tried], which[tried]
        if not len(pairs):
            return 1, pairs
        values = soft_values(
            self._pair_values(pairs), self._mass[pairs], which, self._has_prior[states], self.beta, self.UNNAMED_MASS
        )
        change = np.abs(values - self._v[states])
        self._v[states] = values
        n_read = len(pairs) + int(self._model.edges_of.sizes(pairs).sum())
        changed = change > 0.0
        edges, which = self._model.edges_into.gather(states[changed])
        return n_read + len(edges), self._propagate(edges, change[changed][which])

    def _propagate(self, edges: Ints, change: Floats) -> Ints:
        """Add to the pending changes of the edges' origins: Q changes by the mean over edges, V by at most that."""
        before = self._model.pair[edges]
        followed, share = self._n_followed[before], np.ones(len(edges))
        np.divide(self._model.edge_n[edges], followed, out=share, where=followed > 0.0)
        np.add.at(self._pair_moves, before, self.gamma * share * change)
        of_pair, state = self._pair_moves[before], self._model.state[before].astype(np.int64)
        np.maximum.at(self._moves, state, of_pair)
        self._pair_moves[before] = 0.0
        affected = np.unique(state)
        self._pending[affected] += self._moves[affected]
        self._moves[affected] = 0.0
        return affected

    def _pair_values(self, pairs: Ints) -> Floats:
        """Return Q of tried pairs from the current V."""
        edges, which = self._model.edges_of.gather(pairs)
        after = self._model.after[edges]
        n = np.where(self._known[after], self._model.edge_n[edges], 0.0)
        followed = self._model.n_terminal[pairs] + np.bincount(which, n, len(pairs))
        self._n_followed[pairs] = followed
        total = np.bincount(which, n * self._v[after], len(pairs))
        beyond = np.full(len(pairs), self.frontier)
        np.divide(total, followed, out=beyond, where=followed > 0.0)
        n_tried = self._model.n[pairs]
        result: Floats = self._model.reward[pairs] / n_tried + self.novelty / np.sqrt(n_tried) + self.gamma * beyond
        return result

    # ------------------------------------------------------------------------------------------ bookkeeping

    def _queue(self, states: Ints) -> None:
        new = np.unique(states[~self._queued[states]])
        self._queued[new] = True
        self._dirty = np.concatenate([self._dirty, new])

    def _touch(self, states: Ints) -> None:
        """Mark V of these states as not backed up."""
        self._pending[states] = np.inf
        self._queue(states)

    def _update_known(self, states: Ints) -> None:
        """After a change of transitions, update which states have tried actions, and queue their predecessors."""
        pairs, which = self._model.pairs_of.gather(states)
        known = np.bincount(which, self._model.n[pairs] > 0.0, len(states)) > 0.0
        changed = states[known != self._known[states]]
        self._known[states] = known
        self._pending[states[~known]] = 0.0
        self._touch(states[known])
        before = self._model.state[self._model.pair[self._model.edges_into.gather(changed)[0]]].astype(np.int64)
        self._touch(np.unique(before[self._known[before]]))

    def _make_states(self, n: int) -> None:
        self._v, self._pending = grow(self._v, n), grow(self._pending, n)
        self._known, self._queued = grow(self._known, n), grow(self._queued, n)
        self._has_prior, self._moves = grow(self._has_prior, n), grow(self._moves, n)

    def _make_pairs(self, n: int) -> None:
        self._mass, self._n_followed = grow(self._mass, n, np.nan), grow(self._n_followed, n)
        self._pair_moves = grow(self._pair_moves, n)


def soft_values(q: Floats, mass: Floats, group: Ints, has_prior: Bools, beta: float, unnamed_mass: float) -> Floats:
    """Return `V = (1/beta) log sum_a pi(a) exp(beta * Q(a))` of G states; at beta 0 the limit `sum_a pi(a) Q(a)`.

    For a state without a prior, pi is uniform over the tried actions. For a state with a prior, pi is the given mass;
    tried actions without one share `unnamed_mass` equally, if there are any. The rest of the mass is on untried
    actions, whose Q is assumed to be the pi-weighted mean of the tried ones. V is monotone in Q, and a constant added
    to all Q is added to V, so V changes by at most the largest change of Q, and a Bellman step contracts.

    Args:
        q: shape (A,), of the tried actions, in reward units.
        mass: shape (A,), of the prior; NaN for an action that it does not name, or without a prior.
        group: shape (A,), the state of each action, ascending; each of 0 ... G - 1 has one action or more.
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
    # Relative to the best, so that nothing overflows and a large constant loses no digits.
    best = np.maximum.reduceat(q, np.searchsorted(group, np.arange(n)))
    below = q - best[group]
    mean_below = np.bincount(group, pi * below, n) / tried
    if beta == 0.0:
        return best + mean_below
    with np.errstate(over="ignore", divide="ignore"):
        total = tried + untried
        less = np.bincount(group, pi * np.expm1(beta * below), n) + untried * np.expm1(beta * mean_below)
        # Two forms: the first is accurate for small beta, the second if the best action has little mass.
        near = np.log1p(np.maximum(less / total, -0.5))
        far = np.log((np.bincount(group, pi * np.exp(beta * below), n) + untried * np.exp(beta * mean_below)) / total)
        result: Floats = best + np.where(less > -0.5 * total, near, far) / beta
    return result
