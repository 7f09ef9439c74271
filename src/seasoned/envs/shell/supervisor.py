"""The process supervisor of one shell: it runs commands under limits and leaves no child process behind.

`Shell` starts it as a separate script, so it imports the standard library only. It reads one request a line from its
standard input and writes one answer a line to its standard output. When its input ends (the program closed it, or
died), it kills the remaining processes, removes the temporary directory and exits.

On Linux it is the subreaper of its descendants (prctl(2), PR_SET_CHILD_SUBREAPER): a process whose parent ends becomes
the supervisor's own child, whatever its session, group or environment. So every descendant stays in the supervisor's
process tree, and is killed. Elsewhere only the command's process group is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "BoundedOutput",
    "Supervisor",
    "descendants",
    "disk_use",
    "landlock_version",
    "processes_with_env",
    "remove_tree",
    "restrict_writes",
]

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # landlock(7); the same numbers on every architecture
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_WRITE_RIGHTS = (  # by the version of Landlock that has them
    (1, _WRITE_FILE | sum(1 << bit for bit in range(4, 13))),  # remove and make entries of each kind
    (2, 1 << 13),  # link or rename across folders
    (3, _TRUNCATE),
)
_SCOPES = 0b11  # of version 6: no abstract sockets of, and no signals to, processes outside
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_POLL_S = 0.1
_KILL_TIMEOUT_S = 5.0  # a process of another user, or one that waits for a dead disk, cannot be killed


def descendants(root: int) -> list[int]:
    """Return every living descendant of process `root`, from /proc; empty on a system without /proc.

    Example:
        >>> os.getpid() in descendants(os.getpid())
        False
    """
    children: dict[int, list[int]] = {}
    for pid in _processes():
        with contextlib.suppress(OSError, ValueError):
            state, parent = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(pid)
    pids = list(children.get(root, ()))
    for pid in pids:  # the list grows during the loop
        pids += children.get(pid, ())
    return pids


def processes_with_env(marker: str) -> list[int]:
    """Return every process whose environment holds `marker`; used after a command has killed the supervisor.

    Example:
        >>> processes_with_env("SEASONED_SHELL=/no/such/directory")
        []
    """
    pids = []
    for pid in _processes():
        with contextlib.suppress(OSError):
            if pid != os.getpid() and marker.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                pids.append(pid)
    return pids


def disk_use(root: str, max_bytes: int, max_files: int) -> tuple[int, int]:
    """Return the bytes on disk and the number of entries below `root`; counting stops above either limit.

    Folders nested deeper than the system's longest path count as too many entries.

    Example:
        >>> disk_use("/no/such/directory", 10, 10)
        (0, 0)
    """
    used = files = 0
    folders = [root]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    files += 1
                    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                        used += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                    if used > max_bytes or files > max_files:
                        return used, files
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return used, max_files + 1
    return used, files


def remove_tree(root: str) -> None:
    """Remove a directory of any depth, even if a command has made it unwritable; links are not followed.

    Example:
        >>> remove_tree("/no/such/directory")
    """
    for command in (["rm", "-rf", root], ["chmod", "-R", "u+rwx", root], ["rm", "-rf", root]):
        if not os.path.lexists(root):
            return
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            pid = os.posix_spawnp(
                command[0],
                [*command[:-1], "--", root],
                {"PATH": "/usr/local/bin:/usr/bin:/bin"},
                file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), fd) for fd in (1, 2)],
            )
            with contextlib.suppress(ChildProcessError):  # the program ignores SIGCHLD
                os.waitpid(pid, 0)


def landlock_version() -> int:
    """Return the version of Landlock that this system's kernel has; 0 where it has none.

    Example:
        >>> landlock_version() >= 0
        True
    """
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, 1)))


def restrict_writes(folders: list[str]) -> None:
    """Restrict this process and its future children to writing below `folders`, into /dev/shm and to harmless devices.

    By Landlock, which needs no rights and cannot be undone. It covers creating, writing, cutting, renaming and removing
    files, and from version 6 signals to other processes; not changes of modes, owners and times, and not the network.

    Args:
        folders: which exist.

    Raises:
        OSError: the kernel has no Landlock, or refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = landlock_version()

    def call(number: int, *arguments: Any) -> int:
        result = int(libc.syscall(number, *arguments))
        if result < 0:
            raise OSError(ctypes.get_errno(), f"Landlock (version {version}) refuses to restrict writing")
        return result

    rights = sum(bits for since, bits in _WRITE_RIGHTS if version >= since)
    attributes = (ctypes.c_uint64 * 3)(rights, 0, _SCOPES)
    ruleset = call(_CREATE_RULESET, ctypes.byref(attributes), 24 if version >= 6 else 8, 0)
    of_file = rights & (_WRITE_FILE | _TRUNCATE)
    for path, allowed in [
        *((each, rights) for each in (*folders, "/dev/shm")),  # noqa: S108
        *((each, of_file) for each in _DEVICES),
    ]:
        with contextlib.suppress(FileNotFoundError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = allowed.to_bytes(8, sys.byteorder) + opened.to_bytes(4, sys.byteorder)
            call(_ADD_RULE, ruleset, 1, rule, 0)
            os.close(opened)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


class BoundedOutput:
    """The beginning and the end of a stream, in bounded memory.

    Example:
        >>> output = BoundedOutput(4)
        >>> output.add(b"abcdefgh")
        >>> output.head, output.tail, output.written
        (b'ab', b'gh', 8)
    """

    def __init__(self, max_bytes: int) -> None:
        self._half = (max_bytes + 1) // 2, max_bytes // 2
        self.head = self.tail = b""
        self.written = 0

    def add(self, chunk: bytes) -> None:
        """Append the next bytes."""
        self.written += len(chunk)
        room = self._half[0] - len(self.head)
        self.head += chunk[:room]
        rest = self.tail + chunk[room:]
        self.tail = rest[max(0, len(rest) - self._half[1]) :]


class Supervisor:
    """Runs one command after the other; `settings` are the limits and paths of `Shell`, as plain values."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._parent = os.getppid()
        self._closing = False
        self._child_died, wakeup = os.pipe()
        for fd in (self._child_died, wakeup):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        if sys.platform == "linux":
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def serve(self) -> None:
        """Answer requests until the input ends, then clean up."""
        waiting = b""
        try:
            while not self._closing:
                ready, _, _ = select.select([0], [], [], 2.0)
                if os.getppid() != self._parent:  # the program died; a copy of the other end of our input is still open
                    return
                if not ready:
                    continue
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return
                *lines, waiting = (waiting + chunk).split(b"\n")
                for line in lines:
                    request = json.loads(line)
                    if "command" in request:  # else it stops a command that has already ended
                        answer = json.dumps(self.run(**request)).encode() + b"\n"
                        while answer:
                            answer = answer[os.write(1, answer) :]
        except BrokenPipeError:
            return
        finally:
            _kill_descendants()
            remove_tree(self._settings["base"])

    def run(self, command: str, timeout_s: float) -> dict[str, Any]:
        """Run one command to its end, or to the first limit that it breaks."""
        start_s = time.monotonic()
        allowance = self._disk_allowance()
        reading, writing = os.pipe()
        main = os.fork()
        if main == 0:
            self._exec_shell(command, writing, timeout_s)
        os.close(writing)
        os.set_blocking(reading, False)
        output = BoundedOutput(self._settings["max_output_bytes"])
        exit_code, ended = self._watch(main, reading, output, start_s + timeout_s, allowance)
        with contextlib.suppress(OSError):
            os.killpg(main, signal.SIGKILL)
        left_running = _kill_descendants()
        _drain(reading, output)
        os.close(reading)
        if ended == "exited" and self._exceeds((self._settings["max_disk_bytes"], self._settings["max_files"])):
            ended = "disk"
        return {
            "exit_code": exit_code,
            "ended": ended,
            "head": output.head.decode("latin-1"),
            "tail": output.tail.decode("latin-1"),
            "written_bytes": output.written,
            "left_running": left_running,
            "elapsed_s": time.monotonic() - start_s,
        }

    def _exec_shell(self, command: str, writing: int, timeout_s: float) -> None:
        """In the child process: set the limits and replace it by the shell. Never returns."""
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            for name in ("SIGPIPE", "SIGXFSZ", "SIGTERM", "SIGCHLD"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            os.umask(0o022)
            os.chdir(self._settings["work"])
            cpu_s = int(timeout_s) + 2
            for kind, limit in (
                ("RLIMIT_CORE", 0),
                ("RLIMIT_CPU", cpu_s),
                ("RLIMIT_DATA", self._settings["max_memory_bytes"]),
                ("RLIMIT_FSIZE", self._settings["max_file_bytes"]),
            ):
                hard = resource.getrlimit(getattr(resource, kind))[1]
                bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(getattr(resource, kind), (bound, bound))
            if self._settings["writable"] is not None:
                restrict_writes([self._settings["base"], *self._settings["writable"]])
            os.execve("/bin/sh", ["sh", "-c", command], self._settings["env"])  # noqa: S606 - it is the shell
        except BaseException as error:
            os.write(2, f"the command could not be started: {error}\n".encode())
        finally:
            os._exit(126)

    def _watch(
        self, main: int, reading: int, output: BoundedOutput, deadline: float, allowance: tuple[int, int]
    ) -> tuple[int | None, str]:
        """Wait for the command's end; return its exit code, and its exit or the limit that it broke."""
        watched, next_check = [0, self._child_died, reading], time.monotonic() + _POLL_S
        while True:
            now = time.monotonic()
            ready, _, _ = select.select(watched, [], [], max(0.0, min(deadline, next_check) - now))
            if reading in ready and _drain(reading, output):
                watched.remove(reading)
            if self._child_died in ready:
                os.read(self._child_died, 1 << 12)
            for pid, status in _reap_children():
                if pid == main:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code, "exited"
            if output.written > self._settings["max_written_bytes"]:
                return None, "output"
            if 0 in ready:
                self._closing = not os.read(0, 1 << 16)
                return None, "stopped"
            if (now := time.monotonic()) >= deadline:
                return None, "timeout"
            if now >= next_check:
                if len(descendants(os.getpid())) > self._settings["max_processes"]:
                    return None, "processes"
                if self._exceeds(allowance):
                    return None, "disk"
                next_check = time.monotonic() + max(_POLL_S, 5 * (time.monotonic() - now))

    def _disk_allowance(self) -> tuple[int, int]:
        """Return the bytes and files allowed after the next command: the limits, or the present use if larger."""
        limits = self._settings["max_disk_bytes"], self._settings["max_files"]
        used, files = disk_use(self._settings["base"], 4 * limits[0], 4 * limits[1])
        return max(limits[0], used), max(limits[1], files)

    def _exceeds(self, allowance: tuple[int, int]) -> bool:
        used, files = disk_use(self._settings["base"], *allowance)
        return used > allowance[0] or files > allowance[1]


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - the fast way


def _drain(fd: int, output: BoundedOutput, limit: int = 1 << 20) -> bool:
    """Read the available bytes, up to `limit`; return whether the stream has ended."""
    with contextlib.suppress(BlockingIOError):
        while limit > 0:
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                return True
            output.add(chunk)
            limit -= len(chunk)
    return False


def _reap_children() -> Iterator[tuple[int, int]]:
    """Yield the id and status of every child that has ended."""
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            yield child


def _kill_descendants() -> int:
    """Kill every descendant, including new ones; return the number of those that could not be killed."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while True:
        running = descendants(os.getpid())
        for number in (signal.SIGSTOP, signal.SIGKILL):  # a stopped process cannot fork
            for pid in running:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        for _ in _reap_children():
            pass
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0  # an orphan becomes our child, so without children there is no descendant
        if time.monotonic() > deadline:
            return len(descendants(os.getpid()))
        time.sleep(0.001)


if __name__ == "__main__":
    Supervisor(json.loads(sys.argv[1])).serve()
