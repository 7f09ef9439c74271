"""The conformance check of environments."""

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
    """Play an environment twice with a seeded random policy, and check every observation.

    Checked: reset, step and aclose are `async def`; name, task and max_score; `step` before `reset` and after the end
    is refused; states are not blank; admissible actions are distinct, and exist before the end; an inadmissible action
    is refused; rewards are finite and add up to `score`, which is at most `max_score`; an observation is not terminated
    and truncated at once; equal seeds give equal episodes; `reset` starts again in the middle of an episode, and
    accepts every seed of 32 bits. An environment that accepts any text has `admissible` None.

    Args:
        make_env: makes a new environment; called three times.
        episodes: number of episodes.
        max_steps: an episode without an end is left after this many steps.

    Raises:
        EnvError: the first violation.
    """
    subject = f"environment {name_of(make_env)}"
    traces: list[list[tuple[str, Observation]]] = []
    for _ in range(2):
        with Sync(make_env()) as env:
            if not isinstance(env._target, Environment):
                raise EnvError(
                    subject, "it has name, task, max_score, reset, step and aclose", "Add the missing members."
                )
            _check_async(subject, env._target)
            _check_env_facts(subject, env)
            _refused(subject, env, "look", "step before reset")
            rng = random.Random(0)  # noqa: S311 - a test's choice of actions, no secret
            traces.append([seen for seed in range(episodes) for seen in _play(subject, env, seed, max_steps, rng)])
    for index, (first, second) in enumerate(zip(*traces, strict=False)):
        if first != second:
            raise EnvError(
                f"{subject}, observation {index}: {excerpt(first)} and then {excerpt(second)}",
                "equal seeds and actions give equal observations",
                "Draw all random numbers from the seed of reset, and sort unordered collections.",
            )
    if len(traces[0]) != len(traces[1]):
        raise EnvError(subject, "equal seeds give equal episodes", "Draw all random numbers from the seed of reset.")
    with Sync(make_env()) as env:
        first = env.reset(seed=0)
        if first.admissible:
            env.step(first.admissible[0])
        if env.reset(seed=0) != first:
            raise EnvError(
                f"{subject}, reset within an episode",
                "equal seeds give equal first observations",
                "Reset all state that a step changed.",
            )
        try:
            env.reset(seed=_LARGEST_SEED)
        except Exception as error:
            raise EnvError(
                f"{subject}, reset(seed={_LARGEST_SEED}): {type(error).__name__}",
                "reset accepts every seed of 32 bits, since runs draw such seeds",
                "Reduce it modulo the largest seed of the environment.",
            ) from error


def _check_async(subject: str, environment: Environment) -> None:
    for name in ("reset", "step", "aclose"):
        if not inspect.iscoroutinefunction(getattr(environment, name)):
            raise EnvError(f"{subject}, def {name}", f"{name} is `async def`", f"Write `async def {name}`.")


def _check_env_facts(subject: str, env: Any) -> None:
    for fact in ("name", "task"):
        text = getattr(env, fact)
        if not isinstance(text, str) or not text.strip():
            raise EnvError(
                f"{subject}, {fact} = {excerpt(text)}", f"a {fact} is a text, not blank", "Set it to a text."
            )
    best = env.max_score
    if best is not None and not (isinstance(best, int | float) and math.isfinite(best)):
        raise EnvError(
            f"{subject}, max_score = {excerpt(best)}", "max_score is finite, or None if unknown", "Return None."
        )


def _refused(subject: str, env: Any, action: str, when: str) -> None:
    """Raise unless the environment refuses the action with EnvError."""
    try:
        env.step(action)
    except EnvError:
        return
    except Exception as error:
        raise EnvError(
            f"{subject}, {when}: {type(error).__name__}", "it raises EnvError", "Check the turn first."
        ) from error
    raise EnvError(f"{subject}, {when}: it was executed", "it raises EnvError", "Refuse it before any change.")


def _play(subject: str, env: Any, seed: int, max_steps: int, rng: random.Random) -> list[tuple[str, Observation]]:
    """Play one episode and check every observation."""
    seen: Observation = _observed(subject, env.reset(seed=seed))
    if (seen.reward, seen.score, seen.terminated, seen.truncated) != (0.0, 0.0, False, False):
        raise EnvError(
            f"{subject}, reset gave {excerpt(seen)}", "an episode begins with reward and score 0", "Set them to 0."
        )
    trace, total = [("", seen)], 0.0
    _check_observation(subject, seen, total, env.max_score)
    for step in range(max_steps):
        if seen.admissible is not None and step == 0:
            _refused(subject, env, "no such action \u2205", "an inadmissible action")
        action = "look" if seen.admissible is None else rng.choice(seen.admissible)
        seen = _observed(subject, env.step(action))
        total += seen.reward
        trace.append((action, seen))
        _check_observation(f"{subject}, step {step}", seen, total, env.max_score)
        if seen.terminated or seen.truncated:
            _refused(subject, env, action, "step after the end")
            break
    return trace


def _observed(subject: str, seen: object) -> Observation:
    """Return the observation, or raise if it is something else."""
    if not isinstance(seen, Observation):
        raise EnvError(
            f"{subject}: {excerpt(seen)}",
            "reset and step return an Observation",
            "Return Observation(state, admissible, ...).",
        )
    return seen


def _check_observation(subject: str, seen: Observation, total: float, best: float | None) -> None:
    """Raise at the first violation in an observation."""
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
        (actions is None or actions or ended, actions, "an action is admissible before the end", "End the episode."),
        (
            not (seen.terminated and seen.truncated),
            seen,
            "an observation is not terminated and truncated at once",
            "Set terminated only.",
        ),
        (math.isfinite(seen.reward), seen.reward, "a reward is finite", "Check its computation."),
        (abs(seen.score - total) <= slack, seen.score, f"rewards add up to score ({total})", "Add them up."),
        (best is None or seen.score <= best + slack, seen.score, f"score is at most max_score ({best})", "Correct it."),
    ):
        if not holds:
            raise EnvError(f"{subject}: {excerpt(value)}", rule, next_step)
