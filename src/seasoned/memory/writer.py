"""What changes a store: episodes, feedback and views. Every function runs inside one transaction of the caller."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable
from typing import Any

from seasoned.core import discounted_returns
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError, excerpt
from seasoned.memory.canonical import digest, episode_record
from seasoned.memory.database import Database
from seasoned.memory.events import Event
from seasoned.memory.interning import Interner
from seasoned.memory.schema import MAX_STEPS, STEP_BITS
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Floats

__all__ = ["Writer", "histogram_bin", "summed"]


Sums = tuple[int, float, float, float, int]
"""A row of evidence: count, weight, total, squares, and the ordinal as of which they are weighted."""


def histogram_bin(mean: float) -> float:
    """Return the value under which a mean return is counted: rounded to three significant digits (0.5 % at most)."""
    return float(f"{mean:.2e}")


class Writer:
    """Writes to one namespace of one store."""

    def __init__(self, database: Database, namespace_id: int, encoder: StateEncoder) -> None:
        self._db = database
        self._ns = namespace_id
        self._encoder = encoder
        self._texts = Interner(database, namespace_id, encoder)

    # ------------------------------------------------------------------------------------------ episodes

    def add(self, episode: Episode, *, created_at: float | None = None) -> str:
        """Store one episode with everything derived from it; a no-op if it is stored already."""
        if len(episode.steps) > MAX_STEPS:
            raise InputError(f"{len(episode.steps)} steps", f"an episode has at most {MAX_STEPS}", "Split it.")
        episode_id = episode.id or uuid.uuid4().hex
        record = {**episode_record(episode), "id": episode_id}
        content = digest("episode", record)
        known = self._row("SELECT digest FROM episode WHERE namespace_id = ? AND id = ?", episode_id)
        if known:
            if known[0] != content:
                raise EpisodeConflictError(
                    f"episode {excerpt(episode_id)} is stored with other content",
                    "one id names one episode",
                    "Use another id, or leave the id to the memory.",
                )
            return episode_id
        self._texts.load_counters()
        ordinal = self._texts.next("episodes")
        final = None if episode.final_state is None else self._texts.state(episode.final_state)[0]
        now = time.time() if created_at is None else created_at
        self._db.execute(
            "INSERT INTO episode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._ns, ordinal, episode_id, episode.task, episode.ending, len(episode.steps), final, episode.model,
             episode.policy, episode.arm, episode.subject, now, content),
        )  # fmt: skip
        live = episode.ending != "aborted"
        placed: list[tuple[int, int]] = []
        for index, step in enumerate(episode.steps):
            visit = ordinal << STEP_BITS | index
            state_id, set_id = self._texts.state(step.state)
            action_id, key_id = self._texts.action(step.action)
            prior = None if step.prior is None else self._texts.prior(dict(step.prior))
            self._db.execute(
                "INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?)",
                (self._ns, visit, state_id, set_id, action_id, step.reward, step.propensity, prior, live),
            )
            placed.append((set_id, key_id))
            if live:
                self._db.execute(
                    "UPDATE feature_set SET last_visit = ? WHERE namespace_id = ? AND id = ?", (visit, self._ns, set_id)
                )
        if live:
            rewards = [step.reward for step in episode.steps]
            for view_id, gamma, decay in self._views():
                self._gather(view_id, decay, ordinal, placed, discounted_returns(rewards, gamma))
        self._texts.save_counters()
        return episode_id

    def _gather(self, view_id: int, decay: float, ordinal: int, placed: list[tuple[int, int]], returns: Floats) -> None:
        """Add an episode's returns to one view."""
        for index, ((set_id, key_id), return_) in enumerate(zip(placed, returns.tolist(), strict=True)):
            self._db.execute(
                "INSERT INTO value VALUES (?, ?, ?, ?)", (self._ns, view_id, ordinal << STEP_BITS | index, return_)
            )
            known = self._evidence(view_id, set_id, key_id)
            count, weight, total, squares, at = known or (0, 0.0, 0.0, 0.0, ordinal)
            fade = decay ** (ordinal - at)
            self._put_evidence(
                view_id, set_id, key_id, known,
                (count + 1, fade * weight + 1.0, fade * total + return_, fade * squares + return_ * return_, ordinal),
            )  # fmt: skip

    def _evidence(self, view_id: int, set_id: int, key_id: int) -> Sums | None:
        row: Sums | None = self._row(
            "SELECT count, weight, total, squares, ordinal FROM evidence "
            "WHERE namespace_id = ? AND view_id = ? AND set_id = ? AND key_id = ?",
            view_id, set_id, key_id,
        )  # fmt: skip
        return row

    def _put_evidence(self, view_id: int, set_id: int, key_id: int, old: Sums | None, new: Sums) -> None:
        """Write one row of evidence, and move its mean within the distribution of means."""
        before = None if old is None else histogram_bin(old[2] / old[1])
        after = histogram_bin(new[2] / new[1])
        if before != after:
            if before is not None:
                self._count(view_id, before, -1)
            self._count(view_id, after, +1)
        self._db.execute(
            "INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._ns, view_id, set_id, key_id, *new),
        )

    def _count(self, view_id: int, mean: float, change: int) -> None:
        key = (self._ns, view_id, mean)
        self._db.execute(
            "INSERT INTO distribution VALUES (?, ?, ?, ?) "
            "ON CONFLICT (namespace_id, view_id, mean) DO UPDATE SET count = count + excluded.count",
            (*key, change),
        )
        if change < 0:
            self._db.execute(
                "DELETE FROM distribution WHERE namespace_id = ? AND view_id = ? AND mean = ? AND count = 0", key
            )

    # ------------------------------------------------------------------------------------------ feedback

    def feedback(self, event: Event) -> None:
        """Append an event; the same source, author and step supersedes what it said before. A no-op if it is stored."""
        visit = self._visit(event.episode_id, event.step)
        known = self._row("SELECT digest FROM feedback WHERE namespace_id = ? AND id = ?", event.id)
        if known:
            if known[0] != event.digest():
                raise EpisodeConflictError(
                    f"event {excerpt(event.id)} is stored with other content",
                    "one id names one event",
                    "Leave the id to the memory.",
                )
            return
        self._texts.load_counters()
        if event.revoked_at is None:  # an event that comes in revoked has no say, and silences nobody
            self._db.execute(
                "UPDATE feedback SET revoked_at = ?, superseded_by = ? "
                "WHERE namespace_id = ? AND visit = ? AND source = ? AND author IS ? AND revoked_at IS NULL",
                (event.created_at, event.id, self._ns, visit, event.source, event.author),
            )
        self._db.execute(
            "INSERT INTO feedback VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._ns, self._texts.next("events"), event.id, visit, event.reward, event.weight, event.source,
             event.author, event.created_at, event.revoked_at, event.superseded_by, event.digest()),
        )  # fmt: skip
        self._texts.save_counters()
        self._rederive(visit)

    def revoke(self, event_id: str, *, at: float) -> None:
        """Take an event out of its step's reward; revoking twice changes nothing."""
        row = self._row("SELECT visit, revoked_at FROM feedback WHERE namespace_id = ? AND id = ?", event_id)
        if not row:
            raise NotFoundError(
                f"event {excerpt(event_id)}", "only feedback that was given can be revoked", "List the events."
            )
        if row[1] is None:
            self._db.execute(
                "UPDATE feedback SET revoked_at = ? WHERE namespace_id = ? AND id = ?", (at, self._ns, event_id)
            )
            self._rederive(row[0])

    def last_step(self, episode_id: str) -> int:
        """Return the index of an episode's last step."""
        return self._placed(episode_id)[1] - 1

    def _placed(self, episode_id: str) -> tuple[int, int]:
        """Return an episode's ordinal and its number of steps, at least 1."""
        row = self._row("SELECT ordinal, steps FROM episode WHERE namespace_id = ? AND id = ?", episode_id)
        if not row:
            raise NotFoundError(
                f"episode {excerpt(episode_id)}", "it is not in this namespace", "List what is: memory.episodes()."
            )
        if not row[1]:
            raise NotFoundError(
                f"episode {excerpt(episode_id)} has no steps", "feedback lands on a step", "Choose another episode."
            )
        return row[0], row[1]

    def _visit(self, episode_id: str, step: int) -> int:
        ordinal, steps = self._placed(episode_id)
        if not 0 <= step < steps:
            raise NotFoundError(
                f"step {step} of episode {excerpt(episode_id)}", f"it has steps 0 to {steps - 1}", "Name one of them."
            )
        return ordinal << STEP_BITS | step

    def _rederive(self, visit: int) -> None:
        """Recompute a step's feedback, then the returns up to it and the evidence that they enter."""
        given = self._rows(
            "SELECT reward, weight FROM feedback WHERE namespace_id = ? AND visit = ? AND revoked_at IS NULL", visit
        )
        total = math.fsum(reward * weight for reward, weight in given)
        self._db.execute("UPDATE step SET feedback = ? WHERE namespace_id = ? AND visit = ?", (total, self._ns, visit))
        first = visit >> STEP_BITS << STEP_BITS
        steps = self._rows(
            "SELECT visit, reward + feedback, set_id, key_id, live FROM step "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "WHERE step.namespace_id = ? AND visit BETWEEN ? AND ? ORDER BY visit",
            first, first + MAX_STEPS - 1,
        )  # fmt: skip
        if not steps[0][4]:
            return
        for view_id, gamma, decay in self._views():
            changed: set[tuple[int, int]] = set()
            for row, return_ in zip(steps, discounted_returns([row[1] for row in steps], gamma).tolist(), strict=True):
                if row[0] > visit:
                    break
                old = self._row(
                    "SELECT return_ FROM value WHERE namespace_id = ? AND view_id = ? AND visit = ?", view_id, row[0]
                )
                if old is not None and old[0] == return_:
                    continue
                self._db.execute(
                    "UPDATE value SET return_ = ? WHERE namespace_id = ? AND view_id = ? AND visit = ?",
                    (return_, self._ns, view_id, row[0]),
                )
                changed.add((row[2], row[3]))
            for set_id, key_id in changed:
                self._regather(view_id, decay, set_id, key_id)

    def _regather(self, view_id: int, decay: float, set_id: int, key_id: int) -> None:
        """Sum one row of evidence anew; adding a difference would leave the rounding of a huge reward behind."""
        rows = self._rows(
            "SELECT value.visit, return_ FROM step INDEXED BY step_by_set "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "JOIN value ON value.namespace_id = step.namespace_id AND value.visit = step.visit AND view_id = ? "
            "WHERE step.namespace_id = ? AND set_id = ? AND key_id = ? AND live ORDER BY value.visit",
            view_id, self._ns, set_id, key_id, scoped=False,
        )  # fmt: skip
        self._put_evidence(view_id, set_id, key_id, self._evidence(view_id, set_id, key_id), summed(rows, decay))

    # ------------------------------------------------------------------------------------------ views

    def ensure_view(self, gamma: float, decay: float) -> int:
        """Return the id of the view with this discount and decay; gather it from all episodes if it is new."""
        row = self._row("SELECT id FROM view WHERE namespace_id = ? AND gamma = ? AND decay = ?", gamma, decay)
        if row:
            return int(row[0])
        self._texts.load_counters()
        view_id = self._texts.next("views")
        self._db.execute("INSERT INTO view VALUES (?, ?, ?, ?)", (self._ns, view_id, gamma, decay))
        episode: list[tuple[Any, ...]] = []
        steps = self._db.execute(
            "SELECT visit, reward + feedback, set_id, key_id FROM step "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "WHERE step.namespace_id = ? AND live ORDER BY visit",
            (self._ns,),
        )
        for row in steps.fetchall():
            if episode and episode[0][0] >> STEP_BITS != row[0] >> STEP_BITS:
                self._gather_rows(view_id, gamma, decay, episode)
                episode = []
            episode.append(row)
        if episode:
            self._gather_rows(view_id, gamma, decay, episode)
        self._texts.save_counters()
        return view_id

    def _gather_rows(self, view_id: int, gamma: float, decay: float, steps: list[tuple[Any, ...]]) -> None:
        returns = discounted_returns([row[1] for row in steps], gamma)
        self._gather(view_id, decay, steps[0][0] >> STEP_BITS, [(row[2], row[3]) for row in steps], returns)

    def reindex(self) -> None:
        """Encode every state again with this writer's encoder, and gather every view again."""
        self._db.execute("PRAGMA defer_foreign_keys = ON")
        for table in ("token", "feature_set", "value", "evidence", "distribution"):
            self._db.execute(f"DELETE FROM {table} WHERE namespace_id = ?", (self._ns,))
        self._db.looked_up.clear()
        self._db.execute(
            "UPDATE namespace SET encoder = ?, tokens = 0, feature_sets = 0 WHERE id = ?",
            (self._encoder.identity, self._ns),
        )
        self._texts.load_counters()
        for state_id, text in self._rows("SELECT id, text FROM state WHERE namespace_id = ? ORDER BY id"):
            set_id = self._texts.feature_set(text)
            self._db.execute(
                "UPDATE state SET set_id = ? WHERE namespace_id = ? AND id = ?", (set_id, self._ns, state_id)
            )
        self._db.execute(
            "UPDATE step SET set_id = (SELECT state.set_id FROM state WHERE state.namespace_id = step.namespace_id "
            "AND state.id = state_id) WHERE namespace_id = ?",
            (self._ns,),
        )
        self._db.execute(
            "UPDATE feature_set SET last_visit = (SELECT max(visit) FROM step INDEXED BY step_by_set WHERE live "
            "AND step.namespace_id = feature_set.namespace_id AND step.set_id = feature_set.id) WHERE namespace_id = ?",
            (self._ns,),
        )
        views = self._views()
        self._db.execute("DELETE FROM view WHERE namespace_id = ?", (self._ns,))
        self._texts.counters["views"] = 0
        self._texts.save_counters()
        for _, gamma, decay in sorted(views):
            self.ensure_view(gamma, decay)

    def _views(self) -> list[tuple[int, float, float]]:
        return self._rows("SELECT id, gamma, decay FROM view WHERE namespace_id = ?")

    # ------------------------------------------------------------------------------------------ rows

    def _row(self, sql: str, *parameters: object) -> Any:
        return self._db.execute(sql, (self._ns, *parameters)).fetchone()

    def _rows(self, sql: str, *parameters: object, scoped: bool = True) -> list[Any]:
        return self._db.execute(sql, (self._ns, *parameters) if scoped else parameters).fetchall()


def summed(rows: Iterable[tuple[int, float]], decay: float) -> Sums:
    """Return count, weight, total, squares and ordinal of (visit, return) rows, as of the last one's episode."""
    rows = list(rows)
    last = rows[-1][0] >> STEP_BITS
    weights = [decay ** (last - (visit >> STEP_BITS)) for visit, _ in rows]
    total = math.fsum(w * g for w, (_, g) in zip(weights, rows, strict=True))
    squares = math.fsum(w * g * g for w, (_, g) in zip(weights, rows, strict=True))
    return len(rows), math.fsum(weights), total, squares, last
