"""Messages of stored responses: the Responses API names what came before a request by an id."""

from __future__ import annotations

import itertools
import operator
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
class _Response:
    """A response with the messages up to it: some of an earlier response's, then its own.

    Attributes:
        units: its own messages.
        n_bytes: of these, as they were sent.
        earlier: the response whose messages come first.
        n_earlier: how many of these.
        n_holders: the ids that name it, and the responses that come after it.
    """

    units: Sequence[WireItem]
    n_bytes: int
    earlier: _Response | None
    n_earlier: int
    n_holders: int = 0

    @property
    def all_units(self) -> list[WireItem]:
        """The messages up to this response."""
        parts: list[Sequence[WireItem]] = []
        response: _Response | None = self
        end = self.n_earlier + len(self.units)
        while response is not None:
            parts.append(response.units[: max(0, end - response.n_earlier)])
            end, response = min(end, response.n_earlier), response.earlier
        return [unit for units in reversed(parts) for unit in units]


class ResponseMessages:
    """The messages up to each of the latest responses, by owner and id.

    A message is held and counted once, however many responses come after it.

    Args:
        max_bytes: of the messages as they were sent, in all; beyond it the oldest are forgotten.

    Not safe for threads.
    """

    def __init__(self, *, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._named: OrderedDict[_Key, _Response] = OrderedDict()

    def before(self, owner: str | None, body: Mapping[str, Any]) -> Sequence[WireItem]:
        """Return the messages of the response or conversation that a request continues by id."""
        earlier = self._named.get((owner, _earlier(body)))
        return () if earlier is None else earlier.all_units

    def keep(
        self,
        owner: str | None,
        response_id: str | None,
        body: Mapping[str, Any],
        units: Sequence[WireItem],
        n_bytes: int,
        *,
        resent: tuple[str | None, int] = (None, 0),
    ) -> None:
        """Keep the messages up to a response.

        Args:
            owner: whose id it is.
            response_id: of the answer.
            body: of the request.
            units: of the request and the answer, after those `before`.
            n_bytes: of the request and the answer.
            resent: the response whose messages the request has sent again, and the bytes of its request and answer.
        """
        names = [(owner, id_) for id_ in (response_id, _conversation_id(body)) if id_ is not None]
        if not names:
            return
        earlier = self._named.get((owner, _earlier(body)))
        if earlier is None and resent[0] is not None and (earlier := self._named.get((owner, resent[0]))) is not None:
            n_bytes = max(0, n_bytes - resent[1])
        alike = () if earlier is None else map(operator.is_, earlier.all_units, units)
        n_earlier = sum(1 for _ in itertools.takewhile(bool, alike))
        response = _Response(units[n_earlier:], n_bytes, earlier, n_earlier, len(names))
        if earlier is not None:
            earlier.n_holders += 1
        self._n_bytes += n_bytes
        for name in names:
            self._forget(name)
            self._named[name] = response
        while len(self._named) > _MAX_RESPONSES or self._n_bytes > self._max_bytes:
            self._forget(next(iter(self._named)))

    def _forget(self, name: _Key) -> None:
        response = self._named.pop(name, None)
        while response is not None:
            response.n_holders -= 1
            if response.n_holders:
                break
            self._n_bytes -= response.n_bytes
            response = response.earlier


def _earlier(body: Mapping[str, Any]) -> str:
    """Return the name of what came before a request: a response or a conversation that the provider keeps."""
    given = body.get("previous_response_id")
    return given if isinstance(given, str) else _conversation_id(body) or ""


def _conversation_id(body: Mapping[str, Any]) -> str | None:
    given = body.get("conversation")
    given = given.get("id") if isinstance(given, dict) else given
    return given if isinstance(given, str) else None
