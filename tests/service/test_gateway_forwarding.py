"""The gateway passes requests and answers on as they are: bodies, streams, errors and headers."""

from __future__ import annotations

import http.client
import json
import socket
import threading

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from hypothesis import given, settings
from hypothesis import strategies as st
from raw_upstream import GUARD_S, RawAnswer, exchange, raw_upstream
from recorded_streams import CHAT, STREAMS
from served_gateway import gateway

from seasoned.service import DecisionSettings, make_app
from seasoned.service.bearer_tokens import Token
from seasoned.service.server import listen, make_server

ASKED = b'{"model": "m",  "messages": [{"role": "user", "content": "hi \\u00e9"}], "of_tomorrow": [1e400]}'


@pytest.fixture(scope="module")
def upstream():
    with raw_upstream() as server:
        yield server


@pytest.fixture(scope="module")
def port(upstream):
    with gateway(upstream.url) as port:
        yield port


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_answers_are_byte_identical_however_they_are_cut(upstream, port, data):
    path = data.draw(st.sampled_from(sorted(STREAMS)))
    stream = STREAMS[path] + data.draw(st.binary(max_size=50))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(stream) - 1), max_size=12, unique=True)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    status = data.draw(st.sampled_from(["200 OK", "201 Created", "429 Too Many Requests", "529 Overloaded"]))
    framing = data.draw(st.sampled_from(["chunked", "length", "close"]))
    kind = data.draw(st.sampled_from(["text/event-stream; charset=utf-8", "application/json", "image/png"]))
    headers = [("content-type", kind), ("x-ratelimit-remaining", "7"), ("request-id", "r1"), ("x-new", "caf\u00e9")]
    session = data.draw(st.sampled_from(["", "/sessions/a%20b", "/episodes/run/7"]))
    upstream.answer = RawAnswer(parts, status, headers, framing, pause_s=data.draw(st.sampled_from([0, 0.001])))

    got_status, got_headers, body = exchange(port, session + path, ASKED)

    assert (got_status, body) == (int(status[:3]), stream)
    assert [one for one in got_headers if one in headers] == headers
    assert ("x-seasoned-mode", "observe") in got_headers
    method, target, _, sent = upstream.received[-1]
    assert (method, target, sent) == ("POST", path, ASKED)


def test_headers_of_a_request_are_forwarded_but_those_of_the_connection_and_ours(upstream, port):
    upstream.answer = RawAnswer([b"{}"], framing="length")
    kept = [("authorization", "Bearer secret"), ("anthropic-beta", "a,b"), ("x-of-tomorrow", "1"), ("user-agent", "u")]
    dropped = [("x-seasoned-task", "t"), ("cookie", "c=1"), ("connection", "x-hop"), ("x-hop", "1")]
    exchange(port, "/v1/messages", ASKED, [*kept, *dropped, ("accept-encoding", "gzip, br, zstd;q=0.5")])
    sent = upstream.received[-1][2]
    assert [one for one in sent if one in kept] == kept
    assert not {name for name, _ in dropped} & {name for name, _ in sent}
    assert dict(sent)["accept-encoding"] == "gzip"
    assert [value for name, value in sent if name == "host"] == [f"127.0.0.1:{upstream.port}"]


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/a%2Fb?x=1", "/sessions/7/v1/responses/resp_1"])
def test_other_addresses_of_the_apis_are_forwarded(upstream, port, path):
    upstream.answer = RawAnswer([b'{"data": []}'], framing="length", headers=[("content-type", "application/json")])
    status, _, body = exchange(port, path, b"", method="GET")
    assert (status, body) == (200, b'{"data": []}')
    assert upstream.received[-1][:2] == ("GET", path.removeprefix("/sessions/7"))


def test_an_answer_that_breaks_off_is_no_whole_answer(upstream, port):
    upstream.answer = RawAnswer([CHAT[:200]], breaks=True)
    with pytest.raises(http.client.IncompleteRead):
        exchange(port, "/v1/chat/completions", ASKED)


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_bytes_that_no_request_asked_for_reach_no_other_client(upstream, port, method):
    poison = RawAnswer([b"poison"], framing="length")

    class TooLong(RawAnswer):
        def pieces(self):
            head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n" + b"{}" * (method == "GET")
            yield head + b"".join(poison.pieces())

    upstream.answer = TooLong([])
    exchange(port, "/v1/models", b"", method=method)
    upstream.answer = RawAnswer([CHAT], framing="length")
    assert [exchange(port, "/v1/chat/completions", ASKED)[2] for _ in range(2)] == [CHAT, CHAT]


class Verbatim(RawAnswer):
    """An answer as it is written here."""

    def pieces(self):
        yield from self.parts


def test_length_beside_a_transfer_encoding_is_not_sent_on(upstream, port):
    both = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    upstream.answer = Verbatim([both], breaks=True)
    status, headers, body = exchange(port, "/v1/messages", ASKED)
    assert (status, body) == (200, b"hello") and "content-length" not in dict(headers)


@pytest.mark.parametrize("status", [b"999", b"600", b"101", b"000", b"-1"])
def test_status_that_is_none_of_an_answer_is_an_error_in_the_shape_of_the_api(upstream, port, status):
    upstream.answer = Verbatim([b"HTTP/1.1 " + status + b" Odd\r\ncontent-length: 2\r\n\r\n{}"], breaks=True)
    got, _, body = exchange(port, "/v1/messages", ASKED)
    assert got == 502 and b'"api_error"' in body


@pytest.mark.parametrize("n_bytes", [1, 60, 150, 10_000])
def test_client_that_goes_anywhere_in_its_request_leaves_the_next_one_alone(upstream, port, n_bytes):
    upstream.answer = RawAnswer([CHAT], framing="length")
    head = b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    request = head + b"content-length: %d\r\n\r\n" % len(ASKED) + ASKED
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(request[:n_bytes])
    assert exchange(port, "/v1/messages", ASKED)[::2] == (200, CHAT)


def test_a_client_that_goes_ends_the_request_to_the_upstream(upstream, port):
    upstream.answer, upstream.gone = RawAnswer([CHAT] * 5000, pause_s=0.002), threading.Event()
    with socket.create_connection(("127.0.0.1", port)) as client:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        client.sendall(head + b"content-length: %d\r\n\r\n" % len(ASKED) + ASKED)
        assert client.recv(100)
    assert upstream.gone.wait(GUARD_S)


def test_a_slow_client_slows_the_upstream(upstream, port):
    n_sent = 0

    def parts():
        nonlocal n_sent
        while True:
            n_sent += 1
            yield b"x" * 65536

    class Endless(RawAnswer):
        def pieces(self):
            yield b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
            yield from parts()

    upstream.answer, upstream.gone = Endless([], framing="close"), threading.Event()
    with socket.create_connection(("127.0.0.1", port)) as client:
        head = b"POST /v1/embeddings HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        client.sendall(head + b"content-length: 2\r\n\r\n{}")
        assert client.recv(100)
        before = -1
        while before != n_sent:  # until nothing more is taken
            before = n_sent
            threading.Event().wait(0.3)
        assert n_sent * 65536 < 64 * 2**20
    assert upstream.gone.wait(GUARD_S)


def test_errors_of_the_gateway_have_the_shape_of_the_api(port):
    with raw_upstream() as gone:
        pass
    with gateway(gone.url) as without:
        for path, kind in {"/v1/messages": "api_error", "/sessions/1/v1/chat/completions": "server_error"}.items():
            status, _, body = exchange(without, path, ASKED)
            assert (status, kind.encode() in body, b'"message"' in body) == (502, True, True), body
    for path in ("/v1/messages", "/v1/responses"):
        status, _, body = exchange(port, path, ASKED, [("content-type", "text/plain")])
        assert status == 400 and b'"invalid_request_error"' in body and b'"message"' in body  # two content types
    status, _, body = exchange(port, "/sessions/" + "x" * 10_000 + "/v1/messages", ASKED)
    assert status == 400 and b'"invalid_request_error"' in body


def test_a_gateway_in_front_of_itself_answers_at_once():
    app_port = socket.create_server(("127.0.0.1", 0))
    number = app_port.getsockname()[1]
    app_port.close()
    app = make_app(":memory:", create=True, decisions=DecisionSettings(upstream=f"http://127.0.0.1:{number}"))
    ready, listening = threading.Event(), listen("127.0.0.1", number, secured=False)
    server = make_server(app, ready=ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(GUARD_S)
        status, _, body = exchange(number, "/v1/messages", ASKED)
        assert status == 508 and b"came through this gateway" in body
    finally:
        server.should_exit = True
        thread.join(GUARD_S)
        listening.close()


def test_a_token_is_not_sent_on_and_a_key_beside_it_is(upstream):
    token = "a-token-of-enough-characters"
    upstream.answer = RawAnswer([b"{}"], framing="length")
    with gateway(upstream.url, token=token) as port:
        assert exchange(port, "/v1/messages", ASKED)[0] == 401
        for given in [("authorization", f"Bearer {token}")], [("x-api-key", token)]:
            assert exchange(port, "/v1/messages", ASKED, given)[0] == 200
            assert token not in str(upstream.received[-1])
        exchange(port, "/v1/messages", ASKED, [("x-seasoned-token", token), ("x-api-key", "the-client's-own")])
        assert ("x-api-key", "the-client's-own") in upstream.received[-1][2]


@pytest.mark.parametrize("start", ["/v1/models/", "/v1/responses/", "/sessions/7/v1/messages/"])
@pytest.mark.parametrize(
    "inside", ["../keys", ".", "a/%2e%2E/keys", "..%2fkeys", "a%2F..%2Fkeys", "a/%2e./keys", "..%5Ckeys"]
)
def test_no_address_leads_to_a_folder_above(upstream, port, start, inside):
    n_received = len(upstream.received)
    status, _, body = exchange(port, start + inside, b"", method="GET")
    assert status == 400 and b"is a segment of it" in body
    assert len(upstream.received) == n_received


def test_what_our_key_may_read_needs_the_scope_write(upstream, monkeypatch):
    monkeypatch.setenv("SEASONED_UPSTREAM_KEY", "the-operator's-key")
    upstream.answer = RawAnswer([b"{}"], framing="length")
    reader, writer = "a-token-that-reads-alone", "a-token-that-also-writes"
    tokens = [Token(reader, "ann", scopes=["read"]), Token(writer, "bob", scopes=["read", "write"])]
    own_key = [("x-seasoned-token", reader), ("authorization", "Bearer the-client's-own")]
    with gateway(upstream.url, token=tokens) as port:
        got = [
            exchange(port, path, b"", headers, method="GET")[0]
            for headers in ([("authorization", f"Bearer {reader}")], [("authorization", f"Bearer {writer}")], own_key)
            for path in ("/v1/models", "/v1/responses/resp_1")
        ]
    assert got == [200, 403, 200, 200, 200, 200]


def test_an_escaped_slash_in_an_id_moves_no_border_of_an_address(port):
    """An address that is a search is none of a model, with its larger bodies, for the check of its size either."""
    large = b'{"state": "' + b"x" * 5_000_000 + b'"}'
    for session in ("", "/sessions/a", "/sessions/a%2Fv1%2Fmessages"):
        assert exchange(port, session + "/v1/search", large)[0] == 413
    assert exchange(port, "/sessions%2Fa/v1/messages", large)[0] == 413


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "x"]), inner),
    max_leaves=8,
)
_FIELDS = ("model", "messages", "input", "tools", "metadata", "previous_response_id", "conversation", "system")


@settings(max_examples=40, deadline=None)
@given(
    path=st.sampled_from([path.partition("?")[0] for path in STREAMS]),
    body=st.dictionaries(st.sampled_from(_FIELDS), _JSON).map(json.dumps).map(str.encode) | st.binary(max_size=30),
    answered=st.binary(max_size=60) | st.sampled_from([*STREAMS.values(), b"[]", b"null", b'{"choices": 7}']),
)
def test_what_cannot_be_read_passes_all_the_same(upstream, port, path, body, answered):
    upstream.answer = RawAnswer([answered], framing="length")
    assert exchange(port, path, body)[::2] == (200, answered)
    assert upstream.received[-1][3] == body


def test_a_prompt_of_ten_megabytes_passes(upstream, port):
    upstream.answer = RawAnswer([CHAT])
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "word " * 2_000_000}]}).encode()
    assert exchange(port, "/v1/chat/completions", body)[::2] == (200, CHAT)
    assert upstream.received[-1][3] == body


@pytest.mark.parametrize("inner", [b"[]," * 250_000 + b"1", b"[" * 150 + b"]" * 150], ids=["wide", "deep"])
def test_a_call_of_too_many_values_or_levels_passes_unrecorded(upstream, port, inner):
    upstream.answer = RawAnswer([CHAT])
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}], "x": [' + inner + b"]}"
    status, headers, got = exchange(port, "/v1/chat/completions", body)
    assert (status, got) == (200, CHAT) and "x-seasoned-episode-id" not in dict(headers)
    assert upstream.received[-1][3] == body


def test_a_call_names_its_namespace_and_the_upstream_does_not_see_it(upstream):
    upstream.answer = RawAnswer([CHAT])
    with gateway(upstream.url, namespace=["shop", "desk"]) as port:
        for target, headers in (("?a=1&namespace=desk", []), ("?a=1", [("x-seasoned-namespace", "desk")])):
            assert exchange(port, f"/v1/messages/count_tokens{target}", ASKED, headers)[0] == 200
            assert exchange(port, f"/v1/chat/completions{target}", ASKED, headers)[0] == 200
            _, sent_to, sent, _ = upstream.received[-1]
            assert sent_to == "/v1/chat/completions?a=1" and "x-seasoned-namespace" not in dict(sent)
        status, _, body = exchange(port, "/v1/messages?namespace=other", ASKED)
        assert status == 404 and b'"not_found_error"' in body
