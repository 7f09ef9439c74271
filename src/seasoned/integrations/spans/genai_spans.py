"""Conversion of the OpenTelemetry GenAI spans of one conversation to an episode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from seasoned.actions import call_action
from seasoned.canonical_json import canonical_json
from seasoned.errors import InputError
from seasoned.integrations.conversation import MAX_TASK_CHARS, AgentTurn, InputMessage, ending_of
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import ReadEpisode
from seasoned.integrations.json_shapes import (
    CORRECT,
    optional_list,
    optional_reward,
    optional_text,
    record,
    result_text,
)
from seasoned.integrations.spans.genai_messages import (
    DETAILS_EVENT,
    MESSAGE_EVENTS,
    RepeatedInput,
    has_output,
    parsed,
    span_messages,
)
from seasoned.integrations.spans.otlp import Telemetry
from seasoned.types import Ending

__all__ = ["conversation_episode", "kind_of"]

SpanKind = Literal["inference", "tool", "agent", "other"]

_KINDS: dict[str, SpanKind] = {
    "chat": "inference",
    "generate_content": "inference",
    "text_completion": "inference",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "create_agent": "other",
    "embeddings": "other",
    "plan": "other",
    "retrieval": "other",
    "create_memory": "other",
    "search_memory": "other",
    "update_memory": "other",
    "upsert_memory": "other",
    "delete_memory": "other",
    "create_memory_store": "other",
    "update_memory_store": "other",
    "delete_memory_store": "other",
}
_EVALUATION = "gen_ai.evaluation.result"


def kind_of(span: Telemetry) -> SpanKind:
    """Return the kind of a span, from `gen_ai.operation.name`, else, or if that is unknown, from attributes and events.

    An agent framework has operations of its own (`execute_event_loop_cycle`), and new events; these are nothing.
    """
    attributes = span["attributes"]
    operation = attributes.get("gen_ai.operation.name")
    if span["log"]:
        return "other"
    if not isinstance(operation, str) or operation not in _KINDS:
        if "gen_ai.tool.name" in attributes:
            return "tool"
        content = {"gen_ai.input.messages", "gen_ai.output.messages"} & attributes.keys()
        return "inference" if content or any(e["name"] in MESSAGE_EVENTS for e in span["events"]) else "other"
    return _KINDS[operation]


def conversation_episode(
    key: str,
    spans: Sequence[Telemetry],
    line: int,
    rules: FieldRules,
    *,
    source: object = None,
    subject: str | None = None,
) -> ReadEpisode:
    """Return the episode of the spans and log records of one conversation; `otel.read_otel` has the mapping.

    Raises:
        InputError: the messages were not recorded, a span has an unknown kind of message, or there are several
            evaluations and none was chosen.
    """
    by_id = _with_logs(spans)
    ordered = sorted(by_id.values(), key=lambda s: (s["start_s"], s["end_s"], s["span"]))
    scores, total = ({}, None) if rules.reward else _scores(spans, by_id, rules.evaluation)
    kinds = {span["span"]: kind_of(span) for span in ordered}
    turns = [span for span in ordered if kinds[span["span"]] == "inference"]
    if not any(has_output(span) for span in turns):
        turns = [span for span in ordered if kinds[span["span"]] == "agent" and has_output(span)]
    tools = [span for span in ordered if kinds[span["span"]] == "tool"]
    calls: dict[str, str] = {}
    if turns:
        items = list(_from_inference(ordered, turns, tools, calls, scores))
    else:
        items = list(_from_tools(ordered, tools, scores))
    in_turns = {span["span"] for span in turns or tools}
    leftover = [value for span, value in scores.items() if span not in in_turns]
    if (leftover and total is not None) or len(leftover) > 1:
        raise InputError("several scores for the whole conversation", "an episode can have one reward", CORRECT)
    models = [span["attributes"].get(f"gen_ai.{side}.model") for span in ordered for side in ("response", "request")]
    attributes = {name: value for span in reversed(ordered) for name, value in span["attributes"].items()}
    return rules.read(
        items,
        source=attributes if source is None else source,
        line=line,
        created_at=max(span["end_s"] for span in spans) or None,
        skipped={"spans without a message": sum(kind == "other" for kind in kinds.values())},
        task=_task(ordered, calls),
        id=key,
        reward=leftover[0] if leftover else total,
        ending=_ending(ordered, turns, by_id),
        model=next((text for model in models if (text := optional_text("model", model))), None),
        policy=next(
            (t for s in ordered if (t := optional_text("agent", s["attributes"].get("gen_ai.agent.name")))), None
        ),
        subject=subject,
    )


def _with_logs(spans: Sequence[Telemetry]) -> dict[str, Telemetry]:
    """Return the spans by id, with the events of their log records; messages replace a missing span."""
    by_id = {span["span"]: span for span in spans if not span["log"]}
    for log in (span for span in spans if span["log"] and span["span"] is not None):
        if log["span"] in by_id:
            by_id[log["span"]]["events"].extend(log["events"])
        elif log["events"][0]["name"] in {*MESSAGE_EVENTS, DETAILS_EVENT}:
            by_id[log["span"]] = {**log, "log": False}
    return by_id


def _from_inference(
    ordered: Sequence[Telemetry],
    inference: Sequence[Telemetry],
    tools: Sequence[Telemetry],
    calls: dict[str, str],
    scores: dict[str, float],
) -> Iterator[InputMessage | AgentTurn]:
    """Yield each call of the model as a turn; its input, or else the tool spans before it, are the messages."""
    turns, results = {span["span"] for span in inference}, {span["span"] for span in tools}
    tool_results: list[InputMessage] = []
    repeated = RepeatedInput()
    for span in ordered:
        if span["span"] in results:
            tool_results.extend(_tool_result(span))
        elif span["span"] in turns:
            before, after = span_messages(span, calls, repeated)
            if not after:
                if span["error"]:
                    continue
                raise InputError(
                    f"the span {span['span']} without its output",
                    "every call of the model needs a recorded answer",
                    "Record message content: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.",
                )
            if len(after) > 1:
                raise InputError(
                    f"{len(after)} answers in the span {span['span']}",
                    "a call must have one answer, the one that was used",
                    CORRECT,
                )
            last = max((i for i, item in enumerate(before) if isinstance(item, AgentTurn)), default=-1)
            trailing = before[last + 1 :]
            yield from trailing if any(not _instructs(item) for item in trailing) else [*trailing, *tool_results]
            tool_results = []
            yield AgentTurn(after[0].actions, scores.get(span["span"]), text=after[0].text)
    yield from tool_results


def _instructs(item: InputMessage | AgentTurn) -> bool:
    return isinstance(item, InputMessage) and item.speaker in ("system", "developer")


def _from_tools(
    ordered: Sequence[Telemetry], tools: Sequence[Telemetry], scores: dict[str, float]
) -> Iterator[InputMessage | AgentTurn]:
    """Yield each tool call as a turn, for model calls without recorded messages."""
    if not any("gen_ai.tool.call.arguments" in span["attributes"] for span in tools):
        raise InputError(
            f"{len(ordered)} spans without messages",
            "a conversation's spans need recorded messages or calls",
            "Record message content: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.",
        )
    for span in ordered:
        before, _ = span_messages(span, {})
        if before:
            yield from (item for item in before if isinstance(item, InputMessage))
            break
    for span in tools:
        attributes = span["attributes"]
        action = call_action(attributes.get("gen_ai.tool.name"), attributes.get("gen_ai.tool.call.arguments"))
        yield AgentTurn((action,), scores.get(span["span"]))
        yield from _tool_result(span)


def _tool_result(span: Telemetry) -> Iterator[InputMessage]:
    attributes = span["attributes"]
    if "gen_ai.tool.call.result" in attributes:
        text = result_text("gen_ai.tool.call.result", attributes["gen_ai.tool.call.result"])
        yield InputMessage(f"tool {attributes.get('gen_ai.tool.name')}", text)


def _scores(
    spans: Iterable[Telemetry], by_id: dict[str, Telemetry], evaluation: str | None
) -> tuple[dict[str, float], float | None]:
    """Return the score of each span, and of the whole conversation; later scores supersede earlier ones."""
    events = [
        (event["time_s"] or 0.0, span["span"], event["attributes"])
        for span in spans
        for event in (span["events"] if span["log"] or span["span"] in by_id else ())
        if event["name"] == _EVALUATION and event["attributes"].get("gen_ai.evaluation.score.value") is not None
    ]
    events = _distinct(events)
    names = {str(attributes.get("gen_ai.evaluation.name")) for _, _, attributes in events}
    if evaluation is None and len(names) > 1:
        raise InputError(
            f"evaluations {', '.join(sorted(names))[:80]}",
            "only one evaluation can be the reward",
            "Name it: evaluation= of read_episodes, --evaluation on the command line.",
        )
    scores: dict[str, float] = {}
    total = None
    for _, span, attributes in sorted(events, key=lambda event: event[0]):
        if evaluation in (None, attributes.get("gen_ai.evaluation.name")):
            score = optional_reward("score", attributes["gen_ai.evaluation.score.value"])
            if span in by_id and score is not None:
                scores[span] = score
            else:
                total = score
    return scores, total


def _distinct(events: list[tuple[float, str, dict[str, Any]]]) -> list[tuple[float, str, dict[str, Any]]]:
    """Return each event once: an event of a log record is also one of its span."""
    return list({canonical_json(event): event for event in events}.values())


def _task(ordered: Sequence[Telemetry], calls: dict[str, str]) -> str | None:
    """Return the first user message of any span: the first call may be in the middle of a conversation."""
    for span in ordered:
        for item in span_messages(span, dict(calls))[0]:
            if isinstance(item, InputMessage) and item.speaker == "user" and item.text.strip():
                return item.text.strip()[:MAX_TASK_CHARS].rstrip()
    return None


def _ending(ordered: Sequence[Telemetry], turns: Sequence[Telemetry], by_id: dict[str, Telemetry]) -> Ending:
    roots = [span for span in ordered if span["parent"] not in by_id and kind_of(span) == "agent"]
    if any(span["error"] for span in [*roots, *turns[-1:]]):
        return "aborted"
    reasons: list[object] = []
    for span in turns[-1:]:
        reasons += optional_list("finish_reasons", span["attributes"].get("gen_ai.response.finish_reasons"))
        for message in optional_list("messages", parsed(span["attributes"].get("gen_ai.output.messages"))):
            reasons.append(record("a message", message).get("finish_reason"))
        reasons += [e["attributes"].get("finish_reason") for e in span["events"] if e["name"] == "gen_ai.choice"]
    return ending_of({"finish_reason": next((r for r in reversed(reasons) if isinstance(r, str)), None)})
