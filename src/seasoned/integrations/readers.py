"""Readers of documents: one document at a time, or several that make up an episode together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult, Refusal, reason

__all__ = ["MAX_SESSION_BYTES", "DocumentReader", "Format", "SessionReader", "TraceReader", "by_document"]

MAX_SESSION_BYTES = 1024 * 1024 * 1024
"""Limit of the texts that a `SessionReader` holds, in characters."""


class TraceReader(Protocol):
    """Reads the documents of one file that have one format."""

    def add(self, document: Document) -> Iterator[ReadResult]:
        """Yield what is complete with this document."""
        ...

    def close(self) -> Iterator[ReadResult]:
        """Yield the rest, at the end of the file."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """A foreign format.

    Args:
        title: what it is called, for people.
        recognises: whether a JSON value is a document of this format; never raises.
        reader: makes a reader that follows these rules.
        general: whether other formats may have such documents too; then those come first.
    """

    title: str
    recognises: Callable[[object], bool]
    reader: Callable[[FieldRules], TraceReader]
    general: bool = False


class DocumentReader:
    """Reads each document on its own; what is wrong with it is a refusal."""

    def __init__(self, read: Callable[[Document, FieldRules], Iterator[ReadEpisode]], rules: FieldRules) -> None:
        self._read = read
        self._rules = rules

    def add(self, document: Document) -> Iterator[ReadResult]:  # noqa: D102 - as of `TraceReader`
        try:
            yield from self._read(document, self._rules)
        except (ValueError, OverflowError, RecursionError) as error:
            yield Refusal(document.line, reason(error))

    def close(self) -> Iterator[ReadResult]:  # noqa: D102 - as of `TraceReader`
        return iter(())


def by_document(read: Callable[[Document, FieldRules], Iterator[ReadEpisode]]) -> Callable[[FieldRules], TraceReader]:
    """Return the maker of readers that read each document on its own."""
    return lambda rules: DocumentReader(read, rules)


class SessionReader:
    """Reads documents that are the events of sessions; the episodes follow at the end of the file.

    Args:
        take: returns the session of an event, what is needed of it, and its size in characters; None if nothing is.
        build: yields the episodes of a session, from the lines and values of its events.
        max_session_bytes: beyond it, the sessions read so far are closed; later events of them are refused.
    """

    def __init__(
        self,
        take: Callable[[Any], tuple[str, Any, int] | None],
        build: Callable[[str, list[tuple[int, Any]]], Iterator[ReadEpisode]],
        max_session_bytes: int = MAX_SESSION_BYTES,
    ) -> None:
        self._take = take
        self._build = build
        self._limit = max_session_bytes
        self._size = 0
        self._sessions: dict[str, list[tuple[int, Any]]] = {}
        self._closed: set[str] = set()

    def add(self, document: Document) -> Iterator[ReadResult]:  # noqa: D102 - as of `TraceReader`
        try:
            taken = self._take(document.value)
        except (ValueError, OverflowError, RecursionError) as error:
            yield Refusal(document.line, reason(error))
            return
        if taken is None:
            return
        key, event, size = taken
        if key in self._closed:
            yield Refusal(document.line, f"session {key[:80]!a} was closed to limit memory: split the file by session")
            return
        self._sessions.setdefault(key, []).append((document.line, event))
        self._size += size
        if self._size > self._limit:
            self._closed |= set(self._sessions)
            yield from self.close()

    def close(self) -> Iterator[ReadResult]:  # noqa: D102 - as of `TraceReader`
        sessions, self._sessions, self._size = self._sessions, {}, 0
        for key, events in sessions.items():
            try:
                yield from self._build(key, events)
            except (ValueError, OverflowError, RecursionError) as error:
                yield Refusal(events[0][0], reason(error))
