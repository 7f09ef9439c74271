"""The options of environments, as a specification writes them: `name=value&...`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seasoned.checks import check_whole, suggest
from seasoned.errors import InputError, excerpt

__all__ = ["Option", "OptionValue", "option_values", "parse_query"]

OptionValue = int | bool | str | None

_FLAGS = {"0": False, "1": True, "false": False, "true": True, "False": False, "True": True}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of an environment: a whole number in [low, high], a flag, or one of `choices`."""

    default: OptionValue
    low: int = 0
    high: int | None = None
    choices: tuple[OptionValue, ...] = ()

    def parse(self, name: str, value: object) -> OptionValue:
        """Return the option's value from `value`, which may be the text of a specification.

        Raises:
            InputError: the option does not allow the value.

        Example:
            >>> Option(False).parse("cook", "1"), Option(1, high=5).parse("take", "2")
            (True, 2)
        """
        if isinstance(self.default, bool):
            flag = value if isinstance(value, bool) else _FLAGS.get(str(value))
            if flag is None:
                raise InputError(f"{name} = {excerpt(value)}", f"{name} is on or off", f"Write {name}=1 or {name}=0.")
            return flag
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if self.choices:
            if number not in self.choices or isinstance(number, bool):
                known = ", ".join(str(choice) for choice in self.choices if choice is not None)
                raise InputError(f"{name} = {excerpt(value)}", f"{name} is one of {known}", "Choose one of these.")
            return number if isinstance(number, int | str) else None
        return check_whole(name, number, self.low, self.high)


def parse_query(query: str) -> dict[str, str]:
    """Return the options of a query, as texts by name.

    Raises:
        InputError: a pair is not `name=value`, or a name occurs twice.

    Example:
        >>> parse_query("seed=3&max_steps=30")
        {'seed': '3', 'max_steps': '30'}
    """
    options: dict[str, str] = {}
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not name or not equals or not value or name in options:
            raise InputError(f"option {excerpt(pair)}", "an option is name=value, once", "Write max_steps=30, say.")
        options[name] = value
    return options


def option_values(
    given: Mapping[str, str], known: Mapping[str, Option], texts: Sequence[str] = (), numbers: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the values of the options that a specification gives.

    Args:
        given: the options as texts by name, from `parse_query`.
        known: the options that are whole numbers, flags or choices.
        texts: the names of options that are plain texts.
        numbers: the names of options that are real numbers.

    Raises:
        InputError: an option is unknown, or its value is not allowed.

    Example:
        >>> option_values({"seed": "3", "slip": "0.5"}, {"seed": Option(0)}, numbers=("slip",))
        {'seed': 3, 'slip': 0.5}
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name in known:
            values[name] = known[name].parse(name, text)
        elif name in texts:
            values[name] = text
        elif name in numbers:
            try:
                values[name] = float(text)
            except ValueError:
                raise InputError(f"{name} = {excerpt(text)}", f"{name} is a number", f"Try {name}=0.1.") from None
        else:
            raise InputError(f"option {excerpt(name)}", "no such option", suggest(name, [*known, *texts, *numbers]))
    return values
