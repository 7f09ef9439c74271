"""Sums of evidence with the observations that labels are, beside those that stored steps hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seasoned.actions import normalize_action
from seasoned.memory.reading.evidence_sums import ActionSums
from seasoned.memory.retrieval.labelled_decision_reader import DecisionOptions, Labelled, LabelledDecision
from seasoned.types import Floats, Ints, StateSums, TaskSums

__all__ = ["LabelRows", "LabelledSums", "OptionRows"]


class LabelRows(NamedTuple):
    """What the labels of one decision tell beside its steps, by row of an option.

    Attributes:
        rows: of the options of which they tell something.
        counts, weights, totals, squares: of the observations.
        unweighted: the totals, as if each label weighed 1.
    """

    rows: Ints
    counts: Floats
    weights: Floats
    totals: Floats
    squares: Floats
    unweighted: Floats


class OptionRows:
    """The rows of options among the actions of evidence; options that no step took have rows behind those.

    Args:
        actions: the actions that steps took.
    """

    def __init__(self, actions: Sequence[str]) -> None:
        self.actions = list(actions)
        self._row_of = {normalize_action(action): row for row, action in enumerate(actions)}
        self._of_options: dict[int, tuple[DecisionOptions, Ints]] = {}  # by identity, which is quicker
        self._of_labels: dict[tuple[object, ...], LabelRows] = {}
        self._constants: dict[int, tuple[Floats, Floats]] = {}  # ones and zeros, by their number

    def of(self, options: DecisionOptions) -> Ints:
        """Return the row of each option."""
        if id(options) not in self._of_options:
            rows = []
            for key, text in zip(options.keys, options.texts, strict=True):
                rows.append(self._row_of.setdefault(key, len(self.actions)))
                if rows[-1] == len(self.actions):
                    self.actions.append(text)
            self._of_options[id(options)] = options, np.array(rows, dtype=np.int64)
        return self._of_options[id(options)][1]

    def labels(self, decision: LabelledDecision) -> LabelRows:
        """Return what the labels of a decision tell beside its steps."""
        key = id(decision.options), *decision[1:]
        if key not in self._of_labels:
            rows = self.of(decision.options)
            self._of_labels[key] = self._untaken(rows, decision) if decision.is_plain else _beside(rows, decision)
        return self._of_labels[key]

    def _untaken(self, rows: Ints, decision: LabelledDecision) -> LabelRows:
        """Return the options that no step took, each with one observation of reward 0."""
        is_untaken = np.ones(len(rows), dtype=bool)
        is_untaken[[one.place for one in decision.taken]] = False
        untaken = rows[is_untaken]
        ones, zeros = self._constants.setdefault(len(untaken), (np.ones(len(untaken)), np.zeros(len(untaken))))
        return LabelRows(untaken, ones, ones, zeros, zeros, zeros)


def _beside(rows: Ints, decision: LabelledDecision) -> LabelRows:
    """Return what labels that disagree or weigh tell beside the steps."""
    sums = np.zeros((len(LabelRows._fields) - 1, len(rows)))
    sums[0], sums[1] = decision.n_labels, decision.weight
    for one in decision.taken:
        sums[:, one.place] += -one.n_steps, -one.n_steps, one.total, one.squares, one.unweighted
    told = sums[:2].any(axis=0)
    return LabelRows(rows[told], *sums[:, told])


class _Cells(NamedTuple):
    """Observations by labels, L pairs of a state and an action; see `LabelRows`."""

    states: Ints
    actions: Ints
    counts: Floats
    weights: Floats
    totals: Floats
    squares: Floats
    unweighted: Floats


class LabelledSums:
    """The observations by labels at some distinct states, beside the steps there.

    Args:
        labelled: the labelled decisions there.
        sets: the similarity of each of these states, the most similar first.
        power: a label weighs `similarity^power`, as a step does.
        rows: of the options.

    Attributes:
        rows: of the options.
        counts: shape (A,), the number of labels of each action, less those that are steps.
        ordinals: of the episode of the last of each of the labelled decisions.
    """

    def __init__(self, labelled: Sequence[Labelled], sets: Mapping[int, float], power: float, rows: OptionRows) -> None:
        self.rows = rows
        self._rank_of = {set_id: rank for rank, set_id in enumerate(sets)}
        every = [rows.of(one.decision.options) for one in labelled]
        self._labelled = labelled
        self.ordinals = [one.ordinal for one in labelled]
        shape = len(sets), len(rows.actions)
        counts, weights, is_told = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
        rewards = np.zeros((3, *shape))  # totals, squares, unweighted totals: 0 but where labels weigh or disagree
        for one, options in zip(labelled, every, strict=True):
            decision, rank = one.decision, self._rank_of[one.set_id]
            weight = one.weight * sets[one.set_id] ** power
            counts[rank, options] += one.n * decision.n_labels
            weights[rank, options] += weight * decision.weight
            for taken in decision.taken:
                row = options[taken.place]
                counts[rank, row] -= one.n * taken.n_steps
                weights[rank, row] -= weight * taken.n_steps
                if not decision.is_plain:
                    is_told[rank, row] = True
                    rewards[:, rank, row] += weight * taken.total, weight * taken.squares, one.n * taken.unweighted
        states, actions = np.nonzero(is_told | (counts != 0.0))
        at = states, actions
        self._cells = _Cells(states, actions, counts[at], weights[at], *rewards[:, states, actions])
        self.counts: Floats = counts.sum(axis=0)
        self._sums: Floats = np.array([self.counts, weights.sum(axis=0), *rewards[:2].sum(axis=1)]).T

    def with_steps(self, summed: ActionSums) -> ActionSums:
        """Return the sums of the steps with these observations; `by_state.labelled` tells their weights."""
        cells, sums = self._cells, summed.by_state
        n_actions = len(self.counts)
        by_action = np.zeros((n_actions, 4))
        by_action[: len(summed.sums)] = summed.sums
        by_action += self._sums
        place = np.full((len(self._rank_of), n_actions), -1)
        place[sums.states, sums.actions] = np.arange(len(sums.states))
        at = place[cells.states, cells.actions]
        known, new = at >= 0, at < 0

        def extended(steps: Floats, labels: Floats) -> Floats:
            column = np.concatenate([steps, labels[new]])
            column[at[known]] += labels[known]
            return column

        by_state = StateSums(
            np.concatenate([sums.states, cells.states[new]]),
            np.concatenate([sums.actions, cells.actions[new]]),
            extended(sums.counts, cells.counts),
            extended(sums.weights, cells.weights),
            extended(sums.totals, cells.totals),
            extended(sums.squares, cells.squares),
            labelled=extended(np.zeros(len(sums.states)), cells.weights),
        )
        of_labels = range(-1, len(summed.keys) - n_actions - 1, -1)  # of options that no step took: no key is negative
        return ActionSums([*summed.keys, *of_labels], by_action, by_state)

    def with_tasks(self, sums: TaskSums, tasks: Sequence[int]) -> TaskSums:
        """Return the sums by task with these observations.

        Args:
            sums: of the steps.
            tasks: of each of the labelled decisions, the number of its task in the sums; -1: it is not known.
        """
        cells = self._cells
        states, actions, numbers = cells.states, cells.actions, np.zeros_like(cells.states)
        counts, totals = cells.counts, cells.unweighted
        if any(tasks):  # else all are of the first task
            known = [
                (self._rank_of[one.set_id], task, one.n, self.rows.labels(one.decision))
                for one, task in zip(self._labelled, tasks, strict=True)
                if task >= 0
            ]
            if not known:
                return sums
            sizes = [len(told.rows) for *_, told in known]
            states, numbers = (np.repeat([one[column] for one in known], sizes) for column in range(2))
            actions = np.concatenate([told.rows for *_, told in known])
            counts = np.concatenate([n * told.counts for *_, n, told in known])
            totals = np.concatenate([n * told.unweighted for *_, n, told in known])
        return dataclasses.replace(
            sums,
            states=np.concatenate([sums.states, states]),
            actions=np.concatenate([sums.actions, actions]),
            tasks=np.concatenate([sums.tasks, numbers]),
            counts=np.concatenate([sums.counts, counts]),
            totals=np.concatenate([sums.totals, totals]),
        )
