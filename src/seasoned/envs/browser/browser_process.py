"""The worker process of a browser environment: requests with a time limit, and an end that kills its descendants."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seasoned import errors
from seasoned.errors import EnvError, excerpt
from seasoned.registry import load_extra

__all__ = ["BrowserProcess"]

_MARK = "SEASONED_BROWSER_DIR"
_GRACE_S = 5.0
_FOLDER_CHARS = 40  # a socket's path has at most 104 to 108: Chromium adds 45 and we 18


class BrowserProcess:
    """A worker process with its browser, in a temporary folder of its own.

    Args:
        settings: the task that the worker opens, and its settings.
        env: environment variables in addition to this process's own.

    Raises:
        MissingExtraError: psutil is not installed.
    """

    def __init__(self, settings: Mapping[str, Any], env: Mapping[str, str]) -> None:
        self._psutil = load_extra("psutil", "browser")
        self._settings = dict(settings)
        self._folder = _new_folder()
        self._log = self._folder / "worker.log"
        own = {_MARK: str(self._folder), "TMPDIR": str(self._folder), "PYTHONIOENCODING": "utf-8"}
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "seasoned.envs.browser.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **env, **own},
                start_new_session=True,  # Ctrl-C goes to this process, which ends the worker
            )
        self._rest = b""
        self._opened = False
        # Without `close`, the garbage collector or the exit of this process cleans up.
        self._finalizer = weakref.finalize(self, _end, self._psutil, self._child, self._folder)

    def request(self, request: str, *args: object, limit_s: float) -> dict[str, Any]:
        """Return the worker's answer. The worker opens its environment at the first request.

        Raises:
            EnvError: the time is up, or the worker or its browser failed. The process is then killed.
            SeasonedError: the worker refused the request; its error is raised here.
        """
        deadline = time.monotonic() + limit_s
        try:
            if not self._opened:
                self._answer("open", (self._settings,), deadline, limit_s)
                self._opened = True
            return self._answer(request, args, deadline, limit_s)
        except BaseException:
            self.end()
            raise

    def close(self) -> None:
        """Close the worker; kill it if it does not exit in time."""
        if self._finalizer.alive and self._child.stdin is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._child.stdin.close()
                self._child.wait(_GRACE_S)
        self.end()

    def end(self) -> None:
        """Kill the worker and every process that it started, and delete its folder."""
        self._finalizer()

    def _answer(self, request: str, args: tuple[object, ...], deadline: float, limit_s: float) -> dict[str, Any]:
        try:
            stdin, stdout = self._child.stdin, self._child.stdout
            if stdin is None or stdout is None or not self._finalizer.alive:
                raise BrokenPipeError  # noqa: TRY301 - one error path for a process that has ended
            stdin.write(json.dumps([request, *args]).encode() + b"\n")
            stdin.flush()
            line = self._line(stdout.fileno(), deadline)
        except (BrokenPipeError, ValueError):  # ValueError: another thread has ended the process
            line = b""
        if line is None:
            raise EnvError(
                f"no answer to {request} {excerpt(args)} in {limit_s:g} s",
                "a page that hangs is ended, with its browser",
                "Call reset to go on, or give more time by timeout_s.",
            )
        if not line:
            raise EnvError(
                f"the browser's process has ended{self._last_words()}",
                "an episode ends with its browser",
                "Call reset to start another.",
            )
        answer: dict[str, Any] = json.loads(line)
        if "refused" in answer:
            kind, *words = answer["refused"]
            raise getattr(errors, kind)(*words)
        if "failed" in answer:
            raise EnvError(
                f"{request} {excerpt(args)}: {excerpt(answer['failed'], 300)}",
                "BrowserGym could not carry it out",
                "Call reset to start another browser.",
            )
        return answer

    def _line(self, source: int, deadline: float) -> bytes | None:
        """Return the next line; empty at the end of the stream, None if the time is up."""
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            if not (piece := os.read(source, 1 << 20)):
                return b""
            pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._log.read_text(errors="replace").strip().splitlines()
            return f" ({excerpt(lines[-1], 300)})" if lines else ""
        return ""


def _new_folder() -> Path:
    """Return a temporary folder; below /tmp if the usual path is too long for Chromium's socket."""
    usual = Path(tempfile.gettempdir())
    place = usual if len(str(usual)) <= _FOLDER_CHARS else Path("/tmp")  # noqa: S108 - mkdtemp makes it private
    return Path(tempfile.mkdtemp(prefix="seasoned-", dir=place))


def _end(psutil: Any, child: subprocess.Popen[bytes], folder: Path) -> None:
    """Kill the child, its descendants, and orphaned descendants, which are found by their environment."""
    family: list[Any] = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(child.pid).children(recursive=True) if child.returncode is None else []
    child.kill()
    child.wait()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(_MARK) == str(folder):
                family.append(process)
    for process in family:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(family, timeout=_GRACE_S)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    shutil.rmtree(folder, ignore_errors=True)
