"""Reading and writing of notes, inside a transaction or a snapshot of the caller."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_reward
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError, excerpt
from seasoned.memory.stores.base import Store
from seasoned.memory.values.content_hash import digest
from seasoned.memory.values.corruption import decode, decoding
from seasoned.memory.values.derived_ids import may_be_answer
from seasoned.memory.values.redacted import RedactedNote
from seasoned.memory.values.row_checksum import row_checksum
from seasoned.memory.writing.exclusions import PROVENANCE, Exclusions
from seasoned.types import Note, feedback_from_record, feedback_record
from seasoned.types.notes import RESPONSE, check_known_body, response_note_id

__all__ = [
    "NewNoteRow",
    "NoteWriter",
    "check_feedback_note",
    "check_known_note",
    "check_place",
    "note_digest",
    "note_ids",
    "note_record",
    "note_row",
    "read_notes",
    "without_excluded",
]

_COLUMNS = "digest, id, episode_id, step, kind, body, source, author, created_at, revoked_at"


class NewNoteRow(NamedTuple):
    """A row of `note`, in the column order of `sqlite_schema.COLUMNS`."""

    namespace_id: int
    id: str
    episode_id: str
    step: int | None
    kind: str
    body: str
    source: str
    author: str | None
    created_at: float
    revoked_at: float | None
    digest: bytes
    checksum: bytes


class _NoteRow(NamedTuple):
    digest: bytes
    id: str
    episode_id: str
    step: int | None
    kind: str
    body: str
    source: str
    author: str | None
    created_at: float
    revoked_at: float | None


class _NoteDigest(NamedTuple):
    id: str
    digest: bytes


class _NoteEnd(NamedTuple):
    id: str
    revoked_at: float | None


class _NoteKind(NamedTuple):
    id: str
    kind: str


class _EpisodeRow(NamedTuple):
    id: str
    created_at: float
    task: str
    model: str | None
    policy: str | None
    arm: str | None
    subject: str | None


class _EpisodeLength(NamedTuple):
    id: str
    n_steps: int
    ordinal: int


def note_record(note: Note) -> dict[str, Any]:
    """Return a note as plain data, without its revocation."""
    names = ("id", "episode_id", "step", "kind", "body", "source", "author", "created_at")
    return {name: getattr(note, name) for name in names}


def note_digest(note: Note) -> bytes:
    """Return the hash of a note, without its revocation."""
    return digest("note", note_record(note))


def note_row(namespace_id: int, note: RedactedNote) -> NewNoteRow:
    """Return a note as a row to insert."""
    content = note_digest(note)
    return NewNoteRow(
        namespace_id,
        note.id,
        note.episode_id,
        note.step,
        note.kind,
        canonical_json(note.body),
        note.source,
        note.author,
        note.created_at,
        note.revoked_at,
        content,
        row_checksum("note", content, note.revoked_at),
    )


def read_notes(
    store: Store,
    namespace_id: int,
    *,
    ids: Sequence[str] | None = None,
    kind: str | None = None,
    episode_id: str | None = None,
    unrevoked: bool = False,
    after: tuple[float, str] | None = None,
    limit: int | None = None,
) -> Iterator[tuple[bytes, Note]]:
    """Yield (digest, note), the oldest first, of all notes that match every given condition.

    Without `ids`, `after` starts behind the note with this time and id, and `limit` ends after so many: the rows before
    are not read, nor those behind.

    Raises:
        IntegrityError: a stored value is damaged.
    """
    conditions = {"kind = ?": kind, "episode_id = ?": episode_id}
    conditions = {sql: value for sql, value in conditions.items() if value is not None}
    which = " AND ".join(["namespace_id = ?", *conditions])
    values: tuple[Any, ...] = (namespace_id, *conditions.values())
    which += " AND revoked_at IS NULL" if unrevoked else ""
    if ids is None:
        # Without statistics SQLite prefers the kind, and reads all of that kind.
        near = "" if episode_id is None else " INDEXED BY note_by_episode"
        if after is not None:
            # The first condition is implied; it lets an index begin there also where the second one's row cannot.
            which, values = f"{which} AND created_at >= ? AND (created_at, id) > (?, ?)", (*values, after[0], *after)
        size = "" if limit is None else f" LIMIT {limit:d}"
        found = store.execute(
            f"SELECT {_COLUMNS} FROM note{near} WHERE {which} ORDER BY created_at, id{size}", values
        ).fetchall()
        rows = decode(store.path, found, _NoteRow)
    else:
        found = store.execute_in(f"SELECT {_COLUMNS} FROM note WHERE {which} AND id IN {{values}}", values, ids)
        rows = sorted(decode(store.path, found, _NoteRow), key=lambda row: (row.created_at, row.id))
    with decoding(store.path):  # an exception of the caller is not raised in here
        for row in rows:
            body = json.loads(row.body)
            yield row.digest, Note(row.id, row.episode_id, row.step, row.kind, body, *row[6:])


def latest_response(store: Store, namespace_id: int, response_id: str) -> tuple[int, Note | None]:
    """Return the highest number of the notes on responses with this id, and its note; 0 and None: there is none.

    Lower ones may have been erased. The ids are read from the last one back. Other notes may have ids among them, such
    as one on a response whose id begins with this one and a blank.
    """
    first = response_note_id(response_id)
    before = f"{first} A"  # digits, and what counts them, are before the letters
    while rows := store.execute(
        "SELECT id, kind FROM note WHERE namespace_id = ? AND id >= ? AND id < ? ORDER BY id DESC LIMIT 8",
        (namespace_id, first, before),
    ).fetchall():
        for row in decode(store.path, rows, _NoteKind):
            digits = row.id[len(first) :].lstrip(" :;<=>?@") or "1"
            number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else 0
            if row.kind == RESPONSE and number and response_note_id(response_id, number) == row.id:
                return number, next(note for _, note in read_notes(store, namespace_id, ids=[row.id]))
            before = row.id
    return 0, None


def note_ids(store: Store, namespace_id: int) -> list[tuple[str, float | None]]:
    """Return (id, revoked_at) of all notes, the oldest first."""
    rows = store.execute(
        "SELECT id, revoked_at FROM note WHERE namespace_id = ? ORDER BY created_at, id", (namespace_id,)
    ).fetchall()
    return [(row.id, row.revoked_at) for row in decode(store.path, rows, _NoteEnd)]


def check_feedback_note(note: Note) -> None:
    """Refuse a note of feedback that differs from the form that `Memory.feedback` writes.

    Raises:
        InputError: it differs.
    """
    feedback = feedback_from_record(note.kind, note.body)
    made, weight = note.body.get("alternatives"), note.body.get("weight")
    if not isinstance(made, list) or not all(isinstance(id_, str) and id_ for id_ in made):
        raise InputError(f"alternatives = {excerpt(made)}", "feedback lists the ids of its answers", "Use [].")
    body = {**feedback_record(feedback), "weight": check_reward("weight", weight), "alternatives": made}
    if canonical_json(body) != canonical_json(note.body):
        raise InputError(
            f"note {excerpt(note.id)} with the body {excerpt(dict(note.body))}",
            "a note of feedback holds the feedback, its weight and the ids of its answers, in one form",
            "Export it again.",
        )


def check_known_note(note: Note) -> None:
    """Refuse an unrevoked note whose body is not of its kind's form: its readers would fail.

    Raises:
        InputError: it is one; the message names it.
    """
    if note.revoked_at is None:
        try:
            check_known_body(note.kind, note.body)
        except InputError as error:
            raise InputError(
                f"note {excerpt(note.id)} of kind {note.kind!r}: {error.seen}",
                error.rule,
                "Correct it, or revoke it where it is stored (seasoned memory revoke).",
            ) from error


def without_excluded(store: Store, namespace_id: int, notes: Sequence[Note]) -> list[Note]:
    """Return the notes whose source and whose episode are not excluded."""
    exclusions = Exclusions(store, namespace_id)
    episode_ids = {note.episode_id for note in notes}
    if not exclusions.of_episodes:
        episode_ids = {id_ for id_ in episode_ids if may_be_answer(id_)}
    rows = store.execute_in(
        f"SELECT id, created_at, {', '.join(PROVENANCE)} FROM episode INDEXED BY episode_by_id "
        "WHERE namespace_id = ? AND id IN {values}",
        (namespace_id,),
        sorted(episode_ids),
    )
    found = [
        (row.id, row.created_at, dict(zip(PROVENANCE, row[2:], strict=True)))
        for row in decode(store.path, rows, _EpisodeRow)
    ]
    excluded = exclusions.excluded_answers_among((id_, fields["arm"]) for id_, _, fields in found)
    excluded |= {id_ for id_, created_at, fields in found if exclusions.covers_episode(id_, fields, created_at)}
    return [
        note
        for note in notes
        if note.episode_id not in excluded and not exclusions.covers_event(note.source, note.author, note.created_at)
    ]


class NoteWriter:
    """Appends and revokes the notes of one namespace."""

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id

    def add_recorded(self, notes: Sequence[RedactedNote]) -> None:
        """Append the notes of one recorder; the same notes with other times are a no-op.

        A note whose id belongs to another episode's note gets another id, made of its own and of its content.

        Raises:
            EpisodeConflictError: this episode was recorded with other notes.
        """
        if not notes:
            return
        taken = {
            note.id
            for _, note in read_notes(self._store, self._ns, ids=[note.id for note in notes])
            if note.episode_id != notes[0].episode_id
        }
        self.add([_renamed(note) if note.id in taken else note for note in notes], ignore_time=True)

    def add(self, notes: Sequence[RedactedNote], *, ignore_time: bool = False) -> list[RedactedNote]:
        """Append notes, and return those that were not stored already.

        Args:
            notes: the notes.
            ignore_time: a note with a known id and the same content at another time is left unchanged.

        Raises:
            NotFoundError: the episode or the step is not there.
            EpisodeConflictError: an id is stored with other content.
        """
        known = {note.id: note for _, note in read_notes(self._store, self._ns, ids=[note.id for note in notes])}
        new: dict[str, RedactedNote] = {}
        for note in notes:
            before: Note | None = known.get(note.id) or new.get(note.id)
            if before is None:
                self._store.check_key("note id", note.id)
                new[note.id] = note
            elif note_digest(before) != note_digest(
                replace(note, created_at=before.created_at) if ignore_time else note
            ):
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
        """Check the episodes and steps; return how many notes are on derived episodes: the others are counted later."""
        rows = self._store.execute_in(
            "SELECT id, steps, ordinal FROM episode INDEXED BY episode_by_id WHERE namespace_id = ? AND id IN {values}",
            (self._ns,),
            list({note.episode_id: None for note in notes}),
        )
        episodes = decode(self._store.path, rows, _EpisodeLength)
        steps, numbered = {row.id: row.n_steps for row in episodes}, {row.id for row in episodes if row.ordinal >= 0}
        for note in notes:
            check_place(note.episode_id, note.step, steps.get(note.episode_id))
        return sum(note.episode_id in numbered for note in notes)

    def find(self, note_id: str) -> Note | None:
        """Return the note with this id, or None."""
        return next((note for _, note in read_notes(self._store, self._ns, ids=[note_id])), None)

    def revoke(self, note_id: str, *, at: float) -> None:
        """Revoke a note; again is a no-op."""
        self.end({note_id: at}, unrevoked=True)

    def end(self, times: Mapping[str, float], *, unrevoked: bool = False) -> None:
        """Set the times at which notes were revoked, by their ids; with `unrevoked`, only of those that are not yet."""
        which = " AND revoked_at IS NULL" if unrevoked else ""
        rows = self._store.execute_in(
            f"SELECT id, digest FROM note WHERE namespace_id = ?{which} AND id IN {{values}}", (self._ns,), list(times)
        )
        self._store.update(
            "note",
            ("revoked_at", "checksum"),
            ("namespace_id", "id"),
            [
                (times[row.id], row_checksum("note", row.digest, times[row.id]), self._ns, row.id)
                for row in decode(self._store.path, rows, _NoteDigest)
            ],
        )


def _renamed(note: RedactedNote) -> RedactedNote:
    """Return a note with an id that is made of its own id and its content without the time."""
    return replace(note, id=f"{note.id}~{note_digest(replace(note, created_at=0.0)).hex()[:32]}")


def check_place(episode_id: str, step: int | None, n_steps: int | None) -> None:
    """Check that an episode and its step are stored; `n_steps` is None for an unknown episode.

    Raises:
        NotFoundError: they are not.
    """
    if n_steps is None:
        raise NotFoundError(
            f"episode {excerpt(episode_id)}",
            "it is not in this namespace: it never was, or it was erased or pruned",
            "List the stored ones: memory.episodes().",
        )
    if step is not None and step >= n_steps:
        has = f"steps 0 to {n_steps - 1}" if n_steps else "no steps"
        raise NotFoundError(f"step {step} of episode {excerpt(episode_id)}", f"it has {has}", "Name one of them.")
