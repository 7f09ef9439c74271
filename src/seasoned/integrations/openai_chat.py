"""Importer of chat-completion transcripts with tool calls, as of the OpenAI API and many others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seasoned.errors import InputError, excerpt
from seasoned.integrations.conversation import AgentTurn, InputMessage, content_id, ending_of, episode_of
from seasoned.integrations.json_input import Document, ReadEpisode
from seasoned.integrations.json_shapes import (
    CORRECT,
    call_text,
    content_text,
    describe_value,
    optional_list,
    optional_record,
    optional_reward,
    optional_text,
    record,
    text_key,
    unix_time,
)

__all__ = ["message_items", "read_chat"]


def read_chat(document: Document) -> Iterator[ReadEpisode]:
    r"""Yield the episode of a transcript: an object with `messages`, or with the `request` and `response` of one call.

    In a transcript, each assistant message is a turn. In a logged call, only the answer is a turn: earlier messages are
    context, and steps of their own calls.

    | field | becomes |
    |---|---|
    | `messages` (roles system, developer, user, assistant, tool, function) | steps, see `conversation.episode_of` |
    | `tool_calls` (function, custom), `function_call` | the action, `name({"arg":value})`, without the text beside it |
    | `content` of a message without a call | the action |
    | `reasoning_content` and other fields of a message | nothing |
    | `rewards` (each turn or action), `reward` of a message | the steps' rewards |
    | `reward`, else `score` | the last step's reward |
    | `id` (of a call: the response's), else a hash of the content | the episode's id |
    | `task`, else `metadata.task` | the task |
    | `model`, `subject` (else `user`) | model, subject |
    | `created_at`, else `created`, else `timestamp` | time of the episode |
    | `ending`; `truncated`: true; `error`; the last `finish_reason` | the ending, else terminated |

    Other fields of the object are allowed.

    Raises:
        InputError: it is something else, or has a role, a part or a call of an unknown kind.

    Example:
        >>> messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        >>> next(read_chat(Document(1, {"messages": messages, "score": 1}))).episode.steps
        (Step(state='Hi', action='Hello', reward=1.0, prior=None, propensity=None),)
    """
    source = record("a transcript", document.value)
    if "messages" in source:
        fields, context, messages = source, [], optional_list("messages", source["messages"])
    elif "request" in source and "response" in source:
        request, response = record("request", source["request"]), record("response", source["response"])
        fields = {
            **{key: request[key] for key in ("model", "user", "metadata") if key in request},
            **response,
            **source,
        }
        context, messages = optional_list("messages", request.get("messages")), [_answer(response)]
        fields["finish_reason"] = messages[0].get("finish_reason")
    else:
        raise InputError(
            f"an object with {excerpt(sorted(source), 60)}",
            "a transcript has `messages`, or a `request` and its `response`",
            "Check the format of the file.",
        )
    if not messages:
        raise InputError("messages = []", "a transcript needs at least one message", "Leave it out.")
    calls: dict[str, str] = {}
    items = [item for message in context for item in message_items(message, calls, recorded=False)]
    items += [item for message in messages for item in message_items(message, calls)]
    reward = optional_reward("reward", fields.get("reward"))
    score = optional_reward("score", fields.get("score"))
    finish = next((m["finish_reason"] for m in reversed(messages) if isinstance(m.get("finish_reason"), str)), None)
    episode, rewarded = episode_of(
        items,
        task=optional_text("task", fields.get("task") or _metadata(fields).get("task")),
        id=text_key("id", fields.get("id")) or content_id("openai", document.value),
        reward=score if reward is None else reward,
        rewards=[optional_reward("reward", value) for value in optional_list("rewards", fields.get("rewards"))],
        ending=ending_of({**fields, "finish_reason": fields.get("finish_reason") or finish}),
        model=optional_text("model", fields.get("model")),
        subject=optional_text("subject", fields.get("subject") or fields.get("user")),
    )
    when = next((fields[key] for key in ("created_at", "created", "timestamp") if fields.get(key) is not None), None)
    yield ReadEpisode(episode, document.line, unix_time("created_at", when), rewarded)


def _metadata(fields: dict[str, Any]) -> dict[str, Any]:
    metadata = fields.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _answer(response: dict[str, Any]) -> dict[str, Any]:
    choices = optional_list("choices", response.get("choices"))
    if len(choices) != 1:
        raise InputError(
            f"a response with {len(choices)} choices", "a response must have one choice, the one that was used", CORRECT
        )
    choice = record("a choice", choices[0])
    return {**record("message", choice.get("message")), "finish_reason": choice.get("finish_reason")}


def message_items(
    message: object, calls: dict[str, str], *, recorded: bool = True
) -> Iterator[InputMessage | AgentTurn]:
    """Yield a message as an input message or a turn. Tool calls are added to `calls`, id to name.

    Raises:
        InputError: the role is unknown, or the message is empty.
    """
    fields = record("a message", message)
    role = fields.get("role")
    if role == "assistant":
        yield AgentTurn(_actions(fields, calls), optional_reward("reward", fields.get("reward")), recorded)
        return
    text = content_text(f"the content of a message of {describe_value(role)}", fields.get("content"))
    if role in ("tool", "function"):
        name = fields.get("name") or calls.get(str(fields.get("tool_call_id")))
        yield InputMessage(f"{role} {name}" if isinstance(name, str) else str(role), text)
    elif role in ("system", "developer", "user"):
        if not text.strip():
            raise InputError(f"an empty message of {role!r}", "a message needs a text", "Remove it.")
        yield InputMessage(str(role), text)
    else:
        raise InputError(f"role {describe_value(role)}", "this role is unknown", CORRECT)


def _actions(message: dict[str, Any], calls: dict[str, str]) -> tuple[str, ...]:
    actions = [_call(call, calls) for call in optional_list("tool_calls", message.get("tool_calls"))]
    if message.get("function_call") is not None:
        call = record("function_call", message["function_call"])
        actions.append(call_text(call.get("name"), call.get("arguments")))
    if actions:
        return tuple(actions)
    text = content_text("the content of a message of 'assistant'", message.get("content"))
    text = text if text.strip() else content_text("refusal", message.get("refusal"))
    if text.strip():
        return (text,)
    if isinstance(thought := message.get("reasoning_content"), str) and thought.strip():
        return ()
    raise InputError("an empty message of 'assistant'", "a turn needs a text or a call", "Remove it.")


def _call(call: object, calls: dict[str, str]) -> str:
    fields = optional_record("a tool call", call)
    kind = fields.get("type") or ("function" if "function" in fields else None)
    if kind == "function":
        function = record("function", fields.get("function"))
        name, text = function.get("name"), call_text(function.get("name"), function.get("arguments"))
    elif kind == "custom":
        custom = record("custom", fields.get("custom"))
        name, text = custom.get("name"), call_text(custom.get("name"), custom.get("input"))
    else:
        raise InputError(f"a tool call of type {describe_value(kind)}", "this type of call is unknown", CORRECT)
    calls[str(fields.get("id"))] = str(name)
    return text
