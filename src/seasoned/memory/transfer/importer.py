"""Import of exported records. Runs inside one transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Generic, NamedTuple, TypeVar

from seasoned.errors import EpisodeConflictError, StoreError
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.transfer.jsonl import ExportRecord, line_errors
from seasoned.memory.values.corruption import decode
from seasoned.memory.values.derived_ids import feedback_of_event
from seasoned.memory.values.events import Event
from seasoned.memory.values.feedback_policy import FeedbackRule
from seasoned.memory.values.redacted import Redaction
from seasoned.memory.values.selection import Quarantine
from seasoned.memory.writing.episode_writer import TimedEpisode, Writer
from seasoned.memory.writing.feedback_events import FeedbackWriter
from seasoned.memory.writing.quarantine import QuarantineWriter
from seasoned.memory.writing.typed_feedback import TypedFeedbackWriter
from seasoned.memory.writing.unjudged_episodes import UnjudgedEpisodes
from seasoned.types import Label, Note

__all__ = ["SingleUse", "import_records"]

NumberedRecord = tuple[int, ExportRecord]

_BATCH = 1000
_T = TypeVar("_T")


class _NoteKind(NamedTuple):
    id: str
    kind: str


class SingleUse(Generic[_T]):
    """Items that can be iterated once: a second attempt would import only the rest of the first one."""

    def __init__(self, items: Iterable[_T], path: str) -> None:
        self._items: Iterator[_T] | None = iter(items)
        self._path = path

    def __iter__(self) -> Iterator[_T]:
        items, self._items = self._items, None
        if items is None:
            raise StoreError(
                f"{self._path}: the connection was lost while importing",
                "an import is all or nothing",
                "Import again: stored records are left alone.",
            )
        return items


def import_records(
    store: Store, namespace_id: int, writer: Writer, redaction: Redaction, lines: Iterable[NumberedRecord]
) -> tuple[int, int]:
    """Store the records of parsed lines, given with their numbers.

    Unrevoked feedback supersedes earlier feedback of its target, as if it were given now.

    Returns:
        The numbers of new episodes and of new feedback events.

    Raises:
        InputError: a record cannot be stored; the message names its line.
    """
    feedback = FeedbackWriter(store, namespace_id, sums_limited=False)
    quarantines = QuarantineWriter(store, namespace_id)
    typed_feedback = TypedFeedbackWriter(store, namespace_id, writer)
    n_episodes = n_events = last = 0
    line_of: dict[str, int] = {}
    labels: dict[str, int] = {}  # the notes of labels, with the line of an event of each
    new_notes: list[Note] = []
    for of_one_kind, group in groupby(lines, key=lambda numbered: type(numbered[1])):
        if of_one_kind is tuple:
            n_episodes += sum(_add(writer, redaction, batch) for batch in _batches(group))
            continue
        for number, item in group:
            last = number
            with line_errors(number, item):
                if isinstance(item, FeedbackRule):
                    UnjudgedEpisodes(store, namespace_id).merge(item)
                elif isinstance(item, Event):
                    line_of.setdefault(item.id, number)
                    if item.kind == Label.kind:
                        labels.setdefault(feedback_of_event(item.id), number)
                    n_events += feedback.add(item)
                elif isinstance(item, Quarantine):
                    quarantines.impose(redaction.quarantine(item))
                elif isinstance(item, Note):
                    note = redaction.note(item)
                    if typed_feedback.import_note(note):
                        new_notes.append(note)
    typed_feedback.exclude_answers(new_notes)
    for event_id in Reader(store, namespace_id).broken_supersessions():
        with line_errors(line_of.get(event_id, last), event_id):
            raise ValueError("an event is superseded by a later one of its source, author and step")
    for note_id, kind in _notes_of_other_kinds(store, namespace_id, labels):
        with line_errors(labels[note_id], note_id):
            raise ValueError(f"the note of an event of kind 'label' is of kind {kind!r}")
    return n_episodes, n_events


def _notes_of_other_kinds(store: Store, namespace_id: int, labels: Iterable[str]) -> list[_NoteKind]:
    sql = "SELECT id, kind FROM note WHERE namespace_id = ? AND kind <> ? AND id IN {values}"
    return decode(store.path, store.execute_in(sql, (namespace_id, Label.kind), sorted(labels)), _NoteKind)


def _batches(items: Iterator[_T]) -> Iterator[list[_T]]:
    while batch := list(islice(items, _BATCH)):
        yield batch


def _add(writer: Writer, redaction: Redaction, numbered: list[NumberedRecord]) -> int:
    batch: list[TimedEpisode] = []
    for number, item in numbered:
        with line_errors(number, item):
            episode, created_at = item  # type: ignore[misc]
            batch.append(TimedEpisode(redaction.episode(episode), created_at))
    try:
        return writer.add(batch)
    except EpisodeConflictError:
        for (number, item), one in zip(numbered, batch, strict=True):  # one by one, to name the conflicting line
            with line_errors(number, item):
                writer.add([one])
        raise
