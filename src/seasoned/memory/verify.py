"""Verification of a namespace: derived data is derived again, raw data is hashed again."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from seasoned.canonical_json import canonical_json
from seasoned.core import discounted_returns
from seasoned.errors import IntegrityError, SeasonedError
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import COUNTERS, STEP_BITS
from seasoned.memory.values.content_hash import text_digest
from seasoned.memory.writing.evidence_views import histogram_bin, summed
from seasoned.memory.writing.exclusions import Exclusions, answers_in_body, feedback_condition
from seasoned.memory.writing.note_records import check_feedback_note, note_digest, read_notes
from seasoned.types import ALTERNATIVE, FEEDBACK_KINDS, normalize_action

__all__ = ["Verification", "verify"]

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of a verification.

    `hash` covers the raw content of the namespace: equal content has an equal hash in any store. `waiting` is the
    number of pending episodes (see `MemoryStats`). `notes` counts revoked notes and the notes of feedback too.
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


class _Check:
    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, holds: bool, what: str) -> None:
        if not holds:
            raise IntegrityError(
                f"{self._path}: {what}",
                "what is derived must equal what it is derived from",
                "Restore a backup, or export the episodes and import them into a new store.",
            )


def verify(store: Store, namespace_id: int, name: str, features: Callable[[str], frozenset[str]]) -> Verification:
    """Check one namespace inside one snapshot; see `Memory.verify`."""
    check = _Check(store.path)
    encoder_errors: list[Exception] = []

    def encode(text: str) -> frozenset[str]:
        try:
            return features(text)
        except Exception as error:
            encoder_errors.append(error)
            raise

    try:
        return _verify(check, store, namespace_id, name, encode)
    except (SeasonedError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        if isinstance(error, IntegrityError) or error in encoder_errors:
            raise
        check(False, f"what is stored breaks the rules ({type(error).__name__}: {str(error)[:300]})")
        raise


def _verify(
    check: _Check, store: Store, namespace_id: int, name: str, features: Callable[[str], frozenset[str]]
) -> Verification:

    def rows(sql: str, *parameters: object) -> list[Any]:
        return store.execute(sql, (namespace_id, *parameters)).fetchall()

    problems = store.problems()
    check(not problems, "; ".join(problems[:3]))
    reader = Reader(store, namespace_id)
    running = hashlib.sha256(b"seasoned:namespace:v1\n")
    quarantines = list(reader.quarantines())
    active = Exclusions(store, namespace_id, [one.selection for _, one in quarantines if one.lifted_at is None])
    answers = _excluded_answers(rows, active)
    n_episodes = n_steps = n_waiting = n_folded = last = 0
    live: dict[int, bool] = {}
    lengths = dict(rows("SELECT ordinal, steps FROM episode WHERE namespace_id = ?"))
    steps_of: dict[str, int] = {}
    for ordinal, created_at, content, episode in reader.episodes():
        n_episodes += 1
        n_steps += len(episode.steps)
        steps_of[str(episode.id)] = len(episode.steps)
        counted = lengths.pop(ordinal, None)
        check(counted == len(episode.steps), f"episode {episode.id!r} counts {counted} steps")
        running.update(content + repr(created_at).encode())
        if ordinal < 0:
            n_waiting += 1
            continue
        n_folded += len(episode.steps)
        provenance = {field: getattr(episode, field) for field in ("task", "model", "policy", "arm", "subject")}
        excluded = active.covers_episode(str(episode.id), provenance, created_at)
        excluded |= episode.arm == ALTERNATIVE and episode.id in answers
        live[ordinal] = episode.ending != "aborted" and not excluded
        check(ordinal > last, f"episode {episode.id!r} has ordinal {ordinal} after {last}")
        last = ordinal
    check(not lengths, f"{len(lengths)} episodes have numbers that none can have")
    events = list(reader.events())
    live_events = [row[0] for row in rows("SELECT live FROM feedback WHERE namespace_id = ? ORDER BY seq")]
    check(len(live_events) == len(events), f"{len(live_events) - len(events)} feedback events refer to no episode")
    broken_events = reader.broken_supersessions()
    check(not broken_events, f"feedback {broken_events[:1]} is superseded by an event that does not fit")
    for (content, event), is_live in zip(events, live_events, strict=True):
        counts = event.revoked_at is None and not active.covers_event(event.source, event.created_at)
        check(is_live == int(counts), f"feedback {event.id!r} counts where it should not, or does not where it should")
        check(event.digest() == content, f"feedback {event.id!r} differs from its hash")
        running.update(content + repr((event.revoked_at, event.superseded_by)).encode())
    for content, quarantine in quarantines:
        check(quarantine.digest() == content, f"quarantine {quarantine.id!r} differs from its hash")
        running.update(content + repr(quarantine.lifted_at).encode())
    n_notes = 0
    for mark in _check_notes(check, store, namespace_id, steps_of):
        n_notes += 1
        running.update(mark)
    gamma = rows("SELECT gamma FROM namespace WHERE id = ?")[0][0]
    check(isinstance(gamma, float) and 0.0 <= gamma <= 1.0, f"the namespace's gamma is {gamma!r}")
    _check_steps(check, rows, n_folded, live)
    n_states, n_sets = _check_texts(check, rows, features)
    _check_references(check, rows)
    n_views = _check_views(check, rows)
    _check_counters(check, rows)
    return Verification(
        name, running.hexdigest(), n_episodes, n_steps, n_states, n_sets, len(events), n_views, n_waiting, n_notes
    )


_RowQuery = Callable[..., list[Any]]


def _excluded_answers(rows: _RowQuery, active: Exclusions) -> set[str]:
    """Return the answers of feedback that is revoked, or whose source is in quarantine."""
    found: set[str] = set()
    for note_id, body, source, created_at, revoked_at in rows(
        f"SELECT id, body, source, created_at, revoked_at FROM note WHERE namespace_id = ? AND {feedback_condition()}"
    ):
        if revoked_at is not None or active.covers_event(source, created_at):
            found.update(answers_in_body(note_id, body))
    return found


def _check_notes(check: _Check, store: Store, namespace_id: int, steps_of: dict[str, int]) -> Iterator[bytes]:
    """Yield the bytes of each note for the hash."""
    for content, note in read_notes(store, namespace_id):
        check(note_digest(note) == content, f"note {note.id!r} differs from its hash")
        there = note.episode_id in steps_of and (note.step is None or note.step < steps_of[note.episode_id])
        check(there, f"note {note.id!r} is about an episode or a step that is not there")
        if note.kind in FEEDBACK_KINDS:
            check_feedback_note(note)
        yield content + repr(note.revoked_at).encode()


def _check_steps(check: _Check, rows: _RowQuery, n_steps: int, live: dict[int, bool]) -> None:
    given: defaultdict[int, list[float]] = defaultdict(list)
    for visit, reward, weight in rows(
        "SELECT visit, reward, weight FROM feedback WHERE namespace_id = ? AND live ORDER BY seq"
    ):
        given[visit].append(reward * weight)
    last: dict[int, int] = {}
    steps = rows(
        "SELECT visit, step.set_id, state.set_id, feedback, live FROM step "
        "JOIN state ON state.namespace_id = step.namespace_id AND state.id = state_id WHERE step.namespace_id = ?"
    )
    check(len(steps) == n_steps, f"{len(steps)} steps are stored, the episodes have {n_steps}")
    for visit, set_id, state_set, feedback, is_live in steps:
        where = f"step {visit & ((1 << STEP_BITS) - 1)} of episode number {visit >> STEP_BITS}"
        check(set_id == state_set, f"{where} has another feature set than its state")
        check(
            feedback == math.fsum(given[visit]),
            f"{where} carries feedback {feedback}, its events add up to {math.fsum(given[visit])}",
        )
        check(is_live == int(live[visit >> STEP_BITS]), f"{where} is live where its episode is not")
        if is_live:
            last[set_id] = max(last.get(set_id, -1), visit)
    stored = dict(rows("SELECT id, last_visit FROM feature_set WHERE namespace_id = ? AND last_visit IS NOT NULL"))
    check(stored == last, "a distinct state's last visit is not the latest step there")


def _check_texts(check: _Check, rows: _RowQuery, features: Callable[[str], frozenset[str]]) -> tuple[int, int]:
    tokens: dict[str, int] = {}
    for id_, text, key in rows("SELECT id, text, digest FROM token WHERE namespace_id = ?"):
        check(text_digest(text) == key, f"token {id_} differs from its key")
        tokens[text] = id_
    sets = {}
    for set_id, members, key in rows("SELECT id, tokens, digest FROM feature_set WHERE namespace_id = ?"):
        check(text_digest(members) == key, f"feature set {set_id} differs from its key")
        sets[set_id] = frozenset(np.frombuffer(members, dtype="<u4").tolist())
    states = rows("SELECT id, text, digest, set_id FROM state WHERE namespace_id = ?")
    for state_id, text, key, set_id in states:
        check(text_digest(text) == key, f"state {state_id} differs from its key")
        expected = {tokens.get(feature, -1) for feature in features(text)}
        check(
            set_id in sets and expected == sets[set_id],
            f"state {state_id} is encoded to other features than are stored",
        )
    first: dict[bytes, int] = {}
    for id_, text, digest_, key_id, key in rows(
        "SELECT id, text, digest, key_id, key_digest FROM action WHERE namespace_id = ? ORDER BY id"
    ):
        check(text_digest(text) == digest_, f"action {id_} differs from its digest")
        right = text_digest(normalize_action(text)) == key and first.setdefault(key, id_) == key_id
        check(right, f"action {id_} has the wrong key")
    for id_, text, key in rows("SELECT id, logprobs, digest FROM prior WHERE namespace_id = ?"):
        check(text_digest(text) == key, f"prior {id_} differs from its key")
    used = {token for members in sets.values() for token in members}
    check(used == set(tokens.values()), "a token is in no feature set, or a feature set holds one that is not there")
    return len(states), len(sets)


def _check_references(check: _Check, rows: _RowQuery) -> None:
    """Check that every reference has its row, and every row a reference."""

    def ids(sql: str) -> set[Any]:
        return {row[0] for row in rows(sql) if row[0] is not None}

    visits = ids("SELECT DISTINCT visit FROM step WHERE namespace_id = ?")
    check(ids("SELECT DISTINCT visit FROM feedback WHERE namespace_id = ?") <= visits, "feedback refers to no step")
    final = ids("SELECT DISTINCT final_state_id FROM episode WHERE namespace_id = ?")
    for table, column, more in (
        ("state", "state_id", final),
        ("action", "action_id", set()),
        ("prior", "prior_id", set()),
    ):
        there = ids(f"SELECT id FROM {table} WHERE namespace_id = ?")
        meant = ids(f"SELECT DISTINCT {column} FROM step WHERE namespace_id = ?") | more
        check(meant <= there, f"a step or an episode refers to a {table} that is not there")
        check(there <= meant, f"a {table} is there that nothing refers to")
    sets = ids("SELECT id FROM feature_set WHERE namespace_id = ?")
    check(sets == ids("SELECT DISTINCT set_id FROM state WHERE namespace_id = ?"), "a feature set is of no state")


def _check_counters(check: _Check, rows: _RowQuery) -> None:
    *counted, notes, removed = rows(f"SELECT {', '.join(COUNTERS)}, notes, removed FROM namespace WHERE id = ?")[0]
    gone = json.loads(removed)
    check(
        removed == canonical_json(gone) and gone.keys() <= {*COUNTERS, "notes"},
        f"the namespace says {removed} are gone",
    )
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
        lowest, highest, there = rows(
            f"SELECT coalesce(min({column}), 1), coalesce(max({column}), 0), count(*) FROM {table} "
            f"WHERE namespace_id = ?{' AND ordinal >= 0' if table == 'episode' else ''}"  # without arrivals
        )[0]
        check(lowest >= 1 and highest <= count, f"{name} are numbered {lowest} to {highest}, expected 1 to {count}")
        left = count - gone.get(name, 0)
        check(there == left, f"{there} {name} are stored; {count} were numbered and {gone.get(name, 0)} taken away")
    there = rows(
        "SELECT count(*) FROM note JOIN episode ON episode.namespace_id = note.namespace_id "
        "AND episode.id = note.episode_id WHERE note.namespace_id = ? AND ordinal >= 0"
    )[0][0]
    check(there == notes - gone.get("notes", 0), f"{there} notes are stored; {notes} were counted")


def _check_views(check: _Check, rows: _RowQuery) -> int:
    steps = rows(
        "SELECT visit, reward + feedback, set_id, key_id FROM step "
        "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
        "WHERE step.namespace_id = ? AND live ORDER BY visit"
    )
    by_episode: defaultdict[int, list[float]] = defaultdict(list)
    for visit, reward, _, _ in steps:
        by_episode[visit >> STEP_BITS].append(reward)
    views = rows("SELECT id, gamma, decay FROM view WHERE namespace_id = ?")
    for view_id, gamma, decay in views:
        returns = np.concatenate([discounted_returns(r, gamma) for r in by_episode.values()]).tolist() if steps else []
        values = rows("SELECT visit, return_ FROM value WHERE namespace_id = ? AND view_id = ? ORDER BY visit", view_id)
        name = f"the view with gamma {gamma} and decay {decay}"
        check(
            values == [(step[0], g) for step, g in zip(steps, returns, strict=True)],
            f"{name} holds other returns than follow",
        )
        groups: defaultdict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
        for (visit, _, set_id, key_id), return_ in zip(steps, returns, strict=True):
            groups[set_id, key_id].append((visit, return_))
        evidence = {
            (row[0], row[1]): row[2:]
            for row in rows(
                "SELECT set_id, key_id, count, weight, total, squares, ordinal FROM evidence "
                "WHERE namespace_id = ? AND view_id = ?",
                view_id,
            )
        }
        binned = Counter(histogram_bin(row[2] / row[1]) for row in evidence.values() if row[1])
        stored = dict(rows("SELECT mean, count FROM distribution WHERE namespace_id = ? AND view_id = ?", view_id))
        check(stored == binned, f"{name} counts its mean returns differently")
        check(evidence.keys() == groups.keys(), f"{name} holds evidence for other actions than were taken")
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
