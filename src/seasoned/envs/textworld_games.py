"""The generator of TextWorld games, with a file per game: equal options and TextWorld version reuse the file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seasoned.checks import suggest
from seasoned.envs.env_options import Option, OptionValue
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.registry import load_extra

__all__ = ["CHALLENGES", "challenge_options", "game_file", "quiet"]

CHALLENGES: Mapping[str, Mapping[str, Option]] = {
    "coin_collector": {"level": Option(1, low=1, high=300)},
    "cooking": {
        "recipe": Option(1, low=1, high=5),
        "take": Option(0, high=5),
        "go": Option(1, choices=(1, 6, 9, 12)),
        "open": Option(False),
        "cook": Option(False),
        "cut": Option(False),
        "drop": Option(False),
        "recipe_seed": Option(0, high=2**31 - 1),
        "split": Option(None, choices=(None, "train", "valid", "test")),
    },
    "custom": {
        "world_size": Option(5, low=1, high=100),
        "nb_objects": Option(10, low=1, high=200),
        "nb_parallel_quests": Option(1, low=1, high=20),
        "quest_length": Option(5, low=1, high=50),
        "quest_breadth": Option(1, low=1, high=10),
    },
    "simple": {
        "rewards": Option("dense", choices=("dense", "balanced", "sparse")),
        "goal": Option("detailed", choices=("detailed", "brief", "none")),
        "test": Option(False),
    },
    "treasure_hunter": {"level": Option(1, low=1, high=30)},
}
"""The challenges, with every option and its default; the names are TextWorld's."""


def challenge_options(challenge: str, given: Mapping[str, object]) -> dict[str, OptionValue]:
    """Return the value of every option of the challenge: the given value, or the default.

    Raises:
        InputError: an unknown challenge or option, or a value that is not allowed.

    Example:
        >>> challenge_options("coin_collector", {"level": "5"})
        {'level': 5}
    """
    if challenge not in CHALLENGES:
        raise InputError(
            f"challenge {excerpt(challenge)}", "no challenge has this name", suggest(challenge, CHALLENGES)
        )
    options = CHALLENGES[challenge]
    for name in given:
        if name not in options:
            raise InputError(f"option {excerpt(name)}", f"{challenge} has no such option", suggest(name, options))
    values = {name: option.parse(name, given.get(name, option.default)) for name, option in options.items()}
    if challenge == "cooking" and int(values["take"] or 0) > int(values["recipe"] or 0):
        raise InputError(
            f"take = {values['take']}",
            f"no more ingredients are taken than the recipe has ({values['recipe']})",
            "Lower take, or raise recipe.",
        )
    return values


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress a warning about every generated game: that Jericho does not know it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Game '.*' is not fully supported")
        yield


def game_file(challenge: str, options: Mapping[str, OptionValue], seed: int, games_dir: Path | None = None) -> Path:
    """Return the game's `.z8` file; it is generated (2 to 5 seconds) unless it exists.

    Two processes may generate one game at once: each writes a folder of its own, and the first to rename it wins.

    Args:
        challenge: a key of `CHALLENGES`.
        options: the result of `challenge_options`.
        seed: the seed of the game: its map, objects, quest and wording.
        games_dir: the folder of the games; `$XDG_CACHE_HOME/seasoned/games` or `~/.cache/seasoned/games` if None.

    Raises:
        MissingExtraError: TextWorld is not installed.
        EnvError: TextWorld cannot generate such a game.
    """
    textworld = load_extra("textworld", "textworld")
    key = json.dumps([challenge, dict(options), seed, textworld.__version__], sort_keys=True)
    home = games_dir or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seasoned" / "games"
    folder = home / f"{challenge}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    file = folder / "game.z8"
    if file.is_file():
        return file
    home.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=home))
    try:
        _make(textworld, challenge, options, seed, draft / "game.z8")
        try:
            draft.replace(folder)
        except OSError:
            if not file.is_file():  # else another process has generated the same game
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return file


def _make(textworld: Any, challenge: str, options: Mapping[str, OptionValue], seed: int, file: Path) -> None:
    """Generate and compile one game with TextWorld."""
    settings = textworld.GameOptions()
    settings.seeds = seed
    settings.path = str(file)
    settings.file_ext = file.suffix
    try:
        with quiet():
            _generate(textworld, challenge, options, settings)
    except Exception as error:
        raise EnvError(
            f"textworld:{challenge} with {dict(options)}, seed {seed} ({type(error).__name__}: {excerpt(str(error))})",
            "TextWorld could not generate a game with these options",
            "Try another seed, or options that ask for less.",
        ) from error


def _generate(textworld: Any, challenge: str, options: Mapping[str, OptionValue], settings: Any) -> None:
    if challenge == "custom":
        settings.nb_rooms = options["world_size"]
        settings.nb_objects = options["nb_objects"]
        settings.nb_parallel_quests = options["nb_parallel_quests"]
        chaining = settings.chaining
        chaining.min_length = chaining.max_length = chaining.max_depth = options["quest_length"]
        chaining.min_breadth = chaining.max_breadth = options["quest_breadth"]
        textworld.make(settings)
    else:
        challenges = load_extra("textworld.challenges", "textworld").CHALLENGES
        game = challenges[f"tw-{challenge}"][1](settings=dict(options), options=settings)
        textworld.generator.compile_game(game, settings)
