"""Stored steps, as a question names them: (episode id, step)."""

from __future__ import annotations

from collections.abc import Collection

from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt
from seasoned.types import check_step

__all__ = ["MAX_SHOWN", "check_places"]

MAX_SHOWN = 10_000
"""How many steps one question may name."""


def check_places(name: str, steps: object) -> frozenset[tuple[str, int]]:
    """Return stored steps as (episode id, step), each once.

    Raises:
        InputError: they are something else, or more than 10,000.

    Example:
        >>> sorted(check_places("shown_steps", [("e1", 0), ["e1", 2], ("e1", 0)]))
        [('e1', 0), ('e1', 2)]
    """
    if isinstance(steps, str | bytes) or not isinstance(steps, Collection):
        raise InputError(f"{name} = {excerpt(steps)}", "they are a collection of (episode id, step)", "Pass a list.")
    if len(steps) > MAX_SHOWN:
        raise InputError(f"{len(steps)} {name}", f"a question names at most {MAX_SHOWN}", "Show fewer.")
    found = set()
    for one in steps:
        if isinstance(one, str | bytes) or not isinstance(one, Collection) or len(one) != 2:
            raise InputError(f"{name}: {excerpt(one)}", "a step is (episode id, step)", "Pass ('e1', 0), say.")
        episode_id, step = one
        found.add((check_text("episode id", episode_id), check_step(step)))
    return frozenset(found)
