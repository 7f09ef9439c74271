"""The HTTP client of an upstream server, against servers that end a connection at a time of their own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gzip
import re
import socket
import threading

import pytest
from decision_upstream import systemone_request, upstream_server
from serving import serving

from seasoned.errors import StoreBusyError
from seasoned.service import DecisionSettings
from seasoned.service.byte_budget import ByteBudget
from seasoned.service.decisions.upstream import Upstream

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@contextlib.contextmanager
def client_of(answer, **settings):
    """Yield a client of a server that lets `answer` have each connection, one after the other, and closes it then."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run():
            with contextlib.suppress(OSError):
                while True:
                    with listening.accept()[0] as connection, contextlib.suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with contextlib.closing(Upstream(url, **{"timeout_s": 20.0, **settings})) as client:
            yield client
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(20.0)


def read_head(connection):
    """Return the head of a request, and what came of its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(1024)
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body


def read_request(connection):
    head, body = read_head(connection)
    while len(body) < int(LENGTH.search(head)[1]):
        body += connection.recv(1024)
    return body


@pytest.mark.parametrize("n_bytes", [10, 3_000_000])
def test_answer_to_a_body_that_was_not_read_is_returned(n_bytes):
    def answer(connection):  # as limits of a rate or of a size do
        read_head(connection)
        connection.sendall(b"HTTP/1.1 429 Slow\r\nRetry-After: 9\r\nContent-Length: 4\r\n\r\nbusy")

    with client_of(answer) as client:
        for _ in range(3):
            found = client.send("POST", "/v1/systemone", b"x" * n_bytes, [])
            assert (found.status, found.body, dict(found.headers)["retry-after"]) == (429, b"busy", "9")


def test_unsolicited_answer_on_an_idle_connection_is_dropped():
    is_read, is_closed = threading.Event(), threading.Event()

    def answer(connection):
        assert read_request(connection) == b"{}"
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        assert is_read.wait(20.0)
        connection.sendall(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        is_closed.set()
        connection.recv(1024)

    with client_of(answer) as client:
        for _ in range(3):
            is_read.clear()
            is_closed.clear()
            assert client.send("POST", "/v1/systemone", b"{}", []).status == 200
            is_read.set()
            assert is_closed.wait(20.0)


@pytest.mark.parametrize("length", [b"Content-Length: 200000\r\n", b""], ids=["stated", "unknown"])
def test_large_answer_is_read_when_the_answers_before_it_are_done(length):
    content = b"x" * 200_000

    def answer(connection):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + length + b"\r\n" + content)

    budget = ByteBudget(250_000)
    with client_of(answer, max_bytes=250_000) as client, concurrent.futures.ThreadPoolExecutor(1) as threads:
        with budget.request() as first, budget.request() as second:
            assert client.send("POST", "/v1/systemone", b"{}", [], held=first).body == content
            waiting = threads.submit(client.send, "POST", "/v1/systemone", b"{}", [], held=second)
            with pytest.raises(concurrent.futures.TimeoutError):
                waiting.result(0.1)
            first.hold(0)
            assert waiting.result(20.0).body == content
        assert budget.n_bytes == 0


def test_answer_without_room_is_refused_in_time():
    def answer(connection):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000)

    budget = ByteBudget(300_000)
    with client_of(answer, timeout_s=0.2) as client, budget.request() as other, budget.request() as held:
        assert other.take(300_000)
        with pytest.raises(StoreBusyError, match="large answer"):
            client.send("POST", "/v1/systemone", b"{}", [], held=held)


def test_compressed_answer_is_passed_on_and_named():
    with upstream_server() as upstream, serving(decisions=DecisionSettings(upstream=upstream.url)) as client:
        upstream.body, upstream.headers = gzip.compress(b"{}"), {"content-encoding": "gzip"}
        response = client.post("/v1/systemone", json=systemone_request())
    assert response.json() == {} and "'gzip'" in response.headers["x-seasoned-reason"]


def test_informational_answers_before_the_final_one_are_passed_over():
    def answer(connection):
        read_request(connection)
        early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
        connection.sendall(early * 2 + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    with client_of(answer) as client:
        answered = client.send("POST", "/v1/systemone", b"{}", [])
    assert (answered.status, answered.body) == (200, b"{}")
