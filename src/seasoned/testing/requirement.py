"""How a check speaks."""

from __future__ import annotations

from seasoned.errors import InputError

__all__ = ["name_of", "require"]


def name_of(thing: object) -> str:
    """Return what messages call it."""
    return str(getattr(thing, "__name__", type(thing).__name__))


def require(holds: bool, seen: str, rule: str, next_step: str) -> None:
    """Raise unless the promise holds.

    Raises:
        InputError: it does not.
    """
    if not holds:
        raise InputError(seen, rule, next_step)
