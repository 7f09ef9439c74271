"""Commands of a chat that begin with a slash: memory, explain, undo, cost, model, feedback and others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from seasoned.chat.assistant import Assistant
from seasoned.chat.chat_screen import SLASH_COMMANDS
from seasoned.checks import suggest
from seasoned.errors import InputError, SeasonedError, counted, excerpt
from seasoned.protocols import LLM
from seasoned.states.text_budget import one_line
from seasoned.types import OwnAnswer, Thumbs

__all__ = ["SlashCommands"]

_SHOWN_EPISODES = 8


class SlashCommands:
    """Carries out the commands on an assistant.

    Args:
        assistant: of the chat.
        open_model: returns the model that a specification names.
    """

    def __init__(self, assistant: Assistant, open_model: Callable[[str], LLM]) -> None:
        self._assistant, self._open_model = assistant, open_model

    async def run(self, line: str) -> bool:
        """Carry out a command; return whether the chat goes on."""
        name, _, rest = line.strip().removeprefix("/").partition(" ")
        screen, rest = self._assistant.screen, rest.strip()
        if name in ("quit", "exit", "q"):
            return False
        if name == "two":
            if rest:
                await self._assistant.turn(rest, answers=2)
            else:
                screen.line("Write the request after it: /two fix the tests", "bad")
            return True
        try:
            if name not in SLASH_COMMANDS:
                raise InputError(f"/{excerpt(name)[1:-1]}", "there is no such command", suggest(name, SLASH_COMMANDS))
            screen.line(await getattr(self, f"_{name}")(rest))
        except SeasonedError as error:
            screen.line(str(error), "bad")
        return True

    async def _help(self, rest: str) -> str:
        del rest
        width = max(map(len, SLASH_COMMANDS))
        return "\n".join(f"/{name.ljust(width)}  {words}" for name, words in SLASH_COMMANDS.items())

    async def _memory(self, rest: str) -> str:
        assistant = self._assistant
        if rest in ("on", "off"):
            assistant.switch_recall(rest == "on")
        memory = assistant.memory
        episodes = list(memory.episodes())
        recalls = "on" if assistant.settings.recalls else "off"
        lines = [
            f"{counted(len(episodes), 'episode')}, {counted(len(memory), 'step')} of {memory.namespace}; "
            f"recall is {recalls}"
        ]
        for episode in episodes[-_SHOWN_EPISODES:]:
            waits = " (awaits feedback)" if episode.awaits_feedback else ""
            lines.append(f"  {one_line(episode.task, 70)}: {counted(len(episode.steps), 'step')}{waits}")
        return "\n".join(lines)

    async def _explain(self, rest: str) -> str:
        del rest
        report = self._assistant.last
        if report is None:
            return "nothing was answered yet"
        lines = []
        for number, recalled in enumerate(report.recalled, 1):
            if recalled.examples or (recalled.advice is not None and recalled.advice.text):
                lines += [f"answer {number}, recalled in {1000 * recalled.seconds:.0f} ms:", recalled.explain()]
        lines += [f"learned: step {step}, {source}: {value:+.2g}" for step, source, value in report.rewards]
        return "\n".join(lines) or "nothing was recalled or learned in the last turn"

    async def _undo(self, rest: str) -> str:
        del rest
        assistant = self._assistant
        while True:
            entry = assistant.last_change()
            path = entry.change.path
            with contextlib.suppress(InputError):  # a folder is there now, say
                if assistant.toolbox.repository.read_or_none(path) == entry.change.after:
                    assistant.undo()
                    return f"undone: {path} ({entry.change.counts} taken back)"
            question = f"{path} has changed since the chat wrote it. Leave it as it is, and undo the change before?"
            if await assistant.screen.choose(question, {"y": "yes", "n": "no"}, "n") != "y":
                return f"nothing is undone: {path} stays as it is"
            assistant.ledger.skip(entry)

    async def _cost(self, rest: str) -> str:
        del rest
        usage = self._assistant.log.usage
        cost = "unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
        tokens = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens"
        complete = f"{counted(usage.calls, 'call')}, {tokens}, {usage.latency_s:.1f} s, cost {cost}"
        broken = self._assistant.log.unfinished
        if not broken.calls:
            return complete
        estimated = f"about {broken.prompt_tokens} + {broken.completion_tokens} tokens, cost unknown"
        return f"{complete}\nand {counted(broken.calls, 'call')} broken off: {estimated}"

    async def _model(self, rest: str) -> str:
        if rest:
            await self._assistant.use_model(self._open_model(rest))
        return self._assistant.llm.name

    async def _feedback(self, rest: str) -> str:
        verdict, _, words = rest.partition(" ")
        comment = words.strip() or None
        if verdict in ("good", "bad"):
            self._assistant.feedback(Thumbs(verdict == "good", comment=comment))
        elif verdict == "right" and comment:
            self._assistant.feedback(OwnAnswer(comment))
        else:
            raise InputError(
                f"/feedback {excerpt(rest)[1:-1]}", "it is good, bad or right", "Write: /feedback bad the tests fail"
            )
        return "learned: thank you"

    async def _permissions(self, rest: str) -> str:
        del rest
        toolbox = self._assistant.toolbox
        fence = (
            "commands write in the repository alone" if toolbox.is_fenced else "no fence: this system has no Landlock"
        )
        return f"granted: {', '.join(toolbox.permissions.granted) or 'nothing'}; {fence}"
