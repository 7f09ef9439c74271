"""Sums of evidence rows by action and by distinct state, on request with weights by inverse propensity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import EvidenceRow
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import Floats, StateSums

__all__ = ["ActionSums", "PropensityRow", "effective_sums", "propensity_rows", "sum_rows", "weigh_row"]


class ActionSums(NamedTuple):
    """Evidence added up.

    Attributes:
        keys: the keys of the A actions.
        sums: shape (A, 4): count, weight, total and squares of each action.
        by_state: the same sums by distinct state and action.
    """

    keys: list[int]
    sums: Floats
    by_state: StateSums


class PropensityRow(NamedTuple):
    """A row of evidence whose weight is the sum of inverse propensities, and the sum of their squares."""

    row: EvidenceRow
    squared_weight: float


class _RatioRow(NamedTuple):
    set_id: int
    key_id: int
    is_unlogged: bool
    n_steps: int
    weight: float
    total: float
    squares: float
    squared_weight: float
    ordinal: int


def weigh_row(row: EvidenceRow, factor: float) -> EvidenceRow:
    """Return a row with its sums multiplied by `factor`; the number of steps stays."""
    return row._replace(weight=factor * row.weight, total=factor * row.total, squares=factor * row.squares)


def sum_rows(rows: Sequence[EvidenceRow], ranked: Sequence[int]) -> ActionSums:
    """Return rows added up by action and by distinct state; a row with a negative number of steps takes some out.

    `ranked` are set ids, the most similar first.
    """
    set_ids, key_ids, *columns = zip(*rows, strict=True) if rows else ((),) * len(EvidenceRow._fields)
    sums = np.array(columns[:4], dtype=np.float64).T
    cells = dict.fromkeys(zip(set_ids, key_ids, strict=True))
    if len(cells) < len(rows):  # some cells have several rows
        number_of = {cell: number for number, cell in enumerate(cells)}
        sums, of_rows = np.zeros((len(cells), 4)), sums
        np.add.at(sums, [number_of[cell] for cell in zip(set_ids, key_ids, strict=True)], of_rows)
        set_ids, key_ids = zip(*cells, strict=True)
    sums[sums[:, 0] <= 0.0] = 0.0  # no rounding errors where all steps were taken out
    index_of = {key_id: index for index, key_id in enumerate(dict.fromkeys(key_ids))}
    actions = np.array([index_of[key_id] for key_id in key_ids], dtype=np.int64)
    by_action = np.zeros((len(index_of), 4))
    np.add.at(by_action, actions, sums)
    rank_of = {set_id: rank for rank, set_id in enumerate(ranked)}
    states = np.array([rank_of[set_id] for set_id in set_ids], dtype=np.int64)
    return ActionSums(list(index_of), by_action, StateSums(states, actions, *sums.T))


def propensity_rows(
    reader: Reader, view_id: int, set_ids: Sequence[int], *, floor: float, task_filter: TaskFilter, by_episode: bool
) -> tuple[list[PropensityRow], int]:
    """Return rows with the weights `1 / max(propensity, floor)`, and how many steps have no stored propensity.

    Such a step gets the share of the steps at its distinct state that took its action: an estimated propensity. All
    live steps at the states are read, except those of the excluded task.

    Args:
        reader: inside a snapshot.
        view_id: the view of the returns.
        set_ids: the distinct states.
        floor: the least propensity, in [1e-6, 1].
        task_filter: which task is excluded.
        by_episode: one row for each episode, so that the caller can apply a decay.
    """
    group = "set_id, key_id, propensity IS NULL" + (", ordinal" if by_episode else "")
    rows = reader.sums(
        "SELECT set_id, key_id, propensity IS NULL, count(*), sum(ratio), sum(ratio * return_), "
        "sum(ratio * return_ * return_), sum(ratio * ratio), max(ordinal) FROM ("
        "SELECT set_id, key_id, propensity, return_, ordinal, CASE WHEN propensity IS NULL THEN 1.0 "
        f"WHEN propensity < {floor!r} THEN {1.0 / floor!r} ELSE 1.0 / propensity END AS ratio "
        "FROM step INDEXED BY step_by_set "
        f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
        "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
        "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
        f"WHERE step.namespace_id = ? AND live{task_filter.condition} AND set_id IN {{values}}) AS taken "
        f"GROUP BY {group} ORDER BY {group}",
        (view_id, reader.namespace_id, *task_filter.values),
        set_ids,
        _RatioRow,
    )
    at_state: defaultdict[int, int] = defaultdict(int)
    at_cell: defaultdict[tuple[int, int], int] = defaultdict(int)
    for row in rows:
        at_state[row.set_id] += row.n_steps
        at_cell[row.set_id, row.key_id] += row.n_steps
    found: list[PropensityRow] = []
    n_unlogged = 0
    for row in rows:
        ratio = 1.0
        if row.is_unlogged:
            n_unlogged += row.n_steps
            ratio = 1.0 / max(at_cell[row.set_id, row.key_id] / at_state[row.set_id], floor)
        sums = (ratio * row.weight, ratio * row.total, ratio * row.squares)
        evidence = EvidenceRow(row.set_id, row.key_id, row.n_steps, *sums, row.ordinal)
        found.append(PropensityRow(evidence, ratio * ratio * row.squared_weight))
    return found, n_unlogged


def effective_sums(rows: Sequence[EvidenceRow], squared_weights: Sequence[float], ranked: Sequence[int]) -> ActionSums:
    """Return `sum_rows` with each action's weight reduced to its effective number of steps.

    With c a step's weight by similarity and recency, and r its inverse propensity, an action's mean is Hajek's
    `sum c r G / sum c r`, and its weight `n = (sum c r)^2 / sum c r^2`: Kish's effective size (Survey Sampling, 1965,
    section 11.7) where c = 1, and `sum c` where r is constant, so that equal propensities change nothing. Each cell is
    reduced by itself; `shares` holds its share of its action's mean.

    Args:
        rows: sums with weights c r.
        squared_weights: for each row, its sum of c r^2.
        ranked: set ids, the most similar first.
    """
    keys, sums, by_state = sum_rows(rows, ranked)
    squared = sum_rows([row._replace(weight=w) for row, w in zip(rows, squared_weights, strict=True)], ranked)
    whole = sums[:, 1][by_state.actions]
    shares = np.divide(by_state.weights, whole, out=np.zeros(len(whole)), where=whole > 0.0)
    sums[:, 1:] *= _factors(sums[:, 1], squared.sums[:, 1])[:, None]
    factors = _factors(by_state.weights, squared.by_state.weights)
    return ActionSums(
        keys,
        sums,
        StateSums(
            by_state.states,
            by_state.actions,
            by_state.counts,
            factors * by_state.weights,
            factors * by_state.totals,
            factors * by_state.squares,
            shares,
        ),
    )


def _factors(weights: npt.NDArray[np.float64], squared_weights: npt.NDArray[np.float64]) -> Floats:
    """Return the factors that turn weights into effective numbers; 0 where the weights have decayed to 0."""
    return np.divide(weights, squared_weights, out=np.zeros(len(weights)), where=squared_weights > 0.0)
