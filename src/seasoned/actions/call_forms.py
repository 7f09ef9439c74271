"""Calls with named arguments, read from each spelling that agents, imports and people use."""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from seasoned.actions.key_escapes import unescape_folded
from seasoned.actions.normalization import normalize_action
from seasoned.actions.tool_calls import ToolAction, parse_tool_call, read_call_syntax, written_name
from seasoned.checks import check_text
from seasoned.errors import InputError

__all__ = [
    "CallForm",
    "NamedCall",
    "action_key",
    "call_forms",
    "is_call_like",
    "is_readable_call",
    "named_call",
    "named_calls",
    "readable_action",
    "short_action",
    "tool_name",
]

_MOST_CHARS = 100_000  # of a text that is read as a call
_KEPT, _MOST_KEPT_CHARS = 1 << 14, 1000  # calls read before, and the length of each
_PROBE_CHARS = 64
_CUT = "..."
_WITH_OBJECT = re.compile(r"[^\W\d][\w./:-]*\s*\(\s*\{")
_POSITIONAL = re.compile(r"([^\W\d][\w.:/-]*)\(.*\)", re.DOTALL)
_ENDS = frozenset(")}`")


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

    The spellings are those of `parse_tool_call`. Any other text, a call with arguments by position among them, is a
    plain command: its key is that of a memory, `normalize_action`.

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


def readable_action(text: str) -> str:
    r"""Return an action as people and models read it: a tool call as `str(ToolAction)`, any other text as it is.

    `parse_tool_call` and `named_call` read both as one call. A call that was written `name(argument=value)` stays as it
    was written, and so does a text of more than 100,000 characters. Arguments that are no object, such as a shell
    command, are shown without the escapes of `call_action`.

    Example:
        >>> print(readable_action(r'{"arguments":{"city":"\u0050aris"},"name":"weather"}'))
        weather(city="Paris")
        >>> readable_action('search({"q":"tea"})'), readable_action("click('b12')"), readable_action("Go  north")
        ('search(q="tea")', "click('b12')", 'Go  north')
    """
    if len(text) > _MOST_CHARS or not is_call_like(text):
        return text
    return _readable_kept(text) if len(text) <= _MOST_KEPT_CHARS else _readable(text)


def is_readable_call(text: str) -> bool:
    """Return whether a text is a tool call exactly as `str(ToolAction)` writes it.

    Example:
        >>> is_readable_call('go(to="b")'), is_readable_call("go(to='b')"), is_readable_call("go north")
        (True, False, False)
    """
    if len(text) > _MOST_CHARS or not is_call_like(text):
        return False
    call = _tool_action(text) if text.strip() else None
    return call is not None and str(call) == text


def short_action(action: str, limit_chars: int) -> str:
    """Return an action in its readable spelling on one line; of a long one the middle is left out, never a tool's name.

    A line with a long name may be longer than the limit.

    Example:
        >>> short_action('failover_database({"note":"Team A, urgent","service":"payments"})', 40)
        'failover_database(note="Team...ayments")'
        >>> short_action('failover_database({"service":"payments"})', 10)
        'failover_database(...)'
    """
    line = " ".join(readable_action(action).split())
    if not line.isprintable():
        line = "".join(char if char.isprintable() else "\ufffd" for char in line)
    if len(line) <= limit_chars:
        return line
    name = tool_name(action)
    opening = line.find("(") + 1 if name is not None and line.startswith(name) else 0
    tail = max((limit_chars - opening - len(_CUT)) // 2, 1) if opening else max((limit_chars - len(_CUT)) // 2, 0)
    head = max(limit_chars - len(_CUT) - tail, opening)
    return f"{line[:head]}{_CUT}{line[len(line) - tail :]}"


def tool_name(action: str) -> str | None:
    """Return the name of the tool that an action calls, in any spelling, arguments by position too; None for a text.

    Example:
        >>> tool_name('search({"q":"tea"})'), tool_name("run(ls -l)"), tool_name("I found two flights (both late).")
        ('search', 'run', None)
    """
    if not is_call_like(action):
        return None
    if (name := written_name(action)) is not None:
        return name
    return _tool_name_kept(action) if len(action) <= _MOST_KEPT_CHARS else _tool_name(action)


@functools.lru_cache(maxsize=_KEPT)
def _tool_name_kept(action: str) -> str | None:
    return _tool_name(action)


def _tool_name(action: str) -> str | None:
    text = action.strip()
    call = _tool_action(text) if len(text) <= _MOST_CHARS else None
    if call is not None:
        return call.name
    match = _POSITIONAL.fullmatch(text)
    return match[1] if match else None


@functools.lru_cache(maxsize=_KEPT)
def _readable_kept(text: str) -> str:
    return _readable(text)


def _readable(text: str) -> str:
    stripped = text.strip()
    written_as_json = stripped[0] in "{`" or _WITH_OBJECT.match(stripped)
    if written_as_json and (call := _tool_action(stripped)) is not None:
        return str(call)
    # The readable spelling itself keeps its escapes, which are of unprintable characters.
    escaped = "\\u" in text and _POSITIONAL.fullmatch(stripped) is not None and not is_readable_call(text)
    return unescape_folded(text) if escaped else text


@functools.lru_cache(maxsize=_KEPT)
def _read_kept(text: str) -> NamedCall:
    return _read(text)


@functools.lru_cache(maxsize=_KEPT)
def _form_kept(text: str) -> CallForm:
    return _form(_read_kept(text)) if is_call_like(text) else CallForm(_shortened(normalize_action(text)), "", "")


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
        return parse_tool_call(stripped) if stripped[0] in "{`" else read_call_syntax(stripped)
    except InputError:
        return None


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if stripped := value.strip():
            yield stripped
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value).strip()
