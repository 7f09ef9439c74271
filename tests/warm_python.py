"""A Python that has imported everything already: each program runs in a process of its own, forked from it.

What it saves is half a second of imports a program. What is about a cold start, a signal to the process, or a variable
that Python itself reads (`PYTHONHASHSEED`) wants `sys.executable`.
"""

from __future__ import annotations

import importlib
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path

__all__ = ["WarmPython"]

PROGRAM = Path(__file__).with_name("warm_program.py")
LOADED = ("agents", "cli.main", "cli.memory", "integrations", "judges", "llms", "policies", "sync")
POLL_S = 0.004


class WarmPython:
    """The process that forks; `close` ends it.

    Attributes:
        command: what to start in place of `sys.executable`, followed by `-c` and code, or by the path of a script.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warm-python-")
        path = str(Path(self._folder.name, "socket"))
        self._process = subprocess.Popen(
            [sys.executable, __file__, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self._process.stdout
        assert self._process.stdout.readline() == b"ready\n"
        self.command = [sys.executable, "-I", "-S", str(PROGRAM), path]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdout
        self._process.terminate()
        self._process.wait(30)
        self._process.stdout.close()
        self._folder.cleanup()


def _request(client: socket.socket) -> tuple[list[int], list[bytes]]:
    _, streams, _, _ = socket.recv_fds(client, len(b"streams"), 3)
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return streams, b"".join(parts).split(b"\0")


def _become(streams: list[int], fields: list[bytes]) -> list[str]:
    """Take over the streams, folder and environment; return the arguments."""
    for stream, given in enumerate(streams):
        os.dup2(given, stream)
        os.close(given)
    os.chdir(fields[0])
    count = int(fields[1])
    os.environb.clear()
    os.environb.update(dict(variable.split(b"=", 1) for variable in fields[2 + count :]))
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1 if os.isatty(1) else -1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    return [os.fsdecode(argument) for argument in fields[2 : 2 + count]]


def _serve(path: str) -> list[str]:
    """Fork for each program that is asked for; in the child, return its arguments."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        running: dict[int, socket.socket] = {}
        while True:
            if select.select([listener], [], [], POLL_S if running else None)[0]:
                client, _ = listener.accept()
                streams, fields = _request(client)
                pid = os.fork()
                if not pid:
                    for other in (client, *running.values()):
                        other.close()
                    return _become(streams, fields)
                running[pid] = client
                for stream in streams:
                    os.close(stream)
            while running:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                with running.pop(pid) as client:
                    client.sendall(b"%d" % os.waitstatus_to_exitcode(status))


def _run(arguments: list[str]) -> None:
    """Do what Python does with these arguments."""
    if arguments[0] == "-c":
        sys.argv, sys.path[0] = ["-c", *arguments[2:]], ""
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(arguments[1], "<string>", "exec"), vars(main))
    else:
        sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    for name in LOADED:
        importlib.import_module(f"seasoned.{name}")
    _run(_serve(sys.argv[1]))
