"""Writer of feedback events, inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from seasoned.errors import EpisodeConflictError, InputError, NotFoundError, StoreBusyError, excerpt
from seasoned.memory.reading.follower import advance_epoch
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS
from seasoned.memory.values.author_cap import AuthorCap
from seasoned.memory.values.corruption import decode, decode_first
from seasoned.memory.values.derived_ids import original_event_id
from seasoned.memory.values.events import Event
from seasoned.memory.values.feedback_policy import SILENCE
from seasoned.memory.values.row_checksum import row_checksum
from seasoned.memory.values.selection import Selection
from seasoned.memory.writing.exclusions import active_selections
from seasoned.memory.writing.namespace_row import read_feedback_limits
from seasoned.memory.writing.unjudged_episodes import UnjudgedEpisodes
from seasoned.types import Label

__all__ = ["FeedbackWriter"]


class _PlacedEvent(NamedTuple):
    event: Event
    visit: int


class _NewEventRow(NamedTuple):
    """A row of `feedback`, in the column order of `sqlite_schema.COLUMNS`."""

    namespace_id: int
    seq: int
    id: str
    visit: int
    reward: float
    weight: float
    source: str
    author: str | None
    created_at: float
    revoked_at: float | None
    superseded_by: str | None
    digest: bytes
    live: bool
    kind: str | None
    checksum: bytes


class _EpisodeRow(NamedTuple):
    id: str
    ordinal: int
    n_steps: int


class _EventTarget(NamedTuple):
    id: str
    visit: int
    source: str
    author: str | None
    digest: bytes
    kind: str | None

    @property
    def original(self) -> tuple[str, int, str, str | None]:
        """The id of the original event, with the visit, the source and the author."""
        return original_event_id(self.id), self.visit, self.source, self.author


class _AuthoredEvent(NamedTuple):
    reward: float
    weight: float
    source: str
    kind: str | None


class _EventDigest(NamedTuple):
    id: str
    digest: bytes


class _RevokedEvent(NamedTuple):
    id: str
    revoked_at: float


class FeedbackWriter:
    """Appends and revokes the feedback events of one namespace, and derives returns and evidence again.

    Args:
        store, namespace_id: the namespace.
        limited: refuse new events that exceed a limit of the namespace; a copy of a whole store takes all.
        sums_limited: refuse sums of a step that do so. Copies of stored feedback do not: a release or a revocation may
            have left a larger sum where they come from, and no copy holds the history that would tell.
        cap: on what the author of new events may count on a step; None: there is none.
    """

    def __init__(
        self,
        store: Store,
        namespace_id: int,
        *,
        limited: bool = True,
        sums_limited: bool = True,
        cap: AuthorCap | None = None,
    ) -> None:
        self._store = store
        self._ns = namespace_id
        self._limited = limited
        self._sums_limited = limited and sums_limited
        self._cap = cap
        self._awaiting = UnjudgedEpisodes(store, namespace_id)

    def add(self, event: Event) -> bool:
        """Append an event; it supersedes an earlier event of the same source, author, kind and step.

        Returns:
            Whether it was new.
        """
        return self.add_many([event]) == 1

    def add_many(self, events: Sequence[Event]) -> int:
        """Append events in their order, derive once at the end, and return how many were new.

        Raises:
            NotFoundError: an episode or a step is not there.
            EpisodeConflictError: an id is stored with other content.
            InputError: an event or a step's sum exceeds a limit; roll the transaction back.
        """
        new = self._unknown(events)
        if not new:
            return 0
        episodes = {visit >> STEP_BITS: event.episode_id for event, visit in new}
        check_sum = None
        if self._limited:
            limits = read_feedback_limits(self._store, self._ns)
            for event, visit in new:
                if event.revoked_at is None:
                    _check_weight(event)
                    limits.check_weight(event.source, event.weight)
                    if self._cap is not None:
                        self._check_cap(self._cap, event, visit, limits.max_step_feedback)

            def check_sum(visit: int, reward: float, before: float, after: float) -> None:
                limits.check_step(_place(episodes[visit >> STEP_BITS], visit), reward, before, after)

        self._append(new)
        if any(event.source != SILENCE for event, _ in new):
            self._awaiting.see("feedback")
        self._awaiting.rederive(sorted(episodes), check_sum if self._sums_limited else None, judged=True)
        return len(new)

    def _check_cap(self, cap: AuthorCap, event: Event, visit: int, max_step_feedback: float | None) -> None:
        """Refuse an event with which its author counts too much on a step.

        Raises:
            AuthorCapError: it is one.
        """
        if event.author is None or not event.reward or event.source in cap.excepted:
            return
        found = self._store.execute(
            "SELECT reward, weight, source, kind FROM feedback INDEXED BY feedback_by_visit "
            "WHERE namespace_id = ? AND visit = ? AND author = ? AND revoked_at IS NULL",
            (self._ns, visit, event.author),
        ).fetchall()
        others = [
            row.reward * row.weight
            for row in decode(self._store.path, found, _AuthoredEvent)
            if row.source not in cap.excepted and (row.source, row.kind) != (event.source, event.kind)  # it is replaced
        ]
        cap.check(_place(event.episode_id, visit), others, event.reward * event.weight, max_step_feedback)

    def _append(self, new: Sequence[_PlacedEvent]) -> None:
        """Insert new events."""
        selections = active_selections(self._store, self._ns, of_events=True)
        self._store.execute("UPDATE namespace SET events = events + ? WHERE id = ?", (len(new), self._ns))
        last: int = self._store.execute("SELECT events FROM namespace WHERE id = ?", (self._ns,)).fetchone()[0]
        rows: list[_NewEventRow] = []
        targets: set[tuple[object, ...]] = set()
        for seq, (event, visit) in enumerate(new, last - len(new) + 1):
            target = visit, event.source, event.author, event.kind
            if target in targets:  # the later event supersedes the earlier one
                self._store.insert("feedback", rows)
                rows, targets = [], set()
            targets.add(target)
            rows.append(self._new_row(event, visit, seq, selections))
        self._store.insert("feedback", rows)

    def _new_row(self, event: Event, visit: int, seq: int, selections: Sequence[Selection]) -> _NewEventRow:
        """Return a new event as a row, and supersede the earlier event of its source, author and kind on the step."""
        if event.revoked_at is None and original_event_id(event.id) != event.id:
            event = replace(event, revoked_at=min(self._revocations(event, visit), default=None))
        if event.revoked_at is None:  # an event that is imported revoked supersedes no other
            same, who = _who(event.author, event.kind)
            rows = self._store.execute(
                "SELECT id, digest FROM feedback INDEXED BY feedback_by_visit "
                f"WHERE namespace_id = ? AND visit = ? AND source = ? AND {same} AND revoked_at IS NULL",
                (self._ns, visit, event.source, *who),
            ).fetchall()
            ended = event.created_at, event.id, False
            self._store.update(
                "feedback",
                ("revoked_at", "superseded_by", "live", "checksum"),
                ("namespace_id", "id"),
                [
                    (*ended, row_checksum("feedback", old.digest, event.created_at, True), self._ns, old.id)
                    for old in decode(self._store.path, rows, _EventDigest)
                ],
            )
        live = event.revoked_at is None and not any(
            s.covers_event(event.source, event.author, event.created_at) for s in selections
        )
        return _NewEventRow(
            self._ns,
            seq,
            event.id,
            visit,
            event.reward,
            event.weight,
            event.source,
            event.author,
            event.created_at,
            event.revoked_at,
            event.superseded_by,
            event.digest(),
            live,
            event.kind,
            event.checksum(),
        )

    def _unknown(self, events: Sequence[Event]) -> list[_PlacedEvent]:
        """Return the events that are not stored, each with its visit.

        Raises:
            NotFoundError: an episode or a step is not there.
            EpisodeConflictError: an id is stored with other content.
        """
        rows = self._store.execute_in(
            "SELECT id, ordinal, steps FROM episode INDEXED BY episode_by_id WHERE namespace_id = ? AND id IN {values}",
            (self._ns,),
            sorted({event.episode_id for event in events}),
        )
        episodes = {row.id: row for row in decode(self._store.path, rows, _EpisodeRow)}
        known = {
            id_: bytes(content)
            for id_, content in self._store.execute_in(
                "SELECT id, digest FROM feedback INDEXED BY feedback_by_id WHERE namespace_id = ? AND id IN {values}",
                (self._ns,),
                [event.id for event in events],
            )
        }
        new: list[_PlacedEvent] = []
        for event in events:
            visit = self._visit(event.episode_id, event.step, episodes.get(event.episode_id))
            content = event.digest()
            if event.id not in known:
                new.append(_PlacedEvent(event, visit))
            if known.setdefault(event.id, content) != content:
                raise EpisodeConflictError(
                    f"event {excerpt(event.id)} is stored with other content",
                    "one id names one event",
                    "Leave the id to the memory.",
                )
        return new

    def revoke(self, event_id: str, *, at: float) -> None:
        """Revoke an event and its reweighted successors; again is a no-op.

        Raises:
            NotFoundError: there is no such event.
        """
        if not self.revoke_all([event_id], at=at):
            raise NotFoundError(f"event {excerpt(event_id)}", "no event has this id", "List them: memory.events().")

    def revoke_all(self, event_ids: Sequence[str], *, at: float) -> int:
        """Revoke these events, derive once at the end, and return how many of the ids are stored."""
        path = self._store.path
        found = self._store.execute_in(
            "SELECT id, visit, source, author, digest, kind FROM feedback INDEXED BY feedback_by_id "
            "WHERE namespace_id = ? AND id IN {values}",
            (self._ns,),
            event_ids,
        )
        events = decode(path, found, _EventTarget)
        originals = {event.original for event in events}
        found = self._store.execute_in(
            "SELECT id, visit, source, author, digest, kind FROM feedback INDEXED BY feedback_by_visit "
            "WHERE namespace_id = ? AND revoked_at IS NULL AND visit IN {values}",
            (self._ns,),
            sorted({event.visit for event in events}),
        )
        unrevoked = [event for event in decode(path, found, _EventTarget) if event.original in originals]
        self._store.update(
            "feedback",
            ("revoked_at", "live", "checksum"),
            ("namespace_id", "id"),
            [(at, False, row_checksum("feedback", event.digest, at, False), self._ns, event.id) for event in unrevoked],
        )
        if any(event.kind == Label.kind for event in unrevoked):  # a step that has other feedback stays live
            advance_epoch(self._store, self._ns)
        self._awaiting.rederive(sorted({event.visit >> STEP_BITS for event in unrevoked}))
        return len(events)

    def last_step(self, episode_id: str) -> int:
        """Return the index of an episode's last step."""
        rows = self._store.execute(
            "SELECT id, ordinal, steps FROM episode WHERE namespace_id = ? AND id = ?", (self._ns, episode_id)
        ).fetchall()
        return self._with_steps(episode_id, decode_first(self._store.path, rows, _EpisodeRow)).n_steps - 1

    def _with_steps(self, episode_id: str, row: _EpisodeRow | None) -> _EpisodeRow:
        """Return the row of an episode, if it is stored, derived, and has a step."""
        if row is None:
            raise NotFoundError(
                f"episode {excerpt(episode_id)}",
                "it is not in this namespace",
                "List the stored ones: memory.episodes().",
            )
        if row.ordinal < 0:
            if self._store.pending is not None:
                self._store.pending.rescan(self._ns)
            raise StoreBusyError(f"episode {excerpt(episode_id)}", "it was added just now", "Try again.")
        if not row.n_steps:
            raise NotFoundError(
                f"episode {excerpt(episode_id)} has no steps", "feedback lands on a step", "Choose another episode."
            )
        return row

    def _visit(self, episode_id: str, step: int, row: _EpisodeRow | None) -> int:
        row = self._with_steps(episode_id, row)
        if not 0 <= step < row.n_steps:
            raise NotFoundError(
                f"step {step} of episode {excerpt(episode_id)}",
                f"it has steps 0 to {row.n_steps - 1}",
                "Name one of them.",
            )
        return row.ordinal << STEP_BITS | step

    def _revocations(self, event: Event, visit: int) -> list[float]:
        """Return when the original of an event and other reweightings of it were revoked, not superseded."""
        rows = self._store.execute(
            "SELECT id, revoked_at FROM feedback INDEXED BY feedback_by_visit "
            "WHERE namespace_id = ? AND visit = ? AND source = ? AND coalesce(author, '') = ? "
            "AND revoked_at IS NOT NULL AND superseded_by IS NULL",
            (self._ns, visit, event.source, event.author or ""),
        ).fetchall()
        revoked, original = decode(self._store.path, rows, _RevokedEvent), original_event_id(event.id)
        return [one.revoked_at for one in revoked if original_event_id(one.id) == original]


def _check_weight(event: Event) -> None:
    """Refuse typed feedback of a weight below 0: labels count by their weighted mean.

    Raises:
        InputError: it is one.
    """
    if event.kind is not None and event.weight < 0.0:
        raise InputError(
            f"weight = {event.weight:g} of event {excerpt(event.id)}, of kind {event.kind!r}",
            "typed feedback has a weight of at least 0",
            "Import the opposite feedback instead, such as Thumbs(up=False).",
        )


def _who(author: str | None, kind: str | None) -> tuple[str, list[str]]:
    """Return the condition that an event is of this author and kind, and its values."""
    given = {"author": author, "kind": kind}
    same = " AND ".join(f"{name} IS NULL" if value is None else f"{name} = ?" for name, value in given.items())
    return same, [value for value in given.values() if value is not None]


def _place(episode_id: str, visit: int) -> str:
    return f"step {visit & (MAX_STEPS - 1)} of episode {excerpt(episode_id)}"
