"""Open conversations: which are over, and what is held of them."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from seasoned.integrations.clients.conversations import CallContext, Conversations, RecordedCall
from seasoned.integrations.clients.ended_episode import recorded_turns
from seasoned.integrations.clients.episode_scope import CurrentEpisode
from seasoned.integrations.clients.wires.answers import read_answer
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.clients.wires.response_messages import ResponseMessages
from seasoned.integrations.clients.wires.responses_wire import ResponsesWire


def chat_call(said, scope=None, at=0.0, n=0):
    """A call whose answer calls a tool, so that its conversation goes on."""
    wire = ChatWire()
    called = {"id": f"c{n}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    answered = {"id": f"r{n}", "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [called]}}]}
    body = {"messages": said, "tools": [{"type": "function"}]}
    return RecordedCall(wire, body, wire.answer(answered), CallContext(scope), at)


@pytest.mark.parametrize(("is_whole", "n_turns"), [(False, 0), (True, 1)])
def test_calls_of_an_answer_that_broke_off_are_no_steps(is_whole, n_turns):
    called = {"index": 0, "id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    choices = [{"delta": {"tool_calls": [called]}}, *([{"delta": {}, "finish_reason": "tool_calls"}] * is_whole)]
    stream = "".join(f"data: {json.dumps({'id': 'r1', 'choices': [{'index': 0, **one}]})}\n\n" for one in choices)
    answer = read_answer(ChatWire(), "text/event-stream", stream.encode())
    conversations, body = Conversations(idle_s=60.0), {"messages": [{"role": "user", "content": "go"}], "tools": [{}]}
    conversations.add(RecordedCall(ChatWire(), body, answer, CallContext()))
    [conversation] = conversations.close_all()
    assert len(recorded_turns(conversation)[0]) == n_turns


def test_only_conversations_outside_of_blocks_are_over_when_they_wait_or_are_many():
    conversations, scope = Conversations(idle_s=60.0), CurrentEpisode(None, "inc-7", None, None)
    assert conversations.add(chat_call([{"role": "user", "content": "in a block"}], scope)) == []
    assert conversations.add(chat_call([{"role": "user", "content": "outside"}])) == []
    over = [
        one.last.units[0]["content"]
        for n in range(1002)
        for one in conversations.add(chat_call([{"role": "user", "content": f"{n}"}], at=61.0))
    ]
    assert over == ["outside", "0"]  # a 1,001st waits until the next call
    [kept] = conversations.close_all("inc-7")
    assert kept.last.units[0]["content"] == "in a block"


def test_the_conversation_that_waits_longest_is_over_where_all_have_too_many_bytes():
    conversations = Conversations(idle_s=60.0, max_bytes=250_000)

    def over(said):
        call = chat_call([{"role": "user", "content": said}])
        call.n_bytes = 90_000
        return [one.last.units[-1]["content"] for one in conversations.add(call)]

    assert [over(said) for said in "abcde"] == [[], [], [], ["a"], ["b"]]  # one above waits until the next call
    conversations.close_all()
    assert [over(said) for said in "fghi"] == [[], [], [], ["f"]]


def sized_call(said, n_bytes, scope=None, n=0):
    call = chat_call(said, scope, n=n)
    call.n_bytes = n_bytes
    return call


def test_parsed_values_count_and_other_fields_are_not_kept():
    conversations, over = Conversations(idle_s=60.0, max_bytes=250_000), []
    for n in range(4):
        nested = [{"type": "text", "text": f"{n}"}, *([] for _ in range(800))]
        call = sized_call([{"role": "user", "content": nested}], 3_000, n=n)
        call.body["x"] = [[]] * 10_000
        over += conversations.add(call)
        assert "x" not in call.body
    assert len(over) == 1  # 83 kB or more each: a fourth begins when three are there


def test_every_part_of_a_trimmed_conversation_counts():
    conversations, said = Conversations(idle_s=60.0, max_bytes=250_000), [{"role": "user", "content": "go"}]
    over = []
    for n in range(5):
        over += conversations.add(sized_call(said, 90_000, n=n))
        called = {"id": f"c{n}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": f"c{n}", "content": "done"}
        said = [{"role": "assistant", "content": None, "tool_calls": [called]}, result]  # all that was before is gone
    assert [len(one.parts) for one in over] == [3]


def test_bytes_of_blocks_are_counted_until_they_end():
    conversations, scopes = Conversations(idle_s=60.0), [CurrentEpisode(None, id_, None, None) for id_ in "ab"]
    for n in range(3):
        for scope in scopes:
            conversations.add(sized_call([{"role": "user", "content": f"{n}"}], 1_000_000, scope, n=n))
    one, every = conversations.block_bytes("a"), conversations.block_bytes()
    assert 3_000_000 < one < 3_020_000
    assert every == 2 * one
    conversations.close_all("a")
    assert (conversations.block_bytes("a"), conversations.block_bytes()) == (0, one)
    conversations.close_all("b")
    assert conversations.block_bytes() == 0


@pytest.mark.parametrize(
    ("earlier", "n_known"),
    [(lambda n: None, 1), (lambda n: f"r{n - 1}" if n % 8 else None, 8), (lambda n: f"r{n - n % 4}", 2)],
    ids=["of their own", "in chains", "in branches"],
)
def test_messages_of_responses_have_a_limit_of_bytes(earlier, n_known):
    n_bytes, messages = 100_000, ResponseMessages(max_bytes=1_000_000)
    tracemalloc.start()
    for n in range(40):
        body = {"previous_response_id": earlier(n)}
        said = {"role": "user", "content": f"{n}".ljust(n_bytes, "x")}
        messages.keep(None, f"r{n}", body, [*messages.before(None, body), said], n_bytes)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1_100_000
    assert len(messages.before(None, {"previous_response_id": "r39"})) == n_known


def test_messages_before_several_responses_count_once():
    messages = ResponseMessages(max_bytes=150_000)
    root = {"role": "user", "content": "x" * 100_000}
    messages.keep(None, "root", {}, [root], 100_000)
    for n in range(40):
        body = {"previous_response_id": "root"}
        said = {"role": "user", "content": f"{n}"}
        messages.keep(None, f"r{n}", body, [*messages.before(None, body), said], 1_000)
    assert messages.before(None, {"previous_response_id": "r0"}) == [root, {"role": "user", "content": "0"}]
    for n in range(40, 60):
        messages.keep(None, f"r{n}", {}, [{"role": "user", "content": f"{n}"}], 6_000)
    assert messages.before(None, {"previous_response_id": "r39"}) == ()
    assert messages.before(None, {"previous_response_id": "r59"})


def test_messages_that_a_client_sends_again_count_once_among_responses():
    """A client of the Responses API that sends all messages with each call names no earlier response."""
    conversations, said = Conversations(idle_s=60.0, max_bytes=200_000), [{"role": "user", "content": "alert"}]
    for n in range(20):
        answered, more = response_items(n)
        wire, body = ResponsesWire(), json.loads(json.dumps({"input": said, "tools": [{}]}))
        call = RecordedCall(wire, body, wire.answer(answered), CallContext(), n_bytes=len(json.dumps(said)))
        assert conversations.add(call) == []
        said += more
    body = {"previous_response_id": "r0", "input": []}
    call = RecordedCall(wire, body, wire.answer(answered), CallContext())
    conversations.episode_id(call)
    assert len(call.units) == 2  # the first response is still known


def chat_messages(n):
    call = {"id": f"c{n}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": f"c{n}", "content": f"{n}" * 2000}
    return {"id": f"r{n}", "choices": [{"message": said}]}, [said, result]


def response_items(n):
    call = {"type": "function_call", "call_id": f"c{n}", "name": "run", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": f"c{n}", "output": f"{n}" * 2000}
    return {"id": f"r{n}", "status": "completed", "output": [call]}, [call, result]


@pytest.mark.parametrize(
    ("wire", "key", "turn"), [(ChatWire(), "messages", chat_messages), (ResponsesWire(), "input", response_items)]
)
def test_messages_that_are_sent_again_with_each_call_are_held_once(wire, key, turn):
    """What is held is a small multiple of the conversation, not of its length times its calls (here 30)."""
    conversations, said, n_calls = Conversations(idle_s=60.0), [{"role": "user", "content": "alert"}], 60
    tracemalloc.start()
    for n in range(n_calls):
        answered, more = turn(n)
        body = json.loads(json.dumps({key: said, "tools": [{}]}))
        assert conversations.add(RecordedCall(wire, body, wire.answer(answered), CallContext())) == []
        said += more
    del body
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 8 * len(json.dumps(said))
    [conversation] = conversations.close_all()
    turns, _, _ = recorded_turns(conversation)
    assert [(one.call.answer.id, len(one.steps)) for one in turns] == [(f"r{n}", 1) for n in range(n_calls)]


def test_repeated_call_goes_on_with_the_answer_that_came_back_and_not_with_a_late_one():
    """An answer whose client had gone is read after the one that took its place; then the next call breaks off too."""
    conversations, wire = Conversations(idle_s=60.0), ChatWire()

    def answered(said, n, finish="tool_calls"):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "run", "arguments": f'{{"n":{n}}}'}}
        message = {"role": "assistant", "content": f"text {n}"}
        if len(said) < 5:
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer = wire.answer({"id": f"r{n}", "choices": [{"message": message, "finish_reason": finish}]})
        over = conversations.add(RecordedCall(wire, {"messages": said, "tools": [{}]}, answer, CallContext()))
        return [*said, message, {"role": "tool", "tool_call_id": f"c{n}", "content": "done"}], over

    first = [{"role": "user", "content": "go"}]
    second, _ = answered(first, 1)
    third, _ = answered(second, 2)
    answered(second, 3, finish=None)
    answered(third, 4, finish=None)
    _, [over] = answered(third, 5, finish="stop")
    actions = [step.action for turn in recorded_turns(over)[0] for step in turn.steps]
    assert actions == ['{"arguments":{"n":1},"name":"run"}', '{"arguments":{"n":2},"name":"run"}', "text 5"]
    assert conversations.close_all() == []


def test_conversation_goes_on_after_a_request_with_other_calls_that_was_not_answered():
    """A refused request is placed, and never added."""
    conversations, said = Conversations(idle_s=60.0), [{"role": "user", "content": "go"}]
    conversations.add(chat_call(said))
    call = {"id": "other", "type": "function", "function": {"name": "stop", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "other", "content": "done"}
    more = [*said, {"role": "assistant", "content": None, "tool_calls": [call]}, result]
    assert conversations.episode_id(chat_call(more, n=1)) is None
    assert [one.last.answer.id for one in conversations.close_all()] == ["r0"]
