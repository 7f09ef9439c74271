"""Wrapped clients: the real packages `openai` and `anthropic` against a local server with scripted answers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import json
import sqlite3
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner
from client_loops import ALERT, APIS, HAS_RESPONSES, RUN, Loop, bare_client, collected, imported, stored
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import MODEL, TOOLS, Answer, ModelServer

import seasoned
from seasoned import Episode, Memory, Step
from seasoned.actions import canonical_tool_call, named_call
from seasoned.cli.main import cli
from seasoned.errors import InputError, NotFoundError, SeasonedError, StoreError
from seasoned.integrations.clients.call_recorder import CallRecorder

openai = pytest.importorskip("openai")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", APIS)
def test_states_and_actions_are_those_of_an_import(api, stream, server, memory):
    server.script += RUN
    client = seasoned.wrap(bare_client(api, server), memory, on_error="raise")
    loop = Loop(client, api, stream)
    loop.run(ALERT)
    [episode] = stored(memory)
    expected = imported(loop.said)
    assert [(step.state, step.action) for step in episode.steps] == [(s.state, s.action) for s in expected.steps]
    assert (episode.task, episode.ending, episode.model) == (ALERT, "terminated", MODEL)
    assert len(episode.steps) == 2


@pytest.mark.parametrize("api", APIS)
def test_client_keeps_its_type_and_the_request_leaves_unchanged(api, server, memory):
    answers = []
    for client in (bare_client(api, server), seasoned.wrap(bare_client(api, server), memory)):
        server.script += [Answer("Hello.", zipped=True, headers={"x-ratelimit-remaining-requests": "7"})]
        loop = Loop(client, api)
        loop.user("Hi")
        answers.append(loop.create(**loop.request()).model_dump_json())
        assert type(client) is type(bare_client(api, server))
    (path, headers, raw), (path_too, headers_too, raw_too) = server.requests
    assert (path, raw) == (path_too, raw_too)
    assert headers == headers_too
    assert answers[0].replace("1", "2") == answers[1].replace("1", "2")


def test_feedback_by_response_id_judges_the_step_of_the_response(server, memory):
    server.script += RUN
    client = seasoned.wrap(bare_client("chat", server), memory)
    first, second = Loop(client, "chat").run(ALERT)
    memory.feedback(first, reward=-0.5)
    memory.feedback(second, reward=1.0)
    assert [(event.step, event.reward) for event in memory.events()] == [(0, -0.5), (1, 1.0)]


def test_episode_is_no_evidence_before_its_verdict(server, memory):
    server.script += RUN * 2
    client = seasoned.wrap(bare_client("chat", server), memory)
    first = Loop(client, "chat").run(ALERT)
    with seasoned.episode(awaits_feedback=False):
        Loop(client, "chat").run("alert: another one")
    waiting, counted = stored(memory)
    assert {one.experience.episode_id for one in memory.search(ALERT)} == {counted.id}
    memory.feedback(first[0], reward=-1.0)
    assert {one.experience.episode_id for one in memory.search(ALERT)} == {waiting.id, counted.id}


def test_repeated_response_id_names_the_latest_response(server, memory):
    client = seasoned.wrap(bare_client("chat", server), memory)
    for number in range(3):
        server.n_answers = 0
        server.script += [Answer("Hello.")]
        Loop(client, "chat").run(f"Hi {number}")
    memory.feedback("chatcmpl-1", reward=1.0)
    [event] = memory.events()
    assert memory.get(event.episode_id).task == "Hi 2"


def test_wrapping_again_replaces_the_memory(server, memory):
    server.script += [Answer("Hello.")]
    with Memory.open(":memory:") as other:
        client = seasoned.wrap(seasoned.wrap(bare_client("chat", server), memory), other)
        Loop(client, "chat").run("Hi")
        assert (len(stored(memory)), len(stored(other))) == (0, 1)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("streams", ["bare", "wrapped"])
def test_dropped_wrapped_client_leaves_the_streams_of_others_alone(streams, is_async, server, memory):
    """The stream is longer than what is read at once, so that it needs its connection after the drop."""
    text = "quiet " * 1000
    server.script += [Answer(text)]
    bare = bare_client("chat", server, is_async=is_async)
    client = bare if streams == "bare" else seasoned.wrap(bare, memory)
    request = {**text_request(Loop(client, "chat")), "stream": True}
    said = []

    def take(chunk):
        said.extend(choice.delta.content or "" for choice in chunk.choices)
        if len(said) == 2:
            seasoned.wrap(bare, memory)  # dropped at once
            gc.collect()

    async def read():
        async for chunk in await client.chat.completions.create(**request):
            take(chunk)

    if is_async:
        asyncio.run(read())
    else:
        for chunk in client.chat.completions.create(**request):
            take(chunk)
    assert "".join(said) == text


def test_late_feedback_finds_the_response_in_another_process(server, tmp_path):
    server.script += RUN
    with Memory.open(tmp_path / "agent.db") as memory:
        loop = Loop(seasoned.wrap(bare_client("chat", server), memory), "chat")
        with seasoned.episode(task="oncall", subject="customer-17"):
            ids = loop.run(ALERT)
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.feedback(ids[-1], reward=1.0)
        with pytest.raises(NotFoundError, match="chatcmpl-77"):
            memory.feedback("chatcmpl-77", reward=1.0)
        with pytest.raises(InputError, match="names its own step"):
            memory.feedback(ids[-1], reward=1.0, step=0)
        memory.erase("customer-17")
        with pytest.raises(NotFoundError):
            memory.feedback(ids[-1], reward=1.0)


def text_request(loop, text="Hi"):
    loop.user(text)
    return loop.request()


@pytest.mark.parametrize("api", APIS)
def test_examples_and_shown_steps(api, server, memory):
    good = Answer(calls=(("rollback", {"service": "a"}),))
    server.script += [good, Answer("Done."), good, Answer("Done.")]
    first = Loop(seasoned.wrap(bare_client(api, server), memory), api).run(ALERT)
    memory.feedback(first[0], reward=1.0)
    loop = Loop(seasoned.wrap(bare_client(api, server), memory, mode="examples"), api)
    loop.run(ALERT)
    plain, sent = server.bodies()[0], server.bodies()[2]
    key = "input" if api == "responses" else "messages"
    changed = json.dumps(sent[key][-1])
    assert "[records of earlier episodes]" in changed and "rollback" in changed
    assert {**sent, key: sent[key][:-1]} == {**plain, key: plain[key][:-1]}
    assert "[records" not in json.dumps(loop.said)
    one, two = stored(memory)
    assert [step.state for step in one.steps] == [step.state for step in two.steps]
    shown = memory.notes(kind="shown", episode_id=two.id)
    assert [one.id, 0] in shown[0].body["examples"] and shown[0].step == 0


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_votes_choose_what_worked(stream, is_async, server, memory):
    state = ALERT
    for action, reward in [("restart", -1.0), ("rollback", 1.0)]:
        text = canonical_tool_call({"name": action, "arguments": {"service": "a"}})
        for _ in range(6):
            memory.add(Episode(ALERT, [Step(state, text, reward)]))
    bad, good = (Answer(calls=((name, {"service": "a"}),)) for name in TOOLS)
    server.script += [bad, good, bad, bad]
    wrapped = seasoned.wrap(bare_client("chat", server, is_async=is_async), memory, mode="votes", on_error="raise")
    loop = Loop(wrapped, "chat")
    request = text_request(loop, ALERT)
    if is_async:

        async def ask():
            answer = await wrapped.chat.completions.create(**request, stream=stream)
            return [chunk async for chunk in answer] if stream else answer

        answer = asyncio.run(ask())
        said = answer if isinstance(answer, list) else None
        answer = collected("chat", said) if said is not None else answer
    else:
        loop.stream = stream
        answer = loop.call()
    call = answer["tool_calls"][0] if stream else answer.choices[0].message.tool_calls[0].model_dump()
    assert call["function"]["name"] == "rollback"
    assert len(server.requests) == 4
    memory.session.recorders[0].close()
    step = memory.episodes()[-1].steps[0]
    assert len(step.prior) == 2 and step.propensity > 0.9


def test_votes_ask_once_where_memory_knows_nothing(server, memory):
    server.script += [Answer("Hello.")]
    client = seasoned.wrap(bare_client("chat", server), memory, mode="votes", on_error="raise")
    client.chat.completions.create(**text_request(Loop(client, "chat")))
    assert len(server.requests) == 1


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=12)
@given(cut=st.integers(0, 2500), size=st.integers(1, 300))
def test_cut_stream_is_truncated_and_nothing_half_said_is_stored(api, cut, size):
    server = ModelServer()
    try:
        answer = Answer("I restart it.", calls=(("restart", {"service": "Checkout"}),))
        server.script += [Answer(answer.text, answer.calls, break_after=cut, chunk_bytes=size)]
        with Memory.open(":memory:") as memory:
            loop = Loop(seasoned.wrap(bare_client(api, server), memory, on_error="raise"), api, stream=True)
            loop.user(ALERT)
            with contextlib.suppress(Exception):
                loop.call()
            memory.session.recorders[0].close()
            episodes = memory.episodes()
        whole = canonical_tool_call({"name": "restart", "arguments": {"service": "Checkout"}})
        for episode in episodes:
            assert episode.ending == "truncated"
            [step] = episode.steps
            assert step.action == whole or answer.text.startswith(step.action)
    finally:
        server.close()


@pytest.mark.parametrize("api", APIS)
def test_streams_leave_unchanged_byte_for_byte(api, server, memory):
    received = []
    for client in (bare_client(api, server), seasoned.wrap(bare_client(api, server), memory)):
        server.n_answers = 0
        server.script += [Answer("Grüße, everyone.", calls=(("restart", {}),), chunk_bytes=7)]
        loop = Loop(client, api)
        resource = {"chat": lambda c: c.chat.completions, "responses": lambda c: c.responses}.get(
            api, lambda c: c.messages
        )(client)
        with resource.with_streaming_response.create(**text_request(loop), stream=True) as response:
            received.append(list(response.iter_bytes()))
    assert b"".join(received[0]) == b"".join(received[1])


def test_block_is_one_episode_and_side_calls_are_no_steps(server, memory):
    server.script += [*RUN, Answer("A title"), Answer("Quiet since then.")]
    client = seasoned.wrap(bare_client("chat", server), memory)
    with seasoned.episode(task="oncall", id="inc-7") as running:
        loop = Loop(client, "chat")
        ids = loop.run(ALERT)
        with pytest.raises(InputError, match="still running"):
            memory.feedback(ids[0], reward=1.0)
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Title of: pool"}])
        loop.run("And now?")
        running.feedback(reward=1.0)
    [episode] = stored(memory)
    assert (episode.id, episode.task, len(episode.steps)) == ("inc-7", "oncall", 3)
    assert [(event.step, event.reward) for event in memory.events("inc-7")] == [(2, 1.0)]
    with pytest.raises(InputError, match=r"memory\.feedback"):
        running.feedback(reward=1.0)


def test_block_keeps_its_steps_and_feedback_over_a_pause(server, memory):
    """No time may pass outside of blocks: every call there ends the open conversations."""
    recorder = CallRecorder(memory, idle_s=0.0)
    memory.session.recorders.append(recorder)
    client = seasoned.wrap(bare_client("chat", server), memory)
    server.script += [RUN[0], RUN[0], RUN[0], RUN[1]]
    with seasoned.episode(id="inc-7") as running:
        loop = Loop(client, "chat")
        loop.user(ALERT)
        loop.add(loop.call())
        for _ in range(2):
            contextvars.Context().run(client.chat.completions.create, **text_request(Loop(client, "chat")))
        loop.add(loop.call())
        running.feedback(reward=1.0)
    recorder.settle()
    assert len(memory.get("inc-7").steps) == 2
    assert [event.reward for event in memory.events("inc-7")] == [1.0]


def test_second_block_with_an_id_is_named_with_what_is_lost(server, memory, caplog):
    server.script += [Answer("Quiet."), Answer("Loud.")]
    client = seasoned.wrap(bare_client("chat", server), memory)
    for reward in (1.0, -1.0):
        with seasoned.episode(id="inc-7") as running:
            client.chat.completions.create(**text_request(Loop(client, "chat"), f"Now {reward}"))
            running.feedback(reward)
    [episode] = stored(memory)
    assert [step.action for step in episode.steps] == ["Quiet."]
    assert [event.reward for event in memory.events("inc-7")] == [1.0]
    [message] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "second block with the id 'inc-7'" in message and "1 step, 1 feedback" in message


def test_block_that_raises_is_aborted(server, memory):
    server.script += RUN[:1]
    client = seasoned.wrap(bare_client("chat", server), memory)
    with pytest.raises(ZeroDivisionError), seasoned.episode("oncall"):
        client.chat.completions.create(**text_request(Loop(client, "chat")))
        raise ZeroDivisionError
    [episode] = stored(memory)
    assert episode.ending == "aborted"


def test_concurrent_episodes_do_not_mix(server, memory):
    """Sixteen tickets on four threads, and eight on one event loop; each ticket is one episode of two steps."""
    server.script += RUN * 24
    client = seasoned.wrap(bare_client("chat", server), memory, on_error="raise")
    server.script = _ByTicket(server.script)

    def work(numbers):
        for number in numbers:
            with seasoned.episode(task=f"ticket {number}"):
                Loop(client, "chat").run(f"{ALERT} {number}")

    threads = [threading.Thread(target=work, args=[range(start, 16, 4)]) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def ticket(number, client):
        with seasoned.episode(task=f"ticket {number}"):
            loop = Loop(client, "chat")
            loop.user(f"{ALERT} {number}")
            while loop.add(await client.chat.completions.create(**loop.request())):
                pass

    async def main():
        client = seasoned.wrap(bare_client("chat", server, is_async=True), memory, on_error="raise")
        await asyncio.gather(*(ticket(number, client) for number in range(16, 24)))

    asyncio.run(main())
    episodes = stored(memory)
    assert sorted(episode.task for episode in episodes) == sorted(f"ticket {number}" for number in range(24))
    for episode in episodes:
        number = episode.task.removeprefix("ticket ")
        assert [step.state.splitlines()[:2][-1] for step in episode.steps] == [f"{ALERT} {number}"] * 2


class _ByTicket(list):
    """Answers by the request: a call first, and a text after a tool's result."""

    def for_body(self, body):
        return RUN[1] if body["messages"][-1]["role"] == "tool" else RUN[0]


def test_answer_that_is_not_sent_back_is_no_step(server, memory):
    server.script += [Answer(calls=((name, {}),)) for name in TOOLS] + [Answer("Done.")]
    client = seasoned.wrap(bare_client("chat", server), memory)
    loop = Loop(client, "chat")
    request = text_request(loop, ALERT)
    first, _ = client.chat.completions.create(**request), client.chat.completions.create(**request)
    loop.add(first)
    client.chat.completions.create(**loop.request())
    [episode] = stored(memory)
    assert [named_call(step.action).name for step in episode.steps] == ["restart", "Done."]


def test_next_user_message_ends_an_episode_as_truncated(server, memory):
    server.script += [*RUN[:1], Answer("All quiet.")]
    client = seasoned.wrap(bare_client("chat", server), memory)
    loop = Loop(client, "chat")
    loop.user(ALERT)
    loop.add(loop.call())
    loop.run("Never mind. What is new?")
    one, two = stored(memory)
    assert (one.ending, len(one.steps), two.ending, len(two.steps)) == ("truncated", 1, "terminated", 1)
    assert two.task == "Never mind. What is new?"


@pytest.mark.skipif(not HAS_RESPONSES, reason="an old openai")
def test_previous_response_id_continues_an_episode(server, memory):
    server.script += RUN
    client = seasoned.wrap(bare_client("responses", server), memory)
    loop = Loop(client, "responses")
    first = client.responses.create(**text_request(loop, ALERT))
    result = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "ok"}
    client.responses.create(model=MODEL, input=[result], previous_response_id=first.id)
    [episode] = stored(memory)
    loop.add(first)
    assert [step.state for step in episode.steps][1] == "goal:\n" + ALERT + "\nrecent:\nrestart\ntool restart:\nok"


def test_helpers_of_the_client_are_recorded(server, memory):
    server.script += [Answer("Hello.")] * 3
    client = seasoned.wrap(bare_client("chat", server), memory)
    requests = [{"model": MODEL, "messages": [{"role": "user", "content": f"Hi {number}"}]} for number in range(3)]
    assert client.with_options(timeout=5).chat.completions.create(**requests[0]).choices[0].message.content == "Hello."
    raw = client.chat.completions.with_raw_response.create(**requests[1])
    assert raw.http_response.status_code == 200 and raw.parse().choices[0].message.content == "Hello."
    beta = client.chat.completions if hasattr(client.chat.completions, "stream") else client.beta.chat.completions
    with beta.stream(**requests[2]) as stream:
        assert stream.get_final_completion().choices[0].message.content == "Hello."
    assert [episode.task for episode in stored(memory)] == ["Hi 0", "Hi 1", "Hi 2"]


def test_azure_client_is_recorded(server, memory):
    server.script += [Answer("Hello.")]
    azure = openai.AzureOpenAI(
        azure_endpoint=server.url, api_version="2026-01-01", api_key="k", default_headers={"x-team": "oncall"}
    )
    client = seasoned.wrap(azure, memory)
    client.chat.completions.create(**text_request(Loop(client, "chat")))
    [(path, headers, _)] = server.requests
    assert path.startswith("/openai/deployments/scripted-1/chat/completions?") and headers["x-team"] == "oncall"
    assert len(stored(memory)) == 1


def test_errors_and_retries_of_the_server_are_the_clients(server, memory):
    server.script += [Answer(status=429, headers={"retry-after": "0"}), Answer("Hello."), Answer(status=400)]
    client = seasoned.wrap(bare_client("chat", server, max_retries=2), memory)
    request = text_request(Loop(client, "chat"))
    assert client.chat.completions.create(**request).choices[0].message.content == "Hello."
    with pytest.raises(openai.BadRequestError, match="no"):
        client.chat.completions.create(**request)
    assert len(stored(memory)) == 1


def test_memory_that_fails_leaves_the_agent_alone(server, caplog):
    server.script += RUN * 2
    memory = Memory.open(":memory:")
    client = seasoned.wrap(bare_client("chat", server), memory, mode="examples", timeout_s=30.0)
    recorder = memory.session.recorders[0]
    memory.close()
    for _ in range(2):
        Loop(client, "chat").run(ALERT)
    with pytest.raises(StoreError, match="closed"):
        recorder.settle()
    recorder.close()
    for line in ("goes without it until", "episodes wait in this process", "LOST: the store did not take 2 episodes"):
        assert sum(line in record.getMessage() for record in caplog.records) == 1


def test_ids_are_known_at_once_and_on_the_command_line(server, tmp_path):
    path = str(tmp_path / "agent.db")
    server.script += RUN
    with Memory.open(path) as memory:
        with seasoned.episode() as running:
            ids = Loop(seasoned.wrap(bare_client("chat", server), memory), "chat").run(ALERT)
        assert memory.get(running.id).id == running.id
    for arguments in (["feedback", path, ids[0], "-0.5"], ["show", path, ids[0]]):
        assert CliRunner().invoke(cli, ["memory", *arguments]).exit_code == 0
    with Memory.open(path) as memory:
        assert [(event.step, event.reward) for event in memory.events()] == [(0, -0.5)]


class StallingEncoder:
    """An encoder that waits while it is told to, as a query of a busy store does."""

    identity = "stalling/1"

    def __init__(self):
        self.goes_on = threading.Event()
        self.goes_on.set()

    def features(self, state):
        self.goes_on.wait(60.0)
        return frozenset(state.split())


@pytest.mark.parametrize("mode", ["examples", "decisions"])
def test_call_goes_without_a_memory_that_is_too_slow(mode, server, caplog):
    encoder = StallingEncoder()
    server.script += [*RUN, *RUN, *RUN]
    with Memory.open(":memory:", encoder=encoder) as memory:
        memory.feedback(Loop(seasoned.wrap(bare_client("chat", server), memory), "chat").run(ALERT)[0], reward=1.0)
        client = seasoned.wrap(bare_client("chat", server), memory, mode=mode, timeout_s=0.05)
        encoder.goes_on.clear()
        for n in range(3):
            client.chat.completions.create(**text_request(Loop(client, "chat"), f"alert: {n}"))
        assert not any(word in json.dumps(server.bodies()) for word in ("[records", "tool_choice", "one letter"))
        encoder.goes_on.set()
        memory.session.recorders[0].settle()
    assert sum("goes without it until" in record.getMessage() for record in caplog.records) == 1


def test_episodes_wait_while_the_store_is_locked(server, tmp_path, caplog):
    server.script += [*RUN * 2, Answer("Hello.")]
    with Memory.open(tmp_path / "agent.db", timeout_s=0.1) as memory:
        client = seasoned.wrap(bare_client("chat", server), memory)
        with contextlib.closing(sqlite3.connect(tmp_path / "agent.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with seasoned.episode() as running:
                Loop(client, "chat").run(ALERT)
                running.feedback(reward=-0.5)
            ids = Loop(client, "chat").run(ALERT)
            with pytest.raises(StoreError):
                memory.feedback(ids[-1], reward=1.0)
            other.execute("ROLLBACK")
        Loop(client, "chat", tools=False).run("Hi")
    with Memory.open(tmp_path / "agent.db") as memory:
        assert [len(episode.steps) for episode in memory.episodes()] == [2, 2, 1]
        assert memory.episodes()[0].id == running.id
        assert [(event.episode_id, event.reward) for event in memory.events()] == [(running.id, -0.5)]
        memory.feedback(ids[-1], reward=1.0)
    assert sum("episodes wait in this process" in record.getMessage() for record in caplog.records) == 1


def test_error_is_raised_where_that_was_asked_for(server):
    memory = Memory.open(":memory:")
    client = seasoned.wrap(bare_client("chat", server), memory, mode="examples", on_error="raise")
    memory.close()
    with pytest.raises((SeasonedError, openai.APIConnectionError)) as caught:  # old packages raise their own from it
        client.chat.completions.create(**text_request(Loop(client, "chat")))
    assert isinstance(caught.value, SeasonedError) or isinstance(caught.value.__cause__, SeasonedError)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=25)
@given(content=JSON_VALUES, role=st.sampled_from(["tool", "user", "assistant", "critic"]), tool=st.text(max_size=12))
def test_no_message_of_a_client_breaks_a_call(content, role, tool):
    """Tool results that are no text, unknown roles, calls of tools that were not offered: the agent gets its answer."""
    server = ModelServer()
    try:
        server.script += [Answer(calls=((tool or "unknown", {"a": 1}),)), Answer("Done.")]
        with Memory.open(":memory:") as memory:
            client = seasoned.wrap(bare_client("chat", server), memory, mode="examples")
            loop = Loop(client, "chat")
            loop.user(ALERT)
            loop.add(loop.call(), [])
            loop.said.append({"role": role, "tool_call_id": "call_1_0", "content": content})
            assert loop.call().choices[0].message.content == "Done."
    finally:
        server.close()


def test_open_episode_is_stored_at_the_end_of_the_process(server, tmp_path):
    server.script += RUN[:1]
    script = f"""
import openai, seasoned
memory = seasoned.Memory.open({str(tmp_path / "agent.db")!r})
client = seasoned.wrap(openai.OpenAI(api_key="k", base_url={server.url + "/v1"!r}), memory)
client.chat.completions.create(model="m", messages=[{{"role": "user", "content": "alert"}}])
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    with Memory.open(tmp_path / "agent.db") as memory:
        [episode] = memory.episodes()
    assert (episode.ending, episode.steps[0].state) == ("truncated", "alert")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "steer"}, "mode"),
        ({"on_error": "ignore"}, "on_error"),
        ({"task": " "}, "task"),
        ({"awaits_feedback": 1}, "awaits_feedback"),
    ],
)
def test_wrong_argument_is_refused(arguments, message, server, memory):
    with pytest.raises(InputError, match=message):
        seasoned.wrap(bare_client("chat", server), memory, **arguments)


def test_what_is_no_client_is_refused(memory):
    with pytest.raises(InputError, match="openai or anthropic"):
        seasoned.wrap("gpt-5", memory)
    with pytest.raises(InputError, match="memory"):
        seasoned.wrap(openai.OpenAI(api_key="k"), "agent.db")


def test_wrapping_builds_the_indexes_that_a_doubted_example_needs(memory):
    memory.add(Episode("oncall", [Step("pool full", "restart", 1.0)]))
    seasoned.wrap(openai.OpenAI(api_key="unused"), memory, mode="examples", on_error="raise")
    assert memory._retriever._rarity.terms.n_features > 0


@pytest.mark.parametrize("mode", ["votes", "decisions"])
def test_wrapping_builds_the_bounds_that_a_search_needs(mode, memory):
    memory.add(Episode("oncall", [Step("pool full", "restart", 1.0)]))
    seasoned.wrap(openai.OpenAI(api_key="unused"), memory, mode=mode, on_error="raise")
    assert len(memory._retriever._rarity._weights._norms) == 1
