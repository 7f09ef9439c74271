"""What real exports have beside the samples: parts and events of other kinds, odd envelopes, NaN, a file an event."""

from __future__ import annotations

import gzip
import json
import zipfile

import pytest
import trace_samples as samples
from trace_samples import assistant, call, claude, codex, user

from seasoned.actions import readable_action
from seasoned.integrations import Refusal, read_episodes
from seasoned.integrations.trace_files import trace_files
from seasoned.protocols import Message
from seasoned.states import conversation_items
from seasoned.states.transcript.react_text import react_turn


def read(*documents, **rules):
    return list(read_episodes("auto", [json.dumps(document).encode() for document in documents], **rules))


def one(*documents, **rules):
    [found] = read(*documents, **rules)
    assert not isinstance(found, Refusal), found
    return found


def actions(found):
    return [readable_action(step.action) for step in found.episode.steps]


USED = [
    {"type": "text", "text": "I search."},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "Oslo"}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "url": "u"}]},
    {"type": "text", "text": "It rains.", "citations": [{}]},
]
OSLO = ['web_search(query="Oslo")', "It rains."]
INSPECT_USED = [
    {"type": "tool_use", "name": "web_search", "arguments": '{"query": "Oslo"}', "result": "rain"},
    {"type": "text", "text": "It rains."},
]


def langchain(kind, content, **fields):
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["schema", f"{kind}Message"],
        "kwargs": {"content": content, **fields},
    }


FLAT_CALL = {"name": "f", "args": {"a": 1}, "id": "c", "type": "tool_call"}
CHATS = {
    "Anthropic's own tools": ({"messages": [user("go"), assistant(USED)]}, OSLO),
    "a call with its result in inspect_ai": (
        {**samples.INSPECT_SAMPLE, "messages": [user("go"), assistant(INSPECT_USED)]},
        OSLO,
    ),
    "a part of an unknown type": (
        {"messages": [user([{"type": "hologram"}, {"type": "text", "text": "go"}]), assistant("done")]},
        ["done"],
    ),
    "a last message of mini-swe-agent": (
        {"messages": [user("go"), assistant("done"), {"role": "exit", "content": "patch", "extra": {}}]},
        ["done"],
    ),
    "roles of a service desk": (
        {"dialog": [{"role": "customer", "content": "go"}, {"role": "agent", "content": "done"}]},
        ["done"],
    ),
    "messages and calls as Python literals": (
        {"messages": str([user("go"), assistant(None, tool_calls=str([call("c", "f", "{'a': 1}")]))])},
        ["f(a=1)"],
    ),
    "messages of LangChain": (
        {
            "messages": [
                {"type": "human", "data": {"content": "go"}},
                {"type": "ai", "content": "", "tool_calls": [FLAT_CALL], "invalid_tool_calls": []},
                {"type": "tool", "content": "r", "tool_call_id": "c", "status": "success"},
                langchain("AI", "done"),
            ]
        },
        ["f(a=1)", "done"],
    ),
    "items of unknown types": (
        [
            user("go"),
            {"type": "future_call", "call_id": "k", "name": "f", "arguments": '{"a": 1}'},
            {"type": "future_call_output", "call_id": "k", "output": "r"},
            {"type": "future", "id": "x"},
            {"type": "function_call", "call_id": "l", "name": "g", "arguments": "{}"},
        ],
        ["f(a=1)", "g()"],
    ),
}


@pytest.mark.parametrize(("document", "expected"), CHATS.values(), ids=CHATS)
def test_chat_of_an_export_is_read(document, expected):
    found = one(document)
    assert actions(found) == expected
    assert found.episode.steps[0].state == "go"


def test_what_an_export_has_beside_messages_is_counted():
    counted = {
        "a part of an unknown type": "parts of type hologram",
        "a last message of mini-swe-agent": "messages of the program",
        "items of unknown types": "items of type future",
    }
    assert {name: one(CHATS[name][0]).skipped for name in counted} == {n: {kind: 1} for n, kind in counted.items()}


@pytest.mark.parametrize(
    ("text", "action", "observed"),
    [
        ('Thought:\nx\nAction:\n{"name": "f", "arguments": {"a": 1}}', "f(a=1)", "API output: r"),
        ('Thought: x\nAction: f\nAction Input: {"a": 1}', "f(a=1)", "Observation: r"),
        ("Thought 1: x\nAction 1: Search[a [b] c]", 'Search(input="a [b] c")', "Observation 1: r"),
        ("Action 2: Look[a]", 'Look(input="a")', "Observation 2: r"),
        ("Thought: x\nAction: go to desk 1", "go to desk 1", None),
        ('Thought:\nx\nAction:\n{"name": "respond", "arguments": {"content": "Hi."}}', "Hi.", None),
        ('Thought: x\nAction:\n```\n{"action": "Final Answer", "action_input": "42"}\n```', "42", None),
        ("THOUGHT: x\n\n```bash\nls -l\n```", "bash(ls -l)", "<returncode>0</returncode>"),
    ],
)
def test_action_of_a_react_agent_is_read_from_its_text(text, action, observed):
    messages = [user("go"), assistant(text), user(observed or "Next?"), assistant("done")]
    found = one({"messages": messages, "reward": 1})
    assert actions(found) == [action, "done"]
    last = found.episode.steps[-1].state.splitlines()
    assert (last[-2].startswith("tool "), "user:" in last) == (observed is not None, observed is None)
    live = list(conversation_items([Message(each["role"], each["content"]) for each in messages]))
    assert [readable_action(turn.actions[0]) for turn in live[1::2]] == [action, "done"]
    assert live[2].speaker == ("user" if observed is None else last[-2][:-1])


@pytest.mark.parametrize(
    "text",
    [
        "I thought of an Action: none.",
        "Thought: x\nAction: a\nObservation: b",
        "Thought: x\nAction: a\nAction: b",
        "Thought: x\nAction: a\nb",
        "Action: say hi",
        "Thought: x\nAction: {broken",
        "THOUGHT: x\n```bash\nls\n```\nor\n```bash\npwd\n```",
    ],
)
def test_text_with_another_form_stays_a_text(text):
    assert react_turn(text) is None


def test_log_with_nan_is_read_where_its_program_writes_it():
    log = {**samples.INSPECT, "results": {"scores": [{"metrics": {"stderr": {"value": float("nan")}}}]}}
    found = one(log)
    assert (found.rewarded, found.skipped["NaN and infinities read as null"]) == (True, 1)
    unscored = one({**samples.INSPECT_SAMPLE, "scores": {"match": {"value": float("nan")}}})
    assert not unscored.rewarded
    [refusal] = read({"messages": [user("go"), assistant("done")], "reward": float("nan")})
    assert "NaN is not JSON" in str(refusal)


def test_error_of_a_tool_in_an_inspect_log_is_its_result():
    tool = {"role": "tool", "content": "", "function": "f", "error": {"type": "timeout", "message": "Too slow"}}
    found = one({**samples.INSPECT_SAMPLE, "messages": [user("go"), assistant("a"), tool, assistant("b")]})
    assert found.episode.steps[-1].state.endswith("tool f:\nToo slow")


def claude_session(*texts, **fields):
    events = [claude("user", str(n), str(n - 1), text) for n, text in enumerate(texts)]
    return [*events, {**claude("assistant", "a", str(len(texts) - 1), [{"type": "text", "text": "Done."}]), **fields}]


CLEAR = "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
FIX = "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>12</command-args>"
OUTPUT = "<local-command-stdout></local-command-stdout>"


@pytest.mark.parametrize(
    ("texts", "task", "n_skipped"),
    [
        ([CLEAR, OUTPUT, "Fix the bug"], "Fix the bug", 2),
        ([FIX], "/fix 12", 0),
        (["<bash-input>ls</bash-input>", "Fix it"], "Fix it", 0),
    ],
)
def test_commands_of_a_claude_session_are_no_goal(texts, task, n_skipped):
    found = one(*claude_session(*texts))
    assert found.episode.task == task
    assert found.skipped.get("messages of the program", 0) == n_skipped


def test_events_of_any_kind_belong_to_their_claude_session():
    others = [{"type": "some-new-event", "sessionId": "s-1"}, {"type": "cost-state", "totalCostUSD": 1.0}]
    found = one(*others, *claude_session("Fix it"))
    assert (found.episode.task, found.skipped) == ("Fix it", {"events some-new-event": 1})


def test_forked_codex_session_is_one_episode():
    parent, *events = samples.CODEX
    child = codex("session_meta", id="child", forked_from_id=parent["payload"]["id"])
    found = one(child, parent, *events, codex("world_state", full=True))
    assert found.episode.id == "codex:child"
    assert found.episode.steps == one(*samples.CODEX).episode.steps
    assert found.skipped["events world_state"] == 1


def test_spans_with_unknown_operations_and_events_are_read():
    spans = [
        samples.span("b0", 1, {"gen_ai.operation.name": "execute_event_loop_cycle"}),
        {**samples.PROMPTS, "events": [{"name": "gen_ai.some.event", "timeUnixNano": "1"}]},
    ]
    found = one({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    assert (actions(found), found.skipped) == (['clock(city="Rome")'], {"spans without a message": 1})


def test_row_of_a_table_of_phoenix_is_read_as_its_span():
    span = samples.OPENINFERENCE
    row = {
        **{key: value for key, value in span.items() if key not in ("context", "attributes")},
        **{f"context.{key}": value for key, value in span["context"].items()},
        "attributes.openinference.span.kind": "LLM",
        "attributes.llm.model_name": "gpt-x",
        "attributes.llm.input_messages": [{"message.role": "user", "message.content": "Time in Rome?"}],
        "attributes.llm.output_messages": [
            {
                "message.role": "assistant",
                "message.tool_calls": [
                    {
                        "tool_call.id": "k",
                        "tool_call.function.name": "clock",
                        "tool_call.function.arguments": '{"city": "Rome"}',
                    }
                ],
            }
        ],
    }
    assert one(row).episode == one(span).episode


LANGFUSE_ROWS = {
    "a trace in a table": {"id": "t", "timestamp": "2026-01-02T10:00:00Z", "tags": [], "quality": [0.5]},
    "scores by name": {"id": "t", "htmlPath": "/t", "observations": [], "scores": {"quality": [0.25, 0.5]}},
    "an observation in a table": {"id": "o", "traceId": "t", "type": "GENERATION", "quality": [0.5]},
    "an observation in a blob storage": {
        "id": "o",
        "trace_id": "t",
        "type": "GENERATION",
        "start_time": "2026-01-02 10:00:00.000",
        "quality": [0.5],
    },
}


@pytest.mark.parametrize("row", LANGFUSE_ROWS.values(), ids=LANGFUSE_ROWS)
def test_row_of_a_langfuse_export_is_read(row):
    row = {**row, "input": [user("go")], "output": json.dumps(assistant("done"))}
    found = one(row, **({} if "scores" in row else {"reward": "quality.0"}))
    assert (found.format, actions(found), found.rewarded) == ("langfuse", ["done"], True)
    assert (found.episode.id, found.episode.steps[-1].reward) == ("langfuse:t", 0.5)


def test_object_of_runs_by_name_is_these_runs():
    runs = {"a": {"messages": [user("A"), assistant("x")]}, "b": {"messages": [user("B"), assistant("y")]}}
    assert [found.episode.task for found in read(runs)] == ["A", "B"]
    [sides] = read({"input": runs["a"], "output": runs["b"]})
    assert isinstance(sides, Refusal)


@pytest.mark.parametrize("name", ["{}.json", "event-{:05}-3f2a.json"])
def test_files_of_one_event_each_are_one_run(tmp_path, name):
    folder = tmp_path / "events"
    folder.mkdir()
    events = samples.OPENHANDS["history"][1:2]
    for number in range(1, 12):
        args = {"path": f"f{number}", "thought": ""}
        events += [
            samples.event(2 * number, "agent", action="read", args=args),
            samples.event(2 * number + 1, "agent", observation="read", content="x", extras={}, cause=2 * number),
        ]
    for number, event in enumerate(events):
        (folder / name.format(number)).write_text(json.dumps(event, indent=number % 2 or None))
    (tmp_path / "metadata.json").write_text("{}")
    files, _ = trace_files([str(tmp_path)])
    assert [file.name for file in files] == [str(folder), str(tmp_path / "metadata.json")]
    [found] = read_episodes("auto", files[0].lines())
    assert actions(found) == [f'read(path="f{number}")' for number in range(1, 12)]


def test_event_of_many_lines_is_no_longer_than_a_line_may_be(tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "1.json").write_text('{"id": 1}')
    (folder / "2.json").write_bytes(gzip.compress(b'"x"\n' * 1000))
    (folder / "3.json").write_text("{\n}" + "\n" * 6)
    [file], _ = trace_files([str(tmp_path)], max_line_bytes=9)
    assert [getattr(line, "data", None) or line.reason for line in file.lines()] == [
        b'{"id": 1}',
        "2.json: longer than 9 bytes",
        b"{ }     ",
    ]


def test_sample_of_an_archive_with_blocks_of_anthropic_keeps_its_score(tmp_path):
    header = {key: value for key, value in samples.INSPECT.items() if key != "samples"}
    sample = {**samples.INSPECT_SAMPLE, "messages": [user("go"), assistant(INSPECT_USED)]}
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("samples/3_epoch_1.json", json.dumps(sample, indent=2))
    [file], _ = trace_files([str(tmp_path / "log.eval")])
    [found] = read_episodes("auto", file.lines())
    assert (found.format, found.episode.task, found.rewarded) == ("inspect", "sums/3", True)


@pytest.mark.parametrize("names", [{"task_id": 7}, {"metadata": {"instance_id": "7"}}, {"task": " ", "task_id": 7}])
def test_task_of_a_row_is_its_id(names):
    assert one({"messages": [user("go"), assistant("done")], **names}).episode.task == "7"


def test_results_of_parallel_calls_of_tau2_in_one_message_are_read_one_by_one():
    [simulation] = samples.TAU2["simulations"]
    joined = [
        {"role": "tool", "tool_messages": [message]} if message["role"] == "tool" else message
        for message in simulation["messages"]
    ]
    [expected] = read_episodes("auto", [json.dumps(samples.TAU2).encode()])
    nested = {**samples.TAU2, "simulations": [{**simulation, "messages": joined}]}
    [found] = read_episodes("auto", [json.dumps(nested).encode()])
    assert found == expected
    broken = {**samples.TAU2, "simulations": [{**simulation, "messages": [{"role": "tool", "tool_messages": "x"}]}]}
    [refusal] = read_episodes("auto", [json.dumps(broken).encode()])
    assert "results = 'x': results must be a list" in str(refusal)


def test_output_of_codex_is_refused_once_with_the_place_of_its_session():
    item = {"id": "item_1", "type": "command_execution", "command": "ls", "aggregated_output": "a", "exit_code": 0}
    stream = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": item},
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
    ]
    [refusal] = read(*stream)
    assert str(refusal) == (
        "line 1: codex: the output of `codex exec --json`: it has no messages of the user. "
        "Import the session: ~/.codex/sessions."
    )
    _, session = read(*stream, *samples.DOCUMENTS["codex"])
    assert not isinstance(session, Refusal)
