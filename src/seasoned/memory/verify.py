"""The store proves itself: everything derived is derived again, everything raw is hashed again."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from seasoned.core import discounted_returns
from seasoned.errors import IntegrityError, SeasonedError
from seasoned.memory.canonical import digest, episode_record, text_digest
from seasoned.memory.database import Database
from seasoned.memory.reader import Reader
from seasoned.memory.schema import STEP_BITS
from seasoned.memory.writer import histogram_bin, summed
from seasoned.types import normalize_action

__all__ = ["Verification", "verify"]

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Verification:
    """What was verified. `hash` covers the raw content of the namespace: equal content, equal hash, in any store."""

    namespace: str
    hash: str
    episodes: int
    steps: int
    states: int
    distinct_states: int
    feedback: int
    views: int


class _Check:
    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, holds: bool, what: str) -> None:
        if not holds:
            raise IntegrityError(
                f"{self._path}: {what}",
                "what is derived equals what it is derived from",
                "Restore a backup, or export the episodes and import them into a new store.",
            )


def verify(database: Database, namespace_id: int, name: str, features: Callable[[str], frozenset[str]]) -> Verification:
    """Check one namespace inside one snapshot; see `Memory.verify`."""
    check = _Check(database.path)
    try:
        return _verify(check, database, namespace_id, name, features)
    except (SeasonedError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        if isinstance(error, IntegrityError):
            raise
        check(False, f"what is stored breaks the rules ({type(error).__name__}: {str(error)[:300]})")
        raise


def _verify(
    check: _Check, database: Database, namespace_id: int, name: str, features: Callable[[str], frozenset[str]]
) -> Verification:

    def rows(sql: str, *parameters: object) -> list[Any]:
        return database.execute(sql, (namespace_id, *parameters)).fetchall()

    problems = database.execute("PRAGMA integrity_check").fetchall()
    check(problems == [("ok",)], f"SQLite says {problems[0][0]!r}")
    broken = database.execute("PRAGMA foreign_key_check").fetchall()
    check(not broken, f"{len(broken)} rows refer to rows that do not exist")

    reader = Reader(database, namespace_id)
    running = hashlib.sha256(b"seasoned:namespace:v1\n")
    n_episodes = n_steps = 0
    live: dict[int, bool] = {}
    lengths = dict(rows("SELECT ordinal, steps FROM episode WHERE namespace_id = ?"))
    for ordinal, created_at, content, episode in reader.episodes():
        n_episodes += 1
        n_steps += len(episode.steps)
        live[ordinal] = episode.ending != "aborted"
        check(ordinal == n_episodes, f"episode {episode.id!r} has ordinal {ordinal}, expected {n_episodes}")
        check(lengths[ordinal] == len(episode.steps), f"episode {episode.id!r} counts {lengths[ordinal]} steps")
        check(digest("episode", episode_record(episode)) == content, f"episode {episode.id!r} differs from its hash")
        running.update(content + repr(created_at).encode())
    events = list(reader.events())
    numbers = [seq for (seq,) in rows("SELECT seq FROM feedback WHERE namespace_id = ? ORDER BY seq")]
    check(numbers == list(range(1, len(events) + 1)), "feedback events are not numbered one after the other")
    broken_events = reader.broken_supersessions()
    check(not broken_events, f"feedback {broken_events[:1]} is superseded by an event that does not fit")
    for content, event in events:
        check(event.digest() == content, f"feedback {event.id!r} differs from its hash")
        running.update(content + repr((event.revoked_at, event.superseded_by)).encode())
    gamma = rows("SELECT gamma FROM namespace WHERE id = ?")[0][0]
    check(isinstance(gamma, float) and 0.0 <= gamma <= 1.0, f"the namespace's gamma is {gamma!r}")
    _check_steps(check, rows, n_episodes, n_steps, live)
    _check_texts(check, rows, features)
    n_views = _check_views(check, rows)
    counts = rows(
        "SELECT episodes, states, feature_sets, tokens, actions, priors, views, events FROM namespace WHERE id = ?"
    )[0]
    found = (
        n_episodes,
        *(rows(f"SELECT count(*) FROM {table} WHERE namespace_id = ?")[0][0]
          for table in ("state", "feature_set", "token", "action", "prior", "view", "feedback")),
    )  # fmt: skip
    check(counts == found, f"the namespace counts {counts}, its tables hold {found}")
    return Verification(name, running.hexdigest(), n_episodes, n_steps, found[1], found[2], len(events), n_views)


Rows = Callable[..., list[Any]]


def _check_steps(check: _Check, rows: Rows, n_episodes: int, n_steps: int, live: dict[int, bool]) -> None:
    given: defaultdict[int, list[float]] = defaultdict(list)
    for visit, reward, weight in rows(
        "SELECT visit, reward, weight FROM feedback WHERE namespace_id = ? AND revoked_at IS NULL ORDER BY seq"
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


def _check_texts(check: _Check, rows: Rows, features: Callable[[str], frozenset[str]]) -> None:
    tokens: dict[str, int] = {text: id_ for id_, text in rows("SELECT id, text FROM token WHERE namespace_id = ?")}
    sets = {}
    for set_id, members, key in rows("SELECT id, tokens, digest FROM feature_set WHERE namespace_id = ?"):
        check(text_digest(members) == key, f"feature set {set_id} differs from its key")
        sets[set_id] = frozenset(np.frombuffer(members, dtype="<u4").tolist())
    for state_id, text, key, set_id in rows("SELECT id, text, digest, set_id FROM state WHERE namespace_id = ?"):
        check(text_digest(text) == key, f"state {state_id} differs from its key")
        expected = {tokens.get(feature, -1) for feature in features(text)}
        check(
            set_id in sets and expected == sets[set_id],
            f"state {state_id} is encoded to other features than are stored",
        )
    first: dict[str, int] = {}
    for id_, text, key_id, key in rows("SELECT id, text, key_id, key FROM action WHERE namespace_id = ? ORDER BY id"):
        check(normalize_action(text) == key and first.setdefault(key, id_) == key_id, f"action {id_} has the wrong key")
    for id_, text, key in rows("SELECT id, logprobs, digest FROM prior WHERE namespace_id = ?"):
        check(text_digest(text) == key, f"prior {id_} differs from its key")


def _check_views(check: _Check, rows: Rows) -> int:
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
