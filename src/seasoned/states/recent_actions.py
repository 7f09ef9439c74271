"""Recent actions, written into the state: the same screen means something else after another action."""

from __future__ import annotations

import re
from collections.abc import Sequence

from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt
from seasoned.states.buckets import as_run
from seasoned.types import normalize_action

__all__ = ["check_count", "split_recent", "with_recent_actions"]

_RUN = re.compile(r"recent\d*:(\S+)")


def with_recent_actions(state: str, actions: Sequence[str], n: int = 3, *, ordered: bool = False) -> str:
    r"""Return `state` with a last line that names the last `n` actions, one run each: `recent:go_north`.

    Actions are normalised, so two spellings of one action are one feature; blanks become underscores.

    Args:
        state: what the agent sees.
        actions: what it did so far, oldest first. None yet: the state is returned as it is.
        n: how many of the last to name, at least 0.
        ordered: number them, 1 for the latest (`recent1:go_north`), so that their order makes a difference.

    Raises:
        InputError: the state or an action is blank, `actions` is one text, or `n` is not an integer of at least 0.

    Example:
        >>> with_recent_actions("hall", ["look", "Go  North"], n=2)
        'hall\nrecent:look recent:go_north'
        >>> with_recent_actions("hall", ["look", "go north"], n=2, ordered=True)
        'hall\nrecent2:look recent1:go_north'
    """
    check_text("state", state)
    check_count("n", n)
    if isinstance(actions, str) or not isinstance(actions, Sequence):
        raise InputError(f"actions = {excerpt(actions)}", "actions are a list of texts, oldest first", "Pass a list.")
    last = [as_run(normalize_action(check_text("action", action))) for action in actions[max(0, len(actions) - n) :]]
    if not last:
        return state
    return f"{state}\n" + " ".join(
        f"recent{len(last) - index if ordered else ''}:{action}" for index, action in enumerate(last)
    )


def split_recent(state: str) -> tuple[str, tuple[str, ...]]:
    r"""Return the state without its line of recent actions, and those actions, oldest first.

    Only a last line that holds nothing else counts: a page that happens to say `recent:` names no action.

    Example:
        >>> split_recent("hall\nrecent:look recent:go_north")
        ('hall', ('look', 'go_north'))
    """
    body, _, last = state.rpartition("\n")
    matches = [_RUN.fullmatch(run) for run in last.split()]
    actions = tuple(match[1] for match in matches if match)
    return (body, actions) if matches and len(actions) == len(matches) else (state, ())


def check_count(name: str, value: object, least: int = 0) -> int:
    """Return `value` if it is an integer of at least `least`; InputError if not."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} = {excerpt(value)}", f"{name} is an integer of at least {least}", "Try 3.")
    return value
