"""Buffered answers of an upstream server: read to their end before the client gets one, since a mode chooses."""

from __future__ import annotations

import asyncio
import functools
import json
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TypeAlias

from seasoned.errors import InputError, ModelAnswerError, SeasonedError, excerpt
from seasoned.integrations.clients.wires.chat_choices import request_of_answers, single_answers
from seasoned.integrations.clients.wires.wire_format import WireFormat, as_record
from seasoned.service.gateway.gateway_shares import WorkTime
from seasoned.service.gateway.proxy_headers import RawHeaders
from seasoned.service.gateway.upstream_streams import UpstreamAnswer

__all__ = ["AskModel", "BufferedAnswer", "BufferedAnswers", "decoded_content"]

MAX_BUFFERED_BYTES = 16 * 1024 * 1024
"""Bytes of an answer that is held whole; a longer one is none that can be chosen."""

MAX_DECODED_BYTES = 64 * 1024 * 1024
_MOST_MODELS = 1000
_OF_CONTENT = (b"content-length", b"content-encoding", b"content-md5", b"digest", b"etag")

SendBody: TypeAlias = Callable[[bytes], Awaitable[UpstreamAnswer]]
"""Sends one body of a call, and returns the answer when its head has arrived."""


class BufferedAnswer:
    """An answer that has arrived: as the upstream server sent it, and as wrapped calls read responses.

    Args:
        status: of the answer.
        raw_headers: names in lower case.
        body: as it came over the wire.
        content: what is read of it; None: the body, without its content encoding.
        is_one_of_several: whether it is one of the answers to a request with `n`: its body has the usage of them all.

    Attributes:
        status_code, headers, is_success: as of a response of `httpx`.
    """

    def __init__(
        self,
        status: int,
        raw_headers: RawHeaders,
        body: bytes,
        content: bytes | None = None,
        *,
        is_one_of_several: bool = False,
    ) -> None:
        self.status_code, self.raw_headers, self.body = status, raw_headers, body
        self.is_one_of_several = is_one_of_several
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw_headers}
        self.is_success = 200 <= status < 300
        self._content = content

    @cached_property
    def content(self) -> bytes:
        """The body without its content encoding. InputError: it has another one than it states."""
        if self._content is not None:
            return self._content
        return decoded_content(self.body, self.headers.get("content-encoding", ""))


AskModel: TypeAlias = Callable[[Sequence[bytes], WorkTime], Awaitable[list["BufferedAnswer | Exception"]]]
"""Sends the bodies of some requests at once, and returns their answers or errors, in their order.

Raises:
    TimeoutError: to write the requests and to read the answers took more than the time that is left.
"""


class BufferedAnswers:
    """Asks an upstream server for whole answers, several at once.

    Equal requests of Chat Completions are one request with `n`, whose prompt is read and paid for once. A server that
    refuses `n` for a model, or gives one answer all the same, is sent the requests themselves from then on.
    """

    def __init__(self) -> None:
        self._without_n: OrderedDict[str, None] = OrderedDict()

    async def ask(
        self, send: SendBody, wire: WireFormat, bodies: Sequence[bytes], time: WorkTime
    ) -> list[BufferedAnswer | Exception]:
        """Return the answers to some requests, or their errors, in their order.

        Args:
            send: sends one body.
            wire: the API.
            bodies: of the requests.
            time: for our own work.

        Raises:
            TimeoutError: our own work took more.
        """
        are_equal = len(bodies) > 1 and wire.name == "chat" and len(set(bodies)) == 1
        model = await time.in_thread(functools.partial(_model, bodies[0])) if are_equal else None
        if model is None or model in self._without_n:
            return await self._each(send, bodies)
        one = await time.in_thread(functools.partial(request_of_answers, bodies[0], len(bodies)))
        asked = await _whole(send, one)
        if isinstance(asked, Exception) or not (asked.is_success or asked.status_code in (400, 422)):
            return [asked]
        found = await time.in_thread(functools.partial(_single, asked)) if asked.is_success else []
        if len(found) > 1:
            return list(found)
        others = await self._each(send, bodies[len(found) :])
        if found or any(isinstance(one, BufferedAnswer) and one.is_success for one in others):
            self._without_n[model] = None
            while len(self._without_n) > _MOST_MODELS:
                self._without_n.popitem(last=False)
        return [*found, *others]

    async def _each(self, send: SendBody, bodies: Sequence[bytes]) -> list[BufferedAnswer | Exception]:
        async with asyncio.TaskGroup() as tasks:  # if the client goes, all of them end
            asked = [tasks.create_task(_whole(send, body)) for body in bodies]
        return [one.result() for one in asked]


async def _whole(send: SendBody, body: bytes) -> BufferedAnswer | Exception:
    """Return the whole answer to a request, or the error in its place."""
    try:
        answer = await send(body)
        try:
            parts, n_bytes = [], 0
            async for part in answer.parts():
                parts.append(part)
                n_bytes += len(part)
                if n_bytes > MAX_BUFFERED_BYTES:
                    rule = f"an answer that is chosen has at most {MAX_BUFFERED_BYTES} bytes"
                    return ModelAnswerError("a longer answer", rule, "Leave this family to another mode.")
        finally:
            answer.close()
    except SeasonedError as error:
        return error
    return BufferedAnswer(answer.status, answer.headers, b"".join(parts))


def _model(body: bytes) -> str | None:
    """Return the model of a request; None of a request that asks for a number of answers itself, or cannot be read."""
    try:
        parsed = as_record(json.loads(body))
    except ValueError:
        return None
    return None if parsed.get("n") not in (None, 1) else str(parsed.get("model") or "model")


def _single(answer: BufferedAnswer) -> list[BufferedAnswer]:
    """Return the answers of a response to a request with `n`, each as a response of its own.

    The client gets each with the usage of all; in what is read for a sum over the answers, only the first has it.
    """
    kind = answer.headers.get("content-type", "")
    try:
        bodies = single_answers(kind, answer.content)
        uncounted = single_answers(kind, answer.content, with_usage=False)
    except (ValueError, InputError):
        return []
    headers = [(name, value) for name, value in answer.raw_headers if name not in _OF_CONTENT]
    return [
        BufferedAnswer(
            answer.status_code, headers, body, body if at == 0 else uncounted[at], is_one_of_several=len(bodies) > 1
        )
        for at, body in enumerate(bodies)
    ]


def decoded_content(content: bytes, encoding: str) -> bytes:
    """Return a body without its content encoding, of at most `MAX_DECODED_BYTES`.

    Raises:
        InputError: it is encoded otherwise than it states, or in a way that is not read here.
    """
    for name in reversed([one.strip().lower() for one in encoding.split(",")]):
        if name in ("gzip", "x-gzip", "deflate"):
            content = _inflated(content, zlib.MAX_WBITS | 32 if name != "deflate" or content[:1] == b"x" else -15)
        elif name not in ("", "identity"):
            raise InputError(f"content-encoding {excerpt(name)}", "gzip and deflate are read", "Send no other.")
    return content


def _inflated(content: bytes, window_bits: int) -> bytes:
    try:
        return zlib.decompressobj(window_bits).decompress(content, MAX_DECODED_BYTES)
    except zlib.error as error:
        raise InputError(
            f"an answer that is no {error}", "its content encoding is as stated", "See the server."
        ) from error
