"""Calls with named arguments, read from each spelling that agents, imports and people use."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from seasoned.actions.call_syntax import parse_call
from seasoned.actions.tool_calls import ToolAction, parse_tool_call
from seasoned.checks import check_text
from seasoned.errors import InputError
from seasoned.types import normalize_action

__all__ = ["CallForm", "NamedCall", "action_key", "call_forms", "is_call_like", "named_call", "named_calls"]

_MOST_CHARS = 100_000  # of a text that is read as a call
_KEPT, _MOST_KEPT_CHARS = 1 << 14, 1000  # calls read before, and the length of each
_PROBE_CHARS = 64
_HEAD = re.compile(r"\s*([^\W\d][\w./:-]*)\s*\(\s*(?=\{)")
_ENDS = frozenset(")}`")
_WORDS = {"true": True, "false": False, "null": None, "none": None}


@dataclass(frozen=True, eq=False)
class NamedCall:
    """An action as a tool's name and its named arguments; a plain command has none.

    Args:
        name: of the tool; of a plain command its whole text.
        arguments: by name, as in `ToolAction`.
        key: the same text for every spelling of this call, and for no other call.
        shape: the tool's name and the names of its arguments; "" where there are none.
    """

    name: str
    arguments: Mapping[str, Any]
    key: str
    shape: str

    @property
    def values(self) -> tuple[str, ...]:
        """The texts and numbers among the arguments, nested ones too, as text; no booleans, None or blanks.

        Example:
            >>> named_call('book({"seats": ["1A", 7], "paid": true})').values
            ('1A', '7')
        """
        return tuple(dict.fromkeys(_leaves(self.arguments)))


class CallForm(NamedTuple):
    """What comparisons of actions need of a call, in at most about 2,000 characters, however long the call is.

    Attributes:
        key: equal for two actions if `NamedCall.key` is; a digest of a long one.
        shape: equal for two actions if `NamedCall.shape` is, "" where that is; a digest of a long one.
        probe: the case-folded beginning of the longest of `NamedCall.values`: a text in which all of them occur holds
            it; "" without values.
    """

    key: str
    shape: str
    probe: str


def named_call(text: str) -> NamedCall:
    r"""Return an action as a tool's name and its named arguments.

    The spellings are `name({"arg": value})` (imports), `{"arguments": {...}, "name": ...}` and the other forms of
    `parse_tool_call` (`ToolAction.text`), and `name(arg="value", n=2)`. Its values are literals of JSON or Python; a
    bare word is a text. Any other text, a call with arguments by position among them, is a plain command: its key is
    that of a memory, `normalize_action`.

    Raises:
        InputError: it is not a text, or blank.

    Example:
        >>> json_text = '{"name":"search","arguments":{"n":2,"q":"Tea"}}'
        >>> spellings = json_text, 'search({"q":"Tea","n":2})', "search(q='Tea', n=2)"
        >>> len({named_call(text).key for text in spellings}), named_call(spellings[2]).arguments
        (1, {'n': 2, 'q': 'Tea'})
        >>> named_call("Go  North").key, named_call("click('b12')").shape
        ('go north', '')
    """
    return named_calls([check_text("action", text)])[0]


def named_calls(texts: Iterable[str]) -> list[NamedCall]:
    """Return each of some texts as `named_call` does, without checks: for the actions of a memory."""
    return [_read_kept(text) if len(text) <= _MOST_KEPT_CHARS else _read(text) for text in texts]


def call_forms(texts: Iterable[str]) -> list[CallForm]:
    """Return the form of each of some texts. A text is parsed once, long ones too, while it is among the last 16,384.

    Example:
        >>> [form] = call_forms(['cancel({"order": "W7", "why": "Too late"})'])
        >>> form.shape, form.probe
        ('cancel(order,why)', 'too late')
    """
    return [_form_kept(text) if len(text) <= _MOST_KEPT_CHARS else _LONG_FORMS.of(text) for text in texts]


def is_call_like(text: str) -> bool:
    """Return whether a text ends as a call does, so that it may be worth reading as one."""
    return text[-1:] in _ENDS or text.rstrip()[-1:] in _ENDS


def action_key(text: str) -> str:
    """Return a text that is equal for two actions if they are the same call, however it is spelled.

    Plain commands have the key of a memory.

    Raises:
        InputError: it is not a text, or blank.

    Example:
        >>> action_key("look()") == action_key("look({})"), action_key("Look  around")
        (True, 'look around')
    """
    return named_call(text).key


@functools.lru_cache(maxsize=_KEPT)
def _read_kept(text: str) -> NamedCall:
    return _read(text)


@functools.lru_cache(maxsize=_KEPT)
def _form_kept(text: str) -> CallForm:
    return _form(named_calls([text])[0])


def _form(call: NamedCall) -> CallForm:
    longest = max(call.values, key=len, default="")
    return CallForm(_shortened(call.key), _shortened(call.shape), longest.casefold()[:_PROBE_CHARS])


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_KEPT_CHARS else _digest(text).hex()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _LongForms:
    """The forms of long texts by the digests of these, the first ones forgotten first; many threads may use it."""

    def __init__(self) -> None:
        self._forms: dict[bytes, CallForm] = {}
        self._lock = threading.Lock()

    def of(self, text: str) -> CallForm:
        """Return the form of a text."""
        digest = _digest(text)
        form = self._forms.get(digest)
        if form is None:
            form = _form(_read(text))
            with self._lock:
                self._forms[digest] = form
                if len(self._forms) > _KEPT:
                    del self._forms[next(iter(self._forms))]
        return form


_LONG_FORMS = _LongForms()


def _read(text: str) -> NamedCall:
    call = _tool_action(text) if len(text) <= _MOST_CHARS and is_call_like(text) else None
    if call is None or not call.name.strip():
        return NamedCall(text, {}, normalize_action(text), "")
    shape = f"{call.name}({','.join(sorted(call.arguments))})" if call.arguments else ""
    return NamedCall(call.name, call.arguments, call.text, shape)


def _tool_action(text: str) -> ToolAction | None:
    """Return the call with named arguments; None if the text is not one."""
    stripped = text.strip()
    try:
        if stripped[0] in "{`":
            return parse_tool_call(stripped)
        if head := _HEAD.match(stripped):
            return parse_tool_call({"name": head[1], "arguments": stripped[head.end() : -1]})
        call = parse_call(stripped)
        if call is None or call.args:
            return None
        name = stripped[: stripped.index("(")].strip()  # `call.name` is case-folded
        return ToolAction(name, {key: _literal(value) for key, value in call.keywords})
    except InputError:
        return None


def _literal(text: str) -> Any:
    """Return the value of a literal; a text that is none stands for itself."""
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    try:
        value = ast.literal_eval(text)
        ToolAction("literal", {"value": value})
    except (ValueError, SyntaxError, RecursionError, MemoryError, InputError):
        return text
    return value


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool) and str(value).strip():
        yield str(value).strip()
