"""A running gateway for tests."""

from __future__ import annotations

import contextlib
import threading

from raw_upstream import GUARD_S

from seasoned.service import DecisionSettings, make_app
from seasoned.service.server import listen, make_server


@contextlib.contextmanager
def gateway(upstream_url, path=":memory:", **options):
    """Serve a gateway, on a memory in RAM by default, and return its port."""
    app = make_app(path, create=True, decisions=DecisionSettings(upstream=upstream_url), **options)
    ready, listening = threading.Event(), listen("127.0.0.1", 0, secured=False)
    server = make_server(app, ready=ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(GUARD_S)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(GUARD_S)
        listening.close()
