"""Kinds of feedback: each with its rewards, its texts, its words for people and its JSON schema.

To add a kind, add a class here: a frozen dataclass that derives from `Feedback`, registered by `feedback_kind`. The
memory, the service and the command line read everything else from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from seasoned.checks import check_flag, check_number, check_one_of, check_text, check_whole
from seasoned.errors import InputError, excerpt
from seasoned.types.experience import normalize_action
from seasoned.types.feedback_kinds import AnswerRewards, Feedback, feedback_kind
from seasoned.types.feedback_rewards import choice_rewards, edit_reward, score_reward, success_reward

__all__ = [
    "MAX_CANDIDATES",
    "Choice",
    "Correction",
    "Edit",
    "Label",
    "Outcome",
    "OwnAnswer",
    "Review",
    "Score",
    "Thumbs",
    "Verdict",
]

MAX_CANDIDATES = 64
"""How many answers one choice is among, at most: each that was not executed becomes an episode."""

Verdict = Literal["approved", "changes_requested", "comment"]
"""A reviewer's decision."""


def _schema(**keywords: Any) -> dict[str, Any]:
    return {"schema": keywords}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _set_checked(feedback: Feedback, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(feedback, name, value)


def _checked_flag(name: str, value: object) -> bool:
    return check_flag(name, bool(value) if isinstance(value, np.bool_) else value)


def _checked_candidates(candidates: object, chosen: object) -> tuple[tuple[str, ...], int]:
    """Return the candidates, which must differ, and the index of one of them."""
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Sequence):
        raise InputError(f"candidates = {excerpt(candidates)}", "the candidates are a list of texts", "Pass a list.")
    if len(candidates) > MAX_CANDIDATES:
        raise InputError(
            f"{len(candidates)} candidates",
            f"a choice is among at most {MAX_CANDIDATES}",
            "Leave out those that nobody saw.",
        )
    texts = tuple(check_text("candidate", candidate) for candidate in candidates)
    index = check_whole("chosen", chosen, at_least=0, next_step="Count from 0.")
    if index >= len(texts):
        raise InputError(f"chosen = {index}", f"it is an index of the {len(texts)} candidates", "Count from 0.")
    keys = [normalize_action(text) for text in texts]
    for place, key in enumerate(keys):
        if (first := keys.index(key)) != place:
            raise InputError(
                f"candidates {first} and {place} are both {excerpt(texts[place])}",
                "candidates must differ by more than case and blanks",
                "Pass each once.",
            )
    return texts, index


@feedback_kind
@dataclass(frozen=True, slots=True)
class Thumbs(Feedback):
    """A thumb: up is reward +1, down is -1.

    Example:
        >>> Thumbs(up=False, comment="the wrong page").rewards("click(pay)").executed
        -1.0
    """

    kind: ClassVar[str] = "thumbs"
    up: bool
    comment: str | None = None

    def __post_init__(self) -> None:
        _set_checked(self, up=_checked_flag("up", self.up))
        Feedback.__post_init__(self)

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return +1 or -1 for the executed answer."""
        return AnswerRewards(1.0 if self.up else -1.0)

    def words(self) -> str:
        """Return the feedback in words."""
        return "thumb up" if self.up else "thumb down"


@feedback_kind
@dataclass(frozen=True, slots=True)
class Score(Feedback):
    """A number on a scale: `low` is reward -1, `high` is +1, linear between them.

    Raises:
        InputError: a number is not finite, the scale is empty, or the value is outside it.

    Example:
        >>> Score(4, low=1, high=5).rewards("click(pay)").executed
        0.5
    """

    kind: ClassVar[str] = "score"
    value: float
    low: float = field(default=-1.0, metadata=_schema(default=-1, description="lowest value of the scale"))
    high: float = field(default=1.0, metadata=_schema(default=1, description="highest value of the scale"))
    comment: str | None = None

    def __post_init__(self) -> None:
        _set_checked(self, **{name: check_number(name, getattr(self, name)) for name in ("value", "low", "high")})
        if not self.low < self.high:
            raise InputError(
                f"low = {self.low}, high = {self.high}", "a scale begins below its end", "Exchange the two."
            )
        if not self.low <= self.value <= self.high:
            raise InputError(
                f"value = {self.value}", f"a score lies on its scale, {self.low} to {self.high}", "Name the scale."
            )
        Feedback.__post_init__(self)

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return the value, mapped linearly from the scale to -1 to 1, for the executed answer."""
        return AnswerRewards(score_reward(self.value, self.low, self.high))

    def words(self) -> str:
        """Return the feedback in words."""
        return f"score {self.value:.6g} on {self.low:.6g} to {self.high:.6g}"


@feedback_kind
@dataclass(frozen=True, slots=True)
class Choice(Feedback):
    """The best of several answers: the chosen one has reward +1, each of the N - 1 others -1 / (N - 1).

    The rewards are for search and prompts. A decision counts a choice as one comparison (`seasoned.core.ChoiceModel`).

    Args:
        candidates: the shown answers, 2 to 64 (`MAX_CANDIDATES`), distinct after normalisation.
        chosen: the index of the best.
        comment: the reason.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Choice(("Dear Ann", "Hi"), chosen=0).rewards("Hi")
        AnswerRewards(executed=-1.0, others=(('Dear Ann', 1.0),))
    """

    kind: ClassVar[str] = "choice"
    needs_episode: ClassVar[bool] = False
    candidates: tuple[str, ...] = field(
        metadata=_schema(minItems=1, description="in the order in which they were shown")
    )
    chosen: int = field(metadata=_schema(minimum=0, description="index of a candidate"))
    comment: str | None = None

    def __post_init__(self) -> None:
        candidates, chosen = _checked_candidates(self.candidates, self.chosen)
        if len(candidates) < 2:
            raise InputError(
                f"{len(candidates)} candidates", "a choice is between two or more", "Give thumbs or a score for one."
            )
        _set_checked(self, candidates=candidates, chosen=chosen)
        Feedback.__post_init__(self)

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return the reward of each candidate; of the executed answer, if it is one of them."""
        key = None if executed is None else normalize_action(executed)
        of_executed, others = None, []
        for text, reward in zip(self.candidates, choice_rewards(len(self.candidates), self.chosen), strict=True):
            if normalize_action(text) == key:
                of_executed = reward
            else:
                others.append((text, reward))
        return AnswerRewards(of_executed, tuple(others))

    def words(self) -> str:
        """Return the feedback in words."""
        others = [_quoted(text) for index, text in enumerate(self.candidates) if index != self.chosen]
        return f"chose {_quoted(self.candidates[self.chosen])} over {', '.join(others)}"


@feedback_kind
@dataclass(frozen=True, slots=True)
class Edit(Feedback):
    """A person's edit of an answer. The answer has reward `1 - 2 d`, d its normalised edit distance to `text`.

    Args:
        text: the edited text: an answer with reward +1. Other shown answers have no reward.
        comment: the reason.
        candidates: the shown answers, 1 to 64, distinct after normalisation; None: the executed answer was edited.
        chosen: the index of the edited candidate; with `candidates`, and only then.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Edit("It comes today.", candidates=("It is lost.", "It comes on Monday."), chosen=1).shown
        'It comes on Monday.'
    """

    kind: ClassVar[str] = "edit"
    slow_rewards: ClassVar[bool] = True
    text: str
    comment: str | None = None
    candidates: tuple[str, ...] | None = field(
        default=None, metadata=_schema(minItems=1, description="in the order in which they were shown")
    )
    chosen: int | None = field(default=None, metadata=_schema(minimum=0, description="index of a candidate"))

    def __post_init__(self) -> None:
        check_text("text", self.text)
        Feedback.__post_init__(self)
        if (self.candidates is None) != (self.chosen is None):
            raise InputError(
                f"{'chosen' if self.candidates is None else 'candidates'} alone",
                "an edit of one of several shown answers has both candidates and chosen",
                "Pass both, or neither for an edit of the executed answer.",
            )
        if self.candidates is not None:
            candidates, chosen = _checked_candidates(self.candidates, self.chosen)
            _set_checked(self, candidates=candidates, chosen=chosen)

    @property
    def shown(self) -> str | None:
        """The edited candidate; None: the executed answer was edited."""
        return None if self.candidates is None or self.chosen is None else self.candidates[self.chosen]

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return `1 - 2 d` for the edited answer, executed or not, and +1 for the text, if it differs.

        Raises:
            InputError: more than 50,000 characters differ, or nothing was shown and nothing executed.
        """
        shown = executed if self.shown is None else self.shown
        if shown is None:
            raise InputError("an edit of nothing", "an edit is of an executed or a shown answer", "Name the episode.")
        reward, key = edit_reward(shown, self.text), normalize_action(shown)
        others = () if normalize_action(self.text) == key else ((self.text, 1.0),)
        if executed is not None and normalize_action(executed) == key:
            return AnswerRewards(reward, others)
        return AnswerRewards(None, ((shown, reward), *others))

    def words(self) -> str:
        """Return the feedback in words."""
        return f"edited {'' if self.shown is None else f'{_quoted(self.shown)} '}to {_quoted(self.text)}"


@feedback_kind
@dataclass(frozen=True, slots=True)
class OwnAnswer(Feedback):
    """A person's own answer, with reward +1. The executed answer has none.

    Example:
        >>> OwnAnswer("It comes on Monday.").rewards("It is lost.").others
        (('It comes on Monday.', 1.0),)
    """

    kind: ClassVar[str] = "own_answer"
    needs_episode: ClassVar[bool] = False
    text: str
    comment: str | None = None

    def __post_init__(self) -> None:
        check_text("text", self.text)
        Feedback.__post_init__(self)

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return +1 for the text."""
        return AnswerRewards(None, ((self.text, 1.0),))

    def words(self) -> str:
        """Return the feedback in words."""
        return f"would answer {_quoted(self.text)}"


@feedback_kind
@dataclass(frozen=True, slots=True)
class Label(Feedback):
    """The label that was right: it has reward +1, and the executed answer, if it is another one, 0.

    Labels on one step count by their mean, weighted by their weights; on the only step of an episode they replace its
    rewards and thumbs.

    On a decision, the only or last step of its episode, with a prior, every other option of the prior has the reward 0
    too: policies read that from the prior (`EvidenceQuery.labels`), and no step is stored for it.

    For decisions among named options whose right one becomes known. The executed answer has a verdict either way,
    which an `OwnAnswer` does not give, and the rewards are in [0, 1], so that their mean is the accuracy.

    Example:
        >>> Label("refunds").rewards("sales")
        AnswerRewards(executed=0.0, others=(('refunds', 1.0),))
        >>> Label("refunds").rewards("refunds")
        AnswerRewards(executed=1.0, others=())
    """

    kind: ClassVar[str] = "label"
    right: str = field(metadata=_schema(description="the label that was right"))
    comment: str | None = None

    def __post_init__(self) -> None:
        check_text("right", self.right)
        Feedback.__post_init__(self)

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return +1 for the right label, and 0 for an executed answer that is another one."""
        if executed is not None and normalize_action(executed) == normalize_action(self.right):
            return AnswerRewards(1.0)
        return AnswerRewards(0.0, ((self.right, 1.0),))

    def words(self) -> str:
        """Return the feedback in words."""
        return f"the right label is {_quoted(self.right)}"


@feedback_kind
@dataclass(frozen=True, slots=True)
class Correction(Feedback):
    """A correction in conversation: the step has reward -1, and the text is stored.

    Example:
        >>> Correction("That is the old price.").rewards("It costs 5.").executed
        -1.0
    """

    kind: ClassVar[str] = "correction"
    text: str
    comment: str | None = None

    def __post_init__(self) -> None:
        check_text("text", self.text)
        Feedback.__post_init__(self)

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return -1 for the executed answer."""
        return AnswerRewards(-1.0)

    def words(self) -> str:
        """Return the feedback in words."""
        return f"corrected by {_quoted(self.text)}"


@feedback_kind
@dataclass(frozen=True, slots=True)
class Outcome(Feedback):
    """The outcome of a task, as machines measured it: tests, an exit code, a build.

    The finest measure is the reward: tests `2 passed / total - 1`; else exit code 0 is +1 and any other -1; else a
    build is +1 and none -1.

    Raises:
        InputError: there is no measure, only one of the two counts of tests, or more tests passed than ran.

    Example:
        >>> Outcome(passed=3, total=4, exit_code=1).rewards("apply(patch)").executed
        0.5
    """

    kind: ClassVar[str] = "outcome"
    exit_code: int | None = None
    passed: int | None = field(default=None, metadata=_schema(minimum=0, description="tests that passed"))
    total: int | None = field(default=None, metadata=_schema(minimum=0, description="tests that ran"))
    built: bool | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        if self.exit_code is not None:
            _set_checked(self, exit_code=check_whole("exit_code", self.exit_code))
        if (self.passed is None) != (self.total is None):
            raise InputError(
                f"{'total' if self.passed is None else 'passed'} alone",
                "tests are counted by both passed and total",
                "Give both, or neither.",
            )
        if self.passed is not None:
            total = check_whole("total", self.total, at_least=1, next_step="Count again.")
            passed = check_whole("passed", self.passed, at_least=0, next_step="Count again.")
            if passed > total:
                raise InputError(
                    f"passed = {passed}, total = {total}", "no more tests pass than there are", "Count again."
                )
            _set_checked(self, total=total, passed=passed)
        if self.built is not None:
            _set_checked(self, built=_checked_flag("built", self.built))
        if self.exit_code is None and self.passed is None and self.built is None:
            raise InputError(
                "no exit code, no tests, no build", "an outcome has one of them or more", "Pass exit_code=0, say."
            )
        Feedback.__post_init__(self)

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return the reward of the finest measure, for the executed answer."""
        if self.passed is not None and self.total is not None:
            return AnswerRewards(success_reward(self.passed, self.total))
        good = self.exit_code == 0 if self.exit_code is not None else self.built
        return AnswerRewards(1.0 if good else -1.0)

    def words(self) -> str:
        """Return the feedback in words."""
        words = [] if self.passed is None else [f"tests {self.passed}/{self.total}"]
        words += [] if self.exit_code is None else [f"exit code {self.exit_code}"]
        words += [] if self.built is None else ["built" if self.built else "not built"]
        return ", ".join(words)


@feedback_kind
@dataclass(frozen=True, slots=True)
class Review(Feedback):
    """A reviewer's decision: approved is reward +1, changes requested -1, a comment has none.

    Example:
        >>> Review("changes_requested", comment="no tests").rewards("apply(patch)").executed
        -1.0
    """

    kind: ClassVar[str] = "review"
    verdict: Verdict
    comment: str | None = None

    def __post_init__(self) -> None:
        check_one_of("verdict", self.verdict, get_args(Verdict))
        Feedback.__post_init__(self)

    def rewards(self, executed: str | None) -> AnswerRewards:
        """Return +1, -1 or no reward for the executed answer."""
        return AnswerRewards({"approved": 1.0, "changes_requested": -1.0}.get(self.verdict))

    def words(self) -> str:
        """Return the feedback in words."""
        return self.verdict.replace("_", " ")
