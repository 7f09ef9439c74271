"""JitRL's settings from plain data, such as a suite's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from seasoned.checks import suggest
from seasoned.core.exploration import EXPLORATION_RULES
from seasoned.errors import InputError, UnknownNameError, excerpt
from seasoned.policies.presets import preset
from seasoned.types import Backup

__all__ = ["preset_settings"]

_NONE = "none"


def preset_settings(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a preset and the changes to it, both checked.

    The entry `preset` is the name. Every other entry is a setting of `JitRLSettings`, with "none" for None, since TOML
    has no null. `exploration` may be a table with the name of a rule of `seasoned.core.exploration` and its values,
    `backup` a table with the values of a `Backup`.

    Raises:
        UnknownNameError: no preset, or no rule, has this name.
        InputError: a setting is unknown, or breaks its rule.

    Example:
        >>> preset_settings({"preset": "seed", "exploration": {"rule": "UCB", "c": 0.5}})
        ('seed', {'exploration': UCB(c=0.5)})
    """
    changes: dict[str, Any] = {name: None if value == _NONE else value for name, value in settings.items()}
    name: Any = changes.pop("preset", "default")
    if isinstance(rule := changes.get("exploration"), Mapping):
        values = dict(rule)
        changes["exploration"] = _rule_of(
            "exploration", EXPLORATION_RULES, values.pop("rule", "ExplorationBonus"), values
        )
    if isinstance(rule := changes.get("backup"), Mapping):
        changes["backup"] = _rule_of("backup", {"Backup": Backup}, "Backup", dict(rule))
    preset(name, **changes)
    return name, changes


def _rule_of(setting: str, kinds: Mapping[str, Callable[..., Any]], name: object, values: dict[str, Any]) -> Any:
    """Return the rule with this name and these values."""
    if not isinstance(name, str) or name not in kinds:
        raise UnknownNameError(f"{setting}: rule {excerpt(name)}", "no rule has this name", suggest(name, kinds))
    known = inspect.signature(kinds[name]).parameters
    for value in values:
        if value not in known:
            raise InputError(f"{setting}: {excerpt(value)}", f"{name} has no such value", suggest(value, known))
    missing = [each for each, value in known.items() if value.default is value.empty and each not in values]
    if missing:
        raise InputError(f"{setting}: no {missing[0]}", f"{name} needs it", f"Write {missing[0]} = ...")
    return kinds[name](**values)
