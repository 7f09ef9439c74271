"""Connections of the server: deadlines, and limits by client, against clients that keep their connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")


from seasoned.service import make_app
from seasoned.service.connections import ConnectionLimits
from seasoned.service.server import listen, make_server

GUARD_S = 30  # a test that waits as long has failed
HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@contextlib.contextmanager
def served(app, **limits):
    """Serve an application in a thread, and return its port."""
    ready = threading.Event()
    listening = listen("127.0.0.1", 0, secured=False)
    server = make_server(app, limits=ConnectionLimits(**{"head_s": GUARD_S * 2, **limits}), ready=ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(GUARD_S)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(GUARD_S)
        listening.close()
        assert not thread.is_alive()


@pytest.fixture
def connect():
    """Open connections of one client address, and close them after the test."""
    with contextlib.ExitStack() as stack:

        def connect(port, client="127.0.0.1"):
            made = socket.create_connection(("127.0.0.1", port), GUARD_S, source_address=(client, 0))
            return stack.enter_context(made)

        yield connect


def read(connection):
    """Return all that the server sends before it closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def ask(connection, head=HEAD):
    """Send a request, and return the status line; the server closes the connection."""
    connection.sendall(head + b"Connection: close\r\n\r\n")
    return read(connection).partition(b"\r\n")[0]


@pytest.fixture
def app(tmp_path):
    return make_app(tmp_path / "a.db", create=True)


@pytest.mark.parametrize("sent", [b"", b"GET", HEAD, HEAD + b"X-Slow: 1\r\n"], ids=["nothing", "a", "b", "c"])
def test_connection_without_a_request_is_closed(app, connect, sent):
    with served(app, head_s=0.2) as port:
        connection = connect(port)
        connection.sendall(sent)
        assert read(connection) == b""
        assert ask(connect(port)) == b"HTTP/1.1 200 OK"


def test_connection_without_a_second_request_is_closed(app, connect):
    with served(app, head_s=0.5) as port:
        connection = connect(port)
        connection.sendall(HEAD + b"\r\n" + b"G")  # a byte of the next one does not keep it
        assert read(connection).startswith(b"HTTP/1.1 200 OK")


def test_idle_connections_do_not_keep_others_out(app, connect):
    with served(app, total=8, per_client=8) as port:
        idle = [connect(port) for _ in range(40)]
        assert ask(connect(port)) == b"HTTP/1.1 200 OK"
        assert ask(connect(port), b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n") == b"HTTP/1.1 200 OK"
        assert read(idle[0]) == b""  # the oldest ones gave way
        assert ask(idle[-1]) == b"HTTP/1.1 200 OK"


def test_unfinished_bodies_do_not_keep_others_out(app, connect):
    head = (
        b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    with served(app, total=8, per_client=8) as port:
        slow = [connect(port) for _ in range(20)]
        for connection in slow:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # it gave way
                connection.sendall(head)
        assert ask(connect(port)) == b"HTTP/1.1 200 OK"
        for connection in slow:
            connection.close()


def test_client_with_too_many_connections_closes_its_own_only(app, connect):
    with served(app, total=100, per_client=4) as port:
        patient = connect(port, "127.0.0.2")
        idle = [connect(port, "127.0.0.3") for _ in range(10)]
        for connection in idle[:6]:
            assert read(connection) == b""
        assert ask(patient) == b"HTTP/1.1 200 OK"
        assert ask(idle[-1]) == b"HTTP/1.1 200 OK"


def test_large_answer_may_be_read_slowly(tmp_path, connect):
    """The deadline of the next head does not end an answer that the client still reads."""

    async def large(scope, receive, send):
        await receive()
        if scope["type"] == "lifespan":
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 20_000_000})

    with served(large, head_s=0.3) as port:
        connection, other = connect(port), connect(port)
        connection.sendall(HEAD + b"\r\n")
        assert connection.recv(1) == b"H"
        assert read(other) == b""  # the deadline of a head has passed
        connection.settimeout(GUARD_S)
        left = 20_000_000
        while left > 0:
            part = connection.recv(1 << 20)
            assert part
            left -= part.count(b"x")


class Waiting:
    """An application that answers when it is told to; `began` counts the requests."""

    def __init__(self):
        self.began = threading.Semaphore(0)
        self.go = threading.Event()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        self.began.release()
        await asyncio.to_thread(self.go.wait, GUARD_S)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


def test_running_requests_are_finished_and_a_further_connection_is_refused(connect):
    waiting = Waiting()
    with served(waiting, per_client=2) as port:
        running = [connect(port) for _ in range(2)]
        for connection in running:
            connection.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert waiting.began.acquire(timeout=GUARD_S)
        refused = read(connect(port))
        assert refused.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"retry-after: 1\r\n" in refused
        assert b'"rule"' in refused
        waiting.go.set()
        for connection in running:
            assert read(connection).endswith(b"ok")


def test_request_that_takes_too_long_is_ended(connect):
    waiting = Waiting()
    with served(waiting, request_s=0.2) as port:
        connection = connect(port)
        connection.sendall(HEAD + b"\r\n")
        assert read(connection) == b""
        waiting.go.set()
