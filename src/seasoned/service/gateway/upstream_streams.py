"""Asynchronous HTTP client of an upstream server: answers arrive in parts, as the server sends them.

`seasoned.service.decisions.upstream` reads whole answers, in threads. Here a part is passed on before the next one is
read, so that a slow client slows the upstream server, and this process holds one part. It is HTTP/1.1 by `h11`, which
Uvicorn needs too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from seasoned.checks import check_number
from seasoned.errors import ModelAnswerError, ModelError, ModelTimeoutError, ModelUnavailableError
from seasoned.registry import load_extra
from seasoned.service.decisions.upstream import Upstream
from seasoned.service.gateway.proxy_headers import RawHeaders
from seasoned.service.gateway.upstream_connection import ClosedBeforeAnswerError, UpstreamConnection

__all__ = ["SILENCE_S", "UpstreamAnswer", "UpstreamStreams"]

SILENCE_S = 600.0
"""Seconds without a byte of the upstream server before an answer is given up: models think for minutes."""

_CONNECT_S = 10.0
_MAX_IDLE = 64
_IDLE_S = 4.0  # servers close an idle connection after 5 s or more
_IDEMPOTENT = (b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE")


class UpstreamStreams:
    """A server to which requests are forwarded from one event loop. Its connections are kept open between requests.

    Args:
        url: `http://HOST:PORT` or `https://HOST`, with or without `/v1` at its end.
        silence_s: seconds without a byte before an answer is given up; the whole answer may take any time.
        connect_s: seconds for a connection.

    Raises:
        InputError: it is no such URL, or has a user name or a query.
        MissingExtraError: h11 is not installed.

    Example:
        >>> UpstreamStreams("http://127.0.0.1:8000/v1").url
        'http://127.0.0.1:8000'
    """

    def __init__(self, url: str, *, silence_s: float = SILENCE_S, connect_s: float = _CONNECT_S) -> None:
        self.url = Upstream(url).url
        parts = urlsplit(self.url)
        self._prefix = parts.path.encode()
        self._host, self._port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._authority = parts.netloc.encode()
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._silence_s = check_number("silence_s", silence_s, above=0.0)
        self._connect_s = check_number("connect_s", connect_s, above=0.0)
        self._h11 = load_extra("h11", "serve")
        self._idle: list[UpstreamConnection] = []
        self._open: set[UpstreamConnection] = set()

    async def send(self, method: bytes, target: bytes, headers: RawHeaders, body: bytes) -> UpstreamAnswer:
        """Send a request, and return the answer when its head has arrived.

        A request on a connection that the server then closes, without a byte of an answer, is sent again only if its
        method is idempotent. A POST may have been acted upon, and a proxy must not repeat it (RFC 9110, section 9.2.2):
        its client learns of the failure, and decides. So that this is rare, a connection is not used again after 4 s.

        Args:
            method, target: such as `POST`, `/v1/messages?beta=true`.
            headers: all but `host` and `content-length`.
            body: of the request.

        Raises:
            ModelTimeoutError: the server was silent for too long.
            ModelUnavailableError: it could not be reached, or broke off.
            ModelAnswerError: its answer is no HTTP.
        """
        framed = [(b"host", self._authority), *headers]
        if body or method not in (b"GET", b"DELETE"):
            framed.append((b"content-length", b"%d" % len(body)))
        while True:
            connection, is_new = await self._connection()
            self._open.add(connection)
            try:
                head = await connection.exchange(method, self._prefix + target, framed, body)
            except BaseException as error:
                self._drop(connection)
                if isinstance(error, ClosedBeforeAnswerError) and not is_new and method in _IDEMPOTENT:
                    continue  # the server closed an idle connection: the request is sent again on another one
                if isinstance(error, Exception):
                    raise self._error(error) from error
                raise
            return UpstreamAnswer(self, connection, head)

    async def _connection(self) -> tuple[UpstreamConnection, bool]:
        """Return an idle connection, or a new one, and whether it is new."""
        loop = asyncio.get_running_loop()
        while self._idle:
            connection = self._idle.pop()
            if loop.time() - connection.idle_since < _IDLE_S and connection.is_usable:
                return connection, False
            self._drop(connection)
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await loop.create_connection(
                    lambda: UpstreamConnection(self._h11, self._silence_s), self._host, self._port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            raise self._error(error) from error
        return connection, True

    def _drop(self, connection: UpstreamConnection) -> None:
        self._open.discard(connection)
        connection.close()

    def release(self, connection: UpstreamConnection) -> None:
        """Keep a connection for the next request if its answer was read to the end; else close it."""
        self._open.discard(connection)
        if len(self._idle) < _MAX_IDLE and connection.start_next():
            self._idle.append(connection)
        else:
            connection.close()

    def _error(self, error: Exception) -> ModelError:
        """Return the error for a failed request; it names the server, and nothing of the request."""
        if isinstance(error, ModelError):
            return error
        if isinstance(error, TimeoutError):
            return ModelTimeoutError(
                f"{self.url}: silent for {self._silence_s:g} s, or no connection in {self._connect_s:g} s",
                "an upstream answers in time",
                "Send it again.",
            )
        if isinstance(error, self._h11.ProtocolError):
            return ModelAnswerError(f"{self.url}: no HTTP/1.1", "an upstream speaks it", "Check the URL.")
        kind = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        if isinstance(error, ClosedBeforeAnswerError):
            kind = "it closed the connection before it answered"
        return ModelUnavailableError(
            f"{self.url}: {kind}", "the upstream server must give a whole answer", "Check that it runs, and its log."
        )

    def close(self) -> None:
        """Close all connections."""
        for connection in [*self._idle, *self._open]:
            self._drop(connection)
        self._idle.clear()


class UpstreamAnswer:
    """An answer whose head has arrived.

    Attributes:
        status: of the answer.
        headers: as the server sent them, names in lower case.
    """

    def __init__(self, upstream: UpstreamStreams, connection: UpstreamConnection, head: Any) -> None:
        self._upstream, self._connection = upstream, connection
        self.status: int = head.status_code
        self.headers: RawHeaders = list(head.headers)

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body in the parts in which it arrives, without the framing of the connection.

        Raises:
            ModelError: the server broke off, or was silent for too long.
        """
        try:
            while (part := await self._connection.next_part()) is not None:
                yield part
        except (OSError, TimeoutError, self._upstream._h11.ProtocolError) as error:
            raise self._upstream._error(error) from error

    def close(self) -> None:
        """End the exchange: the connection is closed if there is more of the answer."""
        self._upstream.release(self._connection)
