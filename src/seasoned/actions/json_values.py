"""JSON of tool calls: a strict reader with exact numbers, and one text for each value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NoReturn

from seasoned.actions.json_size import MOST_CALL_VALUES, has_more_values
from seasoned.actions.key_escapes import escape_folded, escaped
from seasoned.errors import InputError, excerpt

__all__ = ["read_json", "write_json"]

_MAX_DEPTH = 100
_MAX_DIGITS = 1000
_TOO_LARGE = 10**_MAX_DIGITS
# Printable ASCII without capitals, quotes, backslashes and double blanks: neither JSON nor a key changes any of it.
_PLAIN = re.compile(r"(?:[!#-@\[\]-~]| (?! ))*+")


def read_json(text: str) -> Any:
    """Return the value of a JSON text; a number is an int, or a float if that is exact, or else a Decimal.

    Raises:
        InputError: invalid JSON, a key twice, NaN or an infinity, a number of more than 1000 characters, deep nesting,
            or more than 200,000 values.

    Example:
        >>> read_json('{"n": 1.10}')
        {'n': 1.1}
    """
    if has_more_values(text, MOST_CALL_VALUES):
        raise InputError(
            f"a tool call of {len(text)} characters",
            f"a tool call must have at most {MOST_CALL_VALUES} values",
            "Write what is large as a string.",
        )
    try:
        return _DECODER.decode(text)
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


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_float=_fraction, parse_constant=_constant
)


def _too_deep() -> InputError:
    return InputError(
        "a deeply nested tool call", f"a tool call must have at most {_MAX_DEPTH} levels", "Flatten its arguments."
    )


def write_json(value: object, form: Literal["key", "shown"], *, depth: int = 0) -> str:
    r"""Return a value as JSON with sorted keys: without blanks and unchanged by a memory's key, or to be shown.

    In the form `key` every character that a memory's key would change is an escape; in the form `shown` only those are
    that cannot be seen.

    Raises:
        InputError: a value is of another type than JSON's, or nested deeper than 100.

    Example:
        >>> print(write_json({"to": ["Rio", 1.0]}, "key"), write_json({"to": ["Rio", 1.0]}, "shown"))
        {"to":["\u0052io",1.0]} {"to": ["Rio", 1.0]}
    """
    if depth > _MAX_DEPTH:
        raise _too_deep()
    if isinstance(value, str):
        return _quote(value, form)
    if type(value) is int and -_TOO_LARGE < value < _TOO_LARGE:
        return int.__repr__(value)
    comma, colon = (",", ":") if form == "key" else (", ", ": ")
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  # the first is quick
        for key in value:
            if not isinstance(key, str):
                raise InputError(f"keys {excerpt(list(value))}", "keys must be text", "Convert them.")
        inner = [f"{_quote(key, form)}{colon}{write_json(value[key], form, depth=depth + 1)}" for key in sorted(value)]
        return f"{{{comma.join(inner)}}}"
    if isinstance(value, list | tuple):
        return f"[{comma.join([write_json(item, form, depth=depth + 1) for item in value])}]"
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


def _quote(text: str, form: Literal["key", "shown"]) -> str:
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    literal = json.dumps(text, ensure_ascii=False)
    if form == "key":
        return escape_folded(literal)
    return literal if literal.isprintable() else escaped(literal, {char for char in literal if not char.isprintable()})
