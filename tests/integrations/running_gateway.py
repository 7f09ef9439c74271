"""A gateway that listens on a port, for clients that connect to it."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.request

from raw_upstream import GUARD_S

from seasoned.service import DecisionSettings, GatewaySettings, make_app
from seasoned.service.memory_pool import MemoryPool
from seasoned.service.server import listen, make_server

WAITING = {"mode_wait_s": GUARD_S, "id_wait_s": GUARD_S}


class Gateway:
    """A running gateway: the base URL for clients, and the memory behind it."""

    def __init__(self, url, path, headers=()):
        self.url, self.path, self.headers = url, path, {"content-type": "application/json", **dict(headers)}

    @property
    def address(self):
        """Its host and port."""
        return "127.0.0.1", int(self.url.rpartition(":")[2])

    def post(self, path, body=None):
        request = urllib.request.Request(self.url + path, json.dumps(body or {}).encode(), self.headers, method="POST")
        with urllib.request.urlopen(request, timeout=GUARD_S) as response:
            return json.load(response)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=GUARD_S) as response:
            return json.load(response)


@contextlib.contextmanager
def gateway_of(server, path, redact=None, token=None, **settings):
    """Serve a gateway."""
    decisions, calls = DecisionSettings(upstream=server.url), GatewaySettings(**{**WAITING, **settings})
    app = make_app(path, create=True, redact=redact, token=token, decisions=decisions, gateway=calls)
    ready, listening = threading.Event(), listen("127.0.0.1", 0, secured=token is not None)
    running = make_server(app, ready=ready.set)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(GUARD_S)
        yield Gateway(f"http://127.0.0.1:{listening.getsockname()[1]}", path)
    finally:
        running.should_exit = True
        thread.join(GUARD_S)
        listening.close()


def episodes_of(path):
    """All stored episodes of a memory that was served."""
    pool = MemoryPool(path, None)
    try:
        memory = pool.memory(None)
        return sorted(memory.episodes(), key=lambda one: one.id)
    finally:
        pool.close()
