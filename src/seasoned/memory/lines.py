"""Export and import: one JSON object a line.

A header, then episodes in commit order, then feedback in the order given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from seasoned.errors import InputError, SeasonedError, excerpt
from seasoned.memory.canonical import canonical_json, episode_from_record, episode_record
from seasoned.memory.events import Event
from seasoned.memory.reader import Reader
from seasoned.types import Episode, check_finite, check_text

__all__ = ["FORMAT", "MAX_LINE_BYTES", "export_lines", "parse_lines"]

FORMAT = "seasoned.memory/1"
MAX_LINE_BYTES = 256 * 1024 * 1024
_EPISODE_FIELDS = {"id", "task", "steps", "final_state", "ending", "model", "policy", "arm", "subject"}
_STEP_FIELDS = {"state", "action", "reward", "prior", "propensity"}
_EVENT_FIELDS = {
    "id", "episode_id", "step", "reward", "weight", "source", "author", "created_at", "revoked_at", "superseded_by",
}  # fmt: skip


def export_lines(reader: Reader, header: dict[str, Any]) -> Iterator[str]:
    """Yield the namespace's raw content, line by line."""
    yield canonical_json({"type": "header", "format": FORMAT, **header})
    for _, created_at, _, episode in reader.episodes():
        yield canonical_json({"type": "episode", "created_at": created_at, **episode_record(episode)})
    for _, event in reader.events():
        later = {"revoked_at": event.revoked_at, "superseded_by": event.superseded_by}
        yield canonical_json({"type": "feedback", **event.record(), **later})


def parse_lines(lines: Iterable[str]) -> Iterator[tuple[Episode, float | None] | Event]:
    """Yield what each line holds, checked.

    Raises:
        InputError: a line is not what `export_lines` writes; the message names the line.
    """
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield from _parse(line)
        except (SeasonedError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(
                f"line {number}: {excerpt(line.strip())}",
                f"each line is a header, an episode or a feedback event ({type(error).__name__}: {error})",
                "Mend or remove this line; nothing was imported.",
            ) from error


def _parse(line: str) -> Iterator[tuple[Episode, float | None] | Event]:
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a line has at most {MAX_LINE_BYTES} characters")
    record = json.loads(line, parse_constant=_refuse_constant)
    if not isinstance(record, dict):
        raise TypeError("a line is a JSON object")
    kind = record.pop("type", "episode")
    if kind == "header":
        if record.get("format") != FORMAT:
            raise ValueError(f"the format is {record.get('format')!r}, expected {FORMAT!r}")
    elif kind == "episode":
        created_at = record.pop("created_at", None)
        _refuse_unknown("episode", record, _EPISODE_FIELDS)
        for step in record["steps"]:
            _refuse_unknown("step", step, _STEP_FIELDS)
        yield episode_from_record(record), None if created_at is None else check_finite("created_at", created_at)
    elif kind == "feedback":
        _refuse_unknown("feedback", record, _EVENT_FIELDS)
        yield _event(record)
    else:
        raise ValueError(f"the type is {kind!r}")


def _event(record: dict[str, Any]) -> Event:
    event = Event(**record)
    for name in ("id", "episode_id", "source"):
        check_text(name, getattr(event, name))
    for name in ("reward", "weight", "created_at"):
        check_finite(name, getattr(event, name))
    for name, checked in (("author", check_text), ("superseded_by", check_text), ("revoked_at", check_finite)):
        if (value := getattr(event, name)) is not None:
            checked(name, value)
    if isinstance(event.step, bool) or not isinstance(event.step, int):
        raise TypeError("the step is a whole number")
    return event


def _refuse_unknown(kind: str, record: dict[str, Any], known: set[str]) -> None:
    if unknown := set(record) - known:
        raise ValueError(f"unknown {kind} fields: {', '.join(sorted(unknown))}")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that a memory can hold")
