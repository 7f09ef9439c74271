"""Rows of evidence, added up by action and by distinct state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seasoned.memory.reading.reader import EvidenceRow
from seasoned.types import Floats, StateSums

__all__ = ["summed_up", "weighed"]


def weighed(row: EvidenceRow, factor: float) -> EvidenceRow:
    """Return a row whose sums count `factor` times; its steps stay as many."""
    set_id, key_id, count, weight, total, squares, at = row
    return set_id, key_id, count, factor * weight, factor * total, factor * squares, at


def summed_up(rows: Sequence[EvidenceRow], ranked: Sequence[int]) -> tuple[list[int], Floats, StateSums]:
    """Return the keys of the A actions, their sums (A, 4) and the sums by distinct state.

    The four are count, weight, total and squares. `ranked` are set ids, the most similar first.
    """
    cell_of: dict[tuple[int, int], int] = {}
    at = [cell_of.setdefault((row[0], row[1]), len(cell_of)) for row in rows]
    by_cell = np.zeros((len(cell_of), 4))
    np.add.at(by_cell, at, np.array([row[2:6] for row in rows], dtype=np.float64).reshape(-1, 4))
    row_of: dict[int, int] = {}
    of_action = np.array([row_of.setdefault(key_id, len(row_of)) for _, key_id in cell_of], dtype=np.int64)
    by_action = np.zeros((len(row_of), 4))
    np.add.at(by_action, of_action, by_cell)
    place = {set_id: position for position, set_id in enumerate(ranked)}
    states = np.array([place[set_id] for set_id, _ in cell_of], dtype=np.int64)
    return list(row_of), by_action, StateSums(states, of_action, *by_cell.T)
