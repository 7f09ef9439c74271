"""Modes of the gateway by task family: what is sent upstream, what is stored, and what the headers say."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from model_server import MODEL, Answer

from seasoned import Episode, Memory, Step, TranscriptEncoder
from seasoned.cli.main import cli
from seasoned.errors import InputError
from seasoned.integrations.clients.prompt_block import framed_block
from seasoned.service import DecisionSettings, GatewaySettings
from seasoned.types.lift_records import Shadow, ShadowPrompt
from seasoned.types.notes import ASSIGNMENT, SHADOW, SHADOW_PROMPT

pytest.importorskip("fastapi", reason="needs the extra serve")
from serving import serving

ALERT = "pool exhausted on checkout"
BEGIN = "[records of earlier episodes]"
TOOLS = [{"type": "function", "function": {"name": "restart", "parameters": {"type": "object"}}}]
RESTART = '{"arguments":{"service":"checkout"},"name":"restart"}'
APIS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
ONE_TOKEN = {"chat": {"max_tokens": 1}, "messages": {"max_tokens": 1}, "responses": {"max_output_tokens": 1}}
UNITS = {"chat": "messages", "messages": "messages", "responses": "input"}
SYSTEM = {"role": "system", "content": "You are on call."}


@pytest.fixture
def path(tmp_path):
    """A memory in which a restart was good."""
    path = tmp_path / "agent.db"
    with Memory.open(path, encoder=TranscriptEncoder()) as memory:
        for number in range(4):
            steps = [Step(ALERT, RESTART), Step("done", "It is quiet.")]
            memory.feedback(memory.add(Episode("oncall", steps, f"past-{number}", awaits_feedback=True)), 1.0)
    return path


def asked(client, family="oncall", **more):
    body = {"model": MODEL, "messages": [SYSTEM, {"role": "user", "content": ALERT}], "tools": TOOLS, **more}
    return client.post("/v1/chat/completions", json=body, headers={"x-seasoned-task": family})


def offered(api, names):
    """Tools, as an API has them."""
    if api == "chat":
        return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]
    if api == "messages":
        return [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in names]


def called(client, api, said, tools=("restart",), **more):
    """The answer to one call of an API."""
    limit = {"max_tokens": 500} if api == "messages" else {}
    body = {"model": MODEL, UNITS[api]: said, "tools": offered(api, tools), **limit, **more}
    return client.post(APIS[api], json=body, headers={"x-seasoned-task": "oncall"})


def results(api, answered, said="done"):
    """The messages by which a client answers the call in an answer."""
    if api == "chat":
        message = answered["choices"][0]["message"]
        return [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": said}]
    if api == "messages":
        result = {"type": "tool_result", "tool_use_id": answered["content"][0]["id"], "content": said}
        return [{"role": "assistant", "content": answered["content"]}, {"role": "user", "content": [result]}]
    [call] = answered["output"]
    return [call, {"type": "function_call_output", "call_id": call["call_id"], "output": said}]


def serving_modes(server, path, modes, **settings):
    settings = GatewaySettings(modes=modes, **{"mode_wait_s": 20.0, "id_wait_s": 20.0, **settings})
    return serving(path, create=False, decisions=DecisionSettings(upstream=server.url), gateway=settings)


def test_examples_are_at_the_end_of_the_last_message_and_are_not_stored(server, path):
    server.script += [Answer("I look."), Answer("I look.")]
    with serving_modes(server, path, {"oncall": "examples"}, holdout=False) as client:
        first, other = asked(client), asked(client, "billing")
    assert (first.headers["x-seasoned-mode"], other.headers["x-seasoned-mode"]) == ("memory", "observe")
    sent, plain = server.bodies()
    assert sent["messages"][0] == SYSTEM and plain["messages"][1]["content"] == ALERT
    assert sent["messages"][1]["content"].startswith(f"{ALERT}\n\n{BEGIN}") and "restart" in str(sent["messages"][1])
    with Memory.open(path) as memory:
        stored = [episode for episode in memory.episodes() if not str(episode.id).startswith("past-")]
        assert {episode.steps[0].state for episode in stored} == {ALERT}
        assert {episode.policy for episode in stored} == {"gateway:examples", "gateway:observe"}


@pytest.mark.parametrize("api", APIS)
def test_examples_reach_each_api_in_its_own_shape(api, server, path):
    restarted = Answer(calls=(("restart", {"service": "checkout"}),))
    server.script += [restarted, Answer("It is quiet.")]
    with serving_modes(server, path, {"oncall": "examples"}, holdout=False) as client:
        said = [{"role": "user", "content": ALERT}]
        first = called(client, api, said)
        said += results(api, first.json())
        second = called(client, api, said)
    assert [one.headers["x-seasoned-mode"] for one in (first, second)] == ["memory", "memory"]
    for sent, action in zip(server.bodies(), ("restart", "It is quiet."), strict=True):
        units = sent[UNITS[api]]
        assert str(sent).count(BEGIN) == str(units[-1]).count(BEGIN) == 1 and action in str(units[-1])
    with Memory.open(path) as memory:
        [stored] = [episode for episode in memory.episodes() if not str(episode.id).startswith("past-")]
        assert [step.action for step in stored.steps] == [RESTART, "It is quiet."]
        assert BEGIN not in str(stored) and stored.policy == "gateway:examples"


def test_control_group_gets_no_memory_and_the_arm_is_stored(server, path):
    server.script += [Answer("I look.")] * 20
    with serving_modes(server, path, {"*": "examples"}) as client:
        answers = [asked(client, user=str(number)) for number in range(20)]
        episodes = {one.headers["x-seasoned-episode-id"]: one.headers for one in answers}
    assert len(episodes) == 20
    sent = [BEGIN in str(body) for body in server.bodies()]
    arms = [one.headers["x-seasoned-arm"] for one in answers]
    assert [arm == "treated" for arm in arms] == sent and set(arms) == {"treated", "control"}
    assert {one.headers["x-seasoned-mode"] for one in answers} == {"memory", "holdout"}
    with Memory.open(path) as memory:
        stored = {str(episode.id): episode.arm for episode in memory.episodes()}
        assert {id_: stored[id_] for id_ in episodes} == {id_: h["x-seasoned-arm"] for id_, h in episodes.items()}


ROLLBACK = '{"arguments":{},"name":"rollback"}'
ROLLED_BACK = f"goal:\n{ALERT}\nrecent:\nrollback\ntool rollback:\n{ALERT}"
CHOICES = {
    "chat": {"type": "function", "function": {"name": "rollback"}},
    "messages": {"type": "tool", "name": "rollback"},
    "responses": {"type": "function", "name": "rollback"},
}
BOTH = ("restart", "rollback")


@pytest.fixture
def clear_path(tmp_path):
    """A memory in which a restart was mostly tried, and failed, and a rollback helped."""
    path = tmp_path / "clear.db"
    with Memory.open(path, encoder=TranscriptEncoder()) as memory:
        for number in range(24):
            action, reward = (ROLLBACK, 1.0) if number % 3 == 0 else (RESTART, -1.0)
            memory.add(Episode("oncall", [Step(ALERT, action, reward)], f"past-{number}"))
            memory.add(Episode("oncall", [Step(ROLLED_BACK, action, reward)], f"past-again-{number}"))
    return path


class Refusing:
    """Answers of a server that refuses some requests."""

    def __init__(self, is_refused, answers):
        self.is_refused, self.answers = is_refused, answers

    def for_body(self, body):
        return self.answers[0 if self.is_refused(body) else 1]


def own_episodes(path):
    """What was stored of the served calls."""
    with Memory.open(path) as memory:
        return [episode for episode in memory.episodes() if not str(episode.id).startswith("past-")]


@pytest.mark.parametrize("api", APIS)
def test_steering_demands_the_tool_that_was_clearly_better(api, server, clear_path):
    server.script += [Answer(calls=(("rollback", {}),)), *[Answer("Rolled back.")] * 3]
    said = [{"role": "user", "content": ALERT}]
    with serving_modes(server, clear_path, {"oncall": "steer"}, holdout=False) as client:
        steered = called(client, api, said, BOTH)
        again = called(client, api, [*said, *results(api, steered.json(), ALERT)], BOTH)
        unknown = called(client, api, [{"role": "user", "content": "the printer on floor 3 hums"}], BOTH)
        aside = called(client, api, said, BOTH, **ONE_TOKEN[api])
    modes = [one.headers["x-seasoned-mode"] for one in (steered, again, unknown)]
    assert modes == ["memory", "base", "base"] and "was called" in again.headers["x-seasoned-reason"]
    changed, *unchanged = [raw for _, _, raw in server.requests]
    assert json.loads(changed) == {**json.loads(steered.request.content), "tool_choice": CHOICES[api]}
    assert unchanged == [one.request.content for one in (again, unknown, aside)]
    first, second = next(one for one in own_episodes(clear_path) if one.steps[0].action == ROLLBACK).steps
    assert first.propensity == 1.0 and first.prior[ROLLBACK] < first.prior[RESTART] and second.prior is None


def test_steering_demands_no_tool_that_was_never_tried(server, tmp_path):
    path = tmp_path / "failed.db"
    with Memory.open(path, encoder=TranscriptEncoder()) as memory:
        for number in range(24):
            failed = RESTART if number % 2 else RESTART.replace("restart", "scale")
            memory.add(Episode("oncall", [Step(ALERT, failed, -1.0)], f"past-{number}"))
            memory.add(Episode("oncall", [Step("the printer hums", RESTART, 1.0)], f"past-desk-{number}"))
    server.script += [Answer("I look.")]
    with serving_modes(server, path, {"oncall": "steer"}, holdout=False) as client:
        answer = called(client, "chat", [{"role": "user", "content": ALERT}], (*BOTH, "scale"))
    assert answer.headers["x-seasoned-mode"] == "base" and server.requests[0][2] == answer.request.content


@pytest.mark.parametrize("choice", ["none", {"type": "function", "function": {"name": "restart"}}])
def test_steering_leaves_the_choice_of_a_client_alone(choice, server, clear_path):
    server.script += [Answer("I look.")]
    with serving_modes(server, clear_path, {"oncall": "steer"}, holdout=False) as client:
        answer = called(client, "chat", [{"role": "user", "content": ALERT}], BOTH, tool_choice=choice)
    assert answer.headers["x-seasoned-mode"] == "base" and server.requests[0][2] == answer.request.content


def test_steering_names_the_tool_where_the_client_demands_any(server, clear_path):
    server.script += [Answer(calls=(("rollback", {}),))]
    with serving_modes(server, clear_path, {"oncall": "steer"}, holdout=False) as client:
        called(client, "chat", [{"role": "user", "content": ALERT}], BOTH, tool_choice="required")
    assert server.bodies()[0]["tool_choice"] == CHOICES["chat"]


def test_steering_under_the_holdout_survives_a_refusal(server, clear_path):
    refusals = [Answer(status=400), Answer(calls=(("restart", {"service": "checkout"}),))]
    server.script = Refusing(lambda body: "tool_choice" in body, refusals)
    with serving_modes(server, clear_path, {"oncall": "steer"}) as client:
        answers = [called(client, "chat", [{"role": "user", "content": ALERT}], BOTH, user=str(n)) for n in range(12)]
    arms = [one.headers["x-seasoned-arm"] for one in answers]
    assert set(arms) == {"treated", "control"} and {one.status_code for one in answers} == {200}
    sent = [raw for _, _, raw in server.requests]
    assert sum(b"tool_choice" in raw for raw in sent) == arms.count("treated")
    assert [raw for raw in sent if b"tool_choice" not in raw] == [one.request.content for one in answers]
    stored = {one.id: one for one in own_episodes(clear_path)}
    episodes = [stored[one.headers["x-seasoned-episode-id"]] for one in answers]
    assert [one.arm for one in episodes] == arms and all(one.steps[0].prior is None for one in episodes)


@pytest.mark.parametrize(("mode", "kind"), [("examples", SHADOW_PROMPT), ("steer", SHADOW)])
def test_control_group_notes_what_memory_would_have_done(mode, kind, server, clear_path):
    server.script += [Answer(calls=(("restart", {"service": "checkout"}),))] * 12
    with serving_modes(server, clear_path, {"oncall": mode}) as client:
        for number in range(12):
            called(client, "chat", [{"role": "user", "content": ALERT}], BOTH, user=str(number))
    controls = {one.id for one in own_episodes(clear_path) if one.steps and one.arm == "control"}
    with Memory.open(clear_path) as memory:
        notes = list(memory.notes(kind=kind))
    assert controls and {note.episode_id for note in notes} == controls
    for note in notes:
        if mode == "steer":
            assert Shadow.from_record(note.body).action == ROLLBACK
        else:
            assert ShadowPrompt.from_record(note.body).examples


def test_assigned_episodes_store_what_their_calls_cost(server, path):
    server.script += [Answer("I look.")] * 4
    with serving_modes(server, path, {"*": "examples"}) as client:
        whole, first = asked(client), asked(client, metadata={"episode_id": "of-two"})
        said = [{"role": "user", "content": ALERT}, first.json()["choices"][0]["message"]]
        said.append({"role": "user", "content": "Go on."})
        asked(client, metadata={"episode_id": "of-two"}, messages=said)
        asked(client, "billing", stream=True)
        client.post("/v1/episodes/of-two/end", json={})
    with Memory.open(path) as memory:
        costs = {note.episode_id: note.body for note in memory.notes(kind="episode.cost")}
    assert costs[whole.headers["x-seasoned-episode-id"]]["tokens"] == 5.0 and costs["of-two"]["tokens"] == 10.0
    assert len(costs) == 3 and all(cost["seconds"] > 0 for cost in costs.values())


def test_observed_episode_stores_no_cost(server, path):
    server.script += [Answer("I look.")]
    with serving_modes(server, path, {"oncall": "examples"}) as client:
        asked(client, "billing")
    with Memory.open(path) as memory:
        assert not memory.notes(kind="episode.cost")
    assert len(own_episodes(path)) == 1


@pytest.mark.parametrize("holdout", [True, False])
def test_paused_family_gets_no_memory(holdout, server, path):
    with Memory.open(path) as memory:
        memory.pause("oncall", "a wrong verdict", author="ann")
    server.script += [Answer("I look.")]
    with serving_modes(server, path, {"*": "examples"}, holdout=holdout) as client:
        answer = asked(client)
    assert answer.headers["x-seasoned-mode"] == "base" and "ann" in answer.headers["x-seasoned-reason"]
    assert server.bodies()[0]["messages"][1]["content"] == ALERT and "x-seasoned-arm" not in answer.headers


def test_mode_is_switched_off_by_itself_in_the_family_that_it_harms(server, path):
    server.script += [Answer("I look.")] * 20
    with serving_modes(server, path, {"*": "examples"}) as client:
        began = asked(client).headers["x-seasoned-episode-id"]
    with Memory.open(path) as memory:
        epoch = drawn(memory)[began]["epoch"]
        for number in range(60):
            drawn_arm = memory.assign(family="oncall", epoch=epoch, bounds=(-1.0, 1.0), unit=f"past-{number + 9}").arm
            reward = 1.0 if drawn_arm == "control" else -1.0
            memory.add(Episode("oncall", [Step(ALERT, RESTART, reward)], f"past-{number + 9}", arm=drawn_arm))
        assert memory.lift("oncall").is_off
    with serving_modes(server, path, {"*": "examples"}) as client:
        harmed, other = [asked(client, user=str(number)).headers for number in range(8)], asked(client, "billing")
    with Memory.open(path) as memory:
        assignments = drawn(memory)
    shares = [assignments[one["x-seasoned-episode-id"]]["control_share"] for one in harmed]
    assert shares == [0.95] * 8  # a few are still treated, so that memory can come back
    assert assignments[other.headers["x-seasoned-episode-id"]]["control_share"] == 0.5
    sent = [BEGIN in str(body) for body in server.bodies()[1:-1]]
    assert sent == [one["x-seasoned-mode"] == "memory" for one in harmed] and not all(sent)


def drawn(memory):
    """The stored assignments by episode."""
    return {note.body["unit"]: note.body for note in memory.notes(kind=ASSIGNMENT)}


@pytest.mark.parametrize("api", APIS)
def test_block_that_a_client_sends_back_is_not_stored(api, server, tmp_path):
    server.script += [Answer(calls=(("restart", {"service": "checkout"}),)), Answer("It is quiet.")] * 2
    block, states = framed_block("do restart"), []
    for name, echoed in (("plain", ""), ("echoed", f"\n\n{block}")):
        path = tmp_path / f"{name}.db"
        with Memory.open(path, encoder=TranscriptEncoder()):
            pass
        with serving_modes(server, path, {}) as client:
            said = [{"role": "user", "content": ALERT + echoed}]
            first = called(client, api, said)
            said += results(api, first.json(), f"done{echoed}")
            assert called(client, api, said).headers["x-seasoned-episode-id"] == first.headers["x-seasoned-episode-id"]
        assert all(BEGIN in str(body) for body in server.bodies()[2:])  # the server gets what the client sent
        [stored] = own_episodes(path)
        assert BEGIN not in str(stored) and [step.action for step in stored.steps] == [RESTART, "It is quiet."]
        states.append([stored.task, *(step.state for step in stored.steps)])
    assert states[0] == states[1]


def test_memory_that_takes_too_long_leaves_the_call_as_it_is(server, path):
    server.script += [Answer("I look.")]
    with serving_modes(server, path, {"*": "examples"}, mode_wait_s=1e-9) as client:
        answer = asked(client)
    assert answer.headers["x-seasoned-mode"] == "base" and "more than" in answer.headers["x-seasoned-reason"]
    assert server.bodies()[0]["messages"][1]["content"] == ALERT


def test_call_without_a_message_fails_open(server, path):
    server.script += [Answer("Yes?")]
    with serving_modes(server, path, {"*": "advise"}, holdout=False) as client:
        answer = client.post("/v1/chat/completions", json={"model": MODEL, "messages": []})
    assert answer.status_code == 200 and answer.headers["x-seasoned-mode"] == "base"
    assert json.loads(server.requests[0][2])["messages"] == []


@pytest.mark.parametrize("modes", [{"a": "votes"}, {"": "examples"}, "examples"])
def test_wrong_modes_are_refused(modes):
    with pytest.raises(InputError):
        GatewaySettings(modes=modes)


@pytest.mark.parametrize("modes", [["oncall=votes"], ["examples", "advise"], ["a=examples", "a=advise"], ["=advise"]])
def test_wrong_option_is_refused_before_the_memory_is_opened(modes, tmp_path):
    options = [part for mode in modes for part in ("--mode", mode)]
    said = CliRunner().invoke(cli, ["serve", str(tmp_path / "agent.db"), "--create", *options])
    assert said.exit_code != 0 and not (tmp_path / "agent.db").exists()
