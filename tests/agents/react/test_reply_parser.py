"""The reply parser: accepted forms of an action, refused replies, and no guesses."""

from __future__ import annotations

import pytest

from seasoned.actions import canonical_tool_call
from seasoned.agents.react.reply_parser import read_reasoning, read_reply
from seasoned.errors import ModelAnswerError
from seasoned.protocols import Completion, ToolCall, Usage

ROOMS = ("go north", "open fridge", "click('a1', button='left')")


def answer(text, *calls, finish="stop"):
    return Completion(text, "m", Usage(), finish, (), tuple(ToolCall(*call) for call in calls))


AMONG = [
    ("go north", "go north"),
    ("Go  North", "go north"),
    ("- go north", "go north"),
    ("2) 'open fridge'.", "open fridge"),
    ("Action: open fridge", "open fridge"),
    ("**Action:** open fridge", "open fridge"),
    ("Action: **open fridge**", "open fridge"),
    ("**open fridge**", "open fridge"),
    ("1. **open fridge**.", "open fridge"),
    ("**Action: open fridge.**", "open fridge"),
    ("**Action: open fridge**.", "open fridge"),
    ("> ACTION : `open fridge`", "open fridge"),
    ("Thought: hungry.\nAction: open fridge\nObservation: food\nAction: go north", "open fridge"),
    ("```\ngo north\n```", "go north"),
    ("Action:\n```text\ngo north\n```\nand then", "go north"),
    ("Action:\n\n  go north", "go north"),
    ("Action: Click( 'a1',button = 'left' )", "click('a1', button='left')"),
    ("<think>\nAction: open fridge\nNo, wrong.\n</think>\nAction: go north", "go north"),
    ("<think>open fridge?</think>\n<Thinking>\nAction: open fridge</Thinking>\n\ngo north", "go north"),
    ("Action: open fridge\nNo, wrong.\n</think>\n\ngo north", "go north"),  # the prompt ended with <think>
    ("Action: go north\n<think>\nOr the fridge?\n</think>\nAction: open fridge", "go north"),
    ("<think>\nAction: open fridge\n", None),
    ("<think>\nAction: open fridge\n</think>\n<think>\nAction: go north", None),
    ("Action: click(button='left', 'a1')", None),
    ("go", None),
    ("go north and open fridge", None),
    ("I would go north", None),
    ("Action: fly", None),
    ("Action:", None),
    ("", None),
    ("I cannot help with that.", None),
]


@pytest.mark.parametrize(("text", "action"), AMONG, ids=[text for text, _ in AMONG])
def test_reply_matches_an_admissible_action_or_is_refused(text, action):
    if action is None:
        with pytest.raises(ModelAnswerError) as error:
            read_reply(answer(text), ROOMS)
        assert error.value.next_step
    else:
        assert read_reply(answer(text), ROOMS).action == action


FREE = [
    ("ls -la", False, "ls -la"),
    ("`ls -la`", False, "ls -la"),
    ("<think>rm?</think>ls", False, "ls"),
    ("echo '</think>'", False, "echo '</think>'"),
    ("<think>\nls", False, None),
    ("```sh\ncd /tmp\nls\n```", False, "cd /tmp\nls"),
    ("cd /tmp\nls", False, "cd /tmp\nls"),
    ("Action: ls *", True, "ls *"),
    ("**Action: ls**", True, "ls"),
    ("Thought: all.\n**Action:** ls **", True, "ls **"),
    ("**Action:\n```\nls **\n```", True, "ls **"),
    ("Thought: look.\nAction: echo 'a b'\nObservation: a b", True, "echo 'a b'"),
    ("Look first.\nAction:\n```sh\ncat <<E\nAction: x\nE\n```", True, "cat <<E\nAction: x\nE"),
    ("Let me look.", True, None),
    ("Action: ```sh\nrm -rf /tmp/x", True, None),
    ("```sh\nrm -rf /tmp/x", False, None),
    ("Action: ``", True, "``"),
]


@pytest.mark.parametrize(("text", "reasons", "action"), FREE, ids=[text for text, _, _ in FREE])
def test_free_text_action_is_complete_or_refused(text, reasons, action):
    if action is None:
        with pytest.raises(ModelAnswerError):
            read_reply(answer(text), None, reasons=reasons)
    else:
        assert read_reply(answer(text), None, reasons=reasons).action == action


@pytest.mark.parametrize("text", ["Action: rm -rf /", "rm -rf /"])
def test_cut_off_action_is_refused(text):
    with pytest.raises(ModelAnswerError, match="whole"):
        read_reply(answer(text, finish="length"), None)
    assert read_reply(answer("Action: ls\nObservation: a b", finish="length"), None).action == "ls"
    assert read_reply(answer("Action: go north", finish="length"), ROOMS).action == "go north"


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        ("Thought: hungry.\nAction: open fridge", "hungry."),
        ("I am hungry.\n\nSo:\nAction: open fridge", "I am hungry.\n\nSo:"),
        ("<think>\nThought: north?\nAction: go north\n</think>\nThought: hungry.\nAction: open fridge", "hungry."),
        ("Action: open fridge", ""),
        ("open fridge", ""),
    ],
)
def test_reasoning_is_the_text_before_the_action(text, reasoning):
    assert read_reply(answer(text), ROOMS, reasons=True).reasoning == reasoning


def test_reasoning_call_drops_an_action():
    assert read_reasoning(answer("Thought: north is the kitchen.\nAction: go north")) == "north is the kitchen."
    assert read_reasoning(answer("Plan: 1. north\n2. eat")) == "1. north\n2. eat"
    assert read_reasoning(answer("<think>\nWest?\nAction: west\n</think>\nPlan: east")) == "east"
    for empty in ("", "  ", "Action: go north", "Thought: ", "<think>\nWest", "<think>West</think>"):
        with pytest.raises(ModelAnswerError):
            read_reasoning(answer(empty))


GO = ("c1", "go", '{"to": "B", "fast": true}')


def test_a_tool_call_becomes_its_canonical_text():
    text = '{"name": "go", "arguments": {"fast": true, "to": "B"}}'
    reply = read_reply(answer("To B.", GO), None, tools=("go",), reasons=True)
    assert (reply.action, reply.reasoning) == (canonical_tool_call(text), "To B.")
    assert read_reply(answer("<think>A?</think>To B.", GO), None, tools=("go",), reasons=True) == reply
    assert read_reply(answer("<think>A?", GO), None, tools=("go",), reasons=True).action == reply.action
    assert read_reply(answer("", GO, GO), None, tools=("go",)).action == reply.action  # an entry that repeats itself
    assert read_reply(answer("", GO), (text, "wait"), tools=("go",)).action == text  # in the environment's spelling


@pytest.mark.parametrize(
    ("calls", "rule"),
    [
        ((), "one tool call"),
        ((GO, ("c2", "go", '{"to": "C"}')), "one tool call"),
        ((("c1", "rm_rf", '{"to": "B"}'),), "the tools are go"),
        ((("c1", "go", "{to: B}"),), "JSON"),
        ((("c1", "go", '["B"]'),), "object"),
        ((("c1", "go", '{"to": "B", "to": "C"}'),), "once"),
    ],
)
def test_reply_without_a_tool_call_is_refused(calls, rule):
    with pytest.raises(ModelAnswerError, match=rule):
        read_reply(answer("Action: go north", *calls), None, tools=("go",))


def test_two_cities_that_differ_in_case_are_two_calls():
    """The memory's key ignores case; the canonical text of a tool call keeps case distinct."""
    with pytest.raises(ModelAnswerError, match="one of"):
        read_reply(
            answer("", ("c1", "go", '{"to": "b"}')), ('{"name": "go", "arguments": {"to": "B"}}',), tools=("go",)
        )
