"""What is read from a store: stored steps as experiences, and evidence. Every function runs inside one snapshot."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from seasoned.core import robust_spread
from seasoned.errors import EncoderMismatchError, IntegrityError
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS
from seasoned.memory.values.content_hash import digest, episode_from_line, episode_record
from seasoned.memory.values.encoder_mismatch import told_apart
from seasoned.memory.values.events import Event
from seasoned.memory.values.selection import Quarantine, Selection
from seasoned.memory.values.task_filter import Outside
from seasoned.types import Episode, Experience, Step

__all__ = ["EvidenceRow", "Reader", "check_same_encoder"]

EvidenceRow = tuple[int, int, int, float, float, float, int]
"""set_id, key_id, count, weight, total, squares, ordinal."""

Ints = np.ndarray[Any, np.dtype[Any]]

_ROWS_AT_ONCE = 1 << 10  # rows that are still in the processor's cache when they are taken apart
_SETS_AT_ONCE = 1 << 16


def _joined(parts: list[tuple[Ints, ...]]) -> tuple[Ints, Ints, Ints, Ints]:
    ids, sizes, tokens, visits = map(np.concatenate, zip(*parts, strict=True))
    return ids, sizes, tokens, visits


def check_same_encoder(stored: str, identity: str) -> None:
    """Raise EncoderMismatchError if a namespace is encoded by another encoder than ours."""
    if stored != identity:
        ours, theirs = told_apart(identity, stored)
        raise EncoderMismatchError(
            f"encoder {ours}",
            f"the namespace is encoded by {theirs} now, and features of two encoders are never mixed",
            "Open the memory again with that encoder.",
        )


class Reader:
    """Reads one namespace of one store."""

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id

    @property
    def namespace_id(self) -> int:
        """The number of the namespace that it reads."""
        return self._ns

    def _rows(self, sql: str, *parameters: object) -> list[Any]:
        return self._store.execute(sql, parameters).fetchall()

    def check_encoder(self, identity: str) -> None:
        """Raise EncoderMismatchError if another process has encoded the namespace anew."""
        check_same_encoder(self._rows("SELECT encoder FROM namespace WHERE id = ?", self._ns)[0][0], identity)

    # ------------------------------------------------------------------------------------------ the index's tail

    def tokens_after(self, token_id: int) -> list[tuple[int, str]]:
        """Return the tokens numbered above `token_id`."""
        return self._rows("SELECT id, text FROM token WHERE namespace_id = ? AND id > ?", self._ns, token_id)

    def sets_after(self, visit: int) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Yield the feature sets visited after `visit` (-1: all that were ever visited), many at a time.

        Each time ids [n], sizes [n], the tokens of all one after the other, and last visits [n].
        """
        # All of them are read as they lie on disk, and added in the order of their ids; both are quicker.
        which = "id > ? AND last_visit IS NOT NULL ORDER BY id" if visit < 0 else "last_visit > ? ORDER BY last_visit"
        rows = self._store.execute(
            f"SELECT id, tokens, last_visit FROM feature_set WHERE namespace_id = ? AND {which}", (self._ns, visit)
        )
        parts: list[tuple[Ints, ...]] = []
        n = 0
        while batch := rows.fetchmany(_ROWS_AT_ONCE):
            members = [row[1] for row in batch]
            parts.append(
                (
                    np.array([row[0] for row in batch], dtype=np.int64),
                    np.array([len(tokens) // 4 for tokens in members], dtype=np.int32),
                    np.frombuffer(b"".join(members), dtype="<u4"),
                    np.array([row[2] for row in batch], dtype=np.int64),
                )
            )
            n += len(batch)
            if n >= _SETS_AT_ONCE:
                yield _joined(parts)
                parts, n = [], 0
        if parts:
            yield _joined(parts)

    # ------------------------------------------------------------------------------------------ experiences

    def visits_of(self, steps: Collection[tuple[str, int]], outside: Outside) -> dict[int, tuple[int, int]]:
        """Return the live visits of steps, given as (episode id, step), each with its distinct state and action.

        What is not stored, or of the task that is left out, is missing.
        """
        ordinals = dict(
            self._store.execute_in(
                "SELECT id, ordinal FROM episode INDEXED BY episode_by_id WHERE namespace_id = ? AND ordinal >= 0"
                f"{outside.condition} AND id IN {{values}}",
                (self._ns, *outside.values),
                sorted({id_ for id_, _ in steps}),
            )
        )
        visits = sorted(
            ordinals[id_] << STEP_BITS | step for id_, step in steps if id_ in ordinals and step < MAX_STEPS
        )
        rows = self._store.execute_in(
            "SELECT visit, set_id, key_id FROM step "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "WHERE step.namespace_id = ? AND live AND visit IN {values}",
            (self._ns,),
            visits,
        )
        return {visit: (set_id, key_id) for visit, set_id, key_id in rows}

    def recent_visits(self, set_id: int, limit: int, outside: Outside) -> list[int]:
        """Return the latest live visits to a distinct state, latest first."""
        # Without statistics SQLite prefers the primary key, and reads every step of the namespace.
        if outside.task is None:
            sql = (
                "SELECT visit FROM step INDEXED BY step_by_set WHERE namespace_id = ? AND set_id = ? AND live"
                f"{outside.condition} ORDER BY visit DESC LIMIT ?"
            )
            return [row[0] for row in self._rows(sql, self._ns, set_id, limit)]
        sql = (
            "SELECT visit FROM step INDEXED BY step_by_set JOIN episode "
            f"ON episode.namespace_id = step.namespace_id AND ordinal = visit >> {STEP_BITS} "
            f"WHERE step.namespace_id = ? AND set_id = ? AND live{outside.condition} ORDER BY visit DESC LIMIT ?"
        )
        return [row[0] for row in self._rows(sql, self._ns, set_id, *outside.values, limit)]

    def latest_visits(self, set_ids: Sequence[int], outside: Outside) -> dict[int, int]:
        """Return the latest live visit to each distinct state that is not left out; states without one are missing."""
        sql = (
            "SELECT id, (SELECT visit FROM step INDEXED BY step_by_set JOIN episode "
            f"ON episode.namespace_id = step.namespace_id AND ordinal = visit >> {STEP_BITS} "
            "WHERE step.namespace_id = feature_set.namespace_id AND step.set_id = feature_set.id AND live"
            f"{outside.condition} ORDER BY visit DESC LIMIT 1) "
            "FROM feature_set WHERE namespace_id = ? AND id IN {values}"
        )
        rows = self._store.execute_in(sql, (*outside.values, self._ns), set_ids)
        return {set_id: visit for set_id, visit in rows if visit is not None}

    def experiences(self, view_id: int, visits: Sequence[int]) -> dict[int, tuple[Experience, int]]:
        """Return each visit's experience and the key of its action."""
        found: dict[int, tuple[Experience, int]] = {}
        rows = self._store.execute_in(
            "SELECT step.visit, state.text, action.text, reward + feedback, return_, episode.id, task, key_id "
            "FROM step "
            "JOIN state ON state.namespace_id = step.namespace_id AND state.id = state_id "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
            "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
            "WHERE step.namespace_id = ? AND step.visit IN {values}",
            (view_id, self._ns),
            visits,
        )
        for visit, state, action, reward, return_, episode_id, task, key_id in rows:
            seen = Experience(state, action, reward, return_, episode_id, visit & (MAX_STEPS - 1), task)
            found[visit] = (seen, key_id)
        return found

    # ------------------------------------------------------------------------------------------ evidence

    def evidence(self, view_id: int, set_ids: Sequence[int]) -> list[EvidenceRow]:
        """Return the aggregated evidence at some distinct states."""
        return self._store.execute_in(
            "SELECT set_id, key_id, count, weight, total, squares, ordinal FROM evidence "
            "WHERE namespace_id = ? AND view_id = ? AND set_id IN {values} ORDER BY set_id, key_id",
            (self._ns, view_id),
            set_ids,
        )

    def evidence_outside(
        self, view_id: int, set_ids: Sequence[int], outside: Outside, *, by_episode: bool
    ) -> list[EvidenceRow]:
        """Return the evidence at some distinct states without the steps that are left out.

        It is summed from the others: the aggregates less the share of those would keep the rounding of a huge reward.

        Args:
            view_id: of which view.
            set_ids: the distinct states.
            outside: what is left out.
            by_episode: a row for each episode of what is summed, so that the caller can let it fade; else the ordinal
                is that of the last one.
        """
        if not outside:
            return self.evidence(view_id, set_ids)
        sql = (
            "SELECT set_id, key_id, count(*), count(*), sum(return_), sum(return_ * return_), "
            f"max(step.visit >> {STEP_BITS}) FROM step INDEXED BY step_by_set "
            f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
            f"WHERE step.namespace_id = ? AND live{outside.condition} AND set_id IN {{values}} "
        )
        group = "set_id, key_id, ordinal" if by_episode else "set_id, key_id"
        return self.sums(f"{sql} GROUP BY {group} ORDER BY {group}", (view_id, self._ns, *outside.values), set_ids)

    def sums(self, sql: str, parameters: tuple[Any, ...], set_ids: Sequence[int]) -> list[Any]:
        """Return sums over live steps at some distinct states, as a statement asks for them with `IN {values}`."""
        return self._store.execute_in(sql, parameters, set_ids)

    def action_texts(self, key_ids: Sequence[int]) -> dict[int, str]:
        """Return the first spelling of each action."""
        return dict(
            self._store.execute_in(
                "SELECT id, text FROM action WHERE namespace_id = ? AND id IN {values}", (self._ns,), key_ids
            )
        )

    def spread(self, view_id: int) -> float:
        """Return the robust spread of the mean returns of all (distinct state, action) pairs, in reward units."""
        rows = self._rows(
            "SELECT mean, count FROM distribution WHERE namespace_id = ? AND view_id = ?", self._ns, view_id
        )
        return robust_spread([row[0] for row in rows], [row[1] for row in rows])

    def view_id(self, gamma: float, decay: float) -> int | None:
        """Return the view with this discount and decay, if it was ever asked for."""
        sql = "SELECT id FROM view WHERE namespace_id = ? AND gamma = ? AND decay = ?"
        rows = self._rows(sql, self._ns, gamma, decay)
        return int(rows[0][0]) if rows else None

    def last_ordinal(self) -> int:
        """Return the number of the last episode that was committed."""
        return int(self._rows("SELECT episodes FROM namespace WHERE id = ?", self._ns)[0][0])

    def epoch(self) -> int:
        """Return a number that moves whenever something was taken away that an index may hold."""
        return int(self._rows("SELECT epoch FROM namespace WHERE id = ?", self._ns)[0][0])

    def count(self, table: str) -> int:
        """Return how many rows of a table there are."""
        return int(self._rows(f"SELECT count(*) FROM {table} WHERE namespace_id = ?", self._ns)[0][0])

    def quarantines(self) -> Iterator[tuple[bytes, Quarantine]]:
        """Yield (digest, quarantine) in the order in which they were imposed, lifted ones included."""
        rows = self._rows(
            "SELECT digest, id, selection, reason, created_at, lifted_at FROM quarantine WHERE namespace_id = ? "
            "ORDER BY seq",
            self._ns,
        )
        for content, id_, selection, *rest in rows:
            yield content, Quarantine(id_, Selection.from_text(selection), *rest)

    def step_count(self) -> int:
        """Return the number of stored steps, aborted episodes included."""
        return int(self._rows("SELECT coalesce(sum(steps), 0) FROM episode WHERE namespace_id = ?", self._ns)[0][0])

    # ------------------------------------------------------------------------------------------ whole episodes

    def episodes(
        self, *, id_: str | None = None, task: str | None = None, last: int | None = None, ordinals: range | None = None
    ) -> Iterator[tuple[int, float, bytes, Episode]]:
        """Yield (ordinal, created_at, digest, episode) in commit order: all, or those that fit; at most the `last`.

        What has arrived comes last, with negative ordinals.

        Raises:
            IntegrityError: an episode differs from its hash: it is not handed on as if it were what was stored.
        """
        asked: dict[str, object] = {"episode.id = ?": id_, "task = ?": task}
        if ordinals is not None:
            asked |= {"ordinal >= ?": ordinals.start, "ordinal < ?": ordinals.stop}
        given = {sql: value for sql, value in asked.items() if value is not None}
        most = sys.maxsize if last is None else min(last, sys.maxsize)
        pending = self._pending_rows(given, most) if self._store.pending is not None else []
        rows = self._rows(
            "SELECT ordinal, created_at, episode.digest, episode.id, task, state.text, ending, model, policy, arm, "
            "subject "
            "FROM episode LEFT JOIN state ON state.namespace_id = episode.namespace_id AND state.id = final_state_id "
            f"WHERE {' AND '.join(['episode.namespace_id = ?', 'ordinal >= 0', *given])} "
            "ORDER BY ordinal DESC LIMIT ?",
            self._ns,
            *given.values(),
            most - len(pending),
        )
        for ordinal, created_at, content, name, about, *fields in reversed(rows):
            taken = self._rows(
                "SELECT state.text, action.text, reward, logprobs, propensity FROM step "
                "JOIN state ON state.namespace_id = step.namespace_id AND state.id = state_id "
                "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
                "LEFT JOIN prior ON prior.namespace_id = step.namespace_id AND prior.id = prior_id "
                "WHERE step.namespace_id = ? AND visit BETWEEN ? AND ? ORDER BY visit",
                *(self._ns, ordinal << STEP_BITS, (ordinal + 1 << STEP_BITS) - 1),
            )
            steps = [
                Step(state, action, reward, None if prior is None else json.loads(prior), propensity)
                for state, action, reward, prior, propensity in taken
            ]
            episode = Episode(about, steps, name, *fields)
            if digest("episode", episode_record(episode)) != content:
                raise IntegrityError(
                    f"{self._store.path}: episode {name!r} differs from its hash",
                    "what is read must be what was stored",
                    "Run `seasoned memory verify`, and restore a backup.",
                )
            yield ordinal, created_at, content, episode
        for ordinal, created_at, content, name, line in pending:
            yield ordinal, created_at, content, episode_from_line(self._store.path, name, line, content)

    def _pending_rows(self, given: dict[str, object], most: int) -> list[Any]:
        """Return (ordinal, created_at, digest, id, line) of the last that have arrived, of those that fit."""
        rows = self._rows(
            "SELECT ordinal, created_at, digest, id, line FROM episode "
            f"WHERE {' AND '.join(['namespace_id = ?', 'ordinal < 0', *given])} ORDER BY ordinal DESC LIMIT ?",
            self._ns,
            *given.values(),
            most,
        )
        return rows[::-1]

    def pending_episodes(self) -> list[tuple[float, Episode]]:
        """Return (created_at, episode) of what has arrived, in its order."""
        if self._store.pending is None:
            return []
        rows = self._pending_rows({}, sys.maxsize)
        return [(row[1], episode_from_line(self._store.path, row[3], row[4], row[2])) for row in rows]

    def events(self, episode_id: str | None = None) -> Iterator[tuple[bytes, Event]]:
        """Yield (digest, feedback event) in the order in which they were given: all, or an episode's."""
        rows = self._rows(
            "SELECT feedback.digest, feedback.id, episode.id, visit, reward, weight, source, author, "
            "feedback.created_at, revoked_at, superseded_by, kind FROM feedback "
            f"JOIN episode ON episode.namespace_id = feedback.namespace_id AND ordinal = visit >> {STEP_BITS} "
            f"WHERE feedback.namespace_id = ? {'' if episode_id is None else 'AND episode.id = ?'} ORDER BY seq",
            self._ns,
            *([] if episode_id is None else [episode_id]),
        )
        for content, id_, of_episode, visit, *rest in rows:
            yield content, Event(id_, of_episode, visit & (MAX_STEPS - 1), *rest)

    def broken_supersessions(self) -> list[str]:
        """Return the events that claim to be superseded, but not by a later one of their kind, speaker and step."""
        rows = self._rows(
            "SELECT old.id FROM feedback AS old LEFT JOIN feedback AS new ON new.namespace_id = old.namespace_id "
            "AND new.id = old.superseded_by AND new.seq > old.seq AND new.visit = old.visit "
            "AND new.source = old.source AND coalesce(new.author, '') = coalesce(old.author, '') "
            "AND coalesce(new.kind, '') = coalesce(old.kind, '') "
            "WHERE old.namespace_id = ? AND old.superseded_by IS NOT NULL "
            "AND (new.id IS NULL OR coalesce(old.revoked_at <> new.created_at, 1 = 1)) ORDER BY old.seq",
            self._ns,
        )
        return [row[0] for row in rows]
