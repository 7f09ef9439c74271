"""Reader of the items of the OpenAI Responses API: messages, calls, and outputs of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from seasoned.actions import call_action
from seasoned.errors import InputError
from seasoned.integrations.chat.messages import EMPTY, THOUGHT
from seasoned.integrations.conversation import AgentTurn, InputMessage, content_id, ending_of
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode
from seasoned.integrations.json_shapes import (
    CORRECT,
    content_text,
    describe_value,
    last_time,
    optional_list,
    optional_record,
    optional_reward,
    optional_text,
    record,
    result_text,
    text_key,
)
from seasoned.integrations.readers import Format, by_document

__all__ = ["RESPONSES", "ItemReader", "is_item", "read_response"]

_CALLS = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "computer_call": ("action", "actions"),
    "apply_patch_call": ("operation",),
    "mcp_call": ("arguments",),
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("prompt", "revised_prompt"),
    "tool_search_call": ("arguments",),
}
"""The kinds of calls, each with the fields of its arguments."""
_OUTPUTS = {
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "computer_call_output",
    "apply_patch_call_output",
    "tool_search_output",
}
_OWN_OUTPUTS = ("output", "results", "outputs")
_PASSED_OVER = {
    "mcp_list_tools": "lists of tools",
    "mcp_approval_request": "approvals",
    "mcp_approval_response": "approvals",
    "item_reference": "references",
    "compaction": "summaries of earlier turns",
    "context_compaction": "summaries of earlier turns",
    "compaction_summary": "summaries of earlier turns",
    "ghost_snapshot": "snapshots",
    "other": "items of other kinds",
}
_CALL, _OUTPUT = "_call", "_output"
_ARGUMENTS = ("arguments", "action", "input", "operation")  # of a call of a kind that is not listed
_ROLES = ("user", "system", "developer", "assistant")


def is_item(value: object) -> bool:
    """Return whether a value is an item other than a plain message."""
    return isinstance(value, dict) and isinstance(kind := value.get("type"), str) and kind in _CALLS.keys() | _OUTPUTS


class ItemReader:
    """Reads the items of one conversation, in order.

    A text and the calls that follow it, without an input between them, are one turn: the text is beside the calls.
    """

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._texts: list[str] = []
        self._actions: list[str] = []
        self._ids: list[str | None] = []
        self._recorded = True

    def add(self, item: object, *, recorded: bool = True) -> Iterator[InputMessage | AgentTurn]:
        """Yield what is complete with this item.

        An item of an unknown type is a call or an output by the end of its name, or else passed over.

        Raises:
            InputError: the item has no type, or a value in it has another.
        """
        if recorded is not self._recorded:
            yield from self.close()
            self._recorded = recorded
        fields = record("an item", item)
        kind = fields.get("type", "message" if "role" in fields else None)
        if kind == "message":
            yield from self._message(fields)
        elif kind == "reasoning":
            self.skipped[THOUGHT] += 1
        elif isinstance(kind, str) and (kind in _CALLS or kind.endswith(_CALL)):
            yield from self._call(kind, fields)
        elif isinstance(kind, str) and (kind in _OUTPUTS or kind.endswith(_OUTPUT)):
            yield from self.close()
            call_id = None if fields.get("call_id") is None else str(fields["call_id"])
            name = self._names.get(str(call_id))
            text = result_text("a call's output", fields.get("output"))
            yield InputMessage(f"tool {name}" if name else "tool", text, call_id=call_id)
        elif isinstance(kind, str) and kind in _PASSED_OVER:
            self.skipped[_PASSED_OVER[kind]] += 1
        elif isinstance(kind, str):
            self.skipped[f"items of type {kind[:40]}"] += 1
        else:
            raise InputError(f"an item of type {describe_value(kind)}", "this type of item is unknown", CORRECT)

    def close(self) -> Iterator[AgentTurn]:
        """Yield the turn that the last items make up."""
        texts, actions, ids = self._texts, self._actions, self._ids
        self._texts, self._actions, self._ids = [], [], []
        if actions:
            yield AgentTurn(tuple(actions), None, self._recorded, "\n".join(texts), tuple(ids))
        else:
            yield from (AgentTurn((text,), None, self._recorded) for text in texts)

    def _message(self, fields: dict[str, Any]) -> Iterator[InputMessage | AgentTurn]:
        role = fields.get("role")
        if role not in _ROLES:
            raise InputError(f"role {describe_value(role)}", "this role is unknown", CORRECT)
        text = content_text(f"the content of a message of {role!r}", fields.get("content"), names_unknown=True)
        if not text.strip():
            self.skipped[EMPTY] += 1
        elif role == "assistant":
            self._texts.append(text)
        else:
            yield from self.close()
            yield InputMessage(str(role), text)

    def _call(self, kind: str, fields: dict[str, Any]) -> Iterator[InputMessage | AgentTurn]:
        name = fields.get("name") or kind.removesuffix(_CALL)
        keys = _CALLS.get(kind, _ARGUMENTS)
        arguments = next((fields[key] for key in keys if fields.get(key) is not None), None)
        if kind == "code_interpreter_call" or (arguments is not None and not isinstance(arguments, str | dict)):
            arguments = {keys[0]: arguments}
        self._actions.append(call_action(name, arguments))
        identity = fields.get("call_id", fields.get("id"))
        call_id = None if identity is None else str(identity)
        self._ids.append(call_id)
        if call_id is not None:
            self._names[call_id] = str(name)
        output = next((fields[key] for key in _OWN_OUTPUTS if fields.get(key) is not None), None)
        if output is not None:
            yield from self.close()
            yield InputMessage(f"tool {name}", result_text("a call's output", output), call_id=call_id)


def read_response(document: Document, rules: FieldRules) -> Iterator[ReadEpisode]:
    """Yield the episode of a list of items, or of a response with its `output` (and, for the state, its `input`).

    | item | becomes |
    |---|---|
    | `message` of user, system, developer; outputs of calls | input messages |
    | `function_call`, `custom_tool_call`, `local_shell_call` and the other calls | the actions of a turn |
    | `message` of assistant | the text beside the calls that follow, else the action |
    | `reasoning` | nothing |
    | `id` of the response, else a hash of the content; `model`; `created_at` | id, model, time |
    | `status` incomplete; failed, cancelled | truncated; aborted |
    | `reward`, else `score`; `task` | reward, task |

    Raises:
        InputError: it is something else, or has an item without a type.
    """
    value = document.value
    source = {"output": value} if isinstance(value, list) else record("a response", value)
    request = optional_record("request", source.get("request"))
    response = optional_record("response", source.get("response")) or source
    given = request.get("input", source.get("input"))
    reader = ItemReader()
    items: list[Any] = []
    instructions = request.get("instructions") or response.get("instructions")
    if isinstance(instructions, str) and instructions.strip():
        items.append(InputMessage("system", instructions))
    inputs = [{"role": "user", "content": given}] if isinstance(given, str) else optional_list("input", given)
    outputs = optional_list("output", response.get("output", source.get("items")))
    for item in inputs:
        items += reader.add(item, recorded=False)
    for item in outputs:
        items += reader.add(item)
    items += reader.close()
    reward, score = (optional_reward(name, source.get(name)) for name in ("reward", "score"))
    status = response.get("status")
    finish = {"incomplete": "length", "failed": "error", "cancelled": "error"}.get(str(status))
    fields = {key: source.get(key) for key in ("ending", "error", "truncated")}
    yield rules.read(
        items,
        source=value,
        line=document.line,
        created_at=last_time([response.get("created_at")], reader.skipped),
        skipped=reader.skipped,
        task=None if rules.task else optional_text("task", source.get("task")),
        id=text_key("id", source.get("id")) or text_key("id", response.get("id")) or content_id("responses", value),
        reward=score if reward is None else reward,
        ending=ending_of({**fields, "finish_reason": finish}),
        model=optional_text("model", response.get("model") or request.get("model")),
    )


def _recognises(value: object) -> bool:
    if isinstance(value, dict):
        response = value.get("response", value)
        value = response.get("output", value.get("items")) if isinstance(response, dict) else None
        if isinstance(response, dict) and response.get("object") == "response":
            return isinstance(value, list)
        if isinstance(value, list) and value and all(_is_output(item) for item in value[:3]):
            return True
    return isinstance(value, list) and all(isinstance(i, dict) for i in value[:50]) and any(map(is_item, value[:50]))


def _is_output(item: object) -> bool:
    return is_item(item) or (isinstance(item, dict) and item.get("type") in ("message", "reasoning"))


RESPONSES = Format("Responses items", _recognises, by_document(read_response))
