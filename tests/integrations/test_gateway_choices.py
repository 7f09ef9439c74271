"""The gateway's modes that ask the model several times: the answer that the client gets, and what is stored of it."""

from __future__ import annotations

import json
import math
import shutil
import socket
import time
from pathlib import Path

import pytest
from client_loops import ALERT, APIS, Loop, bare_client
from model_server import Answer
from raw_upstream import GUARD_S, RawAnswer, raw_upstream
from running_gateway import episodes_of, gateway_of

from seasoned import Episode, Memory, Step, TranscriptEncoder
from seasoned.actions import ToolAction
from seasoned.service.gateway.call_taps import ChangedCall

pytest.importorskip("uvicorn", reason="needs the extra serve")

RESTART, ROLLBACK = (ToolAction(name, {"service": "checkout"}).text for name in ("restart", "rollback"))
CALLS = {name: Answer(calls=((name, {"service": "checkout"}),)) for name in ("restart", "rollback")}
VOTES = [CALLS["restart"], CALLS["restart"], CALLS["restart"], CALLS["rollback"]]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A memory in which restarts failed, and rollbacks helped."""
    path = tmp_path_factory.mktemp("filled") / "agent.db"
    steps = [Step(ALERT, *pair) for pair in ((ROLLBACK, 1.0), (RESTART, -1.0))]
    with Memory.open(path, encoder=TranscriptEncoder()) as memory:
        memory.add_many(Episode("oncall", [steps[number % 2]], f"past-{number}") for number in range(24))
    return path


@pytest.fixture
def path(filled, tmp_path):
    """A copy of it."""
    return Path(shutil.copy(filled, tmp_path))


def in_mode(mode, server, path, **settings):
    settings = {"modes": {"*": mode}, "mode_wait_s": GUARD_S, "holdout": False, **settings}
    return gateway_of(server, path, **settings)


def own_episodes(path):
    return [one for one in episodes_of(path) if not one.id.startswith("past-")]


def wait_for(happens):
    """Wait until something holds."""
    until = time.monotonic() + GUARD_S
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.01)


def raw_call(loop):
    """One call by an official client: the headers of its answer, and the answer."""
    resource = loop.create.__self__.with_raw_response
    raw = resource.create(**loop.request(), **({"stream": True} if loop.stream else {}))
    return raw.headers, raw


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", APIS)
def test_client_gets_one_of_several_answers_in_its_own_api(api, stream, server, path):
    server.script += [*VOTES, Answer("It is quiet.")]
    with in_mode("rerank", server, path) as gateway:
        loop = Loop(bare_client(api, gateway), api, stream=stream)
        loop.user(ALERT)
        assert loop.add(loop.call())
        n_requests = len(server.requests)
        assert not loop.add(loop.call())  # of a state that is not known, where one answer is asked for
    assert (n_requests, len(server.requests)) == ((1, 2) if api == "chat" else (4, 5))
    asked = [json.loads(raw) for _, _, raw in server.requests[:n_requests]]
    assert [body.get("n") for body in asked] == ([4] if api == "chat" else [None] * 4)
    assert all(bool(body.get("stream")) == stream for body in asked)
    [episode] = own_episodes(path)
    chosen, last = episode.steps
    assert [chosen.action, last.action] == [ROLLBACK, "It is quiet."]
    # The prior is the counts of the answers, and memory shifts it to what helped.
    assert set(chosen.prior) == {RESTART, ROLLBACK} and chosen.prior[ROLLBACK] < math.log(0.5)
    assert chosen.propensity > 0.99 and last.prior is None and episode.policy == "gateway:rerank"


def test_answer_says_how_many_were_asked_for_and_the_note_what_they_cost(server, path):
    server.script += VOTES
    with in_mode("rerank", server, path) as gateway:
        first = bare_client("chat", gateway).chat.completions.with_raw_response.create(
            **Loop(None, "chat").options, messages=[{"role": "user", "content": ALERT}]
        )
        server.takes_n = False  # from now on the server gives one answer to a request for four
        server.script += VOTES
        again = bare_client("chat", gateway).chat.completions.with_raw_response.create(
            **Loop(None, "chat").options, messages=[{"role": "user", "content": ALERT}], user="other"
        )
    assert [one.headers["x-seasoned-mode"] for one in (first, again)] == ["memory", "memory"]
    assert [one.headers["x-seasoned-answers"] for one in (first, again)] == ["4", "4"]
    whole = json.loads(first.content)
    assert whole["usage"]["total_tokens"] == 20 and [one["index"] for one in whole["choices"]] == [0]
    assert json.loads(again.content)["usage"]["total_tokens"] == 5
    with Memory.open(path) as memory:
        assert [note.body["prompt_tokens"] for note in memory.notes(kind="usage")] == [9]  # of the three others


def test_server_that_refuses_n_is_sent_the_request_several_times(server, path):
    votes = list(VOTES)

    class Model:
        def for_body(self, body):
            return Answer(status=400) if "n" in body else votes.pop()

    server.script = Model()
    with in_mode("rerank", server, path) as gateway:
        for user in ("ann", "bob"):
            loop = Loop(bare_client("chat", gateway), "chat", stream=True)
            loop.options["user"] = user
            loop.user(ALERT)
            assert raw_call(loop)[0]["x-seasoned-mode"] == "memory"
            votes = list(VOTES)
    assert [body.get("n") for body in server.bodies()] == [4, *[None] * 8]  # it is asked for n once


def test_answers_that_fail_leave_a_choice_among_the_others(server, path):
    server.takes_n = False
    server.script += [CALLS["restart"], Answer("half", break_after=60), Answer(status=500), CALLS["rollback"]]
    with in_mode("rerank", server, path) as gateway:
        loop = Loop(bare_client("chat", gateway), "chat", stream=True)
        loop.user(ALERT)
        headers, _ = raw_call(loop)
    [episode] = own_episodes(path)
    assert headers["x-seasoned-mode"] == "memory" and set(episode.steps[0].prior) == {RESTART, ROLLBACK}


def test_error_of_all_answers_is_the_clients(server, path):
    server.script += [Answer(status=429, headers={"retry-after": "7"})]
    with in_mode("rerank", server, path) as gateway:
        loop = Loop(bare_client("chat", gateway), "chat")
        loop.user(ALERT)
        with pytest.raises(Exception, match="429") as raised:
            loop.call()
    assert raised.value.response.headers["retry-after"] == "7" and len(server.requests) == 1


@pytest.mark.parametrize(
    ("more", "settings", "reason"),
    [
        ({"temperature": 0}, {}, "temperature 0"),
        ({"n": 1, "tools": None}, {}, "no tool"),
        ({"tool_choice": "none"}, {"modes": {"*": "decide"}}, "no choice"),
        ({}, {"mode_wait_s": 1e-9}, "more than"),
    ],
)
def test_call_that_leaves_no_choice_is_sent_as_its_client_made_it(more, settings, reason, server, path):
    server.script += [Answer("I look.")]
    with in_mode("rerank", server, path, **settings) as gateway:
        loop = Loop(bare_client("chat", gateway), "chat")
        loop.options = {name: one for name, one in {**loop.options, **more}.items() if one is not None}
        loop.user(ALERT)
        headers, raw = raw_call(loop)
    assert headers["x-seasoned-mode"] == "base" and reason in headers["x-seasoned-reason"]
    assert [raw for _, _, raw in server.requests] == [raw.http_request.content]
    assert "x-seasoned-answers" not in headers


@pytest.mark.parametrize("steps_s", [[2.0], [0.25] * 4], ids=["one step", "all steps"])
def test_memory_that_chooses_too_slowly_leaves_the_first_answer(steps_s, server, path):
    class SlowChoice:
        def __init__(self, call):
            self.body, self.context = call.content, call.place.context

        def requests(self):
            for seconds in steps_s:
                answers = yield [self.body] * 2
                time.sleep(seconds)
            return answers[1]

    class Change:
        def mode_of(self, context):
            return "rerank"

        def __call__(self, call):
            return ChangedCall(None, call.place.context, "base", asking=SlowChoice(call))

    server.script += [Answer("It is quiet."), Answer("It is loud.")] * len(steps_s)
    with in_mode("rerank", server, path, changes={"default": Change()}, mode_wait_s=0.6) as gateway:
        loop = Loop(bare_client("chat", gateway), "chat")
        loop.user(ALERT)
        headers, raw = raw_call(loop)
    assert "more than" in headers["x-seasoned-reason"] and headers["x-seasoned-mode"] == "base"
    assert raw.parse().choices[0].message.content == "It is quiet."


def test_control_group_is_asked_once_and_the_cost_of_the_others_counts(server, path):
    server.takes_n = False
    most_draws = 40  # all of one arm with a probability of 2^-39
    server.script.extend(CALLS["restart"] for _ in range(4 * most_draws))
    with in_mode("rerank", server, path, holdout=True, episode="call") as gateway:
        arms = []
        while len(set(arms)) < 2 and len(arms) < most_draws:
            loop = Loop(bare_client("chat", gateway), "chat")
            loop.options["user"] = str(len(arms))
            loop.user(ALERT)
            arms.append(raw_call(loop)[0]["x-seasoned-arm"])
    assert set(arms) == {"treated", "control"} and len(server.requests) == 4 * len(arms) - 3 * arms.count("control")
    with Memory.open(path) as memory:
        costs = {note.episode_id: note.body["tokens"] for note in memory.notes(kind="episode.cost")}
    stored = own_episodes(path)
    assert {one.id: 20.0 if one.arm == "treated" else 5.0 for one in stored if one.steps} == costs
    assert all((one.steps[0].prior is None) == (one.arm == "control") for one in stored if one.steps)


def test_deciding_asks_for_a_letter_and_keeps_the_stream(server, path):
    class Model:
        def for_body(self, body):
            if body.get("logprobs"):
                return Answer("A", logprobs={"A": math.log(0.8), "B": math.log(0.1), "C": math.log(0.1)})
            choice = body.get("tool_choice")
            return CALLS[choice["function"]["name"] if isinstance(choice, dict) else "restart"]

    server.script = Model()
    with in_mode("decide", server, path, episode="call") as gateway:
        for number in range(2):
            loop = Loop(bare_client("chat", gateway), "chat", stream=True)
            loop.options["user"] = str(number)
            loop.options["tool_choice"] = "required"
            loop.user(ALERT)
            headers, _ = raw_call(loop)
            assert (headers["x-seasoned-mode"], headers["x-seasoned-answers"]) == ("memory", "2")
    questions, calls = server.bodies()[::2], server.bodies()[1::2]
    assert all(one["logprobs"] and not one.get("stream") for one in questions)
    assert all(one["stream"] for one in calls) and calls
    for call, episode in zip(calls, sorted(own_episodes(path), key=lambda one: one.subject), strict=True):
        [step] = episode.steps
        assert call["tool_choice"]["function"] == {"name": "rollback"} and step.action == ROLLBACK
        assert step.propensity > 0.99 and step.prior[ROLLBACK] == pytest.approx(math.log(0.1 / 0.9))


@pytest.mark.parametrize("api", [one for one in APIS if one != "chat"])
def test_deciding_counts_answers_where_there_are_no_logprobs(api, server, path):
    class Model:
        def for_body(self, body):
            choice = body.get("tool_choice")
            return CALLS[choice["name"] if isinstance(choice, dict) and "name" in choice else "restart"]

    server.script = Model()
    with in_mode("decide", server, path, episode="call") as gateway:
        for number in range(2):
            loop = Loop(bare_client(api, gateway), api)
            loop.options["metadata"] = {"user_id": str(number)}
            loop.user(ALERT)
            headers, _ = raw_call(loop)
            assert headers["x-seasoned-mode"] == "memory" and headers["x-seasoned-answers"] in (
                "5",
                "6",
            )  # a question, 4, the demand
    demanded = [body["tool_choice"] for body in server.bodies() if body.get("tool_choice") not in (None, "none")]
    assert demanded and {one["name"] for one in demanded} == {"rollback"}
    assert {step.action for one in own_episodes(path) for step in one.steps} >= {ROLLBACK}


def test_client_that_goes_ends_all_requests_for_its_answers(path):
    stalled = RawAnswer([b"data: {}\n\n"] * 5000, pause_s=0.01)
    with raw_upstream() as upstream:
        upstream.answer = stalled
        with in_mode("rerank", upstream, path) as gateway, socket.create_connection(gateway.address) as client:
            body = json.dumps({**Loop(None, "messages").request(), "messages": [{"role": "user", "content": ALERT}]})
            head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
            client.sendall(f"{head}content-type: application/json\r\n\r\n{body}".encode())
            wait_for(lambda: len(upstream.received) == 4)
            client.close()
            wait_for(lambda: upstream.n_gone == 4)
