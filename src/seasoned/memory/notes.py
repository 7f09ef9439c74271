"""How notes enter a namespace, and how they are read. Every function runs inside a transaction or a snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from seasoned.canonical import canonical_json
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError, excerpt
from seasoned.memory.canonical import digest
from seasoned.memory.sizes import check_size
from seasoned.memory.store import Store
from seasoned.memory.writer import active_selections
from seasoned.types import Note, check_body, check_reward, feedback_from_record, feedback_record

__all__ = [
    "NoteWriter",
    "check_given",
    "check_place",
    "note_digest",
    "note_record",
    "note_row",
    "noted_ids",
    "prepared",
    "read_notes",
    "silenced",
]

_COLUMNS = "digest, id, episode_id, step, kind, body, source, author, created_at, revoked_at"


def note_record(note: Note) -> dict[str, Any]:
    """Return what was said, without what later happened to it."""
    names = ("id", "episode_id", "step", "kind", "body", "source", "author", "created_at")
    return {name: getattr(note, name) for name in names}


def note_digest(note: Note) -> bytes:
    """Return the hash of what was said."""
    return digest("note", note_record(note))


def note_row(namespace_id: int, note: Note) -> tuple[Any, ...]:
    """Return a note as it is written, in the column order of `schema.COLUMNS`."""
    return (
        namespace_id, note.id, note.episode_id, note.step, note.kind, canonical_json(note.body), note.source,
        note.author, note.created_at, note.revoked_at, note_digest(note),
    )  # fmt: skip


def prepared(note: Note, redact: Callable[[str], str] | None, max_bytes: int) -> Note:
    """Return a note as it may be stored: its texts redacted, and not too large.

    Raises:
        InputError: it has more than `max_bytes` bytes as JSON, or two keys of an object become one.
    """
    if redact is not None:
        note = replace(note, body=check_body(_redacted(note.body, redact)))
    check_size("note", canonical_json(note.body), max_bytes)
    return note


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(one, redact) for one in value]
    if isinstance(value, dict):
        told = {redact(key): _redacted(one, redact) for key, one in value.items()}
        if len(told) < len(value):
            raise InputError(
                f"a note with the keys {excerpt(list(told))}",
                "the keys of a note stay apart when they are redacted",
                "Put what is redacted into values.",
            )
        return told
    return value


def read_notes(
    store: Store,
    namespace_id: int,
    *,
    ids: Sequence[str] | None = None,
    kind: str | None = None,
    episode_id: str | None = None,
) -> Iterator[tuple[bytes, Note]]:
    """Yield (digest, note) in the order in which they were said, revoked ones included: all, or those that fit."""
    asked = {"kind = ?": kind, "episode_id = ?": episode_id}
    given = {sql: value for sql, value in asked.items() if value is not None}
    which, values = " AND ".join(["namespace_id = ?", *given]), (namespace_id, *given.values())
    if ids is None:
        rows = store.execute(f"SELECT {_COLUMNS} FROM note WHERE {which} ORDER BY created_at, id", values).fetchall()
    else:
        rows = store.execute_in(f"SELECT {_COLUMNS} FROM note WHERE {which} AND id IN {{values}}", values, ids)
        rows.sort(key=lambda row: (row[8], row[1]))
    for content, id_, of_episode, step, kind_, body, *rest in rows:
        yield bytes(content), Note(id_, of_episode, step, kind_, json.loads(body), *rest)


def noted_ids(store: Store, namespace_id: int) -> list[tuple[str, float | None]]:
    """Return (id, revoked_at) of all notes, in their order."""
    return store.execute(
        "SELECT id, revoked_at FROM note WHERE namespace_id = ? ORDER BY created_at, id", (namespace_id,)
    ).fetchall()


def check_given(note: Note) -> None:
    """Refuse a note that does not keep feedback as `Memory.give` writes it.

    Raises:
        InputError: as said.
    """
    feedback = feedback_from_record(note.kind, note.body)
    made, weight = note.body.get("alternatives"), note.body.get("weight")
    if not isinstance(made, list) or not all(isinstance(id_, str) and id_ for id_ in made):
        raise InputError(f"alternatives = {excerpt(made)}", "feedback lists the episodes that it made", "Use [].")
    body = {**feedback_record(feedback), "weight": check_reward("weight", weight), "alternatives": made}
    if canonical_json(body) != canonical_json(note.body):
        raise InputError(
            f"note {excerpt(note.id)} says {excerpt(dict(note.body))}",
            "a note of feedback holds that, its weight and the episodes that it made, in one form",
            "Export it again.",
        )


def silenced(store: Store, namespace_id: int) -> Callable[[Note], bool]:
    """Return whether a note is set aside: its episode is in quarantine, or its source is."""
    active = active_selections(store, namespace_id)
    if not active:
        return lambda note: False
    names = ("task", "model", "policy", "arm", "subject")
    rows = store.execute(
        f"SELECT id, created_at, {', '.join(names)} FROM episode WHERE namespace_id = ? "
        "AND id IN (SELECT episode_id FROM note WHERE namespace_id = ?)",
        (namespace_id, namespace_id),
    ).fetchall()
    aside = {
        id_
        for id_, created_at, *fields in rows
        if any(one.covers_episode(id_, dict(zip(names, fields, strict=True)), created_at) for one in active)
    }
    sources = [one for one in active if one.source is not None]
    return lambda note: (
        note.episode_id in aside or any(one.covers_event(note.source, note.created_at) for one in sources)
    )


class NoteWriter:
    """Appends and revokes the notes of one namespace."""

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id

    def add(self, notes: Sequence[Note], *, anew: bool = False) -> list[Note]:
        """Append notes, and return those that were not stored already.

        Args:
            notes: as they were `prepared`.
            anew: whether one of a known id may come at another time; it is then left as it was said first.

        Raises:
            NotFoundError: the episode or the step is not there.
            EpisodeConflictError: an id is stored with other content.
        """
        known = {note.id: note for _, note in read_notes(self._store, self._ns, ids=[note.id for note in notes])}
        new: dict[str, Note] = {}
        for note in notes:
            before = known.get(note.id) or new.get(note.id)
            if before is None:
                self._store.check_key("note id", note.id)
                new[note.id] = note
            elif note_digest(before) != note_digest(replace(note, created_at=before.created_at) if anew else note):
                raise EpisodeConflictError(
                    f"note {excerpt(note.id)} is stored with other content",
                    "one id names one note",
                    "Leave the id to the memory.",
                )
        n_counted = self._check_places(list(new.values()))
        self._store.insert("note", [note_row(self._ns, note) for note in new.values()])
        if n_counted:
            self._store.execute("UPDATE namespace SET notes = notes + ? WHERE id = ?", (n_counted, self._ns))
        return list(new.values())

    def _check_places(self, notes: Sequence[Note]) -> int:
        """Return how many are on episodes that have their numbers; the others are counted with those."""
        rows = self._store.execute_in(
            "SELECT id, steps, ordinal FROM episode WHERE namespace_id = ? AND id IN {values}",
            (self._ns,), list({note.episode_id: None for note in notes}),
        )  # fmt: skip
        steps, numbered = {row[0]: row[1] for row in rows}, {row[0] for row in rows if row[2] >= 0}
        for note in notes:
            check_place(note.episode_id, note.step, steps.get(note.episode_id))
        return sum(note.episode_id in numbered for note in notes)

    def find(self, note_id: str) -> Note | None:
        """Return the note with this id, if there is one."""
        return next((note for _, note in read_notes(self._store, self._ns, ids=[note_id])), None)

    def revoke(self, note_id: str, *, at: float) -> None:
        """Take a note back, unless it was."""
        self._store.execute(
            "UPDATE note SET revoked_at = ? WHERE namespace_id = ? AND id = ? AND revoked_at IS NULL",
            (at, self._ns, note_id),
        )


def check_place(episode_id: str, step: int | None, n_steps: int | None) -> None:
    """Refuse what no stored episode or step is.

    Raises:
        NotFoundError: as said.
    """
    if n_steps is None:
        raise NotFoundError(
            f"episode {excerpt(episode_id)}",
            "it is not in this namespace: it never was, or it was erased or pruned",
            "List what is: memory.episodes().",
        )
    if step is not None and step >= n_steps:
        has = f"steps 0 to {n_steps - 1}" if n_steps else "no steps"
        raise NotFoundError(f"step {step} of episode {excerpt(episode_id)}", f"it has {has}", "Name one of them.")
