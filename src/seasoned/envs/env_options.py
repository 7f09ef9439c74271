"""Options of environments, as a specification spells them: `name=value&...`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seasoned.checks import suggest
from seasoned.envs.episode_guard import check_whole
from seasoned.errors import InputError, excerpt

__all__ = ["Option", "OptionValue", "option_values", "parse_query"]

OptionValue = int | bool | str | None

_FLAGS = {"0": False, "1": True, "false": False, "true": True, "False": False, "True": True}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a challenge: a whole number in [low, high], a flag, or one of `choices`."""

    default: OptionValue
    low: int = 0
    high: int | None = None
    choices: tuple[OptionValue, ...] = ()

    def read(self, name: str, value: object) -> OptionValue:
        """Return the value that `value`, perhaps a text from a spec, stands for.

        Raises:
            InputError: it is not one that the option allows.

        Example:
            >>> Option(False).read("cook", "1"), Option(1, high=5).read("take", "2")
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
    """Return the options that a query gives, each once.

    Raises:
        InputError: a pair is not `name=value`, or a name is given twice.

    Example:
        >>> parse_query("seed=3&max_steps=30")
        {'seed': '3', 'max_steps': '30'}
    """
    given: dict[str, str] = {}
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not name or not equals or not value or name in given:
            raise InputError(f"option {excerpt(pair)}", "an option is name=value, once", "Write max_steps=30, say.")
        given[name] = value
    return given


def option_values(
    given: Mapping[str, str], known: Mapping[str, Option], texts: Sequence[str] = (), numbers: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the values of options, by their kind: `known` ones, plain texts, and plain numbers.

    Raises:
        InputError: an unknown option, or a value that is not allowed.

    Example:
        >>> option_values({"seed": "3", "slip": "0.5"}, {"seed": Option(0)}, numbers=("slip",))
        {'seed': 3, 'slip': 0.5}
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name in known:
            values[name] = known[name].read(name, text)
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
