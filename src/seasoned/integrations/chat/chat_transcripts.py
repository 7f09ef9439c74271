"""Reader of chat transcripts: chat completions with tool calls, under any key, ShareGPT, and logged calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from seasoned.errors import InputError, excerpt
from seasoned.integrations.chat.messages import MessageReader, is_message, is_messages, written_value
from seasoned.integrations.chat.response_items import ItemReader, is_item
from seasoned.integrations.conversation import content_id, ending_of, exit_ending
from seasoned.integrations.field_rules import MISSING, FieldRules, value_at
from seasoned.integrations.json_input import Document, ReadEpisode
from seasoned.integrations.json_shapes import (
    CORRECT,
    last_time,
    optional_list,
    optional_reward,
    optional_text,
    record,
    text_key,
)
from seasoned.integrations.readers import Format, by_document

__all__ = ["CHAT_TRANSCRIPTS", "read_chat"]

_MESSAGES = "messages"
_MAX_DEPTH = 3
_TASKS = ("task", "task_id", "instance_id", "item_id")
_LIMITS = ("LimitsExceeded", "TimeExceeded", "CostLimitExceeded", "StepLimitExceeded")
_REWARDS = ("reward", "score", "task_completion_pass", "resolved")
_TOOLBENCH, _WON = "answer_generation", "win"
_MARKS_OF_MESSAGES = ('"role"', "'role'", '"from"', "'from'")
_BEGINNING_CHARS = 300
_QUERY, _ANSWERS = "query", "answers"


def read_chat(document: Document, rules: FieldRules | None = None) -> Iterator[ReadEpisode]:
    r"""Yield the episode of a transcript: messages, an object with them, or the request and response of a call.

    The messages are under `messages`, under the path of the rules, or else the only list of messages at most three
    levels deep, which may be in a text, as JSON or a Python literal; Responses items are messages too. Of several
    lists, each with the messages of the one before it, the last is the transcript. A `query` with its `answers` is a
    transcript too (xLAM).

    In a transcript, each assistant message is a turn. In a logged call, only the answer is a turn: earlier messages are
    context, and steps of their own calls. A logged call is a `request` or a `body` with its `response`, or `messages`
    beside a `response` (with `choices`, or as a text) or an `output`.

    | field | becomes |
    |---|---|
    | the messages, see `messages.MessageReader` | steps, see `conversation.episode_of` |
    | `rewards` (each turn or action), `reward` of a message | the steps' rewards |
    | `reward`, else `score`, `task_completion_pass`, `resolved`; of ToolBench `win` | the last step's reward |
    | `id` (of a call: the response's), else a hash of the content | the episode's id |
    | `task`, `task_id`, `instance_id` or `item_id`, else one of these in `metadata` | the task |
    | `model`, `subject` (else `user`) | model, subject |
    | `created_at`, else `created`, else `timestamp` | time of the episode |
    | `ending`; `truncated`: true; `error`; `exit_status`, here or in `info`; the last `finish_reason` | the ending |

    Other fields of the object are allowed.

    Raises:
        InputError: it is something else, or has a role, a part or a call of an unknown kind.

    Example:
        >>> messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        >>> next(read_chat(Document(1, {"messages": messages, "score": 1}))).episode.steps
        (Step(state='Hi', action='Hello', reward=1.0, prior=None, propensity=None),)
    """
    rules = rules or FieldRules()
    source: dict[str, Any] = (
        {_MESSAGES: document.value} if isinstance(document.value, list) else record("a transcript", document.value)
    )
    fields, context, messages = _conversation(source, rules.messages)
    if not messages:
        raise InputError("messages = []", "a transcript needs at least one message", "Leave it out.")
    reader: MessageReader | ItemReader
    if any(map(is_item, messages)):
        reader = ItemReader()
        items = [item for message in context for item in reader.add(message, recorded=False)]
        items += [*(item for message in messages for item in reader.add(message)), *reader.close()]
    else:
        reader = MessageReader()
        items = [item for message in context for item in reader.items(message, recorded=False)]
        items += [item for message in messages for item in reader.items(message)]
    finishes = [message.get("finish_reason") for message in messages if message is not None]
    finish = next((reason for reason in reversed(finishes) if isinstance(reason, str)), None)
    when = next((fields[key] for key in ("created_at", "created", "timestamp") if fields.get(key) is not None), None)
    yield rules.read(
        items,
        source=document.value,
        line=document.line,
        created_at=last_time([when], reader.skipped),
        skipped=reader.skipped,
        task=None if rules.task else _task(fields),
        id=text_key("id", fields.get("id")) or content_id("openai", document.value),
        reward=None if rules.reward else _reward(fields),
        rewards=[optional_reward("reward", value) for value in optional_list("rewards", fields.get("rewards"))],
        ending=ending_of({**fields, "finish_reason": fields.get("finish_reason") or _limit(fields) or finish}),
        model=optional_text("model", fields.get("model")),
        subject=optional_text("subject", fields.get("subject") or fields.get("user")),
    )


def _conversation(source: dict[str, Any], path: str | None) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """Return the fields, the messages that are context, and those of the episode."""
    if path is not None:
        found = value_at(source, path)
        if found is MISSING:
            raise InputError(
                f"an object with {excerpt(sorted(source), 60)}",
                f"it has no field {path!r}",
                "Name the messages by another path: --messages (in Python: messages=).",
            )
        return source, [], _listed(path, found)
    if (logged := _logged_call(source)) is not None:
        request, response = logged
        answer = _answer(response)
        common: dict[str, Any] = {key: request[key] for key in ("model", "user", "metadata") if key in request}
        fields = {**common, **response, **source, "finish_reason": answer.get("finish_reason")}
        return fields, _listed(_MESSAGES, request.get(_MESSAGES)), [answer]
    if _MESSAGES in source:
        messages = _listed(_MESSAGES, source[_MESSAGES])
        beside = _beside(source, messages)
        return (source, [], messages) if beside is None else (source, messages, [beside])
    if _is_query(source):
        calls = written_value(_ANSWERS, source[_ANSWERS])
        return source, [], [{"role": "user", "content": source[_QUERY]}, {"role": "assistant", "tool_calls": calls}]
    paths = _paths(source)
    if len(paths) == 1:
        return source, [], _listed(paths[0], _last_of_growing(value_at(source, paths[0])))
    if paths:
        raise InputError(
            f"lists of messages at {excerpt(paths, 80)}",
            "only one list can be the transcript",
            "Name it: --messages (in Python: messages=).",
        )
    raise InputError(
        f"an object with {excerpt(sorted(source), 60)}",
        "a transcript has `messages`, or a `request` and its `response`",
        "Name the list of messages by its path: --messages (in Python: messages=).",
    )


def _logged_call(source: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the request and the response of a logged call: `request` or `body`, or the messages, beside `response`."""
    request = next((source[key] for key in ("request", "body") if isinstance(source.get(key), dict)), None)
    request = source if request is None and _MESSAGES in source else request
    response = source.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict):
        return None
    request, response = (one["body"] if isinstance(one.get("body"), dict) else one for one in (request, response))
    return (request, response) if "choices" in response or "request" in source else None


def _beside(source: dict[str, Any], messages: list[Any]) -> dict[str, Any] | None:
    """Return the answer of a logged call that is a text `response`, or a message `output` or `response`."""
    last = messages[-1] if messages else None
    if last is None or last.get("role") == "assistant":
        return None  # the messages have it
    for answer in (source.get("response"), source.get("output")):
        if isinstance(answer, str) and answer.strip():
            return {"role": "assistant", "content": answer}
        if is_message(answer) and isinstance(answer, dict) and answer.get("role") == "assistant":
            return answer
    return None


def _listed(name: str, value: object) -> list[Any]:
    """Return a list of messages, which may be in a text as JSON or as a Python literal."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _last_of_growing(written_value(name, value))
    messages = optional_list(name, value)
    return [message if message is None else record("a message", message) for message in messages]


def _is_query(source: dict[str, Any]) -> bool:
    """Return whether an object is a wish with the calls that answer it, as of xLAM: `query` and `answers`."""
    answers = source.get(_ANSWERS)
    return isinstance(source.get(_QUERY), str) and isinstance(answers, str) and answers.lstrip().startswith("[")


def _is_growing(value: object) -> bool:
    """Return whether a value is a list of lists of messages, each with the messages of the one before it."""
    if not isinstance(value, list) or len(value) < 2 or not all(map(is_messages, value)):
        return False
    return all(len(one) < len(other) and other[: len(one)] == one for one, other in pairwise(value))


def _last_of_growing(value: Any) -> Any:
    return value[-1] if _is_growing(value) else value


def _has_messages(value: object) -> bool:
    """Return whether a value is a list of messages, the text of one, or lists of which the last one is."""
    if isinstance(value, str):
        begin = value[:_BEGINNING_CHARS]
        return begin.lstrip()[:1] == "[" and any(mark in begin for mark in _MARKS_OF_MESSAGES)
    return is_messages(value) or _is_growing(value)


def _paths(source: dict[str, Any]) -> list[str]:
    """Return the paths of the lists of messages, of the least depth at which there are any."""
    level: list[tuple[str, dict[str, Any]]] = [("", source)]
    for _ in range(_MAX_DEPTH):
        found = [prefix + key for prefix, inner in level for key, value in inner.items() if _has_messages(value)]
        if found:
            return found
        level = [
            (f"{prefix}{key}.", value)
            for prefix, inner in level
            for key, value in inner.items()
            if isinstance(value, dict)
        ]
    return []


def _recognises(value: object) -> bool:
    if isinstance(value, list):
        return is_messages(value)
    if not isinstance(value, dict):
        return False
    logged = _logged_call(value)
    is_logged = logged is not None and "choices" in logged[1]
    return _MESSAGES in value or is_logged or _is_query(value) or bool(_paths(value))


def _reward(fields: dict[str, Any]) -> float | None:
    names = (*_REWARDS, _WON) if _TOOLBENCH in fields else _REWARDS
    return next((optional_reward(name, fields[name]) for name in names if fields.get(name) is not None), None)


def _task(fields: dict[str, Any]) -> str | None:
    for holder in (fields, _metadata(fields)):
        for value in (holder.get(name) for name in _TASKS):
            if isinstance(value, str | int) and not isinstance(value, bool) and (task := text_key("task", value)):
                return task
    return None


def _metadata(fields: dict[str, Any]) -> dict[str, Any]:
    metadata = fields.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _limit(fields: dict[str, Any]) -> str | None:
    """Return the finish reason of a run of a coding agent that a limit cut off, or an error ended."""
    info = fields.get("info")
    status = info.get("exit_status") if isinstance(info, dict) else fields.get("exit_status")
    if isinstance(status, str) and status in _LIMITS:
        return "length"
    return {"truncated": "length", "aborted": "error"}.get(exit_ending(status))


def _answer(response: dict[str, Any]) -> dict[str, Any]:
    choices = optional_list("choices", response.get("choices"))
    if len(choices) != 1:
        raise InputError(
            f"a response with {len(choices)} choices", "a response must have one choice, the one that was used", CORRECT
        )
    choice = record("a choice", choices[0])
    return {**record("message", choice.get("message")), "finish_reason": choice.get("finish_reason")}


CHAT_TRANSCRIPTS = Format("chat completions", _recognises, by_document(read_chat), general=True)
