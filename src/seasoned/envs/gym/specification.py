"""The opener of `gymnasium:Taxi-v4?seed=3`: toy text in words, other environments in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seasoned.checks import suggest
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.gym.gymnasium_env import GymnasiumEnv
from seasoned.envs.gym.toy_text import toy_family
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Environment
from seasoned.registry import load_extra

__all__ = ["open_gymnasium"]

_SEED = Option(0, high=2**31 - 1)
_ONLY_IF_GIVEN = ("size", "map_seed")
"""Options of a random map: other maps refuse them, so their defaults are not filled in."""


def open_gymnasium(target: str, options: Mapping[str, str]) -> Environment:
    """Return the environment of a registered id.

    FrozenLake, CliffWalking, Taxi and Blackjack have texts and options of their own, see `seasoned.envs.gym.toy_text`.
    Any other environment with discrete actions and few numbers in its observations can be opened; its actions are
    called `action 0`, `action 1`, ... All environments take `seed` (0), the seed of the first episode, and `max_steps`,
    which replaces Gymnasium's own limit.

    Args:
        target: a registered id, such as `FrozenLake-v1`.
        options: the options as texts by name.

    Raises:
        InputError: the id or an option is unknown, a value is not allowed, or observations have no default text.
        MissingExtraError: Gymnasium is not installed.
        EnvError: Gymnasium cannot make the environment.
    """
    gymnasium = load_extra("gymnasium", "gymnasium")
    if target not in gymnasium.registry and ":" not in target:
        raise InputError(
            f"environment {excerpt(target)}",
            f"Gymnasium {gymnasium.__version__} has no environment of this id",
            suggest(target, gymnasium.registry),
        )
    family = toy_family(target)
    known = family.options if family else {"max_steps": Option(None, low=1)}
    values = option_values(options, {"seed": _SEED, **known})
    query = "&".join(f"{name}={int(v) if isinstance(v, bool) else v}" for name, v in values.items())
    name = f"gymnasium:{target}" + (f"?{query}" if query else "")
    defaults: dict[str, Any] = {key: option.default for key, option in known.items() if key not in _ONLY_IF_GIVEN}
    full = {"seed": 0, **defaults, **values}
    arguments = family.arguments(full) if family else {}
    if full["max_steps"] is not None:
        arguments["max_episode_steps"] = full["max_steps"]
    env = _make(gymnasium, target, arguments)
    if family is None:
        task = f"Earn as much reward as you can in {target}."
        return GymnasiumEnv(env, task=task, name=name, seed=full["seed"])
    description = family.description(env, full)
    return GymnasiumEnv(
        env,
        task=description.task,
        describe=description.describe,
        actions=description.actions,
        name=name,
        max_score=description.max_score,
        seed=full["seed"],
    )


def _make(gymnasium: Any, env_id: str, arguments: Mapping[str, Any]) -> Any:
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **arguments)
    except Exception as error:
        raise EnvError(
            f"gymnasium.make({env_id!r}) with {dict(arguments)} ({type(error).__name__}: {excerpt(str(error), 200)})",
            "Gymnasium could not make the environment",
            "See its own message; a part of Gymnasium may need installing, or a newer version.",
        ) from error
