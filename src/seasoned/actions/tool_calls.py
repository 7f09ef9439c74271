"""Tool calls: one canonical text for the formats of models and clients, and one readable text for people and models."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seasoned.actions.call_syntax import KEYWORD, parse_call
from seasoned.actions.code_fence import fenced_text
from seasoned.actions.json_values import read_json, write_json
from seasoned.actions.key_escapes import escape_folded
from seasoned.actions.python_literals import parse_literal
from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt

__all__ = ["ToolAction", "call_action", "canonical_tool_call", "parse_tool_call", "read_call_syntax", "written_name"]

_NAME = re.compile(r"[^\W\d][\w.-]*")  # of a call with arguments `name=value`
_HEAD = re.compile(r"\s*([^\W\d][\w./:-]*)\s*\(\s*(?=\{)")
_SLASHED_NAME = re.compile(r"[^\W\d][\w./:-]*")
_MOST_KEPT_CHARS, _MOST_KEPT = 1000, 1 << 12
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_ESCAPE, _BACKSLASH = re.compile(r"\\(?=u)"), r"\\u005c"  # of a text that looks like an escape


@dataclass(frozen=True, eq=False)
class ToolAction:
    r"""A tool's name and its arguments; equal if their canonical texts are.

    `text`, which is stored, is JSON with sorted keys, without blanks and ids. Numbers are exact: `1.10` is `1.1`, a
    number that no float can represent is a `Decimal`, and 1 differs from 1.0. A memory's key collapses blanks and folds
    case, but `Paris` and `paris` may be two cities. So every character of a string that the key would change is written
    as its JSON escape (`"\u0050aris"`). Then `normalize_action(call.text) == call.text`, two calls have one key if and
    only if they are equal, and any JSON parser reads the original strings.

    `str(call)` is for people and models: `name(argument=value, ...)`, its arguments sorted, each value as JSON, with
    escapes only for what cannot be seen. Where an argument's name is no word, it is `name({"argument": value})`; where
    the tool's name is none, `{"name": ..., "arguments": ...}`. `parse_tool_call(str(call)) == call`.

    Args:
        name: of the tool.
        arguments: by name; strings, whole numbers, finite floats, Decimals, booleans, None, lists and dicts of these.

    Raises:
        InputError: the name is blank, a value is of another type, or nested deeper than 100.

    Example:
        >>> call = ToolAction("weather", {"city": "Paris", "days": 2})
        >>> call.text
        '{"arguments":{"city":"\\u0050aris","days":2},"name":"weather"}'
        >>> print(call)
        weather(city="Paris", days=2)
    """

    name: str
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_text("tool's name", self.name)
        if not isinstance(self.arguments, Mapping):
            raise InputError(
                f"arguments are a {type(self.arguments).__name__}",
                "a tool's arguments must be an object",
                "Name each argument.",
            )
        _ = self.text  # refuses a value of another type

    @functools.cached_property
    def text(self) -> str:
        """The canonical text."""
        return write_json({"arguments": self.arguments, "name": self.name}, "key")

    def __str__(self) -> str:
        if not _SLASHED_NAME.fullmatch(self.name):
            name, arguments = write_json(self.name, "shown"), write_json(self.arguments, "shown")
            return f'{{"name": {name}, "arguments": {arguments}}}'
        if _NAME.fullmatch(self.name) and all(map(KEYWORD.fullmatch, self.arguments)):
            given = (f"{key}={write_json(self.arguments[key], 'shown')}" for key in sorted(self.arguments))
            return f"{self.name}({', '.join(given)})"
        return f"{self.name}({write_json(self.arguments, 'shown')})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolAction) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def canonical_tool_call(call: str | Mapping[str, Any]) -> str:
    r"""Return the canonical text of a tool call; see `parse_tool_call` and `ToolAction.text`.

    Example:
        >>> canonical_tool_call('{"id": "call_7", "function": {"name": "go", "arguments": "{\\"to\\": \\"b\\"}"}}')
        '{"arguments":{"to":"b"},"name":"go"}'
        >>> canonical_tool_call('go(to="b")') == canonical_tool_call('go({"to": "b"})')
        True
    """
    return parse_tool_call(call).text


def call_action(name: object, arguments: object) -> str:
    r"""Return the action of a tool's call, as imports, readers of policies, agents and live conversations store it.

    Arguments are an object, its JSON text, or the text of a Python dict; None and blanks are none: the canonical text
    (`ToolAction.text`). Any other arguments, such as a shell command, stand between the brackets as they are, with the
    characters that a memory's key would change as JSON escapes.

    Raises:
        InputError: the name is blank or not a text, or the arguments are no value of JSON.

    Example:
        >>> call_action("search", '{"q": "tea", "n": 2}') == call_action("search", "{'n': 2, 'q': 'tea'}")
        True
        >>> print(call_action("sh", "git branch -D old"))
        sh(git branch -\u0044 old)
    """
    function = check_text("tool name", name)
    if isinstance(arguments, str) and len(arguments) <= _MOST_KEPT_CHARS:
        return _call_text_kept(function, arguments)
    return _call_text(function, arguments)


@functools.lru_cache(maxsize=1 << 12)  # a conversation in spans repeats its calls
def _call_text_kept(function: str, arguments: str) -> str:
    return _call_text(function, arguments)


def _call_text(function: str, arguments: object) -> str:
    if isinstance(arguments, str):
        text = arguments.strip()
        try:
            arguments = _parsed_arguments(text)
        except (InputError, ValueError):
            return f"{function}({escape_folded(_ESCAPE.sub(_BACKSLASH, text))})"
    if arguments is None or isinstance(arguments, Mapping):
        text = write_json({"arguments": {} if arguments is None else arguments, "name": function}, "key")
        if len(text) <= _MOST_KEPT_CHARS:
            _remember(text, function)
        return text
    return f"{function}({write_json(arguments, 'key')})"


_names: dict[str, str] = {}  # of the tools that texts call which were written here, so that they need not be parsed


def _remember(text: str, name: str) -> None:
    if len(_names) >= _MOST_KEPT:
        _names.clear()
    _names[text] = name


def written_name(text: str) -> str | None:
    """Return the tool's name of a canonical text that `call_action` wrote not long ago; None of any other text.

    Example:
        >>> written_name(call_action("search", '{"q": "tea"}')), written_name("I search.")
        ('search', None)
    """
    return _names.get(text)


def _parsed_arguments(text: str) -> object:
    try:
        return read_json(text or "{}")
    except InputError:
        if not text.startswith("{"):
            raise
        return parse_literal(text)


def parse_tool_call(call: str | Mapping[str, Any]) -> ToolAction:
    """Read a tool call: the inverse of `ToolAction.text` and of `str`.

    The formats are `{"name", "arguments"}`; an entry of OpenAI's `tool_calls` (`{"function": {"name", "arguments"}}`,
    its arguments a JSON string, blank for none); and Anthropic's `tool_use` (`{"name", "input"}`). The call is an
    object, or its JSON text, which may be in a Markdown fence. Ids and other transport fields are dropped. Two more
    are texts: `name({"argument": value})`, and `name(argument=value)` with values of JSON or Python, where a bare word
    is a text.

    Raises:
        InputError: invalid JSON, a key twice, NaN or an infinity, a number of more than 1000 characters, deep nesting,
            no name, no arguments, arguments by position, two sets of arguments, or several calls at once.

    Example:
        >>> parse_tool_call({"type": "tool_use", "id": "toolu_1", "name": "go", "input": {"to": "b"}}).arguments
        {'to': 'b'}
        >>> print(parse_tool_call('note({"text": "Team A"})'))
        note(text="Team A")
    """
    given = call
    if isinstance(call, str):
        if call.strip() and (read := read_call_syntax(call.strip())) is not None:
            return read
        fenced = fenced_text(call.strip(), whole=True)
        call = read_json(call if fenced is None else fenced)
    if not isinstance(call, Mapping):
        raise InputError(_seen(given), "a tool call must be one JSON object", "Pass the calls one by one.")
    inner = call.get("function", call)
    if not isinstance(inner, Mapping):
        raise InputError(
            f"function is a {type(inner).__name__}", "function must be an object with name and arguments", "Pass one."
        )
    keys = [key for key in ("arguments", "input") if key in inner]
    if "name" not in inner or len(keys) != 1:
        raise InputError(_seen(given), "it must have a name, and arguments or input", 'Write "arguments": {} for none.')
    arguments = inner[keys[0]]
    if isinstance(arguments, str):
        arguments = read_json(arguments) if arguments.strip() else {}
    return ToolAction(inner["name"], arguments)


def _seen(call: object) -> str:
    return f"tool call {excerpt(call if isinstance(call, str) else type(call).__name__)}"


def read_call_syntax(text: str) -> ToolAction | None:
    """Return the call that is written `name({"argument": value})` or `name(argument=value)`; None for another text.

    Raises:
        InputError: it has the form `name({...})`, and the object is not valid; or its arguments are no values of JSON.

    Example:
        >>> read_call_syntax("search(q='Tea', n=2)").arguments, read_call_syntax("click('b12')")
        ({'n': 2, 'q': 'Tea'}, None)
    """
    if text[-1:] != ")":
        return None
    if head := _HEAD.match(text):
        return parse_tool_call({"name": head[1], "arguments": text[head.end() : -1]})
    call = parse_call(text)
    if call is None or call.args:
        return None
    name = text[: text.index("(")].strip()  # `call.name` is case-folded
    return ToolAction(name, {key: _literal(value) for key, value in call.keywords})


def _literal(text: str) -> Any:
    """Return the value of a literal of JSON or Python; a text that is none stands for itself."""
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    try:
        return read_json(text)
    except InputError:
        pass
    try:
        value = ast.literal_eval(text)
        write_json(value, "key")
    except (ValueError, SyntaxError, RecursionError, MemoryError, InputError):
        return text
    return value
