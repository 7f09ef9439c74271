"""Attributes of other conventions as those of OpenTelemetry GenAI: OpenInference, indexed prompts and completions."""

from __future__ import annotations

from typing import Any

from seasoned.integrations.json_shapes import optional_text

__all__ = ["genai_attributes"]

_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_OPERATION = "gen_ai.operation.name"
_LISTS = {
    "llm.input_messages": _INPUT,
    "llm.output_messages": _OUTPUT,
    "gen_ai.prompt": _INPUT,
    "gen_ai.completion": _OUTPUT,
}
_RENAMED = {
    "llm.model_name": "gen_ai.request.model",
    "session.id": "gen_ai.conversation.id",
    "agent.name": "gen_ai.agent.name",
}
_NESTED = {"llm", "openinference", "input", "output", "tool"}
_WHOLE = {"arguments", "input.value", "output.value"}  # their keys are a tool's, and no part of a name
_KINDS = {"LLM": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
_TOOL = ("tool.name", "input.value", "output.value")
_TRACELOOP_TOOL = ("traceloop.entity.name", "traceloop.entity.input", "traceloop.entity.output")


def genai_attributes(attributes: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the attributes of a span with those of GenAI added, where the span has them in another convention.

    | attribute | becomes |
    |---|---|
    | `llm.input_messages.N.message.*`, `gen_ai.prompt.N.*` | `gen_ai.input.messages` |
    | `llm.output_messages.N.message.*`, `gen_ai.completion.N.*` | `gen_ai.output.messages`, one message |
    | `input.value`, `output.value` of an LLM without messages | a message of the user, of the assistant |
    | `openinference.span.kind` LLM, TOOL, AGENT; `traceloop.span.kind` tool | `gen_ai.operation.name` |
    | `tool.name` (else the span's name), `input.value`, `output.value` of a tool | `gen_ai.tool.*` |
    | `llm.model_name`, `session.id`, `agent.name` | model, conversation, agent |

    Args:
        attributes: by name; values may be objects and lists (`{"llm": {"model_name": "m"}}`).
        name: of the span.

    Example:
        >>> flat = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi"}
        >>> genai_attributes(flat, "chat")["gen_ai.input.messages"]
        [{'role': 'user', 'content': 'Hi'}]
    """
    if any(isinstance(value, dict | list) and key.partition(".")[0] in _NESTED for key, value in attributes.items()):
        attributes = _flat(attributes)
    if not any(
        key.startswith(("llm.", "openinference.", "traceloop.", *(f"{p}." for p in _LISTS))) for key in attributes
    ):
        return attributes
    result = dict(attributes)
    for old, new in _RENAMED.items():
        if old in attributes:
            result.setdefault(new, attributes[old])
    kind = str(attributes.get("openinference.span.kind", "")).upper()
    if kind in _KINDS:
        result.setdefault(_OPERATION, _KINDS[kind])
    if kind == "TOOL":
        _add_tool(result, attributes, _TOOL, name)
    elif attributes.get("traceloop.span.kind") == "tool":
        result.setdefault(_OPERATION, "execute_tool")
        _add_tool(result, attributes, _TRACELOOP_TOOL, name)
    for prefix, target in _LISTS.items():
        messages = _messages(attributes, prefix)
        if messages and target not in result:
            result[target] = messages if target == _INPUT else [_joined(messages)]
    if kind == "LLM":
        for key, role, target in (("input.value", "user", _INPUT), ("output.value", "assistant", _OUTPUT)):
            if target not in result and (text := optional_text(key, attributes.get(key))):
                result[target] = [{"role": role, "content": text}]
    return result


def _add_tool(result: dict[str, Any], attributes: dict[str, Any], keys: tuple[str, str, str], name: str) -> None:
    tool, arguments, output = keys
    result.setdefault("gen_ai.tool.name", attributes.get(tool) or name)
    if arguments in attributes:
        result.setdefault("gen_ai.tool.call.arguments", attributes[arguments])
    if output in attributes:
        result.setdefault("gen_ai.tool.call.result", attributes[output])


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested attributes by their dotted names; positions in lists of objects are parts of a name."""
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner):
            inner = {str(position): item for position, item in enumerate(inner)}  # noqa: PLW2901
        if isinstance(inner, dict) and key not in _WHOLE and prefix + key not in _WHOLE:
            flat.update(_flat(inner, f"{prefix}{key}."))
        else:
            flat[prefix + key] = inner
    return flat


def _indexed(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the objects of a flattened list: `prefix.N.field` to the fields of the N-th."""
    start = f"{prefix}."
    by_index: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(start):
            number, _, name = key.removeprefix(start).partition(".")
            if number.isdecimal() and len(number) < 10 and name:
                by_index.setdefault(int(number), {})[name] = value
    return [by_index[index] for index in sorted(by_index)]


def _messages(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the messages of a flattened list, in the form of chat completions."""
    messages = []
    for fields in _indexed(attributes, prefix):
        plain = {key.removeprefix("message."): value for key, value in fields.items()}
        message = {key: value for key, value in plain.items() if "." not in key}
        if "content" not in message and (parts := _indexed(plain, "contents")):
            texts = [part.get("message_content.text") for part in parts]
            message["content"] = "\n".join(text for text in texts if isinstance(text, str))
        if calls := [_call(call) for call in _indexed(plain, "tool_calls")]:
            message["tool_calls"] = calls
        if "function_call_name" in plain:
            message["function_call"] = {
                "name": plain["function_call_name"],
                "arguments": plain.get("function_call_arguments_json"),
            }
        messages.append(message)
    return messages


def _call(fields: dict[str, Any]) -> dict[str, Any]:
    plain = {key.removeprefix("tool_call.").removeprefix("function."): value for key, value in fields.items()}
    function = {"name": plain.get("name"), "arguments": plain.get("arguments")}
    return {"id": plain.get("id"), "type": "function", "function": function}


def _joined(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an answer in several messages as one: an instrumentation may write each block as a message."""
    if len(messages) == 1:
        return {"role": "assistant", **messages[0]}
    texts = [message["content"] for message in messages if isinstance(message.get("content"), str)]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return {**messages[-1], "role": "assistant", "content": "\n".join(filter(None, texts)), "tool_calls": calls}
