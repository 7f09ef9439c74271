"""Several answers to one request of Chat Completions (`n`): the request, and each answer as a response of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seasoned.integrations.clients.wires.answers import is_event_stream
from seasoned.integrations.clients.wires.event_stream import json_events
from seasoned.integrations.clients.wires.wire_format import as_index, as_record, as_records
from seasoned.integrations.json_parts import dumps_in_parts, loads_in_parts

__all__ = ["request_of_answers", "single_answers"]


def request_of_answers(body: bytes, n: int) -> bytes:
    """Return a request, which is a JSON object, for n answers.

    Example:
        >>> request_of_answers(b'{"model": "m"}', 4)
        b'{"model":"m","n":4}'
    """
    return dumps_in_parts({**loads_in_parts(body.decode(json.detect_encoding(body), "surrogatepass")), "n": n})


def single_answers(content_type: str, content: bytes, *, with_usage: bool = True) -> list[bytes]:
    r"""Return each answer of a response as the response that has it alone, in the order of the answers.

    A stream gives streams: the chunks of one answer, with the index 0.

    Args:
        content_type: of the response.
        content: its body, without a content encoding.
        with_usage: whether each has the usage of the whole response, as the provider counted it; else none has.

    Raises:
        ValueError: it is neither a stream nor a JSON object.

    Example:
        >>> two = b'{"id": "r", "choices": [{"index": 0, "message": {}}, {"index": 1, "message": {"content": "b"}}]}'
        >>> single_answers("application/json", two)[1]
        b'{"id":"r","choices":[{"index":0,"message":{"content":"b"}}]}'
    """
    left_out = set() if with_usage else {"usage"}
    if is_event_stream(content_type):
        events = [_without(event, left_out) for event in json_events(content)]
        indexes = {_index(choice) for event in events for choice in as_records(event.get("choices"))}
        done = b"data: [DONE]\n\n" if b"data: [DONE]" in content or b"data:[DONE]" in content else b""
        return [b"".join(_chunks(events, index)) + done for index in sorted(indexes)]
    response = _without(as_record(json.loads(content)), left_out)
    return [
        dumps_in_parts({**response, "choices": [{**choice, "index": 0}]})
        for choice in sorted(as_records(response.get("choices")), key=_index)
    ]


def _chunks(events: Sequence[Mapping[str, Any]], index: int) -> Iterator[bytes]:
    for event in events:
        choices = as_records(event.get("choices"))
        own = [{**choice, "index": 0} for choice in choices if _index(choice) == index]
        if own or not choices:  # a chunk without choices has the usage, or says that a filter ran
            yield b"data: " + dumps_in_parts({**event, "choices": own} if own else event) + b"\n\n"


def _without(value: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if name not in names}


def _index(choice: Mapping[str, Any]) -> int:
    return as_index(choice.get("index"), 0)
