"""Forwarding of a request to the upstream server, and of its answer to the client, part by part and byte for byte.

    client -> [mode: parsed call -> altered call] -> upstream server -> client
                  |                                       |
                  +-> or: a choice of whole answers       +-> tap: the bytes, read after the end of the answer

A part of an answer is sent on as it arrives, and the next one is read when the client has taken it. Each part is
spooled before it is sent, so that no call is lost of which the client has an answer. If the client goes, the connection
to the upstream server is closed, and what has arrived is recorded as a cut answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote_plus

from seasoned.errors import InputError, ModelError, ModelTimeoutError, SeasonedError
from seasoned.integrations.clients.wires.wire_format import WireFormat
from seasoned.service.auth import HOLDER, LONG_ANSWER, TOKEN_HEADER, log
from seasoned.service.bearer_tokens import ANYONE, Token
from seasoned.service.gateway.api_paths import api_refusal, is_below, wire_of
from seasoned.service.gateway.buffered_answers import AskModel, BufferedAnswer, BufferedAnswers
from seasoned.service.gateway.gateway_shares import CallPlaces
from seasoned.service.gateway.proxy_headers import RawHeaders, answer_headers, request_headers
from seasoned.service.gateway.session_paths import SESSION, PathSession, check_segments
from seasoned.service.gateway.upstream_streams import UpstreamAnswer, UpstreamStreams
from seasoned.service.permissions import ForbiddenError, check_scope
from seasoned.service.responses import error_response, internal_error_response, send_response

__all__ = ["CallTap", "CallTaps", "Forwarder", "GatewayRequest"]

_HOP = b"x-seasoned-gateway"
"""The header by which a request that comes back to the gateway that forwarded it is known."""


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A call of a model, as the client sent it.

    Args:
        wire: its API.
        namespace: that it names; None: the only one.
        session: that its address names, if it names one.
        holder: the token that it carries.
        headers: of the request; names in lower case.
        body: as received.
    """

    wire: WireFormat
    namespace: str | None
    session: PathSession | None
    holder: Token
    headers: RawHeaders
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the value of a header; None without it."""
        wanted = name.encode()
        return next((value.decode("latin-1").strip() for given, value in self.headers if given == wanted), None)


class CallTap(Protocol):
    """Takes part in one call. None of its methods raises, and `request` alone may be slow."""

    async def request(self, ask: AskModel) -> bytes | BufferedAnswer:
        """Return the body to send: the client's, unless a mode changed it. Or the answer, if a mode asked for it."""

    def after_refusal(self, status: int) -> bytes | None:
        """Return the client's own request if a changed one was sent and refused with this status; else None."""

    async def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that are added to the answer, when the upstream server has begun it."""

    def begin(self, status: int, headers: RawHeaders) -> None:
        """Take the head of the answer."""

    async def add(self, part: bytes) -> None:
        """Take a part of the answer, and write it to disk, before the client gets it."""

    def finish(self) -> None:
        """Take the end of the answer, or of what has arrived of it. It may be called without a head."""


class CallTaps(Protocol):
    """Opens a tap for each call of a model."""

    def open(self, request: GatewayRequest) -> CallTap:
        """Return the tap of a call. InputError, NotFoundError: no such namespace."""


class Forwarder:
    """ASGI application that forwards requests.

    Args:
        streams: of the upstream server.
        taps: of the calls.
        name: of this gateway, among those that requests may come through.
        n_tokens: how many tokens the service has; 0: it has none.
        key: for the upstream server, sent where the client's own is not; None: there is none.
    """

    def __init__(
        self, streams: UpstreamStreams, taps: CallTaps, *, name: str, n_tokens: int, key: str | None = None
    ) -> None:
        self._streams, self._taps = streams, taps
        self._name = name.encode()
        self._secured = n_tokens > 0
        self._key = None if key is None else key.encode("latin-1", "replace")
        self._buffered_answers = BufferedAnswers()
        self._places = CallPlaces(is_shared=n_tokens > 1)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Forward a request, until its answer is sent or its client is gone."""
        scope[LONG_ANSWER] = True
        body = await _body(receive)
        exchange = asyncio.ensure_future(self._exchange(scope, body, send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait((exchange, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            exchange.cancel()  # does nothing to one that is done
            with contextlib.suppress(asyncio.CancelledError):
                await exchange

    async def _exchange(self, scope: MutableMapping[str, Any], body: bytes, send: Any) -> None:
        began = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal began
            began = True
            await send(message)

        holder = scope.get(HOLDER, ANYONE)
        try:
            with self._places.taken(holder):
                await self._forward(scope, holder, body, sending)
        except Exception as error:
            await self._refuse(scope, error, None if began else send)

    async def _forward(self, scope: MutableMapping[str, Any], holder: Token, body: bytes, send: Any) -> None:
        method, path, headers = scope["method"], scope["path"], scope["headers"]
        target = scope.get("raw_path") or path.encode()
        check_segments(target.decode("latin-1"))
        own = self._authorization(scope)
        is_reading = method == "GET" and (is_below(path, "/v1/models") or not any(own.values()))
        check_scope(holder, "read" if is_reading else "write")  # what our key may read is not the token's holder's
        hops = [value for name, value in headers if name == _HOP]
        if self._name in b",".join(hops).split(b","):
            raise RequestLoopError(
                "a request that came through this gateway", "an upstream is another server", "Name it."
            )
        query, namespace = _without_namespace(scope["query_string"], headers)
        own[_HOP] = b",".join([*hops, self._name])
        send_body = functools.partial(
            self._streams.send,
            method.encode(),
            target + (b"?" + query if query else b""),
            request_headers(headers, own),
        )
        wire = wire_of(method, path)
        tap: CallTap | None = None
        if wire is not None:
            session = scope.get(SESSION)
            tap = self._taps.open(GatewayRequest(wire, namespace, session, holder, headers, body))
            outcome = await tap.request(functools.partial(self._buffered_answers.ask, send_body, wire))
            if isinstance(outcome, BufferedAnswer):
                await self._pass_whole(outcome, tap, send)
                return
            body = outcome
        try:
            answer = await send_body(body)
            plain = None if tap is None else tap.after_refusal(answer.status)
            if plain is not None:
                answer.close()
                answer = await send_body(plain)
            try:
                await self._pass_on(answer, tap, send)
            finally:
                answer.close()
        finally:
            if tap is not None:
                tap.finish()

    async def _pass_on(self, answer: UpstreamAnswer, tap: CallTap | None, send: Any) -> None:
        """Send an answer to the client."""
        headers = answer_headers(answer.headers)
        if tap is not None:
            tap.begin(answer.status, answer.headers)
            headers += await tap.headers()
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        try:
            async for part in answer.parts():
                if tap is not None:
                    await tap.add(part)
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except ModelError as error:
            log.warning("An answer of the upstream server broke off: %s", error)
            return  # and the connection is closed, as it is no whole answer for the client either
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pass_whole(self, answer: BufferedAnswer, tap: CallTap, send: Any) -> None:
        """Send an answer that has arrived to the client."""
        try:
            tap.begin(answer.status_code, answer.raw_headers)
            await tap.add(answer.body)
            headers = answer_headers(answer.raw_headers) + await tap.headers()
            await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
            await send({"type": "http.response.body", "body": answer.body, "more_body": False})
        finally:
            tap.finish()

    def _authorization(self, scope: MutableMapping[str, Any]) -> dict[bytes, bytes]:
        """Return the key for the upstream server, in the header in which the client sent the service's token."""
        given = {name for name, _ in scope["headers"]}
        is_token = self._secured and TOKEN_HEADER.encode() not in given
        if not is_token and given & {b"authorization", b"x-api-key", b"api-key"}:
            return {}
        own = {b"authorization": b"", b"x-api-key": b""} if is_token else {}
        if self._key is not None:
            is_anthropic = b"x-api-key" in given or b"anthropic-version" in given
            own |= {b"x-api-key": self._key} if is_anthropic else {b"authorization": b"Bearer " + self._key}
        return own

    async def _refuse(self, scope: MutableMapping[str, Any], error: Exception, send: Any) -> None:
        """Send an error of ours in the shape of the API, unless an answer has begun (None): that one breaks off."""
        if not isinstance(error, SeasonedError):
            log.error("%s %s", scope["method"], scope["path"], exc_info=error)
            response = internal_error_response()
        else:
            status = 508 if isinstance(error, RequestLoopError) else 403 if isinstance(error, ForbiddenError) else None
            response = error_response(error)
            if isinstance(error, ModelError):
                status = 504 if isinstance(error, ModelTimeoutError) else 502
                log.error("%s %s: %s", scope["method"], scope["path"], error)
            if status is not None:
                response = type(response)(status, response.document, response.headers)
        if send is not None:
            await send_response(api_refusal(scope["path"], response), send)


class RequestLoopError(InputError):
    """A request came back to the gateway that forwarded it."""


async def _body(receive: Any) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message["type"] == "http.request" and message.get("more_body", False)
    return b"".join(parts)


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _without_namespace(query: bytes, headers: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, str | None]:
    """Return a query without `namespace`, which is ours, and the namespace that a request names."""
    named = [value.decode("latin-1") for name, value in headers if name == b"x-seasoned-namespace"]
    kept = []
    for pair in query.split(b"&") if query else ():
        if pair.startswith(b"namespace="):
            named.append(unquote_plus(pair.partition(b"=")[2].decode("latin-1")))
        else:
            kept.append(pair)
    if len(set(named)) > 1:
        raise InputError(f"{len(named)} namespaces", "a call names one", "Send ?namespace= once.")
    return b"&".join(kept), named[0] if named else None
