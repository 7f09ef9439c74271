"""Messages of chats in their many spellings, as input messages and turns of the agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from seasoned.actions import call_action
from seasoned.actions.python_literals import parse_literal
from seasoned.errors import InputError, excerpt
from seasoned.integrations.chat.message_parts import split_at_steps, unwrapped_message, usual_part
from seasoned.integrations.conversation import AgentTurn, InputMessage
from seasoned.integrations.json_input import parse_strict_json
from seasoned.integrations.json_shapes import (
    CORRECT,
    content_text,
    describe_value,
    optional_list,
    optional_record,
    optional_reward,
    record,
    result_text,
)
from seasoned.states.transcript.text_calls import observed_results, results_of, text_turn

__all__ = ["OF_PROGRAM", "MessageReader", "is_message", "is_messages", "written_value"]

_ROLES = {
    "human": "user",
    "customer": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "agent": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "function_response": "tool",
    "tool_response": "tool",
    "tool_output": "tool",
    "tool_result": "tool",
    "tool_call": "function_call",
    "tool_calls": "function_call",
    "observation": "tool",
    "environment": "tool",
    "ipython": "tool",
}
_CALL_ROLE = "function_call"
_RESULT_ROLES = ("tool", "function")
_EXIT_ROLE = "exit"  # the last message of mini-swe-agent, which no model wrote or read
_KNOWN = {"system", "developer", "user", "assistant", "tool", "function", _CALL_ROLE, _EXIT_ROLE}
_CONTENTS = ("content", "value", "text", "parts")
_PARTS_OF_MESSAGES = {*_CONTENTS, "tool_calls", "function_call"}
_OF_LANGCHAIN = {"tool_calls", "function_call", "refusal"}  # in `additional_kwargs`, as the provider wrote them
_NAMES = ("name", "tool_name", "toolName", "function_name")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "params", "kwargs", "tool_input", "tool_args")
_CALLED = ("function", "custom")
_RESULTS = ("result", "output", "response", "observation")
_THOUGHTS = {"thinking", "redacted_thinking", "reasoning"}
EMPTY, THOUGHT, NULL = "messages without text or call", "thoughts", "messages that are null"
OF_PROGRAM = "messages of the program"


def is_message(value: object) -> bool:
    """Return whether a value looks like a message of a chat: a role, and a content or calls.

    Example:
        >>> is_message({"role": "user", "content": "Hi"}), is_message({"from": "gpt", "value": "Hi"}), is_message({})
        (True, True, False)
    """
    value = unwrapped_message(value)
    if not isinstance(value, dict) or not _PARTS_OF_MESSAGES & value.keys():
        return False
    role = _role(value)
    return isinstance(role, str) and role in _KNOWN


def is_messages(value: object) -> bool:
    """Return whether a value is a list that begins with a message."""
    return isinstance(value, list) and is_message(next((item for item in value if item is not None), None))


def _role(message: dict[str, Any]) -> object:
    """Return the role of a message in its usual spelling, or as it is if that is unknown."""
    role = message.get("role")
    if role is None:
        role = message.get("type") if message.get("from") is None else message["from"]
    if not isinstance(role, str):
        return role
    role = role.lower()
    return _ROLES.get(role, role)


class _Call(NamedTuple):
    action: str
    id: str | None


class MessageReader:
    """Reads the messages of one chat.

    Args:
        calls: names of the tool calls so far, by id; read and extended.

    `skipped` counts what was passed over: messages without text or call, and thoughts.
    """

    def __init__(self, calls: dict[str, str] | None = None) -> None:
        self.calls: dict[str, str] = {} if calls is None else calls
        self.skipped: Counter[str] = Counter()
        self._in_text: tuple[str, ...] = ()  # the tools that the last turn called in its text

    def items(self, message: object, *, recorded: bool = True) -> Iterator[InputMessage | AgentTurn]:
        """Yield the input messages and turns of one message.

        | field | becomes |
        |---|---|
        | `role`, else `from`, else `type`: human is user; gpt, chatgpt, ai, model are assistant | the speaker |
        | `content`, else `value`, else `text`: a text, or a list of parts | an input message, or the action |
        | `tool_calls`, `toolCalls` (with `function`, `custom`, or flat), `function_call`, `tool_use` | the actions |
        | these in LangChain's `additional_kwargs`, if the message has no `tool_calls` | the actions |
        | a text that ends with calls, see `states.transcript.text_calls` | the actions, and the text beside them |
        | the text beside calls | `AgentTurn.text` |
        | `tool_calls` of which each has its result | a turn each; the text is the answer after them |
        | the result in a call, parts `tool_result` | input messages |
        | parts of the Vercel AI SDK, Bedrock Converse and Gemini | see `message_parts.usual_part` |
        | `tool`, `function`, `observation`, `environment`, `ipython`; a content that is no text, as JSON | results |
        | reasoning; a message that is null; a part of an unknown type, or without its text | nothing |

        Raises:
            InputError: the role or a call is of an unknown kind, or a content or part of a wrong type.
        """
        if message is None:
            self.skipped[NULL] += 1
            return
        for part in split_at_steps(record("a message", unwrapped_message(message))):
            yield from self._items(part, recorded=recorded)

    def _items(self, fields: dict[str, Any], *, recorded: bool) -> Iterator[InputMessage | AgentTurn]:
        role = _role(fields)
        if not isinstance(role, str) or role not in _KNOWN:
            raise InputError(f"role {describe_value(fields.get('role', role))}", "this role is unknown", CORRECT)
        if role == _EXIT_ROLE:
            self.skipped[OF_PROGRAM] += 1
            return
        content = _first_of(fields, _CONTENTS)
        named = f"the content of a message of {role!r}"
        texts, actions, results = self._parts(named, content)
        text = result_text(named, texts) if role in _RESULT_ROLES and texts != [] else content_text(named, texts)
        if role == _CALL_ROLE:
            yield self._text_calls(text, recorded)
        elif role == "assistant":
            yield from self._turn(fields, text, actions, recorded)
            yield from results
        elif role in _RESULT_ROLES and not (results and not text.strip()):
            yield from results
            call_id = _as_id(_call_id(fields))
            name = fields.get("name") or self.calls.get(str(call_id))
            if self._in_text and not name:
                yield from results_of(self._in_text, observed_results(text) or (text,), role)
            else:
                is_error = fields.get("is_error") is True or fields.get("status") == "error"
                yield InputMessage(f"{role} {name}" if isinstance(name, str) else role, text, is_error, call_id)
        elif text.strip():
            yield from results
            observed = observed_results(text) if self._in_text and role == "user" else ()
            yield from results_of(self._in_text, observed) if observed else [InputMessage(role, text)]
        elif results:
            yield from results
        else:
            self.skipped[EMPTY] += 1

    def _parts(self, name: str, content: object) -> tuple[Any, list[_Call], list[InputMessage]]:
        """Return the content without its calls, results and thoughts, and these calls and results."""
        if not isinstance(content, list):
            return content, [], []
        texts: list[object] = []
        calls: list[_Call] = []
        results: list[InputMessage] = []
        for part in map(usual_part, content):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind == "tool_use":
                given = part.get("input", part.get("arguments"))
                calls.append(self._named(part.get("name"), given, part.get("id")))
                if part.get("result") is not None:
                    text = result_text(name, part["result"])
                    results.append(InputMessage(f"tool {part.get('name')}", text, call_id=calls[-1].id))
            elif kind == "tool_result":
                call_id = _as_id(part.get("tool_use_id"))
                tool = part.get("name") or self.calls.get(str(call_id))
                text, is_error = result_text(name, part.get("content")), part.get("is_error") is True
                results.append(InputMessage(f"tool {tool}" if tool else "tool", text, is_error, call_id))
            elif isinstance(kind, str) and kind in _THOUGHTS:
                self.skipped[THOUGHT] += 1
            elif isinstance(kind, str) and not _has_text(part):
                self.skipped[f"parts of type {kind[:40]}"] += 1
            else:
                texts.append(part)
        return texts, calls, results

    def _turn(
        self, fields: dict[str, Any], text: str, of_parts: list[_Call], recorded: bool
    ) -> Iterator[InputMessage | AgentTurn]:
        self._in_text = ()
        beside = fields.get("additional_kwargs")
        if fields.get("toolCalls") and not fields.get("tool_calls"):
            fields = {**fields, "tool_calls": fields["toolCalls"]}
        if isinstance(beside, dict) and not fields.get("tool_calls"):
            fields = {**fields, **{name: beside[name] for name in _OF_LANGCHAIN & beside.keys()}}
        calls = fields.get("tool_calls")
        if isinstance(calls, str):
            calls = written_value("tool_calls", calls) if calls.strip() else None
        called = [self._call(call) for call in optional_list("tool_calls", calls)]
        text = text if text.strip() else content_text("refusal", fields.get("refusal"))
        reward = optional_reward("reward", fields.get("reward"))
        if called and not of_parts and all(result is not None for _, result in called):
            # Each call was made with the results of those before it, and the text with all of them.
            last = len(called) if text.strip() else len(called) - 1
            for index, (one, result) in enumerate(called):
                yield AgentTurn((one.action,), reward if index == last else None, recorded)
                yield from [result] if result is not None else []
            if text.strip():
                yield AgentTurn((text,), reward, recorded)
            return
        made = [*of_parts, *(call for call, _ in called)]
        results = [result for _, result in called if result is not None]
        if fields.get("function_call") is not None:
            call = record("function_call", fields["function_call"])
            made.append(_Call(call_action(call.get("name"), call.get("arguments")), None))
            self._in_text = (str(call.get("name")),)
        if made:
            actions, ids = zip(*made, strict=True)
            yield AgentTurn(actions, reward, recorded, text.strip(), ids)
            yield from results
        elif written := text_turn(text):
            self._in_text = written.tools
            yield AgentTurn(written.actions, reward, recorded, written.thought)
        elif text.strip():
            yield AgentTurn((text,), reward, recorded)
        elif reward:
            raise InputError(
                f"a reward of {reward:g} on a message without text or call", "a reward needs an action", CORRECT
            )
        else:
            self.skipped[EMPTY] += 1

    def _call(self, call: object) -> tuple[_Call, InputMessage | None]:
        """Return a call, and its result, if it has one."""
        fields = optional_record("a tool call", call)
        inner = _first_of(fields, _CALLED)
        if isinstance(inner, dict):
            name, where = inner.get("name"), inner
        elif isinstance(inner, str):
            name, where = inner, fields
        elif any(key in fields for key in _NAMES):
            name, where = _first_of(fields, _NAMES), fields
        else:
            raise InputError(
                f"a tool call of type {describe_value(fields.get('type'))}", "this type of call is unknown", CORRECT
            )
        arguments = _first_of(where, _ARGUMENTS)
        made = self._named(name, arguments, fields.get("id", fields.get("call_id", fields.get("tool_call_id"))))
        result = _first_of(fields, _RESULTS)
        if result is None:
            return made, None
        return made, InputMessage(f"tool {name}", result_text("a call's result", result), call_id=made.id)

    def _text_calls(self, text: str, recorded: bool) -> AgentTurn:
        """Return the turn of a message that is itself a call or a list of calls, as JSON or a Python literal."""
        if marked := text_turn(text):
            self._in_text = marked.tools
            return AgentTurn(marked.actions, None, recorded, marked.thought)
        written = written_value("a function call", text)
        calls = [record("a function call", call) for call in (written if isinstance(written, list) else [written])]
        calls = [optional_record("function", call.get("function")) or call for call in calls]
        self._in_text = tuple(str(call.get("name")) for call in calls)
        arguments = [_first_of(call, _ARGUMENTS) for call in calls]
        actions = [call_action(call.get("name"), given) for call, given in zip(calls, arguments, strict=True)]
        if not actions:
            raise InputError("a list of no calls", "a function call must name a function", CORRECT)
        return AgentTurn(tuple(actions), None, recorded)

    def _named(self, name: object, arguments: object, identity: object) -> _Call:
        call = _Call(call_action(name, arguments), _as_id(identity))
        if call.id is not None:
            self.calls[call.id] = str(name)
        return call


def _first_of(fields: dict[str, Any], names: Iterable[str]) -> Any:
    """Return the first of these fields that is there and not null, None if there is none."""
    for name in names:
        if (value := fields.get(name)) is not None:
            return value
    return None


def _as_id(value: object) -> str | None:
    return None if value is None else str(value)


def _call_id(message: dict[str, Any]) -> object:
    """Return the id of the call whose result a message is; SWE-agent writes it as a list of one."""
    several = message.get("tool_call_ids")
    return several[0] if isinstance(several, list) and len(several) == 1 else message.get("tool_call_id")


def _has_text(part: dict[str, Any]) -> bool:
    """Return whether a part of a content has a text, or a mark in its place."""
    if part["type"] == "text" and isinstance(part.get("text"), str):
        return True
    try:
        content_text("a part", [part])
    except InputError:
        return False
    return True


def written_value(name: str, text: str) -> object:
    """Return the value of a text of JSON, or of a Python literal, as tables of data sets have lists and objects.

    Raises:
        InputError: the text is neither.
    """
    try:
        return parse_strict_json(text)
    except (ValueError, RecursionError):
        pass
    try:
        return parse_literal(text)
    except ValueError as error:
        rule = "a list or an object that is a text is JSON, or a Python literal"
        raise InputError(f"{name} = {excerpt(text, 60)}", rule, "Correct the file.") from error
