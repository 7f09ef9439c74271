"""Base class and registry of the kinds of feedback, and the record of stored feedback."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from inspect import formatannotation
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from seasoned.checks import check_one_of, check_text
from seasoned.errors import InputError, excerpt
from seasoned.types.notes import check_kind

__all__ = [
    "FEEDBACK_KINDS",
    "LATE_REWARD",
    "AnswerRewards",
    "Feedback",
    "FeedbackRecord",
    "StepReward",
    "feedback_from_record",
    "feedback_kind",
    "feedback_record",
]

LATE_REWARD = "late reward"
"""The source of feedback that moves a reward to the step that earned it, where an environment pays later."""


class AnswerRewards(NamedTuple):
    """The rewards that follow from one feedback.

    Args:
        executed: the reward of the executed answer, in [-1, 1]; None for none.
        others: (text, reward) of each other answer; each becomes an episode of one step.
    """

    executed: float | None
    others: tuple[tuple[str, float], ...] = ()


class Feedback(ABC):
    """Typed feedback: a value of one of `FEEDBACK_KINDS`, as `Memory.feedback` takes it.

    A kind is a frozen dataclass. The type of a field is `str`, `tuple[str, ...]`, `int`, `float`, `bool` or a `Literal`
    of texts or whole numbers; or one of these or None, with None as the default. The field `comment`, the reason, is
    `str | None`. `field(metadata=...)` may hold

    - `schema`: keywords of JSON Schema that the type of the field does not tell, such as a description or a minimum;
    - `redacted`: False for a name. Every other text is redacted before it is stored, except the words of a `Literal`.

    Attributes:
        kind: the name of the kind, also of its notes and events.
        needs_episode: False for a kind that can be on answers to a state of a task, without a stored episode.
        slow_rewards: True for a kind whose rewards may take a second; they are computed outside of transactions.
    """

    __slots__ = ()
    kind: ClassVar[str]
    needs_episode: ClassVar[bool] = True
    slow_rewards: ClassVar[bool] = False
    comment: str | None

    def __post_init__(self) -> None:
        """Check the comment; a kind with checks of its own calls it as `Feedback.__post_init__(self)`."""
        if self.comment is not None:
            check_text("comment", self.comment)

    @abstractmethod
    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return the rewards of the executed answer and of others, each in [-1, 1], which `Memory.feedback` checks.

        `executed` is None without an episode.
        """

    @abstractmethod
    def words(self) -> str:
        """Return the feedback in words for people, without the comment."""

    def redacted(self, redact: Callable[[str], str]) -> Self:
        """Return the feedback with its texts rewritten.

        Raises:
            InputError: a value is of another type than its field, or two candidates become equal.
        """
        types, changed = _check_values(self), dict[str, Any]()
        for one in fields(self):  # type: ignore[arg-type]
            value, hint = getattr(self, one.name), types[one.name].hint
            if value is None or not one.metadata.get("redacted", True):
                continue
            if hint is str:
                changed[one.name] = redact(value)
            elif hint == _TEXTS:
                changed[one.name] = tuple(redact(text) for text in value)
        return replace(self, **changed)  # type: ignore[type-var]

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the fields, `kind` included."""
        types = _field_types(cls)
        required = [one.name for one in fields(cls) if MISSING is one.default is one.default_factory]  # type: ignore[arg-type]
        properties = {
            one.name: {**types[one.name].schema(), **one.metadata.get("schema", {})}
            for one in fields(cls)  # type: ignore[arg-type]
        }
        return {
            "type": "object",
            "additionalProperties": False,
            "required": ["kind", *required],
            "properties": {"kind": {"const": cls.kind}, **properties},
        }


FEEDBACK_KINDS: dict[str, type[Feedback]] = {}
"""Each kind of feedback by its name. Everything that lists kinds reads them here."""

_RESERVED = frozenset(
    [
        "alternatives",
        "author",
        "episode_id",
        "feedback",
        "id",
        "kind",
        "reward",
        "source",
        "state",
        "step",
        "subject",
        "task",
        "weight",
    ]
)
_Kind = TypeVar("_Kind", bound=type[Feedback])
_TEXT = {"type": "string", "minLength": 1}
_TEXTS = tuple[str, ...]
_SCHEMAS: Mapping[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: _TEXT,
    _TEXTS: {"type": "array", "items": _TEXT},
}


class _FieldType(NamedTuple):
    """The type of a field: a key of `_SCHEMAS` or a `Literal`, and whether None is allowed too."""

    hint: Any
    optional: bool

    def accepts(self, value: object) -> bool:
        """Return whether a value is of this type; a whole number is a float, a bool is no number."""
        if value is None:
            return self.optional
        if get_origin(self.hint) is Literal:
            return any(type(value) is type(one) and value == one for one in get_args(self.hint))
        if self.hint == _TEXTS:
            return isinstance(value, tuple) and all(isinstance(text, str) for text in value)
        if isinstance(value, bool):
            return self.hint is bool
        return isinstance(value, int | float if self.hint is float else self.hint)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema; None is left out."""
        return {"enum": list(get_args(self.hint))} if get_origin(self.hint) is Literal else dict(_SCHEMAS[self.hint])


@cache
def _field_types(kind: type[Feedback]) -> Mapping[str, _FieldType]:
    """Return the types of the fields.

    Raises:
        InputError: a type is none of those that are checked and redacted, or a field may be None, which is not its
            default.
    """
    try:
        hints = get_type_hints(kind)
    except NameError as error:
        raise InputError(
            f"{kind.__name__} ({error})", "the types of a kind's fields can be read", "Import them in its module."
        ) from None
    types = {}
    for one in fields(kind):  # type: ignore[arg-type]
        hint = hints[one.name]
        parts = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
        [type_, *others] = [part for part in parts if part is not NoneType] or [NoneType]
        fixed = get_args(type_) if get_origin(type_) is Literal else ()
        if others or not (type_ in _SCHEMAS or (fixed and all(isinstance(each, str | int) for each in fixed))):
            raise InputError(
                f"{kind.__name__}.{one.name}: {formatannotation(hint)}",
                "a field of feedback is of the type str, tuple[str, ...], int, float, bool or Literal, or of one of "
                "these or None",
                "Declare one of these types; divide a structure into several fields.",
            )
        types[one.name] = _FieldType(type_, NoneType in parts)
        if types[one.name].optional and one.default is not None:
            raise InputError(
                f"{kind.__name__}.{one.name}: {formatannotation(hint)}",
                "a field that may be None is None by default, because None is not stored",
                "Set the default to None, or leave None out of the type.",
            )
    return types


def _check_values(feedback: Feedback) -> Mapping[str, _FieldType]:
    """Return the types of the fields if each value is of its field's type.

    Raises:
        InputError: a value is of another type.
    """
    types = _field_types(type(feedback))
    for name, type_ in types.items():
        if not type_.accepts(value := getattr(feedback, name)):
            raise InputError(
                f"{name} = {excerpt(value)}",
                f"{name} of {feedback.kind} must be of the type {formatannotation(type_.hint)}"
                f"{' or None' if type_.optional else ''}, not {type(value).__name__}",
                "Convert it first.",
            )
    return types


def feedback_kind(kind: _Kind) -> _Kind:
    """Register a dataclass as a kind of feedback.

    Raises:
        InputError: its name is not that of a kind of notes, or is taken by another class; or a field has the name of an
            argument of `Memory.feedback`, or a type that is not redacted, such as a list.
    """
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if "comment" not in names or names & _RESERVED:
        raise InputError(
            f"{kind.__name__} with the fields {', '.join(sorted(names))}",
            f"a kind of feedback has a field comment, and none named {', '.join(sorted(_RESERVED))}",
            "Rename the field.",
        )
    _field_types(kind)
    if FEEDBACK_KINDS.setdefault(check_kind(kind.kind), kind) is not kind:
        raise InputError(f"kind = {kind.kind!r}", "each kind of feedback has a name of its own", "Choose another.")
    return kind


def feedback_record(feedback: Feedback) -> dict[str, Any]:
    """Return feedback as plain data, without its kind; absent values are left out.

    Raises:
        InputError: it is no feedback, or a value is of another type than its field.

    Example:
        >>> from seasoned.types import Choice
        >>> feedback_record(Choice(("a", "b"), 1))
        {'candidates': ['a', 'b'], 'chosen': 1}
    """
    if type(feedback) not in FEEDBACK_KINDS.values():
        raise InputError(
            f"feedback = {excerpt(feedback)}", f"it is one of {', '.join(FEEDBACK_KINDS)}", "Pass Thumbs(up=True), say."
        )
    values = {name: getattr(feedback, name) for name in _check_values(feedback)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value is not None
    }


def feedback_from_record(kind: str, record: Mapping[str, Any]) -> Feedback:
    """Return the feedback of data from `feedback_record`; other items of the record are ignored.

    Raises:
        InputError: there is no such kind, or a value breaks its rules.

    Example:
        >>> feedback_from_record("thumbs", {"up": True})
        Thumbs(up=True, comment=None)
    """
    feedback_class = FEEDBACK_KINDS[check_one_of("kind", kind, FEEDBACK_KINDS)]
    names = [one.name for one in fields(feedback_class)]  # type: ignore[arg-type]
    values = {name: record[name] for name in names if name in record}
    try:
        return feedback_class(
            **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        )
    except TypeError as error:
        raise InputError(f"{kind} {excerpt(dict(record))}", f"feedback is whole ({error})", "Give the rest.") from None


@dataclass(frozen=True, slots=True)
class StepReward:
    """The reward of a step from feedback: `reward` times the feedback's weight is added, as the event `event_id`."""

    event_id: str
    episode_id: str
    step: int
    reward: float


@dataclass(frozen=True, slots=True)
class FeedbackRecord:
    """Stored feedback; hashable.

    Args:
        id: the id for `Memory.revoke(id)`, which takes all of it back.
        rewards: the rewards of steps.
        episode_ids: the episodes of its answers, one for each answer that was not executed.
        feedback: the feedback itself.
        episode_id: the episode that it is on; without one, the first of `episode_ids`.
        step: index of the step; None for the last.
        source: `human`, `tests`, ...
        author: the person or program of that source.
        weight: factor of the rewards.
        created_at: when it was stored, in seconds since 1970.
        revoked_at: when it was revoked or superseded; None for unrevoked feedback.
    """

    id: str
    rewards: tuple[StepReward, ...]
    episode_ids: tuple[str, ...]
    feedback: Feedback
    episode_id: str
    step: int | None
    source: str
    author: str | None
    weight: float
    created_at: float
    revoked_at: float | None = None
