"""Feedback on decisions over HTTP: by inference and question, in TensorZero's form, late, twice, wrong and revoked."""

from __future__ import annotations

import pytest
from decision_upstream import DESKS, systemone_answer, systemone_request, upstream_server
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import error_of, serving

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError, NotFoundError
from seasoned.service import DecisionSettings, Token
from seasoned.service.bearer_tokens import ANYONE
from seasoned.service.decisions.outcome_feedback import add_any_feedback

URGENT = {"type": "noul", "instructions": "Is it urgent?"}
UNIFORM = DecisionSettings(model="uniform", holdout=False, memory_timeout_s=20.0)


@pytest.fixture
def client():
    with serving(decisions=UNIFORM) as client:
        yield client


def decided(client, **questions):
    response = client.post("/v1/systemone", json=systemone_request(**questions))
    assert response.status_code == 200, response.text
    return response.json()["id"]


def rewards(client):
    """The reward of each action that is evidence."""
    found = client.post("/v1/search", json={"state": systemone_request()["state"], "k": 1000}).json()["neighbors"]
    return {one["action"]: one["reward"] for one in found}


def post(client, **body):
    return client.post("/v1/feedback", json=body)


def test_the_upstream_s_own_id_names_a_decision_while_it_is_of_one(tmp_path):
    with upstream_server() as upstream:
        upstream.body = systemone_answer(urgent={"type": "noul", "noul": 0.7}) | {"id": "resp-1"}
        settings = DecisionSettings(upstream=upstream.url, holdout=False, memory_timeout_s=20.0)
        with serving(decisions=settings) as client:
            first = client.post("/v1/systemone", json=systemone_request(urgent=URGENT))
            assert first.json()["id"] == "resp-1"
            judged = post(client, inference_id="resp-1", question="urgent", right="no")
            assert judged.json()["feedback"]["right"] == "urgent: no"
            assert rewards(client) == {"urgent: no": 1.0, "urgent: yes": 0.0}
            upstream.body = systemone_answer() | {"id": "resp-2"}
            for _ in range(2):
                client.post("/v1/systemone", json=systemone_request(state="another ticket"))
                answer = post(client, inference_id="resp-2", question="desk", right="sales")
            assert answer.status_code == 400 and "several decisions" in answer.text


def test_reward_by_episode_id_is_of_one_step(client):
    steps = [{"state": "page one", "action": "a"}, {"state": "page two", "action": "b"}]
    client.post("/v1/episodes", json={"id": "run-1", "task": "t", "steps": steps})
    assert post(client, episode_id="run-1", step=0, reward=0.5).json()["reward"] == 0.5
    assert post(client, episode_id="run-1", reward=0.25).status_code == 201  # the last step
    for state, reward in (("page one", 0.5), ("page two", 0.25)):
        [found] = client.post("/v1/search", json={"state": state, "threshold": 1.0}).json()["neighbors"]
        assert found["reward"] == reward
    error_of(post(client, episode_id="run-1", step=2, reward=1.0), 404)
    for wrong in ({"reward": True}, {"reward": 1.0, "question": "desk"}, {"reward": 1.0, "kind": "thumbs", "up": True}):
        error_of(post(client, episode_id="run-1", step=0, **wrong), 400)


def test_unrated_decision_is_no_evidence(client):
    decided(client)
    assert rewards(client) == {} and client.get("/v1/stats").json()["awaiting_feedback"] == 1


@pytest.mark.parametrize(
    ("outcome", "reward"),
    [
        ({"reward": 0.25}, 0.25),
        ({"up": True}, 1.0),
        ({"up": False, "comment": "wrong desk"}, -1.0),
        ({"kind": "score", "value": 3, "low": 1, "high": 5}, 0.0),
        ({"right": "it"}, 1.0),  # the first of equal ones by name is executed
        ({"right": "sales", "comment": "as the manual says"}, 0.0),
    ],
    ids=str,
)
def test_outcome_rates_the_executed_option_and_can_be_revoked(client, outcome, reward):
    id_ = decided(client)
    stored = post(client, inference_id=id_, source="crm", **outcome)
    assert stored.status_code == 201, stored.text
    assert rewards(client)["desk: it"] == reward
    if outcome.get("right") == "sales":
        assert rewards(client)["desk: sales"] == 1.0
    revoked = client.delete(f"/v1/feedback/{stored.json()['id']}")
    assert revoked.json() == {"revoked": stored.json()["id"]}
    assert rewards(client) == {}


def test_revocation_by_inference_names_the_decision_that_the_feedback_is_on(client):
    id_, other = decided(client), decided(client)
    feedback_id = post(client, inference_id=id_, right="sales").json()["id"]
    assert "another decision" in error_of(post(client, inference_id=other, revoke=feedback_id), 404)["rule"]
    assert post(client, inference_id=id_, revoke=feedback_id).json() == {"revoked": feedback_id}
    assert rewards(client) == {}
    error_of(post(client, inference_id=id_, revoke="none"), 404)


def test_question_selects_the_decision(client):
    id_ = decided(client, urgent=URGENT)
    error_of(post(client, inference_id=id_, right="yes"), 404)
    post(client, inference_id=id_, question="urgent", right="yes")
    assert rewards(client) == {"urgent: no": 0.0, "urgent: yes": 1.0}
    assert "no, yes" in error_of(post(client, inference_id=id_, question="urgent", right="it"), 400)["next"]
    alone = decided(client)
    assert post(client, inference_id=alone, question="desk", reward=1.0).status_code == 201
    error_of(post(client, inference_id=alone, question="urgent", reward=1.0), 404)
    for by_episode in (
        {"kind": "label", "right": "sales", "episode_id": f"{id_}/desk"},
        {"episode_id": alone, "kind": "thumbs", "up": True},
    ):
        assert post(client, **by_episode).status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reward": 1.0, "right": "it"},
        {"reward": True},
        {"reward": "1"},
        {"reward": 1.0, "comment": "good"},
        {"right": "IT desk"},
        {"right": 7},
        {"up": 1},
        {"kind": "thumbs", "reward": 1.0},
        {"kind": "unknown"},
        {"rewards": 1.0},
        {"reward": 1.0, "question": ""},
        {"reward": 1.0, "weight": -1e400},
    ],
    ids=str,
)
def test_wrong_outcomes_are_refused(client, body):
    id_ = decided(client)
    content = str({"inference_id": id_, **body}).replace("'", '"').replace("True", "true").replace("-inf", "-1e400")
    error_of(client.post("/v1/feedback", content=content, headers={"content-type": "application/json"}), 400)
    assert rewards(client) == {}


def test_unknown_foreign_and_erased_decisions_are_not_found(tmp_path):
    path = tmp_path / "a.db"
    with serving(path, decisions=UNIFORM, namespace=["shop", "desk"]) as client:
        body = {**systemone_request(), "safety_identifier": "customer-7"}
        id_ = client.post("/v1/systemone?namespace=shop", json=body).json()["id"]
        for outcome in ({"reward": 1.0}, {"right": "it"}, {"up": True}):
            for query, inference in (("shop", "dec_none"), ("desk", id_)):
                response = client.post(f"/v1/feedback?namespace={query}", json={"inference_id": inference, **outcome})
                error_of(response, 404)
        client.post("/v1/feedback?namespace=shop", json={"inference_id": id_, "reward": 1.0})
    from seasoned import Memory

    with Memory.open(path, namespace="shop") as memory:
        memory.erase("customer-7")
    with serving(path, namespace="shop") as client:
        assert "erased" in error_of(post(client, inference_id=id_, right="it"), 404)["rule"]
        assert "erased" in error_of(post(client, inference_id=id_, reward=1.0), 404)["rule"]


def test_same_id_again_is_a_no_op_and_with_other_content_a_conflict(client):
    id_ = decided(client)
    for _ in range(2):
        assert post(client, inference_id=id_, reward=1.0, id="mine").status_code == 201
    error_of(post(client, inference_id=id_, reward=0.5, id="mine"), 409)
    assert rewards(client) == {"desk: it": 1.0}


def test_token_speaks_for_its_author_alone(tmp_path):
    tokens = [
        Token("token-of-ann-with-enough-characters", "ann", scopes=["read", "write", "feedback"]),
        Token("token-of-bob-with-enough-characters", "bob", scopes=["read", "feedback"]),
    ]
    with serving(decisions=UNIFORM, token=tokens) as client:

        def sent(token, method, url, **more):
            return client.request(method, url, headers={"authorization": f"Bearer {token.token}"}, **more)

        ann, bob = tokens
        id_ = sent(ann, "POST", "/v1/systemone", json=systemone_request()).json()["id"]
        reward = sent(ann, "POST", "/v1/feedback", json={"inference_id": id_, "reward": 1.0}).json()["id"]
        error_of(sent(bob, "DELETE", f"/v1/feedback/{reward}"), 403)
        error_of(sent(bob, "POST", "/v1/feedback", json={"inference_id": id_, "revoke": reward}), 403)
        error_of(sent(bob, "POST", "/v1/feedback", json={"inference_id": id_, "reward": 1.0, "author": "ann"}), 403)
        metric = {"metric_name": "solved", "value": True, "inference_id": id_}
        assert sent(bob, "POST", "/v1/feedback", json=metric).status_code == 201
        assert sent(ann, "DELETE", f"/v1/feedback/{reward}").status_code == 200
        for value in (-0.25, -0.5):  # of the token's author too, a metric replaces its earlier value alone
            metric = {"metric_name": "cost", "value": value, "inference_id": id_}
            mine = sent(ann, "POST", "/v1/feedback", json=metric).json()["feedback_id"]
        sent(ann, "POST", "/v1/feedback", json={"metric_name": "fast", "value": 0.125, "inference_id": id_})
        client.headers["authorization"] = f"Bearer {ann.token}"
        assert list(rewards(client).values()) == [1.0 - 0.5 + 0.125]
        assert sent(bob, "DELETE", f"/v1/feedback/{mine}").status_code == 403
        assert sent(ann, "DELETE", f"/v1/feedback/{mine}").status_code == 200


# ------------------------------------------------------------------------------------------ TensorZero's form


@pytest.mark.parametrize(
    ("name", "value", "reward"),
    [("solved", True, 1.0), ("solved", False, -1.0), ("rating", 0.5, 0.5), ("demonstration", "it", 1.0)],
)
def test_metric_is_a_reward(client, name, value, reward):
    id_ = decided(client)
    for target in ("inference_id", "episode_id"):
        stored = post(client, metric_name=name, value=value, **{target: id_}, tags={"team": "a"}, dryrun=False)
        assert (stored.status_code, set(stored.json())) == (201, {"feedback_id"}), stored.text
    assert rewards(client) == {"desk: it": reward}  # the second of one metric replaces the first


def test_metrics_of_different_names_add_up(client):
    id_ = decided(client)
    for name in ("solved", "fast"):
        post(client, metric_name=name, value=0.5, inference_id=id_)
    assert rewards(client) == {"desk: it": 1.0}


def test_dry_run_and_comment_rate_nothing(client):
    id_ = decided(client)
    assert post(client, metric_name="solved", value=True, inference_id=id_, dryrun=True).json()["feedback_id"]
    assert post(client, metric_name="comment", value="slow", inference_id=id_).json()["feedback_id"]
    assert rewards(client) == {}
    error_of(post(client, metric_name="solved", value=True, inference_id="none", dryrun=True), 404)
    for value in (1e200, 10**400):
        error_of(post(client, metric_name="rating", value=value, inference_id=id_, dryrun=True), 400)


@pytest.mark.parametrize(
    "body",
    [
        {"metric_name": "solved", "value": True},
        {"metric_name": "solved", "value": True, "episode_id": "e", "inference_id": "i"},
        {"metric_name": "solved", "value": "yes", "inference_id": "i"},
        {"metric_name": "solved", "value": None, "inference_id": "i"},
        {"metric_name": "comment", "value": 1, "inference_id": "i"},
        {"metric_name": "", "value": 1, "inference_id": "i"},
        {"metric_name": "solved", "value": 1, "inference_id": "i", "tags": [1]},
        {"metric_name": "solved", "value": 1, "inference_id": "i", "dryrun": "no"},
        {"metric_name": "solved", "inference_id": "i"},
        {"metric_name": "solved", "value": 1, "inference_id": "i", "unknown": 1},
    ],
    ids=str,
)
def test_wrong_metrics_are_refused(client, body):
    error_of(client.post("/v1/feedback", json=body), 400)


FIELDS = [
    "inference_id",
    "question",
    "reward",
    "right",
    "up",
    "kind",
    "revoke",
    "metric_name",
    "value",
    "episode_id",
    "id",
]


def test_any_body_is_stored_or_refused_with_its_reason():
    values = st.none() | st.booleans() | st.floats(allow_nan=False) | st.sampled_from([*DESKS, "desk", "thumbs", "ID"])
    with serving(decisions=UNIFORM) as client:
        id_ = decided(client)

        @given(st.dictionaries(st.sampled_from(FIELDS), values, max_size=4))
        @settings(max_examples=50, deadline=None)
        def tried(body):
            body = {name: id_ if value == "ID" else value for name, value in body.items()}
            response = client.post("/v1/feedback", json=body)
            if response.status_code != 201:
                assert response.status_code in (400, 404, 409), response.text
                error_of(response, response.status_code)

        tried()


# ------------------------------------------------------------------------------------- forms of other systems


@pytest.mark.parametrize(
    ("score", "reward"),
    [
        (lambda id_: {"name": "solved", "value": 1, "dataType": "BOOLEAN", "traceId": id_, "comment": "ok"}, 1.0),
        (lambda id_: {"name": "rating", "value": 0.5, "sessionId": "unknown", "traceId": id_}, 0.5),
        (lambda id_: {"trace_id": id_, "value": -5, "weight": 0.5, "metadata": {"text": "slow"}}, -0.25),
        (
            lambda id_: {
                "name": "gen_ai.evaluation.result",
                "attributes": {
                    "gen_ai.evaluation.name": "Relevance",
                    "gen_ai.evaluation.score.label": "fail",
                    "gen_ai.response.id": id_,
                },
            },
            -1.0,
        ),
    ],
)
def test_score_of_another_system_is_a_reward(client, score, reward):
    id_ = decided(client)
    for _ in range(2):  # delivered twice, counted once
        stored = post(client, **score(id_))
        assert (stored.status_code, set(stored.json())) == (201, {"feedback_id"}), stored.text
    assert rewards(client) == {"desk: it": reward}
    error_of(post(client, **score("none")), 404)


def test_score_of_another_system_without_a_known_meaning_is_refused(client):
    id_ = decided(client)
    for score in ({"name": "stars", "value": 4}, {"name": "tone", "value": "so so"}, {"name": "ok", "value": None}):
        error_of(post(client, **score, traceId=id_), 400)
    error_of(post(client, trace_id=id_, value=11), 400)
    assert rewards(client) == {}


def evaluation(response_id, name="correct", score=1.0):
    """An event of OpenTelemetry."""
    values = {
        "gen_ai.evaluation.name": {"stringValue": name},
        "gen_ai.evaluation.score.value": {"doubleValue": score},
        "gen_ai.response.id": {"stringValue": response_id},
    }
    attributes = [{"key": key, "value": value} for key, value in values.items()]
    return {"name": "gen_ai.evaluation.result", "eventName": "gen_ai.evaluation.result", "attributes": attributes}


@pytest.mark.parametrize("is_log", [True, False], ids=["log records", "span events"])
def test_evaluations_of_an_otlp_request_are_stored_once(is_log):
    events = [evaluation("e0"), evaluation("e1", score=-1.0), evaluation("unknown"), evaluation("e1", "stars", 4.0)]
    request = {"resourceLogs": [{"scopeLogs": [{"logRecords": events[:2]}, {"logRecords": events[2:]}]}]}
    if not is_log:
        spans = [{"traceId": "ab", "spanId": "cd", "name": "chat", "events": events}]
        request = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    with Memory.open(":memory:") as memory:
        memory.add_many(Episode("t", [Step("s", "a")], f"e{n}", awaits_feedback=True) for n in range(2))
        for _ in range(2):
            stored = add_any_feedback(memory, request, ANYONE, {})
            assert len(stored["feedback_ids"]) == 2
            assert [seen in error for seen, error in zip(("unknown", "stars"), stored["refused"], strict=True)] == [
                True,
                True,
            ]
        assert [(one.episode_id, one.reward) for one in memory.events()] == [("e0", 1.0), ("e1", -1.0)]


@pytest.mark.parametrize(
    ("events", "error"), [([evaluation("unknown")] * 2, NotFoundError), ([evaluation("e")] * 1001, InputError)]
)
def test_otlp_request_without_a_score_that_can_be_stored_is_refused(events, error):
    with Memory.open(":memory:") as memory, pytest.raises(error):
        add_any_feedback(memory, {"resourceLogs": [{"scopeLogs": [{"logRecords": events}]}]}, ANYONE, {})
