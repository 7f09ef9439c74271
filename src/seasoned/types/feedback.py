"""What people, tests and reviewers say of what an agent did: typed, so that each kind has one meaning as a reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from seasoned.checks import check_number, check_text, check_whole
from seasoned.errors import InputError, excerpt
from seasoned.types.experience import normalize_action

__all__ = [
    "FEEDBACK_KINDS",
    "LATE_REWARD",
    "MAX_CANDIDATES",
    "Choice",
    "Correction",
    "Edit",
    "Feedback",
    "FeedbackRecord",
    "Outcome",
    "OwnAnswer",
    "Review",
    "Score",
    "StepReward",
    "Thumbs",
    "Verdict",
    "feedback_from_record",
    "feedback_record",
]

LATE_REWARD = "late reward"
"""The source of feedback that moves a reward to the step that earned it, where an environment pays later."""

MAX_CANDIDATES = 64
"""How many answers one choice is among, at most: each that was not executed becomes an episode."""

Verdict = Literal["approved", "changes_requested", "comment"]
"""What a reviewer decided."""


def _check_comment(comment: object) -> None:
    if comment is not None:
        check_text("comment", comment)


def _check_truth(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} = {excerpt(value)}", f"{name} is True or False", "Pass one of them.")
    return bool(value)


def _check_count(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or check_whole(name, value) < least:
        raise InputError(f"{name} = {excerpt(value)}", f"{name} is a whole number, at least {least}", "Count again.")
    return int(value)


def _check_shown(given: object, chosen: object) -> tuple[tuple[str, ...], int]:
    """Return what was shown, each answer once, and which of it was taken."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InputError(f"candidates = {excerpt(given)}", "the candidates are a list of texts", "Pass a list.")
    if len(given) > MAX_CANDIDATES:
        raise InputError(
            f"{len(given)} candidates", f"a choice is among at most {MAX_CANDIDATES}", "Leave out what nobody saw."
        )
    candidates = tuple(check_text("candidate", candidate) for candidate in given)
    index = _check_count("chosen", chosen, 0)
    if index >= len(candidates):
        raise InputError(f"chosen = {index}", f"it is an index of the {len(candidates)} candidates", "Count from 0.")
    keys = [normalize_action(candidate) for candidate in candidates]
    for place, key in enumerate(keys):
        if (same := keys.index(key)) != place:
            both = f"candidates {same} and {place} are both {excerpt(candidates[place])}"
            raise InputError(both, "candidates must differ by more than case and blanks", "Show each once.")
    return candidates, index


@dataclass(frozen=True, slots=True)
class Thumbs:
    """A thumb: up is reward +1, down is -1.

    Example:
        >>> Thumbs(up=False, comment="the wrong page").kind
        'thumbs'
    """

    kind: ClassVar[str] = "thumbs"
    up: bool
    comment: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "up", _check_truth("up", self.up))
        _check_comment(self.comment)


@dataclass(frozen=True, slots=True)
class Score:
    """A number on a scale: `low` is reward -1, `high` is +1, linear between them.

    Raises:
        InputError: a number is not finite, the scale is empty, or the value is outside it.

    Example:
        >>> Score(4, low=1, high=5)
        Score(value=4.0, low=1.0, high=5.0, comment=None)
    """

    kind: ClassVar[str] = "score"
    value: float
    low: float = -1.0
    high: float = 1.0
    comment: str | None = None

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            object.__setattr__(self, name, check_number(name, getattr(self, name)))
        if not self.low < self.high:
            raise InputError(
                f"low = {self.low}, high = {self.high}", "a scale begins below its end", "Exchange the two."
            )
        if not self.low <= self.value <= self.high:
            raise InputError(
                f"value = {self.value}", f"a score lies on its scale, {self.low} to {self.high}", "Name the scale."
            )
        _check_comment(self.comment)


@dataclass(frozen=True, slots=True)
class Choice:
    """The best of several answers: the chosen one has reward +1, each of the N - 1 others -1 / (N - 1).

    Args:
        candidates: what was shown, 2 to 64 (`MAX_CANDIDATES`), distinct after normalisation.
        chosen: the index of the best.
        comment: why.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Choice(("Dear Ann", "Hi"), chosen=0).chosen
        0
    """

    kind: ClassVar[str] = "choice"
    candidates: tuple[str, ...]
    chosen: int
    comment: str | None = None

    def __post_init__(self) -> None:
        candidates, chosen = _check_shown(self.candidates, self.chosen)
        if len(candidates) < 2:
            raise InputError(
                f"{len(candidates)} candidates", "a choice is between two or more", "Give thumbs or a score for one."
            )
        object.__setattr__(self, "candidates", candidates)
        object.__setattr__(self, "chosen", chosen)
        _check_comment(self.comment)


class _Worded:
    """Feedback that is a text."""

    __slots__ = ()
    text: str
    comment: str | None

    def __post_init__(self) -> None:
        check_text("text", self.text)
        _check_comment(self.comment)


@dataclass(frozen=True, slots=True)
class Edit(_Worded):
    """What a person made of a shown answer. That has reward `1 - 2 d`, d its normalised edit distance to `text`.

    Args:
        text: what they made of it: an answer with reward +1. Of what else was shown it says nothing.
        comment: why.
        candidates: what was shown, 1 to 64, distinct after normalisation; None: what was executed.
        chosen: the index of the one that was edited; with `candidates`, and only then.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Edit("It comes today.", candidates=("It is lost.", "It comes on Monday."), chosen=1).shown
        'It comes on Monday.'
    """

    kind: ClassVar[str] = "edit"
    text: str
    comment: str | None = None
    candidates: tuple[str, ...] | None = None
    chosen: int | None = None

    def __post_init__(self) -> None:
        _Worded.__post_init__(self)
        if (self.candidates is None) != (self.chosen is None):
            raise InputError(
                f"{'chosen' if self.candidates is None else 'candidates'} alone",
                "an edit of one of several shown answers has both candidates and chosen",
                "Give both; or neither, where what was executed was edited.",
            )
        if self.candidates is not None:
            for name, value in zip(("candidates", "chosen"), _check_shown(self.candidates, self.chosen), strict=True):
                object.__setattr__(self, name, value)

    @property
    def shown(self) -> str | None:
        """The answer that was edited; None: what was executed."""
        return None if self.candidates is None or self.chosen is None else self.candidates[self.chosen]


@dataclass(frozen=True, slots=True)
class OwnAnswer(_Worded):
    """What a person would have answered: an answer with reward +1. It says nothing of the shown one.

    Example:
        >>> OwnAnswer("It comes on Monday.").kind
        'own_answer'
    """

    kind: ClassVar[str] = "own_answer"
    text: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Correction(_Worded):
    """A correction in conversation: the step has reward -1, and the text is kept.

    Example:
        >>> Correction("That is the old price.").kind
        'correction'
    """

    kind: ClassVar[str] = "correction"
    text: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task turned out, told by machines: tests, an exit code, a build.

    The finest measure is the reward: tests `2 passed / total - 1`; else exit code 0 is +1 and any other -1; else a
    build is +1 and none -1.

    Raises:
        InputError: nothing is told, or tests are counted in part or in vain.

    Example:
        >>> Outcome(passed=3, total=4).total
        4
    """

    kind: ClassVar[str] = "outcome"
    exit_code: int | None = None
    passed: int | None = None
    total: int | None = None
    built: bool | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        if self.exit_code is not None:
            object.__setattr__(self, "exit_code", check_whole("exit_code", self.exit_code))
        if (self.passed is None) != (self.total is None):
            raise InputError(
                f"{'total' if self.passed is None else 'passed'} alone",
                "tests are counted by both passed and total",
                "Give both, or neither.",
            )
        if self.passed is not None:
            object.__setattr__(self, "total", _check_count("total", self.total, 1))
            object.__setattr__(self, "passed", _check_count("passed", self.passed, 0))
            if self.passed > self.total:  # type: ignore[operator]
                raise InputError(
                    f"passed = {self.passed}, total = {self.total}", "no more tests pass than there are", "Count again."
                )
        if self.built is not None:
            object.__setattr__(self, "built", _check_truth("built", self.built))
        if self.exit_code is None and self.passed is None and self.built is None:
            raise InputError(
                "no exit code, no tests, no build", "an outcome tells one or more of them", "Pass exit_code=0, say."
            )
        _check_comment(self.comment)


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer decided: approved is reward +1, changes requested -1, a comment has none.

    Example:
        >>> Review("changes_requested", comment="no tests").verdict
        'changes_requested'
    """

    kind: ClassVar[str] = "review"
    verdict: Verdict
    comment: str | None = None

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):
            raise InputError(
                f"verdict = {excerpt(self.verdict)}", f"it is one of {', '.join(get_args(Verdict))}", "Choose one."
            )
        _check_comment(self.comment)


Feedback: TypeAlias = Thumbs | Score | Choice | Edit | OwnAnswer | Correction | Outcome | Review
"""The kinds of typed feedback that `Memory.feedback` takes."""

FEEDBACK_KINDS: Mapping[str, type[Any]] = {kind.kind: kind for kind in get_args(Feedback)}
"""Each kind of feedback, by the name under which it is noted."""


def feedback_record(feedback: Feedback) -> dict[str, Any]:
    """Return feedback as plain data, without its kind; absent values are left out.

    Raises:
        InputError: it is no feedback.

    Example:
        >>> feedback_record(Choice(("a", "b"), 1))
        {'candidates': ['a', 'b'], 'chosen': 1}
    """
    if type(feedback) not in FEEDBACK_KINDS.values():
        raise InputError(
            f"feedback = {excerpt(feedback)}", f"it is one of {', '.join(FEEDBACK_KINDS)}", "Pass Thumbs(up=True), say."
        )
    given = {one.name: getattr(feedback, one.name) for one in fields(feedback)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value is not None
    }


def feedback_from_record(kind: str, record: Mapping[str, Any]) -> Feedback:
    """Return the feedback that `feedback_record` gave as data; what else the record holds is left alone.

    Raises:
        InputError: there is no such kind, or a value breaks its rules.

    Example:
        >>> feedback_from_record("thumbs", {"up": True})
        Thumbs(up=True, comment=None)
    """
    if kind not in FEEDBACK_KINDS:
        raise InputError(f"kind = {excerpt(kind)}", f"feedback is one of {', '.join(FEEDBACK_KINDS)}", "Choose one.")
    names = [one.name for one in fields(FEEDBACK_KINDS[kind])]
    try:
        made: Feedback = FEEDBACK_KINDS[kind](**{name: record[name] for name in names if name in record})
    except TypeError as error:
        raise InputError(f"{kind} {excerpt(dict(record))}", f"feedback is whole ({error})", "Give the rest.") from None
    return made


@dataclass(frozen=True, slots=True)
class StepReward:
    """A reward that feedback gave to a step: `reward` times the feedback's weight is added, as the event `event_id`."""

    event_id: str
    episode_id: str
    step: int
    reward: float


@dataclass(frozen=True, slots=True)
class FeedbackRecord:
    """Feedback as a memory keeps it; hashable, and equal however it was asked for.

    Args:
        id: takes all of it back: `Memory.revoke(id)`.
        rewards: what it gave to which steps.
        episode_ids: the episodes that it made, one for each answer that was not executed.
        feedback: what was said.
        episode_id: what it is about; for an answer outside of any episode, the first that it made.
        step: which step; None: the whole.
        source: who speaks, and
        author: which one of them.
        weight: how much the rewards count.
        created_at: when it was said, in seconds since 1970.
        revoked_at: when it was taken back, or superseded; None while it stands.
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
