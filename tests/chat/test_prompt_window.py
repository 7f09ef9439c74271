"""Prompts of a chat: no control token of a template in them, and the same text back from a model that copies."""

import json

import pytest
from tests.template_marks import MARKS

from seasoned.chat.chat_log import ChatTurn, in_arguments
from seasoned.chat.prompt_window import broken_marks, request_messages, unbroken_marks
from seasoned.protocols import Message, ToolCall


@pytest.mark.parametrize("mark", MARKS)
def test_no_mark_of_a_template_is_in_a_request(mark: str) -> None:
    text = f"a page: {mark} and{mark}{mark}\n{mark}"
    call = ToolCall("c", "edit_file", json.dumps({"path": "a.py", "new": [text]}))
    turn = ChatTurn("1", [Message("user", text), Message("assistant", text, tool_calls=(call,)), Message("tool", text)])
    messages = request_messages("Be brief.", [turn])

    sent = messages[2].tool_calls[0].arguments
    texts = [*(message.content for message in messages), json.loads(sent)["new"][0]]
    assert not any(mark in each for each in texts)
    assert [unbroken_marks(each) for each in texts[1:]] == [text] * 4
    assert json.loads(in_arguments(unbroken_marks, json.dumps(json.loads(sent)))) == json.loads(call.arguments)


@pytest.mark.parametrize(
    "text", ["a[0] < b <= c", 'x = ["a", []]', "<\u2060s>", "[\u2060", "List[int][1]", "a << b >> c"]
)
def test_marks_are_joined_again_exactly(text: str) -> None:
    assert unbroken_marks(broken_marks(text)) == text
    assert in_arguments(unbroken_marks, in_arguments(broken_marks, json.dumps({"t": text}))) in (
        json.dumps({"t": text}),
        json.dumps({"t": text}, ensure_ascii=False),
    )
