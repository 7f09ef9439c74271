"""JSON of many megabytes, read and written in parts: the interpreter runs no other thread while it does one of them.

`json.loads` and `json.dumps` do a whole document in one call, in which nothing else of the process goes on, an event
loop in another thread included: 25 to 75 ms for 15 MB. Here each item of the two outer levels is a call of its own.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["LARGE_CHARS", "dumps_in_parts", "loads_in_parts"]

LARGE_CHARS = 256 * 1024
"""Characters from which on a document is read in parts."""

_LEVELS = 2
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def loads_in_parts(text: str, large_chars: int = LARGE_CHARS) -> Any:
    """Return what `json.loads` returns.

    Args:
        text: the document.
        large_chars: from which length on it is read in parts.

    Raises:
        ValueError, RecursionError: as `json.loads`.

    Example:
        >>> loads_in_parts('{"messages": [1, {"role": "user"}]}', large_chars=0)
        {'messages': [1, {'role': 'user'}]}
    """
    if len(text) >= large_chars:
        try:
            value, end = _read(text, _space_end(text, 0), _LEVELS)
            if _space_end(text, end) == len(text):
                return value
        except (ValueError, IndexError):
            pass  # the whole document says where it is wrong
    return json.loads(text)


def _read(text: str, at: int, levels: int) -> tuple[Any, int]:
    """Return the value that begins at an index, and the index of its end."""
    kind = text[at]
    if not levels or kind not in "{[":
        return _DECODER.raw_decode(text, at)
    is_object, close = kind == "{", "}" if kind == "{" else "]"
    items, at = list[Any](), _space_end(text, at + 1)
    while not (text[at] == close and not items):
        key = None
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _space_end(text, at)
            if not isinstance(key, str) or text[at] != ":":
                raise ValueError("no key")
            at = _space_end(text, at + 1)
        value, at = _read(text, at, levels - 1)
        items.append((key, value) if is_object else value)
        at = _space_end(text, at)
        if text[at] == close:
            break
        if text[at] != ",":
            raise ValueError("no comma")
        at = _space_end(text, at + 1)
    return (dict(items) if is_object else items), at + 1


def _space_end(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def dumps_in_parts(value: Any, levels: int = _LEVELS) -> bytes:
    """Return a value of parsed JSON as JSON in UTF-8 without spaces.

    Raises:
        TypeError, ValueError: it cannot be written, as a lone surrogate.

    Example:
        >>> dumps_in_parts({"messages": [1, {"role": "user"}]})
        b'{"messages":[1,{"role":"user"}]}'
    """
    if levels and isinstance(value, list):
        return b"[" + b",".join(dumps_in_parts(one, levels - 1) for one in value) + b"]"
    if levels and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        items = (dumps_in_parts(key, 0) + b":" + dumps_in_parts(one, levels - 1) for key, one in value.items())
        return b"{" + b",".join(items) + b"}"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
