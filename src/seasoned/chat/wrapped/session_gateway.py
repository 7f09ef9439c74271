"""Gateway of one session: it forwards the model calls of one assistant, records them, and lets memory take part."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from seasoned.chat.assistant_factory import chat_memory
from seasoned.chat.repository import default_memory_path, repository_namespace, sessions_folder
from seasoned.errors import StoreError
from seasoned.integrations.rewards import load_rules
from seasoned.memory.stores.registry import is_file
from seasoned.service import DecisionSettings, GatewaySettings, make_app
from seasoned.service.gateway.family_modes import ANY_FAMILY, FamilyMode
from seasoned.service.server import listen, make_server

__all__ = ["session_gateway"]

_END_S = 15.0
_HOST = "127.0.0.1"
_LOGGERS = ("seasoned", "uvicorn.error")


@contextlib.contextmanager
def session_gateway(
    path: str | os.PathLike[str],
    root: Path,
    session: str,
    upstream: str,
    *,
    mode: FamilyMode = "examples",
    holdout: bool = True,
    redact: Callable[[str], str] | None = None,
) -> Iterator[str]:
    """Serve a gateway on a free port of this machine while the block runs; its base URL is yielded.

    The session is the subject of its episodes, so that they are found by it. The log is a file beside the memory: the
    terminal is the assistant's. The URL has a random key, without which nothing is answered: other users of this
    machine reach the port too, and may neither read the memory nor call the model's server.

    Args:
        path: of the memory of all repositories.
        root: of the repository.
        session: its id.
        upstream: URL of the model's server.
        mode: what memory does with the calls.
        holdout: whether a share of the episodes gets no memory.
        redact: rewrites every text before it is written to disk; None: what the repository's namespace records.

    Raises:
        InputError, ConfigError: the upstream URL is wrong, or a folder cannot be made.
        RedactionMismatchError: the repository's texts went through another redactor.
        StoreError: the memory cannot be opened.
    """
    with chat_memory(path, root, redact=redact) as memory:  # makes the namespace, with the encoder of a chat
        redact = memory.session.redaction.redactor
    place = Path(path) if is_file(os.fspath(path)) else default_memory_path()
    folder = sessions_folder(path, root)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    app = make_app(
        path,
        namespace=repository_namespace(root),
        redact=redact,
        decisions=DecisionSettings(upstream=upstream),
        gateway=GatewaySettings(
            spool=place.with_name(f"{place.name}.calls"), modes={ANY_FAMILY: mode}, holdout=holdout
        ),
        rewards=load_rules("default"),
    )
    ready, listening = threading.Event(), listen(_HOST, 0, secured=False)
    key = secrets.token_urlsafe(24)
    server = make_server(_in_session(app, session, f"/{key}"), ready=ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="gateway", daemon=True)
    url = f"http://{_HOST}:{listening.getsockname()[1]}/{key}"
    with _log_file(folder / "gateway.log", redact):
        thread.start()
        try:
            while not ready.wait(0.05):
                if not thread.is_alive():
                    raise StoreError("the gateway", "it could not be started", f"See {folder / 'gateway.log'}.")
            yield url
            _end_episodes(url, session)
        finally:
            server.should_exit = True
            thread.join(_END_S)
            listening.close()


def _in_session(app: Any, session: str, root: str) -> Any:
    """Return the application below a root that is a secret, with every request about one subject, the session."""
    header = (b"x-seasoned-subject", session.encode())

    async def in_session(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            path, raw_path = scope["path"], scope["raw_path"]
            if not secrets.compare_digest(path[: len(root) + 1].encode(), f"{root}/".encode()):
                await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
                await send({"type": "http.response.body", "body": b""})
                return
            scope = {**scope, "path": path[len(root) :], "raw_path": raw_path[len(root) :]}
            others = [each for each in scope["headers"] if each[0] != header[0]]
            scope = {**scope, "headers": [*others, header]}
        await app(scope, receive, send)

    return in_session


def _end_episodes(url: str, session: str) -> None:
    """Store the episodes that still run: the assistant is gone."""
    request = urllib.request.Request(  # noqa: S310, an address of this process
        f"{url}/v1/episodes/{quote(session, safe='')}/end",
        json.dumps({}).encode(),
        {"content-type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(urllib.error.URLError, OSError):  # none runs, or the store fails and the spool has them
        opener.open(request, timeout=_END_S).close()


class _RedactedLines(logging.Formatter):
    """Lines of a log that a redactor rewrites: a message may quote a value."""

    def __init__(self, redact: Callable[[str], str] | None) -> None:
        super().__init__("%(asctime)s %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if self._redact is None else self._redact(text)


@contextlib.contextmanager
def _log_file(path: Path, redact: Callable[[str], str] | None) -> Iterator[None]:
    """Send the messages of the service to a file of this user while the block runs."""
    path.touch(mode=0o600)
    handler = logging.FileHandler(path)
    handler.setFormatter(_RedactedLines(redact))
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(each, list(each.handlers), each.propagate) for each in loggers]
    for logger in loggers:
        logger.handlers[:], logger.propagate = [handler], False
    try:
        yield
    finally:
        for logger, handlers, propagate in before:
            logger.handlers[:], logger.propagate = handlers, propagate
        handler.close()
