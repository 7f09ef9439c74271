"""The Chat Completions API on the wire: `POST .../chat/completions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from seasoned.integrations.chat.messages import MessageReader
from seasoned.integrations.clients.wires.wire_format import (
    ModelAnswer,
    ToolOptions,
    WireFormat,
    WireItem,
    as_index,
    as_name,
    as_names,
    as_record,
    as_records,
    as_token_logprobs,
    is_whole_json,
    one_answer,
    one_call,
    without,
)
from seasoned.integrations.conversation import AgentTurn, InputMessage
from seasoned.protocols import TokenLogprob, Usage

__all__ = ["MESSAGE_INSTRUCTIONS", "ChatWire", "chosen_options", "extended_message", "message_items"]

MESSAGE_INSTRUCTIONS = ("system", "developer")
_LIMITS = ("max_tokens", "max_completion_tokens")
_NOT_ASKED = ("stream", "stream_options", "n", "response_format", "prediction", "store", "audio", "modalities")


class ChatWire(WireFormat):
    """Chat Completions, of OpenAI and of every server that speaks it, Azure's deployments among them."""

    name: ClassVar[str] = "chat"
    path: ClassVar[str] = "/chat/completions"

    def units(self, body: Mapping[str, Any]) -> list[WireItem]:
        """Return the messages or items of a request, without instructions."""
        return [one for one in as_records(body.get("messages")) if one.get("role") not in MESSAGE_INSTRUCTIONS]

    def answer(self, response: Mapping[str, Any]) -> ModelAnswer:
        """Return the answer of a response."""
        choices = as_records(response.get("choices"))
        one_answer(len(choices))
        message, finish = as_record(choices[0].get("message")), choices[0].get("finish_reason")
        calls = as_records(message.get("tool_calls"))
        cut = finish in (None, "length")
        if cut:
            calls = [call for call in calls if is_whole_json(_arguments(call))]
            message = {**message, "tool_calls": calls or None}
        said = bool(message.get("content") or message.get("refusal") or message.get("function_call") or calls)
        return ModelAnswer(
            ({**message, "role": "assistant"},) if said else (),
            as_name(response.get("id")),
            as_name(response.get("model")),
            has_calls=bool(calls or message.get("function_call")),
            is_cut=cut,
            is_refused=finish == "content_filter",
            tokens=self.tokens(response),
        )

    def streamed(self, events: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        """Return the response that a stream's events make up, and whether the stream was complete."""
        response: dict[str, Any] = {}
        choices: dict[int, dict[str, Any]] = {}
        for event in events:
            response |= {key: event[key] for key in ("id", "model", "usage") if event.get(key)}
            for choice in as_records(event.get("choices")):
                known = choices.setdefault(as_index(choice.get("index"), 0), {"message": {}, "finish_reason": None})
                _add_delta(known["message"], as_record(choice.get("delta")))
                known["finish_reason"] = choice.get("finish_reason") or known["finish_reason"]
        for choice in choices.values():
            if calls := choice["message"].pop("calls_by_index", None):
                choice["message"]["tool_calls"] = [calls[index] for index in sorted(calls)]
        complete = bool(choices) and all(choice["finish_reason"] for choice in choices.values())
        return {**response, "choices": [choices[index] for index in sorted(choices)]}, complete

    def is_answer(self, unit: WireItem) -> bool:
        """Return whether the agent said this."""
        return unit.get("role") == "assistant"

    def is_user_message(self, unit: WireItem) -> bool:
        """Return whether a user said this, and no tool."""
        return unit.get("role") == "user"

    def call_ids(self, units: Sequence[WireItem]) -> frozenset[str]:
        """Return the ids of the calls in an answer whose results the client sends."""
        return as_names(call.get("id") for unit in units for call in as_records(unit.get("tool_calls")))

    def result_ids(self, units: Sequence[WireItem]) -> frozenset[str]:
        """Return the ids of the calls whose results these messages are."""
        return as_names(unit.get("tool_call_id") for unit in units if unit.get("role") == "tool")

    def items(
        self, units: Sequence[WireItem], recorded: Sequence[bool]
    ) -> Iterator[tuple[int, InputMessage | AgentTurn]]:
        """Yield what each unit is in a conversation, with the unit's index."""
        return message_items(units, recorded)

    def extended(self, body: Mapping[str, Any], text: str) -> dict[str, Any] | None:
        """Return the request with a text at the end of its last message of a user or a tool, or None."""
        return extended_message(body, text, ("user", "tool", "function"))

    def tool_names(self, body: Mapping[str, Any]) -> list[str | None]:
        """Return the names of the tools that are offered, and that the client runs; None for any other tool."""
        return [as_name(as_record(tool.get("function")).get("name")) for tool in as_records(body.get("tools"))]

    def tool_options(self, body: Mapping[str, Any]) -> ToolOptions | None:
        """Return what the model may do next; None if a request leaves no choice, or one that cannot be named."""
        return chosen_options(self.tool_names(body), body.get("tool_choice"), any_tool="required")

    def with_choice(self, body: Mapping[str, Any], tool: str | None) -> dict[str, Any]:
        """Return the request with the call of one tool demanded; None: with calls forbidden."""
        choice = "none" if tool is None else {"type": "function", "function": {"name": tool}}
        return {**body, "tool_choice": choice}

    def question(self, body: Mapping[str, Any], text: str, n_alternatives: int) -> dict[str, Any] | None:
        """Return a request that ends with a question, for one token with its most likely alternatives."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            return None
        if messages and as_record(messages[-1]).get("role") == "user":
            asked = extended_message(body, text, ("user",))
            messages = [] if asked is None else asked["messages"]
        else:
            messages = [*messages, {"role": "user", "content": text}]
        if not messages:
            return None
        limit = next((name for name in _LIMITS if name in body), "max_completion_tokens")
        asked = {**without(body, *_LIMITS, *_NOT_ASKED), "messages": messages, "tool_choice": "none"}
        return {**asked, limit: 1, "logprobs": True, "top_logprobs": n_alternatives}

    def first_token(self, response: Mapping[str, Any]) -> tuple[TokenLogprob, ...]:
        """Return the alternatives of the first token of an answer; none if the response has none."""
        choices = as_records(response.get("choices"))
        tokens = as_records(as_record(choices[0].get("logprobs")).get("content")) if choices else []
        return as_token_logprobs(tokens[0].get("top_logprobs")) if tokens else ()

    def usage(self, response: Mapping[str, Any]) -> Usage:
        """Return what a response cost, as the provider counted it."""
        counted = as_record(response.get("usage"))
        return one_call(counted.get("prompt_tokens"), counted.get("completion_tokens"))


def chosen_options(
    names: Sequence[str | None], tool_choice: object, *, any_tool: str, can_force: bool = True
) -> ToolOptions | None:
    """Return the options of a request by its tools, None for one without a name, and its `tool_choice`."""
    known = [name for name in names if name is not None]
    if not known or len(known) < len(names) or tool_choice not in (None, "auto", any_tool):
        return None
    return ToolOptions(tuple(dict.fromkeys(known)), may_answer=tool_choice != any_tool, can_force=can_force)


def message_items(
    units: Sequence[WireItem], recorded: Sequence[bool]
) -> Iterator[tuple[int, InputMessage | AgentTurn]]:
    """Yield what each message is in a conversation, with its index."""
    reader = MessageReader()
    for index, (unit, is_recorded) in enumerate(zip(units, recorded, strict=True)):
        for item in reader.items(unit, recorded=is_recorded):
            yield index, item


def extended_message(body: Mapping[str, Any], text: str, roles: Sequence[str]) -> dict[str, Any] | None:
    """Return a request with a text at the end of its last message of these roles; None if it has none."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, dict) and message.get("role") in roles:
            content = message.get("content")
            if isinstance(content, list):
                content = [*content, {"type": "text", "text": text}]
            elif content is None or isinstance(content, str):
                content = f"{content}\n\n{text}" if content else text
            else:
                return None
            return {**body, "messages": [*messages[:index], {**message, "content": content}, *messages[index + 1 :]]}
    return None


def _arguments(call: Mapping[str, Any]) -> object:
    return as_record(call.get("function")).get("arguments") if "function" in call else "{}"


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a chunk of a stream to a message. The chunks of a call have its index; its arguments come in pieces."""
    for key in ("content", "refusal"):
        if isinstance(delta.get(key), str):
            message[key] = (message.get(key) or "") + delta[key]
    if function := as_record(delta.get("function_call")):
        _add_function(message.setdefault("function_call", {"name": "", "arguments": ""}), function)
    for piece in as_records(delta.get("tool_calls")):
        calls = message.setdefault("calls_by_index", {})
        index = as_index(piece.get("index"), max(0, len(calls) - 1))
        call = calls.setdefault(index, {"type": "function", "function": {"name": "", "arguments": ""}})
        call |= {key: piece[key] for key in ("id", "type") if piece.get(key)}
        _add_function(call["function"], as_record(piece.get("function")))


def _add_function(function: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for key in ("name", "arguments"):
        if isinstance(piece.get(key), str):
            function[key] += piece[key]
