"""The shell of a task's container, as an environment that an agent of ours acts in."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, runtime_checkable

from seasoned.checks import check_text
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.integrations.conversation import MAX_TASK_CHARS
from seasoned.integrations.harbor.grader_fence import grader_path
from seasoned.protocols import Observation

__all__ = ["DONE", "CommandRunner", "ContainerShell"]

DONE = "done"
"""The action that says that the task is finished."""

_REFUSED = "refused: {path} belongs to the grader of this task, which is not looked at. Work on the task itself."


@runtime_checkable
class CommandRunner(Protocol):
    """What is asked of a container: `harbor.environments.base.BaseEnvironment` has it."""

    async def exec(self, command: str, cwd: str | None = None, *, timeout_sec: int | None = None) -> Any:
        """Run a command; the result has `stdout`, `stderr` and `return_code`."""
        ...


class ContainerShell:
    """One task in one container. An action is a command line for its shell; the action `done` ends the episode.

    What is seen is the instruction, then what each command printed. A command that names the grader's files is not run
    (`fence.grader_path`); the refusal is what is seen, and `refused` counts them. Rewards are 0: what the work was
    worth is the grader's to say, afterwards.

    Args:
        container: runs the commands.
        instruction: the task.
        cwd: the folder in which every command runs; None: the container's own.
        timeout_s: for one command, in seconds.
        output_chars: at most this much of an output is shown, its beginning and its end.

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
        if not isinstance(container, CommandRunner):
            raise InputError(
                f"container = {excerpt(container)}", "a container runs commands with exec()", "Pass Harbor's."
            )
        for name, value, least in (("timeout_s", timeout_s, 1), ("output_chars", output_chars, 100)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} = {excerpt(value)}", f"it is a whole number, at least {least}", "Correct it.")
        self.instruction = check_text("instruction", instruction)
        self.refused = 0
        self._container = container
        self._cwd = cwd
        self._timeout_s = timeout_s
        self._output_chars = output_chars
        self._running = False

    @property
    def name(self) -> str:
        """What it is."""
        return "harbor"

    @property
    def task(self) -> str:
        """The instruction, its first 1000 characters: as an imported trajectory names its task."""
        return self.instruction.strip()[:MAX_TASK_CHARS].rstrip()

    @property
    def max_score(self) -> float | None:
        """Not known here."""
        return None

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Show the instruction. Nothing is undone in the container; a seed changes nothing."""
        del seed
        self._running = True
        self.refused = 0
        return Observation(self.instruction, None)

    async def step(self, action: str) -> Observation:
        """Run a command, and show what it printed.

        Raises:
            EnvError: before `reset`, after the end, or the container failed.
        """
        check_text("action", action)
        if not self._running:
            raise EnvError(f"action {excerpt(action)}", "an episode is running", "Call reset() first.")
        if action.strip() == DONE:
            self._running = False
            return Observation("The task is finished.", None, terminated=True)
        if (path := grader_path(action, self._cwd)) is not None:
            self.refused += 1
            return Observation(_REFUSED.format(path=path), None)
        return Observation(await self._run(action), None)

    async def aclose(self) -> None:
        """Leave the container to whoever started it."""
        self._running = False

    async def _run(self, command: str) -> str:
        try:
            done = await self._container.exec(command, cwd=self._cwd, timeout_sec=self._timeout_s)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if "timed out" in str(error).lower() or isinstance(error, TimeoutError):
                return f"(no answer within {self._timeout_s} s; the command was stopped)"
            self._running = False
            raise EnvError(
                f"command {excerpt(command)}: {type(error).__name__}: {excerpt(str(error), 200)}",
                "the container runs commands",
                "See the trial's log.",
            ) from error
        parts = [text for text in (_plain(done.stdout), _plain(done.stderr)) if text.strip()]
        if done.return_code != 0:
            parts.append(f"(exit code {done.return_code})")
        return _cut("\n".join(parts) or "(no output)", self._output_chars)


def _plain(output: str | None) -> str:
    """Return an output as a memory can hold it: no NUL, no lone surrogate."""
    return (output or "").replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode().rstrip("\n")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n({len(text) - 2 * half} characters left out)\n{text[-half:]}"
