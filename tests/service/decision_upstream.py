"""A real upstream server of decisions for tests, in a thread: it answers as it is told, and keeps what it was sent."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading

DESKS = {"sales": 0.8, "refunds": 0.15, "it": 0.05}
TICKET = "ticket: the lamp is broken"


def systemone_request(options=tuple(DESKS), state=TICKET, **more):
    criteria = dict.fromkeys(options)
    questions = {"desk": {"type": "choice", "instructions": "Whose?", "criteria": criteria}, **more}
    return {"model": "jev", "state": state, "questions": questions}


def systemone_answer(**more):
    choice = {"type": "choice", "choice": "sales", "probabilities": DESKS, "confidence": 0.4}
    return {"model": "jev-1", "answers": {"desk": choice, **more}, "usage": {"input_tokens": 9}, "unknown": [1, None]}


def decisions_request(options=tuple(DESKS)):
    choices = [{"value": option} for option in options]
    return {
        "model": "gpt",
        "input": TICKET,
        "questions": [{"type": "choice", "name": "desk", "instructions": "Whose?", "choices": choices}],
    }


def decisions_answer():
    probabilities = [{"value": option, "probability": p} for option, p in DESKS.items()]
    choice = {"type": "choice", "name": "desk", "choice": "sales", "confidence": 0.4, "probabilities": probabilities}
    return {"model": "gpt-1", "answers": [choice], "usage": {"input_tokens": 9}}


class UpstreamServer:
    """Answers with `body` (bytes, JSON, or a function of the handler), `status` and `headers`."""

    def __init__(self):
        self.body, self.status, self.headers, self.received = systemone_answer(), 200, {}, []

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        self.received.append((handler.command, handler.path, dict(handler.headers), body))
        if callable(self.body):
            self.body(handler)
            return
        content = self.body if isinstance(self.body, bytes) else json.dumps(self.body, indent=1).encode()
        handler.send_response(self.status)
        for name, value in {"content-type": "application/json", **self.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@contextlib.contextmanager
def upstream_server():
    """Run an upstream server; its `url` is that of a free port."""
    told = UpstreamServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            with contextlib.suppress(ConnectionError):
                told.answer(self)

        do_GET = do_DELETE = do_POST

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    told.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
