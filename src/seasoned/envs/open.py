"""From a specification, such as `textworld:cooking?seed=3`, to the environment it names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from seasoned.envs.bandit import ContextualBandit
from seasoned.envs.games import CHALLENGES, Option
from seasoned.envs.grid import Grid
from seasoned.envs.textworld import TextWorldEnv
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Environment
from seasoned.registry import suggest

__all__ = ["open_env"]

_TEXTWORLD = {
    "seed": Option(0, high=2**31 - 1),
    "max_steps": Option(50, low=1),
    "show_recipe": Option(True),
    "show_objective": Option(False),
    "show_feedback": Option(False),
    "free_text": Option(False),
}
_SEEDED = {"seed": Option(0, high=2**31 - 1)}


def open_env(spec: str, *, games_dir: str | Path | None = None) -> Environment:
    """Return the environment that `spec` names; its `name` is such a spec.

    Specs are `textworld:CHALLENGE?option=value&...`, `textworld:FILE.z8`, `grid:ROWS` with rows parted by `/`, and
    `bandit:JSON` with mean rewards by context and action. Options are the arguments of `TextWorldEnv`, `Grid` and
    `ContextualBandit`; a list is parted by commas.

    Args:
        spec: the specification.
        games_dir: where generated TextWorld games are kept; a cache folder of the user if None.

    Raises:
        InputError: the spec names no environment, or an option that it does not have.
        MissingExtraError: the environment needs an extra that is not installed.
        EnvError: the environment cannot be made.

    Example:
        >>> open_env("grid:S.G?max_steps=10").name
        'grid:S.G?max_steps=10'
    """
    if not isinstance(spec, str) or ":" not in spec:
        raise InputError(
            f"environment {excerpt(spec)}", "a specification is kind:target?option=value", suggest(str(spec), _KINDS)
        )
    kind, _, rest = spec.partition(":")
    target, _, query = rest.partition("?")
    if kind not in _KINDS:
        raise InputError(f"environment {excerpt(spec)}", f"no environment is called {kind!r}", suggest(kind, _KINDS))
    return _KINDS[kind](target, _parse(query), games_dir)


def _parse(query: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not name or not equals or not value or name in given:
            raise InputError(f"option {excerpt(pair)}", "an option is name=value, once", "Write max_steps=30, say.")
        given[name] = value
    return given


def _read(given: dict[str, str], known: dict[str, Option], texts: tuple[str, ...], numbers: tuple[str, ...]) -> Any:
    """The values of options, by their kind; an unknown one is refused."""
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


def _open_textworld(target: str, given: dict[str, str], games_dir: str | Path | None) -> Environment:
    if not target.endswith(".z8") and target not in CHALLENGES:
        raise InputError(f"challenge {excerpt(target)}", "no challenge has this name", suggest(target, CHALLENGES))
    known = {**CHALLENGES.get(target, {}), **_TEXTWORLD}
    values = _read(given, known, ("exclude",), ())
    if "exclude" in values:
        values["exclude"] = [word.strip() for word in values["exclude"].split(",") if word.strip()]
    return TextWorldEnv(target, games_dir=games_dir, **values)


def _open_grid(target: str, given: dict[str, str], _: str | Path | None) -> Environment:
    known = {**_SEEDED, "max_steps": Option(100, low=1)}
    numbers = ("goal_reward", "trap_reward", "step_cost", "slip")
    return Grid(target.split("/"), **_read(given, known, (), numbers))


def _open_bandit(target: str, given: dict[str, str], _: str | Path | None) -> Environment:
    try:
        means = json.loads(unquote(target))
    except ValueError:
        raise InputError(
            f"bandit {excerpt(target)}", "a bandit's target is JSON", 'Write bandit:{"red":{"left":0.1,"right":0.9}}.'
        ) from None
    known = {**_SEEDED, "rounds": Option(1, low=1)}
    return ContextualBandit(means, **_read(given, known, ("noise",), ("sigma",)))


_KINDS: dict[str, Callable[[str, dict[str, str], str | Path | None], Environment]] = {
    "bandit": _open_bandit,
    "grid": _open_grid,
    "textworld": _open_textworld,
}
