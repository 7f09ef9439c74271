"""What is asked of a model while something is under way, known even where it does not come to its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from seasoned.protocols import Usage

__all__ = ["Counted", "count", "counting"]


@dataclass
class Counted:
    """What was counted so far."""

    usage: Usage = field(default_factory=Usage)


_counted: ContextVar[Counted | None] = ContextVar("counted", default=None)


def count(usage: Usage) -> None:
    """Add what one answer cost to what is being counted, if something is."""
    counted = _counted.get()
    if counted is not None:
        counted.usage += usage


@contextlib.contextmanager
def counting() -> Iterator[Counted]:
    """Count until the block ends, however it ends.

    Example:
        >>> with counting() as counted:
        ...     count(Usage(calls=1))
        >>> counted.usage.calls
        1
    """
    counted = Counted()
    token = _counted.set(counted)
    try:
        yield counted
    finally:
        _counted.reset(token)
