"""From a specification, such as `textworld:cooking?seed=3`, to the environment it names."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from seasoned.checks import suggest
from seasoned.envs.bandit import ContextualBandit
from seasoned.envs.env_options import Option, option_values, parse_query
from seasoned.envs.grid import Grid
from seasoned.envs.textworld import TextWorldEnv
from seasoned.envs.textworld_games import CHALLENGES
from seasoned.envs.user_code import search_working_folder
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Environment

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

    Specs are `textworld:CHALLENGE?option=value&...` or `textworld:FILE.z8`, `jericho:FILE`, `gymnasium:ID`,
    `browser:TASK`, `files:TASK`, `support:triage`, `grid:ROWS` with rows parted by `/`, `bandit:JSON` with mean rewards
    by context and action, and `python:package.module:callable`, which is called with the options as texts. Options are
    the arguments of the environment's class; a list is parted by commas.

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
    return _opener(kind)(target, parse_query(query), games_dir)


def _open_textworld(target: str, given: dict[str, str], games_dir: str | Path | None) -> Environment:
    if not target.endswith(".z8") and target not in CHALLENGES:
        raise InputError(f"challenge {excerpt(target)}", "no challenge has this name", suggest(target, CHALLENGES))
    known = {**CHALLENGES.get(target, {}), **_TEXTWORLD}
    values = option_values(given, known, ("exclude",))
    if "exclude" in values:
        values["exclude"] = [word.strip() for word in values["exclude"].split(",") if word.strip()]
    return TextWorldEnv(target, games_dir=games_dir, **values)


def _open_grid(target: str, given: dict[str, str], _: str | Path | None) -> Environment:
    known = {**_SEEDED, "max_steps": Option(100, low=1)}
    numbers = ("goal_reward", "trap_reward", "step_cost", "slip")
    return Grid(target.split("/"), **option_values(given, known, numbers=numbers))


def _open_bandit(target: str, given: dict[str, str], _: str | Path | None) -> Environment:
    try:
        means = json.loads(unquote(target))
    except ValueError:
        raise InputError(
            f"bandit {excerpt(target)}", "a bandit's target is JSON", 'Write bandit:{"red":{"left":0.1,"right":0.9}}.'
        ) from None
    known = {**_SEEDED, "rounds": Option(1, low=1)}
    return ContextualBandit(means, **option_values(given, known, ("noise",), ("sigma",)))


def _open_python(target: str, given: dict[str, str], _: str | Path | None) -> Environment:
    """An environment of one's own: `python:package.module:callable?option=text`, from the working folder too."""
    module, _colon, attribute = target.partition(":")
    search_working_folder()
    try:
        make = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"environment python:{excerpt(target)} ({error})",
            "it names a module that can be imported and something in it to call",
            "Write python:package.module:MyEnvironment, in the module's folder, or with that on PYTHONPATH.",
        ) from error
    _check_options(target, make, given)
    environment = make(**given)
    if not isinstance(environment, Environment):
        raise InputError(
            f"python:{target} made {excerpt(environment)}",
            "an environment has name, task, max_score, reset, step and aclose",
            "Try seasoned.testing.check_environment on it.",
        )
    return environment


def _check_options(target: str, make: object, given: dict[str, str]) -> None:
    """Refuse options that it is not called with; an error inside it is its own."""
    if not callable(make):
        raise InputError(
            f"environment python:{excerpt(target)} is {excerpt(make)}",
            "it must be something to call",
            "Name the environment's class, or a function that makes one.",
        )
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # it does not say what it takes
        return
    try:
        signature.bind(**given)
    except TypeError as error:
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        known = [each.name for each in signature.parameters.values() if each.kind in by_name]
        unknown = [name for name in given if name not in known]
        raise InputError(
            f"environment python:{excerpt(target)} with the options {excerpt(given)}: {error}",
            f"its options must be {', '.join(known)}" if known else "it has no options",
            suggest(unknown[0], known) if unknown else "Give each as name=value after the question mark.",
        ) from error


Opener = Callable[[str, dict[str, str], str | Path | None], Environment]

_KINDS: dict[str, Opener | str] = {
    "bandit": _open_bandit,
    "browser": "seasoned.envs.browser:open_browser",
    "files": "seasoned.envs.files:open_files",
    "grid": _open_grid,
    "gymnasium": "seasoned.envs.gym:open_gymnasium",
    "jericho": "seasoned.envs.jericho:open_jericho",
    "python": _open_python,
    "support": "seasoned.envs.support:open_support",
    "textworld": _open_textworld,
}
"""What opens each kind, or where it is: loaded when asked for."""


def _opener(kind: str) -> Opener:
    known = _KINDS[kind]
    if callable(known):
        return known
    module, _colon, attribute = known.partition(":")
    opener: Opener = getattr(importlib.import_module(module), attribute)
    return opener
