"""When two texts are one action."""

from __future__ import annotations

from collections.abc import Callable

from seasoned.actions.call_syntax import canonical_call
from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt
from seasoned.types import normalize_action

__all__ = ["equivalent"]


def equivalent(first: str, second: str, canonical: Callable[[str], str] = canonical_call) -> bool:
    """Return whether a memory counts the two as one action: their canonical forms have the same key.

    `normalize_action(canonical(first)) == normalize_action(canonical(second))`. The key folds case, so calls that
    differ only in the case of a literal are one action, and tool calls that do are two (see `ToolAction`).

    Args:
        first, second: actions as they were written.
        canonical: `canonical_call`, `canonical_tool_call`, a `Page`'s `describe`, or your own.

    Raises:
        InputError: `canonical` is no function, or returns no text.
        SeasonedError: what `canonical` raises.

    Example:
        >>> equivalent("Search( 'red shoes', size=42, page=1 )", "search('red shoes', page=1, size=42)")
        True
    """
    if not callable(canonical):
        raise InputError(f"canonical = {excerpt(canonical)}", "it is a function of a text", "Try canonical_call.")
    one, other = (check_text("canonical text", canonical(action)) for action in (first, second))
    return normalize_action(one) == normalize_action(other)
