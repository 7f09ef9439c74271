"""The log of a chat session: every message is on disk before the next step, and a session goes on after any end."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from seasoned.errors import InputError, NotFoundError, StoreError, excerpt
from seasoned.protocols import Message, ToolCall, Usage
from seasoned.types import StepRef

__all__ = ["ChatLog", "ChatTurn", "append_line", "in_arguments", "parsed_lines", "read_lines"]


def append_line(file: io.FileIO, record: Mapping[str, Any]) -> None:
    """Append a record to a file of JSON lines, and wait until it is on disk.

    Raises:
        StoreError: the disk is full, say.
    """
    line = json.dumps(record, ensure_ascii=True).encode() + b"\n"
    try:
        while line:
            line = line[file.write(line) :]
        os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(
            f"{file.name}: {error.strerror}", "a chat is written as it goes", "Free some space."
        ) from error


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of JSON lines; nothing if there is none."""
    with contextlib.suppress(FileNotFoundError):
        yield from parsed_lines(path.read_bytes())


def parsed_lines(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the records of JSON lines; a line that a killed process left incomplete is left out."""
    for line in text.split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


@dataclass
class ChatTurn:
    """A request of the user and what came of it.

    Args:
        id: of the turn, and of its episode.
        messages: the request, then the model's messages and the results of its calls.
        shown: the stored steps that the prompt of each answer showed, by the answer's place in `messages`.
        is_ended: whether it came to an end; False of one that a killed process left.
        is_stored: whether its episode is in the memory, or it has none.
    """

    id: str
    messages: list[Message] = field(default_factory=list)
    shown: dict[int, tuple[StepRef, ...]] = field(default_factory=dict)
    is_ended: bool = False
    is_stored: bool = False

    @property
    def request(self) -> str:
        """What the user asked for."""
        return self.messages[0].content


class ChatLog:
    """One session's file; another chat cannot open it at the same time.

    Args:
        folder: of the sessions of one repository; made if it does not exist.
        session: the id of a session to go on with; None: a new one.
        redact: rewrites every text before it is written. The turns of this process keep theirs as they are; those of a
            session that is gone on with are as they were written.

    Attributes:
        turns: those so far.
        usage: of the model so far, of complete answers.
        unfinished: of answers that an interrupt or an error ended, as estimated from their texts; its cost is unknown.

    Raises:
        NotFoundError: there is no such session.
        InputError: another chat has it open.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with ChatLog(Path(folder.name)) as log:
        ...     _ = log.begin("Fix the tests.")
        >>> with ChatLog(Path(folder.name), log.session) as again:
        ...     [(turn.request, turn.is_ended) for turn in again.turns]
        [('Fix the tests.', False)]
        >>> folder.cleanup()
    """

    def __init__(self, folder: Path, session: str | None = None, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.session = session or f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"
        self.turns: list[ChatTurn] = []
        self.usage = self.unfinished = Usage()
        path = folder / f"{self.session}.jsonl"
        if session is not None and (session != Path(session).name or not path.is_file()):
            raise NotFoundError(f"session {excerpt(session)}", "there is no such session here", "See: --sessions")
        self._file = io.FileIO(path, "a")
        path.chmod(0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise InputError(f"session {self.session}", "another chat has it open", "Start a new one.") from None
        if session is not None:
            append_line(self._file, {})  # after a line that a killed process left incomplete
            self._load(path)

    @staticmethod
    def sessions(folder: Path) -> list[tuple[str, str]]:
        """Return the ids of the sessions in a folder and their first requests, the latest last."""
        found = []
        for path in sorted(folder.glob("*-*.jsonl"), key=lambda each: each.stat().st_mtime):
            messages = (record["message"] for record in read_lines(path) if record.get("kind") == "message")
            first = next((each["content"] for each in messages), None)
            if first is not None:
                found.append((path.stem, first))
        return found

    def begin(self, request: str) -> ChatTurn:
        """Begin a turn with the user's request."""
        turn = ChatTurn(uuid.uuid4().hex)
        self.turns.append(turn)
        self.add(turn, Message("user", request))
        return turn

    def add(self, turn: ChatTurn, message: Message, shown: tuple[StepRef, ...] = ()) -> None:
        """Add a message to a turn."""
        if shown:
            turn.shown[len(turn.messages)] = shown
        turn.messages.append(message)
        written = asdict(_redacted(message, self._redact))
        self._append("message", turn=turn.id, message=written, shown=[list(place) for place in shown])

    def end(self, turn: ChatTurn, ended: str) -> None:
        """End a turn."""
        turn.is_ended = True
        self._append("end", turn=turn.id, ended=ended)

    def stored(self, turn: ChatTurn) -> None:
        """Note that the memory has the turn's episode, or that it has none."""
        turn.is_stored = True
        self._append("stored", turn=turn.id)

    def spend(self, usage: Usage, *, is_finished: bool = True) -> None:
        """Add the usage of a call of the model."""
        if is_finished:
            self.usage += usage
        else:
            self.unfinished += usage
        self._append("usage" if is_finished else "unfinished", usage=asdict(usage))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, kind: str, **fields: Any) -> None:
        append_line(self._file, {"kind": kind, "at": time.time(), **fields})

    def _load(self, path: Path) -> None:
        by_id: dict[str, ChatTurn] = {}
        for record in read_lines(path):
            kind = record.get("kind")
            if kind == "usage":
                self.usage += Usage(**record["usage"])
                continue
            if kind == "unfinished":
                self.unfinished += Usage(**record["usage"])
                continue
            id_ = record.get("turn")
            if not isinstance(id_, str):
                continue
            if id_ not in by_id:
                by_id[id_] = ChatTurn(id_)
                self.turns.append(by_id[id_])
            turn = by_id[id_]
            if kind == "message":
                if record["shown"]:
                    turn.shown[len(turn.messages)] = tuple((place[0], place[1]) for place in record["shown"])
                turn.messages.append(_message(record["message"]))
            turn.is_ended |= kind == "end"
            turn.is_stored |= kind == "stored"


def in_arguments(change: Callable[[str], str], arguments: str) -> str:
    r"""Return the arguments of a call, a JSON text, with every string in them changed, also where it is escaped.

    Example:
        >>> in_arguments(str.upper, r'{"new": ["\u0061"]}')
        '{"NEW": ["A"]}'
    """
    try:
        value = json.loads(arguments)
        changed = _in_strings(change, value)
        return arguments if changed == value else json.dumps(changed, ensure_ascii=False)
    except (ValueError, RecursionError):
        return change(arguments)


def _redacted_arguments(redact: Callable[[str], str], arguments: str) -> str:
    """Return the arguments of a call redacted: each string by itself, then the whole, where a name tells of a secret.

    A whole that is no JSON any more is returned as one string in it, so that a server takes it back.
    """
    each = in_arguments(redact, arguments)
    whole = redact(each)
    if whole == each:
        return each
    try:
        json.loads(whole)
    except (ValueError, RecursionError):
        return json.dumps({"redacted": whole}, ensure_ascii=False)
    return whole


def _in_strings(change: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_in_strings(change, each) for each in value]
    if isinstance(value, dict):
        return {change(key): _in_strings(change, each) for key, each in value.items()}
    return value


def _redacted(message: Message, redact: Callable[[str], str]) -> Message:
    calls = tuple(replace(call, arguments=_redacted_arguments(redact, call.arguments)) for call in message.tool_calls)
    return replace(message, content=redact(message.content), tool_calls=calls)


def _message(fields: Mapping[str, Any]) -> Message:
    return Message(**{**fields, "tool_calls": tuple(ToolCall(**call) for call in fields["tool_calls"])})
