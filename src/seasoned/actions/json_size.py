"""Number of the values of a JSON text, before it is parsed: a value of three characters takes fifty bytes and more."""

from __future__ import annotations

import re

__all__ = ["MOST_CALL_VALUES", "has_more_values"]

MOST_CALL_VALUES = 200_000
"""Values of the arguments of a tool call, and of an event or a body of a model's answer."""

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STRING_BYTES = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


def has_more_values(text: str | bytes, most: int) -> bool:
    """Return whether a JSON text has more than so many values; separators inside of its strings do not count.

    Example:
        >>> has_more_values('{"a": [1, 2]}', 4), has_more_values(b'{"a": "[,[,[,[,[,"}', 4)
        (False, False)
        >>> has_more_values("[" * 5, 4)
        True
    """
    if len(text) <= most or _n_separators(text) <= most:
        return False
    most_strings = 2 * most + 1  # each is a value or a key: with more of them the rest need not be read
    without: str | bytes
    if isinstance(text, str):
        without, n_strings = _STRING.subn("", text, most_strings + 1)
    else:
        without, n_strings = _STRING_BYTES.subn(b"", text, most_strings + 1)
    return n_strings > most_strings or _n_separators(without) > most


def _n_separators(text: str | bytes) -> int:
    if isinstance(text, str):
        return sum(map(text.count, "[{,"))
    return sum(map(text.count, (b"[", b"{", b",")))
