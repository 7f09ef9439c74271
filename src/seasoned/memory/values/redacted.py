"""Redaction of a caller's texts, and the types of redacted records, which the writers demand.

Only `Redaction` makes these types of a caller's values, and only a `Session` makes a `Redaction`. At run time a
redacted record is the record itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NewType, TypeVar, overload

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_instance, check_text
from seasoned.errors import InputError, excerpt
from seasoned.memory.values.selection import Quarantine, Selection
from seasoned.memory.values.text_limits import check_size, check_sizes
from seasoned.types import FEEDBACK_KINDS, Episode, Feedback, Note, check_body, feedback_from_record, feedback_record
from seasoned.types.notes import NAME_POSITIONS, NamePositions

__all__ = [
    "Redact",
    "RedactedEpisode",
    "RedactedFeedback",
    "RedactedNote",
    "RedactedQuarantine",
    "RedactedText",
    "Redaction",
    "already_redacted",
]

Redact = Callable[[str], str]
"""Rewrites a text before it is stored or looked up."""

RedactedText = NewType("RedactedText", str)
RedactedEpisode = NewType("RedactedEpisode", Episode)
RedactedNote = NewType("RedactedNote", Note)
RedactedFeedback = NewType("RedactedFeedback", Feedback)
RedactedQuarantine = NewType("RedactedQuarantine", Quarantine)

_Text = TypeVar("_Text", str, str | None)


class Redaction:
    """The redaction of a memory and its size limit, for every text that a caller passes.

    Args:
        redact: rewrites each text; None: texts are stored as they are.
        max_text_bytes: the largest text that is accepted, as UTF-8.
    """

    def __init__(self, redact: Redact | None, max_text_bytes: int) -> None:
        self._redact = redact
        self._max_bytes = max_text_bytes

    @property
    def rewrites(self) -> bool:
        """Whether texts are rewritten."""
        return self._redact is not None

    @property
    def redactor(self) -> Redact | None:
        """What rewrites texts; None: they are stored as they are."""
        return self._redact

    def query(self, text: _Text) -> _Text:
        """Return a text of a query in its stored form; a value that is no text is returned as it is, to be refused."""
        return self._redact(text) if self._redact is not None and isinstance(text, str) else text

    def text(self, name: str, text: str) -> RedactedText:
        """Return a text as it is stored.

        Raises:
            InputError: it is blank, no text, or larger than a text may be.
        """
        text = self.query(check_text(name, text))
        check_size(name, text, self._max_bytes)
        return RedactedText(text)

    def episode(self, episode: Episode) -> RedactedEpisode:
        """Return an episode as it is stored, with an id, so that a second write of it is a no-op.

        Raises:
            InputError: it is no episode, or a text is larger than a text may be.
        """
        check_instance("episode", episode, Episode, "an episode is an Episode", "Build it with Episode(...).")
        if self._redact is not None:
            from seasoned.states.redaction import redact_episode

            episode = redact_episode(episode, self._redact)
        check_sizes(episode, self._max_bytes)
        return RedactedEpisode(_with_id(episode))

    def note(self, note: Note) -> RedactedNote:
        """Return a note as it is stored.

        The texts of feedback are those of its kind (`Feedback.redacted`). Of other notes, every text of the body is
        redacted at any depth, the keys of objects too, except at the `NAME_POSITIONS` of its kind, so that lookups by
        id and by name still match.

        Raises:
            InputError: its body is larger than a text may be, as JSON, or redaction makes two keys of an object or two
                candidates equal.
        """
        if self._redact is not None and note.kind in FEEDBACK_KINDS:
            redacted = feedback_from_record(note.kind, note.body).redacted(self._redact)
            note = replace(note, body={**note.body, **feedback_record(redacted)})
        elif self._redact is not None:
            note = replace(
                note, body=check_body(_redacted_json(note.body, self._redact, NAME_POSITIONS.get(note.kind)))
            )
        check_size("note", canonical_json(note.body), self._max_bytes)
        return RedactedNote(note)

    def feedback(self, feedback: Feedback) -> RedactedFeedback:
        """Return feedback as it is stored.

        Raises:
            InputError: it is no feedback, larger than a text may be, as JSON, or redaction makes two candidates equal.
        """
        feedback_record(feedback)  # refuses other values
        feedback = feedback if self._redact is None else feedback.redacted(self._redact)
        check_size("feedback", canonical_json(feedback_record(feedback)), self._max_bytes)
        return RedactedFeedback(feedback)

    def selection(self, selection: Selection) -> Selection:
        """Return a selection in its stored form."""
        return replace(selection, task=self.query(selection.task))

    def quarantine(self, quarantine: Quarantine) -> RedactedQuarantine:
        """Return a quarantine as it is stored."""
        selection, reason = self.selection(quarantine.selection), self.query(quarantine.reason)
        return RedactedQuarantine(replace(quarantine, selection=selection, reason=reason))


def _with_id(episode: Episode) -> Episode:
    return episode if episode.id is not None else replace(episode, id=uuid.uuid4().hex)


def _redacted_json(value: Any, redact: Redact, names: NamePositions) -> Any:
    if isinstance(value, str):
        return value if callable(names) and names(value) else redact(value)
    if isinstance(value, list):
        inner = names * len(value) if isinstance(names, list) else names
        if not isinstance(inner, list | tuple) or len(inner) != len(value):
            inner = [None] * len(value)
        return [_redacted_json(one, redact, each) for one, each in zip(value, inner, strict=True)]
    if isinstance(value, dict):
        known = names if isinstance(names, Mapping) else {}
        redacted = {
            key if key in known else redact(key): _redacted_json(one, redact, known.get(key))
            for key, one in value.items()
        }
        if len(redacted) < len(value):
            raise InputError(
                f"a note with the keys {excerpt(list(redacted))}",
                "the keys of a note must differ after redaction",
                "Put the texts into values.",
            )
        return redacted
    return value


@overload
def already_redacted(value: Episode) -> RedactedEpisode: ...
@overload
def already_redacted(value: Note) -> RedactedNote: ...
@overload
def already_redacted(value: Quarantine) -> RedactedQuarantine: ...
@overload
def already_redacted(value: str) -> RedactedText: ...
def already_redacted(value: Any) -> Any:
    """Return a value as a redacted one: it was read from a store, or consists of values that are redacted.

    A stored text was redacted when it was stored, by the memory that stored it. So a merge copies records as they are,
    even from a store without redaction. `tests/test_architecture.py` lists the callers.
    """
    return value
