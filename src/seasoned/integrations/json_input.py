"""Reader of untrusted files: bounded lines, strict JSON, and refusals with reasons."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from seasoned.checks import check_json_size, check_whole
from seasoned.errors import InputError, SeasonedError
from seasoned.integrations.step_results import StepResult
from seasoned.types import Episode

__all__ = [
    "MAX_LINE_BYTES",
    "Document",
    "FileLine",
    "ReadEpisode",
    "ReadResult",
    "Refusal",
    "bounded_lines",
    "documents",
    "item_end",
    "lines_from",
    "not_finite_reason",
    "parse_strict_json",
    "reason",
    "too_long",
]

MAX_LINE_BYTES = 256 * 1024 * 1024
_PART_BYTES = 1024 * 1024
_MAX_REASON_CHARS = 300
_ASKED_ITEMS = 50
_BLANKS = re.compile(r"[ \t\r\n]*+")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?P<end>"?)|[\[\]{},]', re.DOTALL)
_CLOSERS = {"[": "]", "{": "}"}
_CUT_OFF = "the list that begins here is cut off"
_UTF8_MARK = b"\xef\xbb\xbf"
_NO_UTF8 = re.compile("[\udc80-\udcff]")  # what `surrogateescape` makes of a byte
# An escaped NUL, where the backslash is not itself escaped.
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*+\\u0000")
# Escapes of characters that a memory cannot store: NUL, and half of a surrogate pair. Group 1 has the others.
_MAY_BE_REPLACED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_LOW = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_REPLACED = r"\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})"
_ESCAPES = re.compile(
    rf"((?:[^\\]++|\\u[dD][89abAB][0-9a-fA-F]{{2}}{_LOW}|(?!{_REPLACED})\\.)++)|{_REPLACED}", re.DOTALL
)


def too_long(limit: int) -> str:
    """Return why a value beyond a limit in bytes is refused."""
    return f"longer than {limit} bytes: split it into a document a line"


class FileLine(NamedTuple):
    """A raw line of a file, with its number from 1."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused value, with the reason, the number of its first line, from 1, and its format, if it was recognised.

    Example:
        >>> str(Refusal(3, "not JSON"))
        'line 3: not JSON'
    """

    line: int
    reason: str
    format: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.format + ': ' if self.format else ''}{self.reason}"


@dataclass(frozen=True, slots=True)
class ReadEpisode:
    """An episode that was read.

    Args:
        episode: the episode.
        line: number of its first line, from 1.
        created_at: time of its end, in Unix seconds; None if the source has none.
        rewarded: whether the source has a reward. If not, every reward is 0.
        format: name of its format.
        skipped: what was passed over on purpose, counted by kind.
        reward_fields: without a reward, the paths of fields of the source that may have one, such as `resolved`.
        results: of the steps' calls, if they were asked for.
    """

    episode: Episode
    line: int
    created_at: float | None
    rewarded: bool
    format: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)
    reward_fields: tuple[str, ...] = ()
    results: tuple[StepResult, ...] = ()


ReadResult = ReadEpisode | Refusal
"""Result of reading one document or conversation of a foreign file."""


class Document(NamedTuple):
    """One JSON value and the number of its first line.

    Attributes:
        line: the number.
        value: the value.
        replaced: how many of its characters were replaced by U+FFFD.
        not_finite: its `NaN` and `Infinity`, which are no JSON; they are null in the value.
        n_bytes: the length of its text; 0 if it is a part of another document.
    """

    line: int
    value: object
    replaced: int = 0
    not_finite: tuple[str, ...] = ()
    n_bytes: int = 0


LineSplitter = Callable[[int, bytes, BinaryIO, int], Iterator[FileLine | Refusal] | None]
"""Parts of a long line, from its number, its first MiB, the file behind that, and the limit; None: it has none."""


def bounded_lines(file: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[FileLine | Refusal]:
    r"""Yield each line of a file with its number; a line beyond the limit is refused, and never loaded as a whole.

    Of a line at most `max_line_bytes` and a part of 1 MiB are held.

    Raises:
        InputError: the limit is not a positive integer.

    Example:
        >>> import io
        >>> [line.number for line in bounded_lines(io.BytesIO(b"one\ntwo\n"), max_line_bytes=3)]
        [1, 2]
    """
    check_whole("max_line_bytes", max_line_bytes, 1)
    return lines_from(file, max_line_bytes)


def lines_from(
    file: BinaryIO, max_line_bytes: int, before: int = 0, split: LineSplitter | None = None
) -> Iterator[FileLine | Refusal]:
    """Yield each line of the rest of a file, as `bounded_lines`.

    Args:
        file: at the start of a line.
        max_line_bytes: limit of a line.
        before: the number of lines before.
        split: asked of each line beyond 1 MiB; what it returns is yielded in place of the line, unless it is None.
    """
    number, part_bytes = before, min(_PART_BYTES, max_line_bytes + 1)
    while part := file.readline(part_bytes):
        number += 1
        is_long = split is not None and len(part) == part_bytes and not part.endswith(b"\n")
        if is_long and (items := split(number, part, file, max_line_bytes)) is not None:  # type: ignore[misc]
            yield from items
            continue
        parts, left_bytes = [part.removesuffix(b"\n")], max_line_bytes - len(part.removesuffix(b"\n"))
        while left_bytes >= 0 and not part.endswith(b"\n") and (part := file.readline(part_bytes)):
            parts.append(part.removesuffix(b"\n"))
            left_bytes -= len(parts[-1])
        line = b"".join(parts) if left_bytes >= 0 else None
        parts.clear()  # while the line is used, it is held once
        if line is not None:
            yield FileLine(number, line)
            continue
        while part and not part.endswith(b"\n"):
            part = file.readline(part_bytes)
        yield Refusal(number, too_long(max_line_bytes))


def check_strict_text(text: str) -> str:
    """Return a JSON text if it has no NUL character, and not too many values. ValueError otherwise."""
    check_json_size(text)
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise ValueError("it contains a NUL character, which a memory cannot store")
    return text


def parse_strict_json(data: bytes | str) -> object:
    """Return the value of a strict JSON text: UTF-8, no NaN, no infinity, no key twice, no NUL character.

    Raises:
        ValueError: it is something else, or has more than 4,194,304 values; the message names the fault.
        RecursionError: it is nested too deeply for the parser.

    Example:
        >>> parse_strict_json(b'{"a": [1, "x"]}')
        {'a': [1, 'x']}
    """
    return _DECODER.decode(check_strict_text(data if isinstance(data, str) else data.decode()))


def storable_text(text: str) -> tuple[str, list[int]]:
    r"""Return a JSON text with U+FFFD in place of each escaped NUL and unpaired surrogate, and the places of these.

    A memory cannot store these characters. The length of the text does not change.

    Example:
        >>> storable_text(r'["a\u0000", "\ud83d\ude00"]')
        ('["a\\ufffd", "\\ud83d\\ude00"]', [3])
    """
    places: list[int] = []
    if not _MAY_BE_REPLACED.search(text):
        return text, places

    def replaced(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[0]
        places.append(match.start())
        return "\\ufffd"

    return _ESCAPES.sub(replaced, text), places


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {repeated[:80]!r} occurs twice in one object")
    return record


class _NotFiniteError(ValueError):
    """A text has NaN or an infinity."""

    def __init__(self, name: str) -> None:
        super().__init__(not_finite_reason(name))


def not_finite_reason(name: str) -> str:
    """Return why a text with NaN or Infinity is refused."""
    return f"{name} is not JSON, and a memory cannot store it"


def _refuse_constant(name: str) -> float:
    raise _NotFiniteError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _with_nulls(text: str) -> tuple[object, tuple[str, ...]]:
    """Return the value of a JSON text with null in place of NaN and the infinities, and these."""
    names: list[str] = []
    value = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=names.append).decode(check_strict_text(text))
    return value, tuple(names)


def reason(error: Exception) -> str:
    """Return the message of an error about foreign data, as one short line.

    Example:
        >>> reason(InputError("role 'bot'", "this role is unknown", "Rename it."))
        "role 'bot': this role is unknown. Rename it."
    """
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, SeasonedError):
        text = str(error)
    elif isinstance(error, UnicodeDecodeError):
        text = f"not UTF-8: byte {error.object[error.start]:#04x} at {error.start}"
    elif isinstance(error, json.JSONDecodeError):
        text = f"not JSON: {error.msg} at character {error.pos}"
    else:
        text = f"not usable: {error}"
    return " ".join(text[:_MAX_REASON_CHARS].split())


def _never(items: list[object]) -> bool:
    del items
    return False


def documents(
    lines: Iterable[bytes | FileLine | Refusal],
    max_document_bytes: int = MAX_LINE_BYTES,
    *,
    keep: Callable[[list[object]], bool] = _never,
    nulls: bool = False,
) -> Iterator[Document | Refusal]:
    """Yield the JSON values of a file: one per line, or over several lines, one after another or in a list.

    A value that is incomplete on its first line continues over indented lines, up to a closing bracket at the margin.
    A list at the top level is split into its items, one at a time, unless `keep` is true of it; it is asked with the
    first item, or with more. Of a list, a bad item is refused, and the others are read. Blank lines are counted and
    skipped. An escaped NUL or unpaired surrogate, which a memory cannot store, is replaced by U+FFFD, and counted. At
    most `max_document_bytes` of one value are in memory.

    With `nulls`, an object with NaN or infinities is a document with null in their place, and with their names; else,
    and in a list, it is refused.

    Example:
        >>> [(found.line, found.value) for found in documents([b'{"a": 1}', b"", b"[{}, 2]"])]
        [(1, {'a': 1}), (3, {}), (3, 2)]
    """
    check_whole("max_document_bytes", max_document_bytes, 1)
    return _values(_numbered(lines), max_document_bytes, keep, nulls=nulls)


def _values(
    lines: Iterator[FileLine | Refusal], limit: int, keep: Callable[[list[object]], bool], *, nulls: bool
) -> Iterator[Document | Refusal]:
    partial: _PartialValue | None = None
    for line in lines:
        if partial is not None and (isinstance(line, Refusal) or not partial.continues_with(line.data)):
            yield from _read_in_part(partial, keep)
            partial = None
        if isinstance(line, Refusal):
            yield line
        elif partial is not None:
            partial.add(line.data)
            if partial.closed_by(line.data):
                yield from _read_in_part(partial, keep, whole=True)
                partial = None
        elif line.data.rstrip() == b"[":
            yield from _whole_if_kept(line.number, _listed(line, lines, limit), keep)
        elif line.data[:1] == b"[" and line.data.rstrip()[-1:] == b"]" and len(line.data) <= limit:
            yield from _whole_if_kept(line.number, _items(line), keep)
        elif line.data.strip():
            partial = _PartialValue(line, limit, nulls=nulls)
            if partial.is_complete or not partial.is_open:
                yield from _read_in_part(partial, keep, whole=True)
                partial = None
    if partial is not None:
        yield from _read_in_part(partial, keep)


def _read_in_part(
    partial: _PartialValue, keep: Callable[[list[object]], bool], *, whole: bool = False
) -> Iterator[Document | Refusal]:
    """Yield a value, or the items of a list; of a list that is cut off or has bad items, those that can be read."""
    value = partial.value() if whole else partial.refusal()
    text = partial.list_text() if isinstance(value, Refusal) else None
    if text is None:
        yield from _split(value, keep)
    else:
        yield from _whole_if_kept(value.line, _items(text), keep)


def _split(value: Document | Refusal, keep: Callable[[list[object]], bool]) -> Iterator[Document | Refusal]:
    if isinstance(value, Document) and isinstance(value.value, list) and not keep(value.value):
        replaced = value.replaced
        for item in value.value:
            yield Document(value.line, item, replaced)
            replaced = 0
    else:
        yield value


def _whole_if_kept(
    line: int, items: Iterator[Document | Refusal], keep: Callable[[list[object]], bool]
) -> Iterator[Document | Refusal]:
    """Yield the items of a list, or the list, if `keep` is true of its beginning. With a refused item it is refused."""
    begin: list[Document | Refusal] = []
    for item in items:
        begin.append(item)
        if len(begin) == _ASKED_ITEMS:
            break
    values = [item.value for item in begin if isinstance(item, Document)]
    if not values or not keep(values):
        yield from begin
        yield from items
        return
    whole: list[object] = []
    replaced = 0
    refused: Refusal | None = None
    for item in (*begin, *items):
        if isinstance(item, Document):
            whole.append(item.value)
            replaced += item.replaced
        else:
            refused = refused or item
    yield refused or Document(line, whole, replaced)


def _items(line: FileLine) -> Iterator[Document | Refusal]:
    """Yield the items of a list in one text, parsed one after another; a bad item is refused, and the next is read."""
    try:
        text, damaged = line.data.decode(), False
    except UnicodeDecodeError:
        text, damaged = line.data.decode(errors="surrogateescape"), True
    try:
        text, places = storable_text(check_json_size(text))
    except ValueError as fault:
        yield Refusal(line.number, reason(fault) + _not_read(text))
        return
    at = _after_blanks(text, 1)
    closed = text[at : at + 1] == "]"
    while at < len(text) and not closed:
        start, value, end = at, None, None
        error: Exception | None = None
        try:
            value, end = _DECODER.raw_decode(text, start)
            end = _after_blanks(text, end)
            if damaged and (byte := _NO_UTF8.search(text, start, end)):
                error = ValueError(f"not UTF-8: byte {ord(byte[0]) - 0xDC00:#04x}")
            else:
                yield Document(line.number, value, bisect_left(places, end) - bisect_left(places, start))
            if text[end : end + 1] not in (",", "]", ""):
                start = end
                raise json.JSONDecodeError("Expecting ',' delimiter", text, end)
        except (ValueError, RecursionError) as fault:
            error, end = fault, item_end(text, start)
        if error is not None:
            yield Refusal(line.number, reason(error) + ("" if end is not None else _not_read(text[start:])))
        if end is None:
            return
        closed = text[end : end + 1] == "]"
        at = end if closed else _after_blanks(text, end + 1)
    if not closed:
        yield Refusal(line.number, _CUT_OFF)
    elif text[at + 1 :].strip():
        yield Refusal(line.number, reason(json.JSONDecodeError("Extra data", text, at + 1)) + _not_read(text[at + 1 :]))


def _after_blanks(text: str, at: int) -> int:
    return _BLANKS.match(text, at).end()  # type: ignore[union-attr]


def item_end(text: str, start: int) -> int | None:
    """Return where an item of a list ends, at a comma or the list's bracket, without parsing it; None if unknown."""
    awaited: list[str] = []
    for token in _TOKEN.finditer(text, start):
        char = token[0]
        if token["end"] == "":  # a text without an end
            return None
        if char in _CLOSERS:
            awaited.append(_CLOSERS[char])
        elif not awaited and char in (",", "]"):
            return token.start()
        elif char in ("]", "}") and (not awaited or awaited.pop() != char):
            return None
    return None


def _not_read(text: str) -> str:
    return f"; the rest of this list was not read ({len(text.encode(errors='surrogateescape'))} bytes)"


def _listed(start: FileLine, lines: Iterator[FileLine | Refusal], limit: int) -> Iterator[Document | Refusal]:
    """Yield the items of a list whose opening bracket is a line of its own, up to the closing one at the margin."""
    item: _PartialValue | None = None
    indent: int | None = None
    for line in lines:
        if isinstance(line, Refusal):
            if item is not None:
                yield item.refusal()
            item = None
            yield line
            continue
        text = line.data.strip()
        if not text:
            continue
        own_indent = len(line.data) - len(line.data.lstrip())
        if item is None and text in (b"]", b"],") and own_indent == 0:
            return
        indent = own_indent if indent is None else indent
        begins = own_indent <= indent and text[:1] not in b"}]"
        if item is not None and begins and text[:1] in b"{[":
            yield item.refusal()
            item = None
        data = text.removesuffix(b",") if own_indent <= indent else line.data
        if item is None:
            item = _PartialValue(FileLine(line.number, data), limit)
            if item.is_complete or not item.is_open:
                yield item.value()
                item = None
        else:
            item.add(data)
            if own_indent <= indent and text[:1] in b"}]":
                yield item.value()
                item = None
    if item is not None:
        yield item.refusal()
    yield Refusal(start.number, _CUT_OFF)


def _numbered(lines: Iterable[bytes | FileLine | Refusal]) -> Iterator[FileLine | Refusal]:
    number = 0
    for item in lines:
        if isinstance(item, bytes):
            item = FileLine(number + 1, item)  # noqa: PLW2901
        if isinstance(item, FileLine):
            number = item.number
            yield FileLine(number, item.data.removeprefix(_UTF8_MARK) if number == 1 else item.data)
        elif isinstance(item, Refusal):
            number = item.line
            yield item
        else:
            raise InputError(
                f"a line of type {type(item).__name__}",
                "the lines of a foreign file are bytes",
                "Open the file with mode 'rb'.",
            )


class _PartialValue:
    """A JSON value that is read line by line."""

    def __init__(self, line: FileLine, limit: int, *, nulls: bool = False) -> None:
        self._line = line.number
        self._nulls = nulls and line.data[:1] == b"{"  # of a list, an item with NaN is refused alone
        self._parts = [line.data]
        self._size = len(line.data)
        self._limit = limit
        self._closer = b"}" if line.data[:1] == b"{" else b"]"
        self.is_open = line.data[:1] in (b"{", b"[")
        self.is_complete = False
        self._value: object = None
        self._replaced = 0
        self._not_finite: tuple[str, ...] = ()
        self._error: Exception | None = None
        self._parse()

    def _parse(self) -> None:
        if self._size > self._limit:
            self._error = ValueError(too_long(self._limit))
            self.is_open = False
            return
        try:
            text, places = storable_text(b"\n".join(self._parts).decode())
            try:
                self._value = parse_strict_json(text)
            except _NotFiniteError:
                if not self._nulls:
                    raise
                self._value, self._not_finite = _with_nulls(text)
            self._replaced = len(places)
            self.is_complete = True
        except (ValueError, RecursionError) as error:
            self._error = error
            # Only a value that ends too early can continue on the next line.
            self.is_open = self.is_open and isinstance(error, json.JSONDecodeError)

    def continues_with(self, data: bytes) -> bool:
        return not data.strip() or data[:1].isspace() or data[:1] in (b"}", b"]")

    def closed_by(self, data: bytes) -> bool:
        return data[:1] == self._closer

    def add(self, data: bytes) -> None:
        self._size += len(data) + 1
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(data)

    def value(self) -> Document | Refusal:
        if not self.is_complete:
            self._parse()
        if not self.is_complete:
            return self.refusal()
        return Document(self._line, self._value, self._replaced, self._not_finite, self._size)

    def list_text(self) -> FileLine | None:
        """Return the text, if it is a list of objects or lists, as far as it was read."""
        data = b"\n".join(self._parts)
        begins = data[:1] == b"[" and data[1:65].lstrip()[:1] in (b"{", b"[")
        return FileLine(self._line, data) if begins and self._size <= self._limit else None

    def refusal(self) -> Refusal:
        if self._size > self._limit:
            return Refusal(self._line, too_long(self._limit))
        return Refusal(self._line, reason(self._error or ValueError("cut off")))
