"""Interactive fiction: story files of the Z-machine, played through Jericho (Hausknecht et al., arXiv 1909.05398).

A state is the output of `look` and `inventory`, obtained without a move, so that one situation has one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from seasoned.checks import check_one_of, check_whole
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.envs.jericho.action_cache import ActionCache, default_cache_file
from seasoned.envs.jericho.story import Story, check_story, language_package
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Environment, Observation

__all__ = ["ActionList", "CacheKey", "JerichoEnv", "open_jericho"]

ActionList = Literal["valid", "none"]
"""The list of actions: those that change the world, or none; without a list, any text is an action."""

CacheKey = Literal["world", "exact", "none"]
"""The key of a cached list of actions: Jericho's hash of the world, a hash of the whole machine, or no cache."""

_FALLBACK_ACTIONS = ("look", "wait")
_LETTERS = 6
"""Old parsers compare six letters of a word: `restor` means `restore`."""
_INTERPRETER_COMMANDS = frozenset(
    "$ve noscri q quit record replay restar restor save script transc undo unreco unscri verify".split()  # noqa: SIM905
)
"""Commands to the interpreter: they read and write files, undo moves or stop the story."""


class JerichoEnv:
    """A story. The reward of a step is the change of the game's score, in points.

    A story that is won, lost or stopped is `terminated`; `max_steps` is `truncated`. `score` begins at 0 even if a
    story begins with points, and `max_score` is the story's own maximum less these.

    Finding the valid actions of a situation takes 0.05 to 1 s. Lists are cached in a file
    (`seasoned/jericho-actions.db` under `$XDG_CACHE_HOME` or `~/.cache`) by story, Jericho, language model and
    situation. Jericho's hash of the world covers a part of a story's memory: two situations with one hash may differ in
    a few actions, and the first list is used for both. `cache="exact"` caches a list by the state of the whole machine:
    it is reused only if an episode begins with the same actions under the same seed, and no list depends on earlier
    episodes.

    Args:
        file: a story that Jericho supports; the error for another file lists the supported stories.
        seed: the random seed if `reset` gets none; Jericho's walkthrough wins under seed 0.
        max_steps: the episode is truncated after this many steps.
        actions: `valid` lists the actions that change the world (`look` and `wait` if none does); `none` accepts any
            text, and `admissible` is None.
        cache: `world`, `exact` or `none`.
        show_feedback: whether the game's answer to the last action is part of the state, without lines that the
            state has anyway. States then recur less.

    Raises:
        InputError: an option is not allowed, or the file is not such a story.
        MissingExtraError: Jericho is not installed, or the language model for the list of actions.
        StoreError: the cache file cannot be used.
    """

    def __init__(
        self,
        file: str | Path,
        *,
        seed: int = 0,
        max_steps: int = 100,
        actions: ActionList = "valid",
        cache: CacheKey = "world",
        show_feedback: bool = False,
    ) -> None:
        check_one_of("actions", actions, get_args(ActionList))
        check_one_of("cache", cache, get_args(CacheKey))
        self._guard = EpisodeGuard(max_steps)
        self._seed = check_whole("seed", seed, 0, 2**31 - 1)
        if "?" in str(file):
            raise InputError(
                f"story {excerpt(str(file))}", "a path contains no ?, which begins the options", "Rename it."
            )
        options = {"seed": seed, "actions": actions, "cache": cache, "show_feedback": int(show_feedback)}
        defaults = {"seed": 0, "actions": "valid", "cache": "world", "show_feedback": 0}
        query = "".join(f"&{name}={value}" for name, value in options.items() if value != defaults[name])
        self._name = f"jericho:{file}?max_steps={max_steps}{query}"
        self._listed, self._show_feedback = actions == "valid", show_feedback
        check_story(Path(file))  # before the packages that only a supported file needs
        self._language = language_package() if self._listed else ""
        self._story = Story(Path(file))
        self._cache_key = cache
        self._cache = ActionCache(default_cache_file()) if self._listed and cache != "none" else None
        self._points = 0

    @property
    def name(self) -> str:
        """The specification that opens the same environment with `open_env`."""
        return self._name

    @property
    def task(self) -> str:
        """The task in words."""
        return f"Play the text adventure {self._story.title}, and score as many points as you can."

    @property
    def max_score(self) -> float | None:
        """The points that can be won after the start."""
        return float(self._story.max_points - self._story.first_points)

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin the story.

        Args:
            seed: the random seed of this episode; the environment's own if None. The interpreter takes 31 bits; higher
                bits are dropped.

        Raises:
            EnvError: the environment was closed.
        """
        self._guard.check_open()
        chosen = self._seed if seed is None else check_whole("seed", seed, 0) % 2**31
        self._story.begin(chosen)
        self._points = self._story.points
        return self._with_admissible(self._guard.begin(self._state(""), self._actions()))

    async def step(self, action: str) -> Observation:
        """Send one command to the story.

        Raises:
            EnvError: before `reset`, after the end, for an action that is not listed, or, without a list, for a command
                to the interpreter (`save`, `restart`, ...).
        """
        command = self._guard.resolve_action(action, free_text=not self._listed)
        if not self._listed:
            _check_command(command)
        feedback = self._story.send(command)
        reward, self._points = self._story.points - self._points, self._story.points
        over = self._story.over
        state = (feedback or "The story is over.") if over else self._state(feedback)
        actions = () if over else self._actions()
        return self._with_admissible(self._guard.observe(state, actions, reward=float(reward), terminated=over))

    async def aclose(self) -> None:
        """End the interpreter, and close the cache file."""
        self._guard.close()
        self._story.close()
        if self._cache is not None:
            self._cache.close()

    def _state(self, feedback: str) -> str:
        situation = self._story.situation()
        if not self._show_feedback:
            return situation
        known_lines = situation.splitlines()
        news = " ".join(line for line in feedback.splitlines() if line not in known_lines)
        return f"{situation}\nLast: {news}" if news else situation

    def _actions(self) -> tuple[str, ...]:
        if not self._listed:
            return ()
        story = self._story
        if self._cache is None:
            actions = story.valid_actions()
        else:
            situation = story.world() if self._cache_key == "world" else story.memory()
            key = (story.digest, story.jericho_version, self._language, self._cache_key, situation)
            actions = self._cache.get(key, story.valid_actions)
        return actions or _FALLBACK_ACTIONS

    def _with_admissible(self, observation: Observation) -> Observation:
        """Return the observation with `admissible` None if any text is an action."""
        ended = observation.terminated or observation.truncated
        return observation if self._listed or ended else replace(observation, admissible=None)


def open_jericho(target: str, options: Mapping[str, str]) -> Environment:
    """Return the environment of a story file, with the options of `JerichoEnv`.

    Raises:
        InputError: an option is unknown, a value is not allowed, or Jericho does not support the story.
        MissingExtraError: Jericho is not installed, or the language model for the list of actions.
        StoreError: the cache file cannot be used.
    """
    known = {
        "seed": Option(0, high=2**31 - 1),
        "max_steps": Option(100, low=1),
        "actions": Option("valid", choices=get_args(ActionList)),
        "cache": Option("world", choices=get_args(CacheKey)),
        "show_feedback": Option(False),
    }
    values: dict[str, Any] = option_values(options, known)
    return JerichoEnv(target, **values)


def _check_command(command: str) -> None:
    """Refuse commands to the interpreter; parsers take several commands a line, separated by `.`, `,` or `then`."""
    for part in re.split(r"[.,;:!?]|\bthen\b|\band\b", command.lower()):
        first = part.split()[0] if part.split() else ""
        if first[:_LETTERS] in _INTERPRETER_COMMANDS:
            raise EnvError(
                f"command {excerpt(command)}",
                f"{first!r} is a command to the interpreter, not an action in the story",
                "Act in the story; reset begins it again.",
            )
