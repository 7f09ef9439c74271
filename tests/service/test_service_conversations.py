"""Conversations over HTTP: memory's block for a request, and the episode of a transcript, as the gateway has them."""

from __future__ import annotations

import jsonschema
import pytest
from serving import TOKEN, error_of, serving

from seasoned.integrations.clients.prompt_block import framed_block
from seasoned.service import DecisionSettings, Token

ALONE = DecisionSettings(holdout=False)
ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "My lamp arrived broken."}]
CALL = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order": 17}'}}
CALLED = [
    *ASKED,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
    {"role": "assistant", "content": "It is refunded."},
]


def post(client, address, body, status=200):
    """Return an answer, which must be as /openapi.json documents it."""
    response = client.post(address, json=body)
    assert response.status_code == status, response.text
    operation = client.get("/openapi.json").json()["paths"][address]["post"]
    for document, part in ((body, operation["requestBody"]), (response.json(), operation["responses"][str(status)])):
        jsonschema.validate(document, part["content"]["application/json"]["schema"])
    return response.json()


def test_transcript_is_an_episode_and_is_recalled():
    with serving(decisions=ALONE) as client:
        stored = post(client, "/v1/transcripts", {"messages": CALLED, "id": "t1", "task": "desk", "reward": 1.0}, 201)
        assert stored == {"id": "t1", "steps": 2}
        episode = client.get("/v1/episodes/t1").json()
        assert [step["reward"] for step in episode["steps"]] == [0.0, 1.0]
        assert episode["steps"][0]["state"] == "My lamp arrived broken." and "refund" in episode["steps"][0]["action"]
        body = {"messages": ASKED, "task": "desk", "tools": ["refund"]}
        found = post(client, "/v1/recall", body)
        assert found["mode"] == "memory" and found["shown"] == [["t1", 0]]
        assert found["block"] == framed_block(found["text"]) and "refund(order=17)" in found["text"]
        assert post(client, "/v1/recall", {**body, "tools": ["search"]})["text"] == ""  # a call that is not possible


def test_advice_names_what_was_clearly_better():
    with serving(decisions=ALONE) as client:
        for number in range(4):
            for answer, reward in (("Sorry, it is refunded.", 1.0), ("That is your problem.", -1.0)):
                messages = [*ASKED, {"role": "assistant", "content": answer}]
                post(
                    client, "/v1/transcripts", {"messages": messages, "id": f"{reward}-{number}", "reward": reward}, 201
                )
        found = post(client, "/v1/recall", {"messages": ASKED, "mode": "advise"})
        assert "prefer" in found["text"] and "refunded" in found["text"] and found["shown"] == []


def test_block_and_shown_examples_are_read_of_a_transcript():
    with serving(decisions=ALONE) as client:
        post(client, "/v1/transcripts", {"messages": CALLED, "id": "t1", "task": "desk", "reward": 1.0}, 201)
        found = post(client, "/v1/recall", {"messages": ASKED, "task": "desk", "tools": ["refund"]})
        told = [{"role": "user", "content": f"{ASKED[1]['content']}\n\n{found['block']}"}]
        answer = {**CALLED[2], "shown": found["shown"]}
        post(client, "/v1/transcripts", {"messages": [*told, answer], "id": "t2", "task": "desk", "reward": 1.0}, 201)
        assert client.get("/v1/episodes/t2").json()["steps"][0]["state"] == ASKED[1]["content"]
        listed = client.post("/v1/examples", json={"task": "desk", "state": ASKED[1]["content"]}).json()["examples"]
        assert sum(one["n_shown"] for one in listed) == 1


def test_episode_of_the_control_group_gets_no_block():
    with serving(decisions=DecisionSettings()) as client:
        post(client, "/v1/transcripts", {"messages": CALLED, "id": "t1", "task": "desk", "reward": 1.0}, 201)
        body = {"messages": ASKED, "task": "desk", "tools": ["refund"], "model": "m"}
        arms = []
        for number in range(5):
            first, again = (post(client, "/v1/recall", {**body, "episode_id": f"run-{number}"}) for _ in range(2))
            assert first == again and (first["block"] == "") == (first["arm"] == "control")
            arms.append(first["arm"])
            stored = {"messages": CALLED, "id": f"run-{number}", "task": "desk", "arm": first["arm"], "reward": 1.0}
            post(client, "/v1/transcripts", stored, 201)
        [lift] = client.get("/v1/lift").json()["families"]
        assert (lift["n_treated"], lift["n_control"]) == (arms.count("treated"), arms.count("control"))
        assert post(client, "/v1/recall", body)["arm"] is None


def test_paused_family_gets_no_block():
    with serving(token=[Token(TOKEN, "ann", scopes=["admin"])], decisions=ALONE) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        post(client, "/v1/transcripts", {"messages": CALLED, "task": "desk", "reward": 1.0}, 201)
        client.post("/v1/operations/switches", json={"action": "pause", "family": "desk", "reason": "a new desk"})
        found = post(client, "/v1/recall", {"messages": ASKED, "task": "desk", "tools": ["refund"]})
        assert found["block"] == "" and "paused" in found["reason"]


def test_reading_token_recalls_and_stores_nothing():
    with serving(token=[Token(TOKEN, "ann", scopes=["read"])], decisions=ALONE) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        assert post(client, "/v1/recall", {"messages": ASKED})["text"] == ""
        error_of(client.post("/v1/recall", json={"messages": ASKED, "episode_id": "e"}), 403)
        error_of(client.post("/v1/transcripts", json={"messages": CALLED}), 403)


BAD = [
    ("/v1/recall", {}, "messages"),
    ("/v1/recall", {"messages": []}, "message"),
    ("/v1/recall", {"messages": "hi"}, "array"),
    ("/v1/recall", {"messages": ["hi"]}, "messages[0]"),
    ("/v1/recall", {"messages": ASKED[:1]}, "instructions"),
    ("/v1/recall", {"messages": [{"role": "wizard", "content": "hi"}]}, "wizard"),
    ("/v1/recall", {"messages": [{"role": "user", "content": 7}]}, "content"),
    ("/v1/recall", {"messages": ASKED, "mode": "steer"}, "mode"),
    ("/v1/recall", {"messages": ASKED, "tools": [7]}, "tools"),
    ("/v1/recall", {"messages": ASKED, "task": " "}, "task"),
    ("/v1/recall", {"messages": ASKED, "stream": True}, "'stream'"),
    ("/v1/transcripts", {"messages": ASKED}, "turn"),
    ("/v1/transcripts", {"messages": CALLED, "reward": "1"}, "reward"),
    ("/v1/transcripts", {"messages": CALLED, "ending": "lost"}, "ending"),
    ("/v1/transcripts", {"messages": CALLED, "awaits_feedback": "no"}, "awaits_feedback"),
    ("/v1/transcripts", {"messages": [*CALLED[:-1], {**CALLED[-1], "shown": ["t1"]}]}, "example"),
    ("/v1/transcripts", {"messages": [*CALLED[:-1], {**CALLED[-1], "shown": [["t1", 0]] * 101}]}, "101"),
    ("/v1/transcripts", {"messages": [{"role": "user", "content": "a\0b"}, CALLED[-1]]}, "NUL"),
    ("/v1/transcripts", {"messages": [ASKED[1]] * 10_001}, "10001"),
]


@pytest.mark.parametrize(("address", "body", "names"), BAD)
def test_bad_request_is_refused_with_the_reason(served, address, body, names):
    error = error_of(served.post(address, json=body), 400)
    assert names in " ".join(error.values())
    assert served.get("/v1/stats").json()["episodes"] == 0


@pytest.fixture(scope="module")
def served():
    with serving(decisions=ALONE) as client:
        yield client
