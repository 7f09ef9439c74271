"""JSON inside of strings: what has too many values is no call, and is refused before it is parsed."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from seasoned.actions.json_size import MOST_CALL_VALUES, has_more_values
from seasoned.actions.json_values import read_json
from seasoned.actions.tool_calls import call_action, parse_tool_call
from seasoned.errors import InputError
from seasoned.integrations.clients.wires.answers import read_answer
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.clients.wires.event_stream import json_events
from seasoned.integrations.clients.wires.wire_format import is_whole_json

MANY = '{"a":[' + "[]," * (2 * MOST_CALL_VALUES) + "1]}"
"""1.2 MB, of which 400,000 lists would be 25 MB and more."""

ANSWER = json.dumps({"choices": [{"message": {"role": "assistant", "content": "yes"}}], "more": json.loads(MANY)})


def refused(read, *given):
    with pytest.raises(InputError, match="200000 values"):
        read(*given)


READERS = {
    "the arguments of a call": lambda: refused(read_json, MANY),
    "a call": lambda: refused(parse_tool_call, {"name": "f", "arguments": MANY}),
    "an imported call": lambda: call_action("f", MANY).startswith("f("),
    "the end of a stream": lambda: is_whole_json(MANY),
    "an answer": lambda: refused(read_answer, ChatWire(), "application/json", ANSWER.encode()),
    "an event": lambda: list(json_events(f"data: {ANSWER}\n\n".encode())),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_json_of_too_many_values_is_not_parsed(read):
    tracemalloc.start()
    read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(MANY)


def test_long_texts_of_few_values_are_read():
    text = '[{,"' * (MOST_CALL_VALUES // 2)
    assert read_json(json.dumps({"text": text})) == {"text": text}
    assert is_whole_json(json.dumps([0] * (MOST_CALL_VALUES - 1)))


@pytest.mark.parametrize("kind", [str, str.encode], ids=["text", "bytes"])
def test_values_are_counted_outside_of_strings(kind):
    for text, n_values in (("[1,2,3]", 3), ('{"a":{"b":[]}}', 3), ('["[,{",",\\",[",1]', 3)):
        assert has_more_values(kind(text), n_values - 1)
        assert not has_more_values(kind(text), n_values)


def test_deeply_nested_answer_is_none():
    assert read_answer(ChatWire(), "application/json", b"[" * 100_000) is None
