"""What the service says back: JSON, and our errors with the status that fits them."""

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

__all__ = ["HTTP_NAMES", "STATUSES", "Answer", "problem", "status_of", "unexpected"]

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
"""The status of an error: that of the first class it belongs to."""

HTTP_NAMES = {
    401: "Unauthorized",
    403: "Forbidden",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    413: "ContentTooLarge",
    415: "UnsupportedMediaType",
    421: "MisdirectedRequest",
}
"""What is refused before it is a call of ours has no error of ours: it is named as HTTP names it (RFC 9110)."""

_RETRY_AFTER_S = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a JSON document, and headers beside those that every answer has."""

    status: int
    document: Any
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """Return the document as JSON, all of it ASCII: what cannot be encoded cannot break an answer."""
        return json.dumps(self.document, allow_nan=False).encode()


def status_of(error: SeasonedError) -> int:
    """Return the HTTP status of one of our errors.

    Example:
        >>> status_of(InputError("k = 0", "k is at least 1", "Ask for one."))
        400
    """
    return next(status for kind, status in STATUSES if isinstance(error, kind))


def problem(error: SeasonedError, status: int | None = None, headers: dict[str, str] | None = None) -> Answer:
    """Return what a client is told of an error: its kind, what was seen, the rule, what to do next.

    Args:
        error: what is wrong.
        status: None: that of the error. Another one, and the kind is HTTP's own (`HTTP_NAMES`).
        headers: more of them.

    Example:
        >>> problem(InputError("k = 0", "k is at least 1", "Ask for one.")).document["error"]
        'InputError'
        >>> problem(InputError("no token", "a request carries the token", "Send it."), 401).document["error"]
        'Unauthorized'
    """
    code = status_of(error) if status is None else status
    name = type(error).__name__ if code == status_of(error) else HTTP_NAMES[code]
    more = {"retry-after": str(_RETRY_AFTER_S)} if code == 503 else {}
    document = {"error": name, "seen": error.seen, "rule": error.rule, "next": error.next_step}
    return Answer(code, document, {**more, **(headers or {})})


def unexpected() -> Answer:
    """Return what a client is told of an error that nobody expected: nothing of its text."""
    return problem(SeasonedError("an unexpected error", "this is a bug", "The service's log has its traceback."))
