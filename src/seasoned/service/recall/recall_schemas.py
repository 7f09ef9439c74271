"""JSON Schemas of an agent's requests for advice, examples and decisions, and of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seasoned.service.schemas import object_schema

__all__ = [
    "ADVICE_ANSWER",
    "ADVICE_SCHEMA",
    "DECIDE_SCHEMA",
    "DECISION_ANSWER",
    "EXAMPLES_ANSWER",
    "EXAMPLES_SCHEMA",
    "MAX_BUDGET_TOKENS",
    "MAX_LISTED_OPTIONS",
    "MAX_STEP",
    "RECALL_ANSWER",
    "RECALL_SCHEMA",
    "TRANSCRIPT_ANSWER",
    "TRANSCRIPT_SCHEMA",
]

MAX_LISTED_OPTIONS = 1000
MAX_BUDGET_TOKENS = 32_000
MAX_STEP = 2**20 - 1

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string", "minLength": 1}
_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_STEP: Schema = {**_COUNT, "maximum": MAX_STEP, "default": 0}
_TEXTS: Schema = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MAX_LISTED_OPTIONS}
_INTERVAL: Schema = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_NUMBERS: Schema = {"type": "object", "additionalProperties": _NUMBER}
_EVIDENCE: Schema = object_schema(["steps", "states"], steps=_COUNT, states=_COUNT)


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _answer(**properties: Schema) -> Schema:
    return object_schema(list(properties), **properties)


ADVICE_SCHEMA: Mapping[str, Any] = object_schema(
    ["state"],
    state=_TEXT,
    actions={**_TEXTS, "description": "Those that are possible now; others get no line. Default: unknown."},
    task={**_TEXT, "description": "What the agent is to do."},
    step={**_STEP, "description": "Of the episode, from 0."},
)
_ADVISED = _answer(action=_STRING, count=_COUNT, mean_return=_NUMBER, advantage=_NUMBER, interval=_INTERVAL)
ADVICE_ANSWER: Mapping[str, Any] = _answer(
    text={**_STRING, "description": "Lines for the end of a prompt; empty if no advantage is clear."},
    prefer={"type": "array", "items": _ADVISED},
    avoid={"type": "array", "items": _ADVISED},
    evidence=_EVIDENCE,
    baseline=_or_null(_NUMBER),
    reason=_STRING,
)

EXAMPLES_SCHEMA: Mapping[str, Any] = object_schema(
    ["task"],
    task={**_TEXT, "description": "What the agent is to do; compared with the tasks of stored episodes."},
    state={**_TEXT, "description": "What it sees; compared with stored states."},
    plan={**_TEXT, "description": "Compared with noted plans."},
    reasoning={**_TEXT, "description": "Compared with noted reasonings."},
    purpose={"enum": ["plan", "reason", "act"], "default": "act"},
    budget_tokens={
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_BUDGET_TOKENS,
        "default": 800,
        "description": "At most so many tokens of text, by estimate.",
    },
    exclude_task={**_TEXT, "description": "No example from this task."},
)
_EXAMPLE = _answer(
    episode_id=_STRING,
    step=_COUNT,
    task=_STRING,
    state=_STRING,
    action=_STRING,
    plan=_or_null(_STRING),
    reasoning=_or_null(_STRING),
    value=_NUMBER,
    interval=_INTERVAL,
    kind={"enum": ["imitate", "avoid"]},
    similarity=_NUMBER,
    n_shown=_COUNT,
    shortened={"type": "boolean"},
    **{"return": _NUMBER},
)
EXAMPLES_ANSWER: Mapping[str, Any] = _answer(
    text={**_STRING, "description": "The examples as text for a prompt; empty if there are none."},
    examples={"type": "array", "items": _EXAMPLE},
    shown={
        "type": "array",
        "items": {"type": "array", "items": {}, "minItems": 2, "maxItems": 2},
        "description": "The stored steps in the text, as `shown` of the step that is posted.",
    },
)

DECIDE_SCHEMA: Mapping[str, Any] = object_schema(
    ["state", "options"],
    state={"description": "A text; or any other JSON value, which is compared in its canonical form."},
    options={**_TEXTS, "description": "Those to choose among, each once."},
    probabilities={
        **_NUMBERS,
        "description": "How probable the model finds each option. Default: all are equally probable.",
    },
    logprobs={**_NUMBERS, "description": "In place of probabilities: their logarithms, in nats, at most 0."},
    task={**_TEXT, "description": "By which outcomes and lift are grouped. Default: the question's name."},
    question={**_TEXT, "description": "Its name; questions of different names share no evidence."},
    instructions={**_TEXT, "description": "The question in words; a hash of it is in the default task."},
    model={**_TEXT, "description": "Whose probabilities these are."},
    subject={**_TEXT, "description": "The person concerned, so that it can be erased."},
    id={**_TEXT, "description": "Yours, for the stored decision. Default: a new one."},
    episode_id={
        **_TEXT,
        "description": "The decision is a step of an episode that you post under this id. Nothing is stored now but "
        "its arm. It needs a task, and has no question, instructions, subject or id.",
    },
    step={**_STEP, "description": "With episode_id: of the episode, from 0."},
    admissible={
        "oneOf": [{"enum": ["any"]}, {**_TEXTS, "minItems": 0}],
        "description": "With episode_id: what memory may add to the options. Default: nothing.",
    },
    seed={**_COUNT, "description": "The same seed gives the same draw."},
)
DECISION_ANSWER: Mapping[str, Any] = _answer(
    id={**_or_null(_STRING), "description": "For feedback; null where nothing is stored."},
    action={**_STRING, "description": "The option to take."},
    state={**_or_null(_STRING), "description": "A state that is no text, as the text that is stored; else null."},
    mode={"enum": ["memory", "base", "holdout"]},
    arm={"enum": ["treated", "control", None], "description": "null: it is compared with none."},
    reason=_STRING,
    probabilities={**_NUMBERS, "description": "Of each option, with memory."},
    base={**_NUMBERS, "description": "Of each option, without memory."},
    advantages=_NUMBERS,
    counts={"type": "object", "additionalProperties": _COUNT, "description": "Stored steps with each option."},
    beta=_NUMBER,
    kl_nats=_NUMBER,
    propensity={**_NUMBER, "description": "The probability with which the action was chosen."},
    evidence=_EVIDENCE,
    policy=_STRING,
    prior={**_NUMBERS, "description": "Logprobs of the model's own options, for the step that is posted."},
)

_MESSAGES: Schema = {
    "type": "array",
    "items": {"type": "object"},
    "minItems": 1,
    "description": "As of Chat Completions. Blocks of memory in their texts are left out.",
}
_PLACES: Schema = {"type": "array", "items": {"type": "array", "items": {}, "minItems": 2, "maxItems": 2}}
RECALL_SCHEMA: Mapping[str, Any] = object_schema(
    ["messages"],
    messages=_MESSAGES,
    mode={"enum": ["examples", "advise"], "default": "examples"},
    tools={**_TEXTS, "minItems": 0, "description": "Names of the tools that the model may call."},
    task={**_TEXT, "description": "The family. Default: `conversations`; what the first user said is the goal."},
    model={**_TEXT, "description": "Its name: the lift compares episodes of one model."},
    episode_id={**_TEXT, "description": "Of the conversation: a share of the episodes gets no block, for the lift."},
)
RECALL_ANSWER: Mapping[str, Any] = _answer(
    text={**_STRING, "description": "Examples or advice; empty if there is none."},
    block={**_STRING, "description": "The text between two lines that mark it as memory's."},
    shown={**_PLACES, "description": "For the assistant's message in the transcript."},
    mode={"enum": ["memory", "base", "holdout"]},
    arm={"enum": ["treated", "control", None]},
    reason=_STRING,
)
TRANSCRIPT_SCHEMA: Mapping[str, Any] = object_schema(
    ["messages"],
    messages={**_MESSAGES, "description": "Each turn of the assistant is a step; `shown` in it is that of its prompt."},
    id={**_TEXT, "description": "Yours; posting the same again is a no-op."},
    task={**_TEXT, "description": "Default: what the first user said."},
    reward={**_NUMBER, "description": "Of the last step."},
    ending={"enum": ["terminated", "truncated", "aborted"], "default": "terminated"},
    model=_TEXT,
    policy=_TEXT,
    arm=_TEXT,
    subject=_TEXT,
    awaits_feedback={"type": ["boolean", "null"]},
)
TRANSCRIPT_ANSWER: Mapping[str, Any] = _answer(id=_STRING, steps=_COUNT)
