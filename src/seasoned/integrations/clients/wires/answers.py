"""Answers of model APIs as they come over the wire: one JSON object, or a stream of events."""

from __future__ import annotations

import json
from dataclasses import replace

from seasoned.actions.json_size import MOST_CALL_VALUES, has_more_values
from seasoned.errors import InputError
from seasoned.integrations.clients.wires.event_stream import json_events
from seasoned.integrations.clients.wires.wire_format import ModelAnswer, WireFormat

__all__ = ["is_event_stream", "read_answer"]


def is_event_stream(content_type: str) -> bool:
    """Return whether a content type is that of a stream of events."""
    return "text/event-stream" in content_type.lower()


def read_answer(wire: WireFormat, content_type: str, content: bytes) -> ModelAnswer | None:
    """Return the answer of a successful response; None of one that was not received to its end, and is no stream.

    Args:
        wire: the API.
        content_type: of the response.
        content: its body, without a content encoding.

    Raises:
        InputError: it has no answer, or more than one; or more than 200,000 values.
    """
    if is_event_stream(content_type):
        answered, complete = wire.streamed(json_events(content))
        answer = wire.answer(answered)
        return answer if complete else replace(answer, is_cut=True, is_broken_off=True, tokens=None)
    if has_more_values(content, MOST_CALL_VALUES):
        rule = f"an answer has at most {MOST_CALL_VALUES} values"
        raise InputError(f"an answer of {len(content)} bytes", rule, "It is no step of an episode.")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return wire.answer(value) if isinstance(value, dict) else None
