"""JSON escapes of the characters that a memory's key of an action would change."""

from __future__ import annotations

import re

__all__ = ["escape_folded", "escaped", "unescape_folded"]

_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*+)((?:\\u[0-9a-f]{4})++)")
_UNIT = re.compile(r"\\u([0-9a-f]{4})")


def escape_folded(text: str) -> str:
    r"""Return a text with each character that a memory's key would change as its JSON escape.

    These are characters with another case, blanks other than a single space, and lone surrogates.

    Example:
        >>> print(escape_folded('"Rio  de"'))
        "\u0052io \u0020de"
    """
    return re.sub("(?<= ) ", r"\\u0020", escaped(text, {char for char in set(text) if _is_folded(char)}))


def unescape_folded(text: str) -> str:
    r"""Return a text with the characters in place of the escapes that `escape_folded` writes; other escapes stay.

    Example:
        >>> print(unescape_folded(r'"\u0052io \u0020de\u0000"'))
        "Rio  de\u0000"
    """
    return _ESCAPE.sub(_characters, text) if "\\u" in text else text


def escaped(text: str, chars: set[str]) -> str:
    """Return a text with the JSON escapes of these characters."""
    return text.translate({ord(char): _escape(char) for char in chars}) if chars else text


def _is_folded(char: str) -> bool:
    return char.casefold() != char or (char.isspace() and char != " ") or "\ud800" <= char <= "\udfff"


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _characters(match: re.Match[str]) -> str:
    units = b"".join(bytes.fromhex(unit) for unit in _UNIT.findall(match[2]))
    chars = units.decode("utf-16-be", "surrogatepass")
    return match[1] + "".join(char if _is_written(char) else _escape(char) for char in chars)


def _is_written(char: str) -> bool:
    """Return whether a text can have the character, and `escape_folded` escapes it."""
    return char == " " or (_is_folded(char) and not "\ud800" <= char <= "\udfff")
