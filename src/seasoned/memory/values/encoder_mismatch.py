"""Two encoders' identities, as a message shows them: an identity of patterns is thousands of characters long."""

from __future__ import annotations

import itertools

from seasoned.errors import excerpt

__all__ = ["told_apart"]

_BEFORE_CHARS = 24


def told_apart(one: str, other: str) -> tuple[str, str]:
    """Return both from shortly before where they part, cut to what a message holds.

    Example:
        >>> told_apart("tokens/v1", "tokens/v2")
        ("'tokens/v1'", "'tokens/v2'")
        >>> told_apart("x" * 5000 + "a" + "z" * 5000, "x" * 5000 + "b")[1]
        "'...xxxxxxxxxxxxxxxxxxxxxxxxb'"
    """
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    start = max(0, sum(1 for _ in alike) - _BEFORE_CHARS)
    first, second = (excerpt(f"...{text[start:]}" if start else text) for text in (one, other))
    return first, second
