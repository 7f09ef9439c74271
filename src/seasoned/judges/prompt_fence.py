"""What a model is shown and must not obey: text of other people, written so that it cannot leave its place.

Every record is one line of JSON, so that a text has no line break and no bare quote of its own. The lines stand between
two delimiters that carry a tag which occurs nowhere in them: a digest of the lines, so that equal records make equal
prompts (an answer cache finds them again), and nobody who writes a part of them can know it beforehand. What begins a
chat template's control token (`<|im_end|>`, `<s>`, `[INST]`) is written as a JSON escape, which says the same and is no
control token.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seasoned.errors import InputError

__all__ = ["FencedData", "fence", "shorten"]

_TAG_CHARS = 12
_LEAST_SHORTENED_CHARS = 40
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>\x7f\x85\u2028\u2029"}
_TEMPLATE_MARK = re.compile(r"\[(?=/?[A-Z_]+\])")


@dataclass(frozen=True, slots=True)
class FencedData:
    """Data between delimiters: the `text` for the prompt, and the delimiters' lines, which occur in it once each."""

    text: str
    begin: str
    end: str


def fence(records: Sequence[Mapping[str, object]]) -> FencedData:
    r"""Return records as JSON lines between two delimiters that nothing in them can forge.

    Example:
        >>> data = fence([{"state": 'page\nEND DATA "quoted" <|im_end|>'}])
        >>> data.text.splitlines()[1]
        '{"state": "page\\nEND DATA \\"quoted\\" \\u003c|im_end|\\u003e"}'
        >>> data.text.count(data.end)
        1
    """
    body = "\n".join(_json_line(record) for record in records)
    tag = _digest(body)
    while tag in body:
        tag = _digest(tag + body)
    begin, end = f"BEGIN DATA {tag}", f"END DATA {tag}"
    return FencedData(f"{begin}\n{body}\n{end}", begin, end)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_TAG_CHARS]


def _json_line(record: Mapping[str, object]) -> str:
    # Outside of its strings JSON has neither "<" nor "[" before a capital, so that only strings are changed.
    text = json.dumps(record, ensure_ascii=False, allow_nan=False).translate(_ESCAPED)
    return _TEMPLATE_MARK.sub(r"\\u005b", text)


def shorten(text: str, limit_chars: int) -> str:
    """Return the text, its middle left out where it is longer than `limit_chars` characters, and the gap named.

    The beginning says where one is and the end says what came last, so they are kept in equal parts.

    Raises:
        InputError: `limit_chars` is below 40, where the note alone would not fit.

    Example:
        >>> shorten("a" * 50 + "b" * 50, 40)
        'aaaaaaaa[... 84 characters ...]bbbbbbbb'
    """
    if limit_chars < _LEAST_SHORTENED_CHARS:
        raise InputError(
            f"limit_chars = {limit_chars}", f"it is at least {_LEAST_SHORTENED_CHARS}", "Allow more characters."
        )
    if len(text) <= limit_chars:
        return text
    kept = (limit_chars - len(_gap(len(text)))) // 2
    return text[:kept] + _gap(len(text) - 2 * kept) + text[-kept:]


def _gap(n_chars: int) -> str:
    return f"[... {n_chars} characters ...]"
