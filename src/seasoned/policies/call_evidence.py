"""Evidence about tool calls: spellings of one call, calls of one tool or task, and calls that fit the present state."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from seasoned.actions import CallForm, NamedCall, call_forms, is_call_like, named_call
from seasoned.core import CallShapes, TaskCells
from seasoned.types import (
    Evidence,
    Floats,
    Ints,
    LatestLabels,
    LatestSteps,
    ObservedChoice,
    StateSums,
    TaskSums,
    normalize_action,
)

__all__ = [
    "action_rows",
    "all_occur",
    "any_occurs",
    "arguments_occur",
    "call_shapes",
    "merge_actions",
    "merge_spellings",
    "proposable",
    "task_cells",
]

_SEVERAL_TASKS = 2
_IDENTIFIER_CHARS = 4
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


class _StoredActions:
    """The actions of evidence, read once for all that a decision asks about them."""

    def __init__(self, actions: tuple[str, ...]) -> None:
        self.calls = [row for row, action in enumerate(actions) if is_call_like(action)]
        self._actions = actions

    @functools.cached_property
    def keys(self) -> list[str]:
        """The key of each in a memory."""
        return [normalize_action(action) for action in self._actions]

    @functools.cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each key."""
        return {key: row for row, key in enumerate(self.keys)}

    @functools.cached_property
    def forms(self) -> list[CallForm]:
        """The forms of the call-like ones."""
        return call_forms(self._actions[row] for row in self.calls)

    @functools.cached_property
    def row_of_call(self) -> dict[str, int]:
        """The row of each call by the key of its form."""
        return {form.key: row for form, row in zip(self.forms, self.calls, strict=True)}

    @functools.cached_property
    def shapes(self) -> list[str]:
        """The shape of each; "" of one that is no call with named arguments."""
        shapes = [""] * len(self._actions)
        for form, row in zip(self.forms, self.calls, strict=True):
            shapes[row] = form.shape
        return shapes


_stored = functools.lru_cache(maxsize=2)(_StoredActions)  # the same texts as long as the evidence has the same actions


def action_rows(actions: Sequence[str], evidence: Evidence) -> Ints:
    """Return the row of the evidence for each action, however it is spelled; -1 if there is none."""
    stored = _stored(evidence.actions)
    rows = [stored.row_of.get(normalize_action(action), -1) for action in actions]
    unknown = [at for at, row in enumerate(rows) if row < 0 and is_call_like(actions[at])]
    if unknown and stored.calls:
        for at, form in zip(unknown, call_forms(actions[at] for at in unknown), strict=True):
            rows[at] = stored.row_of_call.get(form.key, -1)
    return np.array(rows, dtype=np.int64)


def merge_spellings(evidence: Evidence) -> Evidence:
    """Return evidence in which two spellings of one call are one action; the same object if there are none.

    A memory's key is a text, so that `f({"a":1})` and `{"arguments":{"a":1},"name":"f"}` are two actions there.
    """
    stored = _stored(evidence.actions)
    if len(stored.calls) < 2 or len(stored.row_of_call) == len(stored.calls):
        return evidence
    keys = list(stored.keys)
    for form, row in zip(stored.forms, stored.calls, strict=True):
        keys[row] = form.key
    return merge_actions(evidence, keys)


def merge_actions(evidence: Evidence, keys: Sequence[str]) -> Evidence:
    """Return evidence in which the actions with one key are one action, under the text of the first of them.

    Args:
        evidence: about actions that are distinct.
        keys: of each of its actions.
    """
    row_of: dict[str, int] = {}
    merged = np.array([row_of.setdefault(key, len(row_of)) for key in keys], dtype=np.int64)
    n_rows = len(row_of)

    def by_row(column: Floats) -> Floats:
        return _sums(merged, column, n_rows)

    first = np.unique(merged, return_index=True)[1]
    return dataclasses.replace(
        evidence,
        actions=tuple(evidence.actions[row] for row in first.tolist()),
        counts=by_row(evidence.counts),
        weights=by_row(evidence.weights),
        totals=by_row(evidence.totals),
        squares=by_row(evidence.squares),
        unshown=None if evidence.unshown is None else by_row(evidence.unshown),
        by_state=None if evidence.by_state is None else _merged_states(evidence.by_state, merged),
        by_task=None if evidence.by_task is None else _merged_tasks(evidence.by_task, merged),
        latest=None if evidence.latest is None else _merged_latest(evidence.latest, merged),
        choices=tuple(one for choice in evidence.choices if (one := _merged_choice(choice, merged))),
        frontier=None if evidence.frontier is None else _largest(merged, evidence.frontier, n_rows),
        labelled=None if evidence.labelled is None else by_row(evidence.labelled),
    )


def _merged_states(sums: StateSums, merged: Ints) -> StateSums:
    (states, actions), of = np.unique([sums.states, merged[sums.actions]], axis=1, return_inverse=True)
    n = len(states)
    return StateSums(
        states,
        actions,
        _sums(of, sums.counts, n),
        _sums(of, sums.weights, n),
        _sums(of, sums.totals, n),
        _sums(of, sums.squares, n),
        None if sums.shares is None else _sums(of, sums.shares, n),
        None if sums.labelled is None else _sums(of, sums.labelled, n),
        None if sums.leads is None else _largest(of, sums.leads, n),
    )


def _merged_latest(latest: LatestSteps, merged: Ints) -> LatestSteps:
    labels = latest.labels
    if labels is not None:
        (steps, actions), of = np.unique([labels.steps, merged[labels.actions]], axis=1, return_inverse=True)
        labels = LatestLabels(steps, actions, *(_sums(of, column, len(steps)) for column in labels[2:]))
    return dataclasses.replace(latest, actions=merged[latest.actions], labels=labels)


def _merged_tasks(sums: TaskSums, merged: Ints) -> TaskSums:
    cells = [sums.states, merged[sums.actions], sums.tasks]
    (states, actions, tasks), of = np.unique(cells, axis=1, return_inverse=True)
    counts, totals = _sums(of, sums.counts, len(states)), _sums(of, sums.totals, len(states))
    return dataclasses.replace(sums, states=states, actions=actions, tasks=tasks, counts=counts, totals=totals)


def _sums(of: Ints, column: Floats, n: int) -> Floats:
    found: Floats = np.bincount(of, column, n).astype(np.float64)
    return found


def _largest(of: Ints, column: Floats, n: int) -> Floats:
    found = np.full(n, np.nan)
    np.fmax.at(found, of, column)
    return found


def _merged_choice(choice: ObservedChoice, merged: Ints) -> ObservedChoice | None:
    """Return the choice among distinct actions; None if they are all one."""
    options = tuple(dict.fromkeys(merged[list(choice.options)].tolist()))
    return choice._replace(options=options, chosen=int(merged[choice.chosen])) if len(options) > 1 else None


def task_cells(sums: TaskSums) -> TaskCells:
    """Return the sums by task as what the estimators of tasks' effects take."""
    columns = sums.states, sums.actions, sums.tasks, sums.counts, sums.totals, sums.episodes
    return TaskCells(*columns, situations=sums.situations)


def call_shapes(actions: Sequence[str], rows: Ints, evidence: Evidence) -> CallShapes | None:
    """Return which actions are calls of one tool with the same names of arguments; None if no two are.

    Args:
        actions: the candidates.
        rows: their rows of the evidence; -1 if there is none.
        evidence: about the actions that were taken.
    """
    if not any(map(is_call_like, actions)):  # shapes change no other candidate's value
        return None
    stored = _stored(evidence.actions).shapes
    proposed = [form.shape for form in call_forms(actions)]
    untried = (shape for shape, row in zip(proposed, rows.tolist(), strict=True) if row < 0)
    n_calls = Counter([*stored, *untried])
    number_of = {shape: number for number, shape in enumerate(s for s, n in n_calls.items() if s and n > 1)}
    if not number_of:
        return None
    of_stored, of_proposed = (
        np.array([number_of.get(shape, -1) for shape in shapes], dtype=np.int64) for shapes in (stored, proposed)
    )
    return CallShapes(of_stored, of_proposed)


def proposable(action: str, row: int, evidence: Evidence, texts: Sequence[str]) -> bool:
    """Return whether a remembered action may be proposed here.

    A call may if the values of its arguments occur in the present state or goal, or if it was taken in several tasks or
    in the task being played: another customer's order number belongs to another state. A word of four characters or
    more with a digit (`W7745`) is taken for an identifier, in other texts than calls too: several tasks are no proof
    that it belongs here, since one customer may have written several. Other actions may be proposed.

    Args:
        action: as it was taken.
        row: its row of the evidence.
        evidence: with sums by task.
        texts: the state, and the goal if there is one.
    """
    by_task, in_several = evidence.by_task, False
    if by_task is not None:
        tasks = np.unique(by_task.tasks[by_task.actions == row])
        if by_task.current in tasks:
            return True
        in_several = len(tasks) >= _SEVERAL_TASKS
    if not in_several and not _may_occur(action, texts):  # without parsing a long call
        return False
    call = named_call(action)
    return all_occur(_identifiers(action, call), texts) and (in_several or all_occur(call.values, texts))


def _may_occur(action: str, texts: Sequence[str]) -> bool:
    """Return whether the beginning of the longest of a call's values occurs; true where all of them occur."""
    [form] = call_forms([action]) if is_call_like(action) else [None]
    return form is None or any(form.probe in _folded(text) for text in texts)


def _identifiers(action: str, call: NamedCall) -> list[str]:
    """Return the words of an action, of a call those of its values, that look like identifiers."""
    words = _WORD.findall(" ".join(call.values) if call.shape else action)
    return [word for word in words if len(word) >= _IDENTIFIER_CHARS and _DIGIT.search(word)]


def arguments_occur(action: str, texts: Sequence[str]) -> bool:
    """Return whether each value among a call's arguments occurs in one of the texts, as a whole word, in any case.

    True for an action that is no call with named arguments.

    Example:
        >>> [arguments_occur('cancel({"order":"W7"})', [text]) for text in ("please cancel w7", "cancel W77")]
        [True, False]
    """
    return all_occur(named_call(action).values, texts)


def all_occur(values: Sequence[str], texts: Sequence[str]) -> bool:
    """Return whether each value occurs in one of the texts, as a whole word, in any case."""
    return all(any(_occurs(value.casefold(), _folded(text)) for text in texts) for value in values)


def any_occurs(values: Sequence[str], text: str) -> bool:
    """Return whether one of the values occurs in the text, as a whole word, in any case."""
    return any(_occurs(value.casefold(), _folded(text)) for value in values)


def _occurs(value: str, text: str) -> bool:
    return value in text and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


@functools.lru_cache(maxsize=4)
def _folded(text: str) -> str:
    return text.casefold()
