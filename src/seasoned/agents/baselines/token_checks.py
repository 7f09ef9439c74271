"""How long a text is (`seasoned.states.text_budget`), and numbers that a baseline is given."""

from __future__ import annotations

from seasoned.checks import check_number
from seasoned.errors import InputError, excerpt
from seasoned.states.text_budget import estimated_tokens, lines_within, one_line

__all__ = ["check_fraction", "check_whole", "estimated_tokens", "lines_within", "one_line"]


def check_whole(name: str, value: object, least: int = 1) -> int:
    """Return `value` if it is a whole number, at least `least`.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_whole("k", 3)
        3
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(
            f"{name} = {excerpt(value)}", f"{name} is a whole number, at least {least}", f"Try {max(3, least)}."
        )
    return value


def check_fraction(name: str, value: object, most: float = float("inf")) -> float:
    """Return `value` if it is a finite number from 0 to `most`.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_fraction("b", 0.75, 1.0)
        0.75
    """
    number = check_number(name, value)
    if not 0.0 <= number <= most:
        rule = f"{name} is at least 0" if most == float("inf") else f"{name} is in [0, {most:g}]"
        raise InputError(f"{name} = {number:g}", rule, "Change it, or leave it out.")
    return number
