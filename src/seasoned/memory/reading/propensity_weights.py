"""Sums in which a step counts by the inverse of the probability with which its action was taken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number
from seasoned.errors import InputError
from seasoned.memory.reading.evidence_sums import summed_up
from seasoned.memory.reading.reader import EvidenceRow, Reader
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.task_filter import Outside
from seasoned.types import Floats, StateSums

__all__ = ["MIN_FLOOR", "PropensityRow", "check_floor", "effective_sums", "propensity_rows"]

PropensityRow = tuple[EvidenceRow, float]
"""Sums whose weights are inverse propensities, and the sum of the squared weights."""


MIN_FLOOR = 1e-6
"""The least floor: a step then weighs a million. The squares of what a much smaller one gives are no numbers."""


def check_floor(floor: object) -> float:
    """Return the floor of propensities if it is in [1e-6, 1].

    Raises:
        InputError: it is not.

    Example:
        >>> check_floor(0.05)
        0.05
    """
    value = check_number("propensity_floor", floor)
    if not MIN_FLOOR <= value <= 1.0:
        raise InputError(
            f"propensity_floor = {value}",
            f"a floor of propensities is in [{MIN_FLOOR}, 1]",
            "0.05 lets a step weigh 20 at most; None weighs all alike.",
        )
    return value


def propensity_rows(
    reader: Reader,
    namespace_id: int,
    view_id: int,
    set_ids: Sequence[int],
    *,
    floor: float,
    outside: Outside,
    by_episode: bool,
) -> tuple[list[PropensityRow], int]:
    """Return sums at some distinct states with the weights `1 / max(propensity, floor)`, and how many steps had none.

    A step without a stored propensity gets the share of the steps at its distinct state that took its action: an
    estimated propensity. All live steps there are read, but for those left out; a row for each episode, if asked, so
    that the caller can let it fade.
    """
    group = "set_id, key_id, propensity IS NULL" + (", ordinal" if by_episode else "")
    rows: list[Any] = reader.sums(
        "SELECT set_id, key_id, propensity IS NULL, count(*), sum(ratio), sum(ratio * return_), "
        "sum(ratio * return_ * return_), sum(ratio * ratio), max(ordinal) FROM ("
        "SELECT set_id, key_id, propensity, return_, ordinal, CASE WHEN propensity IS NULL THEN 1.0 "
        f"WHEN propensity < {floor!r} THEN {1.0 / floor!r} ELSE 1.0 / propensity END AS ratio "
        "FROM step INDEXED BY step_by_set "
        f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
        "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
        "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
        f"WHERE step.namespace_id = ? AND live{outside.condition} AND set_id IN {{values}}) AS taken "
        f"GROUP BY {group} ORDER BY {group}",
        (view_id, namespace_id, *outside.values),
        set_ids,
    )
    at_state: defaultdict[int, int] = defaultdict(int)
    at_cell: defaultdict[tuple[int, int], int] = defaultdict(int)
    for set_id, key_id, _, count, *_ in rows:
        at_state[set_id] += count
        at_cell[set_id, key_id] += count
    found: list[PropensityRow] = []
    unknown = 0
    for set_id, key_id, missing, count, weight, total, squares, second, at in rows:
        ratio = 1.0
        if missing:
            unknown += count
            ratio = 1.0 / max(at_cell[set_id, key_id] / at_state[set_id], floor)
        row = (set_id, key_id, count, ratio * weight, ratio * total, ratio * squares, at)
        found.append((row, ratio * ratio * second))
    return found, unknown


def effective_sums(
    rows: Sequence[EvidenceRow], seconds: Sequence[float], ranked: Sequence[int]
) -> tuple[list[int], Floats, StateSums]:
    """Return `summed_up` with each action's weight brought down to its effective number of steps.

    With c a step's weight by similarity and recency, and r its inverse propensity, an action's mean is Hajek's
    `sum c r G / sum c r`, and its weight `n = (sum c r)^2 / sum c r^2`: Kish's effective size (Survey Sampling, 1965,
    section 11.7) where c = 1, and `sum c` where r is constant, so that equal propensities change nothing. Cells are
    brought down each by itself; `shares` keeps what each has of its action's mean.

    Args:
        rows: sums with weights c r.
        seconds: for each row, its sum of c r^2.
        ranked: set ids, the most similar first.
    """
    keys, by_action, by_state = summed_up(rows, ranked)
    squared = [(*row[:3], second, *row[4:]) for row, second in zip(rows, seconds, strict=True)]
    _, second_by_action, second_by_state = summed_up(squared, ranked)
    whole = by_action[:, 1][by_state.actions]
    shares = np.divide(by_state.weights, whole, out=np.zeros(len(whole)), where=whole > 0.0)
    by_action[:, 1:] *= _factors(by_action[:, 1], second_by_action[:, 1])[:, None]
    factors = _factors(by_state.weights, second_by_state.weights)
    return (
        keys,
        by_action,
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


def _factors(weights: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]) -> Floats:
    """What makes weights effective numbers; 0 where they have faded to nothing."""
    return np.divide(weights, seconds, out=np.zeros(len(weights)), where=seconds > 0.0)
