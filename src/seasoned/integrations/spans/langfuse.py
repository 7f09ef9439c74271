"""Reader of Langfuse exports: traces with their observations and scores."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.integrations.chat.messages import is_message
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult, Refusal, parse_strict_json, reason
from seasoned.integrations.json_shapes import optional_list, optional_record, optional_text, record, text_key, unix_time
from seasoned.integrations.readers import Format, SessionReader
from seasoned.integrations.spans.genai_spans import conversation_episode
from seasoned.integrations.spans.otlp import Telemetry

__all__ = ["LANGFUSE"]

_LOW = re.compile(r"_([a-z])")
_TYPES = {"GENERATION": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
_OTHERS = {"SPAN", "EVENT", "CHAIN", "RETRIEVER", "EMBEDDING", "EVALUATOR", "GUARDRAIL"}
_ROOT = "trace"
_OF_TRACES = {"bookmarked", "public", "release", "tags"}


def _in_camel_case(value: dict[str, Any]) -> dict[str, Any]:
    """Return a row of an export to a blob storage with the names of the API; another object as it is."""
    if not ("trace_id" in value and "type" in value) and not ("project_id" in value and "timestamp" in value):
        return value
    return {_LOW.sub(lambda found: found[1].upper(), name): inner for name, inner in value.items()}


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    data = value.get("data")
    if isinstance(data, list) and "meta" in value:
        return bool(data) and _recognises(data[0])
    if isinstance(value.get("trace"), dict) and isinstance(value.get("observations"), list):
        return True
    if isinstance(value.get("observations"), list) and "id" in value:
        return True
    value = _in_camel_case(value)
    if "traceId" in value and "id" in value and not value.keys() & {"spanId", "span_id"}:
        return str(value.get("type", "")).upper() in _TYPES.keys() | _OTHERS
    columns = {"id", "timestamp", "input", "output"} <= value.keys() and bool(_OF_TRACES & value.keys())
    return columns or ("htmlPath" in value and "input" in value)


class _ExportReader:
    """Reads traces, and observations on lines of their own, by `traceId`."""

    def __init__(self, rules: FieldRules) -> None:
        self._rules = rules
        self._observations = SessionReader(
            lambda each: (text_key("traceId", each.get("traceId")) or "", each),
            lambda key, each: iter((self._of_observations(key, [one for _, one in each], each[0][0]),)),
        )

    def add(self, document: Document) -> Iterator[ReadResult]:
        try:
            source = record("a trace", document.value)
            if isinstance(source.get("data"), list) and "meta" in source:  # a page of the API
                for each in source["data"]:
                    yield from self.add(Document(document.line, each))
                return
            source = _in_camel_case(source)
            if "traceId" in source and "observations" not in source:
                yield from self._observations.add(Document(document.line, source))
                return
            trace = optional_record("trace", source.get("trace")) or source
            scores = _score_list(trace.get("scores"))
            if trace is not source:
                scores += _score_list(source.get("scores"))
            observations = optional_list("observations", source.get("observations"))
            yield self._episode(trace, observations, scores, document.line)
        except (ValueError, OverflowError, RecursionError) as error:
            yield Refusal(document.line, reason(error))

    def close(self) -> Iterator[ReadResult]:
        yield from self._observations.close()

    def _of_observations(self, key: str, observations: list[Any], line: int) -> ReadEpisode:
        """Return the episode of observations without their trace; rules find fields in the last one with a value."""
        fields = {name: value for each in observations for name, value in each.items() if value is not None}
        return self._episode({"id": key}, observations, [], line, source=fields)

    def _episode(
        self, trace: dict[str, Any], observations: list[Any], scores: list[Any], line: int, *, source: object = None
    ) -> ReadEpisode:
        """Return the episode of a trace.

        | field | becomes |
        |---|---|
        | observations of type GENERATION | a turn: new messages of `input`, and `output` |
        | TOOL | the tool's result, if no later input has it |
        | `input` and `output` of a trace without a generation | a turn |
        | a score of an observation; of the trace | the turn's reward; the last step's reward |
        | `id`; `userId` | id; subject |
        | `level` ERROR of the last generation | aborted |
        """
        key = text_key("id", trace.get("id")) or ""
        spans = [_telemetry(record("an observation", each)) for each in observations if not isinstance(each, str)]
        if not any("gen_ai.output.messages" in span["attributes"] for span in spans):
            whole = {**trace, "type": "GENERATION", "id": _ROOT, "startTime": trace.get("timestamp", 0)}
            spans.append(_telemetry(whole))
        spans += _scored(scores, {str(span["span"]): span for span in spans}, spans[0])
        subject = optional_text("userId", trace.get("userId"))
        source = trace if source is None else source
        return conversation_episode(f"langfuse:{key}", spans, line, self._rules, source=source, subject=subject)


def _score_list(value: object) -> list[Any]:
    """Return scores, which an export may have by name: `{"quality": [0.5]}`; of several of a name the last."""
    if not isinstance(value, dict):
        return [*optional_list("scores", value)]
    last = {name: each[-1] if isinstance(each, list) and each else each for name, each in value.items()}
    return [{"name": name, "value": each} for name, each in last.items()]


def _telemetry(observation: dict[str, Any]) -> Telemetry:
    """Return an observation as a span of the GenAI conventions."""
    kind = _TYPES.get(str(observation.get("type", "")).upper())
    attributes: dict[str, Any] = {} if kind is None else {"gen_ai.operation.name": kind}
    if kind == "chat":
        model = observation.get("model") or observation.get("providedModelName")
        given, answer = _messages(observation.get("input"), "user"), _messages(observation.get("output"), "assistant")
        attributes |= {"gen_ai.input.messages": given} if given else {}
        attributes |= {"gen_ai.output.messages": answer[-1:]} if answer else {}
        attributes |= {"gen_ai.request.model": model} if model else {}
    elif kind == "execute_tool":
        attributes |= {
            "gen_ai.tool.name": observation.get("name"),
            "gen_ai.tool.call.arguments": observation.get("input"),
        }
        attributes["gen_ai.tool.call.result"] = observation.get("output")
    elif kind == "invoke_agent":
        attributes["gen_ai.agent.name"] = observation.get("name")
    start = unix_time("startTime", observation.get("startTime")) or 0.0
    return {
        "trace": "",
        "span": text_key("id", observation.get("id")) or "",
        "parent": text_key("parentObservationId", observation.get("parentObservationId")),
        "start_s": start,
        "end_s": unix_time("endTime", observation.get("endTime")) or start,
        "error": observation.get("level") == "ERROR",
        "attributes": attributes,
        "events": [],
        "log": False,
    }


def _messages(value: object, role: str) -> list[dict[str, Any]]:
    """Return the messages of an input or output: a list, one message, a text, or an object with messages or choices."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError):  # a text that only looks like JSON
            value = parse_strict_json(value)
    if isinstance(value, dict):
        choices = value.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            value = choices[0].get("message")
        elif isinstance(value.get("messages"), list):
            value = value["messages"]
    if value is None or value in ("", [], {}):
        return []
    if isinstance(value, list) and all(
        isinstance(item, dict) and ("role" in item or is_message(item)) for item in value
    ):
        return value
    if isinstance(value, dict) and ("role" in value or is_message(value) or {"content", "tool_calls"} & value.keys()):
        return [{"role": role, **value}]
    if isinstance(value, list) and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in value):
        return [{"role": role, "content": value}]  # the parts of one message
    return [{"role": role, "content": value if isinstance(value, str) else canonical_json(value)}]


def _scored(scores: list[Any], spans: dict[str, Telemetry], first: Telemetry) -> list[Telemetry]:
    """Add each numeric score as an evaluation of its observation; return the evaluations of the whole trace."""
    of_trace: list[Telemetry] = []
    for score in (one for one in scores if isinstance(one, dict)):
        value = float(score["value"]) if isinstance(score.get("value"), bool) else score.get("value")
        if not isinstance(value, int | float) or score.get("dataType") == "CATEGORICAL":
            continue
        span = spans.get(str(score.get("observationId")))
        if span is None:
            span = {**first, "span": None, "parent": None, "log": True, "attributes": {}, "events": []}
            of_trace.append(span)
        span["events"].append(
            {
                "name": "gen_ai.evaluation.result",
                "time_s": unix_time("timestamp", score.get("timestamp")),
                "attributes": {"gen_ai.evaluation.name": score.get("name"), "gen_ai.evaluation.score.value": value},
                "body": None,
            }
        )
    return of_trace


LANGFUSE = Format("Langfuse exports", _recognises, _ExportReader)
