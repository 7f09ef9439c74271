"""Spool of calls: a file for each call whose episode is not stored, so that a killed process loses none.

Each part of an answer is in the file before the client gets it. So a call of which the client has anything is there as
far as the client knows it, however the answer ends. The file is removed when the episode is stored, or when the call is
found to be no step. What is lost otherwise, as while the store fails, is left for the next process. Each process has a
folder of its own, under a lock that the system releases with the process. The next process takes over the folders
without a living owner, and reads their files in the order of the calls, as if they came in again. What is written is in
the page cache: it survives the process, and not the loss of power. A file has no header of the request but the ids of
`client_ids`, and so no key.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import itertools
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from seasoned.errors import ConfigError

__all__ = ["CallFile", "CallSpool", "SpooledCall", "spooled_calls"]

MAX_SPOOL_BYTES = 256 * 1024 * 1024
"""Bytes of the files that a process keeps; what is above is recorded, and lost if the process is killed."""

MAX_REFUSED_BYTES = 64 * 1024 * 1024
"""Bytes of the files that are refused for good, of all processes with one folder; the oldest are removed first."""

_SUFFIX, _PARTIAL, _LOCK, _REFUSED = ".call", ".part", "lock", "refused"
_log = logging.getLogger("seasoned.service")


@dataclass(frozen=True, slots=True)
class SpooledCall:
    """A request, what has arrived of its answer, and what is known of both.

    Args:
        facts: JSON: the namespace, the API, ids, the time, the type of the answer.
        body, content: of the request, and of the answer as it came over the wire.
    """

    facts: dict[str, Any]
    body: bytes
    content: bytes


class CallFile:
    """The file of one call: its request, and the parts of the answer so far.

    Args:
        path: of the file.
        spool: that has it.
        n_bytes: that it takes of the spool's room.
        file: to which the parts are written; None: there will be none.
        restored_ids: those that its episode may have in an earlier process; none: this process began it.
    """

    def __init__(
        self,
        path: Path,
        spool: CallSpool,
        n_bytes: int = 0,
        file: IO[bytes] | None = None,
        *,
        restored_ids: frozenset[str] = frozenset(),
    ) -> None:
        self.path, self.restored_ids = path, restored_ids
        self._spool, self._n_bytes, self._file = spool, n_bytes, file

    def add(self, part: bytes) -> bool:
        """Write a part of the answer, before the client gets it; return whether the file has all of it so far."""
        if self._file is None:
            return False
        if self._spool.count(len(part)):
            self._n_bytes += len(part)
            try:
                _write(self._file, part)
                return True
            except OSError as error:
                self._spool.report(error.strerror)
        self.release()
        return False

    def end(self) -> None:
        """Close the file, which stays: the answer has ended."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def release(self) -> None:
        """Remove the file."""
        self.end()
        with contextlib.suppress(OSError):
            self.path.unlink()
            self._spool.count(-self._n_bytes)

    def set_aside(self, reason: object) -> None:
        """Move the file to where no process reads it again: what it holds is refused for good."""
        self.end()
        try:
            self._spool.refused.mkdir(mode=0o700, exist_ok=True)
            self.path.replace(self._spool.refused / self.path.name)
        except OSError as error:
            _log.error("The refused call %s cannot be set aside: %s", self.path.name, error.strerror)
            return
        self._spool.count(-self._n_bytes)
        _log.error(
            "The call %s is refused for good, and is set aside: %s", self._spool.refused / self.path.name, reason
        )
        self._spool.trim_refused()


class CallSpool:
    """The calls of one process, and those that it takes over.

    Args:
        root: a folder for all processes with one memory; made if it is missing, for this user alone.
        max_bytes: of the files at a time; a call above it is not written.
        max_refused_bytes: of the files that are refused for good; above it the oldest are removed.

    Raises:
        ConfigError: nothing can be written there.
    """

    def __init__(
        self, root: Path, *, max_bytes: int = MAX_SPOOL_BYTES, max_refused_bytes: int = MAX_REFUSED_BYTES
    ) -> None:
        self._root, self._max_bytes, self._max_refused_bytes = root, max_bytes, max_refused_bytes
        self._n_bytes, self._counting = 0, threading.Lock()
        self._locks: dict[Path, IO[bytes]] = {}
        self.folder, self.refused = root / uuid.uuid4().hex, root / _REFUSED
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700)
            self._take(self.folder)
        except OSError as error:
            seen = "it is no folder" if root.exists() and not root.is_dir() else error.strerror
            raise ConfigError(
                f"the folder for calls, {root}: {seen}",
                "calls are written to it, so that a killed process loses none",
                "Let this user write there, or name another folder: --spool FOLDER.",
            ) from error
        self._numbers = itertools.count()
        self._threads = ThreadPoolExecutor(2, "seasoned-spool")
        self._is_failing = False
        atexit.register(self.close)

    async def begin_later(self, facts: dict[str, Any], body: bytes) -> CallFile | None:
        """Begin a file in a thread of the spool's own; one that nobody waits for any more is removed."""
        begun = self._threads.submit(self.begin, facts, body)
        try:
            return await asyncio.shield(asyncio.wrap_future(begun))
        except asyncio.CancelledError:
            begun.add_done_callback(_release_begun)
            raise

    def write(self, facts: dict[str, Any], body: bytes) -> CallFile | None:
        """Write what has no answer to wait for, and return its file; None if it cannot be written."""
        file = self.begin(facts, body)
        if file is not None:
            file.end()
        return file

    def begin(self, facts: dict[str, Any], body: bytes) -> CallFile | None:
        """Write a request, and return the file for the parts of its answer; None if it cannot be written."""
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(self._numbers)}"
        partial, path = self.folder / f"{name}{_PARTIAL}", self.folder / f"{name}{_SUFFIX}"
        head = json.dumps({**facts, "body_bytes": len(body)}).encode() + b"\n"
        n_bytes = len(head) + len(body)
        if not self.count(n_bytes):
            return None
        file: IO[bytes] | None = None
        try:
            file = os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0)
            for part in (head, body):
                _write(file, part)
            partial.rename(path)
        except OSError as error:
            if file is not None:
                file.close()
            with contextlib.suppress(OSError):
                partial.unlink()
            self.count(-n_bytes)
            self.report(error.strerror)
            return None
        self._is_failing = False
        return CallFile(path, self, n_bytes, file)

    def report(self, reason: object) -> None:
        """Log that a call is not spooled, once until one is again."""
        if not self._is_failing:
            _log.error("LOST if this process is killed: calls cannot be spooled (%s).", reason)
        self._is_failing = True

    def count(self, n_bytes: int) -> bool:
        """Count bytes that are written, or with a minus removed; return whether there is room for them."""
        with self._counting:
            has_room = n_bytes < 0 or self._n_bytes + n_bytes <= self._max_bytes
            self._n_bytes += n_bytes if has_room else 0
        if not has_room:
            self.report(f"they have at most {self._max_bytes} bytes together")
        return has_room

    def trim_refused(self) -> None:
        """Remove the oldest of the refused files, as far as they are together above the bound."""
        n_bytes = n_removed = 0
        try:
            for path in sorted(self.refused.glob(f"*{_SUFFIX}"), reverse=True):  # a name begins with its time
                with contextlib.suppress(FileNotFoundError):  # another process removes them too
                    n_bytes += path.stat().st_size
                    if n_bytes > self._max_refused_bytes:
                        path.unlink()
                        n_removed += 1
        except OSError as error:
            _log.error("The oldest refused calls in %s cannot be removed: %s", self.refused, error.strerror)
        if n_removed:
            _log.error(
                "%d of the oldest refused calls in %s are removed: they have at most %d bytes together",
                n_removed,
                self.refused,
                self._max_refused_bytes,
            )

    def read(self) -> Iterator[tuple[SpooledCall, CallFile]]:
        """Yield the calls of processes that have ended, in their order. What is no whole call is set aside."""
        try:
            known = {self.refused, *self._locks}
            others = [one for one in self._root.iterdir() if one.is_dir() and one not in known]
        except OSError as error:
            _log.error("The calls of earlier processes in %s cannot be read: %s", self._root, error.strerror)
            others = []
        for folder in others:
            try:
                self._take(folder)
            except OSError as error:
                _log.error("The spooled calls in %s cannot be read: %s", folder, error.strerror)
                continue
            for partial in folder.glob(f"*{_PARTIAL}") if folder in self._locks else ():  # no answer had begun
                partial.unlink(missing_ok=True)
        taken = (path for folder in self._locks for path in folder.glob(f"*{_SUFFIX}"))
        for path in sorted(taken, key=lambda path: path.name):
            try:
                call = _read(path)
            except OSError as error:
                _log.error("The spooled call %s cannot be read: %s", path.name, error)
                continue
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                CallFile(path, self).set_aside(f"it is no whole call ({error!r})")
                continue
            ids = frozenset(id_ for name in ("episode", "new_episode") if (id_ := call.facts.get(name)))
            yield call, CallFile(path, self, restored_ids=ids)  # of an earlier process: it takes no room of this one's

    def _take(self, folder: Path) -> None:
        """Take the lock of a folder, unless its process is alive."""
        lock = (folder / _LOCK).open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            self._locks[folder] = lock

    def close(self) -> None:
        """Leave the files that are left for the next process. What is released later is removed."""
        atexit.unregister(self.close)
        self._threads.shutdown()
        for folder, lock in self._locks.items():
            with contextlib.suppress(OSError):
                if not any(folder.glob(f"*{_SUFFIX}")):
                    (folder / _LOCK).unlink()
                    folder.rmdir()
            lock.close()
        self._locks.clear()


def spooled_calls(root: Path) -> tuple[int, int]:
    """Return how many calls wait in a folder for calls, and how many were refused for good; (0, 0) without a folder."""
    if not os.path.isdir(root):  # noqa: PTH112  (`Path.is_dir` raises where a name is too long to exist)
        return 0, 0
    refused = sum(1 for _ in (root / _REFUSED).glob(f"*{_SUFFIX}"))
    return sum(1 for _ in root.glob(f"*/*{_SUFFIX}")) - refused, refused


def _release_begun(begun: Future[CallFile | None]) -> None:
    file = begun.result()
    if file is not None:
        file.release()


def _write(file: IO[bytes], data: bytes) -> None:
    """Write all of some bytes: a system call may take a part of them."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _read(path: Path) -> SpooledCall:
    head, _, rest = path.read_bytes().partition(b"\n")
    facts = json.loads(head)
    n_body = facts.pop("body_bytes")
    return SpooledCall(facts, rest[:n_body], rest[n_body:])
