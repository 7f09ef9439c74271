"""Verification of a namespace: derived data is derived again, raw data is hashed again."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from seasoned.canonical_json import canonical_json
from seasoned.core import discounted_returns
from seasoned.core.lift.assignment import unit_number
from seasoned.errors import InputError, IntegrityError
from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import EvidenceRow
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import COUNTERS, STEP_BITS
from seasoned.memory.values.content_hash import text_digest
from seasoned.memory.values.corruption import decode, decode_ints, decode_texts, decoding
from seasoned.memory.values.events import EventReward, feedback_sum
from seasoned.memory.values.feedback_policy import SILENCE, FeedbackRule
from seasoned.memory.values.row_checksum import NOT_COVERED, row_checksum, settings_checksum
from seasoned.memory.writing.evidence_views import histogram_bin, summed
from seasoned.memory.writing.exclusions import Exclusions, answers_in_body, feedback_condition
from seasoned.memory.writing.namespace_row import read_feedback_rule
from seasoned.memory.writing.note_records import check_feedback_note, check_known_note, note_digest, read_notes
from seasoned.memory.writing.unjudged_episodes import awaits_at_first
from seasoned.types import ALTERNATIVE, FEEDBACK_KINDS, Episode, normalize_action
from seasoned.types.lift_records import Assignment
from seasoned.types.notes import ASSIGNMENT

__all__ = ["Verification", "verify"]

_TOLERANCE = 1e-9
_MAX_SUM = 1e150
"""No sum of rewards is larger: a reward is at most 1e100. The square of a sum is finite."""

_Row = TypeVar("_Row", bound=tuple[Any, ...])


class _EpisodeLength(NamedTuple):
    ordinal: int
    n_steps: int


class _FeedbackNote(NamedTuple):
    id: str
    body: str
    source: str
    author: str | None
    created_at: float
    revoked_at: float | None


class _Live(NamedTuple):
    live: bool


class _Awaiting(NamedTuple):
    ordinal: int
    awaiting: bool


class _StepState(NamedTuple):
    visit: int
    set_id: int
    state_set_id: int
    feedback: float
    live: bool


class _LastVisit(NamedTuple):
    set_id: int
    visit: int


class _KeyedText(NamedTuple):
    id: int
    text: str
    key: bytes


class _KeyedTokens(NamedTuple):
    id: int
    tokens: bytes
    key: bytes


class _StateRow(NamedTuple):
    id: int
    text: str
    key: bytes
    set_id: int


class _ActionRow(NamedTuple):
    id: int
    text: str
    digest: bytes
    key_id: int
    key: bytes


class _NumberRange(NamedTuple):
    lowest: int
    highest: int
    n_rows: int


class _LiveStep(NamedTuple):
    visit: int
    reward: float
    feedback: float
    set_id: int
    key_id: int


class _NamespaceRow(NamedTuple):
    name: str
    encoder: str
    gamma: float
    redaction: str
    created_at: float
    feedback_limits: str
    feedback_policy: str
    checksum: bytes


class _EpisodeChecksum(NamedTuple):
    id: str
    digest: bytes
    created_at: float
    checksum: bytes


class _EventChecksum(NamedTuple):
    id: str
    digest: bytes
    revoked_at: float | None
    superseded_by: str | None
    checksum: bytes


class _EndChecksum(NamedTuple):
    id: str
    digest: bytes
    end: float | None
    checksum: bytes


class _CopyChecksum(NamedTuple):
    kind: str
    path: str
    created_at: float
    checksum: bytes


class _View(NamedTuple):
    id: int
    gamma: float
    decay: float


class _Discount(NamedTuple):
    gamma: float


class _Return(NamedTuple):
    visit: int
    return_: float


class _Mean(NamedTuple):
    mean: float
    n_cells: int


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of a verification.

    `hash` covers the raw content of the namespace: episodes with their times of storage, feedback and notes with their
    revocations, quarantines with their releases. Equal content has an equal hash in any store; name, encoder, gamma,
    limits, feedback rule and the list of copies are settings of a store, and no part of it. `waiting` is the number of
    pending episodes (see `MemoryStats`). `notes` counts revoked notes and the notes of feedback too. `malformed_notes`
    are the ids of unrevoked notes whose body is not of their kind's form; their readers skip them. `not_covered` names
    the columns whose values no hash, no checksum and no derivation confirms.
    """

    namespace: str
    hash: str
    episodes: int
    steps: int
    states: int
    distinct_states: int
    feedback: int
    views: int
    waiting: int = 0
    notes: int = 0
    malformed_notes: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = NOT_COVERED


class _Check:
    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, holds: bool, message: str) -> None:
        if not holds:
            raise IntegrityError(
                f"{self._path}: {message}",
                "the derived rows must follow from the raw rows",
                "Restore a backup, or export the episodes and import them into a new store.",
            )


class _Rows:
    """Decoded rows of one namespace.

    Raises:
        IntegrityError: by every method, where a stored value is damaged.
    """

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id
        self.path = store.path

    def raw(self, sql: str, *parameters: object) -> list[Any]:
        """Return rows as the driver returned them."""
        return self._store.execute(sql, (self._ns, *parameters)).fetchall()

    def __call__(self, row_type: type[_Row], sql: str, *parameters: object) -> list[_Row]:
        """Return rows as NamedTuples."""
        return decode(self.path, self.raw(sql, *parameters), row_type)

    def ids(self, sql: str) -> set[int]:
        """Return the ids in the only column; NULL is left out."""
        return set(decode_ints(self.path, "id", [row for row in self.raw(sql) if row[0] is not None]))


def verify(store: Store, namespace_id: int, name: str, features: Callable[[str], frozenset[str]]) -> Verification:
    """Check one namespace inside one snapshot; see `Memory.verify`."""
    check = _Check(store.path)
    rows = _Rows(store, namespace_id)
    problems = store.problems()
    check(not problems, "; ".join(problems[:3]))
    reader = Reader(store, namespace_id)
    running = hashlib.sha256(b"seasoned:namespace:v1\n")
    quarantines = list(reader.quarantines())
    active = Exclusions(store, namespace_id, [one.selection for _, one in quarantines if one.lifted_at is None])
    answers = _excluded_answers(rows, active)
    checked_awaiting = _awaiting_check(check, rows, read_feedback_rule(store, namespace_id))
    n_episodes = n_steps = n_waiting = n_folded = last = 0
    live: dict[int, bool] = {}
    lengths = dict(rows(_EpisodeLength, "SELECT ordinal, steps FROM episode WHERE namespace_id = ?"))
    steps_of: dict[str, int] = {}
    for ordinal, created_at, content, episode in reader.episodes():
        n_episodes += 1
        n_steps += len(episode.steps)
        steps_of[str(episode.id)] = len(episode.steps)
        counted = lengths.pop(ordinal, None)
        check(
            counted == len(episode.steps),
            f"episode {episode.id!r} has {len(episode.steps)} steps and a step count of {counted}",
        )
        running.update(content + repr(created_at).encode())
        if ordinal < 0:
            n_waiting += 1
            continue
        n_folded += len(episode.steps)
        provenance = {field: getattr(episode, field) for field in ("task", "model", "policy", "arm", "subject")}
        excluded = active.covers_episode(str(episode.id), provenance, created_at)
        excluded |= episode.arm == ALTERNATIVE and episode.id in answers
        live[ordinal] = episode.ending != "aborted" and not checked_awaiting(ordinal, episode) and not excluded
        check(ordinal > last, f"episode {episode.id!r} has ordinal {ordinal} after {last}")
        last = ordinal
    check(not lengths, f"{len(lengths)} episodes have an invalid ordinal")
    n_events = 0
    for mark in _check_events(check, rows, reader, active):
        n_events += 1
        running.update(mark)
    for content, quarantine in quarantines:
        check(quarantine.digest() == content, f"quarantine {quarantine.id!r} differs from its hash")
        running.update(content + repr(quarantine.lifted_at).encode())
    n_notes = 0
    malformed: list[str] = []
    for mark in _check_notes(check, store, namespace_id, steps_of, malformed):
        n_notes += 1
        running.update(mark)
    discounts = [row.gamma for row in rows(_Discount, "SELECT gamma FROM namespace WHERE id = ?")]
    check(len(discounts) == 1 and 0.0 <= discounts[0] <= 1.0, f"the namespace's gamma is {discounts}")
    _check_steps(check, rows, n_folded, live)
    n_states, n_sets = _check_texts(check, rows, features)
    _check_references(check, rows)
    n_views = _check_views(check, rows)
    _check_counters(check, rows)
    _check_checksums(check, rows)
    counts = n_episodes, n_steps, n_states, n_sets, n_events, n_views, n_waiting, n_notes
    return Verification(name, running.hexdigest(), *counts, tuple(malformed))


def _awaiting_check(check: _Check, rows: _Rows, rule: FeedbackRule) -> Callable[[int, Episode], bool]:
    """Return a function that checks `awaiting` of an episode, given with its ordinal, and returns it."""
    judged = rows.ids(
        f"SELECT DISTINCT visit >> {STEP_BITS} FROM feedback WHERE namespace_id = ? AND live AND weight <> 0"
    )
    stored = dict(rows(_Awaiting, "SELECT ordinal, awaiting FROM episode WHERE namespace_id = ?"))

    def checked(ordinal: int, episode: Episode) -> bool:
        awaits = awaits_at_first(episode, rule) and ordinal not in judged
        check(stored.get(ordinal) == int(awaits), f"episode {episode.id!r} has awaiting = {stored.get(ordinal)}")
        return awaits

    return checked


def _excluded_answers(rows: _Rows, active: Exclusions) -> set[str]:
    """Return the answers of feedback that is revoked or weighs 0, or whose source or author is in quarantine."""
    found: set[str] = set()
    made: set[str] = set()
    for note in rows(
        _FeedbackNote,
        "SELECT id, body, source, author, created_at, revoked_at FROM note "
        f"WHERE namespace_id = ? AND {feedback_condition()}",
    ):
        answers = answers_in_body(rows.path, note.id, note.body)
        made.update(answers)
        if note.revoked_at is not None or active.covers_event(note.source, note.author, note.created_at):
            found.update(answers)
    return found | active.weightless_answers(made)


def _check_events(check: _Check, rows: _Rows, reader: Reader, active: Exclusions) -> Iterator[bytes]:
    """Yield the bytes of each feedback event for the hash."""
    events = list(reader.events())
    live_events = rows(_Live, "SELECT live FROM feedback WHERE namespace_id = ? ORDER BY seq")
    check(len(live_events) == len(events), f"{len(live_events) - len(events)} feedback events refer to no episode")
    broken_events = reader.broken_supersessions()
    check(
        not broken_events,
        f"feedback {broken_events[:1]} is superseded without a later event of its kind, source, author and step",
    )
    counted = [
        event.revoked_at is None and not active.covers_event(event.source, event.author, event.created_at)
        for _, event in events
    ]
    judged = {
        event.episode_id
        for (_, event), stands in zip(events, counted, strict=True)
        if stands and event.weight and event.source != SILENCE
    }
    for (content, event), (is_live,), stands in zip(events, live_events, counted, strict=True):
        counts = stands and not (event.source == SILENCE and event.episode_id in judged)
        check(is_live == int(counts), f"feedback {event.id!r} has live = {is_live}, expected {int(counts)}")
        check(event.digest() == content, f"feedback {event.id!r} differs from its hash")
        yield content + repr((event.revoked_at, event.superseded_by)).encode()


def _check_notes(
    check: _Check, store: Store, namespace_id: int, steps_of: dict[str, int], malformed: list[str]
) -> Iterator[bytes]:
    """Yield the bytes of each note for the hash; add the ids of malformed ones to `malformed`."""
    for content, note in read_notes(store, namespace_id):
        check(note_digest(note) == content, f"note {note.id!r} differs from its hash")
        there = note.episode_id in steps_of and (note.step is None or note.step < steps_of[note.episode_id])
        check(there, f"note {note.id!r} refers to an episode or a step that is not stored")
        if note.kind in FEEDBACK_KINDS:
            with decoding(store.path):
                check_feedback_note(note)
        try:
            check_known_note(note)
        except InputError:
            malformed.append(note.id)
        else:
            if note.kind == ASSIGNMENT and note.revoked_at is None:
                drawn = Assignment.from_record(note.body)  # its arm follows from u
                expected = unit_number(drawn.salt, drawn.namespace, drawn.unit)
                check(drawn.u == expected, f"note {note.id!r} assigns by u = {drawn.u}, the unit draws {expected}")
        yield content + repr(note.revoked_at).encode()


def _check_steps(check: _Check, rows: _Rows, n_steps: int, live: dict[int, bool]) -> None:
    given: defaultdict[int, list[EventReward]] = defaultdict(list)
    events = "SELECT visit, reward, weight, kind FROM feedback WHERE namespace_id = ? AND live ORDER BY seq"
    for event in rows(EventReward, events):
        check(
            abs(event.reward * event.weight) <= _MAX_SUM,
            f"a reward of {event.reward} times {event.weight} is too large",
        )
        given[event.visit].append(event)
    last: dict[int, int] = {}
    steps = rows(
        _StepState,
        "SELECT visit, step.set_id, state.set_id, feedback, live FROM step "
        "JOIN state ON state.namespace_id = step.namespace_id AND state.id = state_id WHERE step.namespace_id = ?",
    )
    check(len(steps) == n_steps, f"{len(steps)} steps are stored, the episodes have {n_steps}")
    lengths = Counter(step.visit >> STEP_BITS for step in steps)
    for visit, set_id, state_set, feedback, is_live in steps:
        where = f"step {visit & ((1 << STEP_BITS) - 1)} of episode number {visit >> STEP_BITS}"
        check(set_id == state_set, f"{where} has another feature set than its state")
        total = feedback_sum(given[visit], alone=lengths[visit >> STEP_BITS] == 1)
        check(feedback == total, f"{where} carries feedback {feedback}, its events add up to {total}")
        check(visit >> STEP_BITS in live, f"{where} belongs to no episode")
        check(is_live == int(live[visit >> STEP_BITS]), f"{where} and its episode differ in `live`")
        if is_live:
            last[set_id] = max(last.get(set_id, -1), visit)
    last_visits = rows(
        _LastVisit, "SELECT id, last_visit FROM feature_set WHERE namespace_id = ? AND last_visit IS NOT NULL"
    )
    check(dict(last_visits) == last, "the last visit of a distinct state is not its latest live step")


def _check_texts(check: _Check, rows: _Rows, features: Callable[[str], frozenset[str]]) -> tuple[int, int]:
    tokens: dict[str, int] = {}
    for id_, text, key in rows(_KeyedText, "SELECT id, text, digest FROM token WHERE namespace_id = ?"):
        check(text_digest(text) == key, f"token {id_} differs from its key")
        tokens[text] = id_
    sets = {}
    for set_id, members, key in rows(_KeyedTokens, "SELECT id, tokens, digest FROM feature_set WHERE namespace_id = ?"):
        check(text_digest(members) == key, f"feature set {set_id} differs from its key")
        check(len(members) % 4 == 0, f"feature set {set_id} is cut off")
        sets[set_id] = frozenset(np.frombuffer(members, dtype="<u4").tolist())
    states = rows(_StateRow, "SELECT id, text, digest, set_id FROM state WHERE namespace_id = ?")
    for state_id, text, key, set_id in states:
        check(text_digest(text) == key, f"state {state_id} differs from its key")
        expected = {tokens.get(feature, -1) for feature in features(text)}
        check(
            set_id in sets and expected == sets[set_id],
            f"state {state_id} is encoded to other features than are stored",
        )
    first: dict[bytes, int] = {}
    for id_, text, digest_, key_id, key in rows(
        _ActionRow, "SELECT id, text, digest, key_id, key_digest FROM action WHERE namespace_id = ? ORDER BY id"
    ):
        check(text_digest(text) == digest_, f"action {id_} differs from its digest")
        right = text_digest(normalize_action(text)) == key and first.setdefault(key, id_) == key_id
        check(right, f"action {id_} has the wrong key")
    for id_, text, key in rows(_KeyedText, "SELECT id, logprobs, digest FROM prior WHERE namespace_id = ?"):
        check(text_digest(text) == key, f"prior {id_} differs from its key")
    used = {token for members in sets.values() for token in members}
    check(
        used == set(tokens.values()),
        "a token belongs to no feature set, or a feature set has a token that is not stored",
    )
    return len(states), len(sets)


def _check_references(check: _Check, rows: _Rows) -> None:
    """Check that every reference has its row, and every row a reference."""
    ids = rows.ids
    visits = ids("SELECT DISTINCT visit FROM step WHERE namespace_id = ?")
    check(ids("SELECT DISTINCT visit FROM feedback WHERE namespace_id = ?") <= visits, "feedback refers to no step")
    final = ids("SELECT DISTINCT final_state_id FROM episode WHERE namespace_id = ?")
    for table, column, more in (
        ("state", "state_id", final),
        ("action", "action_id", set[int]()),
        ("prior", "prior_id", set[int]()),
    ):
        there = ids(f"SELECT id FROM {table} WHERE namespace_id = ?")
        meant = ids(f"SELECT DISTINCT {column} FROM step WHERE namespace_id = ?") | more
        check(meant <= there, f"a step or an episode refers to a {table} that is not stored")
        check(there <= meant, f"a {table} has no step and no episode that refers to it")
    sets = ids("SELECT id FROM feature_set WHERE namespace_id = ?")
    check(
        sets == ids("SELECT DISTINCT set_id FROM state WHERE namespace_id = ?"),
        "a feature set belongs to no state, or a state to no feature set",
    )


def _check_counters(check: _Check, rows: _Rows) -> None:
    [row] = rows.raw(f"SELECT {', '.join(COUNTERS)}, notes FROM namespace WHERE id = ?")
    *counted, notes = decode_ints(rows.path, "a counter", [(value,) for value in row])
    [removed] = decode_texts(rows.path, "removed", rows.raw("SELECT removed FROM namespace WHERE id = ?"))
    with decoding(rows.path):
        gone: dict[str, int] = dict(json.loads(removed))
        decode_ints(rows.path, "a count of removed records", [(value,) for value in gone.values()])
        right = removed == canonical_json(gone) and gone.keys() <= {*COUNTERS, "notes"}
    check(right, f"the namespace has invalid counts of removed records: {removed}")
    numbered = (
        ("episode", "ordinal"),
        ("state", "id"),
        ("feature_set", "id"),
        ("token", "id"),
        ("action", "id"),
        ("prior", "id"),
        ("view", "id"),
        ("feedback", "seq"),
        ("quarantine", "seq"),
        ("copy", "seq"),
    )
    for (table, column), name, count in zip(numbered, COUNTERS, counted, strict=True):
        [(lowest, highest, there)] = rows(
            _NumberRange,
            f"SELECT coalesce(min({column}), 1), coalesce(max({column}), 0), count(*) FROM {table} "
            f"WHERE namespace_id = ?{' AND ordinal >= 0' if table == 'episode' else ''}",  # without pending episodes
        )
        check(lowest >= 1 and highest <= count, f"{name} are numbered {lowest} to {highest}, expected 1 to {count}")
        left = count - gone.get(name, 0)
        check(there == left, f"{there} {name} are stored; {count} were numbered and {gone.get(name, 0)} removed")
    [(there,)] = rows.raw(
        "SELECT count(*) FROM note JOIN episode ON episode.namespace_id = note.namespace_id "
        "AND episode.id = note.episode_id WHERE note.namespace_id = ? AND ordinal >= 0"
    )
    check(there == notes - gone.get("notes", 0), f"{there} notes are stored; {notes} were counted")


def _check_checksums(check: _Check, rows: _Rows) -> None:
    """Check the raw values of rows that no digest covers: times, revocations, settings, copies."""
    [settings] = rows(
        _NamespaceRow,
        "SELECT name, encoder, gamma, redaction, created_at, feedback_limits, feedback_policy, checksum "
        "FROM namespace WHERE id = ?",
    )
    found = settings_checksum(*settings[:-1])
    check(found == settings.checksum, f"the settings {settings[:-1]} differ from their checksum")
    for episode in rows(
        _EpisodeChecksum, "SELECT id, digest, created_at, checksum FROM episode WHERE namespace_id = ?"
    ):
        found = row_checksum("episode", episode.digest, episode.created_at)
        check(found == episode.checksum, f"the time of episode {episode.id!r} differs from its checksum")
    for event in rows(
        _EventChecksum, "SELECT id, digest, revoked_at, superseded_by, checksum FROM feedback WHERE namespace_id = ?"
    ):
        found = row_checksum("feedback", event.digest, event.revoked_at, event.superseded_by is not None)
        check(found == event.checksum, f"the revocation of feedback {event.id!r} differs from its checksum")
    for table, column in (("note", "revoked_at"), ("quarantine", "lifted_at")):
        for row in rows(_EndChecksum, f"SELECT id, digest, {column}, checksum FROM {table} WHERE namespace_id = ?"):
            found = row_checksum(table, row.digest, row.end)
            check(found == row.checksum, f"`{column}` of {table} {row.id!r} differs from its checksum")
    for copy in rows(_CopyChecksum, "SELECT kind, path, created_at, checksum FROM copy WHERE namespace_id = ?"):
        found = row_checksum("copy", copy.kind, copy.path, copy.created_at)
        check(found == copy.checksum, f"the copy at {copy.path!r} differs from its checksum")


def _check_views(check: _Check, rows: _Rows) -> int:
    steps = rows(
        _LiveStep,
        "SELECT visit, reward, feedback, set_id, key_id FROM step "
        "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
        "WHERE step.namespace_id = ? AND live ORDER BY visit",
    )
    by_episode: defaultdict[int, list[float]] = defaultdict(list)
    for step in steps:
        reward = step.reward + step.feedback
        check(abs(reward) <= _MAX_SUM, f"a step has the reward {reward}")
        by_episode[step.visit >> STEP_BITS].append(reward)
    views = rows(_View, "SELECT id, gamma, decay FROM view WHERE namespace_id = ?")
    for view_id, gamma, decay in views:
        name = f"the view with gamma {gamma} and decay {decay}"
        check(0.0 <= gamma <= 1.0 and 0.0 <= decay <= 1.0, f"{name} has a discount or a decay outside [0, 1]")
        returns = np.concatenate([discounted_returns(r, gamma) for r in by_episode.values()]).tolist() if steps else []
        values = rows(
            _Return, "SELECT visit, return_ FROM value WHERE namespace_id = ? AND view_id = ? ORDER BY visit", view_id
        )
        check(
            values == [(step.visit, g) for step, g in zip(steps, returns, strict=True)],
            f"{name} has other returns than its steps",
        )
        groups: defaultdict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
        for step, return_ in zip(steps, returns, strict=True):
            groups[step.set_id, step.key_id].append((step.visit, return_))
        evidence = {
            (row[0], row[1]): row[2:]
            for row in rows(
                EvidenceRow,
                "SELECT set_id, key_id, count, weight, total, squares, ordinal FROM evidence "
                "WHERE namespace_id = ? AND view_id = ?",
                view_id,
            )
        }
        binned = Counter(histogram_bin(row[2] / row[1]) for row in evidence.values() if row[1])
        means = rows(_Mean, "SELECT mean, count FROM distribution WHERE namespace_id = ? AND view_id = ?", view_id)
        check(dict(means) == binned, f"{name} has other counts of mean returns than its evidence")
        check(evidence.keys() == groups.keys(), f"{name} has evidence for other actions than its steps")
        for key, group in groups.items():
            count, weight, total, squares, ordinal = evidence[key]
            again = summed(group, decay)
            size = math.fsum(abs(g) for _, g in group)
            close = (
                (count, ordinal) == (again[0], again[4])
                and abs(weight - again[1]) <= _TOLERANCE * count
                and abs(total - again[2]) <= _TOLERANCE * size
                and abs(squares - again[3]) <= _TOLERANCE * again[3] + _TOLERANCE * size * size
            )
            check(close, f"{name}: the evidence of feature set {key[0]}, action {key[1]} does not add up")
    return len(views)
