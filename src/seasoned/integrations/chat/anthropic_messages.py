"""Reader of chats of the Anthropic Messages API: content blocks with `tool_use` and `tool_result`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seasoned.errors import InputError
from seasoned.integrations.chat.messages import MessageReader
from seasoned.integrations.conversation import InputMessage, content_id, ending_of
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode
from seasoned.integrations.json_shapes import (
    content_text,
    last_time,
    optional_list,
    optional_record,
    optional_reward,
    optional_text,
    record,
    text_key,
)
from seasoned.integrations.readers import Format, by_document

__all__ = ["ANTHROPIC_MESSAGES", "read_messages"]

_BLOCKS = ("tool_use", "tool_result")
_RECOGNISED_MESSAGES = 50
_CUT_OFF = ("max_tokens", "model_context_window_exceeded", "pause_turn")


def read_messages(document: Document, rules: FieldRules) -> Iterator[ReadEpisode]:
    """Yield the episode of a chat: a list of messages, an object with one, or the request and response of a call.

    | field | becomes |
    |---|---|
    | `system` | instructions |
    | blocks `text` of an assistant message without `tool_use` | the action |
    | blocks `tool_use` | the actions, see `seasoned.actions.call_action`; the text beside them is `AgentTurn.text` |
    | blocks `tool_result`, and a user's text | input messages |
    | blocks `thinking` | nothing |
    | `reward`, else `score`; `task`; `id` | reward, task, id |
    | `response.stop_reason`, else `stop_reason`: `max_tokens` | truncated, else terminated |

    Of the request and response of a call, only the answer is a turn.

    Raises:
        InputError: it is something else, or has a role or a part of an unknown kind.
    """
    value = document.value
    source = {"messages": value} if isinstance(value, list) else record("a chat", value)
    request = optional_record("request", source.get("request")) or source
    response = optional_record("response", source.get("response"))
    reader = MessageReader()
    system = content_text("system", request.get("system"))
    items: list[Any] = [InputMessage("system", system)] if system.strip() else []
    for message in optional_list("messages", request.get("messages")):
        items += reader.items(message, recorded=not response)
    if response:
        items += reader.items({"role": "assistant", "content": response.get("content")})
    if not items:
        raise InputError("messages = []", "a chat needs at least one message", "Leave it out.")
    reward, score = (optional_reward(name, source.get(name)) for name in ("reward", "score"))
    stop = response.get("stop_reason", source.get("stop_reason"))
    fields = {key: source.get(key) for key in ("ending", "error", "truncated")}
    identity = text_key("id", source.get("id")) or text_key("id", response.get("id"))
    yield rules.read(
        items,
        source=value,
        line=document.line,
        created_at=last_time([source.get("created_at")], reader.skipped),
        skipped=reader.skipped,
        task=None if rules.task else optional_text("task", source.get("task")),
        id=identity or content_id("anthropic", value),
        reward=score if reward is None else reward,
        ending=ending_of({**fields, "finish_reason": "length" if stop in _CUT_OFF else None}),
        model=optional_text("model", response.get("model") or request.get("model")),
    )


def _recognises(value: object) -> bool:
    if isinstance(value, dict):
        request, response = value.get("request", value), value.get("response")
        if isinstance(response, dict) and isinstance(response.get("content"), list) and "stop_reason" in response:
            return isinstance(request, dict) and isinstance(request.get("messages"), list)
        value = request.get("messages") if isinstance(request, dict) and response is None else None
        if isinstance(request, dict) and isinstance(value, list) and "system" in request:
            return True
    return isinstance(value, list) and any(_has_blocks(message) for message in value[:_RECOGNISED_MESSAGES])


def _has_blocks(message: object) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return False
    return any(isinstance(block, dict) and block.get("type") in _BLOCKS for block in content)


ANTHROPIC_MESSAGES = Format("Anthropic messages", _recognises, by_document(read_messages), general=True)
