"""Reader of Codex sessions: the rollout files under `~/.codex/sessions`, one event a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from seasoned.errors import InputError
from seasoned.integrations.chat.response_items import ItemReader, is_item
from seasoned.integrations.conversation import InputMessage, content_id
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import ReadEpisode
from seasoned.integrations.json_shapes import content_text, last_time, optional_text, record, text_key
from seasoned.integrations.readers import Format, SessionReader
from seasoned.types import Ending

__all__ = ["CODEX_SESSIONS"]

_EVENTS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_STREAMED = (
    "thread.started",
    "turn.started",
    "turn.completed",
    "turn.failed",
    "item.started",
    "item.updated",
    "item.completed",
)
"""Events of `codex exec --json`: they have neither the user's message nor the arguments of calls."""
_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "# AGENTS.md",
    "<INSTRUCTIONS>",
    "<skill",
    "<turn_aborted>",
    "<subagent_notification>",
)
"""Beginnings of messages in the user's name that the program wrote."""


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("type") in _STREAMED and "payload" not in value:
        return True
    known = value.get("type") in _EVENTS or (isinstance(value.get("type"), str) and "timestamp" in value)
    return (known and isinstance(value.get("payload"), dict)) or _earlier(value) is not None


def _earlier(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return an event of an earlier version, in which items and the session stand by themselves, in today's form."""
    content = value.get("content")
    parts = content if value.get("type") == "message" and isinstance(content, list) else []
    texts = any(isinstance(part, dict) and part.get("type") in ("input_text", "output_text") for part in parts)
    if is_item(value) or texts or (value.get("type") == "reasoning" and "summary" in value):
        return {"type": "response_item", "timestamp": None, "payload": value}
    if value.get("record_type") == "state":
        return {"type": "state", "timestamp": None, "payload": {}}
    if "type" not in value and {"id", "timestamp", "instructions"} <= value.keys():
        return {"type": "session_meta", "timestamp": value["timestamp"], "payload": value}
    return None


class _Taking:
    """Takes from each event what an episode needs, and finds the session that the events belong to.

    A session that was forked begins with a copy of the earlier one, its `session_meta` among it: that begins no other.
    """

    def __init__(self) -> None:
        self._session = ""
        self._forked_from: set[str] = set()
        self._has_stream = False

    def __call__(self, value: Any) -> tuple[str, Any] | None:
        event = _earlier(record("an event", value)) or value
        if "payload" not in event and self._has_stream:
            return None
        if "payload" not in event and event.get("type") in _STREAMED:
            self._has_stream = True  # it is refused once
            seen = "the output of `codex exec --json`"
            raise InputError(seen, "it has no messages of the user", "Import the session: ~/.codex/sessions.")
        payload = record("the payload", event.get("payload"))
        if event.get("type") == "session_meta":
            session = text_key("session id", payload.get("id"))
            if session is not None and session not in self._forked_from:
                self._session, self._forked_from = session, set()
            self._forked_from.update(filter(None, [text_key("forked_from_id", payload.get("forked_from_id"))]))
        kept = (
            payload
            if event.get("type") in ("response_item", "session_meta")
            else {key: payload.get(key) for key in ("type", "model", "reason")}
        )
        return self._session, (event.get("type"), event.get("timestamp"), kept)


def _build(key: str, events: list[tuple[int, Any]], rules: FieldRules) -> Iterator[ReadEpisode]:
    """Yield the episode of a session.

    | event | becomes |
    |---|---|
    | `session_meta` | id, instructions |
    | `response_item`, see `response_items.ItemReader` | input messages and turns |
    | a user's message that the program wrote: environment, AGENTS.md | instructions |
    | `turn_context` | model |
    | `event_msg` `turn_aborted` as the last event of a turn | aborted |
    | other events | nothing |

    A session has no reward.
    """
    reader = ItemReader()
    skipped: Counter[str] = Counter()
    items: list[Any] = []
    model = None
    ending: Ending = "terminated"
    for _, (kind, _, payload) in events:
        if kind == "session_meta" and isinstance(payload.get("instructions"), str) and payload["instructions"].strip():
            items.append(InputMessage("system", payload["instructions"]))
        elif kind == "turn_context":
            model = payload.get("model") or model
        elif kind == "response_item":
            ending = "terminated"
            items += reader.add(_as_instructions(payload))
        elif kind == "event_msg" and payload.get("type") == "turn_aborted":
            ending = "aborted"
        elif kind not in ("session_meta",):
            skipped[f"events {kind}"] += 1
    items += reader.close()
    if not any(kind == "response_item" for _, (kind, _, _) in events):
        raise InputError("a session without a message", "a session needs a turn of the agent", "Leave it out.")
    yield rules.read(
        items,
        source=[payload for _, (_, _, payload) in events],
        line=events[0][0],
        created_at=last_time([timestamp for _, (_, timestamp, _) in events], skipped),
        skipped=reader.skipped + skipped,
        id=f"codex:{key}" if key else content_id("codex", [payload for _, (_, _, payload) in events]),
        ending=ending,
        model=optional_text("model", model),
        policy="codex",
    )


def _as_instructions(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item; a message that the program wrote in the user's name gets the role `developer`."""
    if item.get("type") == "message" and item.get("role") == "user":
        text = content_text("a message", item.get("content"))
        if text.lstrip().startswith(_CONTEXT):
            return {**item, "role": "developer"}
    return item


def _reader(rules: FieldRules) -> SessionReader:
    return SessionReader(_Taking(), lambda key, events: _build(key, events, rules))


CODEX_SESSIONS = Format("Codex sessions", _recognises, _reader)
