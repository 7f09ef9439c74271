"""Base class and registry of the kinds of feedback, and the record of stored feedback."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from types import UnionType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_args, get_origin, get_type_hints

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

    A kind is a frozen dataclass whose fields are JSON values: texts, tuples of texts, numbers, True and False, None. It
    has a field `comment`, the reason, which is None by default. `field(metadata=...)` may hold

    - `schema`: keywords of JSON Schema that the type of the field does not tell, such as a description or a minimum;
    - `redacted`: False for a name or a word of a fixed set. Every other text is redacted before it is stored.

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
            InputError: two candidates become equal.
        """
        changed: dict[str, Any] = {}
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if isinstance(value, str) and one.metadata.get("redacted", True):
                changed[one.name] = redact(value)
            elif isinstance(value, tuple) and one.metadata.get("redacted", True):
                changed[one.name] = tuple(redact(text) for text in value)
        return replace(self, **changed)  # type: ignore[type-var]

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the fields, `kind` included."""
        hints = get_type_hints(cls)
        required = [one.name for one in fields(cls) if MISSING is one.default is one.default_factory]  # type: ignore[arg-type]
        properties = {
            one.name: {**_type_schema(hints[one.name]), **one.metadata.get("schema", {})}
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
_TYPES: Mapping[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: _TEXT,
    tuple: {"type": "array", "items": _TEXT},
}


def feedback_kind(kind: _Kind) -> _Kind:
    """Register a dataclass as a kind of feedback.

    Raises:
        InputError: its name is not that of a kind of notes, or is taken by another class; or a field has the name of an
            argument of `Memory.feedback`.
    """
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if "comment" not in names or names & _RESERVED:
        raise InputError(
            f"{kind.__name__} with the fields {', '.join(sorted(names))}",
            f"a kind of feedback has a field comment, and none named {', '.join(sorted(_RESERVED))}",
            "Rename the field.",
        )
    if FEEDBACK_KINDS.setdefault(check_kind(kind.kind), kind) is not kind:
        raise InputError(f"kind = {kind.kind!r}", "each kind of feedback has a name of its own", "Choose another.")
    return kind


def _type_schema(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of a field's type; None is left out."""
    if get_origin(hint) is UnionType:
        [hint] = [one for one in get_args(hint) if one is not type(None)]
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    return dict(_TYPES[get_origin(hint) or hint])


def feedback_record(feedback: Feedback) -> dict[str, Any]:
    """Return feedback as plain data, without its kind; absent values are left out.

    Raises:
        InputError: it is no feedback.

    Example:
        >>> from seasoned.types import Choice
        >>> feedback_record(Choice(("a", "b"), 1))
        {'candidates': ['a', 'b'], 'chosen': 1}
    """
    if type(feedback) not in FEEDBACK_KINDS.values():
        raise InputError(
            f"feedback = {excerpt(feedback)}", f"it is one of {', '.join(FEEDBACK_KINDS)}", "Pass Thumbs(up=True), say."
        )
    values = {one.name: getattr(feedback, one.name) for one in fields(feedback)}  # type: ignore[arg-type]
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
