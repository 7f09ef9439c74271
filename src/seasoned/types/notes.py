"""Notes on stored episodes and steps: their kinds, and the bodies that several packages read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from seasoned.checks import check_number, check_text, check_whole
from seasoned.errors import InputError, excerpt
from seasoned.types.episode_cost import EpisodeCost
from seasoned.types.lift_records import EPOCH, Assignment, Shadow, ShadowPrompt, is_step_pair
from seasoned.types.switch_records import SwitchBody

__all__ = [
    "ASSIGNMENT",
    "COST",
    "DECIDED",
    "JSON",
    "MAX_BODY_DEPTH",
    "NAME_POSITIONS",
    "PLAN",
    "QUESTION",
    "REASONING",
    "RESPONSE",
    "RETIRED",
    "SHADOW",
    "SHADOW_PROMPT",
    "SHOWN",
    "STEP_TASK",
    "SWITCH",
    "USAGE",
    "DecidedBody",
    "NamePositions",
    "Note",
    "QuestionBody",
    "ShownBody",
    "check_body",
    "check_kind",
    "check_known_body",
    "check_step",
    "note_text_of",
    "response_note_id",
    "text_body",
]

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
"""What JSON can hold."""

NamePositions: TypeAlias = (
    Callable[[str], object] | Mapping[str, "NamePositions"] | list["NamePositions"] | tuple["NamePositions", ...] | None
)
"""The positions of ids and names in a body, which are not redacted.

A mapping has the positions of an object by its keys, which are not redacted either; a list of one item those of every
item of a list; a tuple those of a list of its length. A function tells whether a text at its position is a name. None:
every text is redacted.
"""

MAX_BODY_DEPTH = 32
"""How deep lists and objects of a note's body may lie in each other."""

PLAN = "plan"
"""Kind of an episode's plan; its body is a `text_body`."""

REASONING = "reasoning"
"""Kind of the reasoning before a step; its body is a `text_body`."""

SHOWN = "shown"
"""Kind of the notes on a step of which a prompt showed stored steps: a `ShownBody`."""

RETIRED = "retired"
"""Kind of the notes on a step that is no longer shown as an example; the body holds the reasons, as numbers."""

DECIDED = "decided"
"""Kind of the notes on a step that one model of a cascade decided: a `DecidedBody`."""

QUESTION = "question"
"""Kind of the note on a question to people: a `QuestionBody`."""

RESPONSE = "response"
"""Kind of the note on the last step of a model's response; its id is a `response_note_id`.

Its body is empty, or has the `STEP_TASK` of a decision whose task is another than its episode's.
"""

STEP_TASK = "task"
"""Field of a `RESPONSE` note: the task of the step."""

USAGE = "usage"
"""Kind of the note on a step whose choice took calls of its own: `calls`, `prompt_tokens`, `completion_tokens`."""

ASSIGNMENT = "assignment"
"""Kind of the note on an episode that was assigned to memory or to the control group: an `Assignment`."""

COST = "episode.cost"
"""Kind of the notes on what an episode cost: an `EpisodeCost`; those of one episode add up."""

SHADOW = "shadow"
"""Kind of the note on a step of the control group with the decision of memory: a `Shadow`."""

SHADOW_PROMPT = "shadow.prompt"
"""Kind of the note on a step of the control group with what memory had for its prompt: a `ShadowPrompt`."""

SWITCH = "operator.switch"
"""Kind of the note on a switch that an operator set: a `SwitchBody`."""

_KIND = re.compile(r"[a-z][a-z0-9_.:-]{0,63}")


def check_kind(kind: object) -> str:
    """Return `kind` if it is the name of a kind of notes: a small letter, then up to 63 of `a-z 0-9 _ . : -`.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_kind("reasoning")
        'reasoning'
    """
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise InputError(
            f"kind = {excerpt(kind)}",
            "a kind of notes is a name of up to 64 of a-z 0-9 _ . : -, a letter first",
            "Call it 'plan', say.",
        )
    return kind


def check_body(body: object) -> dict[str, Any]:
    """Return a copy of `body` if it is a JSON object: dicts with texts for keys, lists, texts, numbers, truth, None.

    Tuples become lists. A text may be blank here, but UTF-8 can encode it; numbers are finite, whole ones of at most
    2,048 bits.

    Raises:
        InputError: it holds something else, or lies more than 32 deep.

    Example:
        >>> check_body({"examples": [("e1", 0)], "mode": "prompt"})
        {'examples': [['e1', 0]], 'mode': 'prompt'}
    """
    if not isinstance(body, Mapping):
        raise InputError(f"body = {excerpt(body)}", "the body of a note is a JSON object", "Pass {'text': ...}, say.")
    return dict(_plain(body, (), 0))


def _plain(value: Any, path: tuple[str | int, ...], depth: int) -> Any:
    if depth > MAX_BODY_DEPTH:
        raise InputError(_at(path), f"a note's body is at most {MAX_BODY_DEPTH} deep", "Keep it flat.")
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return _encodable(value, path)
    if isinstance(value, int | np.integer):
        try:
            return check_whole("number", value)
        except InputError as error:
            raise InputError(f"{_at(path)}: {error.seen}", error.rule, error.next_step) from None
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise InputError(
                f"{_at(path)} = {value}", "a number in a note is finite", "Find out where it was computed."
            )
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputError(
                    f"{_at(path)}: a key of the type {type(key).__name__}",
                    "the keys of a note's body are texts",
                    "Use str.",
                )
        return {_encodable(key, path): _plain(one, (*path, key), depth + 1) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(one, (*path, index), depth + 1) for index, one in enumerate(value)]
    raise InputError(f"{_at(path)} = {excerpt(value)}", "a note's body holds JSON values only", "Convert it first.")


def _at(path: tuple[str | int, ...]) -> str:
    """Name a place in a body; only when something is wrong there: it may be as long as the body."""
    return "body" + "".join(f"[{excerpt(part, 40)}]" for part in path[:8]) + ("..." if len(path) > 8 else "")


def _encodable(text: str, path: tuple[str | int, ...]) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{_at(path)} has a lone surrogate {text[error.start]!r} at character {error.start}",
            "a text in a note is one that UTF-8 can encode",
            "Decode the bytes it came from with errors='replace'.",
        ) from None
    return str(text)


@dataclass(frozen=True, slots=True)
class Note:
    """A note on an episode, or on one of its steps.

    The kinds in use are the constants of `seasoned.types.notes` and the kinds of feedback (`FEEDBACK_KINDS`). Your own
    may have any other name.

    Args:
        id: names it in its namespace.
        episode_id: the episode.
        step: index of the step; None for the whole episode.
        kind: the kind of the note.
        body: a JSON object; not to be changed.
        source: `agent`, `human`, `judge`, ...
        author: the person or program of that source.
        created_at: when it was written, in seconds since 1970.
        revoked_at: when it was revoked or superseded; None for an unrevoked note.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Note("n1", "e1", 0, "reasoning", {"text": "the total is right"}, "agent", None, 0.0).body["text"]
        'the total is right'
    """

    id: str
    episode_id: str
    step: int | None
    kind: str
    body: Mapping[str, JSON]
    source: str
    author: str | None
    created_at: float
    revoked_at: float | None = None

    def __post_init__(self) -> None:
        check_text("note id", self.id)
        check_text("episode id", self.episode_id)
        check_kind(self.kind)
        check_text("source", self.source)
        if self.author is not None:
            check_text("author", self.author)
        object.__setattr__(self, "body", check_body(self.body))
        object.__setattr__(self, "created_at", check_number("created_at", self.created_at))
        if self.revoked_at is not None:
            object.__setattr__(self, "revoked_at", check_number("revoked_at", self.revoked_at))
        if self.step is not None:
            object.__setattr__(self, "step", check_step(self.step))


def check_step(step: object) -> int:
    """Return `step` as an int if it is an index. Raises: InputError: it is not."""
    if isinstance(step, bool) or not isinstance(step, int | np.integer) or check_whole("step", step) < 0:
        raise InputError(f"step = {excerpt(step)}", "a step is named by its index", "Count from 0.")
    return int(step)


def text_body(text: str) -> dict[str, JSON]:
    """Return the body of a note that is one text.

    Example:
        >>> text_body("search, then pay")
        {'text': 'search, then pay'}
    """
    return {"text": text}


def note_text_of(body: object) -> str | None:
    """Return the text of a stored body; None if it has none, or a blank one.

    Example:
        >>> note_text_of(text_body("search, then pay")), note_text_of({"value": 1.0})
        ('search, then pay', None)
    """
    text = body.get("text") if isinstance(body, Mapping) else None
    return text if isinstance(text, str) and text.strip() else None


def _any_name(text: str) -> bool:
    """Return True: an id or a model's name may be any text, as in an episode."""
    return True


@dataclass(frozen=True, slots=True)
class ShownBody:
    """Body of a `SHOWN` note.

    Args:
        examples: (episode id, step) of the shown steps, each once.
        mode: `prompt`, or `both` for an arm that shifts the policy as well.
        purpose: the prompt: `plan`, `reason` or `act`.

    Example:
        >>> ShownBody((("e1", 0),), "prompt", "act").record()
        {'examples': [['e1', 0]], 'mode': 'prompt', 'purpose': 'act'}
    """

    name_positions: ClassVar[NamePositions] = {
        "examples": [(_any_name, None)],
        "mode": frozenset({"prompt", "both"}).__contains__,
        "purpose": frozenset({"plan", "reason", "act"}).__contains__,
    }
    examples: tuple[tuple[str, int], ...]
    mode: str = "prompt"
    purpose: str = "act"

    def record(self) -> dict[str, JSON]:
        """Return the body as JSON."""
        return {"examples": [list(one) for one in self.examples], "mode": self.mode, "purpose": self.purpose}

    @staticmethod
    def read_examples(body: object) -> tuple[tuple[str, int], ...]:
        """Return the shown steps of a stored body, each once; none if the body has another shape.

        Example:
            >>> ShownBody.read_examples({"examples": [["e1", 0], ["e1", 0], "e2"]})
            (('e1', 0),)
        """
        listed = body.get("examples") if isinstance(body, Mapping) else None
        pairs = [pair for pair in listed if is_step_pair(pair)] if isinstance(listed, list) else []
        return tuple(dict.fromkeys((episode_id, step) for episode_id, step in pairs))

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the body of JSON that another program wrote.

        Raises:
            InputError: an example is no pair of an episode's id and a step, or the mode or the purpose is no text.
        """
        listed = record.get("examples", [])
        names = {name: record[name] for name in ("mode", "purpose") if name in record}
        if not isinstance(listed, list) or not all(map(is_step_pair, listed)) or not _are_texts(names):
            raise InputError(
                f"shown = {excerpt(dict(record))}",
                "it is a purpose, and pairs of an episode's id and a step",
                "Leave it out.",
            )
        return cls(tuple((episode_id, step) for episode_id, step in listed), **names)


def _are_texts(names: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str) for value in names.values())


def _is_candidate(value: object) -> bool:
    if not isinstance(value, Mapping) or value.keys() - {"text", "logprob", "model"}:
        return False
    text, logprob, model = value.get("text"), value.get("logprob"), value.get("model")
    return (
        isinstance(text, str)
        and bool(text.strip())
        and (logprob is None or type(logprob) in (int, float))
        and (model is None or isinstance(model, str))
    )


@dataclass(frozen=True, slots=True)
class DecidedBody:
    """Body of a `DECIDED` note.

    Args:
        by: `student` or `teacher`.
        model: the name of the model that decided.
        reason: why this model decided.
        agreement: share of the student's votes that agree, where it was measured.
        evidence: number of stored steps, where they were counted.

    Example:
        >>> DecidedBody("student", "small", "it is sure", agreement=0.9).record()
        {'by': 'student', 'model': 'small', 'reason': 'it is sure', 'agreement': 0.9}
    """

    name_positions: ClassVar[NamePositions] = {
        "by": frozenset({"student", "teacher"}).__contains__,
        "model": _any_name,
        "reason": None,
        "agreement": None,
        "evidence": None,
    }
    by: str
    model: str | None
    reason: str
    agreement: float | None = None
    evidence: float | None = None

    def record(self) -> dict[str, JSON]:
        """Return the body as JSON; measures that were not taken are left out."""
        measures: dict[str, JSON] = {"agreement": self.agreement, "evidence": self.evidence}
        taken = {name: value for name, value in measures.items() if value is not None}
        return {"by": self.by, "model": self.model, "reason": self.reason, **taken}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the body of JSON that another program may have written.

        Raises:
            InputError: a value is missing, or of another type.
        """
        by, model, reason = (record.get(name) for name in ("by", "model", "reason"))
        measures = [record.get(name) for name in ("agreement", "evidence")]
        if (
            not isinstance(by, str)
            or not isinstance(reason, str)
            or not (model is None or isinstance(model, str))
            or not all(one is None or type(one) in (int, float) for one in measures)
        ):
            raise InputError(
                f"decided = {excerpt(dict(record))}",
                "it is who decided (student or teacher), a model, a reason, an agreement and an evidence",
                "Leave it out, or name the kind otherwise.",
            )
        return cls(by, model, reason, *measures)


@dataclass(frozen=True, slots=True)
class QuestionBody:
    """Body of a `QUESTION` note.

    Args:
        digest: hash of the question, by which the same question is recognised.
        candidates: the answers to choose from, each with `text`, `logprob` and `model`.
        prompt: the question to people; None for the default one.
        episode_id, step: the stored step that the question is about; None for a question about no stored step.
    """

    name_positions: ClassVar[NamePositions] = {
        "digest": re.compile("[0-9a-f]{64}").fullmatch,
        "candidates": [{"text": None, "logprob": None, "model": _any_name}],
        "prompt": None,
        "episode_id": _any_name,
        "step": None,
    }
    digest: str
    candidates: Sequence[Mapping[str, Any]]
    prompt: str | None
    episode_id: str | None
    step: int | None

    def record(self) -> dict[str, JSON]:
        """Return the body as JSON."""
        return {
            "digest": self.digest,
            "candidates": [dict(one) for one in self.candidates],
            "prompt": self.prompt,
            "episode_id": self.episode_id,
            "step": self.step,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the body of JSON that another program may have written.

        Raises:
            InputError: a value is missing, or of another type.
        """
        candidates, step = record.get("candidates"), record.get("step")
        texts = (record.get("digest"), *(record.get(name, "") or "text" for name in ("prompt", "episode_id")))
        if (
            not all(isinstance(text, str) and text.strip() for text in texts)
            or not isinstance(candidates, list)
            or not all(map(_is_candidate, candidates))
            or not (step is None or (type(step) is int and step >= 0))
        ):
            raise InputError(
                f"question = {excerpt(dict(record))}",
                "it is a digest, candidates with a text, a logprob and a model, a prompt, an episode's id and a step",
                "Ask with seasoned.service.Questions, or name the kind otherwise.",
            )
        return cls(str(record["digest"]), candidates, record.get("prompt"), record.get("episode_id"), step)

    def target(self, question_id: str) -> tuple[str, int]:
        """Return (episode id, step) of the step that an answer is about: without one, the question's own step."""
        return (question_id, 0) if self.episode_id is None else (self.episode_id, int(self.step or 0))


NAME_POSITIONS: Mapping[str, NamePositions] = {
    PLAN: {"text": None},
    REASONING: {"text": None},
    RETIRED: {"value": None, "high": None, "confidence": None},
    SHOWN: ShownBody.name_positions,
    DECIDED: DecidedBody.name_positions,
    QUESTION: QuestionBody.name_positions,
    ASSIGNMENT: {
        "family": None,
        "epoch": EPOCH.fullmatch,
        "unit": _any_name,
        "salt": re.compile("[0-9a-f]{1,64}").fullmatch,
        "namespace": _any_name,
        "u": None,
        "control_share": None,
        "arm": frozenset({"treated", "control"}).__contains__,
        "low": None,
        "high": None,
    },
    COST: {"tokens": None, "usd": None, "seconds": None},
    SHADOW: {"action": None, "probs": None, "mode": frozenset({"memory", "base"}).__contains__},
    SHADOW_PROMPT: {"examples": [(_any_name, None)], "prefer": None, "avoid": None},
    SWITCH: SwitchBody.name_positions,
}
"""By kind, the positions of ids and names. In notes of other kinds every text is redacted."""

_FORMS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    SHOWN: ShownBody.from_record,
    DECIDED: DecidedBody.from_record,
    QUESTION: QuestionBody.from_record,
    ASSIGNMENT: Assignment.from_record,
    COST: EpisodeCost.from_record,
    SHADOW: Shadow.from_record,
    SHADOW_PROMPT: ShadowPrompt.from_record,
    SWITCH: SwitchBody.from_record,
}


def check_known_body(kind: str, body: Mapping[str, Any]) -> None:
    """Refuse a body that is not of the form that other programs read of this kind; other kinds have any body.

    Raises:
        InputError: it is not.

    Example:
        >>> check_known_body("shown", {"examples": [["e1", 0]], "mode": "prompt", "purpose": "act"})
        >>> check_known_body("my.kind", {"anything": True})
    """
    if kind in _FORMS:
        _FORMS[kind](body)


def response_note_id(response_id: str, number: int = 1) -> str:
    """Return the id of the note on the last step of a model's response, by which feedback finds the step.

    Some local servers give an id to several responses; `number` counts these. From 10 on a character before it says how
    many digits it has, so that the order of the ids as texts is that of the numbers.

    Example:
        >>> [response_note_id("chatcmpl-7", number) for number in (1, 2, 10)]
        ['response:chatcmpl-7', 'response:chatcmpl-7 2', 'response:chatcmpl-7 :10']
    """
    if number == 1:
        return f"response:{response_id}"
    digits = str(number)
    return f"response:{response_id} {digits if len(digits) == 1 else chr(ord('8') + len(digits)) + digits}"
