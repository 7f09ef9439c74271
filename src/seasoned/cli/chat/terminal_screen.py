"""Screen of a chat in a terminal: prompts by prompt_toolkit, colours by Rich."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from seasoned.chat import SLASH_COMMANDS, EscapeFilter, Tone, TurnInterrupt, plain_text
from seasoned.registry import load_extra

__all__ = ["TerminalScreen"]

_STYLES: Mapping[Tone, str] = {"plain": "", "dim": "dim", "good": "green", "bad": "red", "strong": "bold"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MAX_DIFF_LINES = 200


class TerminalScreen:
    """A terminal; no text that it shows can control it.

    Args:
        history: the file of the user's earlier requests, to which `keep_requests` adds; None: they are not kept.
        source, target: of prompt_toolkit, for tests: where keys come from, and where prompts go.

    Raises:
        MissingExtraError: prompt_toolkit is not installed.
    """

    is_interactive = True

    def __init__(self, history: Path | None = None, *, source: Any = None, target: Any = None) -> None:
        toolkit = load_extra("prompt_toolkit", "chat")
        histories = load_extra("prompt_toolkit.history", "chat")
        completion = load_extra("prompt_toolkit.completion", "chat")
        console = load_extra("rich.console", "chat")
        self._text = load_extra("rich.text", "chat").Text
        self._path, self._file = history, None if history is None else histories.FileHistory(str(history))
        earlier = [] if self._file is None else list(self._file.load_history_strings())
        self._unkept: list[str] = []
        self._redact: Callable[[str], str] | None = None
        words = [f"/{name}" for name in SLASH_COMMANDS]
        self._requests = toolkit.PromptSession(
            history=histories.InMemoryHistory(earlier[::-1]),
            completer=completion.WordCompleter(words, sentence=True),
            complete_while_typing=False,
            input=source,
            output=target,
        )
        self._questions = toolkit.PromptSession(input=source, output=target)
        self._console = console.Console(highlight=False, soft_wrap=True)
        self._filter = EscapeFilter()

    def keep_requests(self, redact: Callable[[str], str]) -> None:
        """Write the user's requests to the file of earlier ones from now on, and those since the start, redacted."""
        self._redact = redact
        self._keep()

    def _keep(self) -> None:
        if self._path is not None and self._file is not None and self._redact is not None:
            self._path.touch(mode=0o600)
            for request in self._unkept:
                self._file.store_string(self._redact(request))
            self._unkept.clear()

    async def request(self) -> str:
        """Return the user's next request.

        Raises:
            EOFError: the user ends the chat (Ctrl-D), or the terminal is gone.
        """
        while True:
            try:
                asked = str(await self._requests.prompt_async("> ", handle_sigint=False))
                self._unkept += [asked] if asked.strip() else []
                self._keep()
                return asked
            except KeyboardInterrupt:
                self.line("Ctrl-D or /quit ends the chat.", "dim")

    def write(self, text: str) -> None:
        """Show the next piece of the model's text."""
        self._put(self._filter.add(text))

    def end_text(self) -> None:
        """End the model's text."""
        self._put(f"{self._filter.end()}\n")

    def line(self, text: str, tone: Tone = "plain") -> None:
        """Show a line, or several."""
        self._console.print(self._text(plain_text(text), style=_STYLES[tone]))

    def diff(self, text: str) -> None:
        """Show a unified diff, of a long one the first lines."""
        lines = plain_text(text).splitlines()
        for line in lines[:_MAX_DIFF_LINES]:
            self._console.print(self._text(line, style=_DIFF_STYLES.get(line[:1], "")))
        if len(lines) > _MAX_DIFF_LINES:
            self.line(f"... {len(lines) - _MAX_DIFF_LINES} more lines", "dim")

    async def choose(self, question: str, options: Mapping[str, str], otherwise: str) -> str:
        """Return one of the keys, or what the user wrote instead; `otherwise` if the terminal is gone."""
        self.line(question, "strong")
        self.line("  ".join(f"[{key}] {words}" for key, words in options.items()), "dim")
        answer = await self._answer("  (or say what to do instead) ")
        if answer is None:
            return otherwise
        chosen = answer.lower()
        # The first option with a word has it: "yes" is not "yes, and it may write outside".
        words = {text.replace(":", ",").split(",")[0].lower(): key for key, text in reversed(list(options.items()))}
        return chosen if chosen in options else words.get(chosen, answer or otherwise)

    async def ask(self, question: str) -> str | None:
        """Return the user's answer; None if the terminal is gone."""
        self.line(question, "strong")
        return await self._answer("  ")

    async def edit(self, text: str, name: str) -> str | None:
        """Return a text as the user leaves it in $EDITOR; None if it was not saved."""
        try:
            return click.edit(text, extension=Path(name).suffix or ".txt")
        except click.ClickException as error:
            self.line(error.format_message(), "bad")
            return None

    async def _answer(self, prompt: str) -> str | None:
        try:
            return str(await self._questions.prompt_async(prompt, handle_sigint=False)).strip()
        except KeyboardInterrupt:
            raise TurnInterrupt from None
        except EOFError:
            return None

    def _put(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
