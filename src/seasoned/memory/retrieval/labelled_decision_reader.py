"""Labels of decisions, read from the live feedback events: observations of the options that no step took."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from seasoned.actions import normalize_action
from seasoned.memory.reading.follower import Change, CommitCursor, CommitFollower
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import decode, decode_ints, decoding
from seasoned.memory.values.derived_ids import feedback_of_event
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import Label

__all__ = ["DecisionOptions", "Labelled", "LabelledDecision", "LabelledDecisionReader", "TakenOption"]

_MOST_HELD = 1 << 17
_MOST_OPTIONS = 1 << 14

_ROWS = (
    "SELECT step.set_id, step.visit, prior_id, event.id, event.reward, event.weight, action.text FROM step {index} "
    "JOIN feedback AS event INDEXED BY feedback_by_visit ON event.namespace_id = step.namespace_id "
    "AND event.visit = step.visit "
    "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
    f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
    f"WHERE step.namespace_id = ? AND step.live AND event.kind = '{Label.kind}' AND event.live AND event.weight <> 0 "
    f"AND step.visit - (ordinal << {STEP_BITS}) = episode.steps - 1{{filter}} AND {{column}} IN {{values}}"
)


class DecisionOptions(NamedTuple):
    """The options of a decision: their keys, and their texts."""

    keys: tuple[str, ...]
    texts: tuple[str, ...]


class TakenOption(NamedTuple):
    """An option of a labelled decision that has stored steps: the executed one, or one that a label names.

    Attributes:
        place: of the option.
        n_steps: the number of these steps.
        total, squares: the sums of the labels' rewards, each times the label's weight, less those of the steps.
        unweighted: the total, as if each label weighed 1.
    """

    place: int
    n_steps: int
    total: float = 0.0
    squares: float = 0.0
    unweighted: float = 0.0


class LabelledDecision(NamedTuple):
    """A labelled decision: its options, those of them that have stored steps, and its labels.

    Each label is an observation of every option: of the one that it names with reward 1, of the others with 0.

    Attributes:
        options: of the decision; the executed one is among them.
        taken: those that have stored steps, which hold a part of the observations.
        n_labels: their number, each by another source or author.
        weight: the sum of their weights.
    """

    options: DecisionOptions
    taken: tuple[TakenOption, ...]
    n_labels: int = 1
    weight: float = 1.0

    @property
    def is_plain(self) -> bool:
        """Whether the steps hold the whole reward of the taken options: there is one label, of weight 1."""
        return self.n_labels == 1 and self.weight == 1.0


class Labelled(NamedTuple):
    """How many decisions with the same options and the same labels there are at one distinct state.

    Args:
        set_id: the distinct state.
        decision: what they have in common.
        n: their number.
        weight: their number, an earlier one times `decay^age_in_episodes`.
        ordinal: of the episode of the last one.
    """

    set_id: int
    decision: LabelledDecision
    n: int
    weight: float
    ordinal: int


class _Row(NamedTuple):
    set_id: int
    visit: int
    prior_id: int | None
    event_id: str
    reward: float
    weight: float
    action: str


class _PriorRow(NamedTuple):
    id: int
    logprobs: str


class _Place(NamedTuple):
    visit: int
    set_id: int


_Decisions = dict[int, LabelledDecision]
"""Labelled decisions at one distinct state, by visit."""


class LabelledDecisionReader:
    """Reads the labelled decisions of one namespace. Every method runs inside one snapshot.

    A label on a decision, the only or the last step of its episode, tells the return of every option: nothing comes
    after it. A stored step holds it for the executed option and for the right one; for the others it follows from the
    options that the prior names. So nothing is written for them, and what is revoked, superseded, quarantined or erased
    needs no bookkeeping. The decisions at the states that were asked about are held in RAM, and follow the new events.
    """

    def __init__(self, store: Store, namespace_id: int, follower: CommitFollower) -> None:
        self._store = store
        self._ns = namespace_id
        self._follower = follower
        self._cursor = CommitCursor(follower)
        self._last_event = 0
        self._exist = False
        self._at: dict[int, _Decisions] = {}
        self._summed: dict[int, list[Labelled]] = {}
        self._n_held = 0
        self._options: dict[int, DecisionOptions] = {}
        self._interned: dict[tuple[str, ...], DecisionOptions] = {}

    def catch_up(self) -> None:
        """Follow the new labels at the states that are held."""
        if self._cursor.change() is Change.RESET or self._n_held > _MOST_HELD:
            self._exist, self._last_event = False, 0
            self._forget()
        if self._follower.n_events > self._last_event:
            sql = "SELECT DISTINCT visit FROM feedback WHERE namespace_id = ? AND seq > ? AND kind = ?"
            sql += "" if self._at else " LIMIT 1"
            rows = self._store.execute(sql, (self._ns, self._last_event, Label.kind)).fetchall()
            visits = decode_ints(self._store.path, "visit", rows)
            self._exist = self._exist or bool(visits)
            if self._at and visits:
                self._follow(visits)
            self._last_event = self._follower.n_events
        self._cursor.advance()

    def _forget(self) -> None:
        for held in (self._at, self._summed, self._options, self._interned):
            held.clear()
        self._n_held = 0

    def _follow(self, visits: Sequence[int]) -> None:
        """Add the decisions at these visits; a state at which one was labelled before is read again when needed."""
        rows = self._store.execute_in(
            "SELECT visit, set_id FROM step WHERE namespace_id = ? AND visit IN {values}", (self._ns,), visits
        )
        places = [place for place in decode(self._store.path, rows, _Place) if place.set_id in self._at]
        found = self._read("step.visit", "", [place.visit for place in places], TaskFilter(None))
        known = {place.set_id for place in places if place.visit in self._at[place.set_id]}
        for set_id in {place.set_id for place in places}:
            if set_id in known or not found.get(set_id):
                self._n_held -= len(self._at.pop(set_id))
                self._summed.pop(set_id, None)
                continue
            self._at[set_id].update(found[set_id])
            self._n_held += len(found[set_id])
            if set_id in self._summed:
                self._summed[set_id] = _summed(set_id, found[set_id], 1.0, 0, self._summed[set_id])

    def at(self, set_ids: Collection[int], task_filter: TaskFilter, *, decay: float, now: int) -> list[Labelled]:
        """Return the labelled decisions at these distinct states.

        Args:
            set_ids: the distinct states.
            task_filter: which task is excluded.
            decay: a decision counts `decay^age_in_episodes`.
            now: the ordinal of the last episode.
        """
        found: list[Labelled] = []
        plain = decay == 1.0 and not task_filter
        for set_id, decisions in self.decisions(set_ids, task_filter).items():
            if plain and set_id in self._summed:
                found += self._summed[set_id]
                continue
            summed = _summed(set_id, decisions, decay, now)
            if plain:
                self._summed[set_id] = summed
            found += summed
        return found

    def decisions(self, set_ids: Iterable[int], task_filter: TaskFilter) -> Mapping[int, _Decisions]:
        """Return the labelled decisions, by visit, at those of these distinct states that have any."""
        if not self._exist:
            return {}
        if task_filter:
            return self._read("set_id", "INDEXED BY step_by_set", list(set_ids), task_filter)
        wanted = list(set_ids)
        missing = [set_id for set_id in wanted if set_id not in self._at]
        if missing:
            found = self._read("set_id", "INDEXED BY step_by_set", missing, TaskFilter(None))
            for set_id in missing:
                self._at[set_id] = found.get(set_id, {})
                self._n_held += 1 + len(self._at[set_id])
        return {set_id: self._at[set_id] for set_id in wanted if self._at[set_id]}

    def _read(self, column: str, index: str, values: Sequence[int], task_filter: TaskFilter) -> dict[int, _Decisions]:
        """Return the labelled decisions at these distinct states or visits."""
        sql = _ROWS.replace("{column}", column).replace("{index}", index).replace("{filter}", task_filter.condition)
        rows = decode(
            self._store.path, self._store.execute_in(sql, (self._ns, *task_filter.values), sorted(values)), _Row
        )
        self._read_options({row.prior_id for row in rows if row.prior_id is not None})
        answers: dict[str, str] = {}  # the right option, where another was executed
        of_decision: defaultdict[tuple[int, int], list[_Row]] = defaultdict(list)
        for row in rows:
            if row.prior_id is None:
                answers[feedback_of_event(row.event_id)] = row.action
            else:
                of_decision[row.visit, row.prior_id].append(row)
        found: defaultdict[int, _Decisions] = defaultdict(dict)
        for (visit, prior_id), labels in of_decision.items():
            named = [
                (row, row.action if row.reward else answers.get(feedback_of_event(row.event_id))) for row in labels
            ]
            known = [(row, option) for row, option in named if option is not None]
            if known:
                options = self._with(self._options[prior_id], [labels[0].action, *(option for _, option in known)])
                found[labels[0].set_id][visit] = _decision(options, labels, known)
        return found

    def _with(self, options: DecisionOptions, taken: Iterable[str]) -> DecisionOptions:
        """Return these options with those that were taken and are not among them: memory alone proposed them."""
        new = {key: text for text in taken if (key := normalize_action(text)) not in options.keys}
        return self._intern((*options.texts, *new.values())) if new else options

    def _intern(self, texts: tuple[str, ...]) -> DecisionOptions:
        if texts not in self._interned:
            self._interned[texts] = DecisionOptions(tuple(map(normalize_action, texts)), texts)
        return self._interned[texts]

    def _read_options(self, prior_ids: Collection[int]) -> None:
        if len(self._options) > _MOST_OPTIONS:
            self._options.clear()
            self._interned.clear()
        missing = sorted(id_ for id_ in prior_ids if id_ not in self._options)
        sql = "SELECT id, logprobs FROM prior WHERE namespace_id = ? AND id IN {values}"
        rows = self._store.execute_in(sql, (self._ns,), missing)
        for row in decode(self._store.path, rows, _PriorRow):
            with decoding(self._store.path):
                texts = tuple(map(str, json.loads(row.logprobs)))
                self._options[row.id] = self._intern(texts)


def _decision(options: DecisionOptions, labels: Sequence[_Row], known: Sequence[tuple[_Row, str]]) -> LabelledDecision:
    """Return a labelled decision: what its labels tell beside its steps, whatever else these hold.

    The step of the executed option holds the mean of the labels. Each label that names another option has a step of
    that option, with reward 1. Other feedback is of the step alone, so only labels change what this returns.

    Args:
        options: of the decision.
        labels: on it.
        known: those whose option is known, each with the option.
    """
    place_of = {key: place for place, key in enumerate(options.keys)}
    executed = place_of[normalize_action(labels[0].action)]
    names = [place_of[normalize_action(option)] for _, option in known]
    weights = [row.weight for row, _ in known]
    weight = math.fsum(weights)
    if len(labels) == 1 and weight == 1.0:  # the steps hold all
        return LabelledDecision(options, tuple(TakenOption(place, 1) for place in sorted({executed, *names})))
    mean = math.fsum(row.weight * row.reward for row in labels) / math.fsum(row.weight for row in labels)
    taken = []
    for place in sorted({executed, *names}):
        n_steps, reward = (1, mean) if place == executed else (names.count(place), 1.0)
        told = math.fsum(w for w, name in zip(weights, names, strict=True) if name == place)
        total, squares = told - n_steps * reward, told - n_steps * reward**2
        taken.append(TakenOption(place, n_steps, total, squares, names.count(place) - n_steps * reward))
    return LabelledDecision(options, tuple(taken), len(known), weight)


def _summed(
    set_id: int, decisions: _Decisions, decay: float, now: int, before: Sequence[Labelled] = ()
) -> list[Labelled]:
    """Return how often alike decisions at a state were labelled, those summed before included."""
    ordinals: defaultdict[LabelledDecision, list[int]] = defaultdict(list)
    for visit, decision in decisions.items():
        ordinals[decision].append(visit >> STEP_BITS)
    found = {one.decision: one for one in before}
    for decision, at in ordinals.items():
        known = found.get(decision, Labelled(set_id, decision, 0, 0.0, 0))
        weight = known.weight + sum(decay ** (now - one) for one in at)
        found[decision] = Labelled(set_id, decision, known.n + len(at), weight, max(known.ordinal, *at))
    return list(found.values())
