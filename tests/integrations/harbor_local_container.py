"""A container double on Harbor's own base class: a folder stands for the root, and every command is recorded.

It isolates nothing, on purpose: an agent that looked at the grader's files would find them here.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import ClassVar

from harbor.environments.base import BaseEnvironment, ExecResult

from seasoned.errors import ModelUnavailableError
from seasoned.integrations.harbor import SeasonedAgent
from seasoned.llms import ScriptedLLM
from seasoned.protocols import Completion, Usage

CANARY = "CANARY-of-the-grader"
_INSIDE = re.compile(r"(?<![\w.])/(tests|solution|logs|app)(?=/|\b)")


class LocalContainer(BaseEnvironment):
    """Runs commands with bash in a folder; absolute paths of the container are read below it."""

    made: ClassVar[list[LocalContainer]] = []

    def __init__(self, *arguments, root, **named):
        self.root = Path(root)
        self.commands = []
        self.phase = "before"
        for folder in ("app", "logs/agent", "logs/verifier", "logs/artifacts", "tests", "solution"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "tests" / "secret.txt").write_text(CANARY)  # worse than Harbor: they are there all the time
        (self.root / "solution" / "solve.sh").write_text(f"# {CANARY}\n")
        (self.root / "logs" / "verifier" / "reward.txt").write_text(f"0.5 # {CANARY}")
        LocalContainer.made.append(self)
        super().__init__(*arguments, **named)

    @staticmethod
    def type():
        return "local-double"

    def _validate_definition(self):
        pass

    async def start(self, force_build):
        pass

    async def stop(self, delete):
        pass

    def _place(self, path):
        return self.root / str(path).lstrip("/")

    async def upload_file(self, source_path, target_path):
        self._place(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._place(target_path))

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self._place(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copy(self._place(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self._place(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        self.commands.append((self.phase, command))
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            _INSIDE.sub(rf"{self.root}/\1", command),
            cwd=self.root / "app",
            env={"PATH": os.environ["PATH"], "ROOT": str(self.root)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return ExecResult(
            stdout=out.decode().replace(str(self.root), ""), stderr=err.decode(), return_code=process.returncode
        )


def priced(text):
    """An answer with a price of a quarter of a dollar."""
    return Completion(text, "scripted", Usage(calls=1, prompt_tokens=100, completion_tokens=5, cost_usd=0.25))


def fail():
    """An endpoint that is down."""
    raise ModelUnavailableError("no endpoint", "a model answers", "Start it.")


class ScriptedAgent(SeasonedAgent):
    """Our agent with a scripted model; it records its running time, so that each command has a phase."""

    script: ClassVar[list[str]] = []
    requests: ClassVar[list] = []

    def open_model(self):
        answers = [one if one is None else priced(one) for one in self.script]
        model = ScriptedLLM(lambda request: (answers.pop(0) if answers else None) or fail(), name="scripted")
        type(self).requests = model.requests
        return model

    async def run(self, instruction, environment, context):
        environment.phase = "agent"
        try:
            await super().run(instruction, environment, context)
        finally:
            environment.phase = "after"
