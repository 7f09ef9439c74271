"""Exact values of a small Markov decision process given as arrays, by value iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seasoned.errors import InputError, excerpt

__all__ = ["ExactValues", "prior_at", "solve_bellman"]

_Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class ExactValues:
    """Values in reward units: `q[state][action]` and `v[state]`, for every state with admissible actions."""

    q: Mapping[str, Mapping[str, float]]
    v: Mapping[str, float]


def solve_bellman(
    transition: _Floats, rewards: _Floats, policy: _Floats, gamma: float, beta: float | None
) -> tuple[_Floats, _Floats]:
    """Return (Q, V) with `Q = rewards + gamma * transition @ V` to 1e-12, for S states and A actions.

    `V` is `max_a Q` if `beta` is None, else `(1/beta) log sum_a policy * exp(beta * Q)`, whose limit at beta 0 is
    `sum_a policy * Q`. States without actions have value 0. The iteration contracts by gamma in the sup norm.

    Args:
        transition: shape (S, A, S), probabilities; all 0 for an action that is not admissible.
        rewards: shape (S, A), expected, in reward units.
        policy: shape (S, A), the prior's probabilities; 0 for an action that is not admissible.
        gamma: discount in [0, 1).
        beta: nats per reward unit, or None.
    """
    allowed = transition.sum(axis=2) > 0.0
    live = allowed.any(axis=1)
    values = np.zeros(len(transition))
    while True:
        q = rewards + gamma * transition @ values
        updated = np.zeros_like(values)
        updated[live] = _backup(q[live], allowed[live], policy[live], beta)
        change = float(np.abs(updated - values).max())
        values = updated
        if change * gamma <= _TOLERANCE * (1.0 - gamma) + np.finfo(float).eps * float(np.abs(values).max()):
            return rewards + gamma * transition @ values, values


def _backup(q: _Floats, allowed: npt.NDArray[np.bool_], policy: _Floats, beta: float | None) -> _Floats:
    """Return V from Q by row: the maximum, the prior's mean (beta 0), or the log-mean-exp, shifted against overflow."""
    if beta == 0.0:
        mean: _Floats = (policy * q).sum(axis=1)
        return mean
    masked = np.where(allowed if beta is None else policy > 0.0, q, -np.inf)
    top: _Floats = masked.max(axis=1)
    if beta is None:
        return top
    # expm1 and log1p: at a small beta, exp and log round the difference away, and the iteration does not converge.
    rest: _Floats = (policy * np.expm1(beta * (masked - top[:, None]))).sum(axis=1)
    return top + np.log1p(rest) / beta


def prior_at(
    state: str, actions: tuple[str, ...], prior: Mapping[str, Mapping[str, float]] | None
) -> Mapping[str, float]:
    """Return the prior's probabilities at one state, checked; uniform if `prior` is None.

    Raises:
        InputError: the prior lacks an action of the state, or does not sum to 1.
    """
    if prior is None:
        return dict.fromkeys(actions, 1.0 / len(actions))
    probs = prior.get(state, {})
    fits = (
        set(probs) == set(actions) and all(p >= 0.0 for p in probs.values()) and abs(sum(probs.values()) - 1.0) < 1e-9
    )
    if not fits:
        raise InputError(
            f"prior[{state!r}] = {excerpt(dict(probs))}",
            f"a prior gives each of {', '.join(actions)} a probability, and they sum to 1",
            "Build it over Grid.states().",
        )
    return probs
