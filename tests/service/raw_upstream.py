"""A server of raw bytes for tests, in threads: each answer is cut, framed and timed as a test says."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from dataclasses import dataclass, field

GUARD_S = 20


@dataclass
class RawAnswer:
    """What a server sends: a head, and a body in parts; `framing` is `length`, `chunked` or `close`."""

    parts: list
    status: str = "200 OK"
    headers: list = field(default_factory=lambda: [("content-type", "text/event-stream")])
    framing: str = "chunked"
    pause_s: float = 0.0
    breaks: bool = False  # the connection ends before the body does

    def pieces(self):
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in self.headers)]
        if self.framing == "length":
            lines.append(f"content-length: {sum(map(len, self.parts)) + (9 if self.breaks else 0)}")
        elif self.framing == "chunked":
            lines.append("transfer-encoding: chunked")
        else:
            lines.append("connection: close")
        yield ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        for part in self.parts:
            yield b"%x\r\n%s\r\n" % (len(part), part) if self.framing == "chunked" else part
        if self.framing == "chunked" and not self.breaks:
            yield b"0\r\n\r\n"


class RawUpstream:
    """Answers each request with `answer`, a `RawAnswer` or a function of the request; `received` has all requests.

    `n_connections` is the number of connections so far, `n_gone` that of those which a client closed.
    """

    def __init__(self):
        self.answer, self.received, self.gone = RawAnswer([b"{}"]), [], threading.Event()
        self.n_connections = self.n_gone = 0
        self._counting = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.n_connections += 1
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError, ValueError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            file = connection.makefile("rb")
            while line := file.readline():
                method, target, _ = line.decode().split(" ")
                headers = []
                while (field_line := file.readline()) not in (b"\r\n", b""):
                    name, _, value = field_line.decode("latin-1").partition(":")
                    headers.append((name.lower(), value.strip()))
                body = file.read(int(dict(headers).get("content-length", 0)))
                self.received.append((method, target, headers, body))
                answer = self.answer(self.received[-1]) if callable(self.answer) else self.answer
                try:
                    for piece in answer.pieces():
                        connection.sendall(piece)
                        time.sleep(answer.pause_s)
                except OSError:
                    with self._counting:
                        self.n_gone += 1
                    self.gone.set()
                    return
                if answer.breaks or answer.framing == "close":
                    return


@contextlib.contextmanager
def raw_upstream():
    """Run a server of raw bytes."""
    upstream = RawUpstream()
    try:
        yield upstream
    finally:
        upstream.close()


def exchange(port, path, body=b"{}", headers=(), method="POST"):
    """Return status, headers and body of an answer; a body that breaks off is an `IncompleteRead`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GUARD_S)
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in [("content-type", "application/json"), *headers]:
            connection.putheader(name, value)
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()
