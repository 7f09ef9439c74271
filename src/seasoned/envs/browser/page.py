"""From a page's accessibility tree to the few lines that matter: texts, and elements by role and name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["CHOICE_ROLES", "TEXT_ROLES", "Item", "clean_text", "read_page"]

TEXT_ROLES = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "Date"})
"""Roles of what text can be written into."""

CHOICE_ROLES = frozenset({"checkbox", "radio", "switch", "option", "menuitemcheckbox", "menuitemradio"})
_NESTING = frozenset({"tab", "treeitem", "menuitem"})  # may hold other elements
_ROLES = TEXT_ROLES | CHOICE_ROLES | _NESTING | {"button", "link", "slider", "DisclosureTriangle"}
_TITLES = frozenset({"RootWebArea", "heading", "image", "img", "dialog", "alertdialog", "progressbar", "meter"})
_SKIPPED = frozenset({"InlineTextBox", "LineBreak", "ListMarker"})
_NEVER_CLICKED = frozenset({"RootWebArea", "Iframe", "StaticText", "dialog", "alertdialog", "none"})
_RENAMED = {"StaticText": "", "RootWebArea": "page"}
_MARKS = ("checked", "selected", "pressed", "expanded", "disabled", "readonly", "focusable")
_NO_WORD = re.compile(r"[^\w-]+")
_NAME_CHARS = 80
_TEXT_CHARS = 200
_VALUE_CHARS = 2000


class Item(NamedTuple):
    """One line of a page.

    Args:
        role: the element's role (`button`, ...), one word; empty for plain text.
        name: its accessible name, or the text.
        bid: BrowserGym's id of the element if it can be acted on now, else empty; it changes from page to page.
        value: what a field holds, to the letter.
        marks: those that hold of `checked`, `mixed`, `selected`, `pressed`, `expanded`, `disabled`, `readonly`,
            `focusable`, and `multiple` for an option of a list in which several can be selected.
        options: the labels to choose from, in full.
        shown: whether part of it is in the window.
    """

    role: str
    name: str
    bid: str = ""
    value: str = ""
    marks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    shown: bool = True

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> Item:
        """Return the item that JSON made a list of."""
        role, name, bid, value, marks, options, shown = values
        return cls(role, name, bid, value, tuple(marks), tuple(options), shown)


def clean_text(text: object, limit_chars: int = _NAME_CHARS) -> str:
    r"""Return a text on one line: blanks collapsed, control and direction marks out, cut to `limit_chars`.

    What a page says can then neither break a line nor turn one around.

    Example:
        >>> clean_text("  Add \u202e to\nCart ")
        'Add to Cart'
    """
    head = str(text)[: 8 * limit_chars]  # a text may be as long as the page's author likes
    line = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1].rstrip() + "…"


def read_page(tree: Mapping[str, Any], extra: Mapping[str, Any]) -> list[Item]:
    """Return a page's items in document order.

    An element can be acted on if it is rendered, enabled, and either has a role for that (button, textbox, option, ...)
    or listens to clicks itself (BrowserGym's `clickable`, from the browser's DOM snapshot) and is no mere container: it
    holds no such element, or text of its own. Of an element that holds a single one of the same name, as a tab holds
    its link, only the inner one counts. A label counts only where no element bears its name.

    Args:
        tree: BrowserGym's `axtree_object`: `nodes` as the Chrome DevTools Protocol gives them, with `browsergym_id`.
        extra: BrowserGym's `extra_element_properties`: id to `visibility`, `bbox`, `clickable`.

    Example:
        >>> button = {"nodeId": "1", "browsergym_id": "9", "role": {"value": "button"}, "name": {"value": "OK"}}
        >>> [item] = read_page({"nodes": [button]}, {"9": {"bbox": [0, 0, 9, 9], "visibility": 1.0}})
        >>> item.role, item.name, item.bid
        ('button', 'OK', '9')
    """
    nodes = _walk(tree.get("nodes", ()), extra)
    _find_active(nodes)
    named = {node.name for node in nodes if node.active and node.role in _ROLES}
    for node in nodes:
        if node.role == "LabelText" and node.own in named:
            node.active = False
        node.within = node.up is not None and (node.up.within or node.up.active)
    return [node.item() for node in nodes if node.is_told(named)]


class _Node:
    """A node of the tree, and what was found out about it."""

    def __init__(self, raw: Mapping[str, Any], up: _Node | None, seen: set[str], extra: Mapping[str, Any]) -> None:
        self.up = up
        self.role = "none" if raw.get("ignored") else str(_value(raw.get("role")) or "none")
        self.label = str(_value(raw.get("name")) or "")
        self.name = clean_text(self.label, _TEXT_CHARS if self.role == "StaticText" else _NAME_CHARS)
        value = _value(raw.get("value"))
        self.value = "" if value is None else str(value)[:_VALUE_CHARS]
        self.props = {each.get("name"): _value(each.get("value")) for each in raw.get("properties", ())}
        bid = "" if self.role == "none" else str(raw.get("browsergym_id") or "")
        self.bid = "" if bid in seen else bid  # parts that the browser adds have the id of their element
        seen.add(bid)
        facts = extra.get(self.bid) or {}
        self.clickable = bool(facts.get("clickable"))
        self.rendered = bool(facts.get("bbox"))
        self.shown: bool = float(facts.get("visibility") or 0.0) > 0.0 if self.bid else up is None or up.shown
        # Under an element that is one thing to the user, such as a button, nothing else is acted on.
        self.covered: bool = up is not None and (up.covered or (up.role in _ROLES and up.role not in _NESTING))
        self.box: _Node | None = None if up is None else up if up.role in ("combobox", "listbox") else up.box
        self.options: list[str] = []
        if self.role == "option" and self.box is not None and self.box.role == "combobox":
            self.box.options.append(self.label)
        self.active = self.within = False
        self.own = ""  # text that lies in it, and in no active element within it
        self.inner: list[str] = []  # names of elements with a role that it holds; the first two tell enough

    def decide(self) -> None:
        """Settle whether it can be acted on, once everything within it is known."""
        if self.role == "StaticText":
            self.own = self.name
        enabled = self.rendered and not self.props.get("disabled")
        if self.role in _ROLES:
            alone = len(self.inner) == 1 and self.inner[0] == self.name
            self.active = bool(enabled and not self.covered and not alone)
        elif self.role not in _NEVER_CLICKED and enabled and not self.covered:
            holds = bool(self.inner) and (self.role == "LabelText" or not 0 < len(self.own) < _NAME_CHARS)
            self.active = self.clickable and not holds
            # A handle, such as a slider's, takes keys without listening to clicks.
            handle = self.role == "generic" and bool(self.props.get("focusable")) and not self.own and not self.inner
            self.active = self.active or handle
            self.name = self.name or self.own
        if self.up is None:
            return
        if self.active:
            self.up.inner.append(self.name)
        else:
            self.up.own = f"{self.own} {self.up.own}".strip()[:_NAME_CHARS]
        if len(self.up.inner) < 3:
            self.up.inner += self.inner[:3]

    def is_told(self, named: Collection[str]) -> bool:
        """Whether it makes a line of its own. Labels need not repeat what is in `named`, the names of elements."""
        if self.active:
            return True
        if self.role in _ROLES:
            in_list = self.role == "option" and self.box is not None and self.box.role == "combobox"
            return not in_list and not self.covered and not self.within and not self.inner
        if self.within or not self.name:
            return False
        if self.role == "StaticText" and self.up is not None:
            of_title = self.up.role in _TITLES and self.name in self.up.name
            return not of_title and not (self.up.role == "LabelText" and self.name in named)
        return self.role in _TITLES or self.role == "StaticText"

    def item(self) -> Item:
        """It as an item."""
        marks = [mark for mark in _MARKS if str(self.props.get(mark) or "").lower() == "true"]
        marks += ["mixed"] * (self.props.get("checked") == "mixed")
        marks += ["multiple"] * bool(self.box is not None and self.box.props.get("multiselectable"))
        word = _NO_WORD.sub("-", self.role).strip("-0123456789") or "generic"
        return Item(
            _RENAMED.get(self.role, word),
            self.name,
            self.bid if self.active else "",
            self.value if self.role in _ROLES else "",
            tuple(marks),
            tuple(dict.fromkeys(self.options)),
            self.shown,
        )


def _walk(raw_nodes: Sequence[Mapping[str, Any]], extra: Mapping[str, Any]) -> list[_Node]:
    """The nodes in document order, each once, without recursion: a page is nested as deep as its author likes."""
    by_id = {str(raw.get("nodeId")): raw for raw in raw_nodes}
    nodes: list[_Node] = []
    seen, visited = {""}, set[str]()
    waiting: list[tuple[Mapping[str, Any], _Node | None]] = [(raw, None) for raw in raw_nodes[:1]]
    while waiting:
        raw, up = waiting.pop()
        id_ = str(raw.get("nodeId"))
        if id_ in visited or _value(raw.get("role")) in _SKIPPED:
            continue
        visited.add(id_)
        node = _Node(raw, up, seen, extra)
        nodes.append(node)
        waiting += [(by_id[key], node) for key in map(str, reversed(raw.get("childIds", ()))) if key in by_id]
    return nodes


def _find_active(nodes: Sequence[_Node]) -> None:
    for node in reversed(nodes):  # what lies within comes first
        node.decide()


def _value(part: Any) -> Any:
    return part.get("value") if isinstance(part, Mapping) else None
