"""ASGI application: the routes behind the authentication middleware, and the feedback page."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING, Any

import seasoned
from seasoned.errors import InputError, NotFoundError, SeasonedError, StoreBusyError
from seasoned.integrations.rewards.foreign_scores import ScoreScale
from seasoned.integrations.rewards.reward_rules import RewardRules
from seasoned.protocols import StateEncoder
from seasoned.registry import load_extra
from seasoned.service.auth import HOLDER, LOOPBACK_HOSTS, AuthMiddleware, log
from seasoned.service.bearer_tokens import ANYONE, Token
from seasoned.service.byte_budget import ByteBudget
from seasoned.service.decisions.decision_endpoints import DecisionEndpoints
from seasoned.service.decisions.decision_service import UPSTREAM_KEY, DecisionService, DecisionSettings
from seasoned.service.decisions.episode_ends import end_route
from seasoned.service.gateway.api_paths import api_refusal, forwarded_operations, is_forwarded
from seasoned.service.gateway.gateway import Gateway, GatewaySettings
from seasoned.service.gateway.session_paths import read_address
from seasoned.service.json_documents import parse_json_body
from seasoned.service.memory_pool import MemoryPool
from seasoned.service.operations.operation_routes import OPERATION_ROUTES
from seasoned.service.permissions import ForbiddenError, check_scope
from seasoned.service.recall.conversation_routes import conversation_routes
from seasoned.service.recall.recall_routes import recall_routes
from seasoned.service.responses import JsonResponse, encode_answer, error_response, internal_error_response
from seasoned.service.routes import ROUTES, Route, ServiceRequest

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = [
    "MAX_ANSWER_BYTES",
    "MAX_BODY_BYTES",
    "MAX_BYTES_IN_FLIGHT",
    "MAX_CALL_BYTES",
    "MAX_RUNNING",
    "TIMEOUT_S",
    "make_app",
]

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_CALL_BYTES = 32 * 1024 * 1024
"""Bytes of a request to a model: prompts with images have several million."""

MAX_ANSWER_BYTES = 16 * 1024 * 1024
MAX_RUNNING = 64
"""Requests at a time; the health check and the page's files are not counted."""

MAX_BYTES_IN_FLIGHT = 256 * 1024 * 1024
"""Bytes of bodies and answers at a time, over all connections: clients may send and read slowly."""

_LARGE_BODY_BYTES = 256 * 1024
"""Larger bodies are worked on one at a time: the parser holds Python's lock, and threads in turn would starve the event
loop."""

TIMEOUT_S = 35.0
"""Seconds per request; longer than the store waits for a lock, so that the store reports that it is busy."""

_BODY_TIMEOUT_S = 20.0
_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/feedback.css": ("feedback.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
    "/page/api.js": ("api.js", "text/javascript; charset=utf-8"),
    "/page/bars.js": ("bars.js", "text/javascript; charset=utf-8"),
    "/page/namespaces.js": ("namespaces.js", "text/javascript; charset=utf-8"),
    "/page/feedback.js": ("feedback.js", "text/javascript; charset=utf-8"),
    "/operations": ("operations.html", "text/html; charset=utf-8"),
    "/page/operations.css": ("operations.css", "text/css; charset=utf-8"),
    "/page/operations.js": ("operations.js", "text/javascript; charset=utf-8"),
    "/page/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
}


def make_app(
    path: str | os.PathLike[str],
    *,
    namespace: str | Sequence[str] | None = None,
    token: str | Sequence[Token] | None = None,
    hosts: Collection[str] | None = None,
    create: bool = False,
    read_only: bool = False,
    encoder: StateEncoder | None = None,
    redact: Callable[[str], str] | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    max_answer_bytes: int = MAX_ANSWER_BYTES,
    timeout_s: float = TIMEOUT_S,
    decisions: DecisionSettings | None = None,
    gateway: GatewaySettings | None = None,
    spool: str | os.PathLike[str] | bool = False,
    rewards: RewardRules | None = None,
) -> FastAPI:
    """Return the HTTP service of a memory, with its feedback page, as an ASGI application.

    This call opens the memory; the shutdown of the application closes it.

    Args:
        path: the memory: a file, ":memory:" or `postgresql://...`.
        namespace: one namespace, or several, among which a request chooses by `?namespace=`. None: the store's only
            namespace.
        token: the bearer tokens, one of which requests must carry; a str is one that may read, write and give feedback
            in any author's name. None: no authentication.
        hosts: accepted Host names. None: without a token the loopback names, with a token any.
        create: make the memory if it does not exist.
        read_only: refuse every write.
        encoder: encoder of a new namespace; an existing namespace must have the same. None: the namespace's own, or
            the default.
        redact: rewrites the texts of requests before they are stored or compared, see `Memory.open`.
        max_body_bytes: maximum size of a request's body.
        max_answer_bytes: maximum size of an answer; a longer list is served in pages.
        timeout_s: seconds per request; the operation may still complete after the timeout.
        decisions: what answers `POST /v1/systemone` and `POST /v1/decisions`; None: nothing does.
        gateway: how calls of models are recorded that go through this service to the upstream server of
            `decisions`; None: as `GatewaySettings` says.
        spool: a folder for what is written while the store is down, see `Memory.open`.
        rewards: rules that reward what tool results show in the calls of models, and the scales of scores that other
            systems send (`seasoned.integrations.rewards.load_rules`); None: there are none.

    Raises:
        MissingExtraError: FastAPI is not installed.
        ConfigError: the token is too weak.
        InputError, NotFoundError, StoreError: as for `Memory.open`.

    Example:
        >>> app = make_app(":memory:", create=True)
        >>> "/v1/feedback" in app.openapi()["paths"]
        True
    """
    fastapi = load_extra("fastapi", "serve")
    if hosts is None and token is None:
        hosts = LOOPBACK_HOSTS
    tokens = (Token(token),) if isinstance(token, str) else token
    settings = DecisionSettings() if decisions is None else decisions
    service = DecisionService(settings)
    pool = MemoryPool(path, namespace, create=create, read_only=read_only, encoder=encoder, redact=redact, spool=spool)
    for name in pool.names():
        service.warm_up(pool.memory(name))
    endpoints = DecisionEndpoints(fastapi, service, pool, secured=token is not None)
    proxy: Gateway | None = None
    if settings.upstream is not None:
        calls = GatewaySettings() if gateway is None else gateway
        key = os.environ.get(UPSTREAM_KEY)
        try:
            proxy = Gateway(settings.upstream, pool, calls, n_tokens=len(tokens or ()), key=key, rewards=rewards)
        except BaseException:
            endpoints.close()
            pool.close()
            raise

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        try:
            await asyncio.to_thread(service.restore, {name: pool.memory(name) for name in pool.names()})
            async with contextlib.nullcontext() if proxy is None else proxy.running():
                yield
        finally:
            endpoints.close()
            pool.close()
            service.close_spool()

    app: FastAPI = fastapi.FastAPI(
        title="seasoned",
        version=seasoned.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        description="A memory of an agent: episodes, search, typed feedback, and questions to people.",
    )
    app.add_middleware(
        AuthMiddleware,
        tokens=tokens,
        hosts=hosts,
        max_body_bytes=max_body_bytes,
        max_running=MAX_RUNNING,
        in_flight=ByteBudget(MAX_BYTES_IN_FLIGHT),
        body_timeout_s=_BODY_TIMEOUT_S,
        open_paths=(*_PAGE, "/healthz", "/openapi.json"),
        read_address=read_address,
        unknown=lambda scope: _unknown(app, scope),
        is_call=lambda path: proxy is not None and is_forwarded(path),
        max_call_bytes=MAX_CALL_BYTES,
        shape=api_refusal,
    )
    large_bodies = asyncio.Semaphore(1)
    scores = {} if rewards is None else rewards.scores
    if proxy is not None:
        proxy.add_to(app)
    ends = end_route(None if proxy is None else proxy.end_calls)
    for route in (ends, *ROUTES, *recall_routes(service.decider), *conversation_routes(settings), *OPERATION_ROUTES):
        app.add_api_route(
            route.path,
            _endpoint(fastapi, route, pool, large_bodies, timeout_s, max_answer_bytes, scores),
            methods=[route.method],
            name=route.handler.__name__,
            summary=route.summary,
            status_code=route.status,
            response_model=None,
            responses=route.responses(),
            openapi_extra=route.openapi(secured=token is not None),
        )
    endpoints.add_to(app)
    for url, (name, kind) in _PAGE.items():
        app.add_api_route(url, _file(fastapi, name, kind), include_in_schema=False, response_model=None)
    _describe(app, secured=token is not None, forwards=proxy is not None)
    for status in (404, 405):
        app.add_exception_handler(status, _refusal(fastapi, app))
    return app


def _describe(app: FastAPI, *, secured: bool, forwards: bool) -> None:
    """Add the bearer token and the forwarded addresses to the OpenAPI document."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        document = plain()
        if secured:
            document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, method, operation in forwarded_operations(secured=secured) if forwards else ():
            document["paths"].setdefault(path, {})[method] = operation
        return document

    app.openapi = described  # type: ignore[method-assign]


def _endpoint(
    fastapi: Any,
    route: Route,
    pool: MemoryPool,
    large_bodies: asyncio.Semaphore,
    timeout_s: float,
    max_answer_bytes: int,
    scores: Mapping[str, ScoreScale],
) -> Any:
    """Return the coroutine that FastAPI calls.

    The body is parsed, the handler runs and the answer is encoded in a thread, so that the event loop stays free.
    """

    def work(request: Any, body: bytes) -> bytes:
        holder = request.scope.get(HOLDER, ANYONE)
        if route.scope is not None:
            check_scope(holder, route.scope)
        document = parse_json_body(body) if route.body is not None else {}
        received = ServiceRequest(
            pool, dict(request.path_params), _query(request, route), document, max_answer_bytes, holder, scores
        )
        return encode_answer(route.handler(received), max_answer_bytes)

    async def endpoint(request: Any) -> Any:
        status, headers = route.status, {}
        try:
            body = await request.body()
            if route.immediate:
                answer = work(request, body)
            else:
                turn = large_bodies if len(body) > _LARGE_BODY_BYTES else contextlib.nullcontext()
                async with asyncio.timeout(timeout_s), turn:
                    answer = await asyncio.to_thread(work, request, body)
        except Exception as error:
            refusal = _error(route, error, timeout_s)
            refusal = replace(
                refusal, document={name: pool.without_place(text) for name, text in refusal.document.items()}
            )
            answer, status, headers = refusal.body(), refusal.status, refusal.headers
        return fastapi.Response(answer, status, headers, "application/json")

    endpoint.__name__ = route.handler.__name__
    endpoint.__annotations__ = {"request": fastapi.Request}
    return endpoint


def _error(route: Route, error: Exception, timeout_s: float) -> JsonResponse:
    """Return the response for an error of a handler, and log an unexpected one."""
    if isinstance(error, TimeoutError):
        return error_response(
            StoreBusyError(
                f"no answer in {timeout_s:g} s",
                "a request waits no longer; the operation may still complete",
                "Check if it did, or send the request again: with an id, a repetition changes nothing.",
            )
        )
    if isinstance(error, ForbiddenError):
        return error_response(error, 403)
    if isinstance(error, SeasonedError):
        response = error_response(error)
        if response.status >= 500:
            log.error("%s %s: %s", route.method, route.path, error)
        return response
    log.error("%s %s", route.method, route.path, exc_info=error)
    return internal_error_response()


def _query(request: Any, route: Route) -> dict[str, str]:
    """Return the query's parameters; an unknown or repeated one is refused."""
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in route.query or name in query:
            known = ", ".join(route.query) or "none"
            raise InputError(f"?{name[:80]}=", f"the query's parameters are {known}, each once", "Leave it out.")
        query[name] = value
    return query


def _file(fastapi: Any, name: str, kind: str) -> Any:
    content = resources.files("seasoned.service").joinpath("page", name).read_bytes()

    async def page() -> Any:
        return fastapi.Response(content, media_type=kind)

    page.__annotations__ = {}
    return page


def _refusal(fastapi: Any, app: FastAPI) -> Any:
    """Return the handler of an address that the application does not have."""

    async def refusal(request: Any, error: Any) -> Any:
        response = _unknown(app, request.scope)
        if response is None:  # an error of a route's own
            response = error_response(NotFoundError(request.url.path[:200], str(error.detail), "See /openapi.json."))
        response = api_refusal(request.url.path, response)
        return fastapi.Response(response.body(), response.status, response.headers, "application/json")

    return refusal


def _unknown(app: FastAPI, scope: MutableMapping[str, Any]) -> JsonResponse | None:
    """Return the refusal of an unknown path, or of a path without this method; None if there is such an address."""
    routes: list[Any] = list(app.router.routes)
    matches = [route.matches(scope)[0].name for route in routes]
    if "FULL" in matches:
        return None
    seen = f"{scope['method']} {scope['path'][:200]}"
    methods = {
        method for route, match in zip(routes, matches, strict=True) if match == "PARTIAL" for method in route.methods
    }
    if methods:
        allowed = ", ".join(sorted(methods))
        error = NotFoundError(seen, f"this address takes {allowed}", "Send that.")
        return error_response(error, 405, {"allow": allowed})
    import difflib  # for misspellings only

    paths = [route.path for route in routes if "{" not in route.path]
    close = difflib.get_close_matches(scope["path"][:200], paths, 1)
    next_step = f"Did you mean {close[0]}?" if close else "See GET /openapi.json for its addresses."
    return error_response(NotFoundError(seen, "the service has no such address", next_step))
