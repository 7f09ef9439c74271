"""The warden of one shell: a process that runs commands under limits and leaves none of their children behind.

`Shell` starts it as a script of its own, so it imports the standard library only. It reads a request a line on its
standard input, answers a line on its standard output, and when its input ends (the program closed it, or died) it kills
what is left, removes the throw-away directory and exits.

On Linux it is the subreaper of what it starts (prctl(2), PR_SET_CHILD_SUBREAPER): a process whose parent ends becomes
the warden's own child, whatever session, group or environment it gave itself. So every descendant stays in its tree,
and is killed. Elsewhere only the command's process group is.
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

__all__ = ["Kept", "Warden", "descendants", "disk_use", "marked", "remove_tree"]

_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.1
_GIVE_UP_S = 5.0  # a process of another user, or one that waits on a dead disk, cannot be killed


def descendants(root: int) -> list[int]:
    """Return every living descendant of process `root`, from /proc; empty where there is no /proc.

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
    found = list(children.get(root, ()))
    for pid in found:  # grows while it is read
        found += children.get(pid, ())
    return found


def marked(marker: str) -> list[int]:
    """Return every process whose environment holds `marker`: what is left to go by once a warden was killed.

    Example:
        >>> marked("SEASONED_SHELL=/no/such/directory")
        []
    """
    found = []
    for pid in _processes():
        with contextlib.suppress(OSError):
            if pid != os.getpid() and marker.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def disk_use(root: str, max_bytes: int, max_files: int) -> tuple[int, int]:
    """Return the bytes on disk and the entries below `root`; counting stops when either is above its limit.

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
    """Remove a directory, of any depth, that a command may have made unwritable; links are not followed.

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
            with contextlib.suppress(ChildProcessError):  # where the program ignores SIGCHLD
                os.waitpid(pid, 0)


class Kept:
    """The beginning and the end of a stream, in bounded memory.

    Example:
        >>> kept = Kept(4)
        >>> kept.add(b"abcdefgh")
        >>> kept.head, kept.tail, kept.written
        (b'ab', b'gh', 8)
    """

    def __init__(self, max_bytes: int) -> None:
        self._half = (max_bytes + 1) // 2, max_bytes // 2
        self.head = self.tail = b""
        self.written = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.written += len(chunk)
        room = self._half[0] - len(self.head)
        self.head += chunk[:room]
        rest = self.tail + chunk[room:]
        self.tail = rest[max(0, len(rest) - self._half[1]) :]


class Warden:
    """Runs one command after the other. `settings` are what `Shell` passes, as plain values."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._parent = os.getppid()
        self._leaving = False
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
            while not self._leaving:
                ready, _, _ = select.select([0], [], [], 2.0)
                if os.getppid() != self._parent:  # the program died, and a copy of our input's other end lives on
                    return
                if not ready:
                    continue
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return
                *lines, waiting = (waiting + chunk).split(b"\n")
                for line in lines:
                    request = json.loads(line)
                    if "command" in request:  # else a stop for a command that has already ended
                        answer = json.dumps(self.run(**request)).encode() + b"\n"
                        while answer:
                            answer = answer[os.write(1, answer) :]
        except BrokenPipeError:
            return
        finally:
            _kill_below()
            remove_tree(self._settings["base"])

    def run(self, command: str, timeout_s: float) -> dict[str, Any]:
        """Run one command to its end, or to the first limit that it breaks."""
        began = time.monotonic()
        allowed = self._disk_allowed()
        reading, writing = os.pipe()
        main = os.fork()
        if main == 0:
            self._become(command, writing, timeout_s)
        os.close(writing)
        os.set_blocking(reading, False)
        kept = Kept(self._settings["max_output_bytes"])
        exit_code, ended = self._watch(main, reading, kept, began + timeout_s, allowed)
        with contextlib.suppress(OSError):
            os.killpg(main, signal.SIGKILL)
        left_running = _kill_below()
        _drain(reading, kept)
        os.close(reading)
        if ended == "exited" and self._outgrown((self._settings["max_disk_bytes"], self._settings["max_files"])):
            ended = "disk"
        return {
            "exit_code": exit_code,
            "ended": ended,
            "head": kept.head.decode("latin-1"),
            "tail": kept.tail.decode("latin-1"),
            "written_bytes": kept.written,
            "left_running": left_running,
            "elapsed_s": time.monotonic() - began,
        }

    def _become(self, command: str, writing: int, timeout_s: float) -> None:
        """In the child: take the limits and become the shell. Never returns."""
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
            os.execve("/bin/sh", ["sh", "-c", command], self._settings["env"])  # noqa: S606 - it is the shell
        except BaseException as error:
            os.write(2, f"the command could not be started: {error}\n".encode())
        finally:
            os._exit(126)

    def _watch(
        self, main: int, reading: int, kept: Kept, deadline: float, allowed: tuple[int, int]
    ) -> tuple[int | None, str]:
        """Wait for the command's end; return its exit code and what ended it."""
        watched, look_again = [0, self._child_died, reading], time.monotonic() + _POLL_S
        while True:
            now = time.monotonic()
            ready, _, _ = select.select(watched, [], [], max(0.0, min(deadline, look_again) - now))
            if reading in ready and _drain(reading, kept):
                watched.remove(reading)
            if self._child_died in ready:
                os.read(self._child_died, 1 << 12)
            for pid, status in _reaped():
                if pid == main:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code, "exited"
            if kept.written > self._settings["max_written_bytes"]:
                return None, "output"
            if 0 in ready:
                self._leaving = not os.read(0, 1 << 16)
                return None, "stopped"
            if (now := time.monotonic()) >= deadline:
                return None, "timeout"
            if now >= look_again:
                if len(descendants(os.getpid())) > self._settings["max_processes"]:
                    return None, "processes"
                if self._outgrown(allowed):
                    return None, "disk"
                look_again = time.monotonic() + max(_POLL_S, 5 * (time.monotonic() - now))

    def _disk_allowed(self) -> tuple[int, int]:
        """Bytes and files that the next command may end with: where there are too many already, no more than that."""
        limits = self._settings["max_disk_bytes"], self._settings["max_files"]
        used, files = disk_use(self._settings["base"], 4 * limits[0], 4 * limits[1])
        return max(limits[0], used), max(limits[1], files)

    def _outgrown(self, allowed: tuple[int, int]) -> bool:
        used, files = disk_use(self._settings["base"], *allowed)
        return used > allowed[0] or files > allowed[1]


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - the fast way


def _drain(fd: int, kept: Kept, limit: int = 1 << 20) -> bool:
    """Read what is there, up to `limit` bytes; return whether the stream has ended."""
    with contextlib.suppress(BlockingIOError):
        while limit > 0:
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                return True
            kept.add(chunk)
            limit -= len(chunk)
    return False


def _reaped() -> Iterator[tuple[int, int]]:
    """Take every child that has ended off the books."""
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            yield child


def _kill_below() -> int:
    """Kill every descendant, and those that are born meanwhile; return how many could not be killed."""
    deadline = time.monotonic() + _GIVE_UP_S
    while True:
        below = descendants(os.getpid())
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that none forks while others are killed
            for pid in below:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        for _ in _reaped():
            pass
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0  # an orphan becomes our child, so that without children there is no descendant
        if time.monotonic() > deadline:
            return len(descendants(os.getpid()))
        time.sleep(0.001)


if __name__ == "__main__":
    Warden(json.loads(sys.argv[1])).serve()
