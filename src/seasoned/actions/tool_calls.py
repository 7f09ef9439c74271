"""Tool calls: one canonical JSON text for the formats of models and clients."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from seasoned.actions.code_fence import fenced_text
from seasoned.actions.key_escapes import escape_folded, escaped
from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt

__all__ = ["ToolAction", "canonical_tool_call", "parse_tool_call"]

_MAX_DEPTH = 100
_MAX_DIGITS = 1000
_TOO_LARGE = 10**_MAX_DIGITS


@dataclass(frozen=True, eq=False)
class ToolAction:
    r"""A tool's name and its arguments; equal if their canonical texts are.

    `text` is JSON with sorted keys, without blanks and ids. Numbers are exact: `1.10` is `1.1`, a number that no float
    can represent is a `Decimal`, and 1 differs from 1.0. A memory's key collapses blanks and folds case, but `Paris`
    and `paris` may be two cities. So every character of a string that the key would change is written as its JSON
    escape (`"\u0050aris"`). Then `normalize_action(call.text) == call.text`, two calls have one key if and only if they
    are equal, and any JSON parser reads the original strings. `str(call)` is the same JSON without these escapes, for
    prompts and people.

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
        {"arguments":{"city":"Paris","days":2},"name":"weather"}
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
        _write(self.arguments, exact=False)

    @property
    def text(self) -> str:
        """The canonical text."""
        return _write({"arguments": self.arguments, "name": self.name}, exact=True)

    def __str__(self) -> str:
        return _write({"arguments": self.arguments, "name": self.name}, exact=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolAction) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def canonical_tool_call(call: str | Mapping[str, Any]) -> str:
    r"""Return the canonical text of a tool call; see `parse_tool_call` and `ToolAction.text`.

    Example:
        >>> canonical_tool_call('{"id": "call_7", "function": {"name": "go", "arguments": "{\\"to\\": \\"b\\"}"}}')
        '{"arguments":{"to":"b"},"name":"go"}'
    """
    return parse_tool_call(call).text


def parse_tool_call(call: str | Mapping[str, Any]) -> ToolAction:
    """Read a tool call: the inverse of `ToolAction.text`.

    The formats are `{"name", "arguments"}`; an entry of OpenAI's `tool_calls` (`{"function": {"name", "arguments"}}`,
    its arguments a JSON string, blank for none); and Anthropic's `tool_use` (`{"name", "input"}`). The call is an
    object, or its JSON text, which may be in a Markdown fence. Ids and other transport fields are dropped.

    Raises:
        InputError: invalid JSON, a key twice, NaN or an infinity, a number of more than 1000 characters, deep nesting,
            no name, no arguments, two sets of arguments, or several calls at once.

    Example:
        >>> parse_tool_call({"type": "tool_use", "id": "toolu_1", "name": "go", "input": {"to": "b"}}).arguments
        {'to': 'b'}
    """
    seen = excerpt(call if isinstance(call, str) else type(call).__name__)
    if isinstance(call, str):
        fenced = fenced_text(call.strip(), whole=True)
        call = _read(call if fenced is None else fenced)
    if not isinstance(call, Mapping):
        raise InputError(f"tool call {seen}", "a tool call must be one JSON object", "Pass the calls one by one.")
    inner = call.get("function", call)
    if not isinstance(inner, Mapping):
        raise InputError(
            f"function is a {type(inner).__name__}", "function must be an object with name and arguments", "Pass one."
        )
    given = [key for key in ("arguments", "input") if key in inner]
    if "name" not in inner or len(given) != 1:
        raise InputError(
            f"tool call {seen}", "it must have a name, and arguments or input", 'Write "arguments": {} for none.'
        )
    arguments = inner[given[0]]
    if isinstance(arguments, str):
        arguments = _read(arguments) if arguments.strip() else {}
    return ToolAction(inner["name"], arguments)


def _read(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_int=_whole, parse_float=_fraction, parse_constant=_constant
        )
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"tool call {excerpt(text)}", f"a tool call must be valid JSON ({error})", "Ask the model again."
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(f"key {excerpt(twice)} twice", "an object must have each key once", "Remove one of them.")
    return result


def _whole(text: str) -> int:
    return int(_short(text))


def _fraction(text: str) -> float | Decimal:
    """Return a float if its shortest text is exactly the number, otherwise a Decimal."""
    try:
        return _as_float(Decimal(_short(text)))
    except InvalidOperation:
        raise InputError(f"number {excerpt(text)}", "its exponent must be smaller", "Correct it.") from None


def _as_float(number: Decimal) -> float | Decimal:
    nearest = float(number)
    return nearest if math.isfinite(nearest) and Decimal(repr(nearest)) == number else number


def _short(text: str) -> str:
    if len(text) > _MAX_DIGITS:
        raise InputError(
            f"number {excerpt(text, 20)} of {len(text)} characters",
            f"a number must have at most {_MAX_DIGITS}",
            "Pass it as a string.",
        )
    return text


def _constant(text: str) -> NoReturn:
    raise InputError(f"number {text}", "JSON has no NaN and no infinities", "Pass null or a string.")


def _too_deep() -> InputError:
    return InputError(
        "a deeply nested tool call", f"a tool call must have at most {_MAX_DEPTH} levels", "Flatten its arguments."
    )


def _write(value: object, *, exact: bool, depth: int = 0) -> str:
    """Return canonical JSON; with `exact`, such that a memory's key does not change it."""
    if depth > _MAX_DEPTH:
        raise _too_deep()
    if isinstance(value, str):
        return _quote(value, exact=exact)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InputError(f"keys {excerpt(list(value))}", "keys must be text", "Convert them.")
        inner = (
            f"{_quote(key, exact=exact)}:{_write(value[key], exact=exact, depth=depth + 1)}" for key in sorted(value)
        )
        return f"{{{','.join(inner)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(_write(item, exact=exact, depth=depth + 1) for item in value)}]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Decimal) and value.is_finite():
        value = _as_float(value)  # zero always becomes a float
    if isinstance(value, Decimal) and value.is_finite():
        sign, digits, exponent = value.as_tuple()
        written = "".join(map(str, digits))
        short = written.rstrip("0")
        return f"{'-' if sign else ''}{short}e{int(exponent) + len(written) - len(short)}"
    if isinstance(value, int) and abs(value) < _TOO_LARGE:
        return int.__repr__(value)
    if isinstance(value, float) and math.isfinite(value):
        return float.__repr__(value)
    raise InputError(
        f"argument {excerpt(type(value).__name__)}",
        "an argument must be text, a finite number, True, False, None, a list or a dict",
        "Convert it.",
    )


def _quote(text: str, *, exact: bool) -> str:
    literal = json.dumps(text, ensure_ascii=False)
    if exact:
        return escape_folded(literal)
    # UTF-8 cannot encode lone surrogates; JSON's escapes can.
    return escaped(literal, {char for char in set(literal) if "\ud800" <= char <= "\udfff"})
