"""Change points: how much the older returns of a state count after its latest ones."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from seasoned.checks import check_number
from seasoned.core.arrays import Floats, Ints
from seasoned.core.shrinkage import Cells

__all__ = ["LatestReturns", "faded"]

_FEWEST_SINCE = 3  # as few steps may be outliers
_FARTHEST = 2.0  # units from the mean; a return beyond counts as if it were there
_NOISE, _NOISE_DEGREES = 0.5, 4.0  # prior: half of the variance of returns is noise
_ROUNDING = 1e-12
_MOST_CHANGE = 0.5  # prior probability of a change at any of the latest steps


@dataclass(frozen=True, slots=True)
class LatestReturns:
    """The latest steps at some states, T in all, of each state the oldest first.

    Args:
        states: shape (T,), numbers of the distinct states, as in `Cells`.
        actions: shape (T,), rows of the sums by action.
        returns: shape (T,), in reward units.
    """

    states: Ints
    actions: Ints
    returns: Floats


def faded(cells: Cells, latest: LatestReturns, *, rate: float, mean: float, unit: float) -> Cells:
    """Return the sums in which a step counts with the probability that its state has not changed since.

    A state changes at most once among its T latest steps, before any of them with the prior probability `rate`
    (together at most one half), and then the values of all its actions are drawn anew. With values from
    N(mean, unit^2) and noise of variance `unit^2 eta` a segment of n returns of one action, whose distances from the
    mean add up to S units, has the marginal likelihood

        exp(S^2 / (2 eta (eta + n))) sqrt(eta / (eta + n))

    but for a factor that no change alters. The posterior of the change is that of the product over actions and both
    segments (a single change point, conjugate: Barry and Hartigan 1993; Adams and MacKay 2007, arXiv 0710.3742, with
    one change kept). Steps before the T latest are known by their sums: they count with the probability of no change.
    A change has at least three steps after it, and distances are cut at two units, so that no single return makes
    one. `eta` is `(2 + D) / (4 + d)`, D half the sum of the squared differences of the d successive pairs of returns of
    an action, which a change hardly moves (von Neumann 1941).

    A state that does not change loses little: the evidence for a change has the mean 1 then.

    Args:
        cells: sums by distinct state and action.
        latest: the latest of the steps in these sums; of each state the latest ones.
        rate: in [0, 0.5].
        mean: the expected return, in reward units.
        unit: the scale of returns, in reward units, above 0.

    Raises:
        InputError: the rate or the unit is out of range.

    Example:
        >>> one = np.array([0])
        >>> returns = np.array([1.0] * 10 + [0.0] * 5)
        >>> cells = Cells(one, one, *(np.array([x]) for x in (15.0, 15.0, 10.0, 10.0)))
        >>> latest = LatestReturns(np.zeros(15, int), np.zeros(15, int), returns)
        >>> float(faded(cells, latest, rate=0.002, mean=0.5, unit=0.5).weights.round(1)[0])
        5.0
    """
    check_number("rate", rate, at_least=0, at_most=0.5, next_step="0.002 is one change in 500 steps.")
    check_number("unit", unit, above=0, next_step="It is the spread of the returns.")
    sums = np.array([cells.weights, cells.totals, cells.squares])
    if rate > 0.0:
        for state in np.flatnonzero(np.bincount(latest.states) >= _FEWEST_SINCE).tolist():
            at = latest.states == state
            here = np.flatnonzero(cells.states == state)
            here = here[np.argsort(cells.actions[here])]
            columns = np.searchsorted(cells.actions[here], latest.actions[at])
            sums[:, here] = _faded_state(sums[:, here], columns, latest.returns[at], rate, mean, unit)
    return dataclasses.replace(cells, weights=sums[0], totals=sums[1], squares=sums[2])


def _faded_state(sums: Floats, columns: Ints, returns: Floats, rate: float, mean: float, unit: float) -> Floats:
    """Return the sums (weight, total, squares; shape (3, A)) of a state, given its T latest steps."""
    n_steps, n_actions = len(returns), sums.shape[1]
    taken = np.zeros((n_steps, n_actions))
    taken[np.arange(n_steps), columns] = 1.0
    listed = np.array([taken.T @ returns**power for power in (0, 1, 2)])
    older = np.maximum(sums[0] - listed[0], 0.0)
    if n_steps + older.sum() <= _FEWEST_SINCE:
        return sums
    # Sums from which rounding has taken the older returns say nothing of them.
    lost = _ROUNDING * (taken.T @ np.abs(returns)) > unit
    rest = np.where(lost, np.outer([1.0, mean, mean**2], older), sums - listed)
    rest[0], rest[2] = older, np.maximum(rest[2], 0.0)

    distances = np.clip((returns - mean) / unit, -_FARTHEST, _FARTHEST)
    old_means = np.divide(rest[1], older, out=np.full(n_actions, mean), where=older > 0.0)
    first = older * np.clip((old_means - mean) / unit, -_FARTHEST, _FARTHEST)
    eta = _noise(columns, distances, n_actions)
    n_before = older + np.vstack([np.zeros(n_actions), np.cumsum(taken, axis=0)])  # before each place, shape (T + 1, A)
    s_before = first + np.vstack([np.zeros(n_actions), np.cumsum(taken * distances[:, None], axis=0)])
    whole = _evidence(n_before[-1], s_before[-1], eta)
    change = (
        _evidence(n_before, s_before, eta) + _evidence(n_before[-1] - n_before, s_before[-1] - s_before, eta) - whole
    )
    n_places = n_steps - _FEWEST_SINCE + 1  # a change may come before each of the first so many steps
    prior = min(rate, _MOST_CHANGE / n_places)
    logs = np.append(np.log1p(-prior * n_places), np.log(prior) + change.sum(axis=1)[:n_places])
    logs[1:][n_before.sum(axis=1)[:n_places] == 0.0] = -np.inf  # before the first step of all nothing can change
    odds = np.exp(logs - logs.max())
    probabilities = odds / odds.sum()
    unchanged = probabilities[0]
    counted = np.full(n_steps, 1.0)
    counted[:n_places] = np.cumsum(probabilities)[1:]
    recent = np.array([taken.T @ (counted * returns**power) for power in (0, 1, 2)])
    sums_now: Floats = unchanged * rest + recent
    return sums_now


def _noise(columns: Ints, distances: Floats, n_actions: int) -> Floats:
    """Return the noise of each action's returns, in units squared."""
    order = np.argsort(columns, kind="stable")
    same = columns[order][1:] == columns[order][:-1]
    steps = np.diff(distances[order])[same] ** 2 / 2.0
    of = columns[order][1:][same]
    total, degrees = np.bincount(of, steps, n_actions), np.bincount(of, minlength=n_actions)
    noise: Floats = (_NOISE_DEGREES * _NOISE + total) / (_NOISE_DEGREES + degrees)
    return noise


def _evidence(n: Floats, total: Floats, eta: Floats) -> Floats:
    """Return the logarithm of the marginal likelihood of segments of n distances with this sum, but for a constant."""
    evidence: Floats = total**2 / (2.0 * eta * (eta + n)) + 0.5 * np.log(eta / (eta + n))
    return evidence
