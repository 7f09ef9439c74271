"""Foreign text for a terminal: without escape sequences, control characters and marks that reorder it."""

from __future__ import annotations

import re

__all__ = ["EscapeFilter", "plain_text"]

_STRINGS = r"\x9d\x90\x98\x9e\x9f"
_STRING_END = r"(?:\x07|\x1b\\|\x9c)"
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,16}[@-~]"  # CSI: colours, cursor, modes
    rf"|(?:\x1b[\]PX^_]|[{_STRINGS}])[^\x07\x1b\x9c{_STRINGS}]*+{_STRING_END}"  # OSC, DCS: titles, clipboards
    r"|\x1b[ -/]{0,16}[0-OQ-WYZ\\`a-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_INTRODUCER = re.compile(rf"[\x1b\x9b{_STRINGS}]")
_MOST_WAITING = 1000  # characters of a sequence that is not complete


def plain_text(text: str) -> str:
    r"""Return the text with line breaks and tabs, and without anything else that controls a terminal.

    Example:
        >>> plain_text("\x1b]0;title\x07\x1b[31mred\x1b[0m\r\n\x07ok\u202e")
        'red\nok'
    """
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


class EscapeFilter:
    r"""Removes escape sequences from a text that comes in pieces; one that is not complete waits for the next piece.

    Example:
        >>> escapes = EscapeFilter()
        >>> escapes.add("a\x1b[3") + escapes.add("1mb") + escapes.end()
        'ab'
    """

    def __init__(self) -> None:
        self._waiting = ""

    def add(self, text: str) -> str:
        """Return what can be shown of the text so far, and was not yet."""
        text = _SEQUENCE.sub("", self._waiting + text)
        since = max(text.rfind("\x07"), text.rfind("\x9c"), len(text) - _MOST_WAITING - 2) + 1
        found = _INTRODUCER.search(text, since)
        self._waiting = text[found.start() :] if found else ""
        return _CONTROL.sub("", text[: len(text) - len(self._waiting)])

    def end(self) -> str:
        """Return the rest."""
        rest, self._waiting = self._waiting, ""
        return plain_text(rest)
