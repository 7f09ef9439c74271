"""Shares in a gateway: no mode takes the threads of another, and no token the places of another."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from raw_upstream import GUARD_S, RawAnswer, exchange, raw_upstream
from recorded_streams import CHAT
from served_gateway import gateway

from seasoned.service import GatewaySettings
from seasoned.service.gateway.call_taps import ChangedCall

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
