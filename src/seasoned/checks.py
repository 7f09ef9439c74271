"""Input checks: each returns a usable value, or raises an error with the value seen, the rule and the next step."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from seasoned.errors import InputError, SeasonedError, excerpt

__all__ = [
    "MAX_INT_BITS",
    "check_finite",
    "check_flag",
    "check_function",
    "check_instance",
    "check_int",
    "check_logprobs",
    "check_number",
    "check_one_of",
    "check_reward",
    "check_text",
    "check_texts",
    "check_whole",
    "suggest",
]

_T = TypeVar("_T")

MAX_INT_BITS = 2048
"""How many bits a whole number has at most: it must be writable as JSON, and Python refuses to write longer ones."""

_LOGPROB_ROUNDING_NATS = 1e-9
_MAX_REWARD = 1e100


def _a(name: str) -> str:
    """The name with its article."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def check_text(name: str, text: object) -> str:
    """Return `text` if it can be stored and compared: a str, not blank, encodable as UTF-8.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_text("state", "page:cart")
        'page:cart'
    """
    if not isinstance(text, str):
        raise InputError(
            f"{name} = {excerpt(text)}", f"{_a(name)} is a str, not {type(text).__name__}", "Convert it first."
        )
    if not text or text.isspace():
        raise InputError(f"{name} = {excerpt(text)}", f"{_a(name)} is not empty or blank", f"Say what the {name} is.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} has a lone surrogate {text[error.start]!r} at character {error.start}",
            f"{_a(name)} is text that UTF-8 can encode",
            "Decode the bytes it came from with errors='replace'.",
        ) from None
    return text


def check_finite(name: str, value: object) -> float:
    """Return `value` as a float if it is a finite number (and not a bool); -0.0 becomes 0.0.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_finite("reward", 1)
        1.0
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(
            f"{name} = {excerpt(value)}", f"{_a(name)} is a number, not {type(value).__name__}", "Convert it."
        )
    if isinstance(value, int):
        check_int(name, value)
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} = {excerpt(value)}", f"{_a(name)} is finite", "Find out where it was computed.")
    return number


def check_int(name: str, value: object) -> int:
    """Return `value` as an int if it is a whole number (and not a bool) of at most 2,048 bits.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_int("exit code", -9)
        -9
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} = {excerpt(value)}", f"{_a(name)} is a whole number", "Pass an int.")
    if int(value).bit_length() > MAX_INT_BITS:
        raise InputError(
            f"{name} of {int(value).bit_length()} bits",
            f"a whole number has at most {MAX_INT_BITS} bits",
            "Keep it as a text.",
        )
    return int(value)


def check_reward(name: str, value: object) -> float:
    """Return `value` as a float if it is a reward: finite, and at most 1e100 in size, so that its square is finite too.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_reward("reward", -1)
        -1.0
    """
    number = check_finite(name, value)
    if abs(number) > _MAX_REWARD:
        raise InputError(
            f"{name} = {number}", f"{_a(name)} is between -{_MAX_REWARD:g} and {_MAX_REWARD:g}", "Scale it."
        )
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
    return int(value)  # type: ignore[call-overload, no-any-return]


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
    """Return `value` as a float if it is a finite number in the given range; `above` and `below` exclude their ends.

    Raises:
        InputError, or `error`: it is something else.

    Example:
        >>> check_number("decay", 0.9, above=0.0, at_most=1.0)
        0.9
    """
    try:
        number = check_finite(name, value)
    except InputError as refused:
        if error is InputError and next_step is None:
            raise
        raise error(refused.seen, refused.rule, next_step or refused.next_step) from None
    if (
        (at_least is not None and number < at_least)
        or (at_most is not None and number > at_most)
        or (above is not None and number <= above)
        or (below is not None and number >= below)
    ):
        rule = f"{name} must be a number{_bounds(at_least, at_most, above, below)}"
        raise error(f"{name} = {excerpt(value)}", rule, next_step or "Pass a number in this range.")
    return number


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
        raise error(f"{name} = {excerpt(value)}", f"{name} must be True or False", "Pass one of these.")
    return value


def check_one_of(name: str, value: _T, choices: Iterable[object], *, error: type[SeasonedError] = InputError) -> _T:
    """Return `value` if it is one of `choices`.

    Raises:
        InputError, or `error`: it is something else; the message suggests the closest choice.

    Example:
        >>> check_one_of("unit", "steps", ("steps", "states"))
        'steps'
    """
    known = list(choices)
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in known):
        names = [str(choice) for choice in known]
        raise error(
            f"{name} = {excerpt(value)}", f"{name} must be one of {', '.join(map(repr, known))}", suggest(value, names)
        )
    return value


def check_function(name: str, value: Callable[..., Any], takes: str) -> Callable[..., Any]:
    """Return `value` if it can be called; `takes` says with what and for what, such as `a text, and returns a text`.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_function("redact", str.upper, "takes a text, and returns a text")("a")
        'A'
    """
    if not callable(value):
        raise InputError(f"{name} = {excerpt(value)}", f"{name} must be a function: it {takes}", "Pass a function.")
    return value


def check_instance(name: str, value: object, kind: type[_T], rule: str, next_step: str) -> _T:
    """Return `value` if it is an instance of a class or a runtime-checkable protocol.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_instance("states", ["a"], list, "states must be a list", "Pass a list.")
        ['a']
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} = {excerpt(value)}", rule, next_step)
    return value


def check_texts(name: str, values: object, *, next_step: str = "Pass a list of texts.") -> tuple[str, ...]:
    """Return `values` as a tuple if it is a collection of texts (and not one text), each as `check_text` wants it.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_texts("tasks", ["checkout"])
        ('checkout',)
    """
    if isinstance(values, str | bytes) or not isinstance(values, Collection):
        raise InputError(f"{name} = {excerpt(values)}", f"{name} must be a collection of texts", next_step)
    return tuple(check_text(name, value) for value in values)


def check_logprobs(name: str, logprobs: object) -> dict[str, float]:
    """Return a copy of `logprobs` if it maps one action or more to logprobs: finite, at most 0, in nats.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_logprobs("prior", {"click(pay)": -0.5})
        {'click(pay)': -0.5}
    """
    if not isinstance(logprobs, Mapping) or not logprobs:
        raise InputError(
            f"{name} = {excerpt(logprobs)}", f"{_a(name)} maps actions to logprobs", "Pass a dict, or None."
        )
    checked = {
        check_text(f"action in the {name}", action): check_finite(f"{name}[{action!r}]", logprob)
        for action, logprob in logprobs.items()
    }
    for action, logprob in checked.items():
        if logprob > _LOGPROB_ROUNDING_NATS:
            raise InputError(
                f"{name}[{action!r}] = {logprob}",
                "a logprob is at most 0",
                "Turn logits into logprobs first: seasoned.core.log_softmax.",
            )
    return checked


def suggest(name: object, known: Iterable[str]) -> str:
    """Return the next step for a name that is not known, or is no text: the closest one, or all of them.

    Example:
        >>> suggest("defualt", ["default", "seed"])
        "Did you mean 'default'?"
    """
    import difflib  # for misspellings only

    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1) if isinstance(name, str) else []
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(names) or 'none'}."
