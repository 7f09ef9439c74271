"""A recorder for existing Gymnasium loops: each episode is committed to memory when it ends."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol

from seasoned.checks import check_text
from seasoned.envs.gym.gymnasium_env import name_actions
from seasoned.envs.gym.spaces import space_text
from seasoned.errors import InputError, excerpt
from seasoned.registry import load_extra
from seasoned.types import Ending

__all__ = ["Recorder", "RecordingMemory", "record_gymnasium"]


class Recorder(Protocol):
    """The result of `memory.episode(...)`: a context manager that commits its recorded steps on exit."""

    ending: Ending
    final_state: str | None

    def record(self, state: str, decision: str, reward: float = 0.0) -> None:
        """Add an executed step."""
        ...

    def __len__(self) -> int: ...

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class RecordingMemory(Protocol):
    """The store of recorded episodes: a `Memory`, or another object with this method."""

    def episode(self, task: str) -> Any:
        """Return a recorder of one episode."""
        ...


def record_gymnasium(
    env: Any,
    memory: RecordingMemory,
    *,
    task: str,
    describe: Callable[[Any], str] | None = None,
    actions: Sequence[str] | Callable[[Any], str] | None = None,
) -> Any:
    """Return `env` in a `gymnasium.Wrapper` that records every episode played through it; it changes nothing else.

    An episode is committed, whole, at the step that is `terminated` or `truncated`. An episode that ends earlier, by an
    exception of the environment, by `reset` or by `close` (or the end of `with`), is committed as `aborted`: it is
    stored and never retrieved. An episode without steps is not stored. The wrapper's `episode` is the recorder of the
    current or the last episode: after the commit, `env.episode.id` is the id for `memory.feedback`.

    Args:
        env: a `gymnasium.Env`; not a vector environment, which resets by itself.
        memory: a `Memory`, or another object with `episode(task=...)`.
        task: the task in words.
        describe: returns the text of an observation, equal for equal situations; small spaces have a default.
        actions: one name for each `Discrete` action, or a function that names any action. By default `action 0`, ...
            for a `Discrete` space, and `action[0]=0.5 ...` for other small ones.

    Raises:
        InputError: `env` is no such environment, or its observations or actions have no default text.
        MissingExtraError: Gymnasium is not installed.
    """
    gymnasium = load_extra("gymnasium", "gymnasium")
    if not isinstance(env, gymnasium.Env):
        raise InputError(
            f"env = {excerpt(env)}",
            "env is a gymnasium.Env with one episode at a time",
            "Wrap each environment by itself.",
        )
    if not callable(getattr(memory, "episode", None)):
        raise InputError(f"memory = {excerpt(memory)}", "memory has episode(task=...)", 'Pass Memory.open("agent.db").')
    describe_state = describe or space_text(env.observation_space, "obs")
    return _wrapper_class()(
        env, memory, check_text("task", task), describe_state, _action_namer(env.action_space, actions)
    )


def _action_namer(space: Any, actions: Sequence[str] | Callable[[Any], str] | None) -> Callable[[Any], str]:
    if callable(actions):
        return actions
    if actions is None and not isinstance(space, load_extra("gymnasium.spaces", "gymnasium").Discrete):
        return space_text(space, "action")
    names, start = name_actions(space, actions), int(space.start)
    return lambda action: names[int(action) - start]


@functools.cache
def _wrapper_class() -> Any:
    """Return the wrapper class, created at the first call: its base class is Gymnasium's."""
    gymnasium = load_extra("gymnasium", "gymnasium")

    class RecordingWrapper(gymnasium.Wrapper):  # type: ignore[misc, name-defined]  # Gymnasium may not be installed
        def __init__(
            self,
            env: Any,
            memory: RecordingMemory,
            task: str,
            describe_state: Callable[[Any], str],
            name: Callable[[Any], str],
        ) -> None:
            super().__init__(env)
            self._memory, self._task, self._describe, self._name_action = memory, task, describe_state, name
            self._state: str | None = None
            self.episode: Recorder | None = None

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            self._commit("aborted")
            observation, info = self.env.reset(seed=seed, options=options)
            self._state = check_text("state", self._describe(observation))
            self.episode = self._memory.episode(task=self._task)
            self.episode.__enter__()
            return observation, info

        def step(self, action: Any) -> Any:
            state, episode = self._state, self.episode
            if state is None or episode is None:
                return self.env.step(action)  # Gymnasium raises its own error
            try:
                name = check_text("action", self._name_action(action))
                observation, reward, terminated, truncated, info = self.env.step(action)
                episode.record(state, name, float(reward))
                self._state = check_text("state", self._describe(observation))
            except BaseException:
                self._commit("aborted")
                raise
            if terminated or truncated:
                self._commit("terminated" if terminated else "truncated")
            return observation, reward, terminated, truncated, info

        def close(self) -> None:
            try:
                self._commit("aborted")
            finally:
                super().close()

        def _commit(self, ending: Ending) -> None:
            """Commit the recorded steps if an episode is running."""
            last, self._state = self._state, None
            if last is not None and self.episode is not None and len(self.episode):
                self.episode.ending, self.episode.final_state = ending, last
                self.episode.__exit__(None, None, None)

    return RecordingWrapper
