"""Storing what an export holds. Runs inside one transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Generic, Protocol, TypeVar

from seasoned.errors import EpisodeConflictError, StoreError
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.transfer.jsonl import Line, naming
from seasoned.memory.values.events import Event
from seasoned.memory.values.selection import Quarantine
from seasoned.memory.writing.episode_writer import Timed, Writer, with_id
from seasoned.memory.writing.feedback_events import FeedbackWriter
from seasoned.memory.writing.quarantine import QuarantineWriter
from seasoned.memory.writing.typed_feedback import TypedFeedbackWriter
from seasoned.types import Episode, Note

__all__ = ["Once", "import_parsed"]

Numbered = tuple[int, Line]

_BATCH = 1000
_T = TypeVar("_T")


class Once(Generic[_T]):
    """Items that can be read once: a second attempt would import what the first one left."""

    def __init__(self, items: Iterable[_T], path: str) -> None:
        self._items: Iterator[_T] | None = iter(items)
        self._path = path

    def __iter__(self) -> Iterator[_T]:
        items, self._items = self._items, None
        if items is None:
            raise StoreError(
                f"{self._path}: the connection was lost while importing",
                "what was imported is all or nothing",
                "Import again: what is stored already is left alone.",
            )
        return items


class TextChecks(Protocol):
    """Checks and redaction of a caller's texts, as `Session` has them."""

    def checked_episode(self, episode: Episode) -> Episode:
        """Return an episode as it is stored."""

    def checked_note(self, note: Note) -> Note:
        """Return a note as it is stored."""

    def checked_quarantine(self, quarantine: Quarantine) -> Quarantine:
        """Return a quarantine as it is stored."""


def import_parsed(
    store: Store, namespace_id: int, writer: Writer, checks: TextChecks, lines: Iterable[Numbered]
) -> tuple[int, int]:
    """Store the content of parsed lines, given with their numbers.

    Returns:
        How many episodes and feedback events were new.

    Feedback that comes in standing supersedes what stood there, as when it is given.

    Raises:
        InputError: what a line holds cannot be stored; the message names it.
    """
    feedback, quarantines = FeedbackWriter(store, namespace_id), QuarantineWriter(store, namespace_id)
    typed_feedback = TypedFeedbackWriter(store, namespace_id, writer)
    n_episodes = n_events = last = 0
    said: dict[str, int] = {}
    noted: list[Note] = []
    for of_one_kind, group in groupby(lines, key=lambda numbered: type(numbered[1])):
        if of_one_kind is tuple:
            n_episodes += sum(_add(writer, checks, batch) for batch in _batches(group))
            continue
        for number, item in group:
            last = number
            with naming(number, item):
                if isinstance(item, Event):
                    said.setdefault(item.id, number)
                    n_events += feedback.add(item)
                elif isinstance(item, Quarantine):
                    quarantines.impose(checks.checked_quarantine(item))
                elif isinstance(item, Note):
                    note = checks.checked_note(item)
                    if typed_feedback.take_in(note):
                        noted.append(note)
    typed_feedback.settle(noted)
    for event_id in Reader(store, namespace_id).broken_supersessions():
        with naming(said.get(event_id, last), event_id):
            raise ValueError("an event is superseded by a later one of its source, author and step")
    return n_episodes, n_events


def _batches(items: Iterator[_T]) -> Iterator[list[_T]]:
    while batch := list(islice(items, _BATCH)):
        yield batch


def _add(writer: Writer, checks: TextChecks, numbered: list[Numbered]) -> int:
    batch: list[Timed] = []
    for number, item in numbered:
        with naming(number, item):
            episode, created_at = item  # type: ignore[misc]
            batch.append((with_id(checks.checked_episode(episode)), created_at))
    try:
        return writer.add(batch)
    except EpisodeConflictError:
        for (number, item), one in zip(numbered, batch, strict=True):  # whose fault it is
            with naming(number, item):
                writer.add([one])
        raise
