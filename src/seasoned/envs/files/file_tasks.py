"""Small jobs on files, done by real shell commands in a throw-away directory, and checked on what is left there."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seasoned.checks import suggest
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import Turns, check_whole
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
_CLOCK = re.compile(  # as `date` and, for files of the last months, `ls -l` write the time
    rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} +\d+ \d\d:\d\d:\d\d(?: \w+)? \d{{4}}|\b{_MONTH} +\d+ \d\d:\d\d\b"
)


class FileTasks:
    """One job on files, such as finding the largest log and moving it; an episode begins with the same files again.

    The agent's actions are shell commands. By default it chooses from a menu made from what lies there now, wrong
    commands among them; with `free_text` it writes any command of one line, and `admissible` is None.

    The score is the share of sub-goals reached, less the share of files harmed that should have stayed as they were:
    0 at the start, 1 at best, -1 at worst. A step's reward is what it changed of the score. The episode is terminated
    when the score is 1, or when the directory has outgrown its limit (16 MiB, 2,000 files).

    The state is the sorted paths, what ended the last command, and the first 400 characters of what it printed. Where
    the directory lies and what time it is are masked. Process ids, and the order of an unsorted `find`, are not.

    See `Shell` for what a command may use, and for what it is not kept from: it is no sandbox.

    Args:
        kind: the job, a key of `FILE_GOALS`, or `any` for one drawn by the seed.
        level: 1 to 3; more files and more sub-goals.
        seed: of the files' names and contents.
        max_steps: the episode is truncated after this many; no fewer than the solution has.
        free_text: whether the agent writes its commands.
        history: how many of the last commands the state tells, 0 to 10. With 0 it recurs most; what left no trace in
            the paths or the last output, such as a changed line, is then not seen.
        timeout_s: seconds that one command may take.

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
            kind = random.Random(f"any/{seed}").choice(sorted(FILE_GOALS))  # noqa: S311 - a game's chance
        self._goal = draw_goal(kind, level=level, seed=seed)
        self._turns = Turns(check_whole("max_steps", max_steps, len(self._goal.solution)))
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
        self._done: list[str] = []

    @property
    def name(self) -> str:
        """The specification that makes it again, with `open_env`."""
        return self._name

    @property
    def task(self) -> str:
        """The goal, in words."""
        return self._goal.words

    @property
    def max_score(self) -> float | None:
        """1: everything reached, nothing harmed."""
        return 1.0

    @property
    def solution(self) -> tuple[str, ...]:
        """Commands that reach the goal from the start: for tests and oracles, not for the agent."""
        return self._goal.solution

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode in an emptied directory. The same task begins the same, whatever the seed.

        Raises:
            EnvError: the environment was closed, or no directory can be made.
        """
        self._turns.check_open()
        self._shell = await asyncio.to_thread(self._prepare, self._shell)
        self._score, self._done = 0.0, []
        tree = await asyncio.to_thread(read_tree, self._shell.directory)
        return self._shown(self._turns.begin(_state(tree, "last: none"), self._menu(tree)))

    async def step(self, action: str) -> Observation:
        """Run one command.

        Raises:
            EnvError: before `reset`, after the end, for a command that is not admissible, or if the command killed the
                shell's warden.
        """
        command = self._turns.take(action, free_text=self._free_text)
        if self._shell is None:
            raise EnvError("step without a shell", "reset makes one", "Call reset first.")
        try:
            result = await self._shell.run(command)
        except EnvError:
            await self._close_shell()  # so that the next episode has a shell again
            raise
        self._done.append(command)
        tree = await asyncio.to_thread(read_tree, self._shell.directory)
        before, self._score = self._score, self._goal.score(tree)
        return self._shown(
            self._turns.show(
                _state(tree, _told(result, self._shell.directory), self._done[len(self._done) - self._history :]),
                self._menu(tree),
                reward=self._score - before,
                terminated=self._score == 1.0 or result.ended == "disk",
            )
        )

    async def aclose(self) -> None:
        """Kill what runs and remove the directory."""
        self._turns.close()
        await self._close_shell()

    def _prepare(self, shell: Shell | None) -> Shell:
        """A shell whose directory holds the task's files and nothing else."""
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

    def _shown(self, seen: Observation) -> Observation:
        return replace(seen, admissible=None) if self._free_text else seen


def open_files(target: str, given: dict[str, str], _: str | Path | None = None) -> FileTasks:
    """Return the environment of `files:TARGET?option=value&...`, the options being the arguments of `FileTasks`.

    Raises:
        InputError: no such task or option, or a value that is not allowed.

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
    return FileTasks(target, **option_values(given, known, numbers=("timeout_s",)))


def _state(tree: FileTree, last: str, done: Sequence[str] = ()) -> str:
    paths = tree.listing()
    more = f" and {len(paths) - _MAX_PATHS} more" if len(paths) > _MAX_PATHS and not tree.more else ""
    told = f"done: {'; '.join(done)}\n" if done else ""
    return f"files: {'too many to list' if tree.more else ' '.join(paths[:_MAX_PATHS]) or 'none'}{more}\n{told}{last}"


def _told(result: ShellResult, directory: Path) -> str:
    """What came of a command, the same whenever the same is done in the same place."""
    ended = f"exit {result.exit_code}" if result.ended == "exited" else f"killed by the {result.ended} limit"
    text = result.output.replace(str(directory.parent), "")
    for moment in (time.time(), time.time() - result.elapsed_s):
        text = re.sub(time.strftime("%Y-%m-%d", time.gmtime(moment)) + r"(?:[ T][\d:.]+)?", "<now>", text)
    text = "\n".join(line.rstrip() for line in _CLOCK.sub("<now>", text).splitlines() if line.strip())
    cut = text[:_MAX_OUTPUT_CHARS] + ("..." if len(text) > _MAX_OUTPUT_CHARS else "")
    return f"last: {ended}\n{cut}".rstrip()
