"""Episodes of a caller and of the spool, and the delivery of the spool: a part of `Memory`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence

from seasoned.errors import EpisodeConflictError, InputError, excerpt
from seasoned.memory.parts import spool_entries
from seasoned.memory.parts.feedback_log import FeedbackLog
from seasoned.memory.parts.spool_entries import episode_entry
from seasoned.memory.session import Session
from seasoned.memory.values.redacted import RedactedEpisode, RedactedNote
from seasoned.memory.values.spool_entry import SpoolEntry
from seasoned.memory.writing.episode_writer import TimedEpisode
from seasoned.memory.writing.note_records import NoteWriter

__all__ = ["Delivery"]


class Delivery:
    """Stores the episodes of one namespace, and everything that its spool holds. All of it can be repeated."""

    def __init__(self, session: Session, feedback_log: FeedbackLog) -> None:
        self._session = session
        self._feedback_log = feedback_log
        if session.outbox is not None:
            session.outbox.deliver_records = self.deliver

    def add(self, episode: RedactedEpisode, notes: Sequence[RedactedNote] = (), *, is_new: bool = False) -> str:
        """Store an episode with the notes of its recording, on a server as a pending one, or spool it.

        Raises:
            EpisodeConflictError: its id is stored with other content; or at all, if it `is_new` and not spooled.
        """
        at = time.time()
        self._store_or_spool([episode], notes, at, lambda: self._store(episode, notes, at, is_new=is_new))
        return str(episode.id)

    def add_many(self, episodes: Sequence[RedactedEpisode]) -> list[str]:
        """Store episodes in one transaction, all or none, or spool them. Pending ones are derived first."""
        at = time.time()
        timed = [TimedEpisode(episode, at) for episode in episodes]
        self._store_or_spool(episodes, (), at, lambda: self._session.write(lambda: self._session.writer.add(timed)))
        return [str(episode.id) for episode in episodes]

    def _store_or_spool(
        self, episodes: Sequence[RedactedEpisode], notes: Sequence[RedactedNote], at: float, store: Callable[[], object]
    ) -> None:
        if self._session.outbox is None:
            store()
        else:
            self._session.outbox.write_all(
                lambda: [episode_entry(episode, notes, at) for episode in episodes], store, None
            )

    def _store(
        self, episode: RedactedEpisode, notes: Sequence[RedactedNote], at: float, *, is_new: bool = False
    ) -> None:
        session = self._session
        if session.inbox.add(episode, notes, created_at=at):
            return

        def change() -> None:  # also for stored notes, which are left unchanged
            if is_new and any(session.reader.episodes(id_=str(episode.id))):
                raise EpisodeConflictError(
                    f"episode {excerpt(str(episode.id))} is stored",
                    "a new episode has an id of its own",
                    "Use another.",
                )
            session.writer.add([TimedEpisode(episode, at)])
            NoteWriter(session.store, session.namespace_id).add_recorded(notes)

        if notes or is_new or session.store.pending is None:
            session.write(change)

    def deliver(self, entries: list[SpoolEntry]) -> None:
        """Store entries of the spool: the episodes first, and then what was written about them, in its order.

        Raises:
            SeasonedError: the store refused one of them; others may be stored.
        """
        episodes = [entry for entry in entries if entry["kind"] == spool_entries.EPISODE]
        about = [entry for entry in entries if entry["kind"] != spool_entries.EPISODE]
        if episodes:
            self._deliver_episodes(episodes)
        if about:
            self._session.write(lambda: self._write_all(about))
        elif self._session.store.pending is not None:
            self._session.store.retrying(self._session.inbox.try_derive)

    def _write_all(self, entries: list[SpoolEntry]) -> None:
        for entry in entries:
            self._write(entry)

    def _write(self, entry: SpoolEntry) -> None:
        """Store an entry about an episode, inside a transaction."""
        kind, log = entry["kind"], self._feedback_log
        if kind == spool_entries.REWARD:
            log.write_reward(spool_entries.read_reward_request(entry))
        elif kind == spool_entries.FEEDBACK:
            request = spool_entries.read_feedback_request(entry)
            log.write_feedback(request, functools.cache(request.feedback.rewards))
        elif kind == spool_entries.NOTE:
            log.write_note(spool_entries.read_note(entry))
        else:
            raise InputError(
                f"a spooled entry of the kind {excerpt(kind)}",
                "this seasoned does not know it",
                "Deliver it with the version that wrote it.",
            )

    def _deliver_episodes(self, entries: list[SpoolEntry]) -> None:
        read = [spool_entries.read_episode(entry) for entry in entries]
        if self._session.store.pending is None and not any(notes for _, notes, _ in read):
            timed = [TimedEpisode(episode, at) for episode, _, at in read]
            self._session.write(lambda: self._session.writer.add(timed))
            return
        for episode, notes, at in read:
            self._store(episode, notes, at)
