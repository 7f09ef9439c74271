"""The latest steps at the states that were visited often enough to have changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import EvidenceRow, LatestStep
from seasoned.memory.retrieval.choice_reader import ChoiceEffect, without_choices
from seasoned.memory.retrieval.label_sums import LabelledSums, OptionRows
from seasoned.memory.retrieval.labelled_decision_reader import LabelledDecisionReader
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import LatestLabels, LatestSteps

__all__ = ["LatestStepReader", "n_steps_at"]

_N_LATEST = 256
_FEWEST_TO_CHANGE = 4


class LatestStepReader:
    """Reads the latest steps of neighbours. Every method runs inside one snapshot.

    Args:
        labels: reads the labelled decisions of the namespace.
        reader: returns the reader of the rows of the current snapshot.
    """

    def __init__(self, labels: LabelledDecisionReader, reader: Callable[[], Reader]) -> None:
        self._labels = labels
        self._reader = reader

    def read(
        self,
        view_id: int,
        rows: Sequence[EvidenceRow],
        ranked: Sequence[int],
        keys: Sequence[int],
        left_out: TaskFilter,
        effects: Mapping[int, ChoiceEffect],
        labels: LabelledSums | None,
    ) -> LatestSteps:
        """Return the latest steps at the nearest of the states that were visited often enough to have changed.

        Args:
            view_id: the view of the returns.
            rows: of evidence, without choices.
            ranked: the distinct states, the most similar first.
            keys: of the actions.
            left_out: which task is excluded.
            effects: of the choices on steps, which are left out.
            labels: observations by labels; None: none.
        """
        n_at = n_steps_at(rows)
        often: dict[int, int] = {}
        n_read = 0
        for set_id in ranked:
            if n_at[set_id] >= _FEWEST_TO_CHANGE:
                n_read += min(n_at[set_id], _N_LATEST)
                if often and n_read > _N_LATEST:
                    break
                often[set_id] = n_at[set_id]
        steps: list[tuple[int, LatestStep]] = []
        if often:
            found = self._reader().latest_steps(view_id, often, "key_id", task_filter=left_out, most=_N_LATEST)
            rank_of = {set_id: rank for rank, set_id in enumerate(ranked)}
            steps = [
                (rank_of[set_id], step)
                for set_id, of_set in found.items()
                for step in without_choices(reversed(of_set), effects)
            ]
        row_of = {key_id: row for row, key_id in enumerate(keys)}
        return LatestSteps(
            np.array([rank for rank, _ in steps], dtype=np.int64),
            np.array([row_of[step.key] for _, step in steps], dtype=np.int64),
            np.array([step.return_ for _, step in steps], dtype=np.float64),
            None if labels is None else self._labels_on(steps, ranked, left_out, labels.rows),
        )

    def _labels_on(
        self, steps: Sequence[tuple[int, LatestStep]], ranked: Sequence[int], left_out: TaskFilter, options: OptionRows
    ) -> LatestLabels | None:
        """Return what labels on these steps tell beside them."""
        decisions = self._labels.decisions([ranked[rank] for rank in {rank for rank, _ in steps}], left_out)
        found = [
            (position, options.labels(decision))
            for position, (rank, step) in enumerate(steps)
            if (decision := decisions.get(ranked[rank], {}).get(step.visit)) is not None
        ]
        if not found:
            return None
        positions = np.repeat([position for position, _ in found], [len(told.rows) for _, told in found])
        rows, _, *sums, _ = (np.concatenate(column) for column in zip(*(told for _, told in found), strict=True))
        return LatestLabels(positions.astype(np.int64), rows, *sums)


def n_steps_at(rows: Iterable[EvidenceRow]) -> defaultdict[int, int]:
    """Return the number of steps at each distinct state."""
    n_at: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        n_at[row.set_id] += row.n_steps
    return n_at
