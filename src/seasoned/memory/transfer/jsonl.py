"""Export and import: one JSON object a line.

A header, then episodes in commit order, feedback in the order given, quarantines in the order imposed, and notes in
the order in which they were said.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_number, check_reward, check_text
from seasoned.errors import EpisodeConflictError, InputError, StoreBusyError, excerpt
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.values.content_hash import episode_from_record, episode_record
from seasoned.memory.values.corruption import naming_damage
from seasoned.memory.values.events import Event
from seasoned.memory.values.selection import Quarantine, Selection
from seasoned.memory.writing.note_records import check_feedback_note, note_record, noted_ids, read_notes
from seasoned.types import FEEDBACK_KINDS, Episode, Note, check_kind

__all__ = ["FORMAT", "MAX_LINE_BYTES", "Line", "counted_as", "export_lines", "naming", "parse_lines"]

Line = tuple[Episode, float | None] | Event | Quarantine | Note
"""What a line holds: an episode and when it was stored, a feedback event, a quarantine, or a note."""

FORMAT = "seasoned.memory/1"
MAX_LINE_BYTES = 256 * 1024 * 1024
_PAGE = 32
_EPISODE_FIELDS = {"id", "task", "steps", "final_state", "ending", "model", "policy", "arm", "subject"}
_STEP_FIELDS = {"state", "action", "reward", "prior", "propensity"}
_EVENT_FIELDS = {
    "id",
    "episode_id",
    "step",
    "reward",
    "weight",
    "source",
    "author",
    "created_at",
    "revoked_at",
    "superseded_by",
    "kind",
}
_NOTE_FIELDS = {"id", "episode_id", "step", "kind", "body", "source", "author", "created_at", "revoked_at"}

_QUARANTINE_FIELDS = {"id", "selection", "reason", "created_at", "lifted_at"}


class _Opening(NamedTuple):
    """What was there at the first line; of episodes that are folded, and of notes, only which."""

    epoch: int
    last_ordinal: int
    counted: dict[str, int]
    arrivals: list[tuple[float, Episode]]
    events: list[Event]
    quarantines: list[Quarantine]
    noted: list[tuple[str, float | None]]


def export_lines(store: Store, reader: Reader, header: dict[str, Any]) -> Iterator[str]:
    """Yield the namespace's raw content as of the first line, line by line.

    Nothing is held between two lines, so that others read, write and close meanwhile. Stored episodes never change:
    those that were there at the first line are read a few at a time. What feedback there was, and what had arrived, is
    read at once.

    Raises:
        StoreBusyError: something was taken away or set aside meanwhile; the lines so far are no whole export.
    """

    def opening() -> _Opening:
        with store.snapshot(), naming_damage(store.path):
            events = [event for _, event in reader.events()]
            quarantines = [quarantine for _, quarantine in reader.quarantines()]
            counted = {"episodes": reader.count("episode"), "feedback": len(events)}
            noted = noted_ids(store, reader.namespace_id)
            return _Opening(
                reader.epoch(), reader.last_ordinal(), counted, reader.pending_episodes(), events, quarantines, noted
            )

    def check_unchanged() -> None:
        if reader.epoch() != epoch:
            raise StoreBusyError(
                f"{store.path}: it was pruned, erased or quarantined while it was exported",
                "an export is what the memory held at its first line",
                "Export again.",
            )

    def page_from(first: int) -> list[tuple[int, float, bytes, Episode]]:
        with store.snapshot(), naming_damage(store.path):
            check_unchanged()
            return list(reader.episodes(ordinals=range(first, min(first + _PAGE, last + 1))))

    def arrived_from(first: int) -> list[tuple[float, Episode]]:
        with store.snapshot(), naming_damage(store.path):
            check_unchanged()
            return arrivals[first : first + _PAGE]

    def notes_from(first: int) -> list[Note]:
        with store.snapshot(), naming_damage(store.path):
            check_unchanged()
            ends = dict(noted[first : first + _PAGE])
            page = read_notes(store, reader.namespace_id, ids=list(ends))
            return [replace(note, revoked_at=ends[note.id]) for _, note in page]

    epoch, last, counted, arrivals, events, quarantines, noted = store.retrying(opening)
    if quarantines:
        counted["quarantines"] = len(quarantines)
    if noted:
        counted["notes"] = len(noted)
    yield canonical_json({"type": "header", "format": FORMAT, **counted, **header})
    for first in range(1, last + 1, _PAGE):
        page = store.retrying(lambda first=first: page_from(first))  # type: ignore[misc]
        for _, created_at, _, episode in page:
            yield canonical_json({"type": "episode", "created_at": created_at, **episode_record(episode)})
    for first in range(0, len(arrivals), _PAGE):
        for created_at, episode in store.retrying(lambda first=first: arrived_from(first)):  # type: ignore[misc]
            yield canonical_json({"type": "episode", "created_at": created_at, **episode_record(episode)})
    for event in events:
        later = {"revoked_at": event.revoked_at, "superseded_by": event.superseded_by}
        yield canonical_json({"type": "feedback", **event.record(), **later})
    for quarantine in quarantines:
        yield canonical_json({"type": "quarantine", **quarantine.record(), "lifted_at": quarantine.lifted_at})
    for first in range(0, len(noted), _PAGE):
        for note in store.retrying(lambda first=first: notes_from(first)):  # type: ignore[misc]
            yield canonical_json({"type": "note", **note_record(note), "revoked_at": note.revoked_at})


@contextlib.contextmanager
def naming(number: int, line: object) -> Iterator[None]:
    """Turn what is wrong with a line into an InputError that names it; a store that fails is not the line's fault."""
    try:
        yield
    except (EpisodeConflictError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(
            f"line {number}: {excerpt(line.strip() if isinstance(line, str) else line)}",
            f"each line is a header, an episode or a feedback event ({type(error).__name__}: {str(error)[:300]})",
            "Mend or remove this line; nothing was imported.",
        ) from error


def parse_lines(lines: Iterable[str]) -> Iterator[tuple[int, Line]]:
    """Yield what each line holds, checked, with its number. Lines without a header are taken as they are.

    Raises:
        InputError: a line is not what `export_lines` writes (the message names it), or fewer or more episodes and
            events follow than the header announces: an export that was cut off is no backup.
    """
    announced: dict[str, Any] | None = None
    found = {"episodes": 0, "feedback": 0, "quarantines": 0, "notes": 0}
    number = 0
    for number, line in enumerate(lines, start=1):
        with naming(number, line):
            item = _parse(line)
            if isinstance(item, dict):
                if announced is not None or any(found.values()):
                    raise ValueError("there is one header, and it comes first")
                announced = item
        if isinstance(item, dict) or item is None:
            continue
        found[counted_as(item)] += 1
        yield number, item
    expected = found if announced is None else {name: announced.get(name, 0) for name in found}
    if found != expected:
        raise InputError(
            f"{', '.join(f'{n} {name}' for name, n in found.items())} in {number} lines",
            f"the header announces {', '.join(f'{n} {name}' for name, n in expected.items())}",
            "Export again: this file was cut off; nothing was imported.",
        )


def counted_as(item: Line) -> str:
    """Return the name under which a header counts such an item."""
    if isinstance(item, Event):
        return "feedback"
    if isinstance(item, Note):
        return "notes"
    return "quarantines" if isinstance(item, Quarantine) else "episodes"


def _parse(line: str) -> Line | dict[str, Any] | None:
    if not isinstance(line, str):
        raise TypeError("a line is a str")
    if not line.strip():
        return None
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a line has at most {MAX_LINE_BYTES} characters")
    record = json.loads(line, parse_constant=_refuse_constant)
    if not isinstance(record, dict):
        raise TypeError("a line is a JSON object")
    kind = record.pop("type", "episode")
    if kind == "header":
        if record.get("format") != FORMAT:
            raise ValueError(f"the format is {record.get('format')!r}, expected {FORMAT!r}")
        return record
    if kind == "episode":
        created_at = record.pop("created_at", None)
        _refuse_unknown("episode", record, _EPISODE_FIELDS)
        if not isinstance(record["steps"], list):
            raise TypeError("the steps are a list")
        for step in record["steps"]:
            _refuse_unknown("step", step, _STEP_FIELDS)
        return episode_from_record(record), None if created_at is None else check_number("created_at", created_at)
    if kind == "feedback":
        _refuse_unknown("feedback", record, _EVENT_FIELDS)
        return _event(record)
    if kind == "quarantine":
        _refuse_unknown("quarantine", record, _QUARANTINE_FIELDS)
        return _quarantine(record)
    if kind == "note":
        _refuse_unknown("note", record, _NOTE_FIELDS)
        return _note(record)
    raise ValueError(f"the type is {kind!r}")


def _quarantine(record: dict[str, Any]) -> Quarantine:
    for name in ("id", "reason"):
        check_text(name, record[name])
    lifted_at = record.get("lifted_at")
    return Quarantine(
        record["id"],
        Selection(**record["selection"]),
        record["reason"],
        check_number("created_at", record["created_at"]),
        None if lifted_at is None else check_number("lifted_at", lifted_at),
    )


def _note(record: dict[str, Any]) -> Note:
    note = Note(**{"step": None, "author": None, "revoked_at": None, **record})
    if note.kind in FEEDBACK_KINDS:
        check_feedback_note(note)
    return note


def _event(record: dict[str, Any]) -> Event:
    for name in ("id", "episode_id", "source"):
        check_text(name, record[name])
    record["reward"] = check_reward("reward", record["reward"])
    # A hash is taken of what is said: 1 and 1.0 must be said alike.
    for name in ("weight", "created_at"):
        record[name] = check_number(name, record[name])
    check_reward("reward * weight", record["reward"] * record["weight"])
    if record.get("kind") is not None:
        check_kind(record["kind"])
    for name in ("author", "superseded_by"):
        if record.get(name) is not None:
            check_text(name, record[name])
    if record.get("revoked_at") is not None:
        record["revoked_at"] = check_number("revoked_at", record["revoked_at"])
    elif record.get("superseded_by") is not None:
        raise ValueError("a superseded event says when, in revoked_at")
    if isinstance(record["step"], bool) or not isinstance(record["step"], int):
        raise TypeError("the step is a whole number")
    return Event(**{"author": None, **record})


def _refuse_unknown(kind: str, record: object, known: set[str]) -> None:
    if not isinstance(record, dict):
        raise TypeError(f"the {kind} is a JSON object")
    if unknown := set(record) - known:
        raise ValueError(f"unknown {kind} fields: {', '.join(sorted(unknown))}")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that a memory can hold")
