"""Traces of Jaeger as spans with flat fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seasoned.integrations.json_shapes import optional_list, record

__all__ = ["is_jaeger", "jaeger_spans"]

_S_PER_US = 1e-6


def is_jaeger(value: dict[str, Any]) -> bool:
    """Return whether a JSON object is a trace of Jaeger, or the answer of its API with traces in `data`."""
    data = value.get("data")
    if isinstance(data, list):
        return bool(data) and isinstance(data[0], dict) and "traceID" in data[0]
    return "traceID" in value and ("spans" in value or "spanID" in value)


def jaeger_spans(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans, with `tags` as attributes, `logs` as events and the first reference as parent.

    Raises:
        InputError: a trace, a span or a tag is no object.
    """
    if "spanID" in value:
        yield _span(value)
        return
    traces = value["data"] if isinstance(value.get("data"), list) else [value]
    for trace in traces:
        for span in optional_list("spans", record("a trace", trace).get("spans")):
            yield _span(record("a span", span))


def _span(span: dict[str, Any]) -> dict[str, Any]:
    start, duration = span.get("startTime"), span.get("duration")
    end = start + duration if isinstance(start, int | float) and isinstance(duration, int | float) else None
    parents = [
        record("a reference", each).get("spanID") for each in optional_list("references", span.get("references"))
    ]
    attributes = _pairs("tags", span.get("tags"))
    events = []
    for log in (record("a log", each) for each in optional_list("logs", span.get("logs"))):
        fields = _pairs("fields", log.get("fields"))
        name = fields.pop("event", fields.pop("name", None))
        events.append({"name": name, "time": log.get("timestamp"), "attributes": fields})
    return {
        "trace_id": span.get("traceID"),
        "span_id": span.get("spanID"),
        "parent_id": parents[0] if parents else None,
        "name": span.get("operationName"),
        "start_time": start * _S_PER_US if isinstance(start, int | float) else start,
        "end_time": None if end is None else end * _S_PER_US,
        "attributes": attributes,
        "events": events,
        "status": attributes.get("otel.status_code", "ERROR" if attributes.get("error") is True else None),
    }


def _pairs(name: str, value: object) -> dict[str, Any]:
    pairs = [record(f"an item of {name}", pair) for pair in optional_list(name, value)]
    return {str(pair.get("key")): pair.get("value") for pair in pairs}
