"""Recent actions as a line of the state: the same screen after another action is another state."""

from __future__ import annotations

import re
from collections.abc import Sequence

from seasoned.checks import check_text, check_whole
from seasoned.errors import InputError, excerpt
from seasoned.states.buckets import as_run
from seasoned.types import normalize_action

__all__ = ["split_recent", "with_recent_actions"]

_RUN = re.compile(r"recent\d*:(\S+)")


def with_recent_actions(state: str, actions: Sequence[str], n: int = 3, *, ordered: bool = False) -> str:
    r"""Return `state` with an added line of the last `n` actions, one run each: `recent:go_north`.

    Actions are normalised, so two spellings of one action are one feature; blanks become underscores.

    Args:
        state: the agent's observation.
        actions: the agent's actions so far, oldest first. If there are none, the state is returned unchanged.
        n: the largest number of actions in the line, at least 0.
        ordered: number the actions, 1 for the latest (`recent1:go_north`), so that their order matters.

    Raises:
        InputError: the state or an action is blank, `actions` is one text, or `n` is not a whole number of at least 0.

    Example:
        >>> with_recent_actions("hall", ["look", "Go  North"], n=2)
        'hall\nrecent:look recent:go_north'
        >>> with_recent_actions("hall", ["look", "go north"], n=2, ordered=True)
        'hall\nrecent2:look recent1:go_north'
    """
    check_text("state", state)
    check_whole("n", n, 0)
    if isinstance(actions, str) or not isinstance(actions, Sequence):
        raise InputError(f"actions = {excerpt(actions)}", "actions must be a list of texts, oldest first", "Pass one.")
    last = [as_run(normalize_action(check_text("action", action))) for action in actions[max(0, len(actions) - n) :]]
    if not last:
        return state
    return f"{state}\n" + " ".join(
        f"recent{len(last) - index if ordered else ''}:{action}" for index, action in enumerate(last)
    )


def split_recent(state: str) -> tuple[str, tuple[str, ...]]:
    r"""Return the state without its line of recent actions, and these actions, oldest first.

    Only a last line without any other text counts, so a page that contains `recent:` is not changed.

    Example:
        >>> split_recent("hall\nrecent:look recent:go_north")
        ('hall', ('look', 'go_north'))
    """
    body, _, last = state.rpartition("\n")
    matches = [_RUN.fullmatch(run) for run in last.split()]
    actions = tuple(match[1] for match in matches if match)
    return (body, actions) if matches and len(actions) == len(matches) else (state, ())
