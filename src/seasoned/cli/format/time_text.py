"""Times and spans as a person writes and reads them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from seasoned.errors import InputError, excerpt

__all__ = ["age_s", "shown_span", "shown_time", "time_s"]

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def age_s(text: str) -> float:
    """Return a time span in seconds; a plain number is days.

    Raises:
        InputError: it is not a number with a unit, or none.

    Example:
        >>> age_s("12h"), age_s("30")
        (43200.0, 2592000.0)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhdw]?)", text.strip(), re.ASCII)
    if not found:
        raise InputError(f"--age {excerpt(text)}", "an age must be days, or 12h, 30d, 2w", "Write a number and a unit.")
    return float(found[1]) * _SECONDS[found[2] or "d"]


def time_s(option: str, text: str) -> float:
    """Return a time in seconds since 1970, given like this or as ISO 8601; local time where it names no zone.

    Raises:
        InputError: it is neither; the message names the option.

    Example:
        >>> time_s("--since", "2026-01-31T12:00Z"), time_s("--since", "0.5")
        (1769860800.0, 0.5)
    """
    try:
        at = float(text)
    except ValueError:
        try:
            at = datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError, OSError):
            at = math.nan
    if not math.isfinite(at):
        raise InputError(
            f"{option} {excerpt(text)}",
            "a time must be ISO 8601 or seconds since 1970",
            "Write it like 2026-01-31T12:00 (local time), 2026-01-31T12:00+01:00 or 1769860800.",
        )
    return at


def shown_time(at: float) -> str:
    """Return a time as ISO 8601 in UTC, to the second.

    Example:
        >>> shown_time(1769860800.0)
        '2026-01-31 12:00:00Z'
    """
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # a time of no calendar
        return str(at)


def shown_span(seconds: float) -> str:
    """Return a time span as a person reads it: its two largest units.

    Example:
        >>> shown_span(4.4), shown_span(75), shown_span(7265)
        ('4 s', '1 min 15 s', '2 h 1 min')
    """
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left} min"
    return f"{minutes} min {rest_s} s" if minutes else f"{rest_s} s"
