"""Calls through the gateway, by the vendors' own clients: what is recorded, what belongs together, and when it ends."""

from __future__ import annotations

import contextlib
import gc
import shutil
import signal
import subprocess
import sys
import time
import urllib.error

import pytest
from client_loops import ALERT, APIS, RUN, Loop, bare_client, imported
from model_server import Answer
from raw_upstream import GUARD_S
from running_gateway import Gateway, episodes_of, gateway_of

from seasoned import Memory
from seasoned.errors import StoreError
from seasoned.integrations.clients.backlog import Backlog
from seasoned.integrations.clients.conversations import CallContext, Conversations, RecordedCall
from seasoned.integrations.clients.ended_episode import ended_episode
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.clients.wires.responses_wire import ResponsesWire
from seasoned.integrations.clients.wires.wire_format import ModelAnswer
from seasoned.service.bearer_tokens import Token
from seasoned.service.gateway.call_spool import CallSpool
from seasoned.states.redactor_identity import named_redactor

pytest.importorskip("uvicorn", reason="needs the extra serve")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", APIS)
def test_a_run_is_stored_as_its_import_is(server, tmp_path, api, stream):
    server.script = list(RUN)
    with gateway_of(server, tmp_path / "agent.db") as gateway:
        loop = Loop(bare_client(api, gateway), api, stream=stream)
        loop.run(ALERT)
        assert all("secret-key" in str(headers) for _, headers, _ in server.requests)
    [episode] = episodes_of(gateway.path)
    expected = imported(loop.said)
    assert [(step.state, step.action) for step in episode.steps] == [
        (step.state, step.action) for step in expected.steps
    ]
    assert (episode.task, episode.ending, episode.awaits_feedback) == (ALERT, "terminated", True)


def test_the_header_names_the_episode_and_feedback_by_either_id_judges_it(server, tmp_path):
    server.script = list(RUN)
    with gateway_of(server, tmp_path / "agent.db") as gateway:
        client = bare_client("chat", gateway)
        loop, named = Loop(client, "chat"), []
        loop.user(ALERT)
        while True:
            raw = client.chat.completions.with_raw_response.create(**loop.request())
            named.append(raw.headers["x-seasoned-episode-id"])
            response = raw.parse()
            if not loop.add(response):
                break
        gateway.post("/v1/feedback", {"inference_id": named[0], "reward": 0.5})
        gateway.post("/v1/feedback", {"inference_id": response.id, "reward": 1.0})
        found = gateway.get(f"/v1/episodes/{named[0]}")
    assert len(set(named)) == 1 and found["task"] == ALERT
    with Memory.open(gateway.path) as memory:
        assert [(one.episode_id, one.reward) for one in memory.events()] == [(named[0], 0.5), (named[0], 1.0)]


def test_calls_of_two_sessions_are_apart_and_a_session_is_ended_and_judged_by_its_id(server, tmp_path):
    server.script = [RUN[0], RUN[0]]
    with gateway_of(server, tmp_path / "agent.db") as gateway:
        for name in ("one", "two"):
            loop = Loop(bare_client("chat", Gateway(f"{gateway.url}/sessions/{name}", "")), "chat")
            loop.user(ALERT)
            loop.call()
        [first] = gateway.post("/v1/episodes/one/end", {"ending": "truncated"})["ended"]
        gateway.post("/v1/feedback", {"inference_id": "two", "reward": 1.0})
        assert gateway.get(f"/v1/episodes/{first}")["ending"] == "truncated"
    assert len(episodes_of(gateway.path)) == 2


def test_feedback_on_a_session_judges_its_latest_episode_alone(server, tmp_path):
    server.script = [RUN[0], RUN[0]]
    with gateway_of(server, tmp_path / "agent.db") as gateway:
        for said in ("the older", "the latest"):
            loop = Loop(bare_client("chat", Gateway(f"{gateway.url}/sessions/s", "")), "chat")
            loop.user(said)
            loop.call()
        judged = gateway.post("/v1/feedback", {"inference_id": "s", "reward": 1.0})["episode_id"]
        assert gateway.get(f"/v1/episodes/{judged}")["task"] == "the latest"
        assert len(gateway.post("/v1/episodes/s/end")["ended"]) == 1  # the older one still ran


@pytest.mark.parametrize("prefix", ["/sessions/2", "/episodes/2"])
def test_a_session_is_its_owners(server, tmp_path, prefix):
    """Another token's author neither ends nor judges it, and names none of its responses."""
    server.script, names = [RUN[0], RUN[0]], ("ann", "bob")
    with gateway_of(server, tmp_path / "agent.db", token=[Token(name * 10, name) for name in names]) as gateway:
        own = {name: Gateway(gateway.url, "", {"authorization": f"Bearer {name * 10}"}) for name in names}
        for name in names:
            client = bare_client("chat", Gateway(gateway.url + prefix, "")).with_options(api_key=name * 10)
            loop = Loop(client, "chat")
            loop.user(f"the alert of {name}")
            loop.call()
        judged = own["bob"].post("/v1/feedback", {"inference_id": "2", "reward": 1.0})["episode_id"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            own["bob"].post("/v1/episodes/2/end")
        assert len(own["ann"].post("/v1/episodes/2/end")["ended"]) == 1
    assert {one.id: one.task for one in episodes_of(gateway.path)}[judged] == "the alert of bob"


def test_a_response_of_another_owner_is_not_continued():
    conversations, said = Conversations(idle_s=60.0), {"type": "message", "role": "user", "content": "the plan of ann"}
    first = RecordedCall(ResponsesWire(), {"input": [said]}, ModelAnswer((), id="r-1"), CallContext(owner="ann"))
    conversations.add(first)
    n_units = {}
    for owner in ("ann", "bob"):
        body = {"previous_response_id": "r-1", "input": [said]}
        call = RecordedCall(ResponsesWire(), body, ModelAnswer(()), CallContext(owner=owner))
        conversations.add(call)
        n_units[owner] = len(call.units)
    assert n_units == {"ann": 2, "bob": 1}


@pytest.mark.parametrize("prefix", ["/episodes/trial/7", "/sessions/trial/7"])
def test_all_calls_of_a_named_episode_are_one(server, tmp_path, prefix):
    rule = {"episode": "session"} if prefix.startswith("/sessions") else {}
    server.script = [*RUN, *RUN, *RUN]
    with gateway_of(server, tmp_path / "agent.db", **rule) as gateway:
        client = bare_client("chat", Gateway(gateway.url + prefix, ""))
        for _ in range(2):
            Loop(client, "chat").run(ALERT)
        gateway.post("/v1/feedback", {"inference_id": "trial/7", "reward": 1.0})
        Loop(client, "chat").run(ALERT)  # the client goes on: another episode
        gateway.post("/v1/episodes/trial/7/end")
    assert {one.id: len(one.steps) for one in episodes_of(gateway.path)} == {"trial/7": 4, "trial/7~2": 2}


@pytest.mark.parametrize("rule", ["task", "session", "call"])
def test_another_subject_begins_another_episode_and_an_erasure_reaches_it(server, tmp_path, rule):
    path = tmp_path / "agent.db"
    server.script = [Answer(text="yes") for _ in range(4)]
    with gateway_of(server, path, episode=rule) as gateway:
        for text, body in (
            ("a lamp", {"safety_identifier": "alice"}),
            ("the lamp", {}),
            ("quince", {"user": "bob"}),
            ("quince jam", {"metadata": {"user_id": "user_1_session_2"}}),
        ):
            said = {"role": "user", "content": text}
            gateway.post("/sessions/run/v1/chat/completions", {"model": "m", "messages": [said], **body})
        if rule == "session":
            gateway.post("/v1/episodes/run/end")
    with Memory.open(path) as memory:
        subjects = {step.state: one.subject for one in memory.episodes() for step in one.steps}
        assert len(subjects) == 4
        assert all(("quince" in state) == (subject == "bob") for state, subject in subjects.items())
        assert set(subjects.values()) == {"alice", "bob"}
        memory.erase("bob")
    assert not any(b"quince" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_side_calls_and_sub_agents_are_kept_apart_and_aborted(server, tmp_path):
    answers = {"call": RUN[0], "title": Answer("Pool trouble"), "sub": Answer("It is the pool."), "end": RUN[1]}
    with gateway_of(server, tmp_path / "agent.db") as gateway:
        client = bare_client("chat", gateway)
        client = client.with_options(default_headers={"X-Claude-Code-Session-Id": "s-1"})
        main = Loop(client, "chat")
        main.user(ALERT)
        server.script = [answers["call"]]
        called = main.call()
        title, sub = Loop(client, "chat", tools=False), Loop(client, "chat")
        sub.said[0] = {"role": "system", "content": "You explore."}
        server.script = [answers["title"], answers["sub"], answers["end"]]
        title.run("Name this.")
        sub.run("Why is the pool exhausted?")
        main.add(called)
        main.add(main.call())
        gateway.post("/v1/feedback", {"inference_id": "s-1", "reward": 1.0})
    by_task = {one.task: one for one in episodes_of(gateway.path)}
    assert {task: one.ending for task, one in by_task.items()} == {
        ALERT: "terminated",
        "Name this.": "aborted",
        "Why is the pool exhausted?": "aborted",
    }
    assert len(by_task[ALERT].steps) == 2


def test_each_call_is_an_episode_if_that_is_the_rule(server, tmp_path):
    server.script = list(RUN)
    with gateway_of(server, tmp_path / "agent.db", episode="call") as gateway:
        Loop(bare_client("chat", gateway), "chat").run(ALERT)
    assert [len(one.steps) for one in episodes_of(gateway.path)] == [1, 1]


def test_errors_and_bodies_that_are_no_calls_pass_and_store_nothing(server, tmp_path):
    server.script = [Answer(status=429, headers={"retry-after": "1"})]
    with gateway_of(server, tmp_path / "agent.db") as gateway:
        loop = Loop(bare_client("chat", gateway), "chat")
        loop.user(ALERT)
        with pytest.raises(Exception, match="429"):
            loop.call()
    assert episodes_of(gateway.path) == []


def test_a_call_of_a_killed_process_is_stored_once_with_its_episode(server, tmp_path):
    """The process is killed in mid-episode, and again when the episode is stored and its calls are still spooled."""
    path, spool = tmp_path / "agent.db", tmp_path / "calls"
    server.script = list(RUN)
    with gateway_of(server, path, spool=spool) as gateway:
        loop = Loop(bare_client("chat", gateway), "chat")
        loop.user(ALERT)
        loop.add(loop.call())
        [call] = spool.rglob("*.call")
        assert b"secret-key" not in call.read_bytes()
        shutil.copytree(spool, tmp_path / "killed")
    assert episodes_of(path) == []  # its episode goes on in the next process
    shutil.rmtree(spool)
    shutil.copytree(tmp_path / "killed", spool)
    with gateway_of(server, path, spool=spool) as gateway:
        loop.client = bare_client("chat", gateway)
        loop.add(loop.call())
    before = episodes_of(path)
    assert [len(one.steps) for one in before] == [2] and not [*spool.rglob("*.call")]
    shutil.rmtree(spool)
    shutil.copytree(tmp_path / "killed", spool)
    with gateway_of(server, path, spool=spool) as gateway:
        gateway.post(f"/v1/episodes/{before[0].id}/end")
    assert episodes_of(path) == before and not [*spool.rglob("*.call")]


def test_two_gateways_store_both_parts_of_an_episode_that_both_were_told(server, tmp_path):
    path, spool = tmp_path / "agent.db", tmp_path / "calls"
    server.script = [RUN[0], RUN[0]]
    with gateway_of(server, path, spool=spool) as one, gateway_of(server, path, spool=spool) as other:
        for gateway in (one, other):
            loop = Loop(bare_client("chat", Gateway(f"{gateway.url}/episodes/trial", "")), "chat")
            loop.user(f"{ALERT} {gateway.url}")
            loop.call()
        for gateway in (one, other):
            gateway.post("/v1/episodes/trial/end")
    assert {episode.id: len(episode.steps) for episode in episodes_of(path)} == {"trial": 1, "trial~2": 1}
    assert not [*spool.rglob("*.call")]


def test_a_namespace_with_a_redactor_spools_nothing(server, tmp_path):
    server.script = [RUN[0]]
    with gateway_of(
        server, tmp_path / "agent.db", redact=named_redactor("emails"), spool=tmp_path / "calls"
    ) as gateway:
        loop = Loop(bare_client("chat", gateway), "chat")
        loop.user("write to ann@example.org")
        loop.call()
        assert not [*(tmp_path / "calls").rglob("*.call")]


def test_the_end_of_a_service_without_a_spool_stores_named_episodes(server, tmp_path):
    server.script = [RUN[0]]
    with gateway_of(server, tmp_path / "agent.db") as gateway:
        loop = Loop(bare_client("chat", Gateway(f"{gateway.url}/episodes/trial", "")), "chat")
        loop.user(ALERT)
        loop.call()
    assert [(one.id, one.ending, len(one.steps)) for one in episodes_of(gateway.path)] == [("trial", "truncated", 1)]


def test_a_killed_service_goes_on_where_it_was(server, tmp_path):
    path = tmp_path / "agent.db"
    command = [
        sys.executable,
        "-m",
        "seasoned",
        "serve",
        str(path),
        "--create",
        "--port",
        "0",
        "--upstream",
        server.url,
    ]
    server.script, loop = list(RUN), Loop(None, "chat", stream=True)
    loop.user(ALERT)
    for end in (signal.SIGKILL, signal.SIGTERM):
        with subprocess.Popen([*command, "--quiet"], stdout=subprocess.PIPE, text=True) as service:
            url = service.stdout.readline().split()[0].rstrip("/")
            loop.client = bare_client("chat", Gateway(url, path))
            loop.add(loop.call())
            service.send_signal(end)
    [episode] = episodes_of(path)
    assert (len(episode.steps), episode.ending) == (2, "terminated")


@pytest.mark.parametrize("named", [{}, {"x-seasoned-episode-id": "trial"}], ids=["task", "named"])
def test_an_idle_episode_ends_by_itself(server, tmp_path, named):
    server.script = [RUN[0]]
    with gateway_of(server, tmp_path / "agent.db", idle_s=0.2) as gateway:
        client = bare_client("chat", gateway).with_options(default_headers=named)
        loop = Loop(client, "chat")
        loop.user(ALERT)
        raw = client.chat.completions.with_raw_response.create(**loop.request())
        id_, found, until = raw.headers["x-seasoned-episode-id"], None, time.monotonic() + GUARD_S
        while found is None and time.monotonic() < until:
            with contextlib.suppress(urllib.error.HTTPError):
                found = gateway.get(f"/v1/episodes/{id_}")
            time.sleep(0.05)
    assert found["ending"] == "truncated" and len(found["steps"]) == 1
    assert not named or id_ == "trial"


class _DownMemory:
    def episode(self, *args, **kwargs):
        raise StoreError("the store", "it is up", "Wait.")


def test_the_files_of_calls_have_a_limit_in_bytes(tmp_path):
    spool = CallSpool(tmp_path, max_bytes=1000)
    first, second, third = [spool.begin({}, b"x" * 400) for _ in range(3)]
    assert first is not None and second is not None and third is None
    first.release()
    first.release()
    fourth = spool.begin({}, b"x" * 400)
    assert fourth is not None and spool.begin({}, b"x" * 400) is None
    assert len([*tmp_path.rglob("*.call")]) == 2
    assert fourth.add(b"y" * 50) and not fourth.add(b"y" * 500)  # what is not whole is no call
    assert [path.stat().st_size for path in tmp_path.rglob("*.call")] == [len(b'{"body_bytes": 400}\n') + 400]


def test_calls_stay_in_the_spool_while_the_store_fails_and_what_is_no_step_does_not(tmp_path):
    spool, conversations = CallSpool(tmp_path), Conversations(idle_s=60.0)
    backlog = Backlog(_DownMemory(), pytest.fail, max_chars=1)

    def over(text, said):
        kept = spool.begin({}, b"{}")
        body = {"messages": [{"role": "user", "content": said}]}
        answer = ModelAnswer(({"role": "assistant", "content": text},) if text else ())
        return conversations.add(RecordedCall(ChatWire(), body, answer, CallContext(kept=kept)))

    for n in range(3):  # of which the backlog drops two
        for one in over("done", f"alert {n}"):
            backlog.add(ended_episode([one], "terminated"))
    assert over("", "alert") == []
    backlog.lose()
    gc.collect()
    assert len([*tmp_path.rglob("*.call")]) == 3
