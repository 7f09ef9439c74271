"""The application: routes behind the gate, and the page."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Collection, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import seasoned
from seasoned.errors import InputError, NotFoundError, SeasonedError, StoreBusyError
from seasoned.protocols import StateEncoder
from seasoned.registry import load_extra
from seasoned.service.auth import LOOPBACK_HOSTS, Gate, check_token, log
from seasoned.service.json_documents import parse_json
from seasoned.service.memory_pool import Opened
from seasoned.service.responses import Answer, problem, unexpected
from seasoned.service.route import Call, Route
from seasoned.service.routes import ROUTES

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["MAX_BODY_BYTES", "TIMEOUT_S", "make_app"]

MAX_BODY_BYTES = 4 * 1024 * 1024
TIMEOUT_S = 35.0
"""Longer than the store itself waits for a lock, so that it says itself that it is busy."""

_BODY_TIMEOUT_S = 20.0
_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/feedback.css": ("feedback.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
    "/page/api.js": ("api.js", "text/javascript; charset=utf-8"),
    "/page/bars.js": ("bars.js", "text/javascript; charset=utf-8"),
    "/page/feedback.js": ("feedback.js", "text/javascript; charset=utf-8"),
}


def make_app(
    path: str | os.PathLike[str],
    *,
    namespace: str | Sequence[str] | None = None,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    create: bool = False,
    read_only: bool = False,
    encoder: StateEncoder | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    timeout_s: float = TIMEOUT_S,
) -> FastAPI:
    """Return the HTTP service of a memory, with its feedback page, as an ASGI application.

    The memory is opened now, and closed when the application shuts down.

    Args:
        path: the memory: a file, ":memory:" or `postgresql://...`.
        namespace: what is served: one, or several, between which a request chooses by `?namespace=`. None: the only one
            that the store has.
        token: what a request must carry; see `check_token`. None: nobody is asked for one.
        hosts: the names under which it answers. None: the names of this machine itself where there is no token, any
            where there is one.
        create: make the memory if it does not exist.
        read_only: refuse every write.
        encoder: of a namespace that is made now; one that is there must have been made with it. None: the one that made
            it, or the default.
        max_body_bytes: the largest body of a request.
        timeout_s: how long a request may take, in seconds; what was begun may still be done after that.

    Raises:
        MissingExtraError: FastAPI is not installed.
        ConfigError: the token keeps nobody out.
        InputError, NotFoundError, StoreError: as for `Memory.open`.

    Example:
        >>> app = make_app(":memory:", create=True)
        >>> "/v1/feedback" in app.openapi()["paths"]
        True
    """
    fastapi = load_extra("fastapi", "serve")
    if hosts is None and token is None:
        hosts = LOOPBACK_HOSTS
    if token is not None:
        check_token(token)
    opened = Opened(path, namespace, create=create, read_only=read_only, encoder=encoder)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        try:
            yield
        finally:
            opened.close()

    app: FastAPI = fastapi.FastAPI(
        title="seasoned",
        version=seasoned.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        description="A memory of an agent: episodes, search, typed feedback, and questions to people.",
    )
    app.add_middleware(
        Gate,
        token=token,
        hosts=hosts,
        max_body_bytes=max_body_bytes,
        body_timeout_s=_BODY_TIMEOUT_S,
        open_paths=(*_PAGE, "/healthz", "/openapi.json"),
    )
    for route in ROUTES:
        app.add_api_route(
            route.path,
            _endpoint(fastapi, route, opened, timeout_s),
            methods=[route.method],
            name=route.handler.__name__,
            summary=route.summary,
            status_code=route.status,
            response_model=None,
            responses=route.responses(),
            openapi_extra=route.openapi(secured=token is not None),
        )
    for url, (name, kind) in _PAGE.items():
        app.add_api_route(url, _file(fastapi, name, kind), include_in_schema=False, response_model=None)
    if token is not None:
        _describe_token(app)
    app.add_exception_handler(404, _unknown(fastapi))
    app.add_exception_handler(405, _unknown(fastapi))
    return app


def _describe_token(app: FastAPI) -> None:
    """Have OpenAPI say how the token is sent."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        document = plain()
        document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        return document

    app.openapi = described  # type: ignore[method-assign]


def _endpoint(fastapi: Any, route: Route, opened: Opened, timeout_s: float) -> Any:
    """The coroutine that FastAPI calls."""

    async def endpoint(request: Any) -> Any:
        answered = await _answered(route, opened, request, timeout_s)
        return fastapi.Response(answered.body(), answered.status, answered.headers, "application/json")

    endpoint.__name__ = route.handler.__name__
    endpoint.__annotations__ = {"request": fastapi.Request}
    return endpoint


async def _answered(route: Route, opened: Opened, request: Any, timeout_s: float) -> Answer:
    """What the handler says, asked in a thread, for at most so long; its errors as answers."""
    try:
        body = parse_json(await request.body()) if route.body is not None else {}
        call = Call(opened, dict(request.path_params), _query(request, route), body)
        async with asyncio.timeout(timeout_s):
            return Answer(route.status, await asyncio.to_thread(route.handler, call))
    except TimeoutError:
        return problem(
            StoreBusyError(
                f"no answer in {timeout_s:g} s",
                "a request waits no longer; what it began may still be done",
                "Look whether it was done, or ask again: with an id, asking twice does no harm.",
            )
        )
    except SeasonedError as error:
        answered = problem(error)
        if answered.status >= 500:
            log.error("%s %s: %s", route.method, route.path, error)
        return answered
    except Exception:
        log.exception("%s %s", route.method, route.path)
        return unexpected()


def _query(request: Any, route: Route) -> dict[str, str]:
    """The query's values, each of a name that the route knows, given once."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in route.query or name in found:
            known = ", ".join(route.query) or "none"
            raise InputError(f"?{name[:80]}=", f"the query's names are {known}, each once", "Leave it out.")
        found[name] = value
    return found


def _file(fastapi: Any, name: str, kind: str) -> Any:
    content = resources.files("seasoned.service").joinpath("page", name).read_bytes()

    async def page() -> Any:
        return fastapi.Response(content, media_type=kind)

    page.__annotations__ = {}
    return page


def _unknown(fastapi: Any) -> Any:
    """What is said where there is no such path, or not by this method."""

    async def unknown(request: Any, error: Any) -> Any:
        seen = f"{request.method} {request.url.path[:200]}"
        found = NotFoundError(seen, "the service has no such address", "See /openapi.json.")
        answered = problem(found, error.status_code, dict(error.headers or {}))
        return fastapi.Response(answered.body(), answered.status, answered.headers, "application/json")

    return unknown
