"""Lines of a file: an item of one JSON list, a span of a long request, a run of a long log is a line of its own."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import BinaryIO

from seasoned.checks import check_whole
from seasoned.integrations.json_input import MAX_LINE_BYTES, FileLine, Refusal, lines_from
from seasoned.integrations.json_stream import PART_BYTES, JsonStream
from seasoned.integrations.log_lines import begins_log, log_on_line, printed_log
from seasoned.integrations.request_lines import begins_request, printed_request, request_on_line

__all__ = ["document_lines"]

_BEGIN_BYTES = 8192
_GOES_ON, _GOES_ON_WITH = (b"{", b"[", b",", b":"), (b" ", b"\t", b",", b":", b"}", b"]", b'"')
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?+[ \t\r]*+\[[ \t\r]*+[\[{]")


def document_lines(file: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[FileLine | Refusal]:
    r"""Yield the lines of a file, as `bounded_lines`; of a list of objects, a line for each item, and its brackets.

    That is a list whose first item begins beside its bracket, and that does not end on this line, or only after 8 KiB:
    lists of `json.dump`, mongoexport and PostgreSQL. At most an item and 2 MiB are held. A bad item is a line too, if
    its end can be found; else the rest of the list is refused. A request of telemetry that is longer than 1 MiB, or
    printed over several lines at the file's start, is a line for each span (`request_lines`), and results of tau2 and a
    log of inspect_ai a line for each run (`log_lines`).

    Args:
        file: open at its start, and seekable.
        max_line_bytes: limit of a line, of an item, and of a span.

    Raises:
        InputError: the limit is not a positive integer.

    Example:
        >>> import io
        >>> [(line.number, line.data) for line in document_lines(io.BytesIO(b'[{"a": 1},\n{"a": 2}]'))]
        [(1, b'['), (1, b' {"a": 1},'), (2, b' {"a": 2},'), (2, b']')]
    """
    check_whole("max_line_bytes", max_line_bytes, 1)
    return _lines(file, max_line_bytes)


def _lines(file: BinaryIO, limit: int) -> Iterator[FileLine | Refusal]:
    begin = file.read(_BEGIN_BYTES)
    file.seek(0)
    first, ended, _ = begin.partition(b"\n")
    is_whole = bool(ended) or len(begin) < _BEGIN_BYTES
    number = 0
    if _LIST.match(begin) and not (is_whole and first.rstrip().endswith(b"]")):
        number = yield from _items(file, limit)
    elif begins_request(begin) and not _has_a_document_a_line(file):
        number = yield from printed_request(file, limit)
    elif begins_log(begin) and not _has_a_document_a_line(file):
        number = yield from printed_log(file, limit)
    yield from lines_from(file, limit, number, _parts)


def _has_a_document_a_line(file: BinaryIO) -> bool:
    """Return whether neither the end of a file's first line nor the beginning of its second says that it goes on."""
    end = following = b""
    while part := file.readline(PART_BYTES):
        end = part.rstrip() or end
        if part.endswith(b"\n"):
            following = file.read(1)
            break
    file.seek(0)
    return not end.endswith(_GOES_ON) and not following.startswith(_GOES_ON_WITH)


def _parts(number: int, begin: bytes, file: BinaryIO, limit: int) -> Iterator[FileLine | Refusal] | None:
    return request_on_line(number, begin, file, limit) or log_on_line(number, begin, file, limit)


def _items(file: BinaryIO, limit: int) -> Generator[FileLine | Refusal, None, int]:
    """Yield the items of a list, and return the number of lines that were read."""
    stream = JsonStream(file.read, limit)
    while stream.next_char() != "[":  # the mark of UTF-8 may come before it
        stream.skip()
    stream.skip()
    yield FileLine(stream.number, b"[")
    while (char := stream.next_char()) and char != "]":
        if char == ",":
            stream.skip()
            continue
        item = stream.value()
        if item is None:
            yield stream.rest("list")
            yield FileLine(stream.number, b"]")
            return stream.number
        elif isinstance(item, Refusal):
            yield item
        elif item.data.strip():
            yield FileLine(item.number, b" " + item.data + b",")
    if char:  # else the list is cut off
        yield FileLine(stream.number, b"]")
        stream.skip()
        file.seek(file.tell() - stream.n_unused)
    return stream.number - 1
