"""Requests of telemetry that are read span by span, so that a request of any size is never held as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import BinaryIO, NamedTuple

from seasoned.integrations.json_input import FileLine, Refusal
from seasoned.integrations.json_stream import PART_BYTES, JsonStream

__all__ = ["begins_request", "printed_request", "request_on_line"]

_BEGIN = re.compile(
    rb'(?:\xef\xbb\xbf)?+\s*+\{\s*+(?:"trace"\s*+:\s*+\{\s*+)?+'
    rb'(?:"(?:resourceSpans|resourceLogs|batches)"\s*+:\s*+\[|"data"\s*+:\s*+\[\s*+\{\s*+"traceID")'
)
_TRACE = "trace"


class _List(NamedTuple):
    """A list under a key of a request: what opens it, and the lists in its items; without these, they are spans."""

    opening: str
    inner: Mapping[str, _List] | None = None


_SPANS = {"spans": _List('{"spans":[')}
_LOGS = {"logRecords": _List('{"logRecords":[')}
_OF_SPANS = {"scopeSpans": _List('{"scopeSpans":[', _SPANS)}
_OF_SPANS["instrumentationLibrarySpans"] = _OF_SPANS["scopeSpans"]
_OF_LOGS = {"scopeLogs": _List('{"scopeLogs":[', _LOGS)}
_OF_LOGS["instrumentationLibraryLogs"] = _OF_LOGS["scopeLogs"]
_REQUEST = {
    "resourceSpans": _List('{"resourceSpans":[', _OF_SPANS),
    "batches": _List('{"batches":[', _OF_SPANS),
    "resourceLogs": _List('{"resourceLogs":[', _OF_LOGS),
    "data": _List('{"data":[', {"spans": _List('{"traceID":null,"spans":[')}),
}
_Spans = Generator[FileLine | Refusal, None, bool]
"""Spans and log records, each in a request of its own; the result is whether all of the text was read."""


def begins_request(data: bytes) -> bool:
    """Return whether a text begins as a request of OTLP, a trace of Tempo, or an answer of Jaeger's API.

    Example:
        >>> begins_request(b'{"resourceSpans": [{'), begins_request(b'{"messages": [')
        (True, False)
    """
    return _BEGIN.match(data) is not None


def request_on_line(number: int, begin: bytes, file: BinaryIO, limit: int) -> Iterator[FileLine | Refusal] | None:
    """Return the spans of a request that is a long line, each as a line of this number; None if it is something else.

    Each is a request with this span alone. After a fault, the rest of the line is refused.

    Args:
        number: of the line.
        begin: what was read of it.
        file: the rest of it, and the lines after it.
        limit: of the bytes of a span.
    """
    return _on_line(JsonStream(_rest_of_line(file), limit, number, begin)) if begins_request(begin) else None


def _on_line(stream: JsonStream) -> Iterator[FileLine | Refusal]:
    is_read = yield from _of_object(stream, _REQUEST, ())
    if not is_read or stream.next_char():
        yield stream.rest("request")


def _rest_of_line(file: BinaryIO) -> Callable[[int], bytes]:
    is_over = False

    def read(n_bytes: int) -> bytes:
        nonlocal is_over
        part = b"" if is_over else file.readline(n_bytes)
        is_over = is_over or part.endswith(b"\n")
        return part.removesuffix(b"\n")

    return read


def printed_request(file: BinaryIO, limit: int) -> Generator[FileLine | Refusal, None, int]:
    """Yield the spans of a request that is printed over several lines, and return the number of lines before its end.

    After a fault, the rest of the request is refused: the lines up to the next one that begins at the margin.

    Args:
        file: at the start of the request, and seekable; then behind it.
        limit: of the bytes of a span.
    """
    stream = JsonStream(file.read, limit)
    is_read = yield from _of_object(stream, _REQUEST, ())
    file.seek(file.tell() - stream.n_unused)
    number = stream.number - 1
    if is_read:
        return number
    size, at_margin = 0, False
    while part := file.readline(PART_BYTES):
        if at_margin and part.strip() and part[:1] not in b" \t}]":
            file.seek(file.tell() - len(part))
            break
        size += len(part)
        at_margin = part.endswith(b"\n")
        number += at_margin
    yield stream.refusal("request", size)
    return number


def _of_object(stream: JsonStream, lists: Mapping[str, _List], openings: tuple[str, ...]) -> _Spans:
    while (char := stream.next_char()) != "{":  # the mark of UTF-8 may come before it
        if not char:
            return False
        stream.skip()
    stream.skip()
    while (char := stream.next_char()) != "}":
        if char == ",":
            stream.skip()
            continue
        key = stream.value() if char == '"' else None
        if not isinstance(key, FileLine) or stream.next_char() != ":":
            return False
        stream.skip()
        name, char = _text(key.data), stream.next_char()
        if char == "[" and name in lists:
            is_read = yield from _of_list(stream, lists[name], openings)
        elif char == "{" and name == _TRACE and lists is _REQUEST:
            is_read = yield from _of_object(stream, lists, openings)
        else:
            is_read = char != "" and stream.value(wanted=False) is not None
        if not is_read:
            return False
    stream.skip()
    return True


def _text(data: bytes) -> str:
    try:
        return str(json.loads(data))
    except ValueError:  # no key of a list
        return ""


def _of_list(stream: JsonStream, list_: _List, openings: tuple[str, ...]) -> _Spans:
    openings = (*openings, list_.opening)
    stream.skip()
    while (char := stream.next_char()) != "]":
        if char == ",":
            stream.skip()
        elif char == "{" and list_.inner is not None:
            is_read = yield from _of_object(stream, list_.inner, openings)
            if not is_read:
                return False
        elif char == "" or (value := stream.value()) is None:
            return False
        elif isinstance(value, Refusal):
            yield value
        else:
            opening, closing = "".join(openings).encode(), b"]}" * len(openings)
            yield FileLine(value.number, opening + value.data.replace(b"\n", b" ") + closing)
    stream.skip()
    return True
