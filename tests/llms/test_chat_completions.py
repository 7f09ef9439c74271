"""Requests and answers of invalid types are refused."""

from __future__ import annotations

import pytest

from seasoned.errors import InputError, ModelAnswerError
from seasoned.llms.wire.chat_completions import check_request, read_completion
from seasoned.protocols import CompletionRequest, Message, Tool, ToolCall

ASK = (Message("user", "Ready?"),)


@pytest.mark.parametrize(
    "request_",
    [
        CompletionRequest(ASK, tools="abc"),
        CompletionRequest(ASK, tools=None),
        CompletionRequest(ASK, tools=Tool("go")),
        CompletionRequest(ASK, tools=({"name": "go"},)),
        CompletionRequest(ASK, tools=(ToolCall("1", "go", {"to": "shop"}),)),
        CompletionRequest("Ready?"),
        CompletionRequest(ASK[0]),
        CompletionRequest(({"role": "user", "content": "Ready?"},)),
    ],
)
def test_other_types_of_messages_and_tools_are_refused(request_):
    with pytest.raises(InputError) as raised:
        check_request(request_)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


@pytest.mark.parametrize(
    "calls", [5, "go", {"id": "1"}, [{"id": "1", "function": {"name": "go", "arguments": {"to": "shop"}}}]]
)
def test_malformed_tool_calls_are_refused(calls):
    body = {
        "choices": [{"message": {"content": "x", "tool_calls": calls}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    }
    with pytest.raises(ModelAnswerError):
        read_completion(body, CompletionRequest(ASK), "m")
