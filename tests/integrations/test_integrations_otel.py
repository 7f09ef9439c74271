"""Import of GenAI spans: one episode per conversation, in any order and shape of spans."""

from __future__ import annotations

import json
import random

import pytest

from seasoned.actions import readable_action
from seasoned.errors import InputError, UnknownNameError
from seasoned.integrations import ReadEpisode, Refusal, read_episodes
from seasoned.integrations.conversation import AgentTurn, InputMessage
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, documents
from seasoned.integrations.readers import MAX_IDLE_EVENTS
from seasoned.integrations.spans.genai_messages import RepeatedInput, span_messages
from seasoned.integrations.spans.otel import SpanReader, read_otel

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def otlp_value(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": otlp_attributes(value)}}
    return {"stringValue": value}


def otlp_attributes(attributes):
    return [{"key": key, "value": otlp_value(value)} for key, value in attributes.items()]


def span(number, attributes, trace="ab" * 16, parent=None, events=(), **fields):
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent is not None else {}),
        "name": "a span",
        "startTimeUnixNano": str(START + number * SECOND),
        "endTimeUnixNano": str(START + number * SECOND + SECOND // 2),
        "attributes": otlp_attributes(attributes),
        "events": [
            {"name": name, "timeUnixNano": str(START + number * SECOND), "attributes": otlp_attributes(own)}
            for name, own in events
        ],
        **fields,
    }


def flat(otlp):
    """Return the span in the form of a console exporter."""

    def plain(value):
        [(kind, inner)] = value.items()
        if kind == "arrayValue":
            return [plain(item) for item in inner["values"]]
        if kind == "kvlistValue":
            return {pair["key"]: plain(pair["value"]) for pair in inner["values"]}
        return int(inner) if kind == "intValue" else inner

    def attributes(pairs):
        return {pair["key"]: plain(pair["value"]) for pair in pairs}

    return {
        "name": otlp["name"],
        "context": {"trace_id": "0x" + otlp["traceId"], "span_id": "0x" + otlp["spanId"], "trace_state": "[]"},
        "parent_id": "0x" + otlp["parentSpanId"] if "parentSpanId" in otlp else None,
        "start_time": int(otlp["startTimeUnixNano"]) / SECOND,
        "end_time": int(otlp["endTimeUnixNano"]) / SECOND,
        "status": {"status_code": "UNSET"},
        "attributes": attributes(otlp["attributes"]),
        "events": [
            {"name": e["name"], "timestamp": START / SECOND, "attributes": attributes(e["attributes"])}
            for e in otlp["events"]
        ],
    }


def request(*spans):
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def text(role, content):
    return {"role": role, "parts": [{"type": "text", "content": content}]}


CALL = {
    "role": "assistant",
    "finish_reason": "tool_call",
    "parts": [
        {"type": "reasoning", "content": "look it up"},
        {"type": "tool_call", "id": "c1", "name": "get_order", "arguments": {"order": 4417}},
    ],
}
SHIPPED = "goal:\nWhere is order 4417?\nrecent:\nget_order\ntool get_order:\nshipped"
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "shipped"}]}
HELLO = [text("user", "Where is order 4417?")]
ANSWER = {**text("assistant", "It was shipped."), "finish_reason": "stop"}


def chat(number, before, after, **fields):
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.conversation.id": "conv-1",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o-2024",
        "gen_ai.input.messages": json.dumps(before),
        "gen_ai.output.messages": json.dumps(after),
        "gen_ai.usage.input_tokens": 12,
    }
    return span(number, {**attributes, **fields.pop("attributes", {})}, parent=0, **fields)


def tool(number, result="shipped", trace="ab" * 16):
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_order",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"order": 4417}',
    }
    result = {} if result is None else {"gen_ai.tool.call.result": result}
    return span(number, {**attributes, **result}, trace=trace, parent=0)


def agent(**fields):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", **fields.pop("attributes", {})}
    return span(0, attributes, **fields)


def evaluation(score, name="task_success"):
    return "gen_ai.evaluation.result", {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": score}


HTTP = span(7, {"http.request.method": "POST"}, parent=1)
CONVERSATION = [
    agent(events=[evaluation(1)]),
    chat(1, HELLO, [CALL]),
    HTTP,
    tool(2),
    chat(3, [*HELLO, CALL, RESULT], [ANSWER]),
]


def read(*values, **options):
    return list(read_episodes("otel", [json.dumps(value).encode() for value in values], **options))


def one(*spans, **options):
    [item] = read(request(*spans), **options)
    assert isinstance(item, ReadEpisode), item
    return item


def turns_of(item):
    return [(step.state, readable_action(step.action), step.reward) for step in item.episode.steps]


def test_conversation_is_read_as_the_expected_episode():
    item = one(*CONVERSATION)
    episode = item.episode
    assert turns_of(item) == [("Where is order 4417?", "get_order(order=4417)", 0.0), (SHIPPED, "It was shipped.", 1.0)]
    assert (episode.id, episode.task, episode.model, episode.policy, episode.ending, episode.final_state) == (
        "conv-1",
        "Where is order 4417?",
        "gpt-4o-2024",
        "desk",
        "terminated",
        None,
    )
    assert item.created_at == 1_700_000_003.5
    assert item.rewarded


def test_order_shape_and_repetition_of_spans_have_no_effect():
    expected = one(*CONVERSATION).episode
    for seed in range(10):
        spans = list(CONVERSATION)
        random.Random(seed).shuffle(spans)
        for values in ([request(*spans)], [request(s) for s in spans], [flat(s) for s in spans], [[*map(flat, spans)]]):
            [item] = read(*values, *values)
            assert item.episode == expected
    printed = "\n".join(json.dumps(flat(s), indent=4) for s in CONVERSATION).encode().splitlines()
    [item] = read_episodes("otel", printed)
    assert item.episode == expected


def test_structured_message_attributes_are_read():
    messages = {"gen_ai.input.messages": HELLO, "gen_ai.output.messages": [ANSWER]}
    instructions = {"gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}]}
    assert turns_of(one(span(1, {"gen_ai.operation.name": "chat", **messages, **instructions}))) == [
        ("Where is order 4417?", "It was shipped.", 0.0)
    ]


def test_trace_id_replaces_a_missing_conversation_id():
    messages = {"gen_ai.input.messages": json.dumps(HELLO), "gen_ai.output.messages": json.dumps([ANSWER])}
    spans = [span(n, {"gen_ai.operation.name": "chat", **messages}, trace=t * 16) for n, t in [(1, "aa"), (2, "bb")]]
    assert [item.episode.id for item in read(request(*spans))] == ["aa" * 16, "bb" * 16]


def test_conversation_spans_two_traces_and_tool_spans_without_its_id():
    spans = [
        chat(1, HELLO, [CALL], trace="cc" * 16),
        tool(2, trace="cc" * 16),
        chat(3, [*HELLO, CALL, RESULT], [ANSWER], trace="dd" * 16),
    ]
    assert turns_of(one(*spans)) == turns_of(one(*CONVERSATION[1:]))


def test_tool_results_are_messages_if_no_input_has_them():
    assert one(chat(1, HELLO, [CALL]), tool(2)).episode.final_state == SHIPPED
    item = one(chat(1, HELLO, [CALL]), tool(2), chat(3, [], [ANSWER]))
    assert [step.state for step in item.episode.steps] == ["Where is order 4417?", SHIPPED]


def test_tool_spans_alone_are_turns():
    root = agent(attributes={"gen_ai.input.messages": json.dumps(HELLO)})
    item = one(root, tool(1), tool(2, "lost"))
    assert [step.state for step in item.episode.steps] == ["Where is order 4417?", SHIPPED]
    assert item.episode.final_state == SHIPPED.replace("get_order\n", "get_order, get_order\n").replace(
        "shipped", "lost"
    )
    assert {readable_action(step.action) for step in item.episode.steps} == {"get_order(order=4417)"}


def test_agent_span_alone_is_a_turn():
    messages = {"gen_ai.input.messages": json.dumps(HELLO), "gen_ai.output.messages": json.dumps([ANSWER])}
    assert turns_of(one(agent(attributes=messages, events=[evaluation(0.5)]))) == [
        ("Where is order 4417?", "It was shipped.", 0.5)
    ]


QUESTION = {"role": "user", "content": "Where is order 4417?"}
OLD_CALLS = [{"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order":4417}'}}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            [
                ("gen_ai.user.message", {"content": "Where is order 4417?"}),
                ("gen_ai.choice", {"index": 0, "message": json.dumps({"tool_calls": OLD_CALLS})}),
            ],
            [
                ("gen_ai.user.message", {"content": "Where is order 4417?"}),
                ("gen_ai.assistant.message", {"tool_calls": json.dumps(OLD_CALLS)}),
                ("gen_ai.tool.message", {"id": "c1", "content": "shipped"}),
                ("gen_ai.choice", {"index": 0, "message": {"content": "It was shipped."}}),
            ],
        ),
        (
            [
                ("gen_ai.user.message", {"gen_ai.event.content": json.dumps(QUESTION)}),
                ("gen_ai.choice", {"gen_ai.event.content": json.dumps({"message": {"tool_calls": OLD_CALLS}})}),
            ],
            [
                ("gen_ai.tool.message", {"gen_ai.event.content": json.dumps({"id": "c1", "content": "shipped"})}),
                ("gen_ai.choice", {"gen_ai.event.content": json.dumps({"message": {"content": "It was shipped."}})}),
            ],
        ),
        (
            [
                ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([QUESTION])}),
                (
                    "gen_ai.content.completion",
                    {"gen_ai.completion": json.dumps([{"role": "assistant", "tool_calls": OLD_CALLS}])},
                ),
            ],
            [
                ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "tool", "content": "shipped"}])}),
                ("gen_ai.content.completion", {"gen_ai.completion": "It was shipped."}),
            ],
        ),
        (
            [
                (
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.input.messages": json.dumps(HELLO), "gen_ai.output.messages": json.dumps([CALL])},
                )
            ],
            [
                (
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.input.messages": [RESULT], "gen_ai.output.messages": [ANSWER]},
                )
            ],
        ),
    ],
    ids=["attributes", "json", "prompt", "details"],
)
def test_message_events_are_read(first, second):
    operation = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "conv-1"}
    spans = [span(1, operation, events=first), span(2, operation, events=second)]
    first, (state, *answer) = turns_of(one(*spans))
    assert (first, answer) == (("Where is order 4417?", "get_order(order=4417)", 0.0), ["It was shipped.", 0.0])
    assert state.replace("tool:", "tool get_order:") == SHIPPED


def log(number, name, attributes, body=None):
    return {
        "timeUnixNano": str(START + number * SECOND),
        "eventName": name,
        "traceId": "ab" * 16,
        "spanId": f"{number:016x}",
        "attributes": otlp_attributes(attributes),
        **({} if body is None else {"body": otlp_value(body)}),
    }


def logs(*records):
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}


def test_log_records_extend_or_replace_their_span():
    operation = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "conv-1"}
    records = [
        log(1, "gen_ai.user.message", {}, {"content": "Hi"}),
        log(1, "gen_ai.choice", {}, {"index": 0, "message": {"content": "Hello"}}),
        log(1, "gen_ai.evaluation.result", evaluation(0.5)[1]),
        log(2, "some.other.event", {}),
    ]
    [item] = read(logs(*records), request(span(1, operation)))
    assert turns_of(item) == [("Hi", "Hello", 0.5)]
    details = {**operation, "gen_ai.input.messages": json.dumps(HELLO), "gen_ai.output.messages": json.dumps([ANSWER])}
    [alone] = read(logs(log(1, "gen_ai.client.inference.operation.details", details)))
    assert turns_of(alone) == [("Where is order 4417?", "It was shipped.", 0.0)]


def test_evaluation_becomes_the_reward():
    on_turn = chat(1, HELLO, [CALL], events=[evaluation(0.25)])
    assert [r for *_, r in turns_of(one(on_turn, *CONVERSATION[2:]))] == [0.25, 0.0]
    assert not one(*CONVERSATION[1:]).rewarded
    label = ("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "x", "gen_ai.evaluation.score.label": "pass"})
    assert not one(agent(events=[label]), *CONVERSATION[1:]).rewarded
    several = agent(events=[evaluation(0.5), evaluation(0.9, "tone")])
    [refusal] = read(request(several, *CONVERSATION[1:]))
    assert "evaluations task_success, tone" in refusal.reason
    assert "evaluation=" in refusal.reason
    assert turns_of(one(several, *CONVERSATION[1:], evaluation="tone"))[-1][2] == 0.9


@pytest.mark.parametrize(
    ("spans", "ending"),
    [
        (CONVERSATION, "terminated"),
        ([agent(status={"code": 2}), *CONVERSATION[1:]], "aborted"),
        ([*CONVERSATION[:-1], chat(3, [RESULT], [ANSWER], status={"code": "STATUS_CODE_ERROR"})], "aborted"),
        ([*CONVERSATION[:3], {**tool(2), "status": {"code": 2}}, CONVERSATION[-1]], "terminated"),
        ([*CONVERSATION[:-1], chat(3, [RESULT], [{**ANSWER, "finish_reason": "length"}])], "truncated"),
        (
            [
                *CONVERSATION[:-1],
                chat(3, [RESULT], [ANSWER], attributes={"gen_ai.response.finish_reasons": ["length"]}),
            ],
            "terminated",
        ),  # the message says stop
    ],
)
def test_ending_is_derived_from_status_and_finish_reason(spans, ending):
    assert one(*spans).episode.ending == ending


def test_failed_call_without_an_answer_is_not_a_turn():
    failed = span(2, {"gen_ai.operation.name": "chat", "error.type": "timeout"}, parent=0)
    assert turns_of(one(*CONVERSATION[:3], failed, CONVERSATION[-1])) == turns_of(one(*CONVERSATION))


def test_unrelated_spans_are_ignored():
    other = span(5, {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e"}, trace="ee" * 16)
    assert read(request(HTTP, other)) == []
    assert len(read(request(HTTP, other, *CONVERSATION))) == 1


def broken(**attributes):
    return chat(3, [RESULT], [ANSWER], attributes=attributes)


SPANS_REFUSED = [
    ({**broken(), "startTimeUnixNano": None}, "needs a start time"),
    ({**broken(), "startTimeUnixNano": "soon"}, "a time in ISO 8601"),
    ({**broken(), "spanId": None}, "its own id"),
    ({**broken(), "attributes": [{"key": "gen_ai.x", "value": {"colourValue": 1}}]}, "this kind is unknown"),
    (
        {**broken(), "attributes": [{"key": "gen_ai.x", "value": {"intValue": 1, "boolValue": True}}]},
        "it must have one kind",
    ),
    ({**broken(), "attributes": [*broken()["attributes"], *broken()["attributes"]]}, "occur once"),
    ({**broken(), "attributes": "x"}, "attributes must be a list"),
]


@pytest.mark.parametrize(("bad", "reason"), SPANS_REFUSED, ids=[reason for _, reason in SPANS_REFUSED])
def test_a_refused_span_refuses_its_conversation_and_no_other(bad, reason):
    other = {**chat(1, HELLO, [ANSWER], trace="cd" * 16, attributes={"gen_ai.conversation.id": "conv-2"})}
    refusal, hole, accepted = read(request(*CONVERSATION[:-1]), request(bad), request(other))
    assert (refusal.line, hole.line) == (2, 1)
    assert reason in refusal.reason
    assert "conversation 'conv-1': a span of it was refused, on line 2" in hole.reason
    assert accepted.episode.id == "conv-2"


CONVERSATIONS_REFUSED = [
    ([span(1, {"gen_ai.operation.name": "chat"})], "Record message content"),
    ([chat(1, HELLO, [CALL]), span(2, {"gen_ai.operation.name": "chat"})], "Record message content"),
    ([chat(1, HELLO, [ANSWER, ANSWER])], "the one that was used"),
    ([chat(1, HELLO, [text("user", "x")])], "the role of the model's answer must be assistant"),
    ([chat(1, HELLO, [text("bot", "x")])], "role 'bot'"),
    ([chat(1, HELLO, [text("assistant", "")])], "a turn needs a text or a call"),
    ([chat(1, [{"role": "user", "parts": [{"type": 7}]}], [ANSWER])], "this type of part is unknown"),
    ([chat(1, [], [ANSWER])], "an episode needs at least one step"),
    ([broken(**{"gen_ai.input.messages": "{"})], "not JSON"),
    ([broken(**{"gen_ai.input.messages": "7"})], "must be a list"),
    ([broken(**{"gen_ai.input.messages": json.dumps([text("user", "\0")])})], "NUL"),
    ([agent(events=[evaluation("good")]), *CONVERSATION[1:]], "score must be a number"),
]


@pytest.mark.parametrize(
    ("spans", "reason"), CONVERSATIONS_REFUSED, ids=[reason for _, reason in CONVERSATIONS_REFUSED]
)
def test_invalid_documents_are_refused_with_reasons(spans, reason):
    [refusal] = read(request(*spans))
    assert isinstance(refusal, Refusal)
    assert refusal.reason.startswith("conversation ")
    assert reason in refusal.reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"resourceMetrics": []}, "telemetry has resourceSpans"),
        ({"messages": []}, "or a trace id"),
        (7, "a JSON object"),
        ({"resourceSpans": 7}, "resourceSpans must be a list"),
        ({"resourceSpans": [{"scopeSpans": [7]}]}, "a JSON object"),
    ],
)
def test_other_files_are_refused(value, reason):
    [refusal, accepted] = read(value, request(*CONVERSATION))
    assert refusal.line == 1
    assert reason in refusal.reason
    assert accepted.line == 2


def test_buffer_is_bounded_and_late_spans_are_refused():
    def conversation(number):
        own = {"trace": f"{number:032x}", "attributes": {"gen_ai.conversation.id": f"conv-{number}"}}
        return [chat(1, HELLO, [CALL], **own), chat(3, [RESULT], [ANSWER], **own)]

    values = [request(s) for number in range(20) for s in conversation(number)]
    lines = [json.dumps(value).encode() for value in [*values, values[0]]]
    whole = list(read_otel(documents(lines)))
    assert [item.episode.id for item in whole] == [f"conv-{number}" for number in range(20)]
    *bounded, late = read_otel(documents(lines), max_buffer_bytes=3000)
    # The last conversations were still open when the late span came.
    accepted = [item for item in [*bounded, late] if isinstance(item, ReadEpisode)]
    assert accepted == whole
    [refusal] = [item for item in [*bounded, late] if isinstance(item, Refusal)]
    assert (refusal.line, "conversation 'conv-0' was closed" in refusal.reason) == (41, True)


def test_conversation_is_closed_after_many_spans_of_others():
    def flat(trace, span, conversation=None, text="Go"):
        said = json.dumps([{"role": "assistant", "content": text}])
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said}
        if conversation:
            attributes["gen_ai.conversation.id"] = conversation
        attributes["gen_ai.input.messages"] = json.dumps([{"role": "user", "content": "Hello"}])
        return {"trace_id": f"{trace:032x}", "span_id": f"{span:016x}", "start_time": span, "attributes": attributes}

    others = [
        {"trace_id": "ff", "span_id": f"{n:016x}", "start_time": n, "attributes": {"gen_ai.system": "x"}}
        for n in range(100, MAX_IDLE_EVENTS + 102)
    ]
    half = len(others) // 2
    spans = [flat(1, 1), flat(2, 2, "long"), *others[:half], flat(3, 3, "long"), *others[half:]]
    reader = SpanReader(FieldRules())
    found = [item for number, span in enumerate(spans, 1) for item in reader.add(Document(number, span))]
    assert [item.episode.id for item in found] == [f"{1:032x}"]
    [late] = reader.add(Document(len(spans) + 1, flat(1, 4)))
    assert "closed, too many spans ago" in late.reason
    assert list(reader.add(Document(len(spans) + 2, flat(2, 5, "long")))) == []
    [rest] = reader.close()
    assert (rest.episode.id, len(rest.episode.steps)) == ("long", 3)


def test_invalid_arguments_are_refused_before_reading():
    with pytest.raises(UnknownNameError, match="Did you mean 'otel'"):
        read_episodes("otl", [])
    with pytest.raises(InputError, match="'atif' has no evaluations"):
        read_episodes("atif", [], evaluation="x")
    for limit in (0, -1, True, 1.5, None):
        with pytest.raises(InputError, match="must be a whole number, at least 1"):
            read_otel([], max_buffer_bytes=limit)
        with pytest.raises(InputError, match="must be a whole number, at least 1"):
            read_episodes("otel", [], max_document_bytes=limit)


@pytest.mark.parametrize("reason", [{}, {"finish_reason": "tool_call"}])
def test_an_answer_that_the_next_input_repeats_is_read_once(reason):
    user, result = {"role": "user", "content": "Find tea."}, {"role": "tool", "tool_call_id": "c", "content": "none"}
    answer = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "find", "arguments": "{}"}}]}

    def call(listed, output):
        names = {"gen_ai.input.messages": json.dumps(listed), "gen_ai.output.messages": json.dumps([output])}
        return {"attributes": names, "events": []}

    repeated, calls = RepeatedInput(), {}
    _, [turn] = span_messages(call([user], {**answer, **reason}), calls, repeated)
    before, _ = span_messages(call([user, answer, result], {"role": "assistant", "content": "No."}), calls, repeated)
    assert before[0] is turn
    assert before[1] == InputMessage("tool find", "none")
    changed = {"role": "assistant", "content": "Yes."}
    listed = [user, answer, result, changed, {"role": "user", "content": "Why?"}]
    assert span_messages(call(listed, changed), calls, repeated)[0][0] == AgentTurn(("Yes.",))


def test_inputs_that_repeat_the_one_before_give_the_messages_that_are_new():
    """As each input alone gives from its last answer on, whatever changes between two inputs."""
    user, call = {"role": "user", "content": "go"}, {"role": "assistant", "content": "look"}
    listed = [user, call, {"role": "tool", "content": 'it says ", {'}, {**call, "content": "done"}, user]
    texts = [json.dumps(listed[:n]) for n in (1, 3, 3, 5, 2)]
    texts += [
        json.dumps(listed[:3], indent=1),
        json.dumps(listed, indent=1),
        json.dumps([user]),
        json.dumps([user, user]),
    ]
    repeated = RepeatedInput()
    for text in texts:
        messages = json.loads(text)
        answers = [at for at, one in enumerate(messages) if one["role"] == "assistant"]
        found = repeated.messages(text)
        found_answers = [at for at, one in enumerate(found) if one["role"] == "assistant"]
        assert found[found_answers[-1] if answers else 0 :] == messages[answers[-1] if answers else 0 :]
    assert len(repeated.messages(json.dumps([user, user, call]))) == 1
    begin = json.dumps(listed[:3])[:-1]
    for damaged in (f"{begin}, 7", f'{begin}, {{"role": "assistant"}}, NaN]', f"{begin}}}]"):
        repeated.messages(json.dumps(listed[:3]))
        with pytest.raises(ValueError, match=r".") as fault:
            repeated.messages(damaged)
        with pytest.raises(ValueError, match=r".") as alone:
            RepeatedInput().messages(damaged)
        assert str(fault.value) == str(alone.value)
