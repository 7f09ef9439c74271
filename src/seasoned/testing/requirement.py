"""The common parts of the conformance checks."""

from __future__ import annotations

from seasoned.errors import InputError

__all__ = ["name_of", "require"]


def name_of(value: object) -> str:
    """Return the name of an object in messages: its own, or that of its class."""
    return str(getattr(value, "__name__", type(value).__name__))


def require(holds: bool, seen: str, rule: str, next_step: str) -> None:
    """Raise unless a requirement holds.

    Raises:
        InputError: it does not hold.
    """
    if not holds:
        raise InputError(seen, rule, next_step)
