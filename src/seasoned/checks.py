"""Input checks: each returns a usable value, or raises an error with the value seen, the rule and the next step.

The error is an `InputError`, or the class that is passed as `error`. Checks of a value's own type come first, so that a
check never calls code of the value, besides its `repr` for the message.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from seasoned.errors import InputError, SeasonedError, excerpt

__all__ = [
    "MAX_INT_BITS",
    "MAX_JSON_VALUES",
    "MAX_REWARD",
    "check_file_name",
    "check_flag",
    "check_function",
    "check_instance",
    "check_items",
    "check_json_size",
    "check_logprobs",
    "check_mapping",
    "check_number",
    "check_one_of",
    "check_pattern",
    "check_reward",
    "check_text",
    "check_texts",
    "check_whole",
    "suggest",
]

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

MAX_INT_BITS = 2048
"""The largest size of a whole number, in bits: Python refuses to write longer ones as decimal digits, as in JSON."""

MAX_JSON_VALUES = 1 << 22
"""The most values of one JSON text from outside: parsed, each takes up to some 200 bytes, an empty list 3 as text."""

# The closing quote is optional, so that a quote without one ends the scan instead of repeating it from the next quote.
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)

_LOGPROB_ROUNDING_NATS = 1e-9
MAX_REWARD = 1e100
"""The largest absolute reward: its square, and sums of squares, are finite."""


def check_text(name: str, text: object, *, error: type[SeasonedError] = InputError) -> str:
    """Return `text` if it can be stored and compared: a str, not blank, encodable as UTF-8.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_text("state", "page:cart")
        'page:cart'
    """
    if not isinstance(text, str):
        raise error(
            f"{name} = {excerpt(text)}", f"{name} must be a str, not {type(text).__name__}", "Convert it first."
        )
    if not text or text.isspace():
        raise error(f"{name} = {excerpt(text)}", f"{name} must not be empty or blank", "Pass a text with words in it.")
    try:
        text.encode()
    except UnicodeEncodeError as wrong:
        raise error(
            f"{name} has a lone surrogate {text[wrong.start]!r} at character {wrong.start}",
            f"{name} must be text that UTF-8 can encode",
            "Decode the bytes it came from with errors='replace'.",
        ) from None
    return text


def check_file_name(path: str | os.PathLike[str]) -> None:
    """Refuse a path that the system does not take: one that is too long, or that it cannot encode.

    Raises:
        InputError: it is one, or its folders cannot be searched.

    Example:
        >>> check_file_name("agent.db")
    """
    next_step = "Name another file."
    try:
        Path(path).stat()
    except UnicodeError as error:
        rule = "a path must be text that the system can encode"
        raise InputError(f"path = {excerpt(str(path))}", rule, next_step) from error
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        seen = f"path = {excerpt(str(path))}: {error.strerror}"
        raise InputError(seen, "the system must be able to look for the file", next_step) from error


def check_texts(name: str, values: object, *, next_step: str = "Pass a list of texts.") -> tuple[str, ...]:
    """Return `values` as a tuple if it is a collection of texts (and not one text), each valid for `check_text`.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_texts("tasks", ["checkout"])
        ('checkout',)
    """
    if isinstance(values, str | bytes) or not isinstance(values, Collection):
        raise InputError(f"{name} = {excerpt(values)}", f"{name} must be a collection of texts", next_step)
    return tuple(check_text(name, value) for value in values)


def check_number(
    name: str,
    value: object,
    at_least: float | None = None,
    at_most: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
    next_step: str | None = None,
    error: type[SeasonedError] = InputError,
) -> float:
    """Return `value` as a float if it is a finite number (and not a bool) in the given range; -0.0 becomes 0.0.

    `at_least` and `at_most` are in the range, `above` and `below` are not.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_number("decay", 1, above=0.0, at_most=1.0)
        1.0
    """
    # A plain float, the common case in queries and steps, skips the checks of the type.
    if type(value) is not float and (
        isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating)
    ):
        rule = f"{name} must be a number, not {type(value).__name__}"
        raise error(f"{name} = {excerpt(value)}", rule, next_step or "Pass an int or a float.")
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        next_step = next_step or "Correct the computation that produced it."
        raise error(f"{name} = {excerpt(value)}", f"{name} must be finite", next_step)
    if (
        (at_least is not None and number < at_least)
        or (at_most is not None and number > at_most)
        or (above is not None and number <= above)
        or (below is not None and number >= below)
    ):
        rule = f"{name} must be a number{_bounds(at_least, at_most, above, below)}"
        raise error(f"{name} = {excerpt(value)}", rule, next_step or "Pass a number in this range.")
    return number


def check_reward(name: str, value: object) -> float:
    """Return `value` as a float if it is a reward: a finite number from -1e100 to 1e100, so that its square is finite.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_reward("reward", -1)
        -1.0
    """
    number = check_number(name, value)
    if abs(number) > MAX_REWARD:
        rule = f"{name} must be between -{MAX_REWARD:g} and {MAX_REWARD:g}"
        raise InputError(f"{name} = {number}", rule, "Scale it.")
    return number


def check_whole(
    name: str,
    value: object,
    at_least: int | None = None,
    at_most: int | None = None,
    *,
    next_step: str | None = None,
    error: type[SeasonedError] = InputError,
) -> int:
    """Return `value` as an int if it is a whole number (and not a bool) in the given range, both ends included.

    A whole number of more than `MAX_INT_BITS` bits is refused.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_whole("k", 3, at_least=1)
        3
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or (at_least is not None and value < at_least) or (at_most is not None and value > at_most):  # type: ignore[operator]
        rule = f"{name} must be a whole number{_bounds(at_least, at_most)}"
        example = at_least if at_least is not None else at_most if at_most is not None else 1
        raise error(f"{name} = {excerpt(value)}", rule, next_step or f"Pass {example}, for example.")
    number = int(value)  # type: ignore[call-overload]
    if number.bit_length() > MAX_INT_BITS:
        rule = f"{name} must be a whole number of at most {MAX_INT_BITS} bits"
        raise error(f"{name} of {number.bit_length()} bits", rule, next_step or "Keep it as a text.")
    return number  # type: ignore[no-any-return]


def _bounds(
    at_least: float | None, at_most: float | None, above: float | None = None, below: float | None = None
) -> str:
    """Return a range in words, such as `, at least 1`."""
    words = {"at least": at_least, "above": above, "at most": at_most, "below": below}
    bounds = [
        f"{word} {bound:g}" if isinstance(bound, float) else f"{word} {bound}"
        for word, bound in words.items()
        if bound is not None
    ]
    return f", {' and '.join(bounds)}" if bounds else ""


def check_flag(name: str, value: object, *, error: type[SeasonedError] = InputError) -> bool:
    """Return `value` if it is True or False.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_flag("clear_only", True)
        True
    """
    if not isinstance(value, bool):
        raise error(f"{name} = {excerpt(value)}", f"{name} must be True or False", "Pass True or False.")
    return value


def check_one_of(name: str, value: _T, choices: Iterable[object], *, error: type[SeasonedError] = InputError) -> _T:
    """Return `value` if it is one of `choices`: equal to one of them and of its type.

    Raises:
        InputError, or `error`: it is something else; the message suggests the closest choice.

    Example:
        >>> check_one_of("unit", "steps", ("steps", "states"))
        'steps'
    """
    known = list(choices)
    for choice in known:
        if value is choice or (type(value) is type(choice) and value == choice):
            return value
    rule = f"{name} must be one of {', '.join(map(repr, known))}"
    close = _closest(value, [choice for choice in known if isinstance(choice, str)])
    raise error(f"{name} = {excerpt(value)}", rule, close or "Pass one of these.")


def check_function(name: str, value: _F, takes: str, *, error: type[SeasonedError] = InputError) -> _F:
    """Return `value` if it can be called; `takes` completes the rule, such as `takes a text, and returns a text`.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_function("redact", str.upper, "takes a text, and returns a text")("a")
        'A'
    """
    if not callable(value):
        raise error(f"{name} = {excerpt(value)}", f"{name} must be a function: it {takes}", "Pass a function.")
    return value


def check_instance(
    name: str,
    value: object,
    kind: type[_T],
    rule: str | None = None,
    next_step: str | None = None,
    *,
    error: type[SeasonedError] = InputError,
) -> _T:
    """Return `value` if it is an instance of a class or a runtime-checkable protocol.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_instance("seeds", [1], list)
        [1]
    """
    if not isinstance(value, kind):
        rule = rule or f"{name} must be {_with_article(kind.__name__)}, not {type(value).__name__}"
        raise error(f"{name} = {excerpt(value)}", rule, next_step or f"Pass {_with_article(kind.__name__)}.")
    return value


def check_items(
    name: str, values: object, kind: type[_T], *, next_step: str | None = None, error: type[SeasonedError] = InputError
) -> tuple[_T, ...]:
    """Return `values` as a tuple if it is a sequence of instances of a class or a runtime-checkable protocol.

    A text is refused, and so are a set, a mapping and an iterator, which have no order or no length.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_items("layers", [0, 2], int)
        (0, 2)
    """
    next_step = next_step or f"Pass a list of {kind.__name__}."
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise error(f"{name} = {excerpt(values)}", f"{name} must be a list of {kind.__name__}", next_step)
    for index, value in enumerate(values):
        if not isinstance(value, kind):
            rule = f"each of {name} must be {_with_article(kind.__name__)}, not {type(value).__name__}"
            raise error(f"{name}[{index}] = {excerpt(value)}", rule, next_step)
    return tuple(values)


def check_mapping(
    name: str, value: object, maps: str, *, next_step: str | None = None, error: type[SeasonedError] = InputError
) -> Mapping[Any, Any]:
    """Return `value` if it is a mapping; `maps` completes the rule, such as `each action to its logit in nats`.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_mapping("shifts", {"click(pay)": 0.5}, "each action to nats")
        {'click(pay)': 0.5}
    """
    if not isinstance(value, Mapping):
        raise error(f"{name} = {excerpt(value)}", f"{name} must map {maps}", next_step or "Pass a dict.")
    return value


def check_pattern(
    name: str, pattern: object, flags: int = 0, *, error: type[SeasonedError] = InputError
) -> re.Pattern[str]:
    """Return `pattern` compiled with `flags` if it is the text of a regular expression.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_pattern("pattern", "[0-9]+").sub("#", "total 12")
        'total #'
    """
    try:
        return re.compile(check_text(name, pattern, error=error), flags)
    except (re.error, OverflowError, RecursionError) as wrong:
        rule = f"{name} must be a regular expression ({wrong})"
        raise error(f"{name} = {excerpt(pattern)}", rule, "Correct it, or use re.escape.") from None


def check_logprobs(name: str, logprobs: object) -> dict[str, float]:
    """Return a copy of `logprobs` if it maps one action or more to logprobs: finite, at most 0, in nats.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_logprobs("prior", {"click(pay)": -0.5})
        {'click(pay)': -0.5}
    """
    if not isinstance(logprobs, Mapping) or not logprobs:
        rule = f"{name} must map one action or more to logprobs"
        raise InputError(f"{name} = {excerpt(logprobs)}", rule, "Pass a dict, or None.")
    checked = {
        check_text(f"action in the {name}", action): check_number(f"{name}[{action!r}]", logprob)
        for action, logprob in logprobs.items()
    }
    for action, logprob in checked.items():
        if logprob > _LOGPROB_ROUNDING_NATS:
            raise InputError(
                f"{name}[{action!r}] = {logprob}",
                "a logprob must be at most 0",
                "Turn logits into logprobs first: seasoned.core.log_softmax.",
            )
    return checked


def check_json_size(text: str) -> str:
    r"""Return a JSON text if it has at most `MAX_JSON_VALUES` values, counted before it is parsed.

    Counted are commas and opening brackets outside of strings.

    Raises:
        ValueError: it has more.

    Example:
        >>> check_json_size('{"a": [1, 2]}')
        '{"a": [1, 2]}'
    """
    if len(text) <= MAX_JSON_VALUES:  # each value takes a character
        return text
    if _json_size(text) > MAX_JSON_VALUES:  # with the commas in strings; a long state has many
        size = _json_size(_JSON_STRING.sub("", text))
        if size > MAX_JSON_VALUES:
            raise ValueError(f"it has {size} values, and one JSON text may have {MAX_JSON_VALUES}")
    return text


def _json_size(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def suggest(name: object, known: Iterable[str]) -> str:
    """Return the next step after an unknown name: the closest known name, or all of them.

    Example:
        >>> suggest("defualt", ["default", "seed"])
        "Did you mean 'default'?"
    """
    names = sorted(known)
    return _closest(name, names) or f"Known are: {', '.join(names) or 'none'}."


def _closest(name: object, known: Iterable[str]) -> str | None:
    import difflib  # for misspellings only

    close = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f"Did you mean {close[0]!r}?" if close else None


def _with_article(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
