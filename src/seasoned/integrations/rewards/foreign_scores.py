"""Scores of other systems as feedback: OpenTelemetry's evaluation results, scores of Langfuse, feedback of Portkey."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seasoned.checks import check_mapping, check_number, check_reward, check_text
from seasoned.errors import InputError, excerpt
from seasoned.integrations.json_shapes import optional_list, record
from seasoned.integrations.spans.otlp import leaves, plain_attributes, trace_of
from seasoned.types import Feedback, Score, Thumbs

__all__ = [
    "ForeignScore",
    "ScoreScale",
    "declared_sources",
    "foreign_scores",
    "is_foreign_score",
    "is_otlp_request",
    "read_score",
]

EVALUATION = "gen_ai.evaluation.result"
"""The name of OpenTelemetry's event."""

_PORTKEY = "portkey"
_PORTKEY_MOST = 10
_LANGFUSE_TARGETS = ("observationId", "observation_id", "traceId", "trace_id", "sessionId", "session_id")
_EVENT_NAMES = ("name", "event_name", "eventName")
_OF_RESPONSE = ("gen_ai.response.id", "gen_ai.conversation.id")
_REQUESTS = ("resourceLogs", "resourceSpans", "batches")
_WORDS = {
    **dict.fromkeys(("pass", "passed", "correct", "true", "yes", "good", "relevant"), True),
    **dict.fromkeys(("fail", "failed", "incorrect", "false", "no", "bad", "not_relevant"), False),
}
_ADD_SCALE = 'Add to the file of rules: [[score]] name = {name}, with low and high, or labels = {{"good" = 1.0}}.'


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """How the scores of one name become rewards.

    Args:
        name: of the score, as the other system names it; `portkey` for all feedback of Portkey.
        low, high: ends of the scale of its numbers, which become -1 to 1; both or neither.
        labels: rewards from -1 to 1 of its labels.
        weight: factor of the reward, above 0.
        source: recorded with the feedback; None: the name.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> read_score({"name": "stars", "value": 4, "traceId": "t1"}, {"stars": ScoreScale("stars", 1, 5)}).feedback
        Score(value=4.0, low=1.0, high=5.0, comment=None)
    """

    name: str
    low: float | None = None
    high: float | None = None
    labels: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    source: str | None = None

    def __post_init__(self) -> None:
        named = f"score {excerpt(check_text('name of a score', self.name))}"
        if (self.low is None) != (self.high is None):
            raise InputError(f"{named}: one end of its scale", "a scale has low and high", "Add the other.")
        if self.low is not None and self.high is not None:
            Score(self.low, self.low, self.high)
        labels = check_mapping(f"{named}: labels", self.labels, "labels to rewards")
        for label, reward in labels.items():
            check_number(f"{named}: reward of {excerpt(label)}", reward, -1.0, 1.0)
        if self.low is None and not labels:
            raise InputError(named, "it has a scale, or labels", "Add low and high, or labels.")
        check_number(f"{named}: weight", self.weight, above=0.0, at_most=1000.0)
        if self.source is not None:
            check_text("source", self.source)


@dataclass(frozen=True, slots=True)
class ForeignScore:
    """A score that another system gave.

    Args:
        targets: ids of what it is about, the most specific first: a response, an observation, a trace, a session.
        feedback: a `Thumbs`, a `Score`, or a reward.
        source: recorded with the feedback: the name of the score.
        weight: factor of the reward.
        id: of the score in the other system; None if it has none.
    """

    targets: tuple[str, ...]
    feedback: Feedback | float
    source: str
    weight: float = 1.0
    id: str | None = None


def declared_sources(scales: Mapping[str, ScoreScale]) -> frozenset[str]:
    """Return the sources of the scores that an operator declared.

    Example:
        >>> sorted(declared_sources({"stars": ScoreScale("stars", 1, 5), "tone": ScoreScale("tone", 0, 1, source="a")}))
        ['a', 'stars']
    """
    return frozenset(scale.source or name for name, scale in scales.items())


def is_foreign_score(body: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has the form of one of these systems.

    Example:
        >>> is_foreign_score({"trace_id": "t1", "value": 5}), is_foreign_score({"metric_name": "solved", "value": True})
        (True, False)
    """
    if "metric_name" in body or "kind" in body:
        return False
    if _is_evaluation(body):
        return True
    has_value = body.get("value") is not None or "stringValue" in body or "string_value" in body
    return has_value and ("trace_id" in body or ("name" in body and any(key in body for key in _LANGFUSE_TARGETS)))


def is_otlp_request(body: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has the form of an OTLP request, which may have many scores.

    Example:
        >>> is_otlp_request({"resourceLogs": []}), is_otlp_request({"name": "stars", "value": 4})
        (True, False)
    """
    return any(key in body for key in _REQUESTS)


def foreign_scores(value: object) -> Iterator[dict[str, Any]]:
    """Yield the scores of a JSON document, as `read_score` takes them.

    It is one score; a page of Langfuse's API; or an OTLP request, whose log records and span events are read.

    Raises:
        InputError: it is something else.

    Example:
        >>> page = {"data": [{"name": "solved", "value": 1, "traceId": "t1"}], "meta": {}}
        >>> [score["name"] for score in foreign_scores(page)]
        ['solved']
    """
    body = record("a score", value)
    if isinstance(body.get("data"), list) and "meta" in body:
        for one in body["data"]:
            yield from foreign_scores(one)
    elif is_otlp_request(body):
        for is_log, leaf in leaves(body):
            fields = record("a span or a log record", leaf)
            if is_log and _is_evaluation(fields):
                yield fields
            elif not is_log:
                yield from _of_span(fields)
    elif is_foreign_score(body):
        yield body
    else:
        raise InputError(
            f"an object with {excerpt(sorted(body), 60)}",
            "a score is one of Langfuse, Portkey or OpenTelemetry",
            "See docs/how-to/rewards.md for the fields.",
        )


def _of_span(span: dict[str, Any]) -> Iterator[dict[str, Any]]:
    attributes = plain_attributes(span.get("attributes"))
    of_response = {name: attributes[name] for name in _OF_RESPONSE if name in attributes}
    for event in optional_list("events", span.get("events")):
        fields = record("an event", event)
        if _is_evaluation(fields):
            joined = {**of_response, **plain_attributes(fields.get("attributes"))}
            yield {"name": EVALUATION, "attributes": joined, "trace_id": trace_of(span)}


def read_score(body: Mapping[str, Any], scales: Mapping[str, ScoreScale] | None = None) -> ForeignScore:
    """Return the score of a JSON object for which `is_foreign_score` is true.

    | system | fields |
    |---|---|
    | OpenTelemetry | `attributes`: `gen_ai.evaluation.name`, `.score.value` or `.score.label`, `.explanation`, and |
    | | `gen_ai.response.id`, `gen_ai.conversation.id` or beside them a trace id |
    | Langfuse | `name`, `value` or `stringValue`, `dataType`, `comment`, `traceId`, `observationId`, `sessionId` |
    | Portkey | `trace_id`, `value` from -10 to 10, `weight` from 0 to 1 |

    A name with a scale is read by it. Otherwise true and false, and labels such as `pass` and `incorrect`, are thumbs;
    a number from -1 to 1 is a reward as it is; any other number or label is refused, as nothing says what it means.

    Args:
        body: the object.
        scales: by the names of scores.

    Raises:
        InputError: a field is missing or breaks a rule, or the value has no known meaning.

    Example:
        >>> read_score({"name": "solved", "value": 1, "dataType": "BOOLEAN", "traceId": "t1"}).feedback
        Thumbs(up=True, comment=None)
        >>> read_score({"trace_id": "t1", "value": 5, "weight": 0.5}).weight
        0.5
    """
    scales = scales or {}
    if _is_evaluation(body):
        return _evaluation(body, scales)
    return _langfuse(body, scales) if "name" in body else _portkey(body, scales)


def _is_evaluation(body: Mapping[str, Any]) -> bool:
    if not isinstance(body.get("attributes"), dict | list):
        return False
    attributes = body["attributes"]
    if isinstance(attributes, dict):
        keys = list(attributes)
    else:
        keys = [one.get("key") for one in attributes if isinstance(one, dict)]
    return EVALUATION in [body.get(name) for name in _EVENT_NAMES] or "gen_ai.evaluation.name" in keys


def _evaluation(body: Mapping[str, Any], scales: Mapping[str, ScoreScale]) -> ForeignScore:
    attributes = plain_attributes(body.get("attributes"))
    name = check_text("gen_ai.evaluation.name", attributes.get("gen_ai.evaluation.name"))
    value, label = (attributes.get(f"gen_ai.evaluation.score.{kind}") for kind in ("value", "label"))
    comment = attributes.get("gen_ai.evaluation.explanation")
    targets = [attributes.get("gen_ai.response.id"), attributes.get("gen_ai.conversation.id"), trace_of(dict(body))]
    return _score(name, value, label, comment, targets, scales, id_=None)


def _langfuse(body: Mapping[str, Any], scales: Mapping[str, ScoreScale]) -> ForeignScore:
    name, value = check_text("name", body["name"]), body.get("value")
    kind = str(body.get("dataType") or body.get("data_type") or "").upper()
    label = body.get("stringValue") or body.get("string_value")
    if kind == "BOOLEAN" and value in (0, 1):
        value, label = bool(value), None
    elif kind == "CATEGORICAL":
        value, label = None, label or value
    elif isinstance(value, str):
        value, label = None, value
    if kind == "TEXT":
        rule = "a score is a number, a label, or true and false"
        raise InputError(f"score {excerpt(name)} is a text", rule, "Leave it out.")
    targets = [body.get(key) for key in _LANGFUSE_TARGETS]
    id_ = body.get("id")
    return _score(name, value, label, body.get("comment"), targets, scales, id_=None if id_ is None else str(id_))


def _portkey(body: Mapping[str, Any], scales: Mapping[str, ScoreScale]) -> ForeignScore:
    value = check_number("value", body.get("value"), -_PORTKEY_MOST, _PORTKEY_MOST)
    weight = check_number("weight", 1.0 if body.get("weight") is None else body["weight"], above=0.0, at_most=1.0)
    scale = scales.get(_PORTKEY) or ScoreScale(_PORTKEY, -_PORTKEY_MOST, _PORTKEY_MOST)
    read = _score(_PORTKEY, value, None, None, [body.get("trace_id")], {_PORTKEY: scale}, id_=None)
    return ForeignScore(read.targets, read.feedback, read.source, read.weight * weight)


def _score(
    name: str,
    value: Any,
    label: Any,
    comment: Any,
    targets: Sequence[Any],
    scales: Mapping[str, ScoreScale],
    *,
    id_: str | None,
) -> ForeignScore:
    known = tuple(dict.fromkeys(one for one in targets if isinstance(one, str) and one.strip()))
    if not known:
        raise InputError(
            f"score {excerpt(name)} on nothing", "a score names a response, a trace or a session", "Add its id."
        )
    said = comment if isinstance(comment, str) and comment.strip() else None
    scale = scales.get(name)
    feedback = _feedback(name, value, label, said, scale)
    if scale is None:
        return ForeignScore(known, feedback, name, 1.0, id_)
    return ForeignScore(known, feedback, scale.source or name, scale.weight, id_)


def _feedback(name: str, value: Any, label: Any, comment: str | None, scale: ScoreScale | None) -> Feedback | float:
    if scale is not None and isinstance(label, str) and label in scale.labels:
        return Score(scale.labels[label], comment=comment)
    if isinstance(value, bool):
        return Thumbs(value, comment)
    if scale is not None and scale.low is not None and scale.high is not None and value is not None:
        return Score(check_number(f"score {excerpt(name)}", value), scale.low, scale.high, comment)
    if scale is None and isinstance(label, str) and (word := label.strip().lower().replace(" ", "_")) in _WORDS:
        return Thumbs(_WORDS[word], comment)
    if scale is None and value is not None:
        number = check_reward(f"score {excerpt(name)}", value)
        if -1.0 <= number <= 1.0:
            return number
    seen = excerpt(label if value is None else value)
    raise InputError(
        f"score {excerpt(name)} = {seen}",
        "a number from -1 to 1 and words such as pass and incorrect have a known meaning"
        if scale is None
        else "it must be on the scale, or among the labels, that the rules declare",
        _ADD_SCALE.format(name=excerpt(name)),
    )
