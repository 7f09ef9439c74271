"""Foreign files, read with suspicion: bounded lines, strict JSON, and a reason for whatever is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from seasoned.errors import InputError, SeasonedError
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
    "parse_strict_json",
    "reason",
]

MAX_LINE_BYTES = 256 * 1024 * 1024
_DISCARD_BYTES = 1024 * 1024
_MAX_REASON_CHARS = 300
_UTF8_MARK = b"\xef\xbb\xbf"
# An escaped NUL, where the backslash is not itself escaped.
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*+\\u0000")


class FileLine(NamedTuple):
    """A line as it stands in the file, with its number from 1."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was not taken, and why. `line` is where it begins, from 1.

    Example:
        >>> str(Refusal(3, "not JSON"))
        'line 3: not JSON'
    """

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ReadEpisode:
    """An episode that was read.

    Args:
        episode: what was experienced.
        line: where it begins, from 1.
        created_at: when it ended, in Unix seconds, where the source says so.
        rewarded: whether the source gave a reward. Where it did not, every reward is 0.
    """

    episode: Episode
    line: int
    created_at: float | None
    rewarded: bool


ReadResult = ReadEpisode | Refusal
"""What came of one document or conversation of a foreign file."""


class Document(NamedTuple):
    """One JSON value, and the line where it begins."""

    line: int
    value: object


def bounded_lines(file: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[FileLine | Refusal]:
    r"""Yield each line of a file with its number; a longer one is refused, and never held whole.

    Raises:
        InputError: the limit is not a positive integer.

    Example:
        >>> import io
        >>> [line.number for line in bounded_lines(io.BytesIO(b"one\ntwo\n"), max_line_bytes=3)]
        [1, 2]
    """
    _check_limit("max_line_bytes", max_line_bytes)
    return _lines(file, max_line_bytes)


def _lines(file: BinaryIO, max_line_bytes: int) -> Iterator[FileLine | Refusal]:
    number = 0
    while data := file.readline(max_line_bytes + 1):
        number += 1
        whole = data.removesuffix(b"\n")
        if len(whole) <= max_line_bytes:
            yield FileLine(number, whole)
            continue
        del data, whole
        while (rest := file.readline(_DISCARD_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield Refusal(number, f"longer than {max_line_bytes} bytes")


def _check_limit(name: str, limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InputError(f"{name} = {limit!r}", "a limit is a positive number of bytes", "Leave it at its default.")


def parse_strict_json(data: bytes | str) -> object:
    """Return the value of a strict JSON text: UTF-8, no NaN, no infinity, no key twice, no NUL character.

    Raises:
        ValueError: it is something else; the message says what.
        RecursionError: it is nested too deeply for the parser, which guards its own stack.

    Example:
        >>> parse_strict_json(b'{"a": [1, "x"]}')
        {'a': [1, 'x']}
    """
    text = data if isinstance(data, str) else data.decode()
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise ValueError("it holds a NUL character, which no text of a memory may")
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:80]!r} is there twice in one object")
    return record


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON, and no number that a memory can hold")


def reason(error: Exception) -> str:
    """Return what an error says about foreign data, on one short line.

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


def documents(
    lines: Iterable[bytes | FileLine | Refusal], max_document_bytes: int = MAX_LINE_BYTES
) -> Iterator[Document | Refusal]:
    """Yield the JSON values of a file: one a line, or printed over several lines, one after another or in a list.

    A value that is not whole on its first line goes on over indented lines, up to a closing bracket at the margin.
    A list at the top is taken apart into its items. Blank lines count, and are passed over. At most
    `max_document_bytes` are held of one value.

    Example:
        >>> list(documents([b'{"a": 1}', b"", b"[{}, 2]"]))
        [Document(line=1, value={'a': 1}), Document(line=3, value={}), Document(line=3, value=2)]
    """
    _check_limit("max_document_bytes", max_document_bytes)
    return _values(lines, max_document_bytes)


def _values(lines: Iterable[bytes | FileLine | Refusal], max_document_bytes: int) -> Iterator[Document | Refusal]:
    held: _Held | None = None
    for line in _numbered(lines):
        if held is not None and (isinstance(line, Refusal) or not held.goes_on(line.data)):
            yield held.refusal()
            held = None
        if isinstance(line, Refusal):
            yield line
        elif held is not None:
            held.add(line.data)
            if held.closed_by(line.data):
                yield from held.values()
                held = None
        elif line.data.strip():
            held = _Held(line, max_document_bytes)
            if held.whole or not held.open:
                yield from held.values()
                held = None
    if held is not None:
        yield held.refusal()


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


class _Held:
    """A value that began on some line, up to where it ends."""

    def __init__(self, line: FileLine, limit: int) -> None:
        self._line = line.number
        self._parts = [line.data]
        self._size = len(line.data)
        self._limit = limit
        first = line.data.strip()
        # A list with its items at the margin has its opening bracket on a line of its own.
        self._listing = first == b"["
        self._closer = b"}" if line.data[:1] == b"{" else b"]"
        self.open = line.data[:1] in (b"{", b"[")
        self.whole = False
        self._value: object = None
        self._error: Exception | None = None
        self._parse()

    def _parse(self) -> None:
        if self._size > self._limit:
            self._error = ValueError(f"longer than {self._limit} bytes")
            self.open = False
            return
        try:
            self._value = parse_strict_json(b"\n".join(self._parts))
            self.whole = True
        except (ValueError, RecursionError) as error:
            self._error = error
            # Only what ends too early may go on.
            self.open = self.open and isinstance(error, json.JSONDecodeError)

    def goes_on(self, data: bytes) -> bool:
        return self._listing or not data.strip() or data[:1].isspace() or data[:1] in (b"}", b"]")

    def closed_by(self, data: bytes) -> bool:
        return data[:1] == self._closer

    def add(self, data: bytes) -> None:
        self._size += len(data) + 1
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(data)

    def values(self) -> Iterator[Document | Refusal]:
        if not self.whole:
            self._parse()
        if not self.whole:
            yield self.refusal()
        elif isinstance(self._value, list):
            for value in self._value:
                yield Document(self._line, value)
        else:
            yield Document(self._line, self._value)

    def refusal(self) -> Refusal:
        if self._size > self._limit:
            return Refusal(self._line, f"longer than {self._limit} bytes")
        return Refusal(self._line, reason(self._error or ValueError("cut off")))
