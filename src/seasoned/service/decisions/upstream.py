"""HTTP client of an upstream server: a pool of connections, with limits on the time and the bytes of an answer."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import http.client
import io
import re
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from seasoned.checks import check_number, check_text
from seasoned.errors import (
    InputError,
    ModelAnswerError,
    ModelError,
    ModelTimeoutError,
    ModelUnavailableError,
    SeasonedError,
    StoreBusyError,
    excerpt,
)
from seasoned.service.byte_budget import FREE_BYTES, HeldBytes
from seasoned.service.decisions.http_messages import HttpAnswer
from seasoned.sync import cancelled_by

__all__ = ["UPSTREAM_TIMEOUT_S", "Upstream"]

Headers = Sequence[tuple[str, str]]

MAX_UPSTREAM_BYTES = 16 * 1024 * 1024
UPSTREAM_TIMEOUT_S = 60.0
_MAX_IDLE = 64
_PART_BYTES = 64 * 1024

_CONNECTION_HEADERS = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_OWN_REQUEST_HEADERS = frozenset(
    ["host", "content-length", "accept-encoding", "expect", "cookie", "origin", "referer", "authorization"]
)
_KEPT_ANSWER_HEADERS = frozenset(["content-type", "content-encoding", "retry-after", "retry-after-ms", "request-id"])
_KEPT_PREFIXES = ("openai-", "ratelimit", "x-")
_DROPPED_PREFIXES = ("x-accel", "x-content-type", "x-dns", "x-frame", "x-seasoned-", "x-sendfile", "x-xss")
_BREAKS = re.compile(r"[\0\r\n]")


def _is_kept(name: str) -> bool:
    """Return whether a header of an answer reaches the client: none that steers a browser or a proxy."""
    return name in _KEPT_ANSWER_HEADERS or (name.startswith(_KEPT_PREFIXES) and not name.startswith(_DROPPED_PREFIXES))


class _DeadlineReader(io.RawIOBase):
    """Reads a socket until a deadline, however slowly the bytes come."""

    def __init__(self, sock: Any, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0.0:
            raise TimeoutError("the deadline has passed")
        self._sock.settimeout(left_s)
        return int(self._sock.recv_into(buffer))


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: Any, *args: Any, deadline: float, **fields: Any) -> None:
        super().__init__(sock, *args, **fields)
        self._open_file = self.fp  # keeps the socket open where the connection closes with this answer
        self.fp = io.BufferedReader(_DeadlineReader(sock, deadline), _PART_BYTES)

    def _read_status(self) -> tuple[str, int, str]:
        read: Callable[[], tuple[str, int, str]] = super()._read_status  # type: ignore[misc]
        status = read()
        while 100 < status[1] < 200 and status[1] != http.HTTPStatus.SWITCHING_PROTOCOLS:  # such as 103 Early Hints
            http.client.parse_headers(self.fp)
            status = read()
        return status

    def close(self) -> None:
        super().close()
        self._open_file.close()


class _OpenSocket:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def cancel(self) -> None:
        """Wake the thread that reads the socket or writes to it, under TLS too."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)


class Upstream:
    """A server to which requests are forwarded, from any thread. Its connections are kept open between requests.

    A `Cancellation` ends the request of its context, once it is connected: nobody waits for the answer any more.

    Args:
        url: `http://HOST:PORT` or `https://HOST`, with or without `/v1` at its end.
        timeout_s: seconds for a whole answer.
        max_bytes: the largest answer.

    Raises:
        InputError: it is no such URL, or has a user name or a query.

    Example:
        >>> Upstream("http://127.0.0.1:8000/v1").url
        'http://127.0.0.1:8000'
    """

    def __init__(self, url: str, *, timeout_s: float = UPSTREAM_TIMEOUT_S, max_bytes: int = MAX_UPSTREAM_BYTES) -> None:
        rule, next_step = "an upstream is http://HOST:PORT or https://HOST", "Name the server's base URL."
        try:
            parts = urlsplit(check_text("upstream", url))
            port = parts.port
        except ValueError as error:
            raise InputError(f"upstream = {excerpt(url)} ({error})", rule, next_step) from None
        if parts.username is not None or parts.password is not None:
            raise InputError(
                f"upstream = {parts.scheme}://...@{parts.hostname}",
                "an upstream's URL holds no secret",
                "Let clients send Authorization, or set SEASONED_UPSTREAM_KEY.",
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InputError(f"upstream = {excerpt(url)}", rule, next_step)
        self._prefix = parts.path.rstrip("/").removesuffix("/v1")
        self.url = f"{parts.scheme}://{parts.netloc}{self._prefix}"
        self._host = parts.hostname
        self._port = port
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._timeout_s = check_number("timeout_s", timeout_s, above=0.0)
        self._max_bytes = max_bytes
        self._idle: list[http.client.HTTPConnection] = []
        self._in_use: dict[int, socket.socket] = {}  # by thread
        self._closed = False
        self._lock = threading.Lock()

    def send(
        self, method: str, path: str, body: bytes, headers: Iterable[tuple[str, str]], *, held: HeldBytes | None = None
    ) -> HttpAnswer:
        """Send a request, and return the whole answer with the headers of its type, limits and ids.

        Args:
            method, path: such as `POST`, `/v1/decisions`.
            body: of the request.
            headers: of the client's request; those of its connection, its host and its cookies are left out, and so is
                `authorization`, which the caller adds to `headers` in capitals (`Authorization`) if it is to be sent.
            held: counts the bytes of the answer; a large one is read when there is room. None: it is not counted.

        Raises:
            StoreBusyError: there was no room for the answer in time.
            ModelTimeoutError: there was no whole answer in time.
            ModelUnavailableError: the server could not be reached, or broke off, or the request was cancelled.
            ModelAnswerError: the answer is too large, or its status is a redirection or no final one.
        """
        sent = {"Content-Type": "application/json"} if body else {}
        for name, value in headers:
            known = name.lower() in _CONNECTION_HEADERS | _OWN_REQUEST_HEADERS or name.lower().startswith("x-seasoned-")
            if name == "Authorization" or not known:
                sent[name.title()] = value
        deadline = time.monotonic() + self._timeout_s
        while True:
            connection, is_new = self._connection(deadline)
            try:
                answer = self._exchange(connection, method, f"{self._prefix}{path}", body, sent, deadline, held)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                connection.close()
                if is_new:  # else the server closed an idle connection: the request is sent again on a new one
                    raise self._error(error) from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                connection.close()
                raise self._error(error) from error
            except concurrent.futures.CancelledError:
                connection.close()
                rule = "an upstream is asked while its client waits"
                raise ModelUnavailableError(f"a request to {self.url}", rule, "Send it again.") from None
            except SeasonedError:
                connection.close()
                raise
            else:
                return answer
            finally:
                with self._lock:
                    self._in_use.pop(threading.get_ident(), None)

    def _connection(self, deadline: float) -> tuple[http.client.HTTPConnection, bool]:
        """Return an idle connection, or a new one, and whether it is new.

        An idle connection with something to read is of no use: the server has closed it, or has sent what answers no
        request, as load balancers do with 408.
        """
        while True:
            with self._lock:
                self._check_open()
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                break
            if not _is_readable(idle.sock):
                return idle, False
            idle.close()
        timeout_s = max(0.001, deadline - time.monotonic())
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s), True
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=self._tls), True

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes,
        headers: dict[str, str],
        deadline: float,
        held: HeldBytes | None,
    ) -> HttpAnswer:
        if connection.sock is None:
            connection.connect()
            cast(socket.socket, connection.sock).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._check_open()
            self._in_use[threading.get_ident()] = connection.sock
        connection.sock.settimeout(max(0.001, deadline - time.monotonic()))
        connection.response_class = functools.partial(_Answer, deadline=deadline)  # type: ignore[assignment]
        with cancelled_by(_OpenSocket(connection.sock)):
            sent_whole = _sent_whole(connection, method, path, body, headers, deadline)
            response = connection.getresponse()
            content = self._content(response, deadline, held)
        if 300 <= response.status <= 399:  # the client knows this service's addresses alone
            raise ModelAnswerError(
                f"a redirection (status {response.status}) of {self.url}",
                "requests are not redirected, since a client's key is for this server",
                "Name the server's own base URL, perhaps with https.",
            )
        if not 200 <= response.status <= 599:
            raise ModelAnswerError(
                f"status {response.status} of {self.url}",
                "an upstream's final status is one of 200 to 599",
                "Check that the URL is that of the server's API.",
            )
        kept = [(name.lower(), value) for name, value in response.getheaders() if _is_kept(name.lower())]
        kept = [(name, value) for name, value in kept if not _BREAKS.search(value)]  # a folded line cannot be sent on
        response.close()
        if sent_whole and not response.will_close:
            with self._lock:
                if len(self._idle) < _MAX_IDLE and not self._closed:
                    self._idle.append(connection)
                    return HttpAnswer(response.status, content, tuple(kept))
        connection.close()
        return HttpAnswer(response.status, content, tuple(kept))

    def _content(self, response: http.client.HTTPResponse, deadline: float, held: HeldBytes | None) -> bytes:
        """Return the body of an answer, once there is room for all of it: parts of many would fill up the room."""

        def hold(n_bytes: int) -> None:
            if n_bytes > self._max_bytes:
                raise ModelAnswerError(
                    f"an answer of {self.url} of more than {self._max_bytes} bytes",
                    "an upstream's answer is read whole, up to this size",
                    "Ask for less at once.",
                )
            if held is not None and not held.hold(n_bytes, timeout_s=max(0.0, deadline - time.monotonic())):
                rule = "the answers that are worked on at a time have a limited size together"
                raise StoreBusyError("one large answer more", rule, "Send it again in a moment.")

        length: int | None = response.length
        hold(length or 0)
        parts: list[bytes] = []
        size_bytes = 0
        while part := response.read(_PART_BYTES):
            parts.append(part)
            size_bytes += len(part)
            if length is None and size_bytes > min(FREE_BYTES, self._max_bytes):
                hold(max(size_bytes, self._max_bytes))
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        if length is None:
            hold(size_bytes)
        return b"".join(parts)

    def _error(self, error: Exception) -> ModelError:
        """Return the error for a failed request; it names the server, and nothing of the request."""
        if isinstance(error, TimeoutError):
            return ModelTimeoutError(
                f"{self.url}: no whole answer in {self._timeout_s:g} s",
                "an upstream answers in time",
                "Send it again, or give the server more time (--upstream-timeout).",
            )
        kind = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return ModelUnavailableError(
            f"{self.url}: {kind}", "the upstream server must give a whole answer", "Check that it runs, and its log."
        )

    def _check_open(self) -> None:
        if self._closed:
            raise ModelUnavailableError(self.url, "the service stops", "Send it again when it runs.")

    def close(self) -> None:
        """Close all connections; a request that waits for its answer fails."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for sock in self._in_use.values():
                _OpenSocket(sock).cancel()
        for connection in idle:
            connection.close()


def _sent_whole(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes,
    headers: dict[str, str],
    deadline: float,
) -> bool:
    """Send a request, and return whether all of it was sent.

    A server may answer before it has read a large body, and close: limits of a rate or a size do so. Then the rest is
    not sent, and the answer is read.
    """
    try:
        if len(body) <= _PART_BYTES:
            connection.request(method, path, body, headers)
            return True
        connection.request(method, path, None, {**headers, "Content-Length": str(len(body))})
        if isinstance(connection, http.client.HTTPSConnection):  # may be readable by messages of TLS alone
            connection.send(body)
            return True
        return _body_sent(cast(socket.socket, connection.sock), memoryview(body), deadline)
    except (BrokenPipeError, ConnectionResetError):  # what the server has sent before is still there
        return False


def _body_sent(sock: socket.socket, left: memoryview, deadline: float) -> bool:
    """Send a body until the server answers; return whether all of it was sent."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while left:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the deadline has passed")
            if ready[0][1] & selectors.EVENT_READ:
                return False
            left = left[sock.send(left[:_PART_BYTES]) :]
    return True


def _is_readable(sock: Any) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0.0))
