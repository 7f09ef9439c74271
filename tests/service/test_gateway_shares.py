"""Shares in a gateway: no mode takes the threads of another, and no token the places of another."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from raw_upstream import GUARD_S, RawAnswer, exchange, raw_upstream
from recorded_streams import CHAT
from served_gateway import gateway

from seasoned.errors import StoreBusyError
from seasoned.service import GatewaySettings
from seasoned.service.bearer_tokens import Token
from seasoned.service.gateway.call_taps import ChangedCall
from seasoned.service.gateway.gateway_shares import MAX_CALLS, CallPlaces

ASKED = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
PATH = "/v1/chat/completions"


@pytest.fixture
def upstream():
    with raw_upstream() as server:
        yield server


class SlowAndQuick:
    """A mode for each family: `slow` waits, the others answer at once."""

    def __init__(self):
        self.goes_on = threading.Event()

    def mode_of(self, context):
        return context.task

    def __call__(self, call):
        if call.place.context.task == "slow":
            assert self.goes_on.wait(GUARD_S)
        return ChangedCall(None, call.place.context, "memory")


def test_slow_mode_takes_no_thread_of_another(upstream):
    upstream.answer, modes = RawAnswer([CHAT], framing="length"), SlowAndQuick()

    def mode_of_answer(task):
        headers = [("x-seasoned-task", task)] if task else []
        return dict(exchange(port, PATH, ASKED, headers)[1])["x-seasoned-mode"]

    settings = GatewaySettings(changes={"default": modes}, mode_wait_s=0.7)
    with gateway(upstream.url, gateway=settings) as port, ThreadPoolExecutor(12) as clients:
        slow = [clients.submit(mode_of_answer, "slow") for _ in range(10)]
        quick = clients.submit(mode_of_answer, "quick")
        observed = clients.submit(mode_of_answer, None)
        assert (quick.result(), observed.result()) == ("memory", "observe")
        assert {one.result() for one in slow} == {"base"}
        modes.goes_on.set()


def taken(places, holder):
    """Take all places that a holder gets; return how many, and what gives them back."""
    with contextlib.ExitStack() as stack:
        n = 0
        while True:
            try:
                stack.enter_context(places.taken(holder))
            except StoreBusyError:
                return n, stack.pop_all()
            n += 1


def test_no_token_takes_all_places():
    places = CallPlaces(is_shared=True, n_places=16)
    (ann, of_ann), (bob, of_bob), (eve, _) = [taken(places, name) for name in ("ann", "bob", "eve")]
    assert (ann, bob, eve) == (8, 4, 2)
    of_ann.close()
    of_bob.close()
    assert taken(places, "bob")[0] == 7
    assert taken(CallPlaces(is_shared=False, n_places=16), "ann")[0] == 16


def test_second_token_is_answered_while_the_first_has_all_it_may_have(upstream):
    goes_on, keys = threading.Event(), {name: f"the-token-of-{name}-alone" for name in ("ann", "bob")}

    def answer(request):
        assert b"wait" not in request[3] or goes_on.wait(GUARD_S)
        return RawAnswer([CHAT], framing="length")

    upstream.answer = answer
    waiting = ASKED.replace(b"hi", b"wait")
    head = (
        f"POST {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {keys['ann']}\r\ncontent-type: application/json\r\n"
    )
    tokens = [Token(key, name) for name, key in keys.items()]
    with gateway(upstream.url, token=tokens) as port, contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(MAX_CALLS // 2 + 1)
        ]
        for client in clients:
            client.sendall(f"{head}content-length: {len(waiting)}\r\n\r\n".encode() + waiting)
        [refused], _, _ = select.select(clients, [], [], GUARD_S)
        assert refused.recv(100).startswith(b"HTTP/1.1 503")
        assert exchange(port, PATH, ASKED, [("authorization", f"Bearer {keys['bob']}")])[0] == 200
        goes_on.set()
