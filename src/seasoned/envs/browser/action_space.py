"""The agent's view of a page: a state in words, and named actions with their browser calls."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from seasoned.actions import Page, parse_call
from seasoned.envs.browser.page import TEXT_ROLES, PageItem, clean_text
from seasoned.errors import EnvError, InputError, NotFoundError, excerpt
from seasoned.types import normalize_action

__all__ = ["BrowserCall", "PageView", "goal_texts"]

_QUOTED = re.compile(r'"([^"]+)"|“([^“”]+)”|(?<!\w)\'([^\']+)\'(?!\w)')
_SIGNS = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++|https?://\S+|\$?\d[\d/.,:-]*\d|\d")
_DATE = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_WORD = re.compile(r"[^\W_][\w'-]*")
_NAMES = re.compile(r"[^\W\d_a-z][\w'-]*(?:,? [^\W\d_a-z][\w'-]*)*")
_PLAIN_WORDS = (
    "a all an and any as at book box button by click copy corresponds done each enter field find for form from "
    "in into is it its of on or press select submit text textbox that the then this to type using value when "
    "with your"
)
_PLAIN = frozenset(_PLAIN_WORDS.split())
_KEYS = {"slider": ("ArrowLeft", "ArrowRight"), "spinbutton": ("ArrowDown", "ArrowUp")}
_FREE = {"fill": 2, "press": 2, "select_option": 2, "send_msg_to_user": 1, "report_infeasible": 1, "goto": 1}
_MAX_TEXTS = 12


class BrowserCall(NamedTuple):
    """A call of BrowserGym's action set, with plain arguments: `BrowserCall("fill", ("b12", "tea"))`."""

    name: str
    args: tuple[str | int | list[str], ...]


def goal_texts(goal: str, page_texts: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the texts that a goal suggests to write into a field, the likeliest first, at most 12.

    Quoted texts come first, then numbers, dates and addresses. For a goal without quotes, names follow (runs of
    capitalised words); if it has no numbers either, the page's short texts come before the names, since such goals ask
    to copy a text. The goal's other words are used only if it has neither numbers nor names.

    Example:
        >>> goal_texts('Enter the username "juan" and the password "Jc" into the text fields.')
        ('juan', 'Jc')
        >>> goal_texts("Book a flight from: Thorne Bay, AK to: Palm Springs, CA on 10/03/2016.")
        ('10/03/2016', 'Thorne Bay, AK', 'Palm Springs, CA')
    """
    texts = [next(filter(None, groups)) for groups in _QUOTED.findall(goal)]
    rest = _QUOTED.sub("|", goal)
    signs = _SIGNS.findall(rest)
    if texts:
        texts += signs
    else:
        content_words = _WORD.sub(lambda word: "|" if word[0].casefold() in _PLAIN else word[0], rest)
        names = _NAMES.findall(content_words)
        texts = [*signs, *([] if signs else page_texts), *names]
        texts += [] if signs or names else _WORD.findall(content_words)
    distinct = {normalize_action(text): text for text in reversed(texts) if text.strip()}
    return tuple(reversed(distinct.values()))[:_MAX_TEXTS]


class PageView:
    """The state and the actions of a page.

    Args:
        items: the items of the page, see `read_page`.
        goal: the task's goal in words; may be empty.
        max_actions: the largest number of actions.
        ends: whether to include actions that end the task by a message; tasks on whole sites need them.

    Attributes:
        actions: the browser call of each action.

    Example:
        >>> view = PageView([PageItem("textbox", "Name", "7"), PageItem("button", "OK", "9")], 'Enter "Bo".')
        >>> list(view.actions)
        ['click(button "OK")', 'fill(textbox "Name", "Bo")', 'click(textbox "Name")']
        >>> view.actions['fill(textbox "Name", "Bo")']
        BrowserCall(name='fill', args=('7', 'Bo'))
        >>> print(view.state())
        goal: Enter "Bo".
        textbox "Name"
        button "OK"
    """

    def __init__(self, items: Sequence[PageItem], goal: str = "", *, max_actions: int = 40, ends: bool = False) -> None:
        self._items = items
        self._goal = clean_text(goal, 2000)
        self._active = [item for item in items if item.bid]
        self._page = Page({item.bid: (item.role, item.name) for item in self._active})
        self.actions = self._candidate_actions(max_actions, ends)

    def state(self, max_chars: int = 2000) -> str:
        """Return the page in words: the goal unless a text contains it, then a line for each text and element.

        Texts are quoted, so that no text can pass for an element; ids never appear. If the lines exceed `max_chars`,
        elements outside the window are left out first, then the last lines.
        """
        goal = [f"goal: {self._goal}"] if self._goal and not self._contains_goal() else []
        lines = self._fitting(self._items, max_chars)
        if len(lines) < len(self._items):
            lines = self._fitting([item for item in self._items if item.visible], max_chars)
            lines.append(f"... {len(self._items) - len(lines)} more")
        return "\n".join([*goal, *lines]) or "an empty page"

    def free_call(self, action: str) -> BrowserCall:
        """Return the call of a free action, such as writing any text, on an element of this page.

        Raises:
            EnvError: the page does not allow the action.

        Example:
            >>> PageView([PageItem("textbox", "Name", "7")]).free_call('fill(textbox "Name", "any text")')
            BrowserCall(name='fill', args=('7', 'any text'))
        """
        try:
            call = parse_call(self._page.resolve(action))
        except (InputError, NotFoundError) as error:
            raise EnvError(error.seen, error.rule, error.next_step) from error
        known = {**_FREE, "click": 1, "clear": 1, "dblclick": 1, "hover": 1, "focus": 1, "go_back": 0, "go_forward": 0}
        if call is None or call.name not in known or len(call.args) != known[call.name] or call.keywords:
            raise EnvError(
                f"action {excerpt(action)}",
                f"a free action is one of {', '.join(sorted(known))}",
                'Write fill(textbox "Name", "any text"), say.',
            )
        return BrowserCall(call.name, tuple(_literal(action, arg) for arg in call.args))

    def _candidate_actions(self, max_actions: int, ends: bool) -> dict[str, BrowserCall]:
        """Return the calls by action: clicks and choices, then texts, then keys; elements in the window come first."""
        ranked = sorted(self._active, key=lambda item: not item.visible)[: 4 * max_actions]
        fields = [item for item in ranked if _is_field(item)]
        texts = goal_texts(self._goal, self._short_texts())
        clicks = [pair for item in ranked for pair in self._clicks(item)]
        keys = [pair for item in ranked for pair in self._keys(item)]
        fills = [pair for text in texts for item in fields for pair in self._fill(item, text)]
        endings = list(_endings()) if ends else []
        selected = [*clicks, *fills, *keys]
        room = max_actions - len(endings)
        if len(selected) > room:  # each kind gets a share; scrolling shows other elements
            endings = [
                ("scroll(0, 300)", BrowserCall("scroll", (0, 300))),
                ("scroll(0, -300)", BrowserCall("scroll", (0, -300))),
                *endings,
            ]
            room -= 2
            least = room // 4
            few = fills[: max(least, room - len(clicks) - min(least, len(keys)))]
            some = keys[: max(least, room - len(clicks) - len(few))]
            selected = [*clicks[: room - len(few) - len(some)], *few, *some]
        actions: dict[str, BrowserCall] = {}
        known: set[str] = set()
        for text, call in [*selected, *endings]:
            if (key := normalize_action(text)) not in known:
                known.add(key)
                actions[text] = call
        return actions or {"wait()": BrowserCall("noop", (1000,))}

    def _clicks(self, item: PageItem) -> Iterator[tuple[str, BrowserCall]]:
        name = self._described(item)
        if item.options:
            for label in item.options:
                if label.strip() and label != item.value:
                    yield f"select_option({name}, {_quoted(label)})", BrowserCall("select_option", (item.bid, label))
        elif item.role == "option" and "multiple" in item.marks:
            yield f'click({name}, "left", ["Control"])', BrowserCall("click", (item.bid, "left", ["Control"]))
        elif "readonly" in item.marks or (item.role not in TEXT_ROLES and not _is_handle(item)):
            yield f"click({name})", BrowserCall("click", (item.bid,))

    def _fill(self, item: PageItem, text: str) -> Iterator[tuple[str, BrowserCall]]:
        if item.role == "Date":
            date = _DATE.fullmatch(text)
            text = "" if date is None else f"{date[3]}-{int(date[1]):02}-{int(date[2]):02}"
        if text and text != item.value:
            yield f"fill({self._described(item)}, {_quoted(text)})", BrowserCall("fill", (item.bid, text))

    def _keys(self, item: PageItem) -> Iterator[tuple[str, BrowserCall]]:
        pressed: tuple[str, ...] = _KEYS["slider"] if _is_handle(item) else _KEYS.get(item.role, ())
        if _is_field(item) and item.role != "spinbutton":
            pressed = ("Enter",) if item.value else ()
        for key in pressed:
            yield f'press({self._described(item)}, "{key}")', BrowserCall("press", (item.bid, key))
        if _is_field(item) and not item.value:
            yield f"click({self._described(item)})", BrowserCall("click", (item.bid,))

    def _described(self, item: PageItem) -> str:
        return self._page.describe(f"click('{item.bid}')").removeprefix("click(").removesuffix(")")

    def _line(self, item: PageItem) -> str:
        if not item.role:
            return _quoted(item.name)
        head = self._described(item) if item.bid else f"{item.role} {_quoted(item.name)}"
        value = f" = {_quoted(item.value)}" if item.value else ""
        return " ".join([head + value, *(mark for mark in item.marks if mark not in ("focusable", "multiple"))])

    def _fitting(self, items: Iterable[PageItem], max_chars: int) -> list[str]:
        lines: list[str] = []
        for line in map(self._line, items):
            max_chars -= len(line) + 1
            if max_chars < 0:
                break
            lines.append(line)
        return lines

    def _short_texts(self) -> list[str]:
        """Return the texts to copy: the values of fields, and short texts."""
        values = [item.value for item in self._items if item.value.strip() and item.role == "textbox"]
        return values + [item.name for item in self._items if not item.role and len(item.name) <= 40]

    def _contains_goal(self) -> bool:
        return any(self._goal in item.name for item in self._items)


def _endings() -> Iterator[tuple[str, BrowserCall]]:
    yield "go_back()", BrowserCall("go_back", ())
    yield 'send_msg_to_user("done")', BrowserCall("send_msg_to_user", ("done",))
    yield 'report_infeasible("not possible")', BrowserCall("report_infeasible", ("not possible",))


def _is_field(item: PageItem) -> bool:
    return item.role in TEXT_ROLES and not item.options and "readonly" not in item.marks


def _is_handle(item: PageItem) -> bool:
    return item.role == "slider" or (item.role == "generic" and not item.name and "focusable" in item.marks)


def _quoted(text: str) -> str:
    return json.dumps(clean_text(text, 200), ensure_ascii=False)


def _literal(action: str, argument: str) -> str:
    try:
        value = ast.literal_eval(argument)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, str):
        raise EnvError(f"action {excerpt(action)}", "an argument is a text in quotes", 'Write "like this".')
    return value
