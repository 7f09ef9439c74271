"""HTTP clients that record: a copy of a configured `httpx` (or `httpx2`) client whose `send` is watched.

`send` is the one public method through which the SDKs of OpenAI and Anthropic make every call: streams, raw responses,
`.parse`, `.stream`, retries and `with_options` included. The copy shares the original's connections, proxies, mounts,
event hooks and authentication, so nothing of a configuration is lost. No request or response object changes its type.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

__all__ = ["PlannedCall", "RequestObserver", "advanced", "observed_http_client"]


class PlannedCall(Protocol):
    """A call of a model, from its request on."""

    def requests(self) -> Generator[list[bytes], list[Any], Any]:
        """Yield requests that are answered all at once, be sent their responses or errors, and return what comes of it.

        That is the request of the call, the response that is its answer, or an error to raise.
        """

    def after_refusal(self, sent: bytes, status: int) -> bytes | None:
        """Return the request to send after this one was refused; None: the refusal is the answer."""

    def finish(self, response: Any, body: bytes | None) -> None:
        """Record the call; with a body as it came over the wire, or None if the response holds it."""


class RequestObserver(Protocol):
    """Plans the calls of a client."""

    @property
    def reads_memory(self) -> bool:
        """Whether a call may take milliseconds of memory, which an event loop must not wait for."""

    def plan(self, method: str, path: str, body: bytes) -> PlannedCall | None:
        """Return the call that a request makes; None if it is none of a model. It raises nothing to be caught here."""


def observed_http_client(client: Any, observer: RequestObserver) -> Any:
    """Return a copy of an HTTP client whose model calls go through `observer`."""
    client = getattr(client, "_seasoned_original", client)  # wrapped again: by this observer alone
    twin, base = copy.copy(client), type(client)
    is_async = hasattr(client, "aclose")
    twin.__class__ = _observed_class(base, is_async)  # type: ignore[arg-type]
    twin._seasoned_observer = observer
    twin._seasoned_original = client  # kept alive: the SDKs' clients close their connections when they are collected
    return twin


@functools.cache
def _observed_class(base: Any, is_async: bool) -> type:
    mixin = _AsyncSend if is_async else _SyncSend
    return type(base.__name__, (mixin, base), {"__module__": base.__module__, "__doc__": base.__doc__})


def _planned(client: Any, request: Any) -> PlannedCall | None:
    try:
        body = request.content
    except RuntimeError:  # an upload that is read while it is sent
        return None
    planned: PlannedCall | None = client._seasoned_observer.plan(request.method, request.url.path, body)
    return planned


def _with_body(request: Any, body: bytes) -> Any:
    """Return the request with another body; the request itself if it has this one."""
    if body == request.content:
        return request
    headers = request.headers.copy()
    del headers["content-length"]
    return type(request)(request.method, request.url, headers=headers, content=body, extensions=request.extensions)


class _Shared:
    """A client whose connections are another's: the SDKs' clients close theirs when they are collected."""

    def __del__(self) -> None:
        """Close nothing: the original and its other copies may be in the middle of a stream."""


class _SyncSend(_Shared):
    """`send` of a synchronous client."""

    def send(self, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        parent: Any = super()
        call = _planned(self, request)
        if call is None:
            return parent.send(request, stream=stream, **kwargs)
        requests, results = call.requests(), None
        while True:
            bodies, outcome = advanced(requests, results)
            if bodies is None:
                break
            send = functools.partial(_send_or_error, parent.send, stream=False, **kwargs)
            results = _sent([_with_body(request, body) for body in bodies], send)
        if not isinstance(outcome, bytes):
            return _answer(outcome, call)
        response = parent.send(_with_body(request, outcome), stream=stream, **kwargs)
        own = call.after_refusal(outcome, response.status_code)
        if own is not None:
            response.close()
            response = parent.send(_with_body(request, own), stream=stream, **kwargs)
        _watch(response, call, is_read=not stream)
        return response


class _AsyncSend(_Shared):
    """`send` of an asynchronous client."""

    _seasoned_observer: RequestObserver

    async def send(self, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        import anyio.to_thread  # a dependency of httpx

        parent: Any = super()
        call = _planned(self, request)
        if call is None:
            return await parent.send(request, stream=stream, **kwargs)
        requests, results = call.requests(), None

        async def send_one(body: bytes, index: int, into: list[Any]) -> None:
            try:
                into[index] = await parent.send(_with_body(request, body), stream=False, **kwargs)
            except Exception as error:
                into[index] = error

        while True:
            if self._seasoned_observer.reads_memory:
                bodies, outcome = await anyio.to_thread.run_sync(advanced, requests, results)
            else:
                bodies, outcome = advanced(requests, results)
            if bodies is None:
                break
            results = [None] * len(bodies)
            async with anyio.create_task_group() as tasks:
                for index, body in enumerate(bodies):
                    tasks.start_soon(send_one, body, index, results)
        if not isinstance(outcome, bytes):
            return _answer(outcome, call)
        response = await parent.send(_with_body(request, outcome), stream=stream, **kwargs)
        own = call.after_refusal(outcome, response.status_code)
        if own is not None:
            await response.aclose()
            response = await parent.send(_with_body(request, own), stream=stream, **kwargs)
        _watch(response, call, is_read=not stream)
        return response


def advanced(
    requests: Generator[list[bytes], list[Any], Any], results: list[Any] | None
) -> tuple[list[bytes] | None, Any]:
    """Return the requests to send next, or None and what came of it."""
    try:
        return (next(requests) if results is None else requests.send(results)), None
    except StopIteration as done:
        return None, done.value


def _sent(requests: Sequence[Any], send: Callable[[Any], Any]) -> list[Any]:
    """Return the responses to some requests, which are sent at once, or their errors."""
    if len(requests) == 1:
        return [send(requests[0])]
    with ThreadPoolExecutor(len(requests)) as pool:
        runs = [pool.submit(contextvars.copy_context().run, send, request) for request in requests]
    return [run.result() for run in runs]


def _send_or_error(send: Callable[..., Any], request: Any, **kwargs: Any) -> Any:
    try:
        return send(request, **kwargs)
    except Exception as error:
        return error


def _answer(outcome: Any, call: PlannedCall) -> Any:
    """Return a response that was read, or raise the error in its place."""
    if isinstance(outcome, Exception):
        raise outcome
    if outcome.is_success:
        call.finish(outcome, None)
    return outcome


def _watch(response: Any, call: PlannedCall, *, is_read: bool) -> None:
    """Record a response: at once if it was read, otherwise when its stream ends or is closed."""
    if not response.is_success:
        return
    if is_read:
        call.finish(response, None)
        return
    module = sys.modules[type(response).__module__.partition(".")[0]]
    if hasattr(response.stream, "__aiter__"):
        response.stream = _async_stream(module)(response.stream, functools.partial(call.finish, response))
    else:
        response.stream = _sync_stream(module)(response.stream, functools.partial(call.finish, response))


@functools.cache
def _sync_stream(module: Any) -> type:
    class RecordedStream(module.SyncByteStream):  # type: ignore[misc]
        """The bytes of a response, unchanged; what was received is passed on when it ends or is closed."""

        def __init__(self, stream: Any, finish: Any) -> None:
            self._stream, self._finish, self._received = stream, finish, list[bytes]()

        def __iter__(self) -> Iterator[bytes]:
            for chunk in self._stream:
                self._received.append(chunk)
                yield chunk

        def close(self) -> None:
            try:
                self._stream.close()
            finally:
                _finish_once(self)

    return RecordedStream


@functools.cache
def _async_stream(module: Any) -> type:
    class RecordedStream(module.AsyncByteStream):  # type: ignore[misc]
        """The bytes of a response, unchanged; what was received is passed on when it ends or is closed."""

        def __init__(self, stream: Any, finish: Any) -> None:
            self._stream, self._finish, self._received = stream, finish, list[bytes]()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                self._received.append(chunk)
                yield chunk

        async def aclose(self) -> None:
            try:
                await self._stream.aclose()
            finally:
                _finish_once(self)

    return RecordedStream


def _finish_once(stream: Any) -> None:
    finish, stream._finish = stream._finish, None
    if finish is not None:
        finish(b"".join(stream._received))
