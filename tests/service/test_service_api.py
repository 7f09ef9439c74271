"""Every route of the service does the same as the library, and reports errors with their reason."""

from __future__ import annotations

import threading

import pytest
from serving import HERE, MAIL, TOKEN, error_of, post_question, serving

from seasoned import Episode, Memory, Step
from seasoned.errors import (
    ConfigError,
    EpisodeConflictError,
    IntegrityError,
    NotFoundError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreFullError,
)
from seasoned.service import DecisionSettings, make_app
from seasoned.service.responses import status_of

EPISODE = {
    "id": "run/1",
    "task": "support",
    "steps": [
        {"state": MAIL, "action": "look up", "prior": {"look up": -0.1, "ask": -2.4}, "propensity": 0.9},
        {"state": "order 17: on its way", "action": "It comes on Monday.", "reward": 1.0},
    ],
    "final_state": "closed",
    "model": "m",
    "subject": "customer-17",
}


@pytest.fixture(scope="module")
def client():
    with serving() as client:
        assert client.post("/v1/episodes", json=EPISODE).json() == {"id": "run/1"}
        yield client


def test_posted_episode_is_returned_unchanged_and_stored_once(client):
    response = client.get("/v1/episodes/run%2F1")
    assert response.status_code == 200
    stored = response.json()
    assert {name: stored[name] for name in EPISODE if name != "steps"} == {
        name: value for name, value in EPISODE.items() if name != "steps"
    }
    for step, posted in zip(stored["steps"], EPISODE["steps"], strict=True):
        assert step == {"reward": 0.0, "prior": None, "propensity": None, **posted}
    before = client.get("/v1/stats").json()["steps"]
    assert client.post("/v1/episodes", json=stored).status_code == 201
    assert client.get("/v1/stats").json()["steps"] == before


def test_id_with_other_content_is_a_409(client):
    error = error_of(client.post("/v1/episodes", json={**EPISODE, "task": "sales"}), 409)
    assert error["error"] == "EpisodeConflictError"


def test_search_returns_the_neighbors_of_the_library(client, tmp_path):
    neighbors = client.post("/v1/search", json={"state": MAIL, "k": 1, "threshold": 0.5, "gamma": 0.95}).json()[
        "neighbors"
    ]
    with Memory.open(tmp_path / "a.db") as memory:
        memory.add(Episode("support", [Step(s["state"], s["action"], s.get("reward", 0.0)) for s in EPISODE["steps"]]))
        [expected] = memory.search(MAIL, 1, 0.5, gamma=0.95)
    seen = expected.experience
    assert [(one["similarity"], one["action"], one["return"], one["step"]) for one in neighbors] == [
        (expected.similarity, seen.action, seen.return_, seen.step)
    ]
    assert neighbors[0]["episode_id"] == "run/1"
    assert client.post("/v1/search", json={"state": MAIL, "exclude_task": "support"}).json() == {"neighbors": []}


def test_unknown_discount_is_refused_and_not_added(tmp_path):
    path = tmp_path / "a.db"
    with Memory.open(path, gamma=0.9) as memory:
        memory.add(Episode("support", [Step(MAIL, "a"), Step("later", "b", 1.0)]))
        memory.search(MAIL, gamma=0.5)  # from now on it keeps this one
        before = memory.known_gammas()
    assert before == (0.5, 0.9)
    with serving(path) as client:
        for more in ({}, {"gamma": 0.9}, {"gamma": 0.5}):
            [neighbor] = client.post("/v1/search", json={"state": MAIL, "threshold": 1.0, **more}).json()["neighbors"]
            assert neighbor["return"] == more.get("gamma", 0.9)
        error = error_of(client.post("/v1/search", json={"state": MAIL, "gamma": 0.7}), 400)
        assert "0.5, 0.9" in error["rule"]
    with Memory.open(path) as memory:
        assert memory.known_gammas() == before


def test_delete_feedback_refuses_notes_of_other_kinds(client):
    id_ = post_question(client)
    error_of(client.delete(f"/v1/feedback/{id_}/0"), 404)  # the note that keeps the question
    assert client.get(f"/v1/questions/{id_}").status_code == 200


def test_stats_do_not_contain_the_path(client):
    stats = client.get("/v1/stats").json()
    assert stats["episodes"] >= 1
    assert "path" not in stats


@pytest.mark.parametrize(
    ("feedback", "rewards"),
    [
        ({"kind": "thumbs", "up": False}, [-1.0]),
        ({"kind": "score", "value": 4, "low": 0, "high": 5}, [2 * 4 / 5 - 1]),
        ({"kind": "choice", "candidates": ["a", "It comes on Monday.", "b"], "chosen": 1}, [1.0, -0.5, -0.5]),
        ({"kind": "edit", "text": "It comes on Monday."}, [1.0]),
        ({"kind": "own_answer", "text": "Tomorrow.", "comment": "it was late"}, [1.0]),
        ({"kind": "correction", "text": "no, Tuesday"}, [-1.0]),
        ({"kind": "outcome", "passed": 3, "total": 4}, [0.5]),
        ({"kind": "review", "verdict": "approved"}, [1.0]),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_every_feedback_kind_is_stored_listed_and_revoked(feedback, rewards):
    with serving() as client:
        client.post("/v1/episodes", json=EPISODE)
        response = client.post("/v1/feedback", json={**feedback, "episode_id": "run/1", "step": 1, "author": "ann"})
        assert response.status_code == 201, response.text
        record = response.json()
        assert [one["reward"] for one in record["rewards"]] == pytest.approx(rewards)
        [listed] = client.get("/v1/feedback", params={"episode": "run/1"}).json()["feedback"]
        assert (listed["id"], listed["author"], listed["revoked_at"]) == (record["id"], "ann", None)
        assert {name: listed["feedback"][name] for name in feedback} == feedback
        with_it = total(client)
        assert with_it == pytest.approx(1.0 + sum(r for r in rewards))
        for _ in range(2):
            assert client.delete(f"/v1/feedback/{record['id']}").json() == {"revoked": record["id"]}
        assert client.get("/v1/feedback").json()["feedback"][0]["revoked_at"] is not None
        assert total(client) == pytest.approx(1.0)


def total(client):
    """Return the rewards of all retrievable steps, feedback included."""
    states = {MAIL, "order 17: on its way"}
    results = [client.post("/v1/search", json={"state": state, "k": 99}).json()["neighbors"] for state in states]
    return sum({(one["episode_id"], one["step"]): one["reward"] for some in results for one in some}.values())


BAD = [
    ("POST", "/v1/episodes", {"task": "t"}, 400, "steps"),
    ("POST", "/v1/episodes", {"task": "t", "steps": {}}, 400, "array"),
    ("POST", "/v1/episodes", {"task": "t", "steps": [{"state": "s", "actoin": "a"}]}, 400, "'action'"),
    ("POST", "/v1/episodes", {"task": "t", "steps": ["a"]}, 400, "steps[0]"),
    ("POST", "/v1/episodes", {"task": "t", "steps": [{"state": " ", "action": "a"}]}, 400, "blank"),
    ("POST", "/v1/episodes", {"task": "t", "steps": [{"state": "s", "action": "a", "reward": "1"}]}, 400, "number"),
    ("POST", "/v1/episodes", {"task": "t", "steps": [{"state": "s", "action": "a" * 2**21}]}, 400, "bytes"),
    ("POST", "/v1/episodes", {"task": "t", "steps": [{"state": "s", "action": "a"}] * 10_001}, 400, "10001"),
    ("GET", "/v1/episodes/none", None, 404, "none"),
    ("POST", "/v1/search", {"stat": "s"}, 400, "'state'"),
    ("POST", "/v1/search", {}, 400, "state"),
    ("POST", "/v1/search", {"state": "s", "k": 0}, 400, "k"),
    ("POST", "/v1/search", {"state": "s", "k": 10**9}, 400, "1000"),
    ("POST", "/v1/search", {"state": "s", "k": "many"}, 400, "k"),
    ("POST", "/v1/search", {"state": ["s"]}, 400, "str"),
    ("POST", "/v1/feedback", {"kind": "thumb", "up": True}, 400, "'thumbs'"),
    ("POST", "/v1/feedback", {"kind": ["thumbs"]}, 400, "kind"),
    ("POST", "/v1/feedback", {"kind": "thumbs", "up": "yes", "episode_id": "run/1"}, 400, "up"),
    ("POST", "/v1/feedback", {"kind": "thumbs", "up": True}, 400, "episode"),
    ("POST", "/v1/feedback", {"kind": "thumbs", "up": True, "text": "x", "episode_id": "run/1"}, 400, "'text'"),
    ("POST", "/v1/feedback", {"kind": "thumbs", "up": True, "episode_id": "none"}, 404, "none"),
    ("POST", "/v1/feedback", {"kind": "thumbs", "up": True, "episode_id": "run/1", "step": 2}, 404, "step 2"),
    ("POST", "/v1/feedback", {"kind": "score", "value": 7, "episode_id": "run/1"}, 400, "scale"),
    ("DELETE", "/v1/feedback/none", None, 404, "none"),
    ("GET", "/v1/stats?namespace=other", None, 404, "other"),
    ("GET", "/v1/stats?verbose=1", None, 400, "verbose"),
    ("GET", "/v1/feedback?episode=a&episode=b", None, 400, "once"),
    ("GET", "/v2/stats", None, 404, "/v2/stats"),
    ("GET", "/docs", None, 404, "/docs"),
    ("POST", "/v1/feedbak", {}, 404, "Did you mean /v1/feedback?"),
    ("POST", "/v1/stats", {}, 405, "takes GET"),
    ("POST", "/v1/feedback", {"inferenc_id": "dec_1", "right": "it"}, 400, "'inference_id'"),
    ("POST", "/v1/feedback", {"right": "it"}, 400, "inference_id"),
    ("PUT", "/v1/episodes", {}, 405, "PUT"),
]


@pytest.mark.parametrize(("method", "url", "body", "status", "names"), BAD)
def test_bad_request_is_refused_with_the_reason(client, method, url, body, status, names):
    before = client.get("/v1/stats").json()
    error = error_of(
        client.request(method, url, json=body) if body is not None else client.request(method, url), status
    )
    assert names in " ".join(error.values())
    assert client.get("/v1/stats").json() == before


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b"", "JSON"),
        (b"[]", "object"),
        (b'{"state": "s"', "JSON"),
        (b'{"state": "s", "k": NaN}', "NaN"),
        (b'{"state": "s", "threshold": 1e999}', "threshold"),
        (b'{"state": "a", "state": "b"}', "twice"),
        (b'{"state": "\xff"}', "UTF-8"),
        (b'{"state": "\\ud800"}', "surrogate"),
        (b'{"\\ud800": 1}', "field"),
        (b'{"k": ' + b"1" * 5000 + b"}", "JSON"),
        (b'{"state": ' + b"[" * 33 + b"]" * 33 + b"}", "levels"),
        (b'{"state": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "levels"),
    ],
    ids=lambda value: repr(value[:24]),
)
def test_bad_json_body_is_refused(client, body, names):
    response = client.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert names in " ".join(error_of(response, 400).values())


def test_openapi_document_is_complete_and_loads_no_external_files(client):
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/healthz",
        "/v1/namespaces",
        "/v1/token",
        "/v1/operations/lift",
        "/v1/operations/decisions",
        "/v1/operations/decision",
        "/v1/operations/flips",
        "/v1/operations/growth",
        "/v1/operations/sources",
        "/v1/operations/quarantines",
        "/v1/operations/switches",
        "/v1/stats",
        "/v1/episodes",
        "/v1/episodes/{id}",
        "/v1/episodes/{id}/end",
        "/v1/search",
        "/v1/advice",
        "/v1/examples",
        "/v1/decide",
        "/v1/recall",
        "/v1/transcripts",
        "/v1/feedback",
        "/v1/feedback/{id}",
        "/v1/questions",
        "/v1/questions/{id}",
        "/v1/questions/{id}/answers",
        "/v1/positions",
        "/v1/lift",
        "/v1/systemone",
        "/v1/decisions",
        "/v1/models",
    }
    body = document["paths"]["/v1/episodes"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["task", "steps"]
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    assert "http" not in client.get("/").text


def test_openapi_document_has_the_forwarded_addresses_where_there_is_an_upstream_server():
    with serving(token=TOKEN, decisions=DecisionSettings(upstream="http://127.0.0.1:9")) as client:
        paths = client.get("/openapi.json").json()["paths"]
    for path, method in (
        ("/v1/chat/completions", "post"),
        ("/v1/messages", "post"),
        ("/v1/messages/{rest}", "post"),
        ("/v1/responses/{rest}", "delete"),
        ("/v1/models", "get"),
    ):
        assert "upstream" in paths[path][method]["summary"] and paths[path][method]["security"] == [{"token": []}]
    operations = [one["operationId"] for path in paths.values() for one in path.values()]
    assert len(set(operations)) == len(operations)


def test_requests_choose_a_namespace_by_name(tmp_path):
    path = tmp_path / "a.db"
    for name in ("shop", "desk", "hidden"):
        with Memory.open(path, namespace=name) as memory:
            memory.add(Episode(name, [Step("s", name)], "e1"))
    with serving(path, create=False, namespace=["shop", "desk"]) as client:
        assert client.get("/v1/namespaces").json() == {"namespaces": ["shop", "desk"]}
        error_of(client.get("/v1/stats"), 400)
        assert client.get("/v1/episodes/e1?namespace=desk").json()["task"] == "desk"
        error_of(client.get("/v1/episodes/e1?namespace=hidden"), 404)


def test_memory_that_cannot_be_opened_is_refused_at_the_start(tmp_path):
    path = tmp_path / "none.db"
    with pytest.raises(NotFoundError):
        make_app(path)
    assert not path.exists()
    with pytest.raises(ConfigError, match="16"):
        make_app(path, token="short", create=True)
    assert not path.exists()


def test_read_only_service_reads_and_refuses_writes(tmp_path):
    path = tmp_path / "a.db"
    with Memory.open(path) as memory:
        memory.add(Episode("t", [Step("s", "a")], "e1"))
    with serving(path, create=False, read_only=True) as client:
        assert client.get("/v1/episodes/e1").status_code == 200
        error = error_of(client.post("/v1/episodes", json={**EPISODE, "id": "e2"}), 403)
        assert error["error"] == "ReadOnlyStoreError"
        assert error["seen"] == "the store"  # its path is the operator's business


def test_stored_data_survives_a_restart(tmp_path):
    path = tmp_path / "a.db"
    with serving(path) as client:
        client.post("/v1/episodes", json=EPISODE)
        client.post("/v1/feedback", json={"kind": "thumbs", "up": True, "episode_id": "run/1", "author": "ann"})
    with serving(path, create=False) as client:
        assert client.get("/v1/episodes/run%2F1").status_code == 200
        [record] = client.get("/v1/feedback").json()["feedback"]
        assert record["author"] == "ann"
    with Memory.open(path) as memory:
        memory.verify()


def test_busy_store_is_a_503_within_the_timeout(tmp_path):
    path = tmp_path / "a.db"
    held, done = threading.Event(), threading.Event()

    def hold():
        import sqlite3

        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        held.set()
        done.wait(20)
        holder.execute("ROLLBACK")
        holder.close()

    with serving(path, timeout_s=0.3) as client:
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(20)
        response = client.post("/v1/episodes", json=EPISODE)
        done.set()
        thread.join()
        assert error_of(response, 503)["error"] == "StoreBusyError"
        assert response.headers["retry-after"]
        assert client.post("/v1/episodes", json=EPISODE).status_code == 201  # asking again does no harm
        assert client.get("/v1/stats").json()["episodes"] == 1


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (NotFoundError, 404),
        (EpisodeConflictError, 409),
        (StoreBusyError, 503),
        (StoreFullError, 507),
        (ReadOnlyStoreError, 403),
        (IntegrityError, 500),
        (ConfigError, 501),
    ],
)
def test_each_error_class_has_its_status(kind, status):
    assert status_of(kind("a", "b", "c")) == status


def test_concurrent_clients_lose_no_episode(tmp_path):
    with serving(tmp_path / "a.db") as client:

        def work(number):
            for n in range(5):
                body = {"task": "t", "id": f"{number}-{n}", "steps": [{"state": f"s {number} {n}", "action": "a"}]}
                assert client.post(f"{HERE}/v1/episodes", json=body).status_code == 201

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.get("/v1/stats").json()["episodes"] == 20
