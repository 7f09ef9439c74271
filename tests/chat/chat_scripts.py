"""Scripted answers and open assistants for the tests of the chat."""

from __future__ import annotations

import asyncio
import contextlib
import json

from seasoned.chat import ScriptScreen, open_assistant
from seasoned.llms import ScriptedLLM
from seasoned.protocols import Completion, ToolCall, Usage

PASSING = 'python3 -c "import unittest; unittest.main(module=None)" -h'
TESTS = (
    "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, {})\n"
)


def calls(*named, text=""):
    """A scripted answer that calls tools: each a name and its arguments, as a dict or as text."""
    made = tuple(
        ToolCall(f"c{at}", name, given if isinstance(given, str) else json.dumps(given))
        for at, (name, given) in enumerate(named)
    )
    return Completion(text, "m", Usage(1, 0, 5, 5, 0.1, 0.0), "tool_calls", (), made)


def run(command):
    return calls(("run", {"command": command}))


class Answers:
    """A screen whose user gives these answers, in order; it keeps what was shown."""

    is_interactive = True

    def __init__(self, *answers):
        self.answers, self.shown, self.questions = list(answers), [], []

    def write(self, text):
        self.shown.append(text)

    def end_text(self):
        self.shown.append("\n")

    def line(self, text, tone="plain"):
        self.shown.append(text + "\n")

    diff = line

    @property
    def text(self):
        return "".join(self.shown)

    async def choose(self, question, options, otherwise):
        self.questions.append((question, dict(options)))
        return self._next()

    async def ask(self, question):
        self.questions.append((question, {}))
        return self._next()

    async def edit(self, text, name):
        return self._next()(text)

    def _next(self):
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@contextlib.contextmanager
def chat(folder, script, screen=None, *, memory="chat.db", granted=("edit", "run"), **settings):
    """An assistant in `folder/repo`, with its memory and its sessions beside it."""
    repo = folder / "repo"
    repo.mkdir(exist_ok=True)
    llm = script if isinstance(script, ScriptedLLM) else ScriptedLLM(script)
    opened = {"folder": repo, "memory_path": folder / memory, "granted": granted, **settings}
    with open_assistant(llm, ScriptScreen() if screen is None else screen, **opened) as assistant:
        try:
            yield assistant
        finally:
            asyncio.run(assistant.toolbox.aclose())


def ask(assistant, request, **settings):
    return asyncio.run(assistant.turn(request, **settings))


def rewards(report):
    return [(step, source, round(value, 3)) for step, source, value in report.rewards]
