"""Headers that the gateway passes on: all but those of a connection, our own, and those that steer a browser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

__all__ = ["RawHeaders", "answer_headers", "request_headers"]

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Headers as they are sent, names in lower case."""

_CONNECTION = frozenset(
    [
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ]
)
_NOT_SENT = _CONNECTION | {b"host", b"content-length", b"expect", b"cookie", b"origin", b"referer"}
_NOT_ANSWERED = _CONNECTION | {
    b"alt-svc",
    b"cache-control",  # of the service's own answers, as the next ones
    b"clear-site-data",
    b"content-security-policy",
    b"cross-origin-opener-policy",
    b"cross-origin-resource-policy",
    b"date",
    b"location",
    b"refresh",
    b"referrer-policy",
    b"set-cookie",
    b"strict-transport-security",
    b"x-content-type-options",
}
_NOT_ANSWERED_PREFIXES = (b"access-control-", b"x-seasoned-")
_DECODABLE = ("gzip", "deflate", "identity")


def request_headers(headers: Iterable[tuple[bytes, bytes]], own: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Return the headers that the upstream server gets, in their order.

    Codings of an answer that cannot be read here are not accepted.

    Args:
        headers: of the client, names in lower case.
        own: headers in place of the client's, or besides them; an empty one leaves out the client's.

    Example:
        >>> given = [(b"host", b"here"), (b"x-new", b"1"), (b"accept-encoding", b"gzip, br"), (b"cookie", b"c=1")]
        >>> request_headers(given, {b"authorization": b"Bearer key"})
        [(b'x-new', b'1'), (b'accept-encoding', b'gzip'), (b'authorization', b'Bearer key')]
    """
    sent = []
    for name, value in _without_listed(headers):
        if name in _NOT_SENT or name in own or name.startswith(b"x-seasoned-"):
            continue
        if name == b"accept-encoding":
            codings = (coding.strip() for coding in value.decode("latin-1").split(","))
            kept = [one for one in codings if one.partition(";")[0].strip().lower() in _DECODABLE]
            sent.append((name, ", ".join(kept or ["identity"]).encode("latin-1")))
        else:
            sent.append((name, value))
    return [*sent, *((name, value) for name, value in own.items() if value)]


def answer_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer that its client gets, in their order.

    A length beside a transfer encoding is not the body's, and leaves (RFC 9112, section 6.3): a client that believed it
    would take the rest of the body for the next answer.

    Example:
        >>> answer_headers([(b"x-ratelimit-limit", b"9"), (b"set-cookie", b"a=b"), (b"x-seasoned-mode", b"memory")])
        [(b'x-ratelimit-limit', b'9')]
    """
    given = list(headers)
    is_encoded = any(name == b"transfer-encoding" for name, _ in given)
    left_out = _NOT_ANSWERED | {b"content-length"} if is_encoded else _NOT_ANSWERED
    return [
        (name, value)
        for name, value in _without_listed(given)
        if name not in left_out and not name.startswith(_NOT_ANSWERED_PREFIXES)
    ]


def _without_listed(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers without those that the header `connection` names."""
    given = list(headers)
    listed = {one.strip().lower() for name, value in given if name == b"connection" for one in value.split(b",")}
    return [(name, value) for name, value in given if name not in listed]
