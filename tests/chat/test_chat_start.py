"""The start of a chat: what is loaded before the first call of the model."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio, sys
from seasoned import Episode, Step
from seasoned.chat import ScriptScreen, chat_memory, open_assistant, repository_root
from seasoned.llms import ScriptedLLM

def answer(request):
    print(*sorted(sys.modules))
    return "Done."

with chat_memory("chat.db", repository_root(".")) as memory:
    for at in range(40):
        memory.add(Episode("run the tests", [Step(f"run the tests of {at}", "make check", 1.0)]))
with open_assistant(ScriptedLLM(answer), ScriptScreen(), memory_path="chat.db") as assistant:
    report = asyncio.run(assistant.turn("run the tests"))
    assert report.recalled[0].examples, "nothing was recalled"
"""


def test_first_call_waits_for_neither_compilers_nor_agents(tmp_path):
    (tmp_path / ".git").mkdir()
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "seasoned.memory" in loaded
    unneeded = {
        "numba",
        "scipy",
        "openai",
        "rich",
        "seasoned.integrations.rewards",
        *(f"seasoned.{name}" for name in ("agents", "build", "envs", "judges", "lab")),
    }
    assert not loaded & unneeded


def test_prompt_waits_for_no_memory_and_no_model():
    script = "import sys, seasoned.cli.main, seasoned.cli.chat.chat_command; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "seasoned.cli.redact_option" in loaded
    unneeded = {f"seasoned.{name}" for name in ("chat.assistant", "core", "envs", "llms", "memory", "policies")}
    assert not loaded & {*unneeded, "seasoned.states.masks", "rich"}
