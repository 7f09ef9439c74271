"""The environment kinds, and the one place that opens a specification such as `textworld:cooking?seed=3`.

To add an environment, write its class with an opener `(target, options) -> Environment`, and add the opener and the
forms of its specifications here.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import NamedTuple

from seasoned.checks import suggest
from seasoned.envs.env_options import parse_query
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Environment
from seasoned.registry import Registry

__all__ = ["ENVIRONMENTS", "ENVIRONMENT_SPECIFICATIONS", "open_env"]


class _Kind(NamedTuple):
    """The opener of a kind of environment, and the forms of its specifications."""

    path: str
    forms: tuple[str, ...]


_KINDS = {
    "bandit": _Kind("seasoned.envs.bandit:open_bandit", ("bandit:JSON",)),
    "browser": _Kind("seasoned.envs.browser:open_browser", ("browser:TASK",)),
    "files": _Kind("seasoned.envs.files:open_files", ("files:TASK",)),
    "grid": _Kind("seasoned.envs.grid:open_grid", ("grid:ROWS",)),
    "gymnasium": _Kind("seasoned.envs.gym:open_gymnasium", ("gymnasium:ID",)),
    "intents": _Kind("seasoned.envs.intents:open_intents", ("intents:FOLDER",)),
    "jericho": _Kind("seasoned.envs.jericho:open_jericho", ("jericho:FILE",)),
    "python": _Kind("seasoned.envs.user_code:open_python", ("python:package.module:callable",)),
    "support": _Kind("seasoned.envs.support:open_support", ("support:triage",)),
    "textworld": _Kind("seasoned.envs.textworld:open_textworld", ("textworld:CHALLENGE", "textworld:FILE.z8")),
}

ENVIRONMENTS = Registry("environment kind", {name: kind.path for name, kind in _KINDS.items()})
"""The openers by kind. Each takes the target and the options as texts; it is imported at its first use."""

ENVIRONMENT_SPECIFICATIONS = tuple(form for kind in _KINDS.values() for form in kind.forms)
"""The forms of a specification, without options. The opener of each kind describes its target and its options."""


def open_env(spec: str, *, games_dir: str | Path | None = None) -> Environment:
    """Return the environment that `spec` names; the environment's `name` is such a specification.

    A specification is one of `ENVIRONMENT_SPECIFICATIONS`, with `?option=value&...` after it for options, which are the
    arguments of the environment's class; the items of a list are separated by commas.

    Args:
        spec: the specification.
        games_dir: the folder of generated games, for a kind whose opener takes one; a cache folder of the user if None.

    Raises:
        InputError: no environment has this name, or the environment has no such option.
        MissingExtraError: the environment needs an extra that is not installed.
        EnvError: the environment cannot be opened.

    Example:
        >>> open_env("grid:S.G?max_steps=10").name
        'grid:S.G?max_steps=10'
    """
    kinds = ENVIRONMENTS.names()
    if not isinstance(spec, str) or ":" not in spec:
        raise InputError(
            f"environment {excerpt(spec)}", "a specification is kind:target?option=value", suggest(str(spec), kinds)
        )
    kind, _, rest = spec.partition(":")
    target, _, query = rest.partition("?")
    if kind not in kinds:
        raise InputError(f"environment {excerpt(spec)}", f"no environment is called {kind!r}", suggest(kind, kinds))
    opener = ENVIRONMENTS.load(kind)
    settings = {"games_dir": games_dir} if "games_dir" in inspect.signature(opener).parameters else {}
    environment: Environment = opener(target, parse_query(query), **settings)
    return environment
