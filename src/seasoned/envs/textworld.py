"""TextWorld games: text adventures with rewards, generated from a seed.

A state is the room's description and the inventory, without the last feedback, so that one situation has one text.
TextWorld lists things in the order in which they were moved; here lists are sorted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seasoned.checks import check_whole, suggest
from seasoned.envs.env_options import Option, OptionValue, option_values
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.envs.textworld_games import CHALLENGES, challenge_options, game_file, quiet
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Observation
from seasoned.registry import load_extra

__all__ = ["DEFAULT_EXCLUDE", "TextWorldEnv", "open_textworld"]

DEFAULT_EXCLUDE = ("examine", "inventory", "look")
"""Commands that only repeat the content of the state."""

_OPTIONS = {
    "seed": Option(0, high=2**31 - 1),
    "max_steps": Option(50, low=1),
    "show_recipe": Option(True),
    "show_objective": Option(False),
    "show_feedback": Option(False),
    "free_text": Option(False),
}
_READ_RECIPE = "examine cookbook"
# The bounds are beyond any room; without them a line of articles would be read again from each of them.
_ITEM = r"(?:an?|some) (?:(?! and |, | on the floor)[\w' -]){1,64}+"
_LIST = re.compile(rf"({_ITEM}(?:, {_ITEM}){{0,60}}+) and ({_ITEM})(?=\.| on the floor)")
_BANNER = re.compile(r"\n>\s*+(?:-= .*+)?+\s*+\Z")
_TITLE = re.compile(r"-= ((?:(?!-= ).)*?) =-")


class TextWorldEnv:
    """A TextWorld game. The reward of a step is the change of the game's score, in points.

    A game that is won or lost is `terminated`; `max_steps` is `truncated`. A game is deterministic: `reset(seed=...)`
    is accepted and changes nothing. In cooking games the recipe is in a cookbook: after `examine cookbook`, the recipe
    is part of the state until the episode ends.

    Args:
        challenge: `coin_collector`, `cooking`, `custom`, `simple`, `treasure_hunter`, or the path of a `.z8` file
            with TextWorld's `.json` file in the same folder.
        seed: the seed of the generated game; None for a file.
        max_steps: the episode is truncated after this many steps.
        exclude: commands, or first words of commands, that are not admissible (`("drop", "put")`); `examine cookbook`
            stays unless it is named in full or the recipe is not shown. If no command is left, `look` is admissible.
        show_recipe: whether the recipe, once read, is part of the state.
        show_objective: whether the objective is part of the state (it is always in `task`).
        show_feedback: whether the game's answer to the last action is part of the state. States then recur less.
        free_text: whether `step` also takes commands that are not in `admissible`.
        games_dir: the folder of generated games; a cache folder of the user if None.
        **options: the options of the challenge, see `seasoned.envs.textworld_games.CHALLENGES`.

    Raises:
        InputError: an option is unknown or not allowed, or the file is not a TextWorld game.
        MissingExtraError: TextWorld is not installed.
        EnvError: TextWorld cannot generate or start the game.
    """

    def __init__(
        self,
        challenge: str,
        *,
        seed: int | None = None,
        max_steps: int = 50,
        exclude: Sequence[str] = DEFAULT_EXCLUDE,
        show_recipe: bool = True,
        show_objective: bool = False,
        show_feedback: bool = False,
        free_text: bool = False,
        games_dir: str | Path | None = None,
        **options: OptionValue,
    ) -> None:
        self._guard = EpisodeGuard(max_steps)
        self._exclude = _check_exclude(exclude)
        self._show_recipe, self._show_objective, self._show_feedback = show_recipe, show_objective, show_feedback
        self._free_text = free_text
        if challenge.endswith(".z8"):
            if seed is not None or options:
                raise InputError(
                    f"{sorted(options) or 'seed'} with the file {excerpt(challenge)}",
                    "a game file takes no seed and no options of a challenge",
                    "Leave them out.",
                )
            file, shown_options = _check_file(Path(challenge)), {}
        else:
            values = challenge_options(challenge, options)
            seed = check_whole("seed", 0 if seed is None else seed, 0, 2**31 - 1)
            file = game_file(challenge, values, seed, None if games_dir is None else Path(games_dir))
            shown_options = {
                name: value for name, value in values.items() if value != CHALLENGES[challenge][name].default
            }
            shown_options["seed"] = seed
        shown_options["max_steps"] = max_steps
        if self._exclude != DEFAULT_EXCLUDE:
            shown_options["exclude"] = ",".join(self._exclude)
        switches = {"show_recipe": show_recipe, "show_objective": show_objective, "show_feedback": show_feedback}
        shown_options |= {name: on for name, on in switches.items() if on != (name == "show_recipe")}
        if free_text:
            shown_options["free_text"] = True
        query = "&".join(f"{name}={int(v) if isinstance(v, bool) else v}" for name, v in shown_options.items())
        self._name = f"textworld:{challenge}?{query}"
        self._game = _start(file)
        first = self._reset_game()
        self._task = " ".join(str(first.objective).split()) or "Score as many points as you can."
        self._max_score = None if first.max_score is None else float(first.max_score)
        self._cooking = bool(first.get("extra.recipe"))
        self._recipe: str | None = None
        self._points = 0

    @property
    def name(self) -> str:
        """The specification that opens the same environment with `open_env`."""
        return self._name

    @property
    def task(self) -> str:
        """The game's objective, in its own words."""
        return self._task

    @property
    def max_score(self) -> float | None:
        """The points of a won game with every reward collected."""
        return self._max_score

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode. The seed changes nothing: the game is deterministic.

        Raises:
            EnvError: the environment was closed.
        """
        self._guard.check_open()
        game = self._reset_game()
        self._recipe, self._points = None, int(game.score or 0)
        return self._guard.begin(self._state(game, feedback=""), self._admissible(game))

    async def step(self, action: str) -> Observation:
        """Send one command to the game.

        Raises:
            EnvError: before `reset`, after the end, or for an inadmissible command (the message names close ones).
        """
        command = self._guard.resolve_action(action, free_text=self._free_text)
        game, _, _ = self._game.step(command)
        feedback = _tidy(_BANNER.sub("", game.feedback))
        if self._show_recipe and command == _READ_RECIPE:
            _, _, recipe = f"\n{feedback}".partition("\nIngredients:\n")
            ingredients, found, directions = recipe.partition("\nDirections:\n")
            if found:
                self._recipe = f"{_in_line(ingredients)}. Then {_in_line(directions)}."
        reward, self._points = int(game.score) - self._points, int(game.score)
        return self._guard.observe(
            self._state(game, feedback=feedback),
            self._admissible(game),
            reward=float(reward),
            terminated=bool(game.won or game.lost),
        )

    async def aclose(self) -> None:
        """End the game's interpreter."""
        self._guard.close()
        self._game.close()

    def _reset_game(self) -> Any:
        return self._game.reset()

    def _state(self, game: Any, feedback: str) -> str:
        lines = [_tidy(game.description), _tidy(game.inventory)]
        if self._recipe:
            lines.append(f"The recipe: {self._recipe}")
        if self._show_objective:
            lines.append(f"Objective: {self._task}")
        if self._show_feedback and feedback:
            lines.append(f"Last: {feedback}")
        return "\n".join(lines)

    def _admissible(self, game: Any) -> tuple[str, ...]:
        reads = self._cooking and (self._show_recipe or self._show_feedback) and _READ_RECIPE not in self._exclude
        offered = [
            command
            for command in sorted(set(game.admissible_commands))
            if (reads and command == _READ_RECIPE) or not self._excluded(command)
        ]
        return tuple(offered) or ("look",)

    def _excluded(self, command: str) -> bool:
        return any(command == words or command.startswith(words + " ") for words in self._exclude)


def open_textworld(target: str, options: Mapping[str, str], *, games_dir: str | Path | None = None) -> TextWorldEnv:
    """Return the game of `textworld:CHALLENGE?option=value&...` or `textworld:FILE.z8`, with its options.

    Raises:
        InputError: no challenge has this name, an option is unknown, or a value is not allowed.
        MissingExtraError: TextWorld is not installed.
        EnvError: TextWorld cannot generate or start the game.
    """
    if not target.endswith(".z8") and target not in CHALLENGES:
        raise InputError(f"challenge {excerpt(target)}", "no challenge has this name", suggest(target, CHALLENGES))
    values = option_values(options, {**CHALLENGES.get(target, {}), **_OPTIONS}, ("exclude",))
    if "exclude" in values:
        values["exclude"] = [word.strip() for word in values["exclude"].split(",") if word.strip()]
    return TextWorldEnv(target, games_dir=games_dir, **values)


def _tidy(text: str) -> str:
    """Return the text without title rules and blank lines, with its lists of things sorted."""
    text = _TITLE.sub(r"\1.", text)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return _LIST.sub(_sort_list, "\n".join(line for line in lines if line))


def _sort_list(match: re.Match[str]) -> str:
    *most, last = sorted([*match[1].split(", "), match[2]], key=lambda item: item.partition(" ")[2])
    return f"{', '.join(most)} and {last}"


def _in_line(lines: str) -> str:
    return ", ".join(lines.splitlines())


def _check_exclude(exclude: Iterable[str]) -> tuple[str, ...]:
    words = () if isinstance(exclude, str) else tuple(exclude)
    if isinstance(exclude, str) or not all(isinstance(word, str) and word.strip() == word != "" for word in words):
        raise InputError(
            f"exclude = {excerpt(exclude)}", "exclude is a list of commands or their first words", 'Try ["look"].'
        )
    return tuple(sorted(set(words)))


def _check_file(file: Path) -> Path:
    for needed in (file, file.with_suffix(".json")):
        if not needed.is_file():
            raise InputError(
                f"no file {excerpt(str(needed))}",
                "a TextWorld game is a .z8 file with its .json beside it",
                "Check the path, or make both with tw-make.",
            )
    return file


def _start(file: Path) -> Any:
    textworld = load_extra("textworld", "textworld")
    infos = textworld.EnvInfos(
        description=True,
        inventory=True,
        admissible_commands=True,
        score=True,
        max_score=True,
        won=True,
        lost=True,
        objective=True,
        feedback=True,
        extras=["recipe"],
    )
    try:
        with quiet():
            return textworld.start(str(file), infos)
    except Exception as error:
        raise EnvError(
            f"game {str(file)!r} ({type(error).__name__}: {excerpt(str(error))})",
            "TextWorld could not start it",
            "Delete the file and its folder so that it is made again.",
        ) from error
