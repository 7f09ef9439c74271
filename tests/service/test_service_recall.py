"""Advice, examples and decisions over HTTP are those of the library, and are refused as elsewhere."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import pytest
from raw_upstream import GUARD_S
from serving import TOKEN, error_of, serving

from seasoned import Advisor, Episode, Examples, JitRL, Memory, Step
from seasoned.decisions import Decider
from seasoned.policies.examples import ExampleQuery, render
from seasoned.service import DecisionSettings, Token
from seasoned.service.recall.recall_routes import PartOfMemory
from seasoned.service.recall.recall_schemas import MAX_BUDGET_TOKENS, MAX_LISTED_OPTIONS
from seasoned.states import Redactor

STATE = "page:cart total:12"
ALONE = DecisionSettings(holdout=False, choose="sample")
DECIDE = {"state": STATE, "options": ["pay", "back"]}
IN_EPISODE = {**DECIDE, "episode_id": "run-1", "task": "checkout"}


def fill(memory, n=4):
    for number in range(n):
        for action, reward in (("pay", 1.0), ("back", 0.0)):
            memory.add(Episode("checkout", [Step(STATE, action, reward)], f"{action}-{number}"))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("recall") / "a.db"
    with Memory.open(path) as memory:
        fill(memory)
    return path


@pytest.fixture(scope="module")
def client(path):
    """A client that only asks about what is stored."""
    with serving(path, create=False, decisions=ALONE) as client:
        yield client


def answer(client, address, body):
    """Return an answer, which must be as /openapi.json documents it."""
    response = client.post(address, json=body)
    assert response.status_code == 200, response.text
    operation = client.get("/openapi.json").json()["paths"][address]["post"]
    sent, returned = (
        one["content"]["application/json"]["schema"]
        for one in (operation["requestBody"], operation["responses"]["200"])
    )
    jsonschema.validate(body, sent)
    jsonschema.validate(response.json(), returned)
    return response.json()


def test_advice_is_that_of_the_library(client, path):
    given = answer(client, "/v1/advice", {"state": STATE})
    with Memory.open(path) as memory:
        advice = Advisor(memory).advise(STATE)
    assert given["text"] == advice.text
    assert [one["action"] for one in given["prefer"]] == ["pay"] == [one.action for one in advice.prefer]
    assert given["evidence"] == {"steps": 8, "states": 1}
    among = answer(client, "/v1/advice", {"state": STATE, "actions": ["back", "wait"], "task": "checkout", "step": 3})
    assert "pay" not in among["text"]


def test_examples_are_those_of_the_library(client, path):
    given = answer(client, "/v1/examples", {"task": "checkout", "state": STATE})
    with Memory.open(path) as memory:
        found = Examples(memory).retrieve(ExampleQuery("checkout", observation=STATE))
    assert given["text"] == render(found) != ""
    assert given["shown"] == [list(one.place) for one in found]
    assert [one["action"] for one in given["examples"]] == ["pay"]
    left_out = {"task": "checkout", "state": STATE, "exclude_task": "checkout", "purpose": "plan", "budget_tokens": 300}
    assert answer(client, "/v1/examples", left_out) == {"text": "", "examples": [], "shown": []}


def test_shown_examples_are_noted_with_the_posted_step():
    with serving(decisions=ALONE) as client:
        client.post(
            "/v1/episodes", json={"task": "t", "id": "e1", "steps": [{"state": "s", "action": "a", "reward": 1}]}
        )
        found = answer(client, "/v1/examples", {"task": "t", "state": "s"})
        steps = [{"state": "s", "action": "a", "reward": 1, "shown": found["shown"]}, {"state": "s2", "action": "b"}]
        for _ in range(2):  # the same again is a no-op
            posted = client.post("/v1/episodes", json={"task": "t", "id": "e2", "steps": steps, "final_state": "end"})
            assert posted.status_code == 201, posted.text
        assert client.get("/v1/episodes/e2").json()["final_state"] == "end"
        [example] = answer(client, "/v1/examples", {"task": "t", "state": "s"})["examples"]
        assert example["n_shown"] == 1
        bad = {"task": "t", "steps": [{**steps[1], "shown": ["e1"]}]}
        assert "example" in " ".join(error_of(client.post("/v1/episodes", json=bad), 400).values())
        many = {"task": "t", "steps": [{**steps[1], "shown": [["e1", 0]] * 101}]}
        assert "101" in error_of(client.post("/v1/episodes", json=many), 400)["seen"]


@pytest.mark.parametrize(
    "prior", [{}, {"probabilities": {"pay": 0.2, "back": 0.8}}, {"logprobs": {"pay": -2, "back": -1}}]
)
def test_decision_awaits_feedback_and_is_shifted_by_it(prior):
    body = {**DECIDE, **prior, "question": "what next"}
    with serving(decisions=ALONE) as client:
        first = answer(client, "/v1/decide", body)
        assert first["mode"] == "base" and first["probabilities"] == first["base"]
        assert client.get("/v1/stats").json()["awaiting_feedback"] == 1
        for _ in range(4):
            decision = answer(client, "/v1/decide", body)
            rated = client.post("/v1/feedback", json={"inference_id": decision["id"], "right": "back"})
            assert rated.status_code == 201, rated.text
        shifted = answer(client, "/v1/decide", body)
        assert shifted["mode"] == "memory" and shifted["probabilities"]["back"] > first["base"]["back"]
        assert shifted["propensity"] == shifted["probabilities"][shifted["action"]]
        stored = client.get(f"/v1/episodes/{shifted['id']}").json()["steps"][0]
        assert stored["action"] == f"what next: {shifted['action']}"
        assert set(stored["prior"]) == {"what next: pay", "what next: back"}


def test_decision_is_that_of_the_library(path):
    with serving(path, create=False, decisions=ALONE) as client:
        given = answer(
            client, "/v1/decide", {**DECIDE, "task": "checkout", "probabilities": {"pay": 0.3, "back": 0.7}, "seed": 3}
        )
    with Memory.open(path) as memory:
        made = Decider(memory, {"pay": 0.3, "back": 0.7}).decide(STATE, ["pay", "back"], task="checkout", seed=3)
    assert given["probabilities"] == pytest.approx(dict(made.probs))
    assert (given["action"], given["kl_nats"]) == (made.action, pytest.approx(made.kl_nats))


def test_steps_of_an_episode_share_an_arm_and_are_posted_by_the_client():
    with serving(decisions=DecisionSettings(choose="sample")) as client:
        arms = []
        for number in range(4):
            steps, id_ = [], f"run-{number}"
            for step, state in enumerate(("page:cart", "page:pay")):
                given = answer(client, "/v1/decide", {**IN_EPISODE, "state": state, "episode_id": id_, "step": step})
                assert given["id"] is None and given["arm"] in ("treated", "control")
                assert (given["mode"] == "holdout") == (given["arm"] == "control")
                steps.append({"state": state, **{name: given[name] for name in ("action", "prior", "propensity")}})
                arms.append(given["arm"])
            assert client.get("/v1/stats").json()["episodes"] == number
            episode = {"id": id_, "task": "checkout", "arm": given["arm"], "policy": given["policy"], "steps": steps}
            posted = client.post("/v1/episodes", json={**episode, "awaits_feedback": True})
            assert posted.status_code == 201, posted.text
            client.post("/v1/feedback", json={"inference_id": id_, "reward": 1.0})
        assert arms[::2] == arms[1::2]
        listed = client.get("/v1/lift").json()
        [lift] = listed["families"]
        assert (lift["n_treated"], lift["n_control"]) == (arms[::2].count("treated"), arms[::2].count("control"))
        documented = client.get("/openapi.json").json()["paths"]["/v1/lift"]["get"]["responses"]["200"]
        jsonschema.validate(listed, documented["content"]["application/json"]["schema"])


def test_step_of_an_episode_is_that_of_the_library(client, path):
    logprobs = {"pay": -1.2, "back": -0.4}
    given = answer(client, "/v1/decide", {**IN_EPISODE, "logprobs": logprobs, "seed": 5})
    with Memory.open(path) as memory:
        made = JitRL(memory).decide(STATE, logprobs, task="checkout", seed=5)
    assert given["probabilities"] == pytest.approx(dict(made.probs)) and given["mode"] == "memory"
    assert given["action"] == made.action and given["prior"] == logprobs


def test_state_that_is_no_text_is_answered_as_it_is_stored(client):
    given = answer(client, "/v1/decide", {**IN_EPISODE, "state": {"total": 1e-7, "cart": ["b"]}})
    assert given["state"] == '{"cart":["b"],"total":1e-07}'
    assert answer(client, "/v1/decide", IN_EPISODE)["state"] is None


def test_memory_adds_admissible_actions_alone(client):
    body = {**IN_EPISODE, "options": ["back", "wait"]}
    assert set(answer(client, "/v1/decide", body)["probabilities"]) == {"back", "wait"}
    assert "pay" in answer(client, "/v1/decide", {**body, "admissible": "any"})["probabilities"]
    listed = answer(client, "/v1/decide", {**body, "admissible": ["back", "wait"]})
    assert set(listed["probabilities"]) == {"back", "wait"}


def test_most_probable_option_is_taken_where_the_service_says_so(path):
    with serving(path, create=False, decisions=DecisionSettings(holdout=False, choose="argmax")) as client:
        for body in (IN_EPISODE, {**DECIDE, "task": "checkout"}):
            given = answer(client, "/v1/decide", body)
            assert given["action"] == max(given["probabilities"], key=given["probabilities"].get) == "pay"
            assert given["propensity"] == 1.0


def test_paused_family_is_decided_without_memory():
    with serving(token=[Token(TOKEN, "ann", scopes=["admin"])], decisions=DecisionSettings()) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        client.post("/v1/decide", json=IN_EPISODE)
        pause = {"action": "pause", "family": "checkout", "reason": "a new page"}
        assert client.post("/v1/operations/switches", json=pause).status_code in (200, 201)
        for body in ({**IN_EPISODE, "episode_id": "run-2"}, {**DECIDE, "task": "checkout"}):
            given = answer(client, "/v1/decide", body)
            assert (given["mode"], given["arm"]) == ("base", None) and "paused" in given["reason"]


ADDRESSES = {"/v1/advice": {"state": STATE}, "/v1/examples": {"task": "t"}, "/v1/decide": DECIDE}


@pytest.mark.parametrize(
    ("scope", "allowed"), [("read", ["/v1/advice", "/v1/examples"]), ("write", ["/v1/decide"]), ("feedback", [])]
)
def test_tokens_need_the_scope(scope, allowed):
    with serving(token=[Token(TOKEN, "ann", scopes=[scope])], decisions=ALONE) as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for address, body in ADDRESSES.items():
            response = client.post(address, json=body, headers=headers)
            assert response.status_code == (200 if address in allowed else 403), response.text
            error_of(client.post(address, json=body), 401)


def test_read_only_service_decides_and_stores_nothing(path):
    with serving(path, create=False, read_only=True, decisions=DecisionSettings()) as client:
        before = client.get("/v1/stats").json()
        for body in (DECIDE, IN_EPISODE):
            assert answer(client, "/v1/decide", body)["id"] is None
        assert "pay" in answer(client, "/v1/advice", {"state": STATE})["text"]
        assert client.get("/v1/stats").json() == before


def test_each_namespace_answers_from_its_own_memory(tmp_path):
    for name in ("shop", "desk"):
        with Memory.open(tmp_path / "a.db", namespace=name) as memory:
            fill(memory, 4 if name == "shop" else 0)
    with serving(tmp_path / "a.db", create=False, namespace=["shop", "desk"], decisions=ALONE) as client:
        texts = [
            client.post(f"/v1/advice?namespace={name}", json={"state": STATE}).json()["text"]
            for name in ("shop", "desk")
        ]
        assert "pay" in texts[0] and texts[1] == ""
        error_of(client.post("/v1/advice", json={"state": STATE}), 400)


SECRET = "ann@example.com"


def test_texts_are_redacted_before_they_are_compared_or_stored(tmp_path):
    options = [f"write to {SECRET}", "wait"]
    with serving(tmp_path / "a.db", redact=Redactor(), decisions=ALONE) as client:
        for number in range(4):
            for action, reward in zip(options, (1.0, 0.0), strict=True):
                steps = [{"state": f"mail of bob{number}@example.com", "action": action, "reward": reward}]
                assert client.post("/v1/episodes", json={"task": f"answer {SECRET}", "steps": steps}).status_code == 201
        body = {"state": f"mail of {SECRET}", "options": options, "task": f"answer {SECRET}"}
        given = answer(client, "/v1/decide", {**body, "episode_id": "run-1"})
        assert given["probabilities"][options[0]] > 0.5 and set(given["prior"]) == set(options)
        assert answer(client, "/v1/decide", body)["probabilities"][options[0]] > 0.5
        assert SECRET not in client.post("/v1/examples", json={"task": body["task"], "state": body["state"]}).text
        two = {**body, "options": ["to a@x.org", "to b@x.org"]}
        for more in ({}, {"episode_id": "run-1"}):
            error_of(client.post("/v1/decide", json={**two, **more}), 400)
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


BAD = [
    ("/v1/advice", {}, "state"),
    ("/v1/advice", {"stat": "s"}, "'state'"),
    ("/v1/advice", {"state": " "}, "blank"),
    ("/v1/advice", {"state": ["s"]}, "str"),
    ("/v1/advice", {"state": "s" * 2**21}, "bytes"),
    ("/v1/advice", {"state": "s", "actions": []}, "candidate"),
    ("/v1/advice", {"state": "s", "actions": "pay"}, "array"),
    ("/v1/advice", {"state": "s", "actions": ["a", " A"]}, "once"),
    ("/v1/advice", {"state": "s", "actions": ["a"] * (MAX_LISTED_OPTIONS + 1)}, str(MAX_LISTED_OPTIONS)),
    ("/v1/advice", {"state": "s", "step": -1}, "step"),
    ("/v1/advice", {"state": "s", "task": 7}, "task"),
    ("/v1/examples", {}, "task"),
    ("/v1/examples", {"task": ""}, "goal"),
    ("/v1/examples", {"task": "t", "purpose": "eat"}, "purpose"),
    ("/v1/examples", {"task": "t", "budget_tokens": 1}, "budget"),
    ("/v1/examples", {"task": "t", "budget_tokens": MAX_BUDGET_TOKENS + 1}, str(MAX_BUDGET_TOKENS)),
    ("/v1/examples", {"task": "t", "k": 3}, "'k'"),
    ("/v1/decide", {"state": "s"}, "options"),
    ("/v1/decide", {"options": ["a"]}, "state"),
    ("/v1/decide", {"state": "", "options": ["a"]}, "state"),
    ("/v1/decide", {"state": "s", "options": []}, "option"),
    ("/v1/decide", {"state": "s", "options": {"a": 1}}, "array"),
    ("/v1/decide", {"state": "s", "options": ["a", "a"]}, "twice"),
    ("/v1/decide", {"state": "s", "options": [["a"]]}, "str"),
    ("/v1/decide", {"state": "s", "options": ["a"] * (MAX_LISTED_OPTIONS + 1)}, str(MAX_LISTED_OPTIONS)),
    ("/v1/decide", {"state": "s", "options": ["a", "b"], "probabilities": {"a": 1}}, "without 'b'"),
    ("/v1/decide", {"state": "s", "options": ["a"], "probabilities": {"a": 1, "c": 0}}, "of 'c'"),
    ("/v1/decide", {"state": "s", "options": ["a"], "probabilities": {"a": -0.1}}, "probability"),
    ("/v1/decide", {"state": "s", "options": ["a"], "probabilities": {"a": True}}, "probability"),
    ("/v1/decide", {"state": "s", "options": ["a"], "probabilities": {"a": 0}}, "above 0"),
    ("/v1/decide", {"state": "s", "options": ["a"], "probabilities": [1]}, "number"),
    ("/v1/decide", {"state": "s", "options": ["a"], "logprobs": {"a": 0.1}}, "logprobs"),
    ("/v1/decide", {"state": "s", "options": ["a"], "logprobs": {"a": 0}, "probabilities": {"a": 1}}, "one of the two"),
    ("/v1/decide", {"state": "s", "options": ["a", "a"], "episode_id": "e", "task": "t"}, "twice"),
    ("/v1/decide", {"state": "s", "options": ["a"], "step": 1}, "step"),
    ("/v1/decide", {"state": "s", "options": ["a"], "admissible": "any"}, "admissible"),
    ("/v1/decide", {"state": "s", "options": ["a"], "episode_id": "e"}, "task"),
    ("/v1/decide", {"state": "s", "options": ["a"], "episode_id": "e", "task": "t", "subject": "p"}, "subject"),
    ("/v1/decide", {"state": "s", "options": ["a"], "episode_id": " ", "task": "t"}, "episode_id"),
    (
        "/v1/decide",
        {"state": "s", "options": ["a"], "episode_id": "e", "task": "t", "admissible": "some"},
        "admissible",
    ),
    ("/v1/decide", {"state": "s", "options": ["a"], "seed": -1}, "seed"),
    ("/v1/decide", {"state": "s", "options": ["a"], "seed": 10**40}, "seed"),
]


@pytest.mark.parametrize(("address", "body", "names"), BAD)
def test_bad_request_is_refused_with_the_reason(client, address, body, names):
    before = client.get("/v1/stats").json()
    error = error_of(client.post(address, json=body), 400)
    assert names in " ".join(error.values())
    assert client.get("/v1/stats").json() == before


def test_id_that_is_stored_is_a_409():
    with serving(decisions=ALONE) as client:
        assert answer(client, "/v1/decide", {**DECIDE, "id": "mine"})["id"] == "mine"
        assert (
            error_of(client.post("/v1/decide", json={**DECIDE, "state": "other", "id": "mine"}), 409)["error"]
            == "EpisodeConflictError"
        )


def test_largest_requests_are_answered(client):
    options = [f"option {number}" for number in range(MAX_LISTED_OPTIONS)]
    assert len(answer(client, "/v1/decide", {**IN_EPISODE, "options": options})["probabilities"]) == MAX_LISTED_OPTIONS
    answer(client, "/v1/advice", {"state": "word " * 20_000, "actions": options})
    answer(
        client, "/v1/examples", {"task": "word " * 5_000, "state": "s " * 20_000, "budget_tokens": MAX_BUDGET_TOKENS}
    )


def test_memory_that_is_slow_to_prepare_holds_no_other():
    goes_on, begun = threading.Event(), threading.Event()

    def make(memory):
        if memory.namespace == "slow":
            begun.set()
            assert goes_on.wait(GUARD_S)
        return memory.namespace

    part = PartOfMemory(make)
    with (
        Memory.open(":memory:", namespace="slow") as slow,
        Memory.open(":memory:", namespace="quick") as quick,
        ThreadPoolExecutor(2) as threads,
    ):
        waiting = threads.submit(part, slow)
        assert begun.wait(GUARD_S)
        try:
            assert threads.submit(part, quick).result(GUARD_S / 2) == "quick"
            assert not waiting.done()
        finally:
            goes_on.set()
        assert waiting.result() == "slow"
