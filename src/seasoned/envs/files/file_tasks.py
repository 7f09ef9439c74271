"""File tasks: shell commands in a temporary directory, scored by the files that result."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from seasoned.checks import check_whole, suggest
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.envs.files.file_goals import FILE_GOALS, draw_goal
from seasoned.envs.files.file_tree import FileTree, read_tree, write_tree
from seasoned.envs.shell.shell import Shell, ShellLimits, ShellResult
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Observation
from seasoned.types import normalize_action

__all__ = ["FileTasks", "open_files"]

_MAX_PATHS = 40
_MAX_OUTPUT_CHARS = 400
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = re.compile(  # the formats of `date` and, for recent files, of `ls -l`
    rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} +\d+ \d\d:\d\d:\d\d(?: \w+)? \d{{4}}|\b{_MONTH} +\d+ \d\d:\d\d\b"
)


class FileTasks:
    """A task on files, such as finding the largest log and moving it. Every episode begins with the same files.

    The actions are shell commands. By default the agent chooses from a menu made from the present files, including
    wrong commands; with `free_text` it writes any command of one line, and `admissible` is None.

    The score is the share of subgoals reached, minus the share of other files changed or deleted: 0 at the start, 1 at
    best, -1 at worst. A step's reward is its change of the score. The episode is terminated when the score is 1, or
    when the directory exceeds its limit (16 MiB, 2,000 files).

    The state is the sorted paths, the exit of the last command, and the first 400 characters of its output. The path of
    the directory and the present time are masked. Process ids, and the order of an unsorted `find`, are not.

    See `Shell` for the limits of a command. It is no sandbox.

    Args:
        kind: a key of `FILE_GOALS`, or `any` for a kind drawn by the seed.
        level: 1 to 3; more files and more subgoals.
        seed: the seed of the files' names and contents.
        max_steps: the episode is truncated after this many steps; at least the length of the solution.
        free_text: whether the agent writes its commands.
        history: the number of last commands in the state, 0 to 10. With 0 states recur most, but a change without a
            trace in the paths or the last output, such as a changed line, is not visible.
        timeout_s: the timeout of one command, in seconds.

    Raises:
        InputError: a value breaks one of these rules.
        EnvError: this system has no `/bin/sh`.

    Example:
        >>> from seasoned.sync import Sync
        >>> with Sync(FileTasks("largest-log", seed=3)) as env:
        ...     seen = env.reset()
        ...     seen = [env.step(command) for command in env.solution][-1]
        >>> seen.score, seen.terminated
        (1.0, True)
    """

    def __init__(
        self,
        kind: str,
        *,
        level: int = 1,
        seed: int = 0,
        max_steps: int = 15,
        free_text: bool = False,
        history: int = 0,
        timeout_s: float = 5.0,
    ) -> None:
        if kind != "any" and kind not in FILE_GOALS:
            names = ("any", *FILE_GOALS)
            raise InputError(f"file task {excerpt(kind)}", "no file task has this name", suggest(kind, names))
        level, seed = check_whole("level", level, 1, 3), check_whole("seed", seed, 0)
        if kind == "any":
            kind = random.Random(f"any/{seed}").choice(sorted(FILE_GOALS))  # noqa: S311 - randomness of a game
        self._goal = draw_goal(kind, level=level, seed=seed)
        self._guard = EpisodeGuard(check_whole("max_steps", max_steps, len(self._goal.solution)))
        self._limits = ShellLimits(
            timeout_s=timeout_s,
            max_output_bytes=4_096,
            max_file_bytes=8 << 20,
            max_disk_bytes=16 << 20,
            max_files=2_000,
            max_processes=32,
        )
        self._free_text = free_text
        self._history = check_whole("history", history, 0, 10)
        extra = f"&history={history}" if history else ""
        extra += f"&timeout_s={timeout_s}" if timeout_s != 5.0 else ""
        extra += "&free_text=1" if free_text else ""
        self._name = f"files:{kind}?level={level}&seed={seed}&max_steps={max_steps}{extra}"
        self._shell: Shell | None = None
        self._score = 0.0
        self._commands: list[str] = []

    @property
    def name(self) -> str:
        """The specification that opens the same environment with `open_env`."""
        return self._name

    @property
    def task(self) -> str:
        """The goal, in words."""
        return self._goal.text

    @property
    def max_score(self) -> float | None:
        """1: every subgoal is reached and every invariant holds."""
        return 1.0

    @property
    def solution(self) -> tuple[str, ...]:
        """Commands that reach the goal from the start; for tests and oracles, not for the agent."""
        return self._goal.solution

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode in an emptied directory; `seed` changes nothing.

        Raises:
            EnvError: the environment was closed, or no directory can be created.
        """
        self._guard.check_open()
        self._shell = await asyncio.to_thread(self._prepare, self._shell)
        self._score, self._commands = 0.0, []
        tree = await asyncio.to_thread(read_tree, self._shell.directory)
        return self._with_admissible(self._guard.begin(_state(tree, "last: none"), self._menu(tree)))

    async def step(self, action: str) -> Observation:
        """Run one command.

        Raises:
            EnvError: before `reset`, after the end, for a command that is not admissible, or if the command killed the
                shell's supervisor.
        """
        command = self._guard.resolve_action(action, free_text=self._free_text)
        if self._shell is None:
            raise EnvError("step without a shell", "reset opens the shell", "Call reset first.")
        try:
            result = await self._shell.run(command)
        except EnvError:
            await self._close_shell()  # the next episode opens another shell
            raise
        self._commands.append(command)
        tree = await asyncio.to_thread(read_tree, self._shell.directory)
        before, self._score = self._score, self._goal.score(tree)
        return self._with_admissible(
            self._guard.observe(
                _state(
                    tree,
                    _last_result(result, self._shell.directory),
                    self._commands[len(self._commands) - self._history :],
                ),
                self._menu(tree),
                reward=self._score - before,
                terminated=self._score == 1.0 or result.ended == "disk",
            )
        )

    async def aclose(self) -> None:
        """Kill running processes, and remove the directory."""
        self._guard.close()
        await self._close_shell()

    def _prepare(self, shell: Shell | None) -> Shell:
        """Return a shell whose directory holds exactly the task's files."""
        if shell is None:
            shell = Shell(limits=self._limits)
        else:
            shell.clear()
        write_tree(shell.directory, dict(self._goal.files), self._goal.folders)
        return shell

    async def _close_shell(self) -> None:
        if self._shell is not None:
            shell, self._shell = self._shell, None
            await shell.aclose()

    def _menu(self, tree: FileTree) -> tuple[str, ...]:
        if self._free_text:
            return ()
        return tuple({normalize_action(command): command for command in sorted(self._goal.menu(tree))}.values())

    def _with_admissible(self, observation: Observation) -> Observation:
        return replace(observation, admissible=None) if self._free_text else observation


def open_files(target: str, options: Mapping[str, str]) -> FileTasks:
    """Return the environment of `files:TARGET?option=value&...`; the options are the arguments of `FileTasks`.

    Raises:
        InputError: no file task has this name, an option is unknown, or a value is not allowed.

    Example:
        >>> open_files("count", {"seed": "3", "level": "2"}).name
        'files:count?level=2&seed=3&max_steps=15'
    """
    known = {
        "level": Option(1, low=1, high=3),
        "seed": Option(0, high=2**31 - 1),
        "max_steps": Option(15, low=1),
        "free_text": Option(False),
        "history": Option(0, high=10),
    }
    return FileTasks(target, **option_values(options, known, numbers=("timeout_s",)))


def _state(tree: FileTree, last_result: str, history: Sequence[str] = ()) -> str:
    paths = tree.listing()
    more = f" and {len(paths) - _MAX_PATHS} more" if len(paths) > _MAX_PATHS and not tree.truncated else ""
    commands = f"done: {'; '.join(history)}\n" if history else ""
    listing = "too many to list" if tree.truncated else " ".join(paths[:_MAX_PATHS]) or "none"
    return f"files: {listing}{more}\n{commands}{last_result}"


def _last_result(result: ShellResult, directory: Path) -> str:
    """Return the exit and the output of a command, with the directory and the time masked."""
    ended = f"exit {result.exit_code}" if result.ended == "exited" else f"killed by the {result.ended} limit"
    text = result.output.replace(str(directory.parent), "")
    for moment in (time.time(), time.time() - result.elapsed_s):
        text = re.sub(time.strftime("%Y-%m-%d", time.gmtime(moment)) + r"(?:[ T][\d:.]+)?", "<now>", text)
    text = "\n".join(line.rstrip() for line in _CLOCK.sub("<now>", text).splitlines() if line.strip())
    cut = text[:_MAX_OUTPUT_CHARS] + ("..." if len(text) > _MAX_OUTPUT_CHARS else "")
    return f"last: {ended}\n{cut}".rstrip()
