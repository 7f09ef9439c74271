"""Records a Gymnasium loop that someone already has: each episode goes to memory when it ends."""

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

__all__ = ["Recorder", "Records", "record_gymnasium"]


class Recorder(Protocol):
    """What `memory.episode(...)` returns: a context that commits what it recorded when it is left."""

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


class Records(Protocol):
    """What episodes are recorded in: a `Memory`, or anything else with this method."""

    def episode(self, task: str) -> Any:
        """Return a recorder of one episode."""
        ...


def record_gymnasium(
    env: Any,
    memory: Records,
    *,
    task: str,
    describe: Callable[[Any], str] | None = None,
    actions: Sequence[str] | Callable[[Any], str] | None = None,
) -> Any:
    """Return `env` in a `gymnasium.Wrapper` that records every episode played through it; it changes nothing else.

    An episode is committed, whole, at the step that is `terminated` or `truncated`. One that is left before that, by
    an exception of the environment, by `reset` or by `close` (or the end of `with`), is committed as `aborted`, which
    is kept and never retrieved. An episode without steps leaves nothing. The wrapper's `episode` is the recorder of the
    current episode, or of the last one: after the commit, `env.episode.id` is what `memory.feedback` takes.

    Args:
        env: a `gymnasium.Env`; no vector environment, which resets by itself.
        memory: a `Memory`, or anything that has `episode(task=...)`.
        task: what is attempted, in words.
        describe: tells an observation in words, the same for the same situation; small spaces have a default.
        actions: one name for each `Discrete` action, or a function that names any action. By default `action 0`, ...
            for a `Discrete` space, and `action[0]=0.5 ...` for other small ones.

    Raises:
        InputError: no such environment, or no default text for its observations or actions.
        MissingExtraError: Gymnasium is not installed.
    """
    gymnasium = load_extra("gymnasium", "gymnasium")
    if not isinstance(env, gymnasium.Env):
        raise InputError(
            f"env = {excerpt(env)}", "env is a gymnasium.Env, of one episode at a time", "Wrap each one by itself."
        )
    if not callable(getattr(memory, "episode", None)):
        raise InputError(f"memory = {excerpt(memory)}", "memory has episode(task=...)", 'Pass Memory.open("agent.db").')
    tell = describe or space_text(env.observation_space, "obs")
    return _wrapper_class()(env, memory, check_text("task", task), tell, _teller(env.action_space, actions))


def _teller(space: Any, actions: Sequence[str] | Callable[[Any], str] | None) -> Callable[[Any], str]:
    if callable(actions):
        return actions
    if actions is None and not isinstance(space, load_extra("gymnasium.spaces", "gymnasium").Discrete):
        return space_text(space, "action")
    names, start = name_actions(space, actions), int(space.start)
    return lambda action: names[int(action) - start]


@functools.cache
def _wrapper_class() -> Any:
    """The class, made when it is first asked for: its base is Gymnasium's."""
    gymnasium = load_extra("gymnasium", "gymnasium")

    class RecordingWrapper(gymnasium.Wrapper):  # type: ignore[misc, name-defined]  # Gymnasium may not be installed
        def __init__(
            self, env: Any, memory: Records, task: str, tell: Callable[[Any], str], name: Callable[[Any], str]
        ) -> None:
            super().__init__(env)
            self._memory, self._told_task, self._tell, self._name_action = memory, task, tell, name
            self._state: str | None = None
            self.episode: Recorder | None = None

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            self._leave("aborted")
            observation, info = self.env.reset(seed=seed, options=options)
            self._state = check_text("state", self._tell(observation))
            self.episode = self._memory.episode(task=self._told_task)
            self.episode.__enter__()
            return observation, info

        def step(self, action: Any) -> Any:
            state, episode = self._state, self.episode
            if state is None or episode is None:
                return self.env.step(action)  # Gymnasium itself says what is wrong with it
            try:
                name = check_text("action", self._name_action(action))
                observation, reward, terminated, truncated, info = self.env.step(action)
                episode.record(state, name, float(reward))
                self._state = check_text("state", self._tell(observation))
            except BaseException:
                self._leave("aborted")
                raise
            if terminated or truncated:
                self._leave("terminated" if terminated else "truncated")
            return observation, reward, terminated, truncated, info

        def close(self) -> None:
            try:
                self._leave("aborted")
            finally:
                super().close()

        def _leave(self, ending: Ending) -> None:
            """Commit what was recorded, if an episode is running."""
            last, self._state = self._state, None
            if last is not None and self.episode is not None and len(self.episode):
                self.episode.ending, self.episode.final_state = ending, last
                self.episode.__exit__(None, None, None)

    return RecordingWrapper
