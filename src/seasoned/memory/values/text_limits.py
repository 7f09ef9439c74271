"""How large a text may be."""

from __future__ import annotations

import numpy as np

from seasoned.errors import InputError, excerpt
from seasoned.types import Episode

__all__ = ["check_max_text_bytes", "check_size", "check_sizes"]


def check_size(name: str, text: str, max_bytes: int) -> None:
    """Refuse a text that is too large for a memory.

    Raises:
        InputError: it has more than `max_bytes` bytes as UTF-8.
    """
    n_bytes = len(text) if text.isascii() else len(text.encode())
    if n_bytes > max_bytes:
        raise InputError(
            f"a {name} of {n_bytes} bytes",
            f"a {name} has at most {max_bytes} bytes",
            "Keep what tells states apart, or open the memory with a larger max_text_bytes.",
        )


def check_max_text_bytes(n_bytes: object) -> int:
    """Return a size limit as an int.

    Raises:
        InputError: it is not a whole number from 1.
    """
    if isinstance(n_bytes, bool) or not isinstance(n_bytes, int | np.integer) or n_bytes < 1:
        raise InputError(
            f"max_text_bytes = {excerpt(n_bytes)}",
            "a size limit is a whole number of bytes, at least 1",
            "2**20 is usual.",
        )
    return int(n_bytes)


def check_sizes(episode: Episode, max_bytes: int) -> None:
    """Refuse an episode with a text that is too large for a memory.

    Raises:
        InputError: a text has more than `max_bytes` bytes as UTF-8.
    """
    surely_small = max_bytes // 4  # UTF-8 takes at most four bytes for a character
    for step in episode.steps:
        if len(step.state) > surely_small:
            check_size("state", step.state, max_bytes)
        for action in (step.action, *(step.prior or ())):
            if len(action) > surely_small:
                check_size("action", action, max_bytes)
    for name in ("task", "final_state", "id", "model", "policy", "arm", "subject"):
        check_size(name, getattr(episode, name) or "", max_bytes)
