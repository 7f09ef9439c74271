"""Checks of the shapes of foreign JSON; each names the refused field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from seasoned.checks import check_number, check_reward, check_text
from seasoned.errors import InputError, excerpt
from seasoned.protocols.message_content import content_text, result_text

__all__ = [
    "CORRECT",
    "content_text",
    "describe_value",
    "last_time",
    "optional_list",
    "optional_record",
    "optional_reward",
    "optional_text",
    "record",
    "result_text",
    "text_key",
    "unix_time",
]

CORRECT = "Correct or remove it."
"""The next step of errors about one value of a document."""
_BAD_TIMES = "times that cannot be read"


def describe_value(value: object) -> str:
    """Return a value for a refusal: shortened; of a list or an object the type only."""
    return excerpt(value, 40) if value is None or isinstance(value, str | int | float) else f"a {type(value).__name__}"


def record(name: str, value: object) -> dict[str, Any]:
    """Return `value` if it is a JSON object. InputError otherwise."""
    if not isinstance(value, dict):
        raise InputError(f"{name} = {describe_value(value)}", f"{name} must be a JSON object", CORRECT)
    return value


def optional_record(name: str, value: object) -> dict[str, Any]:
    """Return `value` if it is a JSON object, an empty one for null. InputError otherwise."""
    return {} if value is None else record(name, value)


def optional_list(name: str, value: object) -> list[Any]:
    """Return `value` if it is a list, an empty one for null. InputError otherwise."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{name} = {describe_value(value)}", f"{name} must be a list", CORRECT)
    return value


def optional_text(name: str, value: object) -> str | None:
    """Return `value` if it is a text, None for null and blanks. InputError otherwise."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return check_text(name, value)


def text_key(name: str, value: object) -> str | None:
    """Return an id as text: a text, or a whole number in digits; None for null. InputError otherwise."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return optional_text(name, value)


def optional_reward(name: str, value: object) -> float | None:
    """Return a reward: a number, a number in a text, true as 1, false as 0; None for null. InputError otherwise."""
    if value is None or isinstance(value, bool):
        return None if value is None else float(value)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise InputError(
                f"{name} = {describe_value(value)}", f"{name} must be a number", "Name another field."
            ) from None
    return check_reward(name, check_number(name, value))


def unix_time(name: str, value: object) -> float | None:
    """Return a time in Unix seconds; None for null. InputError if it is not a time.

    A number is in seconds, or in milli-, micro- or nanoseconds if it would be later than the year 5138 otherwise. A
    text is ISO 8601; without an offset it is UTC.
    """
    if value is None:
        return None
    if isinstance(value, str) and not value.strip().lstrip("-").isdecimal():
        try:
            when = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InputError(f"{name} = {excerpt(value, 40)}", f"{name} must be a time in ISO 8601", CORRECT) from None
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    number = check_number(name, int(value) if isinstance(value, str) else value)
    for unit in (1.0, 1e3, 1e6, 1e9):
        if abs(number / unit) < 1e11:
            return number / unit
    raise InputError(f"{name} = {number:g}", f"{name} must be a time before the year 5138", CORRECT)


def last_time(times: Sequence[object], skipped: Counter[str]) -> float | None:
    """Return the last of the times that can be read, in Unix seconds; None if there is none.

    A time is no part of what happened: one that cannot be read is counted in `skipped`, and its episode is read.
    """
    for value in reversed([time for time in times if time not in (None, "")]):
        try:
            return unix_time("time", value)
        except (ValueError, OverflowError):
            skipped[_BAD_TIMES] += 1
    return None
