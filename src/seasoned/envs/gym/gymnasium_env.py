"""Gymnasium environments with discrete actions, as environments with named actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from seasoned.checks import check_instance, check_number, check_text, check_whole
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.envs.gym.spaces import space_text
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Observation
from seasoned.registry import load_extra
from seasoned.types import normalize_action

__all__ = ["GymnasiumEnv", "name_actions"]


class GymnasiumEnv:
    """A Gymnasium environment with observations as text and named actions.

    `terminated` and `truncated` are Gymnasium's; if both are set, the episode is terminated. If `info["action_mask"]`
    has one entry per action, only the actions that it allows are admissible.

    Args:
        env: a `gymnasium.Env` with a `Discrete` action space; `aclose` closes it.
        describe: returns the text of an observation, equal for equal situations; by default `obs=3` or
            `obs[0]=0.25 obs[1]=-1` for small spaces, see `seasoned.envs.gym.spaces.space_text`.
        actions: one name for each action, in their order; `action 0`, `action 1`, ... if None.
        task: the task in words.
        name: `gymnasium:` and the registered id if None.
        max_score: the best possible score, or None if unknown.
        max_steps: the episode is truncated after this many steps, in addition to Gymnasium's own limit; None for no
            limit.
        seed: the seed of the first episode if `reset` gets none; later episodes continue its random sequence.

    Raises:
        InputError: `env` is no such environment, or the names do not fit its actions.
        MissingExtraError: Gymnasium is not installed.
    """

    def __init__(
        self,
        env: Any,
        *,
        task: str,
        describe: Callable[[Any], str] | None = None,
        actions: Sequence[str] | None = None,
        name: str | None = None,
        max_score: float | None = None,
        max_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        gymnasium = load_extra("gymnasium", "gymnasium")
        check_instance("env", env, gymnasium.Env, "env is a gymnasium.Env", "Pass gymnasium.make(...).")
        self._task = check_text("task", task)
        self._actions = name_actions(env.action_space, actions)
        self._describe = describe or space_text(env.observation_space, "obs")
        spec = env.spec
        self._name = check_text("name", name or f"gymnasium:{spec.id if spec else type(env.unwrapped).__name__}")
        self._max_score = None if max_score is None else check_number("max_score", max_score)
        self._env, self._start = env, int(env.action_space.start)
        self._seed: int | None = check_whole("seed", seed, 0)
        self._guard = EpisodeGuard(max_steps)

    @property
    def name(self) -> str:
        """The specification that opens the environment again, if it is registered and has the default texts."""
        return self._name

    @property
    def task(self) -> str:
        """The task in words."""
        return self._task

    @property
    def max_score(self) -> float | None:
        """The best possible score, or None if unknown."""
        return self._max_score

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode; a seed is passed to Gymnasium, and restarts its random sequence.

        Raises:
            EnvError: the environment was closed, or failed.
        """
        self._guard.check_open()
        chosen, self._seed = self._seed if seed is None else check_whole("seed", seed, 0), None
        observation, info = self._call("reset", seed=chosen)
        return self._guard.begin(self._describe_state(observation), self._admissible(info))

    async def step(self, action: str) -> Observation:
        """Execute the action with this name.

        Raises:
            EnvError: before `reset`, after the end, for an inadmissible action, or the environment failed.
        """
        index = self._actions.index(self._guard.resolve_action(action))
        observation, reward, terminated, truncated, info = self._call("step", self._start + index)
        ended = bool(terminated or truncated)
        result = self._guard.observe(
            self._describe_state(observation),
            () if ended else self._admissible(info),
            reward=float(reward),
            terminated=ended,
        )
        return result if terminated or not truncated else replace(result, terminated=False, truncated=True)

    async def aclose(self) -> None:
        """Close the Gymnasium environment, and refuse every later call."""
        self._guard.close()
        self._env.close()

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self._env, method)(*args, **kwargs)
        except Exception as error:
            raise EnvError(
                f"{self._name}, {method} ({type(error).__name__}: {excerpt(str(error))})",
                "the Gymnasium environment executes its calls",
                "See its own message above; reset, or repair the environment.",
            ) from error

    def _describe_state(self, observation: Any) -> str:
        return check_text("state", self._describe(observation))

    def _admissible(self, info: Any) -> Iterable[str]:
        mask = info.get("action_mask")
        if mask is None or len(mask) != len(self._actions):
            return self._actions
        allowed = tuple(name for name, allows in zip(self._actions, mask, strict=True) if allows)
        if not allowed:
            raise EnvError(
                f"{self._name}: action_mask is all 0",
                "some action is allowed before the end",
                "Terminate the episode there, or leave the mask out.",
            )
        return allowed


def name_actions(space: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of a `Discrete` space's actions, in order.

    Raises:
        InputError: the space is not discrete, the number of names is wrong, or names are blank or equal.
        MissingExtraError: Gymnasium is not installed.
    """
    spaces = load_extra("gymnasium.spaces", "gymnasium")
    if not isinstance(space, spaces.Discrete):
        raise InputError(
            f"action space {excerpt(space)}",
            "named actions need a Discrete action space",
            "Wrap the environment in one that offers a few discrete actions, or record it with record_gymnasium.",
        )
    if names is None:
        return tuple(f"action {index}" for index in range(int(space.n)))
    texts = () if isinstance(names, str) else tuple(check_text("action", text) for text in names)
    if len(texts) != space.n or len({normalize_action(text) for text in texts}) != len(texts):
        raise InputError(
            f"actions = {excerpt(names)}",
            f"actions are {space.n} names that differ in more than case and blanks",
            "Give one name for each action, in the environment's order.",
        )
    return texts
