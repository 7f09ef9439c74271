"""Shell commands in a throw-away directory, under limits, each killed whole when it ends or breaks one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from seasoned.checks import check_number
from seasoned.envs.episode_guard import check_whole
from seasoned.envs.shell import supervisor as warden_program
from seasoned.errors import EnvError, InputError, excerpt

__all__ = ["CommandEnding", "Shell", "ShellLimits", "ShellResult"]

CommandEnding = Literal["exited", "timeout", "output", "disk", "processes", "stopped"]
"""What ended a command: itself, or the limit that it broke; `stopped` where whoever waited for it was cancelled."""

_MAX_COMMAND_BYTES = 100_000  # Linux takes 128 KiB in one argument
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class ShellLimits:
    """What one command may use.

    Args:
        timeout_s: wall-clock seconds; also, rounded up, the CPU seconds of each process.
        max_output_bytes: kept of what it prints: the first half and the last.
        max_written_bytes: printed in all, before it is killed.
        max_file_bytes: of any one file (RLIMIT_FSIZE).
        max_disk_bytes: of the throw-away directory; looked at every 0.1 s or so, and at the end. Where there is more
            already, a command may still tidy up.
        max_files: files and folders in it, looked at likewise.
        max_processes: alive at once, looked at likewise.
        max_memory_bytes: data of each process (RLIMIT_DATA), not of all together.

    Raises:
        InputError: a limit is not above 0.

    Example:
        >>> ShellLimits(timeout_s=2.0).max_processes
        64
    """

    timeout_s: float = 10.0
    max_output_bytes: int = 8_192
    max_written_bytes: int = 64 << 20
    max_file_bytes: int = 64 << 20
    max_disk_bytes: int = 256 << 20
    max_files: int = 10_000
    max_processes: int = 64
    max_memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        _check_timeout(self.timeout_s)
        for limit in fields(self)[1:]:
            check_whole(limit.name, getattr(self, limit.name), 1)


@dataclass(frozen=True, slots=True)
class ShellResult:
    """What one command did.

    Args:
        command: as it was given.
        exit_code: 0 to 255, 128 + n where signal n ended it, as shells count; None if it was killed by a limit.
        ended: what ended it.
        output: stdout and stderr as they came, printable; the middle is left out where it was long.
        written_bytes: how much it printed until it ended.
        left_running: processes that could not be killed, such as another user's (`sudo`); 0 as a rule.
        elapsed_s: wall-clock seconds, the killing included.
    """

    command: str
    exit_code: int | None
    ended: CommandEnding
    output: str
    written_bytes: int
    left_running: int
    elapsed_s: float


class Shell:
    r"""Runs commands by `/bin/sh`, one after the other, in a directory that is thrown away at the end.

    Each command is a shell of its own: files stay, `cd` and variables do not, nor do processes in the background. Its
    input is empty and its environment is new: nothing of this program's is passed on but what `env` names. `HOME` and
    `TMPDIR` are folders of their own beside the working directory.

    On Linux every descendant of a command is killed when the command ends, breaks a limit, or this program ends, be it
    by SIGKILL: also what called `setsid` or `nohup`. Elsewhere only its process group is. **It is no sandbox**: a
    command has this user's rights. It can read and write outside the directory, reach the network, ask a service
    (cron, systemd, Docker) to run something elsewhere, and signal this program. Where commands are not trusted, run
    the program itself in a container, as a user with no rights.

    Args:
        directory: where commands run; a new one in the system's temporary directory if None. A given one is kept, and
            `max_disk_bytes` and `max_files` do not count what is in it.
        limits: of each command.
        env: variables to add to a command's environment, or to replace, such as `PATH`.

    Raises:
        InputError: a value breaks one of these rules.
        EnvError: this system has no `/bin/sh`, or the shell's warden cannot be started.

    Example:
        >>> from seasoned.sync import Sync
        >>> with Sync(Shell()) as shell:
        ...     result = shell.run("echo hello > a.txt; cat a.txt; exit 3")
        >>> result.output, result.exit_code, result.ended
        ('hello\n', 3, 'exited')
    """

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        limits: ShellLimits | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        if os.name != "posix" or not Path("/bin/sh").exists():
            raise EnvError(f"a {os.name} system", "commands are run by /bin/sh", "Use Linux or macOS.")
        if limits is not None and not isinstance(limits, ShellLimits):
            raise InputError(f"limits = {excerpt(limits)}", "limits are ShellLimits", "Try ShellLimits(timeout_s=5.0).")
        added = _check_env(env or {})
        if directory is not None and not Path(directory).is_dir():
            seen = f"directory = {excerpt(str(directory))}"
            raise InputError(seen, "it is a directory that exists", "Make it first.")
        self._limits = limits or ShellLimits()
        self._base = Path(tempfile.mkdtemp(prefix="seasoned-")).resolve()
        self._own = directory is None
        self._work = self._base / "work" if directory is None else Path(directory).resolve()
        self._turn = threading.Lock()
        standard = {"PATH": _PATH, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}
        places = {"HOME": str(self._base / "home"), "TMPDIR": str(self._base / "tmp"), "PWD": str(self._work)}
        settings = {
            **asdict(self._limits),
            "base": str(self._base),
            "work": str(self._work),
            "env": {**standard, **places, "SEASONED_SHELL": str(self._base), **added},
        }
        self._make_folders()
        try:
            self._warden = subprocess.Popen(  # noqa: S603 - our own file, by our own interpreter
                [sys.executable, "-I", "-S", warden_program.__file__, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env={"PATH": _PATH, "LC_ALL": "C.UTF-8"},
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            shutil.rmtree(self._base, ignore_errors=True)
            raise EnvError(f"{sys.executable} ({error})", "it starts the shell's warden", "Check the path.") from error
        self._finish = weakref.finalize(self, _finish, self._warden, str(self._base), os.getpid())

    @property
    def directory(self) -> Path:
        """Where commands run, as an absolute path."""
        return self._work

    @property
    def limits(self) -> ShellLimits:
        """What one command may use."""
        return self._limits

    async def run(self, command: str, *, timeout_s: float | None = None) -> ShellResult:
        """Run one command to its end, or to the first limit that it breaks. Commands wait for each other.

        If whoever waits is cancelled, the command is killed. A throw-away directory that an earlier command deleted, or
        replaced, is made anew.

        Args:
            command: a script for `sh -c`, of one line or many.
            timeout_s: instead of the limit's.

        Raises:
            InputError: the command is blank, too long, or holds what no command can; or the time is not above 0.
            EnvError: the shell was closed, its given directory is gone, or a command killed the shell's warden.
        """
        text = _check_command(command)
        allowed_s = self._limits.timeout_s if timeout_s is None else _check_timeout(timeout_s)
        try:
            answer = await asyncio.to_thread(self._exchange, text, allowed_s)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, ValueError):
                self._send({"stop": True})
            raise
        return _result(text, answer)

    def clear(self) -> None:
        """Empty the throw-away directory, `HOME` and `TMPDIR`. Call it between commands.

        Raises:
            InputError: the directory was given, and is not thrown away.
            EnvError: the shell was closed.
        """
        if not self._own:
            raise InputError(f"directory {self._work}", "a directory that was given is kept", "Delete in it by hand.")
        with self._turn:
            if not self._finish.alive:
                raise EnvError("clear after aclose", "a closed shell has no directory", "Open another Shell.")
            for folder in ("work", "home", "tmp"):
                warden_program.remove_tree(str(self._base / folder))
            self._make_folders()

    async def aclose(self) -> None:
        """Kill what runs, and remove the throw-away directory."""
        await asyncio.to_thread(self._finish)

    def _exchange(self, command: str, timeout_s: float) -> dict[str, Any]:
        with self._turn:
            if not self._finish.alive:
                raise EnvError("run after aclose", "a closed shell runs no command", "Open another Shell.")
            self._make_folders()
            try:
                self._send({"command": command, "timeout_s": timeout_s})
                line = self._warden.stdout.readline() if self._warden.stdout else b""
            except (OSError, ValueError):
                line = b""
            if line.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        closed = not self._finish.alive
        self._finish()
        raise EnvError(
            f"command {excerpt(command)}",
            "the shell was closed while it ran" if closed else "the shell's warden ended while it ran",
            "Open another Shell.",
        )

    def _send(self, request: dict[str, Any]) -> None:
        if self._warden.stdin:
            self._warden.stdin.write(json.dumps(request).encode() + b"\n")

    def _make_folders(self) -> None:
        """The folders that a command needs, where an earlier one removed them or put something else in their place."""
        if not self._own and not self._work.is_dir():
            raise EnvError(f"directory {self._work}", "it was removed while the shell was open", "Make it again.")
        for folder in (self._base, self._base / "home", self._base / "tmp", *([self._work] if self._own else ())):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                folder.unlink()
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)  # a command may have taken our own rights away


def _finish(warden: subprocess.Popen[bytes], base: str, owner: int) -> None:
    """End the warden, which cleans up; what it could not do, because a command killed it, is done here."""
    if os.getpid() != owner:  # a fork of the program ends: the shell is not its own
        return
    with contextlib.suppress(OSError):
        if warden.stdin:
            warden.stdin.close()
    try:
        warden.wait(timeout=15.0)
    except subprocess.TimeoutExpired:
        warden.kill()
        warden.wait()
    for stream in (warden.stdout, warden.stderr):
        with contextlib.suppress(OSError):
            if stream:
                stream.close()
    for _ in range(100) if warden.returncode else ():
        left = warden_program.marked(f"SEASONED_SHELL={base}")
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break
    warden_program.remove_tree(base)


def _result(command: str, answer: Mapping[str, Any]) -> ShellResult:
    head, tail = (answer[part].encode("latin-1") for part in ("head", "tail"))
    between = answer["written_bytes"] - len(head) - len(tail)
    kept = head + (f"\n[{between} bytes left out]\n".encode() if between else b"") + tail
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", kept.decode("utf-8", "backslashreplace"))
    ended: CommandEnding = next(ending for ending in get_args(CommandEnding) if ending == answer["ended"])
    return ShellResult(
        command, answer["exit_code"], ended, text, answer["written_bytes"], answer["left_running"], answer["elapsed_s"]
    )


def _check_command(command: object) -> str:
    rule = f"a command is a text, not blank, without NUL, of at most {_MAX_COMMAND_BYTES} bytes"
    try:
        if isinstance(command, str) and command.strip() and "\0" not in command:
            if len(command.encode()) <= _MAX_COMMAND_BYTES:
                return command
            raise InputError(f"a command of {len(command.encode())} bytes", rule, "Write a script file and run that.")
    except UnicodeEncodeError:
        rule = "a command is a text that UTF-8 can write"
    raise InputError(f"command = {excerpt(command)}", rule, "Try 'ls'.")


def _check_timeout(timeout_s: object) -> float:
    if check_number("timeout_s", timeout_s) <= 0.0:
        raise InputError(f"timeout_s = {timeout_s}", "a time limit is above 0 s", "Try timeout_s=10.")
    return check_number("timeout_s", timeout_s)


def _check_env(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        texts = isinstance(name, str) and isinstance(value, str)
        if not texts or not name or "=" in name or "\0" in name + value:
            raise InputError(
                f"env {excerpt(name)} = {excerpt(value)}",
                "a variable's name and value are texts, the name without '='",
                "Pass {'PATH': '/usr/bin:/bin'}, say.",
            )
    return dict(env)
