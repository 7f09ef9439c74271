"""The items of a page, read from its accessibility tree: texts, and elements by role and name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["CHOICE_ROLES", "TEXT_ROLES", "PageItem", "clean_text", "read_page"]

TEXT_ROLES = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "Date"})
"""Roles of elements that accept text."""

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


class PageItem(NamedTuple):
    """One item of a page.

    Args:
        role: the element's role (`button`, ...), one word; empty for plain text.
        name: its accessible name, or the text.
        bid: BrowserGym's id of the element if it accepts actions now, else empty; ids change from page to page.
        value: the exact value of a field.
        marks: the true ones of `checked`, `mixed`, `selected`, `pressed`, `expanded`, `disabled`, `readonly`,
            `focusable`, and `multiple` for an option of a list in which several can be selected.
        options: the full labels of the choices.
        visible: whether part of it is in the window.
    """

    role: str
    name: str
    bid: str = ""
    value: str = ""
    marks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    visible: bool = True

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> PageItem:
        """Return the item from its JSON list."""
        role, name, bid, value, marks, options, visible = values
        return cls(role, name, bid, value, tuple(marks), tuple(options), visible)


def clean_text(text: object, limit_chars: int = _NAME_CHARS) -> str:
    r"""Return a text on one line: blanks collapsed, without control and direction marks, cut to `limit_chars`.

    So a page's text can neither break a line nor reverse one.

    Example:
        >>> clean_text("  Add \u202e to\nCart ")
        'Add to Cart'
    """
    head = str(text)[: 8 * limit_chars]  # a page's text may be of any length
    line = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1].rstrip() + "…"


def read_page(tree: Mapping[str, Any], extra: Mapping[str, Any]) -> list[PageItem]:
    """Return a page's items in document order.

    An element accepts actions if it is rendered and enabled, and either has an interactive role (button, textbox,
    option, ...) or listens to clicks itself (BrowserGym's `clickable`, from the browser's DOM snapshot) and is not only
    a container: it contains no such element, or has text of its own. If an element contains a single element of the
    same name, as a tab contains its link, only the inner one counts. A label counts only if no element has its name.

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
        if node.role == "LabelText" and node.own_text in named:
            node.active = False
        node.inside_active = node.parent is not None and (node.parent.inside_active or node.parent.active)
    return [node.item() for node in nodes if node.is_listed(named)]


class _Node:
    """A node of the accessibility tree, with its derived properties."""

    def __init__(
        self, raw: Mapping[str, Any], parent: _Node | None, used_ids: set[str], extra: Mapping[str, Any]
    ) -> None:
        self.parent = parent
        self.role = "none" if raw.get("ignored") else str(_value(raw.get("role")) or "none")
        self.label = str(_value(raw.get("name")) or "")
        self.name = clean_text(self.label, _TEXT_CHARS if self.role == "StaticText" else _NAME_CHARS)
        value = _value(raw.get("value"))
        self.value = "" if value is None else str(value)[:_VALUE_CHARS]
        self.props = {each.get("name"): _value(each.get("value")) for each in raw.get("properties", ())}
        bid = "" if self.role == "none" else str(raw.get("browsergym_id") or "")
        self.bid = "" if bid in used_ids else bid  # parts added by the browser have the id of their element
        used_ids.add(bid)
        facts = extra.get(self.bid) or {}
        self.clickable = bool(facts.get("clickable"))
        self.rendered = bool(facts.get("bbox"))
        self.visible: bool = (
            float(facts.get("visibility") or 0.0) > 0.0 if self.bid else parent is None or parent.visible
        )
        # Inside a control such as a button, no other element accepts actions.
        self.inside_control: bool = parent is not None and (
            parent.inside_control or (parent.role in _ROLES and parent.role not in _NESTING)
        )
        self.list_box: _Node | None = (
            None if parent is None else parent if parent.role in ("combobox", "listbox") else parent.list_box
        )
        self.options: list[str] = []
        if self.role == "option" and self.list_box is not None and self.list_box.role == "combobox":
            self.list_box.options.append(self.label)
        self.active = self.inside_active = False
        self.own_text = ""  # its text outside of active elements
        self.inner_names: list[str] = []  # the names of elements with a role inside it; two are enough to compare

    def settle(self) -> None:
        """Decide whether the element accepts actions; its children are settled first."""
        if self.role == "StaticText":
            self.own_text = self.name
        enabled = self.rendered and not self.props.get("disabled")
        if self.role in _ROLES:
            wraps_same_name = len(self.inner_names) == 1 and self.inner_names[0] == self.name
            self.active = bool(enabled and not self.inside_control and not wraps_same_name)
        elif self.role not in _NEVER_CLICKED and enabled and not self.inside_control:
            is_container = bool(self.inner_names) and (
                self.role == "LabelText" or not 0 < len(self.own_text) < _NAME_CHARS
            )
            self.active = self.clickable and not is_container
            # A handle, such as a slider's, accepts keys without listening to clicks.
            handle = (
                self.role == "generic"
                and bool(self.props.get("focusable"))
                and not self.own_text
                and not self.inner_names
            )
            self.active = self.active or handle
            self.name = self.name or self.own_text
        if self.parent is None:
            return
        if self.active:
            self.parent.inner_names.append(self.name)
        else:
            self.parent.own_text = f"{self.own_text} {self.parent.own_text}".strip()[:_NAME_CHARS]
        if len(self.parent.inner_names) < 3:
            self.parent.inner_names += self.inner_names[:3]

    def is_listed(self, named: Collection[str]) -> bool:
        """Return whether the node is an item. A label in `named`, the names of elements, is not repeated."""
        if self.active:
            return True
        if self.role in _ROLES:
            in_dropdown = self.role == "option" and self.list_box is not None and self.list_box.role == "combobox"
            return not in_dropdown and not self.inside_control and not self.inside_active and not self.inner_names
        if self.inside_active or not self.name:
            return False
        if self.role == "StaticText" and self.parent is not None:
            repeats_title = self.parent.role in _TITLES and self.name in self.parent.name
            return not repeats_title and not (self.parent.role == "LabelText" and self.name in named)
        return self.role in _TITLES or self.role == "StaticText"

    def item(self) -> PageItem:
        """Return the node as an item."""
        marks = [mark for mark in _MARKS if str(self.props.get(mark) or "").lower() == "true"]
        marks += ["mixed"] * (self.props.get("checked") == "mixed")
        marks += ["multiple"] * bool(self.list_box is not None and self.list_box.props.get("multiselectable"))
        word = _NO_WORD.sub("-", self.role).strip("-0123456789") or "generic"
        return PageItem(
            _RENAMED.get(self.role, word),
            self.name,
            self.bid if self.active else "",
            self.value if self.role in _ROLES else "",
            tuple(marks),
            tuple(dict.fromkeys(self.options)),
            self.visible,
        )


def _walk(raw_nodes: Sequence[Mapping[str, Any]], extra: Mapping[str, Any]) -> list[_Node]:
    """Return the nodes in document order, each once, without recursion: a page may be nested to any depth."""
    by_id = {str(raw.get("nodeId")): raw for raw in raw_nodes}
    nodes: list[_Node] = []
    used_ids, visited = {""}, set[str]()
    pending: list[tuple[Mapping[str, Any], _Node | None]] = [(raw, None) for raw in raw_nodes[:1]]
    while pending:
        raw, parent = pending.pop()
        id_ = str(raw.get("nodeId"))
        if id_ in visited or _value(raw.get("role")) in _SKIPPED:
            continue
        visited.add(id_)
        node = _Node(raw, parent, used_ids, extra)
        nodes.append(node)
        pending += [(by_id[key], node) for key in map(str, reversed(raw.get("childIds", ()))) if key in by_id]
    return nodes


def _find_active(nodes: Sequence[_Node]) -> None:
    for node in reversed(nodes):  # children come before their parents
        node.settle()


def _value(part: Any) -> Any:
    return part.get("value") if isinstance(part, Mapping) else None
