"""What every environment promises."""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable
from typing import Any

from seasoned.errors import EnvError, excerpt
from seasoned.protocols import Environment, Observation
from seasoned.sync import Sync
from seasoned.testing.requirement import name_of
from seasoned.types import normalize_action

__all__ = ["check_environment"]

_LARGEST_SEED = 2**32 - 1
_TOLERANCE = 1e-9


def check_environment(make_env: Callable[[], Environment], episodes: int = 2, *, max_steps: int = 500) -> None:
    """Play an environment by a seeded random policy, twice, and check every observation.

    Checked: reset, step and aclose are `async def`; name, task and max_score; `step` before `reset` and after the end
    is refused; states are not blank; admissible actions are distinct and not empty before the end; an inadmissible
    action is refused; rewards are finite and add up to `score`, which is at most `max_score`; never terminated and
    truncated at once; two environments under equal seeds play alike; `reset` begins anew in the middle of an episode,
    and takes every seed of 32 bits. An environment that takes any text has `admissible` None.

    Args:
        make_env: builds a fresh environment; called three times.
        episodes: how many to play.
        max_steps: an episode that has not ended by then is left.

    Raises:
        EnvError: the first promise that is broken.
    """
    who = f"environment {name_of(make_env)}"
    traces: list[list[tuple[str, Observation]]] = []
    for _ in range(2):
        with Sync(make_env()) as env:
            if not isinstance(env._target, Environment):
                raise EnvError(who, "it has name, task, max_score, reset, step and aclose", "Add what is missing.")
            _check_async(who, env._target)
            _check_env_facts(who, env)
            _refused(who, env, "look", "step before reset")
            rng = random.Random(0)  # noqa: S311 - a test's choice of actions, no secret
            traces.append([seen for seed in range(episodes) for seen in _play(who, env, seed, max_steps, rng)])
    for index, (first, second) in enumerate(zip(*traces, strict=False)):
        if first != second:
            raise EnvError(
                f"{who}, observation {index}: {excerpt(first)} and then {excerpt(second)}",
                "two environments play alike under equal seeds and actions",
                "Draw all chance from the seed of reset, and sort what has no order.",
            )
    if len(traces[0]) != len(traces[1]):
        raise EnvError(who, "two environments play alike under equal seeds", "Draw all chance from the seed of reset.")
    with Sync(make_env()) as env:
        first = env.reset(seed=0)
        if first.admissible:
            env.step(first.admissible[0])
        if env.reset(seed=0) != first:
            raise EnvError(
                f"{who}, reset within an episode", "the same seed begins the same", "Clear all that a step set."
            )
        try:
            env.reset(seed=_LARGEST_SEED)
        except Exception as error:
            raise EnvError(
                f"{who}, reset(seed={_LARGEST_SEED}): {type(error).__name__}",
                "every seed of 32 bits begins an episode, since runs draw such seeds",
                "Take it modulo what the environment can use.",
            ) from error


def _check_async(who: str, environment: Environment) -> None:
    for name in ("reset", "step", "aclose"):
        if not inspect.iscoroutinefunction(getattr(environment, name)):
            raise EnvError(f"{who}, def {name}", f"{name} is `async def`", f"Write `async def {name}`.")


def _check_env_facts(who: str, env: Any) -> None:
    for fact in ("name", "task"):
        text = getattr(env, fact)
        if not isinstance(text, str) or not text.strip():
            raise EnvError(f"{who}, {fact} = {excerpt(text)}", f"a {fact} is a text, not blank", "Say what it is.")
    best = env.max_score
    if best is not None and not (isinstance(best, int | float) and math.isfinite(best)):
        raise EnvError(f"{who}, max_score = {excerpt(best)}", "max_score is finite, or None if unknown", "Return None.")


def _refused(who: str, env: Any, action: str, when: str) -> None:
    """Raise unless the environment refuses the action with EnvError."""
    try:
        env.step(action)
    except EnvError:
        return
    except Exception as error:
        raise EnvError(
            f"{who}, {when}: {type(error).__name__}", "it raises EnvError", "Check the turn first."
        ) from error
    raise EnvError(f"{who}, {when}: it was carried out", "it raises EnvError", "Refuse it before anything happens.")


def _play(who: str, env: Any, seed: int, max_steps: int, rng: random.Random) -> list[tuple[str, Observation]]:
    """Play one episode and check every observation."""
    seen: Observation = _observed(who, env.reset(seed=seed))
    if (seen.reward, seen.score, seen.terminated, seen.truncated) != (0.0, 0.0, False, False):
        raise EnvError(f"{who}, reset gave {excerpt(seen)}", "an episode begins with reward and score 0", "Clear them.")
    trace, total = [("", seen)], 0.0
    _check_observation(who, seen, total, env.max_score)
    for step in range(max_steps):
        if seen.admissible is not None and step == 0:
            _refused(who, env, "no such action \u2205", "an inadmissible action")
        action = "look" if seen.admissible is None else rng.choice(seen.admissible)
        seen = _observed(who, env.step(action))
        total += seen.reward
        trace.append((action, seen))
        _check_observation(f"{who}, step {step}", seen, total, env.max_score)
        if seen.terminated or seen.truncated:
            _refused(who, env, action, "step after the end")
            break
    return trace


def _observed(who: str, seen: object) -> Observation:
    """Return what the environment showed, if it is an Observation."""
    if not isinstance(seen, Observation):
        raise EnvError(
            f"{who}: {excerpt(seen)}",
            "reset and step return an Observation",
            "Return Observation(state, admissible, ...).",
        )
    return seen


def _check_observation(who: str, seen: Observation, total: float, best: float | None) -> None:
    """Raise at the first promise of `Observation` that is broken."""
    ended = seen.terminated or seen.truncated
    actions = seen.admissible
    distinct = actions is None or len({normalize_action(a) for a in actions}) == len(actions)
    slack = _TOLERANCE * max(1.0, abs(total))
    for holds, value, rule, next_step in (
        (
            isinstance(seen.state, str) and seen.state.strip(),
            seen.state,
            "a state is not blank",
            "Describe it in words.",
        ),
        (actions is None or isinstance(actions, tuple), actions, "admissible is a tuple, or None", "Make it a tuple."),
        (distinct, actions, "admissible actions are distinct", "Remove duplicates."),
        (actions is None or all(a.strip() for a in actions), actions, "an action is not blank", "Leave it out."),
        (actions is None or actions or ended, actions, "something is admissible before the end", "End the episode."),
        (not (seen.terminated and seen.truncated), seen, "terminated and truncated stay apart", "Terminated wins."),
        (math.isfinite(seen.reward), seen.reward, "a reward is finite", "Find out where it was computed."),
        (abs(seen.score - total) <= slack, seen.score, f"rewards add up to score ({total})", "Add them up."),
        (best is None or seen.score <= best + slack, seen.score, f"score is at most max_score ({best})", "Correct it."),
    ):
        if not holds:
            raise EnvError(f"{who}: {excerpt(value)}", rule, next_step)
