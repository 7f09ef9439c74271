"""From `gymnasium:Taxi-v4?seed=3` to the environment: toy text in words, any other in its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seasoned.checks import suggest
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.gym.gymnasium_env import GymnasiumEnv
from seasoned.envs.gym.toy_text import toy_of
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Environment
from seasoned.registry import load_extra

__all__ = ["open_gymnasium"]

_SEED = Option(0, high=2**31 - 1)
_ONLY_IF_GIVEN = ("size", "map_seed")
"""Options of a random map: refused with another, so their defaults are not filled in."""


def open_gymnasium(target: str, given: Mapping[str, str], _: str | Path | None = None) -> Environment:
    """Return the environment of a registered id.

    FrozenLake, CliffWalking, Taxi and Blackjack speak in words and take options of their own, see
    `seasoned.envs.gym.toy_text`. Any other environment with countable actions and few numbers in its observations opens
    too; its actions are called `action 0`, `action 1`, ... All take `seed` (0), of the first episode, and `max_steps`,
    which replaces Gymnasium's own limit.

    Args:
        target: a registered id, such as `FrozenLake-v1`.
        given: the options, as a specification spells them.

    Raises:
        InputError: an unknown id or option, a value that is not allowed, or no text for its observations.
        MissingExtraError: Gymnasium is not installed.
        EnvError: Gymnasium cannot make it.
    """
    gymnasium = load_extra("gymnasium", "gymnasium")
    if target not in gymnasium.registry and ":" not in target:
        raise InputError(
            f"environment {excerpt(target)}",
            f"Gymnasium {gymnasium.__version__} has no environment of this id",
            suggest(target, gymnasium.registry),
        )
    toy = toy_of(target)
    options = toy.options if toy else {"max_steps": Option(None, low=1)}
    values = option_values(given, {"seed": _SEED, **options})
    query = "&".join(f"{name}={int(v) if isinstance(v, bool) else v}" for name, v in values.items())
    name = f"gymnasium:{target}" + (f"?{query}" if query else "")
    defaults: dict[str, Any] = {key: option.default for key, option in options.items() if key not in _ONLY_IF_GIVEN}
    full = {"seed": 0, **defaults, **values}
    arguments = toy.arguments(full) if toy else {}
    if full["max_steps"] is not None:
        arguments["max_episode_steps"] = full["max_steps"]
    env = _make(gymnasium, target, arguments)
    if toy is None:
        task = f"Earn as much reward as you can in {target}."
        return GymnasiumEnv(env, task=task, name=name, seed=full["seed"])
    told = toy.words(env, full)
    return GymnasiumEnv(
        env,
        task=told.task,
        describe=told.describe,
        actions=told.actions,
        name=name,
        max_score=told.max_score,
        seed=full["seed"],
    )


def _make(gymnasium: Any, env_id: str, arguments: Mapping[str, Any]) -> Any:
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **arguments)
    except Exception as error:
        raise EnvError(
            f"gymnasium.make({env_id!r}) with {dict(arguments)} ({type(error).__name__}: {excerpt(str(error), 200)})",
            "Gymnasium could not make it",
            "See its own message; a part of Gymnasium may need installing, or a newer version.",
        ) from error
