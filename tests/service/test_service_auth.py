"""Who may come in: the token, the host, the page's own origin, a body that is JSON and not too large."""

from __future__ import annotations

import asyncio
import hmac
import logging

import pytest
from serving import HERE, TOKEN, problem, serving

from seasoned.errors import ConfigError
from seasoned.service import check_token
from seasoned.service.auth import Gate

EPISODE = {"task": "t", "steps": [{"state": "s", "action": "a"}]}


@pytest.fixture(scope="module")
def guarded():
    with serving(token=TOKEN, max_body_bytes=10_000) as client:
        yield client


@pytest.fixture(scope="module")
def unguarded():
    with serving() as client:
        yield client


@pytest.mark.parametrize(
    "given",
    [
        "",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer ",
        f"Bearer {TOKEN.upper()}",
        b"Bearer \xff\xfe",
        "Bearer " + "x" * 10_000,
    ],
)
def test_without_the_right_token_nothing_is_told_and_nothing_done(guarded, given):
    for method, url, body in [("GET", "/v1/stats", None), ("POST", "/v1/episodes", EPISODE), ("GET", "/none", None)]:
        done = guarded.request(method, url, json=body, headers={"Authorization": given})
        said = problem(done, 401)
        assert done.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in str(said)
        assert said["error"] == "Unauthorized"
    assert guarded.get("/v1/stats").json()["episodes"] == 0


def test_the_token_lets_in_and_the_page_and_the_health_need_none(guarded):
    assert guarded.get("/v1/stats", headers={"Authorization": f"bearer {TOKEN}"}).status_code == 200
    for url in ("/", "/healthz", "/openapi.json", "/page/feedback.js"):
        assert guarded.get(url, headers={"Authorization": ""}).status_code == 200
    assert guarded.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    "token", ["", "short", "with a blank in it", "é" * 20, "x" * 5000, "tab\tin the token of it", 17]
)
def test_a_token_that_keeps_nobody_out_is_refused(token):
    with pytest.raises(ConfigError, match="at least 16") as caught:
        check_token(token)
    assert "secrets" in caught.value.next_step


def test_tokens_are_compared_in_constant_time():
    """No other comparison than the one made for it touches the token."""
    names = Gate._nobody.__code__.co_names
    assert hmac.compare_digest.__name__ in names


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8710", "127.0.0.1.evil.example", "", "[", "10.0.0.1"])
def test_without_a_token_only_this_machines_own_names_are_answered(unguarded, host):
    """A page of another site cannot reach it by a name of its own that leads here (DNS rebinding)."""
    said = problem(unguarded.get("/v1/stats", headers={"Host": host}), 421)
    assert "--allow-host" in said["next"]
    assert said["error"] == "MisdirectedRequest"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "LOCALHOST", "[::1]:8710"])
def test_its_own_names_are_answered(unguarded, host):
    assert unguarded.get("/v1/stats", headers={"Host": host}).status_code == 200


def test_hosts_can_be_named():
    with serving(token=TOKEN, hosts=["agents.example"]) as client:
        problem(client.get("/v1/stats"), 421)
        assert client.get("/v1/stats", headers={"Host": "agents.example"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},  # another port is another origin
        {"Origin": "https://127.0.0.1:8711"},
        {"Origin": "file://"},
        {"Origin": "http://[evil"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_another_sites_page_is_refused(unguarded, headers):
    for method, url, body in [
        ("POST", "/v1/episodes", EPISODE),
        ("GET", "/v1/stats", None),
        ("OPTIONS", "/v1/x", None),
    ]:
        done = unguarded.request(method, url, json=body, headers=headers)
        assert problem(done, 403)["error"] == "Forbidden"
        assert not [name for name in done.headers if name.startswith("access-control")]
    assert unguarded.get("/v1/stats").json()["episodes"] == 0


def test_where_it_is_mounted_in_another_application_the_token_is_asked_for_too():
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

    from seasoned.service import make_app

    outer = FastAPI()
    outer.mount("/memory", make_app(":memory:", create=True, token=TOKEN))
    client = TestClient(outer, base_url=HERE)
    problem(client.get("/memory/v1/stats"), 401)
    assert client.get("/memory/v1/stats", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/memory/healthz").status_code == 200


def test_its_own_page_is_let_in(unguarded):
    headers = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}
    assert unguarded.post("/v1/search", json={"state": "s"}, headers=headers).status_code == 200
    assert "access-control-allow-origin" not in unguarded.get("/v1/stats", headers=headers).headers


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_can_send_is_refused(unguarded, kind):
    done = unguarded.post("/v1/search", content=b'{"state": "s"}', headers={"Content-Type": kind})
    assert "application/json" in problem(done, 415)["next"]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_refused_before_it_is_read_whole(guarded, chunked):
    read = []

    def parts():
        for _ in range(100):
            read.append(1)
            yield b" " * 1000

    done = guarded.post(
        "/v1/search", content=parts() if chunked else b" " * 100_000, headers={"Content-Type": "application/json"}
    )
    assert "10000 bytes" in problem(done, 413)["rule"]


@pytest.mark.parametrize("length", ["-1", "many", "1e9", "٣"])
def test_a_length_that_is_none_is_refused(guarded, length):
    done = guarded.post(
        "/v1/search", content=b"{}", headers={"Content-Type": "application/json", "Content-Length": length.encode()}
    )
    problem(done, 400)


def asgi(scope, messages, **settings):
    """What a gate sends for one request, told message by message; a body that never ends is one that stays away."""
    sent, reached = [], []

    async def app(scope, receive, send):
        reached.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive():
        if messages:
            return messages.pop(0)
        return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    gate = Gate(app, token=None, hosts=None, max_body_bytes=100, body_timeout_s=0.05, **settings)
    asyncio.run(gate({"type": "http", "method": "POST", "path": "/v1/x", "headers": [], **scope}, receive, send))
    return sent, reached


JSON_HEADERS = [(b"content-type", b"application/json")]


def part(body, more):
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_in_parts_arrives_whole():
    sent, reached = asgi({"headers": JSON_HEADERS}, [part(b"{", True), part(b"}", False)])
    assert (sent[0]["status"], reached) == (200, [b"{}"])


def test_a_body_that_does_not_end_in_time_is_a_408():
    sent, reached = asgi({"headers": JSON_HEADERS}, [part(b"{", True)])
    assert (sent[0]["status"], reached) == (408, [])


def test_a_body_that_breaks_off_reaches_nobody():
    sent, reached = asgi({"headers": JSON_HEADERS}, [part(b"{", True), {"type": "http.disconnect"}])
    assert (sent[0]["status"], reached) == (400, [])


@pytest.mark.parametrize("name", [b"host", b"origin", b"authorization", b"content-type", b"content-length"])
def test_a_header_that_decides_is_sent_once(name):
    sent, reached = asgi({"headers": [*JSON_HEADERS, (name, b"a"), (name, b"b")]}, [part(b"{}", False)])
    assert (sent[0]["status"], reached) == (400, [])


def test_a_web_socket_is_closed():
    sent, reached = asgi({"type": "websocket"}, [])
    assert [message["type"] for message in sent] == ["websocket.close"]
    assert reached == []


def test_every_answer_is_guarded_and_no_script_of_others_runs(guarded):
    for done in (guarded.get("/"), guarded.get("/v1/none"), guarded.get("/v1/stats", headers={"Authorization": ""})):
        policy = done.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert done.headers["x-content-type-options"] == "nosniff"
        assert done.headers["cache-control"] == "no-store"
        assert done.headers["referrer-policy"] == "no-referrer"


def test_the_page_has_no_inline_script_or_style(guarded):
    page = guarded.get("/").text
    assert "<style" not in page
    assert "style=" not in page
    assert page.count("<script") == page.count('<script type="module" src="/page/')
    scripts = "".join(guarded.get(f"/page/{name}.js").text for name in ("api", "bars", "feedback"))
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in scripts


def test_requests_are_logged_without_what_is_secret(guarded, caplog):
    with caplog.at_level(logging.INFO, "seasoned.service"):
        guarded.post("/v1/search?namespace=default", json={"state": "a secret state"})
        guarded.get("/v1/episodes/a%0Ab", headers={"Authorization": "Bearer wrong-wrong-wrong-wrong"})
    lines = [record.getMessage() for record in caplog.records if record.name == "seasoned.service"]
    assert [line.split()[1:4] for line in lines] == [
        ["POST", "/v1/search", "200"],
        ["GET", "/v1/episodes/a%0Ab", "401"],
    ]
    assert not any(secret in line for line in lines for secret in ("secret", TOKEN, "wrong-wrong", "namespace", "\n"))
