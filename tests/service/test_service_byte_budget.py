"""What slow clients make the service hold in memory is bounded, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import socket

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from test_service_connections import GUARD_S, HEAD, ask, connect, served  # noqa: F401

from seasoned.service.auth import AuthMiddleware
from seasoned.service.byte_budget import ByteBudget

MIB = 1024 * 1024
SIZE = 8 * MIB


def gate_of(budget, **settings):
    """The middleware before an application that answers a query `n` with so many bytes."""

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        n = int(scope.get("query_string") or b"0")
        headers = [(b"content-length", str(n).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x" * n})

    settings = {"max_body_bytes": 100, "max_running": 4, "body_timeout_s": GUARD_S, **settings}
    return AuthMiddleware(app, tokens=None, hosts=None, in_flight=budget, **settings)


class Client:
    """A client that sends parts of a body, and reads the answer when it is told to."""

    def __init__(self, gate, *parts, answer_bytes=0):
        self.left, self.status, self.headers, self.n_read = list(parts), None, {}, 0
        self.reads = asyncio.Event()
        scope = {"type": "http", "method": "POST", "path": "/v1/x", "headers": [(b"content-type", b"application/json")]}
        self.task = asyncio.create_task(gate({**scope, "query_string": b"%d" % answer_bytes}, self.receive, self.send))

    async def receive(self):
        if not self.left:
            await asyncio.Event().wait()
        body, more = self.left.pop(0)
        return {"type": "http.request", "body": body, "more_body": more}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        elif self.status == 200:
            await self.reads.wait()
        self.n_read += len(message.get("body", b""))


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def test_unread_answers_are_bounded_and_the_next_one_is_refused():
    """Room for three answers: the fourth is refused, a small one is not, and what is read makes room again."""

    async def play():
        budget = ByteBudget(3 * SIZE)
        gate = gate_of(budget)
        clients = [Client(gate, (b"{}", False), answer_bytes=SIZE) for _ in range(9)]
        await settle()
        assert [one.status for one in clients] == [200] * 3 + [503] * 6
        assert all(b"retry-after" in one.headers for one in clients[3:])
        assert 3 * SIZE - 3 * budget.free_bytes <= budget.n_bytes <= budget.max_bytes
        small = Client(gate, (b"{}", False), answer_bytes=1000)
        small.reads.set()
        await small.task
        assert (small.status, small.n_read) == (200, 1000)
        for one in clients:
            one.reads.set()
            await one.task
        assert ([one.n_read for one in clients[:3]], budget.n_bytes) == ([SIZE] * 3, 0)
        last = Client(gate, (b"{}", False), answer_bytes=SIZE)
        last.reads.set()
        await last.task
        assert last.status == 200

    asyncio.run(play())


def test_half_sent_bodies_are_bounded_and_refuse_no_small_request():
    async def play():
        budget = ByteBudget(200, free_bytes=10)
        gate = gate_of(budget)
        halves = [Client(gate, (b"{" * 60, True)) for _ in range(4)]
        await settle()
        small, large = Client(gate, (b"{}", False)), Client(gate, (b"{" * 90, False))
        for one in (small, large):
            one.reads.set()
            await one.task
        assert (small.status, large.status, budget.n_bytes) == (200, 503, 200)
        assert b"retry-after" in large.headers
        halves[0].task.cancel()
        await asyncio.gather(halves[0].task, return_exceptions=True)
        assert budget.n_bytes == 150
        for one in halves[1:]:
            one.task.cancel()
        await asyncio.gather(*(one.task for one in halves), return_exceptions=True)
        whole = Client(gate, (b"{" * 50, True), (b"}" * 50, False))
        whole.reads.set()
        await whole.task
        assert (whole.status, budget.n_bytes) == (200, 0)

    asyncio.run(play())


def test_server_waits_for_clients_that_do_not_read(connect):  # noqa: F811
    """Uvicorn holds no more than a part of an answer, so that the budget counts what is in memory."""
    budget = ByteBudget(5 * SIZE)
    head = HEAD.replace(b"/healthz", b"/v1/x?%d" % (2 * SIZE))
    with served(gate_of(budget), total=3, per_client=3) as port:
        slow = []
        for _ in range(2):
            made = socket.socket()
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            made.settimeout(GUARD_S)
            made.connect(("127.0.0.1", port))
            made.sendall(head + b"\r\n")
            assert made.recv(15) == b"HTTP/1.1 200 OK"
            slow.append(made)
        assert budget.n_bytes >= 4 * SIZE - 2 * budget.free_bytes
        assert ask(connect(port), head) == b"HTTP/1.1 503 Service Unavailable"
        for _ in range(3):  # more connections than there may be: those that do not read give way
            connect(port).sendall(HEAD)
        assert ask(connect(port), HEAD) == b"HTTP/1.1 200 OK"
        for made in slow:
            made.close()
    assert budget.n_bytes == 0
