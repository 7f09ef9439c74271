"""Excerpts of two encoder identities for a message; an identity may be thousands of characters long."""

from __future__ import annotations

import itertools

from seasoned.errors import excerpt

__all__ = ["excerpts_at_difference"]

_BEFORE_CHARS = 24


def excerpts_at_difference(one: str, other: str) -> tuple[str, str]:
    """Return an excerpt of each, from shortly before their first difference.

    Example:
        >>> excerpts_at_difference("tokens/v1", "tokens/v2")
        ("'tokens/v1'", "'tokens/v2'")
        >>> excerpts_at_difference("x" * 5000 + "a" + "z" * 5000, "x" * 5000 + "b")[1]
        "'...xxxxxxxxxxxxxxxxxxxxxxxxb'"
    """
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    start = max(0, sum(1 for _ in alike) - _BEFORE_CHARS)
    first, second = (excerpt(f"...{text[start:]}" if start else text) for text in (one, other))
    return first, second
