"""Reader of Claude Code sessions: the files under `~/.claude/projects`, one event a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from seasoned.integrations.chat.messages import OF_PROGRAM, MessageReader
from seasoned.integrations.conversation import InputMessage
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import ReadEpisode
from seasoned.integrations.json_shapes import last_time, optional_text, record, text_key
from seasoned.integrations.readers import Format, SessionReader

__all__ = ["CLAUDE_SESSIONS"]

_MESSAGES = ("user", "assistant")
_KEPT = ("type", "uuid", "parentUuid", "isMeta", "isCompactSummary", "timestamp")
_OTHERS = (
    "summary",
    "system",
    "file-history-snapshot",
    "queue-operation",
    "progress",
    "attachment",
    "last-prompt",
    "custom-title",
    "ai-title",
    "agent-name",
)
_WITHOUT_MARKS = (
    "permission-mode",
    "mode",
    "cost-state",
    "pr-link",
    "worktree-state",
    "custom-title",
    "ai-title",
    "tag",
)
_STREAMED = (*_MESSAGES, "system", "result", "stream_event")  # of `claude --output-format stream-json`
_MARKS = {"sessionId", "leafUuid", "parentUuid", "uuid", "messageId"}
_SYNTHETIC = "<synthetic>"
_LOCAL_OUTPUT = "<local-command-"
_COMMAND = re.compile(r"\s*<command-(?:name|message)>")
_COMMAND_PARTS = re.compile(r"<command-(name|args)>(.*?)</command-\1>", re.DOTALL)
_SHOWN_BY_PROGRAM = ("<bash-", "<task-notification>")
"""Beginnings of messages in the user's name with what a program put out, which the model reads."""
_INTERRUPTED = "[Request interrupted by user"


def _recognises(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(kind := value.get("type"), str) or "traceId" in value:
        return False
    known = kind in _MESSAGES or kind in _OTHERS
    if "session_id" in value and kind in _STREAMED:
        return True
    return "sessionId" in value or kind in _WITHOUT_MARKS or (known and bool(_MARKS & value.keys()))


def _take(value: Any) -> tuple[str, Any] | None:
    """Return the session of an event, and what an episode needs of it; None for an event without session or message."""
    event = record("an event", value)
    named = event.get("sessionId", event.get("session_id"))
    if named is None and event.get("type") not in _MESSAGES:
        return None
    kept = {key: event.get(key) for key in _KEPT}
    kept["message"] = event.get("message") if event.get("type") in _MESSAGES else None
    session = text_key("sessionId", named) or ""
    if event.get("isSidechain") is True:
        session = f"{session}/{text_key('agentId', event.get('agentId')) or 'sidechain'}"
    elif parent := text_key("parent_tool_use_id", event.get("parent_tool_use_id")):
        session = f"{session}/{parent}"
    return session, kept


def _build(key: str, events: list[tuple[int, Any]], rules: FieldRules) -> Iterator[ReadEpisode]:
    """Yield the episode of a session, or of a sub-agent's sidechain in it.

    | event | becomes |
    |---|---|
    | `user` with a text; with `tool_result` blocks | input messages |
    | `assistant`; events with one `message.id` are one turn | the actions: `tool_use` blocks, else the text |
    | a command, `/fix 12` | the user's text; nothing if the program ran it (`/clear`) |
    | the output of a shell of the user's, a notification | an input message of no user |
    | the summary of an earlier session at the beginning | the user's text |
    | `isMeta`, other summaries, snapshots and other events; thinking; a prompt that was edited | nothing |
    | `sessionId` (of a sidechain, with `agentId`) | the episode's id |
    | an interruption by the user as the last event | aborted |

    A session has no reward: give feedback, or score it.
    """
    skipped: Counter[str] = Counter()
    reader = MessageReader()
    items: list[Any] = []
    model, interrupted = None, False
    times: list[object] = []
    dropped = _edited(events)
    shown: list[dict[str, Any]] = []
    for _, event in events:
        # A session that goes on from an earlier one begins with the summary, which is all that the agent has read.
        if _is_shown(event if shown else {**event, "isCompactSummary": False}, dropped, skipped):
            shown.append(event)
    kept = list(_with_commands(shown, skipped))
    for message in _joined(kept):
        fields = record("the message", message["message"])
        if fields.get("model") == _SYNTHETIC:
            skipped[OF_PROGRAM] += 1
            continue
        read = [_of_speaker(item) for item in reader.items({"role": message["type"], **fields})]
        texts = [item.text for item in read if isinstance(item, InputMessage) and item.speaker == "user"]
        interrupted = any(text.startswith(_INTERRUPTED) for text in texts)
        if not interrupted:
            items += read
        model = fields.get("model") or model
        times.append(message.get("timestamp"))
    yield rules.read(
        items,
        source=[event["message"] for event in kept],
        line=events[0][0],
        created_at=last_time(times, skipped),
        skipped=reader.skipped + skipped,
        id=f"claude-code:{key}",
        ending="aborted" if interrupted else "terminated",
        model=optional_text("model", model),
        policy="claude-code",
    )


def _is_shown(event: dict[str, Any], dropped: set[str], skipped: Counter[str]) -> bool:
    kind = None
    if event["type"] not in _MESSAGES:
        kind = f"events {event['type']}"
    elif event["isMeta"] is True:
        kind = OF_PROGRAM
    elif str(event["uuid"]) in dropped:
        kind = "events before a prompt was edited"
    elif event["isCompactSummary"] is True:
        kind = "summaries of earlier turns"
    if kind is not None:
        skipped[kind] += 1
    return kind is None


def _text_of(event: dict[str, Any]) -> str:
    """Return the text of a user's event that is one text; "" of another."""
    message = event["message"] if event.get("type") == "user" and isinstance(event["message"], dict) else {}
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return content if isinstance(content, str) else ""


def _with_commands(events: list[dict[str, Any]], skipped: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the events with the texts of the user's commands, without those that the program ran by itself."""
    for event, following in pairwise([*events, {}]):
        text = _text_of(event)
        is_command = _COMMAND.match(text) is not None
        if text.startswith(_LOCAL_OUTPUT) or (is_command and _text_of(following).startswith(_LOCAL_OUTPUT)):
            skipped[OF_PROGRAM] += 1
        elif is_command:
            parts = dict(_COMMAND_PARTS.findall(text))
            command = f"{parts.get('name', '').strip()} {parts.get('args', '').strip()}".strip()
            yield {**event, "message": {**event["message"], "content": command or text}}
        else:
            yield event


def _of_speaker(item: Any) -> Any:
    if isinstance(item, InputMessage) and item.speaker == "user" and item.text.startswith(_SHOWN_BY_PROGRAM):
        return InputMessage("observation", item.text)
    return item


def _edited(events: list[tuple[int, Any]]) -> set[str]:
    """Return the events of abandoned branches: those after a prompt in whose place a later one was sent."""
    last: dict[str, str] = {}
    prompts = [event for _, event in events if _is_prompt(event) and isinstance(event["parentUuid"], str)]
    for event in prompts:
        last[event["parentUuid"]] = str(event["uuid"])
    dropped = {str(event["uuid"]) for event in prompts if last[event["parentUuid"]] != str(event["uuid"])}
    for _, event in events:
        if str(event["parentUuid"]) in dropped:
            dropped.add(str(event["uuid"]))
    return dropped


def _is_prompt(event: dict[str, Any]) -> bool:
    message = event["message"]
    if event["type"] != "user" or event["isMeta"] is True or not isinstance(message, dict):
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return not any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _joined(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events; blocks of one answer of the model, each in an event of its own, are joined.

    The results of parallel calls may come between the events of one answer: they follow it.
    """
    blocks: dict[str, list[Any]] = {}
    joined: list[dict[str, Any]] = []
    for event in events:
        message = event["message"] if isinstance(event["message"], dict) else {}
        identity = message.get("id") if event["type"] == "assistant" else None
        content = message.get("content")
        if isinstance(identity, str) and isinstance(content, list):
            if identity in blocks:
                blocks[identity].extend(content)
                continue
            blocks[identity] = list(content)
            event = {**event, "message": {**message, "content": blocks[identity]}}  # noqa: PLW2901
        joined.append(event)
    yield from joined


def _reader(rules: FieldRules) -> SessionReader:
    return SessionReader(_take, lambda key, events: _build(key, events, rules))


CLAUDE_SESSIONS = Format("Claude Code sessions", _recognises, _reader)
