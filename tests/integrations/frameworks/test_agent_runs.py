"""Runs of agents that their framework does not end, and calls of frameworks in the form of an API."""

from __future__ import annotations

import pytest

from seasoned import Memory
from seasoned.errors import InputError, NotFoundError
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.frameworks import AgentCalls
from seasoned.integrations.frameworks.agent_runs import AgentRuns, runs_of

ASKED = {"model": "m", "messages": [{"role": "user", "content": "pool exhausted"}], "tools": []}


def answer(calls, run_id, *, id_="r1", text="Restarted."):
    call = calls.begin(ChatWire(), lambda: ASKED, run_id)
    message = {"role": "assistant", "content": text}
    call.finish(lambda: {"id": id_, "choices": [{"message": message, "finish_reason": "stop"}]})


def endings(memory):
    for recorder in memory.session.recorders:
        recorder.settle()
    return {one.id: one.ending for one in memory.episodes()}


def test_run_goes_on_after_an_answer_without_calls(memory):
    calls = AgentCalls(memory, "mine")
    answer(calls, "run-1", text="Which pool?")
    answer(calls, "run-1", id_="r2")
    assert endings(memory) == {}
    calls.end("run-1", "terminated")
    assert endings(memory) == {"run-1": "terminated"}


@pytest.mark.parametrize("named", ["run-1", "r1"])
def test_feedback_ends_a_run(named, memory):
    answer(AgentCalls(memory, "mine"), "run-1")
    memory.feedback(named, reward=1.0)
    assert endings(memory) == {"run-1": "terminated"}
    with pytest.raises(NotFoundError):
        memory.feedback("run-2", reward=1.0)


def test_error_that_left_a_run_aborts_it_unless_a_call_follows(memory):
    calls = AgentCalls(memory, "mine")
    for run_id in ("left", "caught"):
        answer(calls, run_id, id_=run_id[0])
        calls.fail(run_id)
    answer(calls, "caught", id_="c2")
    for run_id in ("left", "caught", "unknown"):
        calls.end(run_id, "terminated")
    assert endings(memory) == {"left": "aborted", "caught": "terminated"}


def test_runs_without_an_end_are_truncated_when_the_memory_is_closed(tmp_path):
    with Memory.open(tmp_path / "agent.db") as memory:
        calls = AgentCalls(memory, "mine")
        answer(calls, "run-1")
        answer(calls, "run-2")
        calls.fail("run-2")
    with Memory.open(tmp_path / "agent.db") as memory:
        assert endings(memory) == {"run-1": "truncated", "run-2": "aborted"}


@pytest.mark.parametrize("limit", [{"idle_s": 0.0}, {"most_running": 1}], ids=["idle", "many"])
def test_runs_that_wait_too_long_or_are_too_many_end(limit, memory):
    calls = AgentCalls(memory, "mine")
    own = calls._settings
    calls._runs = AgentRuns(memory, own.recorder, **limit)
    answer(calls, "run-1")
    answer(calls, "run-2", id_="r2")
    assert endings(memory) == {"run-1": "truncated"}


def test_run_with_the_id_of_a_stored_one_is_stored_beside_it(memory):
    calls = AgentCalls(memory, "mine")
    for text in ("Restarted.", "Rolled back."):
        answer(calls, "run-1", text=text, id_=text)
        calls.end("run-1", "terminated")
        endings(memory)
    assert endings(memory) == {"run-1": "terminated", "run-1~2": "terminated"}


def test_frameworks_of_one_memory_share_their_runs(memory):
    one, other = AgentCalls(memory, "mine"), AgentCalls(memory, "yours")
    assert one._runs is other._runs is runs_of(memory, one._settings.recorder)


def test_request_that_cannot_be_read_is_logged_and_makes_no_call(memory, caplog):
    def broken():
        raise InputError("a message", "it has a role", "Give it one.")

    calls = AgentCalls(memory, "mine")
    assert calls.begin(ChatWire(), broken, "run-1") is None
    assert "Memory had no part in a call" in caplog.text
    with pytest.raises(InputError):
        AgentCalls(memory, "mine", on_error="raise").begin(ChatWire(), broken, "run-1")
