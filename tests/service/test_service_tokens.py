"""Tokens with an author and scopes: what each may do, and in whose name."""

from __future__ import annotations

import contextlib

import pytest
from serving import HERE, MAIL, TOKEN, error_of, post_question, serving

from seasoned import Memory
from seasoned.errors import ConfigError
from seasoned.integrations.rewards import load_rules
from seasoned.memory import FeedbackLimits
from seasoned.service import Token, parse_tokens

ALL = Token("token-of-the-operator", "root", scopes=["admin"])
TOKENS = {
    "agent": Token("token-of-the-agent--", "agent", "run", ["read", "write"]),
    "ann": Token("token-of-ann--------", "ann", scopes=["read", "feedback"]),
    "bob": Token("token-of-bob--------", "bob", scopes=["feedback"]),
    "root": ALL,
}
EPISODE = {"id": "e1", "task": "support", "steps": [{"state": MAIL, "action": "a"}]}
THUMBS = {"kind": "thumbs", "up": True, "episode_id": "e1"}


class As:
    """A client that sends one holder's token."""

    def __init__(self, client, name):
        self._client = client
        self._headers = {"Authorization": f"Bearer {TOKENS[name].token}"}

    def __getattr__(self, method):
        return lambda *place, **more: getattr(self._client, method)(*place, headers=self._headers, **more)


@contextlib.contextmanager
def shared(path=":memory:"):
    from fastapi.testclient import TestClient

    from seasoned.service import make_app

    with TestClient(make_app(path, create=True, token=list(TOKENS.values())), base_url=HERE) as client:
        yield {name: As(client, name) for name in TOKENS}


@pytest.fixture
def clients():
    with shared() as clients:
        assert clients["agent"].post("/v1/episodes", json=EPISODE).status_code == 201
        yield clients


REQUESTS = [
    ("read", "get", "/v1/stats", None),
    ("read", "get", "/v1/feedback", None),
    ("read", "get", "/v1/episodes/e1", None),
    ("read", "get", "/v1/questions", None),
    ("read", "post", "/v1/search", {"state": MAIL}),
    ("write", "post", "/v1/episodes", EPISODE),
    ("write", "post", "/v1/questions", {"task": "t", "state": MAIL, "candidates": [{"text": "a"}, {"text": "b"}]}),
    ("feedback", "post", "/v1/feedback", THUMBS),
]


@pytest.mark.parametrize(("scope", "method", "url", "body"), REQUESTS)
def test_request_needs_its_scope(clients, scope, method, url, body):
    for name, token in TOKENS.items():
        response = getattr(clients[name], method)(url, **({} if body is None else {"json": body}))
        if scope in token.scopes or "admin" in token.scopes:
            assert response.status_code < 300, response.text
        else:
            error = error_of(response, 403)
            assert (error["error"], scope in error["rule"]) == ("Forbidden", True)


def test_every_address_with_data_has_a_scope():
    """Addresses of decisions, of the gateway and of the operator's page too: a token for feedback gets nothing else."""
    from fastapi.testclient import TestClient

    from seasoned.service import DecisionSettings, make_app

    decisions = DecisionSettings(upstream="http://127.0.0.1:9")  # where nothing listens
    app = make_app(":memory:", create=True, token=list(TOKENS.values()), decisions=decisions)
    allowed = set()
    with TestClient(app, base_url=HERE) as client:
        addresses = {(m.upper(), path) for path, methods in app.openapi()["paths"].items() for m in methods}
        new = {"/v1/systemone", "/v1/chat/completions", "/v1/operations/switches", "/v1/lift", "/v1/episodes/{id}/end"}
        assert new <= {path for _, path in addresses}
        for method, path in addresses:
            body = {} if method == "GET" else {"json": {}}
            response = As(client, "bob").request(method, path.replace("{", "").replace("}", ""), **body)
            if response.status_code != 403:
                allowed.add((method, path))
    assert allowed == {("GET", "/healthz"), ("GET", "/v1/token")} | {
        ("POST", "/v1/feedback"),
        ("DELETE", "/v1/feedback/{id}"),
        ("POST", "/v1/questions/{id}/answers"),
    }


def test_scope_is_checked_before_the_body_is_parsed(clients):
    headers = {"Authorization": f"Bearer {TOKENS['bob'].token}", "Content-Type": "application/json"}
    error_of(clients["bob"]._client.post("/v1/search", content=b"{", headers=headers), 403)


def test_author_of_feedback_is_that_of_the_token(clients):
    for named in ({}, {"author": "ann"}, {"author": "ann", "source": "human"}):
        stored = clients["ann"].post("/v1/feedback", json={**THUMBS, **named}).json()
        assert (stored["author"], stored["source"]) == ("ann", "human")
    for invented in ({"author": "eve"}, {"source": "judge"}, {"author": "bob", "source": "human"}):
        error = error_of(clients["ann"].post("/v1/feedback", json={**THUMBS, **invented}), 403)
        assert "this token's" in error["rule"]
    assert [one["author"] for one in unrevoked(clients)] == ["ann"]  # the last of three, and no other's
    relayed = {**THUMBS, "author": "eve", "source": "mail"}
    assert clients["root"].post("/v1/feedback", json=relayed).json()["author"] == "eve"


def unrevoked(clients):
    return [one for one in clients["root"].get("/v1/feedback").json()["feedback"] if one["revoked_at"] is None]


def test_invented_authors_cannot_outvote(clients):
    """36 thumbs down by invented authors on one episode flipped it; of one token they are one."""
    for number in range(36):
        body = {**THUMBS, "up": False, "author": f"author {number}"}
        error_of(clients["ann"].post("/v1/feedback", json=body), 403)
        assert clients["ann"].post("/v1/feedback", json={**THUMBS, "up": False}).status_code == 201
    assert len(unrevoked(clients)) == 1


@pytest.mark.parametrize("weight", [1.5, 36, 1e100])
def test_weight_above_1_needs_the_scope_admin(clients, weight):
    error = error_of(clients["ann"].post("/v1/feedback", json={**THUMBS, "weight": weight}), 403)
    assert "admin" in error["rule"]
    assert unrevoked(clients) == []
    for fine in (1, 0.5):
        assert clients["ann"].post("/v1/feedback", json={**THUMBS, "weight": fine}).status_code == 201
    assert clients["root"].post("/v1/feedback", json={**THUMBS, "weight": 1.5}).status_code == 201


@pytest.mark.parametrize("token", [None, TOKEN], ids=["no token", "single token"])
def test_single_token_names_authors_freely_and_sets_no_large_weight(token):
    with serving(token=token) as client:
        client.post("/v1/episodes", json=EPISODE)
        assert client.post("/v1/episodes", json=POSTED["/v1/episodes"](350.0)).status_code == 201  # a game's own unit
        for author in ("ann", "bob"):
            assert client.post("/v1/feedback", json={**THUMBS, "author": author, "source": "s"}).status_code == 201
        error_of(client.post("/v1/feedback", json={**THUMBS, "weight": 1e100}), 403)
        error_of(client.post("/v1/feedback", json={**THUMBS, "weight": "2"}), 400)
        id_ = client.get("/v1/feedback").json()["feedback"][0]["id"]
        assert client.delete(f"/v1/feedback/{id_}").status_code == 200
        assert client.get("/v1/token").json() == {
            "author": None,
            "source": "human",
            "scopes": ["read", "write", "feedback"],
        }


def rated(clients):
    found = clients["root"].post("/v1/search", json={"state": MAIL}).json()["neighbors"]
    return [one["reward"] for one in found]


REWARDS = [
    ({"inference_id": "e1", "reward": -1e99}, 403),
    ({"inference_id": "e1", "reward": 1, "weight": 36}, 403),
    ({"metric_name": "solved", "value": -1e6, "inference_id": "e1"}, 403),
    ({"metric_name": "solved", "value": 1.5, "inference_id": "e1", "dryrun": True}, 403),
    ({"inference_id": "e1", "reward": -1}, 201),
    ({"metric_name": "solved", "value": False, "inference_id": "e1"}, 201),
]


@pytest.mark.parametrize(("body", "status"), REWARDS, ids=str)
def test_a_reward_above_1_needs_the_scope_admin(clients, body, status):
    """One reward of -1e99 took the evidence of every action away."""
    assert clients["ann"].post("/v1/feedback", json=body).status_code == status
    assert rated(clients) == [-1.0 if status == 201 else 0.0]
    assert clients["root"].post("/v1/feedback", json=body).status_code == 201


@pytest.mark.parametrize("weight", [0, -1])
def test_weight_is_above_0_for_every_token(clients, weight):
    for body in ({"inference_id": "e1", "reward": 1}, {**THUMBS, "episode_id": "e1"}):
        error_of(clients["root"].post("/v1/feedback", json={**body, "weight": weight}), 400)
    assert rated(clients) == [0.0]


def test_rewards_above_1_are_allowed_by_a_limit_of_the_memory_and_without_tokens(tmp_path):
    large = {"inference_id": "e1", "reward": -7.5}
    for token, status in ((None, 201), (TOKEN, 403)):
        with serving(token=token) as client:
            client.post("/v1/episodes", json=EPISODE)
            assert client.post("/v1/feedback", json=large).status_code == status
    with Memory.open(tmp_path / "m.db") as memory:
        memory.set_feedback_limits(FeedbackLimits(max_step_feedback=8))
    with shared(tmp_path / "m.db") as clients:
        clients["agent"].post("/v1/episodes", json=EPISODE)
        assert clients["ann"].post("/v1/feedback", json=large).status_code == 201
        error = error_of(clients["bob"].post("/v1/feedback", json={**large, "reward": 8.5}), 403)
        assert "between -8 and 8" in error["rule"]
        for reward, posted in ((8.0, 201), (8.5, 403)):
            assert clients["agent"].post("/v1/episodes", json=POSTED["/v1/episodes"](reward)).status_code == posted


POSTED = {
    "/v1/episodes": lambda reward: {"task": "t", "steps": [{"state": "s", "action": "a", "reward": reward}]},
    "/v1/transcripts": lambda reward: {
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "done"}],
        "reward": reward,
    },
}


@pytest.mark.parametrize("address", POSTED)
def test_rewards_of_posted_episodes_have_the_bounds_of_feedback(clients, address):
    """Three episodes with a reward of -1e99 took the evidence of every action away."""
    for reward, status in ((-1e99, 403), (1.5, 403), (1.0, 201), (-1.0, 201)):
        response = clients["agent"].post(address, json=POSTED[address](reward))
        assert response.status_code == status, response.text
    assert clients["root"].post(address, json=POSTED[address](1.5)).status_code == 201


def test_limit_of_the_memory_holds_for_episodes_of_the_single_token(tmp_path):
    with Memory.open(tmp_path / "m.db") as memory:
        memory.set_feedback_limits(FeedbackLimits(max_step_feedback=8))
    with serving(tmp_path / "m.db", token=TOKEN) as client:
        for reward, posted in ((8.0, 201), (8.5, 403)):
            assert client.post("/v1/episodes", json=POSTED["/v1/episodes"](reward)).status_code == posted


def test_author_has_one_label_whatever_its_form(clients):
    decided = {"task": "question d", "steps": [{"state": "s", "action": "go", "prior": {"go": -0.1, "stop": -2.4}}]}
    assert clients["agent"].post("/v1/episodes", json={"id": "d1", **decided}).status_code == 201
    for body in (
        {"inference_id": "d1", "right": "stop"},
        {"inference_id": "d1", "metric_name": "demonstration", "value": "stop"},
        {"episode_id": "d1", "kind": "label", "right": "stop"},
    ):
        assert clients["ann"].post("/v1/feedback", json=body).status_code == 201, body
    live = [one for one in unrevoked(clients) if one["episode_id"] == "d1"]
    assert [(one["author"], one["source"], one["feedback"]["kind"]) for one in live] == [("ann", "human", "label")]


@pytest.mark.parametrize("kind", ["metrics", "scores"])
def test_names_that_one_author_invents_do_not_add_up(clients, kind):
    """40 names of metrics counted -40, 40 thumbs -1."""

    def rate(name, value, author="ann"):
        score = {"name": name, "value": value, "traceId": "e1"}
        metric = {"metric_name": name, "value": value, "inference_id": "e1"}
        return clients[author].post("/v1/feedback", json=metric if kind == "metrics" else score)

    for number in range(8):
        response = rate(f"name {number}", -0.25)
        assert response.status_code == (201 if number < 4 else 403), response.text
    assert rate("name 0", -0.125).status_code == 201  # it replaces its own
    assert rate("another", 0.25).status_code == 403  # what was taken back later could not be summed otherwise
    assert rated(clients) == [-0.875]
    assert rate("name 0", -1.0, "bob").status_code == 201
    assert rated(clients) == [-1.875]


def test_names_that_the_operator_declared_add_up(tmp_path):
    from fastapi.testclient import TestClient

    from seasoned.service import make_app

    rules = tmp_path / "rules.toml"
    rules.write_text("".join(f'[[score]]\nname = "{name}"\nlow = 0\nhigh = 1\n' for name in ("solved", "polite")))
    made = make_app(":memory:", create=True, token=[TOKENS["ann"], ALL], rewards=load_rules(rules))
    with TestClient(made, base_url=HERE) as app:
        clients = {name: As(app, name) for name in ("ann", "root")}
        clients["root"].post("/v1/episodes", json=EPISODE)
        for name in ("solved", "polite", "invented"):
            metric = {"metric_name": name, "value": True, "inference_id": "e1"}
            assert clients["ann"].post("/v1/feedback", json=metric).status_code == 201
        assert rated(clients) == [3.0]


def test_only_own_feedback_is_taken_back(clients):
    of_bob = clients["bob"].post("/v1/feedback", json=THUMBS).json()["id"]
    of_ann = clients["ann"].post("/v1/feedback", json=THUMBS).json()["id"]
    assert "author" in error_of(clients["ann"].delete(f"/v1/feedback/{of_bob}"), 403)["rule"]
    assert len(unrevoked(clients)) == 2
    assert clients["ann"].delete(f"/v1/feedback/{of_ann}").status_code == 200
    assert clients["root"].delete(f"/v1/feedback/{of_bob}").status_code == 200


def test_answers_to_questions_are_in_the_name_of_the_token(clients):
    id_ = (
        clients["agent"]
        .post("/v1/questions", json={"task": "t", "state": MAIL, "candidates": [{"text": "x"}, {"text": "y"}]})
        .json()["id"]
    )
    body = {"kind": "choice", "chosen": 0}
    assert clients["ann"].post(f"/v1/questions/{id_}/answers", json=body).json()["author"] == "ann"
    error_of(clients["ann"].post(f"/v1/questions/{id_}/answers", json={**body, "author": "eve"}), 403)
    error_of(clients["agent"].post(f"/v1/questions/{id_}/answers", json=body), 403)
    with serving() as client:
        unnamed = client.post(f"/v1/questions/{post_question(client)}/answers", json=body)
        assert "author" in error_of(unnamed, 400)["seen"]


def test_holder_is_told_its_author_and_scopes(clients):
    assert clients["ann"].get("/v1/token").json() == {
        "author": "ann",
        "source": "human",
        "scopes": ["read", "feedback"],
    }
    assert clients["root"].get("/v1/token").json()["scopes"] == ["read", "write", "feedback", "admin"]
    assert TOKENS["ann"].token not in repr(TOKENS["ann"])


FILE = """
[[token]]
author = "ann"
scopes = ["read", "feedback"]
token = "token-of-ann--------"

[[token]]
author = "ci"
source = "tests"
scopes = ["feedback"]
token = "token-of-the-build--"
"""


def test_token_file_names_authors_and_scopes():
    ann, build = parse_tokens(FILE)
    assert ann == TOKENS["ann"]
    assert (build.author, build.source, build.scopes) == ("ci", "tests", frozenset(["feedback"]))
    for end in ("", "\n", "\r\n"):
        assert parse_tokens(TOKEN + end) == (Token(TOKEN),)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (FILE.replace('author = "ann"\n', ""), "author"),
        (FILE.replace('scopes = ["feedback"]\n', ""), "scopes"),
        (FILE.replace('["feedback"]', '"feedback"'), "list"),
        (FILE.replace('["feedback"]', '["feeback"]'), "feedback"),
        (FILE.replace('["feedback"]', "[]"), "scopes"),
        (FILE.replace("token-of-the-build--", "token-of-ann--------"), "twice"),
        (FILE.replace("token-of-the-build--", "short"), "at least 16"),
        (FILE.replace("source", "sauce"), "source"),
        (FILE.replace('"tests"', "7"), "source"),
        (FILE.replace('"ci"', '" "'), "author"),
        ("[token]\nauthor = 'a'\n", "[[token]]"),
        ("tokens = 1\n\n", "[[token]]"),
        ("two lines\nof a token file\n", "TOML"),
        ("", "at least 16"),
        ("\n\n", "[[token]]"),
    ],
)
def test_wrong_token_file_is_refused(wrong, said):
    with pytest.raises(ConfigError) as caught:
        parse_tokens(wrong)
    assert said in str(caught.value)
    assert "token-of" not in str(caught.value)
