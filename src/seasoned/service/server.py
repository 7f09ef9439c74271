"""Server: a socket, on the loopback interface unless there is a token, and the Uvicorn loop."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from seasoned.errors import ConfigError
from seasoned.registry import load_extra
from seasoned.service.connections import ConnectionLimits, limited_protocol

__all__ = ["listen", "make_server", "serve"]

_BACKLOG = 128
_SWITCH_INTERVAL_S = 0.0005
"""Seconds after which a thread that computes gives Python's lock to one that waits for it; Python's own are 0.005.

A decision asks for the lock tens of times. The event loop gives it away at each part of a stream that it sends, and
waits for it while an episode is stored.
"""

_SHUTDOWN_S = 10


def listen(host: str, port: int, *, secured: bool) -> socket.socket:
    """Return a listening socket; without a token only on a loopback address.

    Args:
        host: a name or an address.
        port: 0: any free port.
        secured: whether requests need a token.

    Raises:
        ConfigError: the host has no such address, other machines could reach it without a token, or the port is taken.

    Example:
        >>> with listen("127.0.0.1", 0, secured=False) as listening:
        ...     listening.getsockname()[0]
        '127.0.0.1'
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError, OverflowError) as error:
        raise ConfigError(f"{host}:{port}: {error}", "it is an address of this machine", "Name 127.0.0.1.") from error
    # The resolved address counts, not the name.
    if not secured and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise ConfigError(
            f"host {host!r} ({address[0]}), no token",
            "without a token it listens on this machine alone",
            "Give --token-file, or listen on 127.0.0.1.",
        )
    # With the protocol: without it asyncio leaves Nagle's algorithm on, and an answer waits 40 ms for the client's ACK.
    listening = socket.socket(family, kind, protocol)
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


def make_server(app: Any, *, limits: ConnectionLimits | None = None, ready: Callable[[], None] = lambda: None) -> Any:
    """Return a Uvicorn server of an application; its `run` takes the sockets.

    Args:
        app: from `make_app`.
        limits: of its connections; None: the default.
        ready: called once, when the server accepts requests.

    Raises:
        MissingExtraError: Uvicorn is not installed.
    """
    uvicorn = load_extra("uvicorn", "serve")
    limits = ConnectionLimits() if limits is None else limits
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits),
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_keep_alive=max(1, int(limits.head_s)),
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )

    class Server(uvicorn.Server):  # type: ignore[misc, name-defined]
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    return Server(config)


def serve(
    app: Any, listening: socket.socket, *, ready: Callable[[], None] = lambda: None, lifeline: int | None = None
) -> None:
    """Serve requests until a signal to stop; running requests get 10 s to finish.

    Args:
        app: from `make_app`.
        listening: the socket from `listen`; closed at the end.
        ready: called once, when the server accepts requests.
        lifeline: descriptor of a pipe whose end stops the server too. The system closes it when the program at its
            other end is gone, however that ended.

    Raises:
        MissingExtraError: Uvicorn is not installed.
    """
    server = make_server(app, ready=ready)
    if lifeline is not None:
        threading.Thread(target=_stop_after, args=(lifeline, server), name="seasoned-lifeline", daemon=True).start()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with contextlib.closing(listening), contextlib.suppress(KeyboardInterrupt):  # Uvicorn raises the signal again
        server.run(sockets=[listening])


def _stop_after(lifeline: int, server: Any) -> None:
    """Stop a server when a pipe has ended; what is written into it is ignored."""
    with contextlib.suppress(OSError):  # it is closed here already
        while os.read(lifeline, 4096):  # not sys.stdin, whose lock a thread that waits would hold at the end
            pass
    server.should_exit = True
