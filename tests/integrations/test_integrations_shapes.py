"""Shapes of chats beside those of OpenAI and Anthropic, each with a sample."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from seasoned import Memory
from seasoned.actions import ToolAction, call_action, canonical_tool_call, named_call
from seasoned.errors import EpisodeConflictError
from seasoned.integrations import Refusal, read_episodes
from seasoned.states import Redactor
from seasoned.types import normalize_action

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
USER = {"role": "user", "content": "go"}
DONE = {"role": "assistant", "content": "done"}


def chat(call, result, *, key="messages"):
    return {key: [USER, call, result, DONE]}


SHAPES = {
    "Vercel AI SDK 4": chat(
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "f", "args": {"a": 1}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "f", "result": {"ok": 1}}]},
    ),
    "Vercel AI SDK 5": chat(
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {"a": 1}}],
        },
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "c", "output": {"type": "json", "value": {"ok": 1}}}],
        },
    ),
    "Vercel AI SDK, user interface": {
        "messages": [
            {"role": "user", "parts": [{"type": "text", "text": "go"}]},
            {
                "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    {
                        "type": "tool-f",
                        "toolCallId": "c",
                        "state": "output-available",
                        "input": {"a": 1},
                        "output": {"ok": 1},
                    },
                    {"type": "step-start"},
                    {"type": "text", "text": "done"},
                ],
            },
        ]
    },
    "Bedrock Converse": {
        "messages": [
            {"role": "user", "content": [{"text": "go"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {"a": 1}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"json": {"ok": 1}}]}}]},
            {"role": "assistant", "content": [{"text": "done"}]},
        ]
    },
    "Gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"ok": 1}}}]},
            {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "done"}]},
        ]
    },
    "calls as JSON text, result as an object": chat(
        {"role": "assistant", "content": None, "tool_calls": json.dumps([CALL])},
        {"role": "tool", "tool_call_id": "c", "content": {"ok": 1}},
    ),
    "a message that is null, a result of an environment": {
        "messages": [
            None,
            USER,
            {"role": "assistant", "tool_calls": [CALL]},
            None,
            {"role": "environment", "name": "f", "content": '{"ok":1}'},
            DONE,
        ]
    },
    "a result of ipython": chat(
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "ipython", "name": "f", "content": {"ok": 1}},
    ),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_shape_is_read_as_the_same_episode(shape):
    [found] = read_episodes("auto", [json.dumps({**shape, "reward": 1}).encode()])
    assert not isinstance(found, Refusal), found
    assert [step.action for step in found.episode.steps] == [canonical_tool_call('f({"a":1})'), "done"]
    assert found.episode.task == "go"
    assert 'tool f:\n{"ok":1}' in found.episode.steps[1].state
    assert found.episode.steps[1].reward == 1.0


def test_number_as_a_result_is_read():
    document = chat({"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c", "content": 7})
    [found] = read_episodes("auto", [json.dumps(document).encode()])
    assert found.episode.steps[1].state.endswith("tool f:\n7")


HISTORY = [USER, {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c", "content": "r"}]
RESPONSE = {"id": "y", "choices": [{"message": DONE, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "logged",
    [
        {"messages": HISTORY, "response": RESPONSE},
        {"messages": HISTORY, "response": "done"},
        {"messages": HISTORY, "output": DONE},
        {"request": {"messages": HISTORY}, "response": RESPONSE},
        {"custom_id": "q", "body": {"messages": HISTORY}, "response": {"status_code": 200, "body": RESPONSE}},
    ],
    ids=["messages and response", "text", "output", "request and response", "batch"],
)
def test_answer_of_a_logged_call_is_its_turn_and_has_the_reward(logged):
    [found] = read_episodes("auto", [json.dumps({"id": "x", **logged, "reward": 1}).encode()])
    assert [(step.action, step.reward) for step in found.episode.steps] == [("done", 1.0)]
    assert found.episode.steps[0].state.endswith("tool f:\nr")
    assert found.episode.id == "x"


def test_transcript_that_ends_with_its_response_is_no_logged_call():
    [found] = read_episodes("auto", [json.dumps({"messages": [*HISTORY, DONE], "response": "done"}).encode()])
    assert [step.action for step in found.episode.steps] == [canonical_tool_call('f({"a":1})'), "done"]


@pytest.mark.parametrize(
    ("fields", "file", "task"),
    [
        ({"instance_id": "lib-1"}, "x.traj", "lib-1"),
        ({"replay_config": json.dumps({"problem_statement": {"id": "lib-2"}})}, "x.traj", "lib-2"),
        ({}, "runs/lib__lib-3.traj", "lib__lib-3"),
        ({}, "all.jsonl", "Fix the issue."),
        ({}, None, "Fix the issue."),
    ],
)
def test_task_of_a_trajectory_is_never_the_name_of_the_environment(fields, file, task):
    document = {
        "environment": "swe_main",
        "trajectory": [{"action": "ls", "observation": "a.py"}],
        "history": [{"role": "user", "content": "Fix the issue."}],
    }
    [found] = read_episodes("auto", [json.dumps({**document, **fields}).encode()], file=file)
    assert found.episode.task == task


def calls(*arguments, name="Bash"):
    answers = [{"role": "assistant", "tool_calls": [{"name": name, "arguments": one}]} for one in arguments]
    [found] = read_episodes("auto", [json.dumps({"id": "x", "messages": [USER, *answers]}).encode()])
    return found.episode


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"command": "git branch -d old"}, {"command": "git branch -D old"}),
        ({"path": "/Src/A.py"}, {"path": "/src/a.py"}),
        ({"text": "a b"}, {"text": "a  b"}),
        ("git branch -d old", "git branch -D old"),
        ("git branch -D old", r"git branch -\u0044 old"),
    ],
)
def test_calls_with_different_arguments_have_different_keys(one, other):
    texts = [step.action for step in calls(one, other).steps]
    assert len({normalize_action(text) for text in texts}) == 2
    if isinstance(one, dict):
        for text, arguments in zip(texts, (one, other), strict=True):
            live = named_call(ToolAction("Bash", arguments).text)
            assert (named_call(text).key, named_call(text).arguments) == (live.key, live.arguments)


def test_run_stored_with_unescaped_calls_is_not_stored_again():
    episode = calls({"command": "echo  \U00010400 A\tß"}, 'echo "B"')
    earlier = ['Bash({"command":"echo  \U00010400 A\\tß"})', 'Bash(echo "B")']
    stored = replace(episode, steps=[replace(s, action=a) for s, a in zip(episode.steps, earlier, strict=True)])
    with Memory.open(":memory:") as memory:
        assert memory.import_episodes([(stored, None)]) == 1
        assert memory.import_episodes([(episode, None)]) == 0
        with pytest.raises(EpisodeConflictError):
            memory.import_episodes([(calls({"command": "echo  \U00010400 a\tß"}, 'echo "B"'), None)])


@pytest.mark.parametrize(
    "text", [call_action("Mail", {"to": "Ann@Example.com"}), ToolAction("Mail", {"to": "Ann@E.com"}).text]
)
def test_secret_in_escapes_is_redacted_and_the_call_stays_a_call(text):
    assert named_call(Redactor(["emails"])(text)).key == ToolAction("Mail", {"to": "[email]"}).text


def test_run_of_mini_swe_agent_at_its_limit_is_truncated():
    for status, ending in (("LimitsExceeded", "truncated"), ("Submitted", "terminated")):
        document = {"info": {"exit_status": status}, "messages": [USER, DONE]}
        [found] = read_episodes("auto", [json.dumps(document).encode()])
        assert found.episode.ending == ending


def test_evaluation_picks_a_key_of_a_score():
    sample = {"id": 3, "epoch": 1, "target": "", "messages": [USER, DONE], "scores": {"m": {"value": {"a": 1, "b": 0}}}}
    document = json.dumps({"version": 2, "eval": {"task": "t"}, "samples": [sample]}).encode()
    for name, reward in (("a", 1.0), ("m.b", 0.0)):
        [found] = read_episodes("auto", [document], evaluation=name)
        assert (found.rewarded, found.episode.steps[-1].reward) == (True, reward)
    [refusal] = read_episodes("auto", [document])
    assert "--evaluation" in str(refusal)


def test_responses_items_under_a_path_are_messages():
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "f", "arguments": '{"a": 1}', "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "3"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]
    line = json.dumps({"run": {"items": items}, "won": True}).encode()
    [read] = read_episodes("auto", [line], messages="run.items", reward="won")
    steps = read.episode.steps
    assert [named_call(step.action).key for step in steps] == [named_call('f({"a": 1})').key, "done"]
    assert ([step.reward for step in steps], read.skipped) == ([0.0, 1.0], {"thoughts": 1})
    assert steps[1].state.endswith("tool f:\n3")
