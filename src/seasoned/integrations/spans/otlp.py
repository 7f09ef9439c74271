"""Decoder of OpenTelemetry JSON: OTLP requests, or single spans, as plain records with their GenAI part."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from seasoned.errors import InputError, excerpt
from seasoned.integrations.json_shapes import (
    CORRECT,
    describe_value,
    optional_list,
    optional_record,
    record,
    text_key,
    unix_time,
)
from seasoned.integrations.spans.dialects import genai_attributes
from seasoned.integrations.spans.jaeger import is_jaeger, jaeger_spans

__all__ = ["Telemetry", "is_telemetry", "leaves", "plain_attributes", "telemetry", "trace_of"]

Telemetry = dict[str, Any]
"""A span or a log record as plain JSON: `trace`, `span`, `parent`, `start_s`, `end_s`, `error`, `attributes` and
`events` (`name`, `time_s`, `attributes`, `body`). For a log record, `log` is True, and it is its own only event."""

_GENAI = "gen_ai."
_REQUESTS = {"resourceSpans": "spans", "batches": "spans", "resourceLogs": "logRecords"}
_SCOPES = ("scopeSpans", "instrumentationLibrarySpans", "scopeLogs", "instrumentationLibraryLogs")


def leaves(value: object) -> Iterator[tuple[bool, object]]:
    """Yield the raw spans and log records of one JSON value, each with a flag for log records.

    Known are an OTLP export request of traces (`resourceSpans`) or logs (`resourceLogs`), also with the scopes of
    earlier versions (`instrumentationLibrarySpans`); a trace of Tempo (`batches`, or either of them in `trace`);
    traces of Jaeger (`data`, or one of its items); a row of Phoenix's table of spans; and one span as a flat object, as
    console exporters print it.

    Raises:
        InputError: it is something else.

    Example:
        >>> list(leaves({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "chat"}]}]}]}))
        [(False, {'name': 'chat'})]
    """
    source = record("telemetry", value)
    if "trace" in source and isinstance(source["trace"], dict):
        source = source["trace"]
    if is_jaeger(source):
        yield from ((False, span) for span in jaeger_spans(source))
        return
    known = [kind for kind in _REQUESTS if kind in source]
    for kind in known:
        for resource in optional_list(kind, source[kind]):
            fields = record(kind, resource)
            for name in _SCOPES:
                for scope in optional_list(name, fields.get(name)):
                    for leaf in optional_list(_REQUESTS[kind], record(name, scope).get(_REQUESTS[kind])):
                        yield kind == "resourceLogs", leaf
    if known:
        return
    source = _nested(source)
    if _first(source, "trace_id", "traceId", "context") is None:
        raise InputError(
            f"an object with {excerpt(sorted(source), 60)}",
            "telemetry has resourceSpans, batches, resourceLogs, or a trace id",
            "Check the format of the file.",
        )
    yield False, source


def is_telemetry(value: object) -> bool:
    """Return whether a JSON value has one of the shapes that `leaves` knows.

    Example:
        >>> is_telemetry({"batches": []}), is_telemetry({"messages": []})
        (True, False)
    """
    if not isinstance(value, dict):
        return False
    if isinstance(trace := value.get("trace"), dict) and (trace.keys() & _REQUESTS.keys()):
        return True
    if is_jaeger(value) or any(isinstance(value.get(kind), list) for kind in _REQUESTS):
        return True
    value = _nested(value)
    context = value.get("context")
    both = {**(context if isinstance(context, dict) else {}), **value}
    return _first(both, "trace_id", "traceId") is not None and _first(both, "span_id", "spanId") is not None


def _nested(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of Phoenix's table of spans (`context.trace_id`, `attributes.llm.model_name`) as a span."""
    if "context.trace_id" not in row:
        return row
    nested: dict[str, Any] = {"context": {}, "attributes": {}}
    for key, value in row.items():
        head, _, name = key.partition(".")
        if head in nested and name:
            nested[head] |= {name: value} if value is not None else {}
        else:
            nested.setdefault(key, value)
    return nested


def telemetry(leaf: object, *, log: bool, keep: Collection[str] = ()) -> Telemetry | None:
    """Return a span or a log record as a plain record; None if it contains no `gen_ai.*`, and no attribute of `keep`.

    A flat span has `trace_id`, `traceId` or `context.trace_id`, and attributes as an object or as OTLP's list. Ids lose
    a leading `0x`.

    Raises:
        InputError: it has no trace, no id or no start, or a value of an unknown kind.

    Example:
        >>> span = {"trace_id": "0x01", "span_id": "0x02", "start_time": 1.0, "attributes": {"gen_ai.system": "x"}}
        >>> telemetry(span, log=False)["trace"]
        '01'
    """
    return _log(record("a log record", leaf)) if log else _span(record("a span", leaf), keep)


def trace_of(leaf: object) -> str | None:
    """Return the trace id of a span or log record; None if it has none."""
    if not isinstance(leaf, dict):
        return None
    context = leaf.get("context")
    trace = _first(leaf, "traceId", "trace_id")
    if trace is None and isinstance(context, dict):
        trace = _first(context, "trace_id", "traceId")
    return _plain_id(trace) if isinstance(trace, str) else None


def _plain_id(text: str) -> str:
    """Return an id in hex in lower case and without `0x`; another one, such as Tempo's in base64, as it is."""
    lower = text.lower().removeprefix("0x")
    return lower if not lower.strip("0123456789abcdef-") else text


def _first(fields: dict[str, Any], *names: str) -> Any:
    for name in names:
        if (value := fields.get(name)) is not None:
            return value
    return None


def _id(name: str, value: object, *, needed: bool = True) -> str | None:
    text = text_key(name, value)
    if text is None and needed:
        raise InputError(f"a span without {name}", "a span needs a trace id and its own id", CORRECT)
    return None if text is None else _plain_id(text)


def _span(span: dict[str, Any], keep: Collection[str]) -> Telemetry | None:
    name = span.get("name")
    attributes = genai_attributes(plain_attributes(span.get("attributes")), name if isinstance(name, str) else "")
    attributes = _genai(attributes, keep)
    events = [
        {
            "name": event.get("name"),
            "time_s": unix_time("event time", _first(event, "timeUnixNano", "time_unix_nano", "timestamp", "time")),
            "attributes": plain_attributes(event.get("attributes")),
            "body": None,
        }
        for event in (record("an event", event) for event in optional_list("events", span.get("events")))
        if isinstance(event.get("name"), str) and event["name"].startswith(_GENAI)
    ]
    if not events and not any(name.startswith(_GENAI) or name in keep for name in attributes):
        return None
    context = optional_record("context", span.get("context"))
    start = unix_time("start", _first(span, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"))
    end = unix_time("end", _first(span, "endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"))
    if start is None:
        raise InputError("a span without a start", "a span needs a start time", CORRECT)
    status = span.get("status")
    code = _first(status, "code", "status_code") if isinstance(status, dict) else status
    return {
        "trace": _id("trace_id", trace_of(span)),
        "span": _id("span_id", _first(span, "spanId", "span_id") or _first(context, "span_id", "spanId")),
        "parent": _id("parent", _first(span, "parentSpanId", "parent_span_id", "parent_id"), needed=False),
        "start_s": start,
        "end_s": start if end is None else end,
        "error": code in (2, "ERROR", "STATUS_CODE_ERROR", "Error") or "error.type" in attributes,
        "attributes": attributes,
        "events": events,
        "log": False,
    }


def _log(log: dict[str, Any]) -> Telemetry | None:
    attributes = plain_attributes(log.get("attributes"))
    name = _first(log, "eventName", "event_name") or attributes.get("event.name")
    if not isinstance(name, str) or not name.startswith(_GENAI):
        return None
    time = unix_time("log time", _first(log, "timeUnixNano", "observedTimeUnixNano"))
    body = None if log.get("body") is None else _any_value(log["body"])
    return {
        "trace": _id("trace_id", trace_of(log)),
        "span": _id("span_id", log.get("spanId"), needed=False),
        "parent": None,
        "start_s": time or 0.0,
        "end_s": time or 0.0,
        "error": False,
        "attributes": _genai(attributes),
        "events": [{"name": name, "time_s": time, "attributes": attributes, "body": body}],
        "log": True,
    }


def _genai(attributes: dict[str, Any], keep: Collection[str] = ()) -> dict[str, Any]:
    """Return the attributes that an episode may need."""
    kept = {"error.type", *keep}
    return {name: value for name, value in attributes.items() if name.startswith(_GENAI) or name in kept}


def plain_attributes(value: object) -> dict[str, Any]:
    """Return attributes, an object or OTLP's list of keys and values, as an object.

    Raises:
        InputError: they are neither.

    Example:
        >>> plain_attributes([{"key": "gen_ai.system", "value": {"stringValue": "x"}}])
        {'gen_ai.system': 'x'}
    """
    if value is None or isinstance(value, dict):
        return value or {}
    pairs = [record("an attribute", pair) for pair in optional_list("attributes", value)]
    return _key_values("attributes", pairs)


def _key_values(name: str, pairs: list[dict[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for pair in pairs:
        key = pair.get("key")
        if not isinstance(key, str) or key in values:
            raise InputError(
                f"the key {describe_value(key)} of {name}", "each key must be a text, and occur once", CORRECT
            )
        values[key] = _any_value(pair.get("value"))
    return values


def _any_value(value: object) -> Any:
    """Return the value of an OTLP AnyValue."""
    fields = optional_record("an OTLP value", value)
    if not fields:
        return None
    [(kind, inner), *more] = fields.items()
    if more:
        raise InputError(f"an OTLP value with {excerpt(sorted(fields), 60)}", "it must have one kind", CORRECT)
    if kind in ("stringValue", "bytesValue", "boolValue", "doubleValue"):
        return inner
    if kind == "intValue":
        return int(inner) if isinstance(inner, str) else inner
    if kind == "arrayValue":
        items = optional_list("values", optional_record("arrayValue", inner).get("values"))
        return [_any_value(item) for item in items]
    if kind == "kvlistValue":
        pairs = optional_list("values", optional_record("kvlistValue", inner).get("values"))
        return _key_values("kvlistValue", [record("a pair", pair) for pair in pairs])
    raise InputError(f"an OTLP value of kind {describe_value(kind)}", "this kind is unknown", CORRECT)
