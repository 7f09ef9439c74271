"""Size limits of texts, in bytes of UTF-8."""

from __future__ import annotations

from seasoned.checks import check_whole
from seasoned.errors import InputError
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
            "Shorten it, or open the memory with a larger max_text_bytes.",
        )


def check_max_text_bytes(n_bytes: object) -> int:
    """Return a size limit as an int.

    Raises:
        InputError: it is not a whole number from 1.
    """
    return check_whole("max_text_bytes", n_bytes, at_least=1, next_step="2**20 is usual.")


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
