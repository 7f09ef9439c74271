"""The Markdown code fence around, or at the beginning of, a model's answer.

A regular expression of the whole block takes quadratic time on a long run of blanks; here each character is read a
bounded number of times.
"""

from __future__ import annotations

import re

__all__ = ["fenced_text"]

_MARK = "```"
_OPENING = re.compile(r"```[\w+-]*+[ \t]*+\n")
_INLINE = re.compile(r"```[ \t]*+(?=\S)")


def fenced_text(text: str, *, whole: bool, inline: bool = False) -> str | None:
    r"""Return the content of the code fence that a text begins with; None if there is none, or it is not closed.

    Args:
        text: its first characters are the fence's backticks, with the name of a language.
        whole: the fence ends where the text does; else at the next three backticks.
        inline: accept a fence on one line too, such as the one of ` ```go north``` `.

    Example:
        >>> fenced_text("```json\n{}\n```", whole=True), fenced_text("```go north```", whole=True, inline=True)
        ('{}', 'go north')
        >>> fenced_text("```\na\n``` or ```\nb\n```", whole=False), fenced_text("```\na", whole=False)
        ('a', None)
    """
    if opening := _OPENING.match(text):
        content = _until_mark(text, opening.end(), opening.end(), whole=whole)
        return None if content is None else content.rstrip(" \t").removesuffix("\n")
    if inline and (opening := _INLINE.match(text)):
        content = _until_mark(text, opening.end(), opening.end() + 1, whole=whole)
        return None if content is None or "\n" in content else content.rstrip(" \t")
    return None


def _until_mark(text: str, begin: int, first_end: int, *, whole: bool) -> str | None:
    """Return the text from `begin` to the closing mark, which is at `first_end` or later."""
    end = (len(text) - len(_MARK) if text.endswith(_MARK) else -1) if whole else text.find(_MARK, first_end)
    return text[begin:end] if end >= first_end else None
