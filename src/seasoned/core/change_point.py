"""Change points: how much the older returns of a state count after its latest ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number
from seasoned.core.arrays import Floats, Ints
from seasoned.core.shrinkage import Cells

__all__ = ["LatestReturns", "ReturnLabels", "faded"]

_FEWEST_SINCE = 3  # as few steps may be outliers
_FARTHEST = 2.0  # units from the mean; a return beyond counts as if it were there
_NOISE, _NOISE_DEGREES = 0.5, 4.0  # prior: half of the variance of returns is noise
_ROUNDING = 1e-12
_MOST_AT_ONCE = 1 << 16  # steps times actions times states
_MOST_CHANGE = 0.5  # prior probability of a change at any of the latest steps


class ReturnLabels(NamedTuple):
    """What labels tell beside some steps, U pairs of a step and an action.

    The sums hold it. It fades like the step, and is no evidence for or against a change: it is certain a priori that
    most options of a decision are wrong.

    Attributes:
        steps: shape (U,), positions of steps.
        actions: shape (U,), rows of the sums by action.
        weights, totals, squares: shape (U,), sums of these observations.
    """

    steps: Ints
    actions: Ints
    weights: Floats
    totals: Floats
    squares: Floats


@dataclass(frozen=True, slots=True)
class LatestReturns:
    """The latest steps at some states, T in all, of each state the oldest first.

    Args:
        states: shape (T,), numbers of the distinct states, as in `Cells`.
        actions: shape (T,), rows of the sums by action.
        returns: shape (T,), in reward units.
        labels: what labels tell beside these steps; None: nothing.
    """

    states: Ints
    actions: Ints
    returns: Floats
    labels: ReturnLabels | None = None


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
        for steps in _groups(cells, latest):
            sums[:, steps.cells[steps.is_cell]] = _faded(steps, sums, rate, mean, unit)[:, steps.is_cell]
    return dataclasses.replace(cells, weights=sums[0], totals=sums[1], squares=sums[2])


class _Steps(NamedTuple):
    """The latest steps of S states in rows of the same length T, at A actions at most; the ends of rows are empty.

    Attributes:
        cells: shape (S, A), the place of each action's sums.
        is_cell: shape (S, A).
        taken: shape (S, T, A), 1 for the action of a step.
        told: shape (K, S, T, A), sums of what labels tell beside each step: weights; and totals and squares, if any is
            not 0. None: nothing.
        returns: shape (S, T), 0 where there is no step.
        n_steps: shape (S,).
    """

    cells: Ints
    is_cell: npt.NDArray[np.bool_]
    taken: Floats
    told: Floats | None
    returns: Floats
    n_steps: Ints


def _groups(cells: Cells, latest: LatestReturns) -> Iterator[_Steps]:
    """Yield the states with enough steps, those of about as many steps together."""
    n_steps = np.bincount(latest.states)
    states = np.flatnonzero(n_steps >= _FEWEST_SINCE)
    n_cells = np.bincount(cells.states, minlength=len(n_steps))[states]
    n_steps = n_steps[states]
    order = np.argsort(n_steps, kind="stable")
    first = 0
    for last in range(1, len(order) + 1):
        group = order[first : last + 1]
        if last == len(order) or len(group) * n_steps[group].max() * n_cells[group].max() > _MOST_AT_ONCE:
            yield _steps_of(states[order[first:last]], cells, latest)
            first = last


def _steps_of(states: Ints, cells: Cells, latest: LatestReturns) -> _Steps:
    rank = np.full(1 + int(max(states.max(), cells.states.max(), latest.states.max())), -1)
    rank[states] = np.arange(len(states))
    here = np.flatnonzero(rank[cells.states] >= 0)
    here = here[np.lexsort((cells.actions[here], rank[cells.states[here]]))]
    of_cell, column = _places(rank[cells.states[here]])
    at = np.flatnonzero(rank[latest.states] >= 0)
    at = at[np.argsort(rank[latest.states[at]], kind="stable")]
    of_step, time = _places(rank[latest.states[at]])
    width = 1 + int(max(cells.actions[here].max(), latest.actions[at].max()))  # untaken actions have cells
    keys = of_cell * width + cells.actions[here]
    columns = column[np.searchsorted(keys, of_step * width + latest.actions[at])]
    places = np.zeros((len(states), 1 + int(column.max())), dtype=np.int64)
    is_cell = np.zeros(places.shape, dtype=bool)
    places[of_cell, column], is_cell[of_cell, column] = here, True
    returns = np.zeros((len(states), 1 + int(time.max())))
    taken = np.zeros((*returns.shape, places.shape[1]))
    returns[of_step, time], taken[of_step, time, columns] = latest.returns[at], 1.0
    told = None
    if latest.labels is not None:
        place_of = np.full(len(latest.states), -1)
        place_of[at] = np.arange(len(at))
        step = place_of[latest.labels.steps]
        is_read = step >= 0
        step, actions, *sums = step[is_read], *(values[is_read] for values in latest.labels[1:])
        columns = column[np.searchsorted(keys, of_step[step] * width + actions)]
        sums = sums if np.any(sums[1:]) else sums[:1]
        told = np.zeros((len(sums), *taken.shape))
        for values, of_all in zip(sums, told, strict=True):
            of_all[of_step[step], time[step], columns] = values
    return _Steps(places, is_cell, taken, told, returns, np.bincount(of_step))


def _places(groups: Ints) -> tuple[Ints, Ints]:
    """Return ascending groups, and the place of each entry in its group."""
    return groups, np.arange(len(groups)) - np.searchsorted(groups, groups)


def _faded(steps: _Steps, all_sums: Floats, rate: float, mean: float, unit: float) -> Floats:
    """Return the sums (weight, total, squares; shape (3, S, A)) of states, given their latest steps."""
    taken, returns, n_steps = steps.taken, steps.returns, steps.n_steps[:, None]
    sums = np.where(steps.is_cell, all_sums[:, steps.cells], 0.0)
    listed = np.array([np.einsum("sta,st->sa", taken, returns**power) for power in (0, 1, 2)])
    if steps.told is not None:
        listed[: len(steps.told)] += steps.told.sum(axis=2)
    older = np.maximum(sums[0] - listed[0], 0.0)
    # Sums from which rounding has taken the older returns say nothing of them.
    lost = _ROUNDING * np.einsum("sta,st->sa", taken, np.abs(returns)) > unit
    expected = np.array([1.0, mean, mean**2])[:, None, None] * older
    rest = np.where(lost, expected, sums - listed)
    rest[0], rest[2] = older, np.maximum(rest[2], 0.0)

    old_means = np.divide(rest[1], older, out=np.full(older.shape, mean), where=older > 0.0)
    with np.errstate(over="ignore"):
        distances = taken * np.clip((returns - mean) / unit, -_FARTHEST, _FARTHEST)[:, :, None]
        first = older * np.clip((old_means - mean) / unit, -_FARTHEST, _FARTHEST)
    eta = _noise(taken, distances)[:, None]
    n_before, s_before = _before(older, taken), _before(first, distances)  # each place, shape (S, T + 1, A)
    n_after, s_after = n_before[:, -1:] - n_before, s_before[:, -1:] - s_before
    whole = _evidence(n_before[:, -1:], s_before[:, -1:], eta)
    change = (_evidence(n_before, s_before, eta) + _evidence(n_after, s_after, eta) - whole).sum(axis=2)[:, :-1]
    n_places = n_steps - _FEWEST_SINCE + 1  # a change may come before each of the first so many steps
    prior = np.minimum(rate, _MOST_CHANGE / n_places)
    is_place = np.arange(taken.shape[1]) < n_places
    possible = is_place & (n_before.sum(axis=2)[:, :-1] > 0.0)  # before the first step of all nothing can change
    logs = np.hstack([np.log1p(-prior * n_places), np.where(possible, np.log(prior) + change, -np.inf)])
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    unchanged = probabilities[:, :1]
    counted = np.where(is_place, np.cumsum(probabilities, axis=1)[:, 1:], 1.0)
    recent = np.array([np.einsum("sta,st->sa", taken, counted * returns**power) for power in (0, 1, 2)])
    for power, told in enumerate(() if steps.told is None else steps.told):
        recent[power] += np.einsum("sta,st->sa", told, counted)
    enough = n_steps + older.sum(axis=1, keepdims=True) > _FEWEST_SINCE
    sums_now: Floats = np.where(enough, unchanged * rest + recent, sums)
    return sums_now


def _before(older: Floats, of_step: Floats) -> Floats:
    """Return the sums before each step and after the last, shape (S, T + 1, A)."""
    begun = np.zeros((len(of_step), 1, of_step.shape[2]))
    before: Floats = older[:, None] + np.concatenate([begun, np.cumsum(of_step, axis=1)], axis=1)
    return before


def _noise(taken: Floats, distances: Floats) -> Floats:
    """Return the noise of each action's returns, shape (S, A), in units squared."""
    state, time, action = np.nonzero(taken)
    order = np.lexsort((time, action, state))
    of = (state * taken.shape[2] + action)[order]
    same = of[1:] == of[:-1]
    squares = np.diff(distances[state, time, action][order])[same] ** 2 / 2.0
    n = len(taken) * taken.shape[2]
    total, degrees = np.bincount(of[1:][same], squares, n), np.bincount(of[1:][same], minlength=n)
    noise: Floats = (_NOISE_DEGREES * _NOISE + total) / (_NOISE_DEGREES + degrees)
    return noise.reshape(len(taken), -1)


def _evidence(n: Floats, total: Floats, eta: Floats) -> Floats:
    """Return the logarithm of the marginal likelihood of segments of n distances with this sum, but for a constant."""
    evidence: Floats = total**2 / (2.0 * eta * (eta + n)) + 0.5 * np.log(eta / (eta + n))
    return evidence
