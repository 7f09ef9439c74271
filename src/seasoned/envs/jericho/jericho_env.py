"""Interactive fiction: story files of the Z-machine, played through Jericho (Hausknecht et al., arXiv 1909.05398).

A state is what `look` and `inventory` say, asked without a move, so that the same situation reads the same however it
was reached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from seasoned.checks import suggest
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import Turns, check_whole
from seasoned.envs.jericho.action_cache import ActionCache, default_cache_file
from seasoned.envs.jericho.story import Story, check_story, find_language
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Environment, Observation

__all__ = ["ActionList", "CacheKey", "JerichoEnv", "open_jericho"]

ActionList = Literal["valid", "none"]
"""Whether actions are listed: those that change the world, or none, and any text is taken."""

CacheKey = Literal["world", "exact", "none"]
"""What a kept list of actions belongs to: Jericho's hash of the world, the whole machine, or nothing is kept."""

_NOTHING_CHANGES = ("look", "wait")
_LETTERS = 6
"""Old parsers read six letters of a word: `restor` restores."""
_OUTSIDE = frozenset(
    "$ve noscri q quit record replay restar restor save script transc undo unreco unscri verify".split()  # noqa: SIM905
)
"""Commands to the interpreter, not in the story: they read and write files, or go back, or stop."""


class JerichoEnv:
    """A story. The reward of a step is the difference that it made to the game's score, in points.

    Won, lost or stopped is `terminated`; `max_steps` is `truncated`. `score` begins at 0 even where a story begins
    with points, and `max_score` is the story's own maximum less these.

    Finding the valid actions of a situation takes 0.05 to 1 s. Lists are kept in a file (`seasoned/jericho-actions.db`
    under `$XDG_CACHE_HOME` or `~/.cache`) by story, Jericho, language model and situation. Jericho's hash of the world
    leaves some of a story's memory out: two situations that it takes for one may differ in a few actions, and the first
    that was found is offered in both. `cache="exact"` keeps a list for one state of the whole machine: it is found
    again only where an episode begins with the same actions under the same seed, and nothing depends on what was
    played before.

    Args:
        file: a story that Jericho knows; it names them where it does not.
        seed: of the story's chance where `reset` gets none; 0 is the seed under which Jericho's walkthrough wins.
        max_steps: the episode is truncated after this many steps.
        actions: `valid` lists what changes the world (`look` and `wait` where nothing does); `none` takes any text, and
            `admissible` is None.
        cache: `world`, `exact` or `none`.
        show_feedback: whether the game's answer to the last action is part of the state, less what the
            state says anyway. States then recur less.

    Raises:
        InputError: an option is not allowed, or the file is not such a story.
        MissingExtraError: Jericho is not installed, or the language model for the list of actions.
        StoreError: the file of kept lists cannot be used.
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
        _check_choice("actions", actions, get_args(ActionList))
        _check_choice("cache", cache, get_args(CacheKey))
        self._turns = Turns(max_steps)
        self._seed = check_whole("seed", seed, 0, 2**31 - 1)
        if "?" in str(file):
            raise InputError(f"story {excerpt(str(file))}", "a path has no ?, which begins the options", "Rename it.")
        options = {"seed": seed, "actions": actions, "cache": cache, "show_feedback": int(show_feedback)}
        defaults = {"seed": 0, "actions": "valid", "cache": "world", "show_feedback": 0}
        query = "".join(f"&{name}={value}" for name, value in options.items() if value != defaults[name])
        self._name = f"jericho:{file}?max_steps={max_steps}{query}"
        self._listed, self._show_feedback = actions == "valid", show_feedback
        check_story(Path(file))  # before anything that only a good file needs
        self._language = find_language() if self._listed else ""
        self._story = Story(Path(file))
        self._cache_key = cache
        self._cache = ActionCache(default_cache_file()) if self._listed and cache != "none" else None
        self._points = 0

    @property
    def name(self) -> str:
        """The specification that makes this environment again, with `open_env`."""
        return self._name

    @property
    def task(self) -> str:
        """What is attempted, in words."""
        return f"Play the text adventure {self._story.title}, and score as many points as you can."

    @property
    def max_score(self) -> float | None:
        """The points that can be won after the beginning."""
        return float(self._story.max_points - self._story.first_points)

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin the story.

        Args:
            seed: of its chance in this episode; the environment's own if None. The interpreter takes 31 bits: the rest
                is dropped.

        Raises:
            EnvError: the environment was closed.
        """
        self._turns.check_open()
        chosen = self._seed if seed is None else check_whole("seed", seed, 0) % 2**31
        self._story.begin(chosen)
        self._points = self._story.points
        return self._offer(self._turns.begin(self._state(""), self._actions()))

    async def step(self, action: str) -> Observation:
        """Send one command to the story.

        Raises:
            EnvError: before `reset`, after the end, for an action that is not listed, or, where none are, for one that
                speaks to the interpreter (`save`, `restart`, ...).
        """
        command = self._turns.take(action, free_text=not self._listed)
        if not self._listed:
            _check_command(command)
        feedback = self._story.send(command)
        reward, self._points = self._story.points - self._points, self._story.points
        over = self._story.over
        state = (feedback or "The story is over.") if over else self._state(feedback)
        actions = () if over else self._actions()
        return self._offer(self._turns.show(state, actions, reward=float(reward), terminated=over))

    async def aclose(self) -> None:
        """End the interpreter, and close the file of kept lists."""
        self._turns.close()
        self._story.close()
        if self._cache is not None:
            self._cache.close()

    def _state(self, feedback: str) -> str:
        situation = self._story.situation()
        if not self._show_feedback:
            return situation
        told = situation.splitlines()
        news = " ".join(line for line in feedback.splitlines() if line not in told)
        return f"{situation}\nLast: {news}" if news else situation

    def _actions(self) -> tuple[str, ...]:
        if not self._listed:
            return ()
        story = self._story
        if self._cache is None:
            found = story.valid_actions()
        else:
            where = story.world() if self._cache_key == "world" else story.memory()
            key = (story.digest, story.jericho_version, self._language, self._cache_key, where)
            found = self._cache.get(key, story.valid_actions)
        return found or _NOTHING_CHANGES

    def _offer(self, seen: Observation) -> Observation:
        """The observation, with `admissible` None where any text is taken."""
        ended = seen.terminated or seen.truncated
        return seen if self._listed or ended else replace(seen, admissible=None)


def open_jericho(target: str, given: Mapping[str, str], _: str | Path | None = None) -> Environment:
    """Return the environment of a story file, with the options of `JerichoEnv`.

    Raises:
        InputError: an unknown option, a value that is not allowed, or no story that Jericho knows.
        MissingExtraError: Jericho is not installed, or the language model for the list of actions.
        StoreError: the file of kept lists cannot be used.
    """
    known = {
        "seed": Option(0, high=2**31 - 1),
        "max_steps": Option(100, low=1),
        "actions": Option("valid", choices=get_args(ActionList)),
        "cache": Option("world", choices=get_args(CacheKey)),
        "show_feedback": Option(False),
    }
    values: dict[str, Any] = option_values(given, known)
    return JerichoEnv(target, **values)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(
            f"{name} = {excerpt(value)}", f"{name} is one of {', '.join(choices)}", suggest(value, choices)
        )


def _check_command(command: str) -> None:
    """Refuse what would leave the story; parsers take several commands in one line, parted by `.`, `,` or `then`."""
    for part in re.split(r"[.,;:!?]|\bthen\b|\band\b", command.lower()):
        first = part.split()[0] if part.split() else ""
        if first[:_LETTERS] in _OUTSIDE:
            raise EnvError(
                f"command {excerpt(command)}",
                f"{first!r} speaks to the interpreter, not in the story",
                "Act in the story; reset begins it anew.",
            )
