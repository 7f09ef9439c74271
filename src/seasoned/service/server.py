"""Listening: on this machine alone, unless there is a token."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable
from typing import Any

from seasoned.errors import ConfigError
from seasoned.registry import load_extra

__all__ = ["listen", "serve"]

_BACKLOG = 128
_CONCURRENT = 64
_KEEP_ALIVE_S = 10
_SHUTDOWN_S = 10


def listen(host: str, port: int, *, secured: bool) -> socket.socket:
    """Return a socket that listens; without a token only on an address of this machine itself.

    Args:
        host: a name or an address.
        port: 0: any that is free.
        secured: whether a token is asked for.

    Raises:
        ConfigError: there is no such address, others could reach it without a token, or the port is taken.

    Example:
        >>> with listen("127.0.0.1", 0, secured=False) as listening:
        ...     listening.getsockname()[0]
        '127.0.0.1'
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError, OverflowError) as error:
        raise ConfigError(f"{host}:{port}: {error}", "it is an address of this machine", "Name 127.0.0.1.") from error
    # What it resolves to counts: a name that is 127.0.0.1 today is listened to there.
    if not secured and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise ConfigError(
            f"host {host!r} ({address[0]}), no token",
            "without a token it listens on this machine alone",
            "Give --token-file, or listen on 127.0.0.1.",
        )
    listening = socket.socket(family, kind)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"{host}:{port}: {error.strerror}", "the port must be free", "Name another --port."
        ) from error
    return listening


def serve(app: Any, listening: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Answer on a socket until somebody asks to stop; requests that have begun are finished, for 10 s at most.

    Args:
        app: what `make_app` returned.
        listening: what `listen` returned; it is closed at the end.
        ready: called once, when requests are answered.

    Raises:
        MissingExtraError: Uvicorn is not installed.
    """
    uvicorn = load_extra("uvicorn", "serve")
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=_CONCURRENT,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )

    class Server(uvicorn.Server):  # type: ignore[misc, name-defined]
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    with contextlib.closing(listening), contextlib.suppress(KeyboardInterrupt):  # what asked to stop is raised again
        Server(config).run(sockets=[listening])
