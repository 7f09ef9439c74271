"""What every reader asks with: the state, the task, and candidates that are different actions."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Literal, get_args

from seasoned.checks import check_text, suggest
from seasoned.errors import InputError, excerpt
from seasoned.types import normalize_action

__all__ = ["MENUS", "Menu", "check_distinct_candidates", "check_menu", "menu_line", "with_task"]

Menu = Literal["list", "line", "none"]
"""How a question shows the candidates: one a line, all in one line, or not at all. See `ExactReader`."""

MENUS: tuple[Menu, ...] = get_args(Menu)

_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf"(?<!\\)((?:\\\\)*)({_HIGH}{_LOW}|\\u[0-9a-fA-F]{{4}})")


def with_task(state: str, task: str | None) -> str:
    r"""Return the state after its task, where there is one.

    Example:
        >>> with_task("You are in a kitchen.", "Cook.")
        'Task: Cook.\nYou are in a kitchen.'
    """
    return state if not task else f"Task: {task}\n{state}"


def check_menu(menu: object) -> Menu:
    """Return the menu, if there is one of this name.

    Raises:
        InputError: there is none.

    Example:
        >>> check_menu("line")
        'line'
    """
    if menu not in MENUS:
        raise InputError(f"menu = {excerpt(menu)}", f"a menu is {', '.join(MENUS)}", suggest(str(menu), MENUS))
    return menu


def menu_line(action: str) -> str:
    r"""Return an action as a menu shows it: blanks collapsed, and a canonical tool call without its escapes.

    The canonical text of a tool call escapes what a memory's key would fold (`seasoned.actions.ToolAction`); a model is
    shown what it would write itself. Any JSON parser reads both as the same call.

    Example:
        >>> print(menu_line(r'{"arguments":{"city":"\u0050aris"},"name":"weather"}'))
        {"arguments":{"city":"Paris"},"name":"weather"}
        >>> menu_line("go  north")
        'go north'
    """
    collapsed = " ".join(action.split())
    if "\\u" not in collapsed:
        return collapsed
    try:
        call = json.loads(collapsed)
    except (ValueError, RecursionError):
        return collapsed
    if not isinstance(call, dict) or set(call) != {"arguments", "name"}:
        return collapsed
    return _ESCAPE.sub(lambda found: found[1] + _readable(found[2]), collapsed)


def _readable(escape: str) -> str:
    """The character for its JSON escape, where it can be seen, and means itself in a JSON string."""
    text: str = json.loads(f'"{escape}"')
    return text if text.isprintable() and not text.isspace() and text not in '"\\' else escape


def check_distinct_candidates(candidates: Sequence[str]) -> list[str]:
    """Return the candidates, if there is one at least and no two are the same action.

    Raises:
        InputError: they break a rule.

    Example:
        >>> check_distinct_candidates(("go north", "wait"))
        ['go north', 'wait']
    """
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Collection) or not candidates:
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
