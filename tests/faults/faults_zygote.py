"""A process with all modules loaded, which forks a child in a few milliseconds.

The child runs one function of a `faults_*` module, in a process of its own that may be killed, limited or lent to
another user.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

__all__ = ["Child", "Zygote"]


class Child:
    """A running child of the zygote."""

    def __init__(self, zygote: Zygote, pid: int, answer: Path) -> None:
        self._zygote = zygote
        self.pid = pid
        self._answer = answer

    def kill(self) -> None:
        """End it at once, wherever it is: `kill -9`."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self, timeout_s: float = 60.0) -> int:
        """Wait for its end, and return the signal that ended it, or 0.

        Raises:
            TimeoutError: it hangs; it was killed.
        """
        status = self._zygote.ask({"wait": self.pid, "timeout_s": timeout_s})
        if status is None:
            self.kill()
            self._zygote.ask({"wait": self.pid, "timeout_s": 30})
            raise TimeoutError(f"process {self.pid} hung for {timeout_s} s")
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def answer(self, timeout_s: float = 60.0) -> Any:
        """Wait for its end, and return what its function returned.

        Raises:
            AssertionError: its function raised, or a signal ended it.
        """
        ended_by = self.end(timeout_s)
        assert not ended_by, f"the child was ended by {signal.Signals(ended_by).name}"
        result = json.loads(self._answer.read_text())
        assert "raised" not in result, result["raised"]
        return result["returned"]

    def said(self) -> str:
        """Return what its function returned or raised, as JSON; it has ended."""
        return self._answer.read_text()


class Zygote:
    """Starts children; it handles one request at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.ask({"ready": True}) is True

    def ask(self, request: dict[str, Any]) -> Any:
        """Send one request, and return the reply."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, function: str, *arguments: Any) -> Child:
        """Run `module:function` with arguments that JSON can carry, in a child."""
        answer = self._folder / f"answer-{next(self._numbers)}"
        pid = self.ask({"function": function, "arguments": arguments, "answer": str(answer)})
        return Child(self, pid, answer)

    def close(self) -> None:
        """End it, and every child that is left."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)


def _child(request: dict[str, Any]) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    answer = os.open(request["answer"], os.O_CREAT | os.O_WRONLY)  # before it may become another user
    for standard in (0, 1):
        os.dup2(nowhere, standard)
    try:
        module, name = request["function"].split(":")
        result = {"returned": getattr(importlib.import_module(module), name)(*request["arguments"])}
    except BaseException:
        result = {"raised": traceback.format_exc()}
    os.write(answer, json.dumps(result).encode())
    os._exit(0)


def _wait(pid: int, timeout_s: float) -> int | None:
    deadline = time.monotonic() + timeout_s
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(0.001)


def _serve() -> None:
    import faults_children

    faults_children.warm_up()  # what is loaded here, no child loads again; it may not be allowed to
    alive = set()
    for line in sys.stdin:
        request = json.loads(line)
        reply: Any = True
        if "function" in request:
            reply = os.fork()
            if not reply:
                _child(request)
            alive.add(reply)
        elif "wait" in request:
            reply = _wait(request["wait"], request["timeout_s"])
            if reply is not None:
                alive.discard(request["wait"])
        print(json.dumps(reply), flush=True)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    _serve()
