"""The parts of a reader's question: task, state, and a menu of distinct candidates."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Literal, cast, get_args

from seasoned.checks import check_one_of, check_text
from seasoned.errors import InputError, excerpt
from seasoned.protocols import template_marks
from seasoned.types import normalize_action

__all__ = ["MENUS", "Menu", "check_distinct_candidates", "check_menu", "menu_line", "with_task"]

Menu = Literal["list", "line", "none"]
"""The menu of candidates in a question: one a line, all in one line, or no menu. See `ExactReader`."""

MENUS: tuple[Menu, ...] = get_args(Menu)

_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf"(?<!\\)((?:\\\\)*)({_HIGH}{_LOW}|\\u[0-9a-fA-F]{{4}})")


def with_task(state: str, task: str | None, *, escape_marks: bool = True) -> str:
    r"""Return the state, preceded by its task if there is one, with the characters of control tokens escaped.

    Args:
        state: the state.
        task: the task in words, or None.
        escape_marks: False shows `<`, `>`, `[` and `]` as they are.

    Example:
        >>> with_task("You are in a kitchen.", "Cook.")
        'Task: Cook.\nYou are in a kitchen.'
    """
    shown = template_marks.escape_marks if escape_marks else str
    return shown(state) if not task else f"Task: {shown(task)}\n{shown(state)}"


def check_menu(menu: object) -> Menu:
    """Return the menu's name if it is one of `MENUS`.

    Raises:
        InputError: no menu has this name.

    Example:
        >>> check_menu("line")
        'line'
    """
    return cast(Menu, check_one_of("menu", menu, MENUS))


def menu_line(action: str, *, readable: bool = True, escape_marks: bool = True) -> str:
    r"""Return an action as a line of a menu: blanks collapsed, and a canonical tool call without its escapes.

    Args:
        action: the action.
        readable: False leaves the escapes of a canonical tool call.
        escape_marks: escape the characters of control tokens; False shows `<`, `>`, `[` and `]` as they are.

    The canonical text of a tool call escapes characters that a memory's key changes (`seasoned.actions.ToolAction`). A
    model reads the unescaped text, as it would write it; any JSON parser reads both as one call.

    Example:
        >>> print(menu_line(r'{"arguments":{"city":"\u0050aris"},"name":"weather"}'))
        {"arguments":{"city":"Paris"},"name":"weather"}
        >>> menu_line("go  north")
        'go north'
    """
    collapsed = " ".join(action.split())
    line = _without_escapes(collapsed) if readable else collapsed
    return template_marks.escape_marks(line) if escape_marks else line


def _without_escapes(collapsed: str) -> str:
    """Return a canonical tool call without its escapes, and any other action as it is."""
    if "\\u" not in collapsed:
        return collapsed
    try:
        call = json.loads(collapsed)
    except (ValueError, RecursionError):
        return collapsed
    if not isinstance(call, dict) or set(call) != {"arguments", "name"}:
        return collapsed
    return _ESCAPE.sub(lambda match: match[1] + _readable(match[2]), collapsed)


def _readable(escape: str) -> str:
    """Return the character of a JSON escape if it is visible and needs no escape in a JSON string."""
    text: str = json.loads(f'"{escape}"')
    return text if text.isprintable() and not text.isspace() and text not in '"\\' else escape


def check_distinct_candidates(candidates: Sequence[str]) -> list[str]:
    """Return the candidates if there is at least one, and no two are the same action.

    Raises:
        InputError: the candidates break a rule.

    Example:
        >>> check_distinct_candidates(("go north", "wait"))
        ['go north', 'wait']
    """
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Collection) or not candidates:
        raise InputError(
            f"candidates = {excerpt(candidates)}", "candidates are a list of at least one action", "Pass a list."
        )
    by_key: dict[str, str] = {}
    for name in candidates:
        key = normalize_action(check_text("candidate", name))
        if key in by_key:
            raise InputError(
                f"candidates {by_key[key]!r} and {name!r}", "candidates are different actions", "Pass each once."
            )
        by_key[key] = name
    return list(candidates)
