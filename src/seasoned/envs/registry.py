"""The environment kinds, and the one place that opens a specification such as `textworld:cooking?seed=3`.

To add an environment, write its class with an opener `(target, options) -> Environment`, and name the opener here.
"""

from __future__ import annotations

from pathlib import Path

from seasoned.checks import suggest
from seasoned.envs.env_options import parse_query
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Environment
from seasoned.registry import Registry

__all__ = ["ENVIRONMENTS", "open_env"]

ENVIRONMENTS = Registry(
    "environment kind",
    {
        "bandit": "seasoned.envs.bandit:open_bandit",
        "browser": "seasoned.envs.browser:open_browser",
        "files": "seasoned.envs.files:open_files",
        "grid": "seasoned.envs.grid:open_grid",
        "gymnasium": "seasoned.envs.gym:open_gymnasium",
        "jericho": "seasoned.envs.jericho:open_jericho",
        "python": "seasoned.envs.user_code:open_python",
        "support": "seasoned.envs.support:open_support",
        "textworld": "seasoned.envs.textworld:open_textworld",
    },
)
"""The openers by kind. Each takes the target and the options as texts; it is imported at its first use."""


def open_env(spec: str, *, games_dir: str | Path | None = None) -> Environment:
    """Return the environment that `spec` names; the environment's `name` is such a specification.

    Specifications are `textworld:CHALLENGE?option=value&...` or `textworld:FILE.z8`, `jericho:FILE`, `gymnasium:ID`,
    `browser:TASK`, `files:TASK`, `support:triage`, `grid:ROWS` with rows separated by `/`, `bandit:JSON` with mean
    rewards by context and action, and `python:package.module:callable`, which is called with the options as texts.
    Options are the arguments of the environment's class; the items of a list are separated by commas.

    Args:
        spec: the specification.
        games_dir: the folder of generated TextWorld games; a cache folder of the user if None.

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
    settings = {"games_dir": games_dir} if kind == "textworld" else {}
    environment: Environment = ENVIRONMENTS.load(kind)(target, parse_query(query), **settings)
    return environment
