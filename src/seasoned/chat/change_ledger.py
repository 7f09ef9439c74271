"""The ledger of the changes that the chats in one repository made: for undo, and for what became of them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seasoned.chat.chat_log import append_line, parsed_lines
from seasoned.chat.file_change import FileChange

__all__ = ["ChangeLedger", "RecordedChange"]


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change that was written.

    Args:
        number: in the ledger.
        change: of the file.
        session, episode, step: the chat and the step that made it.
        head: the commit at that time; None without git.
    """

    number: int
    change: FileChange
    session: str
    episode: str
    step: int
    head: str | None


class ChangeLedger:
    """A file that chats append to, beside the texts before and after each change.

    A change with a secret, a text or path that the redactor rewrites, is not written to disk: its own process alone can
    undo it and learn from it.

    Args:
        folder: of the sessions of one repository; made if it does not exist.
        redact: the memory's redactor.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with contextlib.closing(ChangeLedger(Path(folder.name))) as ledger:
        ...     _ = ledger.add(FileChange("a.txt", None, "one"), session="s", episode="e", step=0, head=None)
        ...     ledger.last("s").change.after, ledger.is_own("a.txt", "one"), ledger.is_own("a.txt", "two")
        ('one', True, False)
        >>> folder.cleanup()
    """

    def __init__(self, folder: Path, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        self._secret_texts: dict[str, str] = {}
        self._changes: list[dict[str, Any]] = []
        self._undone: set[int] = set()
        self._skipped: set[int] = set()
        self._own: set[tuple[str, str | None]] = set()  # the paths and digests of texts that a chat wrote, or has seen
        self._n_read_bytes = 0
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._texts = folder / "texts"
        self._texts.mkdir(exist_ok=True, mode=0o700)
        self._path = folder / "changes.jsonl"
        self._file = io.FileIO(self._path, "a")
        self._path.chmod(0o600)

    def add(self, change: FileChange, *, session: str, episode: str, step: int, head: str | None) -> RecordedChange:
        """Add a change before it counts as written; its texts are kept."""
        number = time.time_ns()
        self._append(
            {
                "kind": "change",
                "number": number,
                "path": change.path,
                "before": self._keep(change.before),
                "after": self._keep(change.after),
                "session": session,
                "episode": episode,
                "step": step,
                "head": head,
            },
            change.before,
            change.after,
        )
        return RecordedChange(number, change, session, episode, step, head)

    def see(self, path: str, text: str | None) -> None:
        """Note that a file's present text is known: a command of the chat made it, or it is judged already."""
        self._append({"kind": "seen", "path": path, "digest": _digest(text)}, text)

    def undo(self, entry: RecordedChange) -> None:
        """Note that a change was undone."""
        append_line(self._file, {"kind": "undone", "number": entry.number})
        self.see(entry.change.path, entry.change.before)

    def skip(self, entry: RecordedChange) -> None:
        """Note that a change stays: `last` returns the one before it, and what becomes of it is still judged."""
        append_line(self._file, {"kind": "skipped", "number": entry.number})

    def entries(self, last: int | None = None) -> list[RecordedChange]:
        """Return the changes that were not undone, in order; those whose texts are gone are left out.

        Args:
            last: only so many, the last ones; None: all.
        """
        records = self._records()
        return self._with_texts(records if last is None else records[-last:])

    def latest(self) -> list[RecordedChange]:
        """Return the last change of each file, as `entries`."""
        return self._with_texts({record["path"]: record for record in self._records()}.values())

    def paths(self) -> set[str]:
        """Return the paths of the changed files."""
        return {record["path"] for record in self._records()}

    def last(self, session: str) -> RecordedChange | None:
        """Return the last change of a session that was neither undone nor skipped."""
        records = reversed(self._records())
        own = (one for one in records if one["session"] == session and one["number"] not in self._skipped)
        return next((entry for record in own for entry in self._with_texts([record])), None)

    def is_own(self, path: str, text: str | None) -> bool:
        """Return whether a chat wrote this text to the file, or has seen it there."""
        self._read()
        return (path, _digest(text)) in self._own

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _records(self) -> list[dict[str, Any]]:
        """Return the changes that were not undone, in order, without their texts."""
        self._read()
        kept = [record for record in self._changes if record["number"] not in self._undone]
        return sorted(kept, key=lambda record: record["number"])

    def _with_texts(self, records: Iterable[dict[str, Any]]) -> list[RecordedChange]:
        found = []
        for record in records:
            with contextlib.suppress(OSError):
                change = FileChange(record["path"], self._kept(record["before"]), self._kept(record["after"]))
                fields = (record["session"], record["episode"], record["step"], record["head"])
                found.append(RecordedChange(record["number"], change, *fields))
        return found

    def _read(self) -> None:
        """Read what this chat and others have appended since the last time."""
        with self._path.open("rb") as file:
            file.seek(self._n_read_bytes)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self._n_read_bytes += len(new)
        for record in parsed_lines(new):
            self._note(record)

    def _note(self, record: dict[str, Any]) -> None:
        if record["kind"] in ("undone", "skipped"):
            (self._undone if record["kind"] == "undone" else self._skipped).add(record["number"])
        else:
            is_change = record["kind"] == "change"
            self._changes += [record] if is_change else []
            self._own.add((record["path"], record["after" if is_change else "digest"]))

    def _append(self, record: dict[str, Any], *texts: str | None) -> None:
        if any(self._is_secret(text) for text in (record["path"], *texts)):
            self._note(record)
        else:
            append_line(self._file, record)

    def _is_secret(self, text: str | None) -> bool:
        return text is not None and self._redact(text) != text

    def _keep(self, text: str | None) -> str | None:
        digest = _digest(text)
        if digest is None or text is None:
            return None
        if self._is_secret(text):
            self._secret_texts[digest] = text
        elif not (path := self._texts / digest).exists():
            path.write_text(text, encoding="utf-8", newline="")
        return digest

    def _kept(self, digest: str | None) -> str | None:
        if digest is None or digest in self._secret_texts:
            return None if digest is None else self._secret_texts[digest]
        with (self._texts / digest).open(encoding="utf-8", newline="") as file:
            return file.read()


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()
