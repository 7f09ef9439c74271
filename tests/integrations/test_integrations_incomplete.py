"""Traces as programs leave them behind: fields that are missing or null, runs that began late or failed early."""

from __future__ import annotations

import copy
import json
import zipfile

import pytest
from trace_samples import ANTHROPIC, ATIF, CODEX, INSPECT, OPENHANDS, RESPONSES, SWE_AGENT, TAU2, TRAJ, claude

from seasoned.integrations import ReadEpisode, read_episodes
from seasoned.integrations.trace_files import open_lines


def read(*documents):
    [found] = read_episodes("auto", [json.dumps(document).encode() for document in documents])
    assert isinstance(found, ReadEpisode), found
    return found


def changed(sample, **fields):
    return {**copy.deepcopy(sample), **fields}


def test_a_message_of_inspect_that_is_null_is_counted():
    log = changed(INSPECT)
    log["samples"] = log["samples"][:1]
    expected = read(log)
    log["samples"][0]["messages"].insert(2, None)
    found = read(log)
    assert [step.action for step in found.episode.steps] == [step.action for step in expected.episode.steps]
    assert found.skipped["messages that are null"] == 1


@pytest.mark.parametrize("value", [[1, 0], {}])
def test_a_score_of_inspect_that_is_no_number_names_the_option(value):
    log = changed(INSPECT)
    log["samples"] = [changed(log["samples"][0], scores={"match": {"value": value}})]
    [refusal] = read_episodes("auto", [json.dumps(log).encode()])
    assert "--reward scores.NAME" in refusal.reason


@pytest.mark.parametrize("history", [{}, {"history": []}])
def test_a_trajectory_without_history_begins_with_its_first_query(history):
    sample = {name: value for name, value in SWE_AGENT.items() if name != "history"} | history
    steps = copy.deepcopy(sample["trajectory"])
    steps[0]["query"] = [{"role": "system", "content": "You fix."}, {"role": "user", "content": "It is broken."}]
    found = read({**sample, "trajectory": steps}).episode
    assert (found.steps[0].state, found.steps[0].action) == ("It is broken.", steps[0]["action"].strip())


def test_events_of_openhands_that_begin_with_the_agent_follow_the_instruction():
    event = {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}}
    found = read({"instance_id": "i", "instruction": "Fix it", "test_result": {}, "history": [event]}).episode
    assert [(step.state, step.action) for step in found.steps] == [
        ("Fix it", '{"arguments":{"command":"ls"},"name":"run"}')
    ]


def test_a_run_of_openhands_that_failed_before_its_first_event_is_aborted():
    found = read({"instance_id": "i", "instruction": "Fix it", "test_result": {}, "history": [], "error": "no image"})
    assert (found.format, found.episode.ending, found.episode.task) == ("openhands", "aborted", "i")


def test_a_claude_session_that_goes_on_from_an_earlier_one_begins_with_its_summary():
    said = claude("user", "u1", None, "We fixed the parser.", isCompactSummary=True)
    answer = claude("assistant", "a1", "u1", [{"type": "text", "text": "I test it."}])
    later = claude("user", "u2", "a1", "We tested it.", isCompactSummary=True)
    found = read(said, answer, later, claude("assistant", "a2", "u2", [{"type": "text", "text": "Done."}]))
    assert [step.action for step in found.episode.steps] == ["I test it.", "Done."]
    assert (found.episode.steps[0].state, found.skipped["summaries of earlier turns"]) == ("We fixed the parser.", 1)


def test_an_archive_of_inspect_without_a_header_has_the_task_of_its_journal(tmp_path):
    start = {"version": 2, "eval": INSPECT["eval"], "plan": INSPECT["plan"]}
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("_journal/start.json", json.dumps(start))
        archive.writestr("samples/3_epoch_1.json", json.dumps(INSPECT["samples"][0]))
    [found] = read_episodes("auto", open_lines(str(tmp_path / "log.eval")))
    assert (found.episode.task, found.rewarded) == ("sums/3", True)


def with_time(sample, field, value, *path):
    """Return the sample in which the last object at `path` has this time."""
    whole = copy.deepcopy(sample)
    inner = whole
    for key in path:
        inner = inner[key]
    inner[field] = value
    return whole


TIMED = {
    "anthropic": (ANTHROPIC, "created_at"),
    "atif": (ATIF, "timestamp", "steps", -1),
    "codex": (CODEX, "timestamp", -1),
    "inspect": (changed(INSPECT, samples=INSPECT["samples"][:1]), "completed_at", "samples", 0),
    "openai": (TRAJ, "created_at"),
    "openhands": (OPENHANDS, "timestamp", "history", -1),
    "responses": (RESPONSES, "created_at"),
    "tau2": (TAU2, "end_time", "simulations", 0),
}


@pytest.mark.parametrize("format_", TIMED)
@pytest.mark.parametrize("time", ["soon", "2026-13-45T10:00:00Z", {}, True, 1e40, "9" * 5000])
def test_an_episode_with_a_bad_time_loses_only_the_time(format_, time):
    sample, field, *path = TIMED[format_]
    documents = with_time(sample, field, time, *path)
    found = read(*(documents if isinstance(documents, list) else [documents]))
    good = with_time(sample, field, "2026-01-02T11:00:00Z", *path)
    expected = read(*(good if isinstance(good, list) else [good]))
    assert (found.format, found.skipped["times that cannot be read"]) == (format_, 1)
    assert (found.episode.steps, found.rewarded) == (expected.episode.steps, expected.rewarded)
    assert expected.created_at == 1767351600.0 != found.created_at


def test_a_session_has_the_last_time_that_can_be_read():
    asked, said = (
        claude("user", "u1", None, "hi"),
        claude("assistant", "a1", "u1", [{"type": "text", "text": "Hello."}]),
    )
    for bad in ("soon", 7.5e30):
        found = read(asked, changed(said, timestamp=bad))
        assert (found.created_at, found.skipped["times that cannot be read"]) == (read(asked, said).created_at, 1)


def test_a_session_that_begins_and_ends_with_the_agent_is_refused_as_such():
    said = claude("assistant", "a1", None, [{"type": "text", "text": "Hello."}])
    [refusal] = read_episodes("auto", [json.dumps(said).encode()])
    assert "turns of the agent without a message before them" in refusal.reason


@pytest.mark.parametrize("written", [json.dumps, repr])
def test_fields_of_tau2_that_are_texts_are_read(written):
    simulation = TAU2["simulations"][0]
    won = changed(simulation, reward_info={"reward": 1.0, "info": None})
    whole = read(won)
    for fields in (["reward_info"], ["messages", "reward_info"]):
        found = read(changed(won, **{name: written(won[name]) for name in fields}))
        assert (found.episode, found.rewarded, found.format) == (whole.episode, True, "tau2")
    assert not read(changed(simulation, reward_info=" ")).rewarded


CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}
FIND = '{"arguments":{"n":1},"name":"find"}'


@pytest.mark.parametrize("fields", [{}, {"tool_calls": []}, {"tool_calls": None}])
def test_calls_in_the_additional_fields_of_langchain_are_actions(fields):
    answer = {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [CALL]}, **fields}
    assert read({"messages": [{"role": "user", "content": "go"}, answer]}).episode.steps[0].action == FIND


@pytest.mark.parametrize("calls", ["tool_calls", "toolCalls"])
@pytest.mark.parametrize("name", ["name", "tool_name", "toolName", "function_name"])
@pytest.mark.parametrize("arguments", ["arguments", "args", "input", "parameters", "tool_input", "tool_args"])
def test_a_flat_call_has_its_arguments_under_any_usual_name(calls, name, arguments):
    answer = {"role": "assistant", "content": "I look.", calls: [{name: "find", arguments: {"n": 1}}]}
    assert read({"messages": [{"role": "user", "content": "go"}, answer]}).episode.steps[0].action == FIND


def test_calls_of_langchain_that_are_there_twice_are_made_once():
    called = [{"name": "find", "args": {"n": 1}, "id": "c", "type": "tool_call"}]
    answer = {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [CALL]}, "tool_calls": called}
    found = read({"messages": [{"role": "user", "content": "go"}, answer]}).episode
    assert [step.action for step in found.steps] == [FIND]


def test_an_output_of_langfuse_that_is_a_list_of_parts_is_one_message():
    called = {"type": "tool_use", "id": "c", "name": "find", "input": {"n": 1}}
    generation = {
        "id": "o",
        "type": "GENERATION",
        "startTime": "2026-01-02T10:00:00Z",
        "input": [{"role": "user", "content": "go"}],
        "output": [{"type": "text", "text": "I look."}, called],
    }
    trace = {"id": "t", "timestamp": "2026-01-02T10:00:00Z", "observations": [generation], "scores": []}
    assert read(trace).episode.steps[0].action == FIND


def test_nested_arguments_of_openinference_stay_an_object():
    called = {"tool_call": {"function": {"name": "find", "arguments": {"n": 1}}}}
    llm = {
        "input_messages": [{"message": {"role": "user", "content": "go"}}],
        "output_messages": [{"message": {"role": "assistant", "tool_calls": [called]}}],
    }
    span = {"context": {"trace_id": "t", "span_id": "s"}, "name": "LLM", "start_time": "2026-01-02T10:00:00Z"}
    found = read({**span, "attributes": {"openinference": {"span": {"kind": "LLM"}}, "llm": llm}})
    assert found.episode.steps[0].action == FIND
