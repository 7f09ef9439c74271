"""JSON Schemas of request bodies and errors, for OpenAPI and for the checks of field names."""

from __future__ import annotations

from typing import Any

from seasoned.types import FEEDBACK_KINDS

__all__ = [
    "ANSWER_SCHEMA",
    "EPISODE_SCHEMA",
    "ERROR_DESCRIPTIONS",
    "FEEDBACK_ANSWER",
    "FEEDBACK_TARGET",
    "ID_ANSWER",
    "LIFT_ANSWER",
    "METRIC_FIELDS",
    "OUTCOME_FIELDS",
    "PROBLEM_SCHEMA",
    "QUESTION_SCHEMA",
    "SCORE_FIELDS",
    "SEARCH_SCHEMA",
    "feedback_schema",
    "object_schema",
]

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_NUMBER: dict[str, Any] = {"type": "number"}
_INDEX: dict[str, Any] = {"type": "integer", "minimum": 0}


def object_schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has no other fields than these."""
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


EPISODE_SCHEMA = object_schema(
    ["task", "steps"],
    id={**_TEXT, "description": "Yours; posting the same again is a no-op, other content under it is a 409."},
    task=_TEXT,
    steps={
        "type": "array",
        "items": object_schema(
            ["state", "action"],
            state=_TEXT,
            action=_TEXT,
            reward={**_NUMBER, "default": 0},
            prior={"type": "object", "additionalProperties": {"type": "number", "maximum": 0}},
            propensity={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            shown={
                "type": "array",
                "items": {"type": "array", "items": {}, "minItems": 2, "maxItems": 2},
                "description": "Pairs of an episode's id and a step: examples that its prompt showed. Their effect is "
                "learned from its outcome.",
            },
        ),
    },
    final_state=_TEXT,
    ending={"enum": ["terminated", "truncated", "aborted"], "default": "terminated"},
    model=_TEXT,
    policy=_TEXT,
    arm=_TEXT,
    subject=_TEXT,
    awaits_feedback={
        "type": ["boolean", "null"],
        "description": "true: it counts only once feedback has judged it; null: by the rule of the namespace.",
    },
)

SEARCH_SCHEMA = object_schema(
    ["state"],
    state=_TEXT,
    k={"type": "integer", "minimum": 1, "maximum": 1000, "default": 10},
    threshold={"type": "number", "minimum": 0, "maximum": 1, "default": 0},
    gamma={"type": "number", "minimum": 0, "maximum": 1, "description": "One that the memory keeps. Default: its own."},
    exclude_task=_TEXT,
    cursor={**_TEXT, "description": "`next` of the answer before, with the same other fields."},
)

FEEDBACK_TARGET: dict[str, dict[str, Any]] = {
    "episode_id": {**_TEXT, "description": "The rated episode; without it, task and state are needed."},
    "step": {**_INDEX, "description": "Default: the last one."},
    "source": {**_TEXT, "description": "Default: the token's, or human."},
    "author": {**_TEXT, "description": "Default: the token's; another one needs the scope admin."},
    "weight": {**_NUMBER, "exclusiveMinimum": 0, "default": 1, "description": "Above 1: the scope admin is needed."},
    "task": {**_TEXT, "description": "Without episode_id: of a choice or an own answer."},
    "state": {**_TEXT, "description": "Likewise."},
    "subject": {**_TEXT, "description": "Likewise: the person concerned, so that it can be erased."},
    "id": {**_TEXT, "description": "Yours; the same again is a no-op."},
}

OUTCOME_FIELDS: dict[str, dict[str, Any]] = {
    "inference_id": {**_TEXT, "description": "In place of episode_id: the `id` of an answer to a decision request."},
    "question": {**_TEXT, "description": "With inference_id: which question, if the request had several."},
    "reward": {"type": "number", "description": "In place of kind: a reward, added to that of the step."},
    "revoke": {**_TEXT, "description": "In place of kind: the id of feedback on this decision to take back."},
}
METRIC_FIELDS: dict[str, dict[str, Any]] = {
    "metric_name": {**_TEXT, "description": "TensorZero: a metric; `comment`; or `demonstration`, the right label."},
    "value": {"description": "TensorZero: true or false for a thumb, a number for a reward, else a text."},
    "tags": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "TensorZero: kept as a note.",
    },
    "dryrun": {"type": "boolean", "description": "TensorZero: check, and store nothing."},
}
SCORE_FIELDS: dict[str, dict[str, Any]] = {
    "name": {**_TEXT, "description": "Langfuse: the score; OpenTelemetry: `gen_ai.evaluation.result`."},
    "traceId": {**_TEXT, "description": "Langfuse: of a trace, by whose id an episode was recorded."},
    "observationId": {**_TEXT, "description": "Langfuse: likewise, of an observation."},
    "sessionId": {**_TEXT, "description": "Langfuse: likewise, of a session."},
    "dataType": {**_TEXT, "description": "Langfuse: NUMERIC, BOOLEAN or CATEGORICAL."},
    "trace_id": {**_TEXT, "description": "Portkey, with a value from -10 to 10 and a weight; OpenTelemetry."},
    "attributes": {"type": "object", "description": "OpenTelemetry: `gen_ai.evaluation.name` and so on."},
    "metadata": {"type": "object", "description": "Portkey, Langfuse: not stored."},
    "resourceLogs": {
        "type": "array",
        "description": "OpenTelemetry: an OTLP request of logs, with evaluation results.",
    },
    "resourceSpans": {"type": "array", "description": "OpenTelemetry: of spans, whose events are read."},
}


def feedback_schema() -> dict[str, Any]:
    """Return the schema of a feedback's body: the fields of every kind, the target, and the forms for decisions."""
    properties: dict[str, dict[str, Any]] = {"kind": {"enum": list(FEEDBACK_KINDS)}}
    for kind, feedback_class in FEEDBACK_KINDS.items():
        for name, schema in feedback_class.json_schema()["properties"].items():
            if name in ("kind", "comment"):
                continue
            known = properties.setdefault(name, {**schema, "description": ""})
            detail = f"{kind}: {schema['description']}" if "description" in schema else kind
            known["description"] = "; ".join(filter(None, (known["description"], detail)))
    shared = {"value": {"description": f"score: a number; {METRIC_FIELDS['value']['description']}"}}
    return object_schema(
        [],
        **{
            **properties,
            "comment": _TEXT,
            **FEEDBACK_TARGET,
            **OUTCOME_FIELDS,
            **METRIC_FIELDS,
            **SCORE_FIELDS,
            **shared,
        },
    )


QUESTION_SCHEMA = object_schema(
    ["candidates"],
    id={**_TEXT, "description": "Yours. Default: made of the content, so that the same question is asked once."},
    task={**_TEXT, "description": "With episode_id, it is that of the episode."},
    state={**_TEXT, "description": "What the agent saw; with episode_id, the state of the step."},
    candidates={
        "type": "array",
        "minItems": 2,
        "maxItems": 9,
        "items": object_schema(
            ["text"],
            text=_TEXT,
            logprob={"type": "number", "maximum": 0, "description": "Of the model, in nats; for all, or for none."},
            model=_TEXT,
        ),
    },
    prompt={**_TEXT, "description": "The question to people."},
    episode_id={**_TEXT, "description": "An episode in which this moment was played."},
    step={**_INDEX, "description": "Where in it. Default: its last step."},
    subject={**_TEXT, "description": "The person concerned: erased with this person."},
)

ANSWER_SCHEMA = object_schema(
    ["kind"],
    kind={"enum": ["choice", "edit", "own_answer"]},
    author={**_TEXT, "description": "Needed with a token that has no author."},
    chosen={**_INDEX, "description": "choice, edit: which candidate, counted as in the question."},
    order={"type": "array", "items": _INDEX, "description": "choice, edit: the candidates as shown."},
    text={**_TEXT, "description": "edit, own_answer"},
    comment=_TEXT,
)

ID_ANSWER = object_schema(["id"], id=_TEXT)

FEEDBACK_ANSWER: dict[str, Any] = {
    "type": "object",
    "description": "Its `id`; TensorZero's form and scores of other systems: `feedback_id`; an OTLP request: "
    "`feedback_ids`, and the errors of what is `refused`; a revocation: `revoked`.",
    "properties": {
        "id": _TEXT,
        "episode_id": {"type": ["string", "null"]},
        "feedback_id": _TEXT,
        "feedback_ids": {"type": "array", "items": _TEXT},
        "refused": {"type": "array", "items": _TEXT},
        "revoked": _TEXT,
    },
}

_NUMBER_OR_NULL: dict[str, Any] = {"type": ["number", "null"]}
_LIFT_ARM = object_schema(
    ["n_assigned", "n_rated", "n_aborted", "mean"],
    n_assigned=_INDEX,
    n_rated=_INDEX,
    n_aborted=_INDEX,
    mean=_NUMBER_OR_NULL,
)
LIFT_ANSWER = object_schema(
    ["as_of", "families"],
    as_of={**_NUMBER, "description": "Seconds since 1970."},
    families={
        "type": "array",
        "items": {
            "type": "object",
            "required": ["family", "mean", "low", "high", "level", "state", "treated", "control"],
            "properties": {
                "family": _TEXT,
                "epoch": _TEXT,
                "mean": {**_NUMBER_OR_NULL, "description": "With memory less without; null before a rating."},
                "low": _NUMBER,
                "high": _NUMBER,
                "level": _NUMBER,
                "state": {"enum": ["learning", "proven", "harmful", "unclear"]},
                "e_value": _NUMBER,
                "is_off": {"type": "boolean"},
                "control_share": _NUMBER,
                "n_treated": _INDEX,
                "n_control": _INDEX,
                "treated": _LIFT_ARM,
                "control": _LIFT_ARM,
                "warnings": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
)

PROBLEM_SCHEMA = object_schema(
    ["error", "seen", "rule", "next"],
    error={"type": "string", "description": "The kind: one of the reference of errors, or HTTP's own."},
    seen={"type": "string", "description": "The value that was seen."},
    rule={"type": "string", "description": "The rule that it broke."},
    next={"type": "string", "description": "The next step."},
)

ERROR_DESCRIPTIONS = {
    400: "The request breaks a rule; nothing was written.",
    401: "No token, or a wrong one.",
    403: "Another site's page sent it, the token lacks a scope, or the memory is read-only.",
    404: "It does not exist.",
    409: "Its id is stored with other content.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    503: "The store is busy; try again.",
}
"""Descriptions of the error responses, by status."""
