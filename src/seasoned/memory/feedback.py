"""How feedback enters a namespace. Every function runs inside one transaction of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seasoned.errors import EpisodeConflictError, NotFoundError, StoreBusyError, excerpt
from seasoned.memory.deriving import Deriver
from seasoned.memory.events import Event, first_id
from seasoned.memory.schema import STEP_BITS
from seasoned.memory.store import Store
from seasoned.memory.writer import active_selections

__all__ = ["FeedbackWriter"]


class FeedbackWriter:
    """Appends and revokes feedback events of one namespace; returns and evidence follow."""

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id
        self._derive = Deriver(store, namespace_id)

    def add(self, event: Event) -> bool:
        """Append an event; the same source, author, kind and step supersedes what it said before.

        Returns:
            Whether it was new.
        """
        new = self._append(event)
        if new:
            self._derive.rederive([self._visit(event.episode_id, event.step) >> STEP_BITS])
        return new

    def add_many(self, events: Sequence[Event]) -> None:
        """Append events, deriving what follows once."""
        visits = [self._visit(event.episode_id, event.step) for event in events if self._append(event)]
        self._derive.rederive(sorted({visit >> STEP_BITS for visit in visits}))

    def _append(self, event: Event) -> bool:
        visit = self._visit(event.episode_id, event.step)
        known = self._row("SELECT digest FROM feedback WHERE namespace_id = ? AND id = ?", event.id)
        if known:
            if known[0] != event.digest():
                raise EpisodeConflictError(
                    f"event {excerpt(event.id)} is stored with other content",
                    "one id names one event",
                    "Leave the id to the memory.",
                )
            return False
        if event.revoked_at is None and first_id(event.id) != event.id:  # what was revoked is not weighed into a say
            ended = self._word(
                event.id, visit, event.source, event.author, "revoked_at IS NOT NULL AND superseded_by IS NULL"
            )
            event = replace(event, revoked_at=min((at for _, at in ended), default=None))
        if event.revoked_at is None:  # an event that comes in revoked has no say, and silences nobody
            same, who = _who(event.author, event.kind)
            self._store.execute(
                "UPDATE feedback INDEXED BY feedback_by_visit SET revoked_at = ?, superseded_by = ?, live = ? "
                f"WHERE namespace_id = ? AND visit = ? AND source = ? AND {same} AND revoked_at IS NULL",
                (event.created_at, event.id, False, self._ns, visit, event.source, *who),
            )
        suspects = active_selections(self._store, self._ns)
        live = event.revoked_at is None and not any(s.covers_event(event.source, event.created_at) for s in suspects)
        self._store.execute("UPDATE namespace SET events = events + 1 WHERE id = ?", (self._ns,))
        seq = self._row("SELECT events FROM namespace WHERE id = ?")[0]
        self._store.insert(
            "feedback",
            [(self._ns, seq, event.id, visit, event.reward, event.weight, event.source, event.author, event.created_at,
              event.revoked_at, event.superseded_by, event.digest(), live, event.kind)],
        )  # fmt: skip
        return True

    def revoke(self, event_id: str, *, at: float) -> None:
        """Take an event out of its step's reward, however it was weighed since; revoking twice changes nothing."""
        row = self._row("SELECT visit, source, author FROM feedback WHERE namespace_id = ? AND id = ?", event_id)
        if not row:
            raise NotFoundError(
                f"event {excerpt(event_id)}", "only feedback that was given can be revoked", "List the events."
            )
        visit, source, author = row
        for id_, _ in self._word(event_id, visit, source, author, "revoked_at IS NULL"):
            self._store.execute(
                "UPDATE feedback SET revoked_at = ?, live = ? WHERE namespace_id = ? AND id = ?",
                (at, False, self._ns, id_),
            )
            self._derive.rederive([visit >> STEP_BITS])

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
        if row[0] < 0:
            self._store.look_anew(self._ns)
            raise StoreBusyError(f"episode {excerpt(episode_id)}", "it arrived just now", "Try again.")
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

    def _word(self, event_id: str, visit: int, source: str, author: str | None, which: str) -> list[tuple[str, float]]:
        """Return (id, revoked_at) of an event, however it was weighed, `which` holds of."""
        rows = self._store.execute(
            "SELECT id, revoked_at FROM feedback INDEXED BY feedback_by_visit "
            f"WHERE namespace_id = ? AND visit = ? AND source = ? AND coalesce(author, '') = ? AND {which}",
            (self._ns, visit, source, author or ""),
        ).fetchall()
        return [(id_, at) for id_, at in rows if first_id(id_) == first_id(event_id)]

    def _row(self, sql: str, *parameters: object) -> Any:
        return self._store.execute(sql, (self._ns, *parameters)).fetchone()


def _who(author: str | None, kind: str | None) -> tuple[str, list[str]]:
    """Return the condition that an event is of this author and kind, and its values."""
    given = {"author": author, "kind": kind}
    same = " AND ".join(f"{name} IS NULL" if value is None else f"{name} = ?" for name, value in given.items())
    return same, [value for value in given.values() if value is not None]
