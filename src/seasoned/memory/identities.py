"""Two encoders' identities, as a message shows them: an identity of patterns is thousands of characters long."""

from __future__ import annotations

import os

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
    start = max(0, len(os.path.commonprefix([one, other])) - _BEFORE_CHARS)
    first, second = (excerpt(f"...{text[start:]}" if start else text) for text in (one, other))
    return first, second
