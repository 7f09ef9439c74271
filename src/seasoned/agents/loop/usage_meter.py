"""Model usage of a block of code, counted also if the block raises."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from seasoned.protocols import Usage

__all__ = ["UsageMeter", "count_usage", "measure_usage"]


@dataclass
class UsageMeter:
    """The usage counted so far."""

    usage: Usage = field(default_factory=Usage)


_meter: ContextVar[UsageMeter | None] = ContextVar("usage_meter", default=None)


def count_usage(usage: Usage) -> None:
    """Add the usage of one answer to the current meter, if there is one."""
    meter = _meter.get()
    if meter is not None:
        meter.usage += usage


@contextlib.contextmanager
def measure_usage() -> Iterator[UsageMeter]:
    """Count usage until the block ends or raises.

    Example:
        >>> with measure_usage() as meter:
        ...     count_usage(Usage(calls=1))
        >>> meter.usage.calls
        1
    """
    meter = UsageMeter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)
