"""The screen of a chat: what is shown to its user, and asked; and one for scripts, where nobody answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

__all__ = ["SLASH_COMMANDS", "ChatScreen", "ScriptScreen", "Tone", "TurnInterrupt"]

Tone = Literal["plain", "dim", "good", "bad", "strong"]
"""How a line is shown."""


SLASH_COMMANDS = {
    "help": "show these commands",
    "memory": "show what is stored of this repository; `/memory off` and `/memory on` switch the recall",
    "explain": "show what was recalled for the last answers, and why; what was learned from the turn",
    "undo": "undo the last change of a file",
    "cost": "show calls, tokens and cost of this session",
    "model": "show the model; `/model SPEC` takes another one",
    "feedback": "judge the last turn: `/feedback good`, `/feedback bad WHY`, `/feedback right ANSWER`",
    "two": "`/two REQUEST`: get two answers, and pick the better one or write your own",
    "permissions": "show what is permitted for this session",
    "quit": "end the chat; so does Ctrl-D",
}
"""The commands that begin with a slash, each with its description."""


class TurnInterrupt(Exception):  # noqa: N818 - no error: the user's wish
    """The user has interrupted the turn while a question was open."""


class ChatScreen(Protocol):
    """What a chat needs of a screen; each method removes what could control a terminal."""

    is_interactive: bool

    def write(self, text: str) -> None:
        """Show the next piece of the model's text."""
        ...

    def end_text(self) -> None:
        """End the model's text."""
        ...

    def line(self, text: str, tone: Tone = "plain") -> None:
        """Show a line, or several."""
        ...

    def diff(self, text: str) -> None:
        """Show a unified diff."""
        ...

    async def choose(self, question: str, options: Mapping[str, str], otherwise: str) -> str:
        """Return one of the keys of `options`, or what the user wrote instead; `otherwise` where nobody answers.

        Raises:
            TurnInterrupt: the user has interrupted the turn.
        """
        ...

    async def ask(self, question: str) -> str | None:
        """Return what the user answers; None where nobody does.

        Raises:
            TurnInterrupt: the user has interrupted the turn.
        """
        ...

    async def edit(self, text: str, name: str) -> str | None:
        """Return a text as the user has edited it; None if the user gave up.

        Raises:
            TurnInterrupt: the user has interrupted the turn.
        """
        ...


class ScriptScreen:
    """A screen without a user: the model's text and the lines go to two functions, and questions have no answer.

    Args:
        text: gets the pieces of the model's text.
        note: gets the lines and the diffs.

    Example:
        >>> screen = ScriptScreen(print)
        >>> screen.write("Done.")
        Done.
        >>> screen.is_interactive
        False
    """

    is_interactive = False

    def __init__(
        self, text: Callable[[str], object] = lambda _: None, note: Callable[[str], object] = lambda _: None
    ) -> None:
        self._text, self._note = text, note

    def write(self, text: str) -> None:
        """Pass a piece of text on."""
        self._text(text)

    def end_text(self) -> None:
        """Pass a line break on."""
        self._text("\n")

    def line(self, text: str, tone: Tone = "plain") -> None:
        """Pass a line on."""
        del tone
        self._note(text)

    def diff(self, text: str) -> None:
        """Pass a diff on."""
        self._note(text)

    async def choose(self, question: str, options: Mapping[str, str], otherwise: str) -> str:
        """Return `otherwise`."""
        del question, options
        return otherwise

    async def ask(self, question: str) -> str | None:
        """Return None."""
        return None

    async def edit(self, text: str, name: str) -> str | None:
        """Return None."""
        return None
