"""Responses: JSON documents, and errors with their HTTP status."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from seasoned.errors import (
    ConfigError,
    EpisodeConflictError,
    InputError,
    NotFoundError,
    ReadOnlyStoreError,
    SeasonedError,
    StoreBusyError,
    StoreFullError,
)

__all__ = ["HTTP_NAMES", "STATUSES", "JsonResponse", "error_response", "internal_error_response", "status_of"]

STATUSES: tuple[tuple[type[SeasonedError], int], ...] = (
    (NotFoundError, 404),
    (EpisodeConflictError, 409),
    (StoreBusyError, 503),
    (StoreFullError, 507),
    (ReadOnlyStoreError, 403),
    (InputError, 400),
    (ConfigError, 501),
    (SeasonedError, 500),
)
"""HTTP status by error class; the first class that fits counts."""

HTTP_NAMES = {
    401: "Unauthorized",
    403: "Forbidden",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    413: "ContentTooLarge",
    415: "UnsupportedMediaType",
    421: "MisdirectedRequest",
}
"""Names of HTTP's own refusals (RFC 9110), which come before any call of the package."""

_RETRY_AFTER_S = 1


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """A status, a JSON document, and additional headers."""

    status: int
    document: Any
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """Return the document as ASCII JSON, so that lone surrogates cannot break a response."""
        return json.dumps(self.document, allow_nan=False).encode()


def status_of(error: SeasonedError) -> int:
    """Return the HTTP status of an error of the package.

    Example:
        >>> status_of(InputError("k = 0", "k is at least 1", "Ask for one."))
        400
    """
    return next(status for kind, status in STATUSES if isinstance(error, kind))


def error_response(
    error: SeasonedError, status: int | None = None, headers: dict[str, str] | None = None
) -> JsonResponse:
    """Return the response for an error: its class, the value seen, the rule, the next step.

    Args:
        error: the error.
        status: None: the error's own. With another status, the name is HTTP's (`HTTP_NAMES`).
        headers: additional headers.

    Example:
        >>> error_response(InputError("k = 0", "k is at least 1", "Ask for one.")).document["error"]
        'InputError'
        >>> error_response(InputError("no token", "a request carries the token", "Send it."), 401).document["error"]
        'Unauthorized'
    """
    code = status_of(error) if status is None else status
    name = type(error).__name__ if code == status_of(error) else HTTP_NAMES[code]
    more = {"retry-after": str(_RETRY_AFTER_S)} if code == 503 else {}
    document = {"error": name, "seen": error.seen, "rule": error.rule, "next": error.next_step}
    return JsonResponse(code, document, {**more, **(headers or {})})


def internal_error_response() -> JsonResponse:
    """Return the response for an unexpected error, without its text."""
    return error_response(SeasonedError("an unexpected error", "this is a bug", "The service's log has its traceback."))
