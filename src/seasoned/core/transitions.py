"""Distinct transitions with counts: the empirical model of the stored experience."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seasoned.core.arrays import Floats, Ints, RaggedLists, as_floats, grow
from seasoned.errors import InputError, excerpt

__all__ = ["Transitions", "aligned", "aligned_priors", "whole_numbers"]


_LIMIT = (1 << 31) - 1


class Transitions:
    """Pairs of a state and an action, and edges from pairs to next states, numbered in the order of their addition.

    Equal transitions are one edge with a count; a pair has one sum of rewards. So memory grows with the number of
    distinct transitions.

    Attributes:
        n_pairs, n_edges: the numbers of pairs and edges; the arrays below may be longer.
        state, action, n, reward, n_terminal: by pair; `n` counts transitions, `reward` is the sum of their rewards.
        pair, after, edge_n: by edge.
        pairs_of, edges_into: by state: its pairs, and the edges into it.
        edges_of: by pair.

    Example:
        >>> model = Transitions()
        >>> one = np.array([1])
        >>> _ = model.add(one, one, np.array([0.5]), np.array([2]), np.array([1.0]))
        >>> _ = model.add(one, one, np.array([1.5]), np.array([2]), np.array([1.0]))
        >>> model.n_edges, float(model.reward[0]), float(model.edge_n[0])
        (1, 2.0, 2.0)
    """

    def __init__(self) -> None:
        self.n_pairs = self.n_edges = 0
        self.state = np.zeros(0, dtype=np.int32)
        self.action = np.zeros(0, dtype=np.int32)
        self.n, self.reward, self.n_terminal = np.zeros(0), np.zeros(0), np.zeros(0)
        self.pair = np.zeros(0, dtype=np.int32)
        self.after = np.zeros(0, dtype=np.int32)
        self.edge_n = np.zeros(0)
        self.pairs_of, self.edges_of, self.edges_into = RaggedLists(), RaggedLists(), RaggedLists()

    @property
    def nbytes(self) -> int:
        """The size of the arrays, in bytes."""
        arrays = (
            self.state,
            self.action,
            self.n,
            self.reward,
            self.n_terminal,
            self.pair,
            self.after,
            self.edge_n,
            self.pairs_of,
            self.edges_of,
            self.edges_into,
        )
        return sum(array.nbytes for array in arrays)

    def add(self, states: Ints, actions: Ints, rewards: Floats, after: Ints, counts: Floats) -> Ints:
        """Count N transitions; return their pairs. A next state of -1 is the end, a smaller one is unknown."""
        pairs = self._pairs(states, actions)
        np.add.at(self.n, pairs, counts)
        np.add.at(self.reward, pairs, counts * rewards)
        np.add.at(self.n_terminal, pairs, np.where(after == -1, counts, 0.0))
        leads = after >= 0
        edges = self._edges(pairs[leads], after[leads])
        np.add.at(self.edge_n, edges, counts[leads])
        return pairs

    def clear(self, pairs: Ints) -> None:
        """Delete the transitions of pairs; the pairs keep their numbers."""
        self.n[pairs] = self.reward[pairs] = self.n_terminal[pairs] = 0.0
        self.edge_n[self.edges_of.gather(pairs)[0]] = 0.0

    def find(self, states: Ints, actions: Ints) -> Ints:
        """Return the numbers of pairs; -1 for a pair that does not exist."""
        return _search(self.pairs_of, self.action, states, actions)

    def _pairs(self, states: Ints, actions: Ints) -> Ints:
        """Return the pairs' numbers; pairs that do not exist are added."""
        found = self.find(states, actions)
        new, which = np.unique(states[found < 0] << 31 | actions[found < 0], return_inverse=True)
        first, n = self.n_pairs, self.n_pairs + len(new)
        self.state, self.action = grow(self.state, n), grow(self.action, n)
        self.n, self.reward = grow(self.n, n), grow(self.reward, n)
        self.n_terminal = grow(self.n_terminal, n)
        self.state[first:n], self.action[first:n] = new >> 31, new & _LIMIT
        self.pairs_of.extend(new >> 31, np.arange(first, n))
        self.n_pairs = n
        found[found < 0] = first + which
        return found

    def _edges(self, pairs: Ints, after: Ints) -> Ints:
        """Return the edges' numbers; edges that do not exist are added."""
        found = _search(self.edges_of, self.after, pairs, after)
        new, which = np.unique(pairs[found < 0] << 31 | after[found < 0], return_inverse=True)
        first, n = self.n_edges, self.n_edges + len(new)
        self.pair, self.after = grow(self.pair, n), grow(self.after, n)
        self.edge_n = grow(self.edge_n, n)
        self.pair[first:n], self.after[first:n] = new >> 31, new & _LIMIT
        self.edges_of.extend(new >> 31, np.arange(first, n))
        self.edges_into.extend(new & _LIMIT, np.arange(first, n))
        self.n_edges = n
        found[found < 0] = first + which
        return found


def _search(lists: RaggedLists, key_of: npt.NDArray[np.int32], rows: Ints, keys: Ints) -> Ints:
    """Return the entry with the key `keys[i]` in list `rows[i]`; -1 if there is none."""
    distinct = np.unique(rows)
    entries, which = lists.gather(distinct)
    if not len(entries):
        return np.full(len(rows), -1, dtype=np.int64)
    packed = distinct[which] << 31 | key_of[entries]
    order = np.argsort(packed)
    wanted = rows << 31 | keys
    at = np.minimum(np.searchsorted(packed, wanted, sorter=order), len(order) - 1)
    found = order[at]
    return np.where(packed[found] == wanted, entries[found], -1)


def whole_numbers(name: str, values: npt.ArrayLike, least: int = 0) -> Ints:
    """Return whole numbers, at least `least` and below 2^31 - 1, as an array. Raises: InputError."""
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    fits = array.ndim == 1 and array.dtype.kind in "iu"
    if not fits or (array < least).any() or (array >= _LIMIT).any():
        raise InputError(
            f"{name} = {excerpt(values)}",
            f"{name} must be a list of whole numbers from {least} to below 2^31 - 1",
            "Number them from 0.",
        )
    return array.astype(np.int64)


def aligned(states: npt.ArrayLike, actions: npt.ArrayLike) -> tuple[Ints, Ints]:
    """Return states and actions as arrays of one length. Raises: InputError."""
    s, a = whole_numbers("states", states), whole_numbers("actions", actions)
    if len(s) != len(a):
        raise InputError(f"{len(s)} states and {len(a)} actions", "each state must have an action", "Align them.")
    return s, a


def aligned_priors(states: npt.ArrayLike, actions: npt.ArrayLike, probs: npt.ArrayLike) -> tuple[Ints, Ints, Floats]:
    """Return states, actions and their probabilities as arrays of one length. Raises: InputError."""
    s, a = aligned(states, actions)
    p = as_floats("probs", probs)
    if p.shape != s.shape or not ((p >= 0.0) & (p <= 1.0 + 1e-9)).all():
        raise InputError(f"probs = {excerpt(probs)}", "each pair must have a probability", "Take a softmax first.")
    return s, a, p
