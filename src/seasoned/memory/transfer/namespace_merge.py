"""What one namespace takes from another store: episodes, feedback, quarantines, notes, and how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from seasoned.memory.pending.inbox import derive_pending
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.transfer.feedback_merge import reconcile
from seasoned.memory.transfer.manifest import Noted, read_contents
from seasoned.memory.values.events import Event
from seasoned.memory.values.selection import Quarantine
from seasoned.memory.writing.episode_writer import Writer
from seasoned.memory.writing.evidence_views import Deriver
from seasoned.memory.writing.exclusions import active_selections
from seasoned.memory.writing.feedback_events import FeedbackWriter
from seasoned.memory.writing.note_records import NoteWriter, read_notes
from seasoned.memory.writing.quarantine import QuarantineWriter
from seasoned.memory.writing.typed_feedback import TypedFeedbackWriter
from seasoned.protocols import StateEncoder

__all__ = ["Absorber", "Merged"]

_BATCH = 256


@dataclass(frozen=True, slots=True)
class Merged:
    """What came into one namespace of the target; `changed` counts events, quarantines and notes that ended by it."""

    namespace: str
    made: bool
    episodes: int = 0
    feedback: int = 0
    quarantines: int = 0
    changed: int = 0
    notes: int = 0


class Absorber:
    """Adds to one namespace of the target, inside a transaction of it and a snapshot of the source."""

    def __init__(self, target: Store, namespace_id: int, encoder: StateEncoder) -> None:
        self._target = target
        self._ns = namespace_id
        self._writer = Writer(target, namespace_id, encoder)
        self._feedback = FeedbackWriter(target, namespace_id)
        self._quarantines = QuarantineWriter(target, namespace_id)
        self._notes = NoteWriter(target, namespace_id)

    def add(self, source: Store, source_id: int, done: Merged) -> Merged:
        """Add what a source has and the target lacks; return the sums."""
        derive_pending(self._target, self._ns, self._writer)
        ours, theirs = read_contents(self._target, self._ns), read_contents(source, source_id)
        reader = Reader(source, source_id)
        missing = [one.ordinal for id_, one in theirs.episodes.items() if id_ not in ours.episodes]
        n_episodes = self._add_episodes(reader, missing)
        n_events, n_changed = self._add_events(
            [event for _, event in ours.events.values()], [event for _, event in theirs.events.values()]
        )
        n_quarantines = n_lifted = 0
        for _, quarantine in theirs.quarantines.values():
            if quarantine.id in ours.quarantines:
                n_lifted += self._lift(ours.quarantines[quarantine.id][1], quarantine)
            else:
                n_quarantines += self._quarantines.impose(quarantine)
        n_notes, n_ended = self._add_notes(source, source_id, ours.notes, theirs.notes)
        return replace(
            done,
            episodes=done.episodes + n_episodes,
            feedback=done.feedback + n_events,
            quarantines=done.quarantines + n_quarantines,
            changed=done.changed + n_changed + n_lifted + n_ended,
            notes=done.notes + n_notes,
        )

    def _add_episodes(self, reader: Reader, missing: Sequence[int]) -> int:
        wanted = set(missing)
        n_new = 0
        left = iter(missing)
        for first in left:
            near = range(first, first + _BATCH)
            batch = [
                (episode, created_at)
                for ordinal, created_at, _, episode in reader.episodes(ordinals=near)
                if ordinal in wanted
            ]
            n_new += self._writer.add(batch)
            for _ in islice(left, len(batch) - 1):
                pass
        return n_new

    def _add_events(self, ours: Sequence[Event], theirs: Sequence[Event]) -> tuple[int, int]:
        """Return how many events are new, and of how many the standing changed."""
        before = {event.id: event for event in ours}
        merged = reconcile(ours, theirs)
        changed = [event for event in merged if event.id in before and event != before[event.id]]
        suspects = active_selections(self._target, self._ns, of_events=True)
        self._target.update(
            "feedback",
            ("revoked_at", "superseded_by", "live"),
            ("namespace_id", "id"),
            [
                (
                    event.revoked_at,
                    event.superseded_by,
                    event.revoked_at is None
                    and not any(s.covers_event(event.source, event.created_at) for s in suspects),
                    self._ns,
                    event.id,
                )
                for event in changed
            ],
        )
        final = {event.id: event for event in merged}
        n_new = sum(self._feedback.add(final[event.id]) for event in theirs if event.id not in before)
        self._put_in_order([event.id for event in merged])
        rows = self._target.execute_in(
            f"SELECT DISTINCT visit >> {STEP_BITS} FROM feedback WHERE namespace_id = ? AND id IN {{values}}",
            (self._ns,),
            [event.id for event in changed],
        )
        Deriver(self._target, self._ns).rederive(sorted({row[0] for row in rows}))
        if changed:  # what was read of them is no longer so
            self._target.execute("UPDATE namespace SET epoch = epoch + 1 WHERE id = ?", (self._ns,))
        return n_new, len(changed)

    def _add_notes(
        self, source: Store, source_id: int, ours: Mapping[str, Noted], theirs: Mapping[str, Noted]
    ) -> tuple[int, int]:
        """Return how many notes are new, and how many ended: where either store says so, and at the earlier time.

        Of feedback on one target, in one kind, the later one supersedes the other, as its events do.
        """
        ended = [
            (their.revoked_at, self._ns, id_)
            for id_, their in theirs.items()
            if id_ in ours
            and their.revoked_at is not None
            and ((our := ours[id_].revoked_at) is None or our > their.revoked_at)
        ]
        self._target.update("note", ("revoked_at",), ("namespace_id", "id"), ended)
        missing = [id_ for id_ in theirs if id_ not in ours]
        for first in range(0, len(missing), _BATCH):
            near = missing[first : first + _BATCH]
            self._notes.add([note for _, note in read_notes(source, source_id, ids=near)])
        giver = TypedFeedbackWriter(self._target, self._ns, self._writer)
        moved = [*missing, *(id_ for _, _, id_ in ended)]
        giver.settle(note for _, note in read_notes(self._target, self._ns, ids=moved))
        return len(missing), len(ended) + giver.settle_rivals()

    def _put_in_order(self, event_ids: Sequence[str]) -> None:
        rows = self._target.execute(
            "SELECT seq, id FROM feedback WHERE namespace_id = ? ORDER BY seq", (self._ns,)
        ).fetchall()
        moved = [(seq, id_) for (seq, now), id_ in zip(rows, event_ids, strict=True) if now != id_]
        for sign in (-1, 1):  # their numbers are taken until all of them have left
            self._target.update(
                "feedback", ("seq",), ("namespace_id", "id"), [(sign * seq, self._ns, id_) for seq, id_ in moved]
            )

    def _lift(self, ours: Quarantine, theirs: Quarantine) -> bool:
        """Let a quarantine end when either store says that it ended, and at the earlier time."""
        if theirs.lifted_at is None or (ours.lifted_at is not None and ours.lifted_at <= theirs.lifted_at):
            return False
        self._quarantines.release(ours.id, at=theirs.lifted_at)
        self._target.execute(
            "UPDATE quarantine SET lifted_at = ? WHERE namespace_id = ? AND id = ?",
            (theirs.lifted_at, self._ns, ours.id),
        )
        return True
