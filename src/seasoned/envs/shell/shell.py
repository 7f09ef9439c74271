"""Shell commands in a temporary directory, under limits; every process of a command is killed when it ends."""

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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from seasoned.checks import check_instance, check_number, check_whole
from seasoned.envs.shell import supervisor
from seasoned.errors import EnvError, InputError, excerpt

__all__ = ["CommandEnding", "Shell", "ShellLimits", "ShellResult"]

CommandEnding = Literal["exited", "timeout", "output", "disk", "processes", "stopped"]
"""The end of a command: its own exit, or the limit that it broke; `stopped` if the waiting caller was cancelled."""

_MAX_COMMAND_BYTES = 100_000  # Linux takes 128 KiB in one argument
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class ShellLimits:
    """The limits of one command.

    Args:
        timeout_s: wall-clock seconds; also, rounded up, the CPU seconds of each process.
        max_output_bytes: the stored part of its output: the first half and the last.
        max_written_bytes: the whole output; a command that prints more is killed.
        max_file_bytes: the size of any one file (RLIMIT_FSIZE).
        max_disk_bytes: the size of the temporary directory, checked about every 0.1 s and at the end. If the directory
            is larger before a command, the command may not enlarge it.
        max_files: files and folders in the directory, checked likewise.
        max_processes: processes alive at once, checked likewise.
        max_memory_bytes: the data segment of each process (RLIMIT_DATA), not of all together.

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
    """The result of one command.

    Args:
        command: the command.
        exit_code: 0 to 255, 128 + n where signal n ended it, as shells count; None if it was killed by a limit.
        ended: its exit, or the limit that it broke.
        output: stdout and stderr in order, printable; the middle of a long output is left out.
        written_bytes: the size of the whole output.
        left_running: processes that could not be killed, such as another user's (`sudo`); usually 0.
        elapsed_s: wall-clock seconds, including the killing of its processes.
    """

    command: str
    exit_code: int | None
    ended: CommandEnding
    output: str
    written_bytes: int
    left_running: int
    elapsed_s: float


class Shell:
    r"""A shell that runs commands by `/bin/sh`, one after the other, in a temporary directory.

    Each command runs in a new shell: files persist, but `cd`, variables and background processes do not. Its input is
    empty, and its environment holds nothing of this program's environment except the variables in `env`. `HOME` and
    `TMPDIR` are separate folders next to the working directory.

    On Linux every descendant of a command is killed when the command ends, breaks a limit, or this program ends (even
    by SIGKILL), including processes that called `setsid` or `nohup`. Elsewhere only its process group is killed. **It
    is no sandbox**: a command has this user's rights. It can read and write outside the directory, reach the network,
    ask a service (cron, systemd, Docker) to run something elsewhere, and signal this program. If you do not trust the
    commands, run the program itself in a container, as a user without rights.

    Args:
        directory: the working directory of commands; a new temporary directory if None. A given directory is not
            deleted, and `max_disk_bytes` and `max_files` do not count its content.
        limits: the limits of each command.
        env: variables that are added to a command's environment, or replaced in it, such as `PATH`.
        writable: the folders in which commands may write, besides `HOME` and `TMPDIR`, by Landlock (Linux 5.13). A
            command can still read other files, change their modes and reach the network. None: no restriction.

    Raises:
        InputError: a value breaks one of these rules.
        EnvError: this system has no `/bin/sh`, the shell's supervisor process cannot be started, or `writable` is given
            and the kernel has no Landlock.

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
        writable: Sequence[str | Path] | None = None,
    ) -> None:
        if os.name != "posix" or not Path("/bin/sh").exists():
            raise EnvError(f"a {os.name} system", "commands are run by /bin/sh", "Use Linux or macOS.")
        if limits is not None:
            check_instance("limits", limits, ShellLimits, "limits are ShellLimits", "Try ShellLimits(timeout_s=5.0).")
        added = _check_env(env or {})
        if directory is not None and not Path(directory).is_dir():
            seen = f"directory = {excerpt(str(directory))}"
            raise InputError(seen, "a given directory exists", "Create it first.")
        if writable is not None and not supervisor.landlock_version():
            rule = "the kernel restricts where commands write by Landlock"
            raise EnvError(f"writable = {excerpt(writable)}", rule, "Use Linux 5.13 or newer, or leave it out.")
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
            "writable": None if writable is None else [str(Path(each).resolve()) for each in writable],
        }
        self._make_folders()
        try:
            self._supervisor = subprocess.Popen(  # noqa: S603 - our own file, by our own interpreter
                [sys.executable, "-I", "-S", supervisor.__file__, json.dumps(settings)],
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
            raise EnvError(
                f"{sys.executable} ({error})", "it starts the shell's supervisor", "Check the path."
            ) from error
        self._finish = weakref.finalize(self, _finish, self._supervisor, str(self._base), os.getpid())

    @property
    def directory(self) -> Path:
        """The working directory of commands, as an absolute path."""
        return self._work

    @property
    def limits(self) -> ShellLimits:
        """The limits of one command."""
        return self._limits

    async def run(self, command: str, *, timeout_s: float | None = None) -> ShellResult:
        """Run one command to its end, or to the first limit that it breaks. Commands run one at a time.

        If the waiting caller is cancelled, the command is killed. A temporary directory that an earlier command deleted
        or replaced is created again.

        Args:
            command: a script for `sh -c`, of one line or more.
            timeout_s: replaces the timeout of the limits.

        Raises:
            InputError: the command is blank, too long, or contains NUL or text that is not UTF-8; or the timeout is not
                above 0.
            EnvError: the shell was closed, its given directory is gone, or a command killed the shell's supervisor.
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
        """Empty the temporary directory, `HOME` and `TMPDIR`. Call it between commands.

        Raises:
            InputError: the directory was given; a given directory is never emptied.
            EnvError: the shell was closed.
        """
        if not self._own:
            raise InputError(f"directory {self._work}", "a given directory is not emptied", "Delete its files by hand.")
        with self._turn:
            if not self._finish.alive:
                raise EnvError("clear after aclose", "a closed shell has no directory", "Open another Shell.")
            for folder in ("work", "home", "tmp"):
                supervisor.remove_tree(str(self._base / folder))
            self._make_folders()

    async def aclose(self) -> None:
        """Kill running processes, and remove the temporary directory."""
        await asyncio.to_thread(self._finish)

    def _exchange(self, command: str, timeout_s: float) -> dict[str, Any]:
        with self._turn:
            if not self._finish.alive:
                raise EnvError("run after aclose", "a closed shell runs no command", "Open another Shell.")
            self._make_folders()
            try:
                self._send({"command": command, "timeout_s": timeout_s})
                line = self._supervisor.stdout.readline() if self._supervisor.stdout else b""
            except (OSError, ValueError):
                line = b""
            if line.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        closed = not self._finish.alive
        self._finish()
        raise EnvError(
            f"command {excerpt(command)}",
            "the shell was closed while it ran" if closed else "the shell's supervisor ended while it ran",
            "Open another Shell.",
        )

    def _send(self, request: dict[str, Any]) -> None:
        if self._supervisor.stdin:
            self._supervisor.stdin.write(json.dumps(request).encode() + b"\n")

    def _make_folders(self) -> None:
        """Create the folders of a command, which an earlier command may have removed or replaced."""
        if not self._own and not self._work.is_dir():
            raise EnvError(f"directory {self._work}", "it was removed while the shell was open", "Create it again.")
        for folder in (self._base, self._base / "home", self._base / "tmp", *([self._work] if self._own else ())):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                folder.unlink()
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)  # a command may have removed our own rights


def _finish(process: subprocess.Popen[bytes], base: str, owner: int) -> None:
    """End the supervisor, which cleans up; if a command has killed it, clean up here."""
    if os.getpid() != owner:  # a forked copy of the program ends: the shell belongs to its parent
        return
    with contextlib.suppress(OSError):
        if process.stdin:
            process.stdin.close()
    try:
        process.wait(timeout=15.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            if stream:
                stream.close()
    for _ in range(100) if process.returncode else ():
        remaining = supervisor.processes_with_env(f"SEASONED_SHELL={base}")
        for pid in remaining:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not remaining:
            break
    supervisor.remove_tree(base)


def _result(command: str, answer: Mapping[str, Any]) -> ShellResult:
    head, tail = (answer[part].encode("latin-1") for part in ("head", "tail"))
    n_omitted = answer["written_bytes"] - len(head) - len(tail)
    shown = head + (f"\n[{n_omitted} bytes left out]\n".encode() if n_omitted else b"") + tail
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", shown.decode("utf-8", "backslashreplace"))
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
    return check_number("timeout_s", timeout_s, above=0.0, next_step="Try timeout_s=10.")


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
