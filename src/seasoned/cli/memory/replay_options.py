"""What the commands that replay a memory share: the policy that is judged, and how numbers are shown."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from seasoned.cli.format.output import PIPE_WIDTH, echo_text
from seasoned.errors import InputError, excerpt
from seasoned.memory import Memory
from seasoned.policies import PRESETS
from seasoned.protocols import Policy

if TYPE_CHECKING:
    from seasoned.core import Interval

__all__ = [
    "as_read",
    "bounds",
    "echo_paragraph",
    "last_option",
    "policy_maker",
    "preset_option",
    "seed_option",
    "set_option",
]

_DUST = 1e-12

last_option = click.option(
    "--last", type=int, metavar="N", help="Decide only the last N episodes; the earlier ones still teach."
)
preset_option = click.option(
    "--policy", "policy", default="default", show_default=True, type=click.Choice(sorted(PRESETS)), help="The method."
)
set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of the policy; repeatable."
)
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all draws.")


def _parse_settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Settings as Python values: numbers, true, false and null as JSON writes them, everything else as text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, found, value = pair.partition("=")
        if not found or not name:
            raise InputError(f"--set {excerpt(pair)}", "a setting must be KEY=VALUE", "For example: --set beta=2")
        if name in settings:
            raise InputError(f"--set {excerpt(name)} twice", "each setting must be given once", "Leave one out.")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


def policy_maker(policy: str, settings: tuple[str, ...]) -> Callable[[Memory], Policy]:
    """Return what makes the policy over a memory, with some settings changed.

    Raises:
        InputError: a setting is not written as KEY=VALUE, or is given twice.
    """
    from seasoned.build import make_policy

    overrides = _parse_settings(settings)
    return lambda memory: make_policy(policy, memory, **overrides)


def as_read(value: float, form: str = ".4g") -> str:
    """Return a number as a person reads it, without the dust of rounding.

    Example:
        >>> as_read(1e-16), as_read(0.25, "+.4g")
        ('0', '+0.25')
    """
    return format(value if abs(value) > _DUST else 0.0, form)


def bounds(interval: Interval | None) -> str:
    """Return an interval's ends as a person reads them; `-` where there is none."""
    return "-" if interval is None else f"[{as_read(interval.low)}, {as_read(interval.high)}]"


def echo_paragraph(text: str, indent: str) -> None:
    """Print a text, broken into lines that fit a narrow terminal."""
    echo_text(textwrap.fill(text, PIPE_WIDTH - 1, initial_indent=indent, subsequent_indent=indent))
