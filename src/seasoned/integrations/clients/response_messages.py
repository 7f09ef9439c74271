"""Messages of stored responses: the Responses API names what came before a request by an id."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seasoned.integrations.clients.wires.wire_format import WireItem

__all__ = ["ResponseMessages"]

_MAX_RESPONSES = 1000
_MAX_BYTES = 256 * 1024 * 1024

_Key = tuple[str | None, str]


@dataclass(slots=True)
class _Kept:
    """The messages up to a response.

    Attributes:
        units: the messages, of which those of earlier responses are the same objects.
        n_bytes: of all of them, as they were sent.
        n_counted: of these, those that count here: none once a later response holds them too.
    """

    units: Sequence[WireItem]
    n_bytes: int
    n_counted: int


class ResponseMessages:
    """The messages up to each of the latest responses, by owner and id.

    Args:
        max_bytes: of the messages as they were sent, in all; beyond it the oldest are forgotten.

    Not safe for threads.
    """

    def __init__(self, *, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()

    def before(self, owner: str | None, body: Mapping[str, Any]) -> Sequence[WireItem]:
        """Return the messages of the response or conversation that a request continues by id."""
        kept = self._kept.get((owner, _earlier(body)))
        return () if kept is None else kept.units

    def keep(
        self,
        owner: str | None,
        response_id: str | None,
        body: Mapping[str, Any],
        units: Sequence[WireItem],
        n_bytes: int,
    ) -> None:
        """Keep the messages up to a response.

        Args:
            owner: whose id it is.
            response_id: of the answer.
            body: of the request.
            units: of the request and the answer, after those `before`.
            n_bytes: of the request and the answer.
        """
        earlier = self._kept.get((owner, _earlier(body)))
        if earlier is not None:  # from now on its messages are held by the later one, too, which is forgotten after it
            n_bytes += earlier.n_bytes
            self._count(earlier, 0)
        for id_ in (response_id, _conversation_id(body)):
            if id_ is not None:
                self._forget((owner, id_))
                self._kept[owner, id_] = kept = _Kept(units, n_bytes, 0)
                self._count(kept, n_bytes)
        while len(self._kept) > _MAX_RESPONSES or self._n_bytes > self._max_bytes:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._count(kept, 0)

    def _count(self, kept: _Kept, n_bytes: int) -> None:
        self._n_bytes += n_bytes - kept.n_counted
        kept.n_counted = n_bytes


def _earlier(body: Mapping[str, Any]) -> str:
    """Return the name of what came before a request: a response or a conversation that the provider keeps."""
    given = body.get("previous_response_id")
    return given if isinstance(given, str) else _conversation_id(body) or ""


def _conversation_id(body: Mapping[str, Any]) -> str | None:
    given = body.get("conversation")
    given = given.get("id") if isinstance(given, dict) else given
    return given if isinstance(given, str) else None
