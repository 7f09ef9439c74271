"""Environment of a task's container: an action is a command in its shell."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, runtime_checkable

from seasoned.checks import check_instance, check_text, check_whole
from seasoned.errors import EnvError, excerpt
from seasoned.integrations.conversation import MAX_TASK_CHARS
from seasoned.integrations.harbor.grader_fence import grader_path
from seasoned.protocols import Observation

__all__ = ["DONE", "CommandRunner", "ContainerShell"]

DONE = "done"
"""The action that ends the episode."""

_REFUSED = "refused: {path} belongs to the grader of this task, which is not looked at. Work on the task itself."


@runtime_checkable
class CommandRunner(Protocol):
    """A container that runs commands, as `harbor.environments.base.BaseEnvironment` does."""

    async def exec(self, command: str, cwd: str | None = None, *, timeout_sec: int | None = None) -> Any:
        """Run a command; the result has `stdout`, `stderr` and `return_code`."""
        ...


class ContainerShell:
    """One task in one container. An action is a command line for its shell; the action `done` ends the episode.

    The states are the instruction, then the output of each command. A command that names the grader's files is not run
    (`grader_fence.grader_path`); the state is then a refusal, and `refused` counts them. Rewards are 0, since the
    grader gives the reward afterwards.

    Args:
        container: runs the commands.
        instruction: the task.
        cwd: working folder of every command; None: the container's own.
        timeout_s: time limit of one command, in seconds.
        output_chars: limit of an output in characters; longer ones lose their middle.

    Raises:
        InputError: a value breaks its rule.
    """

    def __init__(
        self,
        container: CommandRunner,
        instruction: str,
        *,
        cwd: str | None = None,
        timeout_s: int = 120,
        output_chars: int = 6_000,
    ) -> None:
        rule = "a container must run commands with exec()"
        check_instance("container", container, CommandRunner, rule, "Pass Harbor's container.")
        check_whole("timeout_s", timeout_s, 1)
        check_whole("output_chars", output_chars, 100)
        self.instruction = check_text("instruction", instruction)
        self.refused = 0
        self._container = container
        self._cwd = cwd
        self._timeout_s = timeout_s
        self._output_chars = output_chars
        self._running = False

    @property
    def name(self) -> str:
        """The environment's name."""
        return "harbor"

    @property
    def task(self) -> str:
        """The first 1000 characters of the instruction, as in an imported trajectory."""
        return self.instruction.strip()[:MAX_TASK_CHARS].rstrip()

    @property
    def max_score(self) -> float | None:
        """Unknown."""
        return None

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Return the instruction. The container is not reset, and the seed has no effect."""
        del seed
        self._running = True
        self.refused = 0
        return Observation(self.instruction, None)

    async def step(self, action: str) -> Observation:
        """Run a command, and return its output.

        Raises:
            EnvError: before `reset`, after the end, or the container failed.
        """
        check_text("action", action)
        if not self._running:
            raise EnvError(f"action {excerpt(action)}", "a step needs a running episode", "Call reset() first.")
        if action.strip() == DONE:
            self._running = False
            return Observation("The task is finished.", None, terminated=True)
        if (path := grader_path(action, self._cwd)) is not None:
            self.refused += 1
            return Observation(_REFUSED.format(path=path), None)
        return Observation(await self._run(action), None)

    async def aclose(self) -> None:
        """End the episode; the container stays open."""
        self._running = False

    async def _run(self, command: str) -> str:
        try:
            result = await self._container.exec(command, cwd=self._cwd, timeout_sec=self._timeout_s)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if "timed out" in str(error).lower() or isinstance(error, TimeoutError):
                return f"(no answer within {self._timeout_s} s; the command was stopped)"
            self._running = False
            raise EnvError(
                f"command {excerpt(command)}: {type(error).__name__}: {excerpt(str(error), 200)}",
                "the container must run commands",
                "See the trial's log.",
            ) from error
        parts = [text for text in (_plain(result.stdout), _plain(result.stderr)) if text.strip()]
        if result.return_code != 0:
            parts.append(f"(exit code {result.return_code})")
        return _cut("\n".join(parts) or "(no output)", self._output_chars)


def _plain(output: str | None) -> str:
    """Return an output without NUL and lone surrogates, which a memory cannot store."""
    return (output or "").replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode().rstrip("\n")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n({len(text) - 2 * half} characters left out)\n{text[-half:]}"
