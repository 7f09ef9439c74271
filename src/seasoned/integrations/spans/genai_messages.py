"""Messages of a GenAI span: in its attributes, or as events in earlier forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seasoned.actions import call_action
from seasoned.errors import InputError
from seasoned.integrations.chat.messages import MessageReader
from seasoned.integrations.conversation import AgentTurn, InputMessage
from seasoned.integrations.json_input import parse_strict_json
from seasoned.integrations.json_shapes import CORRECT, content_text, describe_value, optional_list, record, result_text
from seasoned.integrations.spans.otlp import Telemetry

__all__ = ["DETAILS_EVENT", "MESSAGE_EVENTS", "RepeatedInput", "has_output", "parsed", "span_messages"]

MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
    "gen_ai.content.prompt": None,
    "gen_ai.content.completion": None,
}
"""Events up to 1.36 with their roles; None if the message has the role."""
_OUTPUT = {"gen_ai.choice", "gen_ai.content.completion"}
DETAILS_EVENT = "gen_ai.client.inference.operation.details"
_INPUT, _OUTPUTS = "gen_ai.input.messages", "gen_ai.output.messages"
_ANSWERS = ("assistant", "ai", "model")
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}


def has_output(span: Telemetry) -> bool:
    """Return whether a span contains an answer."""
    events = {event["name"] for event in span["events"]}
    details = any("gen_ai.output.messages" in e["attributes"] for e in span["events"] if e["name"] == DETAILS_EVENT)
    return "gen_ai.output.messages" in span["attributes"] or details or bool(events & _OUTPUT)


class RepeatedInput:
    """The last model call of a conversation: most inputs repeat the one before and its answer, and go on."""

    def __init__(self) -> None:
        self._begin = ""
        self._answer: dict[str, Any] | None = None
        self._turns: list[InputMessage | AgentTurn] = []

    def messages(self, value: object) -> list[Any]:
        """Return the messages of an input; of one that goes on, those that are new, if there is an answer in them."""
        text = value.rstrip() if isinstance(value, str) else ""
        begin, self._begin = self._begin, text[:-1].rstrip() if text.endswith("]") else ""
        rest = text[len(begin) :].lstrip() if begin.endswith("}") and text.startswith(begin) else ""
        if rest.startswith(","):
            try:
                new = parse_strict_json(f"[{rest[1:]}")
            except ValueError:
                new = []  # the whole text has the fault, at its place
            if isinstance(new, list) and _last_answer(new) is not None:
                return new
        return optional_list(_INPUT, parsed(value))

    def keep_answer(self, messages: list[Any], turns: list[InputMessage | AgentTurn]) -> None:
        """Keep the answer of a call with what was read of it, if it is one message."""
        self._answer, self._turns = (_without_reason(messages[0]), turns) if len(messages) == 1 else (None, [])

    def answer(self, message: object) -> list[InputMessage | AgentTurn] | None:
        """Return what was read of the last answer, if this is the same message; else None."""
        return self._turns if self._answer is not None and _without_reason(message) == self._answer else None


def span_messages(
    span: Telemetry, calls: dict[str, str], repeated: RepeatedInput | None = None
) -> tuple[list[InputMessage | AgentTurn], list[AgentTurn]]:
    """Return the input and the output of a model call.

    Tool calls are added to `calls`, id to name, so that a tool's response can be attributed. An input that repeats the
    conversation is long: with the inputs before it (`repeated`), it begins with the last answer in it.

    Raises:
        InputError: a message has none of the known forms.
    """
    attributes = dict(span["attributes"])
    for event in span["events"]:
        if event["name"] == DETAILS_EVENT:
            attributes.update(event["attributes"])
    before: list[InputMessage | AgentTurn] = []
    if instructions := parsed(attributes.get("gen_ai.system_instructions")):
        before.append(InputMessage("system", content_text("gen_ai.system_instructions", instructions)))
    after: list[InputMessage | AgentTurn] = []
    given = attributes.get(_INPUT)
    messages = optional_list(_INPUT, parsed(given)) if repeated is None else repeated.messages(given)
    for message in messages if repeated is None else messages[_last_answer(messages) or 0 :]:
        read = None if repeated is None else repeated.answer(message)
        before.extend(_message(message, calls) if read is None else read)
    answers = optional_list(_OUTPUTS, parsed(attributes.get(_OUTPUTS)))
    for message in answers:
        after.extend(_message(message, calls))
    if repeated is not None:
        repeated.keep_answer(answers, list(after))
    for event in sorted(span["events"], key=lambda event: event["time_s"] or 0.0):
        if event["name"] in MESSAGE_EVENTS:
            (after if event["name"] in _OUTPUT else before).extend(_event_items(event, calls))
    if any(isinstance(item, InputMessage) for item in after):
        raise InputError("an answer of another role", "the role of the model's answer must be assistant", CORRECT)
    return before, [item for item in after if isinstance(item, AgentTurn)]


def _without_reason(message: Any) -> Any:
    """Return an answer as later inputs repeat it: why it ended is said only once."""
    if isinstance(message, dict) and "finish_reason" in message:
        return {name: value for name, value in message.items() if name != "finish_reason"}
    return message


def _last_answer(messages: list[Any]) -> int | None:
    """Return the place of the last message of the model, None if there is none."""
    for at in range(len(messages) - 1, -1, -1):
        role = messages[at].get("role") if isinstance(messages[at], dict) else None
        if isinstance(role, str) and role.lower() in _ANSWERS:
            return at
    return None


def parsed(value: object) -> Any:
    """Return a value that may be JSON text; None if it is empty."""
    return parse_strict_json(value) if isinstance(value, str) and value.strip() else value or None


def _message(message: object, calls: dict[str, str]) -> Iterator[InputMessage | AgentTurn]:
    """Yield a message with `parts`, as in the conventions since 1.37, or one of an earlier form."""
    fields = record("a message", message)
    role = fields.get("role")
    role = _ROLES.get(role.lower(), role.lower()) if isinstance(role, str) else role
    if "parts" not in fields:
        items = list(MessageReader(calls).items({**fields, "role": role}))
        yield from items or ([AgentTurn(())] if role == "assistant" else [])
        return
    if role not in ("system", "developer", "user", "assistant", "tool"):
        raise InputError(f"role {describe_value(role)}", "this role is unknown", CORRECT)
    contents: list[object] = []
    actions: list[str] = []
    thought = False
    for part in (record("a part", part) for part in optional_list("parts", fields["parts"])):
        kind = part.get("type")
        if kind == "tool_call":
            actions.append(call_action(part.get("name"), part.get("arguments")))
            calls[str(part.get("id"))] = str(part.get("name"))
        elif kind == "tool_call_response":
            name = calls.get(str(part.get("id")))
            answer = part["response"] if "response" in part else part.get("result")
            yield InputMessage(f"tool {name}" if name else "tool", result_text("a tool's response", answer))
        elif kind in ("reasoning", "thinking", "server_tool_call", "server_tool_call_response"):
            thought = True  # internal work of the provider
        else:
            contents.append(part)
    text = content_text(f"a message of {role}", contents, names_unknown=True)
    if role == "assistant":
        if not actions and not text.strip() and not thought:
            raise InputError("an empty message of 'assistant'", "a turn needs a text or a call", "Remove it.")
        yield AgentTurn(tuple(actions), text=text.strip()) if actions else AgentTurn((text,) if text.strip() else ())
    elif contents:
        yield InputMessage(str(role), text)


def _event_items(event: dict[str, Any], calls: dict[str, str]) -> Iterator[InputMessage | AgentTurn]:
    """Yield a message from an event of the conventions up to 1.36: in attributes, in JSON, or in a log's body."""
    attributes = event["attributes"]
    whole = attributes.get("gen_ai.event.content")
    for name in ("gen_ai.prompt", "gen_ai.completion"):
        whole = attributes.get(name) if whole is None else whole
    payload = event["body"] if whole is None else whole
    payload = attributes if payload is None else payload
    if isinstance(payload, str):
        try:
            payload = parse_strict_json(payload)
        except ValueError:
            payload = {"content": payload}
    for item in payload if isinstance(payload, list) else [payload]:
        fields = dict(record(f"the event {event['name']}", item))
        if "message" in fields:
            fields |= record("message", parsed(fields["message"]) or {})
        if isinstance(fields.get("tool_calls"), str):
            fields["tool_calls"] = parsed(fields["tool_calls"])
        fields.setdefault("tool_call_id", fields.get("id"))
        role = MESSAGE_EVENTS[event["name"]] or ("assistant" if event["name"] in _OUTPUT else "user")
        yield from _message({**fields, "role": fields.get("role") or role}, calls)
