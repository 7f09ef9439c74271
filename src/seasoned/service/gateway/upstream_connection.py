"""One HTTP/1.1 connection to an upstream server.

It is a protocol of the event loop, and no `asyncio.StreamReader`: that one forgets what arrived before the server broke
the connection off, and it does not say that an answer begins while the request is still being sent. Both are what a
server does that refuses a large upload without reading it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
from typing import Any

from seasoned.service.gateway.proxy_headers import RawHeaders

__all__ = ["ClosedBeforeAnswerError", "UpstreamConnection"]

_PART_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 64 * 1024
_REFUSED, _LAST_STATUS = 400, 599


class ClosedBeforeAnswerError(ConnectionError):
    """The server closed a connection before the first byte of an answer."""


class UpstreamConnection(asyncio.Protocol):
    """A connection, and the exchange on it: one request and its answer at a time.

    Args:
        h11: the module.
        silence_s: seconds without a byte before an exchange is given up.

    Attributes:
        idle_since: when the last exchange ended, by the clock of the loop.
    """

    def __init__(self, h11: Any, silence_s: float) -> None:
        self._h11, self._silence_s = h11, silence_s
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._transport: Any = None
        self._arrived = bytearray()
        self._is_ended = self._is_silent = self._is_full = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_head = False
        self._is_complete = False  # whether the end of the answer was read
        self._needs_data = False  # whether all that was given to h11 was read
        self._loop = asyncio.get_running_loop()
        self._waits_since: float | None = None  # by the clock of the loop; None: it does not wait
        self._silence_check: asyncio.TimerHandle | None = None
        self.idle_since = self._loop.time()

    # ------------------------------------------------------------------------------------------ called by the loop

    def connection_made(self, transport: Any) -> None:
        """Take the transport."""
        self._transport = transport
        self._check_later(self._silence_s)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the server."""
        self._arrived += data
        if len(self._arrived) >= _PART_BYTES:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Take the end of what the server sends."""
        self._is_ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """Take the end of the connection. What has arrived is still read."""
        self._is_ended, self._error = True, error
        if error is not None and self._transport.get_extra_info("ssl_object") is None:
            with contextlib.suppress(OSError):  # a write failed, and the loop has not read what came before
                self._arrived += os.read(self._transport.get_extra_info("socket").fileno(), _PART_BYTES)
        self._wake()

    def pause_writing(self) -> None:
        """Take note that the server reads more slowly than it is sent to."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Take note that there is room again."""
        self._is_full = False
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        """Wait until something happens on the connection. Raises: TimeoutError."""
        self._waits_since = self._loop.time()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = self._waits_since = None
        if self._is_silent:
            raise TimeoutError

    def _check_later(self, seconds: float) -> None:
        self._silence_check = self._loop.call_later(seconds, self._check_silence)

    def _check_silence(self) -> None:
        """Give the answer up if the server was silent for too long: one timer instead of one for each part."""
        waited_s = 0.0 if self._waits_since is None else self._loop.time() - self._waits_since
        if waited_s < self._silence_s:
            self._check_later(self._silence_s - waited_s)
        else:
            self._is_silent = True
            self._wake()

    # ------------------------------------------------------------------------------------------ an exchange

    @property
    def is_usable(self) -> bool:
        """Whether the server left it open, and nothing has arrived that no request asked for.

        Such bytes would be read as the answer to the next request. The system is asked too: the loop may not yet have
        seen them, nor that the server has closed it.
        """
        if self._is_ended or self._arrived or self._transport.is_closing():
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    async def exchange(self, method: bytes, target: bytes, headers: RawHeaders, body: bytes) -> Any:
        """Send a request, and return the head of its answer.

        If the server refuses a request before it has all of it, the rest is not sent (RFC 9112, section 9.3).
        """
        http, h11 = self._http, self._h11
        self._is_head = method == b"HEAD"
        self._is_complete = self._needs_data = False
        sent = http.send(h11.Request(method=method, target=target, headers=headers))
        head = None
        for start in range(0, len(body), _PART_BYTES):
            sent += http.send(h11.Data(body[start : start + _PART_BYTES]))
            self._transport.write(sent)
            sent = b""
            while self._is_full and head is None and not self._is_ended:
                await self._wait()
                head = self._read_head()
            if self._is_ended or (head is not None and head.status_code >= _REFUSED):
                break
        else:
            self._transport.write(sent + http.send(h11.EndOfMessage()))
        while head is None:
            head = self._read_head()
            if head is None:
                await self._receive(is_first=True)
        if head.status_code > _LAST_STATUS:
            raise h11.RemoteProtocolError(f"the status {head.status_code}")
        return head

    def _read_head(self) -> Any:
        """Return the head of the answer if it has arrived; those of the kind `100 Continue` are passed over."""
        http, h11 = self._http, self._h11
        if self._arrived:
            self._take()
        while True:
            event = http.next_event()
            if isinstance(event, h11.Response):
                return event
            if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                return None

    async def _receive(self, *, is_first: bool = False) -> None:
        """Give h11 what has arrived, once there is something.

        Raises:
            ClosedBeforeAnswerError: the connection ended, and none of the answer had arrived.
        """
        while not self._arrived and not self._is_ended:
            await self._wait()
        if not self._arrived and self._error is not None:
            raise ClosedBeforeAnswerError if is_first and not self._has_begun else self._error
        if not self._arrived and is_first and not self._has_begun:
            raise ClosedBeforeAnswerError
        self._take()

    @property
    def _has_begun(self) -> bool:
        return bool(self._http.trailing_data[0]) or self._http.their_state is not self._h11.SEND_RESPONSE

    def _take(self) -> None:
        """Give h11 what has arrived; nothing is the end of the connection."""
        self._http.receive_data(bytes(self._arrived))
        self._arrived.clear()
        self._needs_data = False
        if not self._is_ended:
            self._transport.resume_reading()

    async def next_part(self) -> bytes | None:
        """Return the next part of the body: all of it that has arrived; None at its end."""
        http, h11 = self._http, self._h11
        parts: list[bytes] = []
        while not self._is_complete:
            if self._needs_data:
                if parts:
                    break
                await self._receive()
            event = http.next_event()
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
            elif event is h11.NEED_DATA:
                self._needs_data = True
            else:
                self._is_complete = True
        return b"".join(parts) if parts else None

    def start_next(self) -> bool:
        """Return whether the connection can take another request."""
        http, h11 = self._http, self._h11
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
            return False
        if self._is_head or http.trailing_data[0] or not self.is_usable:  # some servers send a body after HEAD
            return False
        http.start_next_cycle()
        self.idle_since = self._loop.time()
        return True

    def close(self) -> None:
        """Close the connection at once."""
        if self._silence_check is not None:
            self._silence_check.cancel()
        self._transport.abort()
