"""One scripted conversation through every agent framework that is installed: the stored episode is the same.

In the environment of development that is `seasoned.wrap` alone; `make test-frameworks` and `make test-litellm` have the
packages.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time

import pytest
from client_loops import imported
from model_server import MODEL, Answer
from players import (
    INSTALLED,
    INSTRUCTIONS,
    ChatAgentsPlayer,
    LangChainPlayer,
    LiteLLMPlayer,
    PydanticPlayer,
    ToolFailure,
    WrapPlayer,
)

import seasoned
from seasoned import Memory
from seasoned.actions import canonical_tool_call
from seasoned.errors import InputError, NotFoundError, StoreError
from seasoned.integrations.clients import CallHoldout

TICKET = "pool exhausted on checkout"
CALL, TEXT = Answer(calls=(("restart", {"service": "Checkout"}),)), Answer("Restarted; it is quiet again.")
SCRIPT = (
    Answer("First the pool.", calls=(("restart", {"service": "Checkout"}),)),
    Answer(calls=(("rollback", {"service": "api"}), ("restart", {"service": "api"}))),
    TEXT,
)
SAID = [
    {"role": "system", "content": INSTRUCTIONS},
    {"role": "user", "content": TICKET},
    {"role": "assistant", "content": "First the pool.", "tool_calls": [("restart", "Checkout", "c1")]},
    {"role": "tool", "tool_call_id": "c1", "content": "Checkout: ok"},
    {"role": "assistant", "content": None, "tool_calls": [("rollback", "api", "c2"), ("restart", "api", "c3")]},
    {"role": "tool", "tool_call_id": "c2", "content": "api: rolled back"},
    {"role": "tool", "tool_call_id": "c3", "content": "api: ok"},
    {"role": "assistant", "content": TEXT.text},
]
BROKEN = canonical_tool_call({"name": "rollback", "arguments": {"service": "broken"}})
RULES = """
[[rule]]
name = "rolled-back"
reads = "text"
pattern = "rolled back"
reward = -0.25
"""
WAYS = [pytest.param(one, way, id=f"{one.name}-{way}") for one in INSTALLED for way in one.ways]
EACH = [pytest.param(one, id=one.name) for one in INSTALLED]
ASYNC = [pytest.param(one, id=one.name) for one in INSTALLED if "async" in one.ways]


class Restarts:
    """The model restarts, and says so when it has the result."""

    def for_body(self, body):
        last = (body.get("messages") or body["input"])[-1]
        return TEXT if last.get("role") == "tool" or last.get("type") == "function_call_output" else CALL


def expected():
    """The episode of the conversation, as `seasoned memory import` reads it."""

    def call(name, service, id_):
        function = {"name": name, "arguments": json.dumps({"service": service})}
        return {"id": id_, "type": "function", "function": function}

    said = [
        {**one, "tool_calls": [call(*each) for each in one["tool_calls"]]} if "tool_calls" in one else one
        for one in SAID
    ]
    return imported(said)


def stored(memory):
    for recorder in memory.session.recorders:
        recorder.settle()
    return memory.episodes()


def with_block(server):
    return ["[records of earlier episodes]" in json.dumps(body) for body in server.bodies()]


def teach(memory, server):
    """Store one judged episode, by the wrapped client."""
    server.script = [CALL, TEXT]
    memory.feedback(WrapPlayer(memory, server, task="oncall").run(TICKET).id, reward=1.0)
    server.requests.clear()


@pytest.mark.parametrize(("player", "way"), WAYS)
def test_stored_episode_is_that_of_the_conversation(player, way, server, memory, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES, encoding="utf-8")
    server.script = list(SCRIPT)
    played = player(memory, server, rewards=rules, on_error="raise").run(TICKET, way)
    memory.feedback(played.id, reward=1.0)
    [episode] = stored(memory)
    read = expected()
    assert played.answer == TEXT.text
    assert [(step.state, step.action) for step in episode.steps] == [(step.state, step.action) for step in read.steps]
    assert (episode.task, episode.ending, episode.model) == (TICKET, "terminated", MODEL)
    assert sorted((event.step, event.reward) for event in memory.events()) == [(1, -0.25), (3, 1.0)]


@pytest.mark.parametrize(("player", "way"), WAYS)
def test_block_is_at_the_end_of_the_last_message_and_is_not_stored(player, way, server, memory):
    teach(memory, server)
    server.script = [CALL, TEXT]
    player(memory, server, mode="examples", task="oncall", timeout_s=30.0, on_error="raise").run(TICKET, way)
    can_change = not (player is LiteLLMPlayer and way == "sync")  # it has no hook for that
    assert with_block(server) == [can_change] * 2
    for body in server.bodies():
        *earlier, last = body.get("messages") or body["input"]
        assert "[records of earlier episodes]" not in json.dumps(earlier)
        assert can_change == ("[end of records]" in json.dumps(last)[-120:])
    first, second = stored(memory)
    assert [(step.state, step.action) for step in second.steps] == [(step.state, step.action) for step in first.steps]
    assert len(memory.notes(kind="shown")) == (2 if can_change else 0)


@pytest.mark.parametrize("player", EACH)
def test_feedback_finds_the_run_and_no_other(player, server, memory):
    server.script = Restarts()
    one = player(memory, server, on_error="raise")
    first, second = one.run(TICKET), one.run("alert: another one")
    assert [found.experience.episode_id for found in memory.search(TICKET)] == []
    memory.feedback(second.id, reward=-1.0)
    [event] = memory.events()
    assert memory.get(event.episode_id).task == "alert: another one"
    assert {found.experience.episode_id for found in memory.search(TICKET)} == {event.episode_id}
    memory.feedback(first.id, reward=1.0)
    with pytest.raises(NotFoundError, match="no-such-run"):
        memory.feedback("no-such-run", reward=1.0)


@pytest.mark.parametrize("player", EACH)
def test_control_episodes_get_no_memory_and_are_compared(player, server, memory):
    teach(memory, server)
    server.script = Restarts()
    arms = {"mode": "examples", "holdout": CallHoldout(), "task": "oncall", "timeout_s": 30.0, "on_error": "raise"}
    one = player(memory, server, **arms)
    way = "async" if player is LiteLLMPlayer else "sync"
    n = 10
    for _ in range(n):
        memory.feedback(one.run(TICKET, way).id, reward=1.0)
    blocks = with_block(server)
    episodes = [episode for episode in stored(memory) if episode.steps][1:]
    assert [one.arm for one in episodes] == ["treated" if block else "control" for block in blocks[::2]]
    assert blocks[::2] == blocks[1::2] and {one.arm for one in episodes} == {"treated", "control"}
    lift = memory.lift("oncall")
    assert lift.n_treated + lift.n_control == n


def until_it_answers(memory):
    """Wait until the memory takes calls again."""
    ends_at = time.monotonic() + 20.0
    while True:
        try:
            memory.stats()
        except StoreError:
            assert time.monotonic() < ends_at
            time.sleep(0.02)
        else:
            return


@pytest.mark.parametrize("player", EACH)
def test_failing_memory_does_not_reach_the_agent(player, server, tmp_path):
    server.script = Restarts()
    with Memory.open(tmp_path / "agent.db", timeout_s=0.15) as memory:
        one = player(memory, server, mode="examples", holdout=True, timeout_s=0.15)
        with contextlib.closing(sqlite3.connect(tmp_path / "agent.db", timeout=0.01)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert one.run(TICKET).answer == TEXT.text
            other.rollback()
        until_it_answers(memory)  # an episode that still waits at the close is lost, and the log says so
    with Memory.open(tmp_path / "agent.db") as memory:
        [episode] = memory.episodes()
        assert len(episode.steps) == 2 and episode.arm is None


@pytest.mark.parametrize("player", EACH)
def test_tool_that_raises_leaves_an_episode_that_is_no_evidence(player, server, memory):
    server.script = [Answer(calls=(("rollback", {"service": "broken"}),))]
    one = player(memory, server, awaits_feedback=False, on_error="raise")
    with pytest.raises(Exception, match="no earlier version"), seasoned.episode():
        one.run(TICKET)
    server.script = Restarts()
    one.run("alert: the next one")
    broken, _ = stored(memory)
    assert [step.action for step in broken.steps] == [
        canonical_tool_call({"name": "rollback", "arguments": {"service": "broken"}})
    ]
    assert broken.ending == "aborted" and {e.experience.episode_id for e in memory.search(TICKET)}.isdisjoint(
        {broken.id}
    )


@pytest.mark.parametrize("player", [one for one in INSTALLED if one in (LangChainPlayer, PydanticPlayer)])
def test_run_that_an_error_left_is_aborted(player, server, tmp_path):
    server.script = [Answer(calls=(("rollback", {"service": "broken"}),))]
    with Memory.open(tmp_path / "agent.db") as memory, pytest.raises(ToolFailure):
        player(memory, server, on_error="raise").run(TICKET)
    with Memory.open(tmp_path / "agent.db") as memory:
        [episode] = memory.episodes()
        assert (episode.ending, len(episode.steps)) == ("aborted", 1)


@pytest.mark.parametrize("player", ASYNC)
def test_stream_that_breaks_off_is_no_call_and_the_next_run_is_whole(player, server, memory):
    server.script = [Answer("A long answer that never ends.", break_after=700)]
    one = player(memory, server, on_error="raise")
    with contextlib.suppress(Exception):
        one.run(TICKET, "stream")
    server.script = Restarts()
    played = one.run("alert: the next one", "stream")
    memory.feedback(played.id, reward=1.0)
    whole = memory.get(memory.events()[0].episode_id)
    assert (whole.task, len(whole.steps), whole.ending) == ("alert: the next one", 2, "terminated")
    assert all(one.ending != "terminated" for one in stored(memory) if one.id != whole.id)


@pytest.mark.parametrize("player", ASYNC)
def test_concurrent_runs_of_one_ticket_are_episodes_of_their_own(player, server, memory):
    server.script = Restarts()
    one = player(memory, server, mode="examples", timeout_s=30.0, on_error="raise")
    n = 6

    async def all_at_once():
        return await asyncio.gather(*(one.play(TICKET, "async") for _ in range(n)))

    played = asyncio.run(all_at_once())
    for run in played:
        memory.feedback(run.id, reward=1.0)
    episodes = stored(memory)
    assert len({run.id for run in played}) == n == len(episodes)
    assert [len(episode.steps) for episode in episodes] == [2] * n
    assert {event.episode_id for event in memory.events()} == {episode.id for episode in episodes}


@pytest.mark.parametrize("player", [one for one in EACH if one.values[0] is not LiteLLMPlayer])
def test_request_that_is_refused_with_a_block_is_sent_without(player, server, memory):
    teach(memory, server)
    server.script = [Answer(status=400), CALL, TEXT]
    way = "async" if "async" in player.ways else "sync"
    one = player(memory, server, mode="examples", task="oncall", timeout_s=30.0, on_error="raise")
    assert one.run(TICKET, way).answer == TEXT.text
    assert with_block(server) == [True, False, True]
    assert len(stored(memory)[1].steps) == 2 and len(memory.notes(kind="shown")) == 1


@pytest.mark.parametrize("player", [one for one in EACH if one.values[0] is not ChatAgentsPlayer])  # it has its own
def test_calls_inside_a_block_are_one_episode(player, server, memory):
    server.script = Restarts()
    one = player(memory, server, on_error="raise")
    with seasoned.episode(task="shift", subject="ann", id="shift-1") as running:
        one.run(TICKET)
        one.run("alert: another one")
        running.feedback(reward=0.5)
    episode = memory.get("shift-1")
    assert (episode.task, episode.subject, len(episode.steps)) == ("shift", "ann", 4)
    assert [event.reward for event in memory.events()] == [0.5]


@pytest.mark.parametrize("player", [one for one in EACH if one.values[0] is not WrapPlayer])
def test_modes_that_ask_the_model_more_often_are_refused(player, server, memory):
    with pytest.raises(InputError, match="wrap\\(client"):
        one = player(memory, server, mode="votes")
        one.run(TICKET)


@pytest.mark.parametrize("player", EACH)
def test_gateway_stores_the_episode_that_the_integration_stores(player, server, memory, tmp_path):
    """The address of the framework is the gateway's: `docs/how-to/base-urls.md`."""
    gateways = pytest.importorskip("running_gateway", reason="needs the extra serve", exc_type=ImportError)
    server.script = list(SCRIPT)
    with gateways.gateway_of(server, tmp_path / "gateway.db") as gateway:
        player(memory, gateway, on_error="raise").run(TICKET)
    [episode], [behind] = stored(memory), gateways.episodes_of(tmp_path / "gateway.db")
    assert [(step.state, step.action) for step in behind.steps] == [(s.state, s.action) for s in episode.steps]
    assert (behind.task, behind.ending) == (episode.task, episode.ending)
