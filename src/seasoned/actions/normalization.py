"""The key of an action in a memory."""

from __future__ import annotations

import functools

__all__ = ["normalize_action"]

_KEPT = 1 << 12  # a decision asks for the key of each of its actions several times
_LEAST_KEPT_CHARS, _MOST_KEPT_CHARS = 64, 1000  # a shorter text is read as quickly as it is found


def normalize_action(text: str) -> str:
    """Return the key of an action, equal for all of its spellings: blanks are collapsed and case is folded.

    Example:
        >>> normalize_action("  Go   NORTH ")
        'go north'
    """
    return _kept(text) if _LEAST_KEPT_CHARS <= len(text) <= _MOST_KEPT_CHARS else _normalized(text)


def _normalized(text: str) -> str:
    return " ".join(text.split()).casefold()


_kept = functools.lru_cache(maxsize=_KEPT)(_normalized)
