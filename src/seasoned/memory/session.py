"""A session with one namespace of an open store: reads, writes, redaction, size limits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from seasoned.checks import check_instance, check_text
from seasoned.memory.namespace import Namespace
from seasoned.memory.pending.inbox import CachingEncoder, Inbox
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.values.selection import Quarantine, Selection
from seasoned.memory.values.text_limits import check_size, check_sizes
from seasoned.memory.writing.episode_writer import Writer
from seasoned.memory.writing.note_records import checked_note
from seasoned.memory.writing.typed_feedback import checked_feedback
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Feedback, Note

__all__ = ["Redact", "Session"]

Answer = TypeVar("Answer")
Text = TypeVar("Text", str, str | None)

Redact = Callable[[str], str]
"""Rewrites a text before it is stored or looked up."""


class _RollBack(Exception):  # noqa: N818 - no error: it ends the transaction of a dry run
    pass


class Session:
    """One namespace of an open store, and the only way of a caller's texts into it.

    The parts of `Memory` are built on a session. Each text that a caller passes goes through `redacted`,
    `checked_episode`, `checked_note` or `checked_feedback` before it is stored or looked up.

    Args:
        store: an open store.
        namespace: the namespace, as `enter_namespace` returned it.
        encoder: the encoder of the namespace.
        max_text_bytes: the largest text that is accepted, as UTF-8.
        redact: rewrites each text; None: texts are stored as they are.
    """

    def __init__(
        self, store: Store, namespace: Namespace, encoder: StateEncoder, *, max_text_bytes: int, redact: Redact | None
    ) -> None:
        self.store = store
        self.namespace_id = namespace.id
        self.namespace = namespace.name
        self.gamma = namespace.gamma
        self.encoder = encoder
        self.max_text_bytes = max_text_bytes
        self._redact = redact
        self.store_encoder = encoder if store.pending is None else CachingEncoder(encoder)
        self.reader = Reader(store, namespace.id)
        self.writer = Writer(store, namespace.id, self.store_encoder)
        self.inbox = Inbox(store, namespace.id, self.store_encoder, self.writer)

    # ------------------------------------------------------------------------------------------ reading and writing

    def read(self, query: Callable[[], Answer]) -> Answer:
        """Return what `query` returns, run inside one snapshot.

        Pending episodes are derived first, if the lock and the rights allow it.
        """

        def attempt() -> Answer:
            self.inbox.try_derive()
            with self.store.snapshot():
                return query()

        return self.store.retrying(attempt)

    def write(self, change: Callable[[], Answer], *, dry_run: bool = False) -> Answer:
        """Return what `change` returns, run inside one transaction. Pending episodes are derived first.

        It may run twice: a lost connection can hide that the first attempt was committed. So `change` uses ids and
        times that were fixed before. A dry run is rolled back.
        """

        def attempt() -> Answer:
            with contextlib.suppress(_RollBack), self.store.transaction(self.namespace_id):
                self.inbox.derive_all()
                answer = change()
                if dry_run:
                    raise _RollBack
            return answer

        return self.store.retrying(attempt)

    def close(self) -> None:
        """Derive the pending episodes of this session, if that can be done at once, and close the store."""
        try:
            self.inbox.close()
        finally:
            self.store.close()

    # ------------------------------------------------------------------------------------------ texts of the caller

    @property
    def redacts(self) -> bool:
        """Whether texts are rewritten."""
        return self._redact is not None

    def redacted(self, text: Text) -> Text:
        """Return a text as it is stored; a value that is no text is returned as it is, to be refused by its check."""
        return self._redact(text) if self._redact is not None and isinstance(text, str) else text

    def checked_text(self, name: str, text: str) -> str:
        """Return a text as it is stored.

        Raises:
            InputError: it is blank, no text, or larger than a text may be.
        """
        text = self.redacted(check_text(name, text))
        check_size(name, text, self.max_text_bytes)
        return text

    def checked_episode(self, episode: Episode) -> Episode:
        """Return an episode as it is stored.

        Raises:
            InputError: it is no episode, or a text is larger than a text may be.
        """
        check_instance("episode", episode, Episode, "an episode is an Episode", "Build it with Episode(...).")
        if self._redact is not None:
            from seasoned.states.redaction import redact_episode

            episode = redact_episode(episode, self._redact)
        check_sizes(episode, self.max_text_bytes)
        return episode

    def checked_note(self, note: Note) -> Note:
        """Return a note as it is stored.

        Raises:
            InputError: its body is larger than a text may be, or redaction makes two of its keys equal.
        """
        return checked_note(note, self._redact, self.max_text_bytes)

    def checked_selection(self, selection: Selection) -> Selection:
        """Return a selection as it is stored."""
        return replace(selection, task=self.redacted(selection.task))

    def checked_quarantine(self, quarantine: Quarantine) -> Quarantine:
        """Return a quarantine as it is stored."""
        selection = self.checked_selection(quarantine.selection)
        return replace(quarantine, selection=selection, reason=self.redacted(quarantine.reason))

    def checked_feedback(self, feedback: Feedback) -> Feedback:
        """Return feedback as it is stored.

        Raises:
            InputError: it is no feedback, larger than a text may be, or redaction makes two candidates equal.
        """
        return checked_feedback(feedback, self._redact, self.max_text_bytes)
