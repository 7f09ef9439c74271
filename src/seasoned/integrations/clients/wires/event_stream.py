"""Server-sent events, read from the bytes of a stream that may be cut anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from seasoned.actions.json_size import MOST_CALL_VALUES, has_more_values

__all__ = ["json_events"]

_DATA = "data:"
_LINE_END = re.compile(r"\r\n|\r|\n")  # and no other: U+2028 and U+0085 may be in a JSON string


def json_events(content: bytes) -> Iterator[dict[str, Any]]:
    r"""Yield the JSON objects of a stream's `data:` fields, in order; a line that is cut or no object is passed over.

    So is one of more than 200,000 values. The providers whose streams are read write each object on one line. A byte
    order mark at the begin is none of it.

    Example:
        >>> list(json_events(b'\xef\xbb\xbfdata: {"n": 0}\r\n\r\n'))
        [{'n': 0}]
        >>> list(json_events(b'event: ping\ndata: {"n": 1}\n\ndata: [DONE]\n\ndata: {"n": '))
        [{'n': 1}]
    """
    for line in _LINE_END.split(content.decode("utf-8-sig", "replace")):
        if line.startswith(_DATA) and not has_more_values(line, MOST_CALL_VALUES):
            try:
                value = json.loads(line.removeprefix(_DATA))
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value
