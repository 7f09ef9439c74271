"""How long to wait before the next attempt."""

from __future__ import annotations

import email.utils
import math
import random
import time

__all__ = ["backoff_s"]

_FIRST_WAIT_S = 0.5


def backoff_s(attempt: int, retry_after: str | None, ceiling_s: float) -> float:
    """Return the wait before retry `attempt` (from 0), in seconds.

    Drawn uniformly from [w/2, w], w = min(ceiling_s, 0.5 * 2^attempt); the server's `Retry-After` replaces it, under
    the same ceiling.

    Example:
        >>> backoff_s(0, "2", 20.0), backoff_s(0, "3600", 20.0)
        (2.0, 20.0)
    """
    asked_s = _retry_after_s(retry_after)
    if asked_s is not None:
        return min(asked_s, ceiling_s)
    longest_s = min(ceiling_s, _FIRST_WAIT_S * 2.0 ** min(attempt, 30))
    return longest_s * random.uniform(0.5, 1.0)  # noqa: S311


def _retry_after_s(header: str | None) -> float | None:
    """Seconds from a Retry-After header: a number, or a date; None if it is neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
