"""What every reader asks with: the state, the task, and candidates that are different actions."""

from __future__ import annotations

from collections.abc import Sequence

from seasoned.errors import InputError, excerpt
from seasoned.types import check_text, normalize_action

__all__ = ["check_candidates", "with_task"]


def with_task(state: str, task: str | None) -> str:
    r"""Return the state after its task, where there is one.

    Example:
        >>> with_task("You are in a kitchen.", "Cook.")
        'Task: Cook.\nYou are in a kitchen.'
    """
    return state if not task else f"Task: {task}\n{state}"


def check_candidates(candidates: Sequence[str]) -> list[str]:
    """Return the candidates, if there is one at least and no two are the same action.

    Raises:
        InputError: they break a rule.

    Example:
        >>> check_candidates(("go north", "wait"))
        ['go north', 'wait']
    """
    if isinstance(candidates, str) or not candidates:
        raise InputError(
            f"candidates = {excerpt(candidates)}", "they are a list of at least one action", "Pass a list."
        )
    seen: dict[str, str] = {}
    for name in candidates:
        key = normalize_action(check_text("candidate", name))
        if key in seen:
            raise InputError(
                f"candidates {seen[key]!r} and {name!r}", "candidates are different actions", "Pass each once."
            )
        seen[key] = name
    return list(candidates)
