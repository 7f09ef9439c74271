"""Choices at distinct states, read from the live feedback events, and their effects on stored returns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from seasoned.memory.reading.follower import Change, CommitCursor, CommitFollower
from seasoned.memory.reading.rows import EvidenceRow, LatestStep, RecentReturn, StepCell
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS
from seasoned.memory.values.corruption import decode, decode_ints
from seasoned.memory.values.derived_ids import feedback_of_answer, feedback_of_event
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.memory.writing.namespace_row import read_feedback_limits
from seasoned.types import ALTERNATIVE, Choice, EvidenceQuery, ObservedChoice

__all__ = ["ChoiceEffect", "ChoiceReader", "ChoicesAtStates", "StoredChoice", "observed_choices", "without_choices"]

_Step = TypeVar("_Step", LatestStep, RecentReturn)


class StoredChoice(NamedTuple):
    """A choice: its distinct state, the keys of its options, the chosen one, its weight, the visits of its steps.

    And its author, None if unnamed, and when it was given, in seconds since 1970.
    """

    set_id: int
    keys: tuple[int, ...]
    chosen: int
    weight: float
    visits: tuple[int, ...]
    author: str | None
    created_at: float


class ChoiceEffect(NamedTuple):
    """What choices contribute to a step: the part of its return, and whether the step is there for a choice alone."""

    return_: float
    is_answer: bool


class ChoicesAtStates(NamedTuple):
    """The choices at some distinct states, rows that take them out of the sums there, and their effects on steps."""

    choices: list[StoredChoice]
    corrections: list[EvidenceRow]
    effects: dict[int, ChoiceEffect]


class _ReachedStep(NamedTuple):
    visit: int
    set_id: int


class _ReturnedStep(NamedTuple):
    visit: int
    set_id: int
    key_id: int
    return_: float


class _EventRow(NamedTuple):
    id: str
    visit: int
    reward: float
    weight: float
    kind: str | None
    author: str | None
    created_at: float


class _AnswerRow(NamedTuple):
    ordinal: int
    id: str


class ChoiceReader:
    """Reads the choices of one namespace. Every method runs inside one snapshot.

    A choice among N is stored as N feedback events, on the executed step and on the episodes of the answers that were
    not executed. They are rewards of these steps, so that returns, search and prompts see them; here they are put
    together again as one observation each. The reader holds in RAM which steps choices may reach, the earlier steps of
    their episodes included, and reads those of the neighbours anew for each query. So revoked, superseded, reweighted,
    quarantined and erased choices need no bookkeeping.
    """

    def __init__(self, store: Store, namespace_id: int, follower: CommitFollower) -> None:
        self._store = store
        self._ns = namespace_id
        self._follower = follower
        self._cursor = CommitCursor(follower)
        self._last_event = 0
        self._reached: defaultdict[int, set[int]] = defaultdict(set)
        self._rated: defaultdict[int, set[int]] = defaultdict(set)

    def catch_up(self) -> None:
        """Read which steps the new events reach; nothing is read where there are none."""
        change = self._cursor.change()
        if change is Change.RESET:
            self._last_event = 0
            self._reached.clear()
            self._rated.clear()
        if self._follower.n_events > self._last_event:
            self._read_reached()
            self._last_event = self._follower.n_events
        self._cursor.advance()

    def _read_reached(self) -> None:
        """Add the steps of the new choices: by distinct state, and the rated steps by episode."""
        rows = self._store.execute(
            "SELECT DISTINCT visit FROM feedback WHERE namespace_id = ? AND seq > ? AND kind = ?",
            (self._ns, self._last_event, Choice.kind),
        ).fetchall()
        reached: set[int] = set()
        for visit in decode_ints(self._store.path, "visit", rows):
            self._rated[visit >> STEP_BITS].add(visit)
            reached.update(range(visit & -MAX_STEPS, visit + 1))
        steps = self._store.execute_in(
            "SELECT visit, set_id FROM step WHERE namespace_id = ? AND visit IN {values}", (self._ns,), sorted(reached)
        )
        for step in decode(self._store.path, steps, _ReachedStep):
            self._reached[step.set_id].add(step.visit)

    @property
    def set_ids(self) -> list[int]:
        """The distinct states of the steps that choices may reach."""
        return list(self._reached)

    def at(self, set_ids: Iterable[int], view_id: int, gamma: float, task_filter: TaskFilter) -> ChoicesAtStates:
        """Return the live choices at these distinct states outside of the excluded task, on the latest episodes first.

        Where several named authors chose at one distinct state, of each one's choices there only the latest count, as
        many as the namespace's limit allows (`FeedbackLimits.max_author_choices`).

        Args:
            set_ids: the distinct states.
            view_id: the view of the returns that the corrections take choices out of.
            gamma: its discount.
            task_filter: which task is excluded.
        """
        reached = sorted(visit for set_id in set_ids for visit in self._reached.get(set_id, ()))
        if not reached:
            return ChoicesAtStates([], [], {})
        joins = f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
        rows = self._store.execute_in(
            "SELECT step.visit, set_id, key_id, return_ FROM step "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            f"{joins if task_filter else ''}"
            "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
            f"WHERE step.namespace_id = ? AND live{task_filter.condition} AND step.visit IN {{values}}",
            (view_id, self._ns, *task_filter.values),
            reached,
        )
        steps = {step.visit: step for step in decode(self._store.path, rows, _ReturnedStep)}
        events = self._events(steps)
        effects = self._effects(steps, events, gamma)
        limits = read_feedback_limits(self._store, self._ns)
        choices = _latest_by_author(
            _together(events, {visit: StepCell(*step[:3]) for visit, step in steps.items()}), limits.max_author_choices
        )
        corrections = [_correction(steps[visit], effect) for visit, effect in effects.items()]
        return ChoicesAtStates(sorted(choices, key=lambda choice: -max(choice.visits)), corrections, effects)

    def effects(self, visits: Iterable[int], gamma: float) -> dict[int, ChoiceEffect]:
        """Return the effects of live choices on those of these live steps that have any."""
        if not self._rated:
            return {}
        rated = [visit for visit in visits if visit >> STEP_BITS in self._rated]
        return self._effects(rated, self._events(rated), gamma)

    def _events(self, visits: Iterable[int]) -> list[_EventRow]:
        """Return the live events on these steps and on the later rated steps of their episodes."""
        rated = {visit for ordinal in {at >> STEP_BITS for at in visits} for visit in self._rated.get(ordinal, ())}
        rows = self._store.execute_in(
            "SELECT id, visit, reward, weight, kind, author, created_at FROM feedback INDEXED BY feedback_by_visit "
            "WHERE namespace_id = ? AND live AND visit IN {values}",
            (self._ns,),
            sorted(rated),
        )
        return decode(self._store.path, rows, _EventRow)

    def _effects(self, visits: Iterable[int], events: Sequence[_EventRow], gamma: float) -> dict[int, ChoiceEffect]:
        by_episode: defaultdict[int, list[_EventRow]] = defaultdict(list)
        for event in events:
            by_episode[event.visit >> STEP_BITS].append(event)
        answers = self._answers(by_episode)
        effects: dict[int, ChoiceEffect] = {}
        for visit in visits:
            of_episode = by_episode.get(visit >> STEP_BITS, ())
            chosen = [event for event in of_episode if event.kind == Choice.kind and event.visit >= visit]
            if chosen:
                part = sum(gamma ** (event.visit - visit) * event.reward * event.weight for event in chosen)
                is_answer = visit >> STEP_BITS in answers and len(chosen) == len(of_episode)
                effects[visit] = ChoiceEffect(part, is_answer)
        return effects

    def _answers(self, events: Mapping[int, Sequence[_EventRow]]) -> set[int]:
        """Return the ordinals of the episodes that the choices of these events made."""
        rows = self._store.execute_in(
            "SELECT ordinal, id FROM episode WHERE namespace_id = ? AND arm = ? AND ordinal IN {values}",
            (self._ns, ALTERNATIVE),
            sorted(events),
        )
        return {
            ordinal
            for ordinal, id_ in decode(self._store.path, rows, _AnswerRow)
            if feedback_of_answer(id_) in {feedback_of_event(e.id) for e in events[ordinal] if e.kind == Choice.kind}
        }


def without_choices(steps: Iterable[_Step], effects: Mapping[int, ChoiceEffect]) -> Iterator[_Step]:
    """Yield the steps without those that choices made, their returns less what choices contribute."""
    for step in steps:
        effect = effects.get(step.visit)
        if effect is None:
            yield step
        elif not effect.is_answer:
            yield step._replace(return_=step.return_ - effect.return_)


def _together(events: Iterable[_EventRow], cells: Mapping[int, StepCell]) -> list[StoredChoice]:
    """Return the choices of these events among the options at the given steps.

    Of a choice whose chosen option is not among them nothing is known. If another is missing, for instance because its
    episode was erased, the choice among the rest is an observation of the same model.
    """
    by_choice: defaultdict[str, list[_EventRow]] = defaultdict(list)
    for event in events:
        if event.kind == Choice.kind and event.visit in cells and event.weight > 0.0:
            by_choice[feedback_of_event(event.id)].append(event)
    choices = []
    for of_choice in by_choice.values():
        chosen = [event for event in of_choice if event.reward > 0.0]
        if len(chosen) == 1 and len(of_choice) > 1:
            visits = tuple(event.visit for event in of_choice)
            keys = tuple(cells[visit].key_id for visit in visits)
            cell = cells[chosen[0].visit]
            [event] = chosen
            choices.append(
                StoredChoice(cell.set_id, keys, cell.key_id, event.weight, visits, event.author, event.created_at)
            )
    return choices


def _latest_by_author(choices: list[StoredChoice], n_latest: int | None) -> list[StoredChoice]:
    """Return the choices without those of a named author that are followed by `n_latest` at the same distinct state.

    At a state where no other named author chose, there is nobody to outvote, and all choices count.
    """
    if n_latest is None:
        return choices
    authors: defaultdict[int, set[str]] = defaultdict(set)
    for choice in choices:
        if choice.author is not None:
            authors[choice.set_id].add(choice.author)
    n_later: Counter[tuple[str, int]] = Counter()
    counted = []
    for choice in sorted(choices, key=lambda choice: (choice.created_at, choice.visits), reverse=True):
        if choice.author is not None and len(authors[choice.set_id]) > 1:
            n_later[choice.author, choice.set_id] += 1
            if n_later[choice.author, choice.set_id] > n_latest:
                continue
        counted.append(choice)
    return counted


def _correction(step: _ReturnedStep, effect: ChoiceEffect) -> EvidenceRow:
    """Return the row that turns the sums with this step into sums without what choices contribute to it."""
    old, ordinal = step.return_, step.visit >> STEP_BITS
    if effect.is_answer:
        return EvidenceRow(step.set_id, step.key_id, -1, -1.0, -old, -old * old, ordinal)
    new = old - effect.return_
    return EvidenceRow(step.set_id, step.key_id, 0, 0.0, new - old, new * new - old * old, ordinal)


def observed_choices(
    choices: Sequence[StoredChoice], query: EvidenceQuery, sets: Mapping[int, float], keys: Sequence[int], now: int
) -> tuple[ObservedChoice, ...]:
    """Return choices with the numbers of their states and actions, those at the most similar states first."""
    rank_of = {set_id: rank for rank, set_id in enumerate(sets)}
    row_of = {key_id: row for row, key_id in enumerate(keys)}
    observed = []
    for choice in sorted(choices, key=lambda choice: rank_of[choice.set_id]):
        age = now - (max(choice.visits) >> STEP_BITS)
        weight = choice.weight * sets[choice.set_id] ** query.similarity_power * query.decay**age
        options = tuple(row_of[key_id] for key_id in choice.keys)
        observed.append(ObservedChoice(rank_of[choice.set_id], options, row_of[choice.chosen], weight))
    return tuple(observed)
