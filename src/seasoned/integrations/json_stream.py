"""Text of JSON that is read in parts, so that the values of a long list or object are taken from it one at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from seasoned.integrations.json_input import FileLine, Refusal, reason, too_long

__all__ = ["PART_BYTES", "Brackets", "JsonStream"]

PART_BYTES = 1024 * 1024
_BLANKS = re.compile(r"[ \t\r\n]*+")
_BYTES = "latin-1"  # a character for each byte, so that places in the text are places in the file
_DECODER = json.JSONDecoder()
_DECODED_BYTES = 2 * 1024 * 1024  # of a text of any more, brackets are counted: its values might fill the memory
_WORD_BYTES = 10  # more than `-Infinity`
_TEXT_IN_PART = re.compile(r'"(?:[^"\\]++|\\.)*+\\?', re.DOTALL)
_CLOSERS = {"[": "]", "{": "}"}
_INNER = r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")'  # a text, or what stands between texts and brackets
_WHOLE = rf"(?:{_INNER}|\[{_INNER}*+\]|\{{{_INNER}*+\}})*+"
# What stands before a bracket, or before a comma between values; group 1 is `"` at a text whose end is not there yet.
_IN_VALUE = re.compile(rf'{_WHOLE}(["\[\]{{}}]?)', re.DOTALL)
_BETWEEN = re.compile(r'(?:[^"\[\]{},]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{},]?)', re.DOTALL)


class JsonStream:
    """A text that is read in parts: what stands before `at` was used, and is dropped.

    Args:
        read: returns at most so many of the next bytes, none at the end.
        limit: of the bytes of a value.
        number: of the line at which it begins.
        text: what was read of it already.
    """

    def __init__(self, read: Callable[[int], bytes], limit: int, number: int = 1, text: bytes = b"") -> None:
        self.number = number
        self._from = read
        self._limit = limit
        self._text = text.decode(_BYTES)
        self._at = 0
        self._is_over = False
        self._error: Exception | None = None

    def next_char(self) -> str:
        """Move to the next character that is no blank, and return it; "" at the end."""
        while True:
            self._move(_BLANKS.match(self._text, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if self._is_over:
                return ""
            self._read()

    def skip(self) -> None:
        """Move behind the next character."""
        self._move(self._at + 1)

    def value(self, *, wanted: bool = True, limit: int | None = None) -> FileLine | Refusal | None:
        """Move behind the value that begins here, and return its text; None if its end cannot be found.

        A value beyond the limit is refused. One that is not `wanted` is not copied: its text is empty.
        """
        most = self._limit if limit is None else min(limit, self._limit)
        end = self._end(most)
        if end is None:
            return None
        self._error = None
        number, size = self.number, end - self._at
        text = self._text[self._at : end] if wanted and size <= most else ""
        self._move(end)
        if size > most:
            self._error = ValueError(too_long(most))
            return Refusal(number, too_long(most))
        return FileLine(number, text.encode(_BYTES))

    def fail(self, error: Exception) -> None:
        """Note why the rest of the text cannot be used, for its refusal."""
        self._error = error

    def rest(self, name: str) -> Refusal:
        """Move to the end of the text, and return the refusal of all before it, after a value without an end."""
        size = self.n_unused
        while part := self._from(PART_BYTES):
            size += len(part)
        refusal = self.refusal(name, size)
        self._text, self._at, self._is_over = "", 0, True
        return refusal

    def refusal(self, name: str, size: int) -> Refusal:
        """Return the refusal of the rest of a list or an object, of so many bytes, after a value without an end."""
        if self._error is None:
            at_end = self._is_over and not self.n_unused
            self._error = ValueError("cut off" if at_end else f"{self._text[self._at]!r} is not expected here")
        return Refusal(self.number, f"{reason(self._error)}; the rest of this {name} was not read ({size} bytes)")

    @property
    def n_unused(self) -> int:
        """Number of bytes that were read, and not used."""
        return len(self._text) - self._at

    def _read(self) -> None:
        """Read on: as much as is held of a value that is not complete, so that it is parsed a few times only."""
        part = self._from(max(PART_BYTES, self.n_unused))
        self._is_over = not part
        self._text, self._at = self._text[self._at :] + part.decode(_BYTES), 0

    def _move(self, at: int) -> None:
        self.number += self._text.count("\n", self._at, at)
        self._at = at

    def _end(self, limit: int) -> int | None:
        """Return where the value ends; None if that cannot be known, or lies beyond the limit."""
        self._error = None
        if (end := self._decoded_end(limit)) is not None:
            return end
        brackets = Brackets()
        while True:
            try:
                found = brackets.end(self._text, self._at)
            except ValueError as error:
                self._error = error
                return None
            if found is not None or self._is_over:
                return found
            if self.n_unused > limit:
                self._error = ValueError(too_long(limit))
                return None
            self._read()

    def _decoded_end(self, limit: int) -> int | None:
        """Return where the value ends, if it is short or a text, and there as a whole."""
        is_text = self._text[self._at] == '"'
        while is_text or self.n_unused <= _DECODED_BYTES:
            try:
                end = _DECODER.raw_decode(self._text, self._at)[1]
            except (ValueError, RecursionError) as error:
                self._error = error
                is_cut_off = (is_text and _TEXT_IN_PART.fullmatch(self._text, self._at)) or self.n_unused < _WORD_BYTES
            else:
                if end < len(self._text) or self._is_over:
                    return end
                is_cut_off = True
            if not is_cut_off or self._is_over or self.n_unused > limit:
                return None
            self._read()
        return None


class Brackets:
    """The open brackets of a value, whose end is found without parsing it, in a text that is read in parts."""

    def __init__(self) -> None:
        self._awaited: list[str] = []
        self._n_seen = 0

    def end(self, text: str, start: int) -> int | None:
        """Return where the value that begins at `start` ends; None if the text ends first.

        Raises:
            ValueError: its brackets do not match.
        """
        at = start + self._n_seen
        while True:
            found = _IN_VALUE.match(text, at) if self._awaited else _BETWEEN.match(text, at)
            char, at = found[1], found.start(1)  # type: ignore[index, union-attr]
            if char in ("", '"'):
                self._n_seen = at - start
                return None
            if char in _CLOSERS:
                self._awaited.append(_CLOSERS[char])
            elif not self._awaited and char != "}":
                return at
            elif not self._awaited or self._awaited.pop() != char:
                raise ValueError("its brackets do not match")
            elif not self._awaited:
                return at + 1
            at += 1
