"""Decision requests over HTTP: answered by an upstream server or a model, shifted by memory, stored, learned from."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from decision_upstream import (
    DESKS,
    TICKET,
    decisions_answer,
    decisions_request,
    systemone_answer,
    systemone_request,
    upstream_server,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import TOKEN, serving

from seasoned import Memory
from seasoned.errors import ConfigError, InputError, ModelUnavailableError
from seasoned.service import DecisionSettings, Token
from seasoned.service.decisions.upstream import Upstream

ADDRESSES = {
    "/v1/systemone": (systemone_request, systemone_answer),
    "/v1/decisions": (decisions_request, decisions_answer),
}


@pytest.fixture
def upstream():
    with upstream_server() as server:
        yield server


def in_front_of(upstream, path=":memory:", **more):
    settings = {"holdout": False, **{name: more.pop(name) for name in list(more) if name in DecisionSettings.__slots__}}
    return serving(
        path, decisions=DecisionSettings(upstream=upstream.url, **{"memory_timeout_s": 20.0, **settings}), **more
    )


def learn(client, response, **outcome):
    body = {"inference_id": response.headers["x-seasoned-inference-id"], **outcome}
    response = client.post("/v1/feedback", json=body)
    assert response.status_code == 201, response.text
    return response.json()


def choice_of(response):
    answers = response.json()["answers"]
    return (answers["desk"] if isinstance(answers, dict) else answers[0])["choice"]


def error_message(response, status):
    """Return the message of an error in the shape of the decision APIs."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error["message"]


# ------------------------------------------------------------------------------------------ with an upstream server


@pytest.mark.parametrize("address", ADDRESSES)
def test_answer_without_evidence_is_the_upstreams_byte_for_byte(upstream, address):
    request, answer = ADDRESSES[address]
    upstream.body, upstream.headers = json.dumps(answer(), indent=3).encode(), {"x-request-id": "r-1"}
    body = json.dumps({**request(), "unknown": {"kept": [1]}}, indent=2).encode()
    with in_front_of(upstream) as client:
        response = client.post(address, content=body, headers={"content-type": "application/json", "x-extra": "7"})
    assert (response.status_code, response.content, response.headers["x-request-id"]) == (200, upstream.body, "r-1")
    assert response.headers["x-seasoned-mode"] == "base"
    assert response.headers["x-seasoned-episode-id"] == response.headers["x-seasoned-inference-id"]
    [(method, path, headers, sent)] = upstream.received
    assert (method, path, sent, headers["X-Extra"]) == ("POST", address, body, "7")


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("outcome", [{"right": "refunds"}, {"reward": 0.0}, {"up": False}], ids=str)
def test_outcomes_shift_the_next_answer_in_its_own_shape(upstream, address, outcome):
    request, answer = ADDRESSES[address]
    upstream.body = answer()
    with in_front_of(upstream) as client:
        learn(client, client.post(address, json=request()), right="refunds")
        for _ in range(3):
            learn(client, client.post(address, json=request()), **outcome)
        response = client.post(address, json=request())
        strict = client.post(f"{address}?strict=1", json=request()).json()
    shifted, plain = response.json(), answer()
    assert shifted["id"] == response.headers["x-seasoned-inference-id"]
    assert shifted["x_seasoned"]["mode"] == response.headers["x-seasoned-mode"] == "memory"
    assert shifted["x_seasoned"]["base"] == pytest.approx(DESKS)
    assert set(shifted) - {"id", "x_seasoned"} == set(plain) == set(strict)
    assert (shifted["usage"], shifted["model"]) == (plain["usage"], plain["model"])
    if outcome == {"right": "refunds"}:
        assert choice_of(response) == "refunds"


def test_temperature_is_fitted_and_shown(upstream):
    sure = {"sales": 0.98, "refunds": 0.01, "it": 0.01}
    upstream.body = systemone_answer(desk={"type": "choice", "choice": "sales", "probabilities": sure})
    with in_front_of(upstream, temperature=True, memory_timeout_s=10.0) as client:
        for number in range(20):
            answer = client.post("/v1/systemone", json=systemone_request(state=f"mail{number}"))
            learn(client, answer, right=("sales", "refunds")[number % 2])
        found = client.post("/v1/systemone", json=systemone_request(state="unlike")).json()
    assert found["x_seasoned"]["temperature"] > 1.5
    assert found["x_seasoned"]["base"]["sales"] == pytest.approx(0.98)
    assert found["answers"]["desk"]["probabilities"]["sales"] < 0.9
    assert sum(found["answers"]["desk"]["probabilities"].values()) == pytest.approx(1.0)


def test_order_of_options_makes_no_difference(upstream):
    with in_front_of(upstream) as client:
        for _ in range(3):
            learn(client, client.post("/v1/systemone", json=systemone_request()), right="it")
        one, other = (
            client.post("/v1/systemone", json=systemone_request(options)).json()["answers"]["desk"]["probabilities"]
            for options in (list(DESKS), list(reversed(DESKS)))
        )
    assert one == other and list(one) == list(reversed(other)) == list(DESKS)


def test_several_questions_are_several_decisions(upstream):
    yes_no = {"type": "noul", "instructions": "Is it urgent?"}
    score = {"type": "score", "instructions": "How angry?", "criteria": ["calm", "angry"]}
    low_mass = {**yes_no, "instructions": "Is it spam?"}
    request = systemone_request(urgent=yes_no, mood=score, spam=low_mass)
    given_score = {"type": "score", "score": 0.2, "legend": {}, "probabilities": {"0": 0.8, "1": 0.2}}
    spam = {"type": "noul", "noul": 0.5, "label_mass": 0.1}
    upstream.body = systemone_answer(urgent={"type": "noul", "noul": 0.1}, mood=given_score, spam=spam)
    with in_front_of(upstream) as client:
        for _ in range(4):
            response = client.post("/v1/systemone", json=request)
            learn(client, response, question="urgent", right="yes")
        assert response.json()["answers"]["urgent"]["noul"] > 0.5
        assert response.json()["answers"]["mood"] == given_score and response.json()["answers"]["spam"] == spam
        assert response.json()["answers"]["desk"] == systemone_answer()["answers"]["desk"]
        assert set(response.json()["x_seasoned"]) == {"desk", "urgent"}
        unknown = {"inference_id": response.json()["id"], "right": "yes"}
        assert "several questions" in client.post("/v1/feedback", json=unknown).json()["rule"]
        assert client.post("/v1/feedback", json={**unknown, "question": "mood"}).status_code == 404


def test_form_of_the_answer_follows_the_request_where_one_question_is_refused(upstream):
    request = systemone_request(urgent={"type": "noul", "instructions": "Is it urgent?"})
    upstream.body = systemone_answer(urgent={"type": "refusal"})
    with in_front_of(upstream) as client:
        for _ in range(4):
            response = client.post("/v1/systemone", json=request)
            learn(client, response, question="desk", right="refunds")
        assert set(response.json()["x_seasoned"]) == {"desk"}
        assert "x-seasoned-episode-id" not in response.headers  # an episode has the id of its question


def test_refusals_and_unknown_types_pass_through(upstream):
    upstream.body = {"model": "gpt", "answers": [{"type": "refusal"}, {"type": "tournament", "winner": 3}]}
    request = decisions_request()
    request["questions"].append({"type": "tournament", "instructions": "Who wins?"})
    with in_front_of(upstream) as client:
        response = client.post("/v1/decisions", json=request)
    assert response.json() == upstream.body
    assert (response.headers["x-seasoned-mode"], response.headers["x-seasoned-reason"]) == ("base", "refused")
    assert "x-seasoned-inference-id" not in response.headers


def test_control_group_gets_the_upstreams_bytes_and_lift_is_served(upstream):
    with in_front_of(upstream, holdout=True) as client:
        modes, bodies = {}, set()
        for _ in range(16):
            response = client.post("/v1/systemone", json=systemone_request())
            modes.setdefault(response.headers["x-seasoned-arm"], set()).add(response.headers["x-seasoned-mode"])
            if response.headers["x-seasoned-arm"] == "control":
                bodies.add(response.content)
            learn(client, response, right="refunds")
        found = client.get("/v1/lift").json()
        assert client.get("/v1/lift").json() == found  # computed once for what is stored, with its time
        assert client.get("/v1/lift", params={"family": found["families"][0]["family"]}).json() == found
        assert client.get("/v1/lift?family=none").status_code == 404
        [family] = found["families"]
    assert modes["control"] == {"holdout"} and "memory" in modes["treated"]
    assert len(bodies) == 1 and json.loads(bodies.pop()) == upstream.body
    assert (family["n_treated"] + family["n_control"], family["warnings"]) == (16, [])
    tokens, seconds = family["costs"]
    assert (tokens["measure"], tokens["treated_mean"], tokens["control_mean"]) == ("tokens", 9.0, 9.0)
    assert (seconds["measure"], seconds["n_treated"] + seconds["n_control"]) == ("seconds", 16)
    assert 0.0 < seconds["treated_mean"] < 60.0 and seconds["mean"] is None  # 20 set the bounds


def test_decision_of_a_paused_family_has_no_arm(upstream, tmp_path):
    with in_front_of(upstream, tmp_path / "a.db", holdout=True) as client:
        before = client.post("/v1/systemone", json=systemone_request())
        with Memory.open(tmp_path / "a.db") as memory:
            memory.pause("desk", "new desks", author="ann")
        paused = client.post("/v1/systemone", json=systemone_request())
    assert before.headers["x-seasoned-arm"] in ("treated", "control")
    assert paused.headers["x-seasoned-mode"] == "base" and "paused" in paused.headers["x-seasoned-reason"]
    assert "x-seasoned-arm" not in paused.headers


def test_sampled_choice_is_stored_with_its_propensity(upstream, tmp_path):
    with in_front_of(upstream, tmp_path / "a.db", choose="sample") as client:
        ids = {}
        for _ in range(60):
            response = client.post("/v1/systemone", json=systemone_request())
            ids[response.headers["x-seasoned-inference-id"]] = choice_of(response)
            assert response.json()["answers"]["desk"]["probabilities"] == DESKS
    with Memory.open(tmp_path / "a.db") as memory:
        for id_, choice in ids.items():
            [step] = memory.get(id_).steps
            assert (step.action, step.propensity) == (f"desk: {choice}", pytest.approx(DESKS[choice]))
    assert len(set(ids.values())) > 1


def test_ten_thousand_options_and_options_that_differ_in_case(upstream):
    options = [f"intent {number}" for number in range(9_998)] + ["EU", "eu"]
    p = {option: 1 / len(options) for option in options}
    upstream.body = {"answers": {"desk": {"choice": "EU", "probabilities": p}}}
    with in_front_of(upstream, memory_timeout_s=20.0) as client:
        learn(client, client.post("/v1/systemone", json=systemone_request(options)), right="eu")
        response = client.post("/v1/systemone", json=systemone_request(options))
    assert choice_of(response) == "eu"


# ------------------------------------------------------------------------------------------ trouble


def drip(handler):
    handler.send_response(200)
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    while True:
        handler.wfile.write(b"1\r\n \r\n")
        time.sleep(0.05)


def flood(handler):
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 1_000_000)


def drip_headers(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nx-endless: ")
    while True:
        handler.wfile.write(b"x")
        time.sleep(0.05)


def break_off(handler):
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("body", "status"), [(drip, 504), (drip_headers, 504), (flood, 502), (break_off, 502), (lambda handler: None, 504)]
)
def test_upstream_without_a_whole_answer_is_an_error_in_the_apis_shape(upstream, body, status):
    upstream.body = body
    with in_front_of(upstream, upstream_timeout_s=0.6 if status == 504 else 20.0) as client:
        message = error_message(client.post("/v1/decisions", json=decisions_request()), status)
        assert upstream.url in message
        upstream.body = decisions_answer()
        assert client.post("/v1/decisions", json=decisions_request()).json() == upstream.body


def test_closing_ends_requests_that_wait_for_the_upstream(upstream):
    began = threading.Event()

    def hang(handler):
        began.set()
        drip(handler)

    upstream.body = hang
    client = Upstream(upstream.url, timeout_s=300.0)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        request = threads.submit(client.send, "POST", "/v1/systemone", b"{}", [])
        assert began.wait(30)
        client.close()
        with pytest.raises(ModelUnavailableError):
            request.result(30)
    with pytest.raises(ModelUnavailableError, match="stops"):
        client.send("POST", "/v1/systemone", b"{}", [])


def test_upstream_that_is_down_or_closes_idle_connections(upstream):
    with upstream_server() as gone:
        pass
    with in_front_of(gone) as client:
        error_message(client.post("/v1/systemone", json=systemone_request()), 502)
        error_message(client.get("/v1/models"), 502)
    upstream.headers = {"connection": "close"}
    with in_front_of(upstream) as client:
        for _ in range(3):
            assert client.post("/v1/systemone", json=systemone_request()).status_code == 200


OTHER_SHAPES = [
    b"<html>",
    b"",
    b"[]",
    b"\xff",
    b'{"answers": 7}',
    b'{"answers": {"desk": {"probabilities": {"sales": NaN, "refunds": 0.5, "it": 0.5}}}}',
    b'{"answers": {"desk": {"probabilities": {"sales": 1e999, "refunds": 0.5, "it": 0.5}}}}',
    b'{"answers": {"desk": {"probabilities": {"sales": 1, "refunds": 1, "it": 1}}}}',
    b'{"answers": {"desk": {"probabilities": {"sales": 0.9, "refunds": 0.1}}}}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", OTHER_SHAPES, ids=lambda body: repr(body[:70]))
def test_answer_of_another_shape_is_passed_on(upstream, body):
    upstream.body = body
    with in_front_of(upstream) as client:
        response = client.post("/v1/systemone", json=systemone_request())
        assert (response.status_code, response.content) == (200, body)
        assert response.headers["x-seasoned-mode"] == "base" and response.headers["x-seasoned-reason"]
        assert client.get("/v1/stats").json()["steps"] == 0


def test_errors_of_the_upstream_are_passed_on_with_their_limits(upstream):
    upstream.status, upstream.body = 429, b'{"error": "slow down"}'
    upstream.headers = {
        "retry-after": "7",
        "x-ratelimit-remaining": "0",
        "access-control-allow-origin": "*",
        "set-cookie": "a=1",
    }
    with in_front_of(upstream) as client:
        response = client.post("/v1/systemone", json=systemone_request())
    assert (response.status_code, response.content) == (429, upstream.body)
    assert (response.headers["retry-after"], response.headers["x-ratelimit-remaining"]) == ("7", "0")
    assert not {"access-control-allow-origin", "set-cookie", "x-seasoned-inference-id"} & set(response.headers)


def test_folded_header_is_dropped(upstream):
    upstream.headers = {"x-info": "a\r\n b", "x-other": "c"}
    with in_front_of(upstream) as client:
        response = client.post("/v1/systemone", json=systemone_request())
    assert response.status_code == 200 and "x-info" not in response.headers and response.headers["x-other"] == "c"


@pytest.mark.parametrize("status", [101, 302, 999])
def test_status_that_cannot_be_sent_on_is_a_bad_answer(upstream, status):
    upstream.status = status
    with in_front_of(upstream) as client:
        assert str(status) in error_message(client.post("/v1/systemone", json=systemone_request()), 502)


def test_request_that_only_the_upstream_understands_is_passed_on(upstream):
    upstream.body = b'{"new": "shape"}'
    with in_front_of(upstream) as client:
        response = client.post("/v1/systemone", json={"state": TICKET, "questions": "all of them"})
    assert response.content == upstream.body and "not decided by memory" in response.headers["x-seasoned-reason"]


def test_memory_trouble_fails_open(upstream, tmp_path):
    path = tmp_path / "a.db"
    with in_front_of(upstream, path, memory_timeout_s=0.3) as client:
        learn(client, client.post("/v1/systemone", json=systemone_request()), right="refunds")
        assert choice_of(client.post("/v1/systemone", json=systemone_request())) == "refunds"
        locked = sqlite3.connect(path, isolation_level=None)
        locked.execute("BEGIN EXCLUSIVE")
        for _ in range(2):
            response = client.post("/v1/systemone", json=systemone_request())
            assert response.json() == upstream.body
            assert "the memory failed" in response.headers["x-seasoned-reason"]
            assert "x-seasoned-inference-id" not in response.headers
        locked.close()
        for _ in range(100):  # the call that was left still runs for a moment
            response = client.post("/v1/systemone", json=systemone_request())
            if response.headers["x-seasoned-mode"] == "memory":
                break
            time.sleep(0.05)
        assert choice_of(response) == "refunds"
    with Memory.open(path) as memory:
        memory.verify()


def test_spool_keeps_decisions_and_outcomes_while_the_store_is_locked(upstream, tmp_path):
    path = tmp_path / "a.db"
    with in_front_of(upstream, path, memory_timeout_s=20.0, spool=tmp_path / "spool") as client:
        client.post("/v1/systemone", json=systemone_request())
        locked = sqlite3.connect(path, isolation_level=None)
        locked.execute("BEGIN IMMEDIATE")  # readers go on
        response = client.post("/v1/systemone", json=systemone_request())
        assert learn(client, response, reward=1.0)["reward"] == 1.0
        locked.close()
    with Memory.open(path, timeout_s=20.0, spool=tmp_path / "spool") as memory:
        assert memory.deliver_spool()
        assert memory.events(response.headers["x-seasoned-inference-id"])[0].reward == 1.0


def test_read_only_memory_shifts_and_stores_nothing(upstream, tmp_path):
    path = tmp_path / "a.db"
    with in_front_of(upstream, path) as client:
        learn(client, client.post("/v1/systemone", json=systemone_request()), right="refunds")
    with in_front_of(upstream, path, create=False, read_only=True) as client:
        response = client.post("/v1/systemone", json=systemone_request())
    assert choice_of(response) == "refunds"
    assert "not stored" in response.headers["x-seasoned-reason"] and "id" not in response.json()


# ------------------------------------------------------------------------------------------ bad input

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PARTS = st.sampled_from(["type", "instructions", "criteria", "choices", "name", "value", "state", "input", "questions"])


@st.composite
def spoiled(draw, request):
    """A good request in which one or two values are others."""
    document = json.loads(json.dumps(request))
    for _ in range(draw(st.integers(1, 2))):
        place = document
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
            if not isinstance(place[key], dict | list) or draw(st.booleans()):
                place[key] = draw(JSON_VALUES)
                break
            place = place[key]
    return document


@pytest.mark.parametrize("address", ADDRESSES)
def test_malformed_requests_are_refused_or_answered_and_never_break(address, tmp_path):
    request, _ = ADDRESSES[address]
    with serving(
        tmp_path / "a.db", decisions=DecisionSettings(model="uniform", holdout=False, memory_timeout_s=20.0)
    ) as client:

        @given(spoiled(request()) | JSON_VALUES)
        @settings(max_examples=40, deadline=None)
        def tried(document):
            body = json.dumps(document).encode()
            response = client.post(address, content=body, headers={"content-type": "application/json"})
            assert response.status_code in (200, 400), response.text
            if response.status_code == 400:
                error_message(response, 400)

        tried()
    with Memory.open(tmp_path / "a.db") as memory:
        memory.verify()


def test_refusals_of_the_service_have_the_apis_shape(upstream):
    with in_front_of(upstream, token=TOKEN) as client:
        assert client.post("/v1/decisions", json=decisions_request()).status_code == 200
        error_message(client.post("/v1/decisions", json={}, headers={"authorization": "Bearer no"}), 401)
        error_message(client.post("/v1/decisions", content=b"{}", headers={"content-type": "text/plain"}), 415)
        error_message(client.post("/v1/decisions?namespace=other", json=decisions_request()), 404)
        error_message(client.post("/v1/decisions?seed=1", json=decisions_request()), 400)
        error_message(client.get("/v1/decisions"), 405)
    with serving() as client:
        assert "--upstream" in error_message(client.post("/v1/decisions", json=decisions_request()), 501)


def test_token_of_the_service_is_not_passed_on_and_needs_the_scope(upstream, monkeypatch):
    monkeypatch.setenv("SEASONED_UPSTREAM_KEY", "sk-of-the-operator")
    reader = Token("a-reader-of-enough-characters", "ann", scopes=["read"])
    giver = Token("a-giver-of-enough-characters", "bob", scopes=["feedback"])
    with in_front_of(upstream, token=[Token(TOKEN), reader, giver]) as client:
        good = {"authorization": f"Bearer {TOKEN}"}
        assert client.post("/v1/systemone", json=systemone_request(), headers=good).status_code == 200
        assert upstream.received[-1][2]["Authorization"] == "Bearer sk-of-the-operator"
        response = client.post(
            "/v1/systemone", json=systemone_request(), headers={"authorization": f"Bearer {reader.token}"}
        )
        assert "scope write" in error_message(response, 403)
        response = client.get("/v1/models", headers={"authorization": f"Bearer {giver.token}"})
        assert "scope read" in error_message(response, 403)


@pytest.mark.parametrize(
    "url", ["ftp://host", "http://", "host:80", "http://u:secret@host", "http://h?x=1", "http://h:99999", ""]
)
def test_wrong_upstream_is_refused_without_its_secret(url):
    with pytest.raises(InputError) as caught:
        serving(decisions=DecisionSettings(upstream=url)).__enter__()
    assert "secret" not in str(caught.value).replace("holds no secret", "")


def test_upstream_and_model_together_are_refused():
    with pytest.raises(ConfigError):
        DecisionSettings(upstream="http://h", model="uniform")


def test_secrets_are_neither_stored_nor_logged(upstream, tmp_path):
    path, secret = tmp_path / "a.db", "sk-secret-of-the-client"
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
        upstream.url,
    ]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        url = server.stdout.readline().split()[0]
        for body in (systemone_answer(), b"no JSON", break_off):
            upstream.body = body
            headers = {"content-type": "application/json", "authorization": f"Bearer {secret}", "x-api-key": secret}
            request = urllib.request.Request(f"{url}v1/systemone", json.dumps(systemone_request()).encode(), headers)
            try:
                urllib.request.urlopen(request, timeout=20).read()
            except urllib.error.HTTPError as error:
                assert error.code == 502
        assert all(received[2]["Authorization"] == f"Bearer {secret}" for received in upstream.received)
        server.terminate()
        assert server.wait(30) == 0
        log = server.stdout.read() + server.stderr.read()
    finally:
        server.kill()
        server.wait()
    assert "POST /v1/systemone 200" in log
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert secret.encode() not in file.read_bytes()
    assert secret not in log


@pytest.mark.slow
def test_answered_decisions_survive_a_kill_under_load(upstream, tmp_path):
    path, ids = tmp_path / "a.db", []
    command = [sys.executable, "-m", "seasoned", "serve", str(path), "--create", "--port", "0", "--quiet"]
    server = subprocess.Popen([*command, "--upstream", upstream.url], stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().split()[0]

    def ask(number):
        headers = {"content-type": "application/json"}
        body = json.dumps(systemone_request(state=f"ticket {number}")).encode()
        of_session = f"sessions/s{number % 3}/" if number % 2 else ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            address = f"{url}{of_session}v1/systemone"
            with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as response:
                ids.append(response.headers["x-seasoned-inference-id"])
            if len(ids) >= 60:  # two may have come since the last look
                server.kill()

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        list(threads.map(ask, range(200)))
    server.wait()
    assert len(ids) >= 60
    with serving(path, decisions=DecisionSettings(upstream=upstream.url, sessions=tmp_path / "a.db.decisions")):
        pass
    with Memory.open(path) as memory:
        stored = {episode.id for episode in memory.iter_episodes()}
        assert all(id_ in stored or memory.response_step(id_) is not None for id_ in ids if id_ is not None)
        memory.verify()


# ------------------------------------------------------------------------------------------ with a model


@pytest.mark.parametrize("address", ADDRESSES)
def test_model_answers_where_no_server_does_and_learns(address):
    request, _ = ADDRESSES[address]
    with serving(decisions=DecisionSettings(model="uniform", holdout=False, memory_timeout_s=20.0)) as client:
        response = client.post(address, json=request())
        assert response.json()["id"] == response.headers["x-seasoned-inference-id"]
        assert response.json()["x_seasoned"]["base"] == pytest.approx(dict.fromkeys(DESKS, 1 / 3))
        learn(client, response, right="refunds")
        assert choice_of(client.post(address, json=request())) == "refunds"
        assert client.get("/v1/models").json()["data"][0]["id"] == "uniform"


def test_official_client_reads_the_answers(upstream):
    openai = pytest.importorskip("openai", reason="needs the extra openai")
    upstream.body = decisions_answer()
    with in_front_of(upstream) as http_client:
        client = openai.OpenAI(base_url="http://127.0.0.1:8710/v1", api_key="sk-own", http_client=http_client)
        if not hasattr(client, "decisions"):
            pytest.skip("this version of the client has no decisions")
        assert client.decisions.create(**decisions_request()).answers[0].choice == "sales"
        assert upstream.received[-1][2]["Authorization"] == "Bearer sk-own"
        with pytest.raises(openai.NotFoundError, match="namespace"):
            client.with_options(max_retries=0).decisions.create(**decisions_request(), extra_query={"namespace": "no"})
