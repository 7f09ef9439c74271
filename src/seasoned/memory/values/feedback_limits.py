"""Limits of feedback, which the operator of a memory sets: how much one source, and one step, may count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.checks import MAX_REWARD, check_mapping, check_number, check_text, check_whole
from seasoned.errors import InputError, excerpt

__all__ = ["FeedbackLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackLimits:
    """Limits of feedback in a namespace. New feedback that exceeds one of its size is refused; stored feedback stays.

    Independently of them, a step's reward with all its feedback is between -1e100 and 1e100, as that of a `Step`.

    Args:
        max_weight: the largest weight, in absolute value; None: no limit.
        max_source_weights: the same by source (`human`, `judge`, ...), instead of `max_weight`.
        max_step_feedback: the largest absolute sum of `reward * weight` of a step's feedback; None: no limit. Feedback
            that brings the sum nearer to 0 is accepted.
        max_author_choices: how many choices of one named author decisions count at a distinct state where other named
            authors chose too, at least 1: the latest unrevoked ones, under whatever task, source and episode. More are
            stored. None: no limit.

    Raises:
        InputError: a limit is negative or not finite, or a source is blank.

    Example:
        >>> FeedbackLimits(max_weight=2, max_source_weights={"judge": 0.5}).max_weight_of("judge")
        0.5
    """

    max_weight: float | None = None
    max_source_weights: Mapping[str, float] = field(default_factory=dict)
    max_step_feedback: float | None = None
    max_author_choices: int | None = 1

    def __post_init__(self) -> None:
        for name in ("max_weight", "max_step_feedback"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_number(name, value, at_least=0))
        if self.max_author_choices is not None:
            check_whole("max_author_choices", self.max_author_choices, 1)
        weights = check_mapping("max_source_weights", self.max_source_weights, "each source to its largest weight")
        checked = {check_text("source", name): check_number(f"weight of {name}", w, 0) for name, w in weights.items()}
        object.__setattr__(self, "max_source_weights", checked)

    @classmethod
    def from_text(cls, text: str) -> FeedbackLimits:
        """Return the limits of a stored text."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """Return the limits as canonical JSON, their stored form."""
        return canonical_json(self.record())

    def record(self) -> dict[str, Any]:
        """Return the limits that differ from those of a new namespace."""
        every = {
            "max_weight": self.max_weight,
            "max_source_weights": dict(self.max_source_weights) or None,
            "max_step_feedback": self.max_step_feedback,
        }
        found = {name: value for name, value in every.items() if value is not None}
        return found if self.max_author_choices == 1 else {**found, "max_author_choices": self.max_author_choices}

    def max_weight_of(self, source: str) -> float | None:
        """Return the largest weight of a source's feedback; None: no limit."""
        return self.max_source_weights.get(source, self.max_weight)

    def check_weight(self, source: str, weight: float) -> None:
        """Refuse a weight above the limit of its source.

        Raises:
            InputError: it is.
        """
        limit = self.max_weight_of(source)
        if limit is not None and abs(weight) > limit:
            raise InputError(
                f"weight = {weight:g} of source {excerpt(source)}",
                f"feedback of this source has a weight of at most {limit:g} in this memory",
                "Pass a smaller weight, or ask the memory's operator (seasoned memory limits).",
            )

    def check_step(self, place: str, reward: float, before: float, after: float) -> None:
        """Refuse feedback that brings the sum of a step beyond a limit.

        Args:
            place: the step, for the message.
            reward: the reward of the environment.
            before: the sum of the step's feedback until now.
            after: the sum with the new feedback.

        Raises:
            InputError: the step's reward would leave [-1e100, 1e100], or its feedback `max_step_feedback`.
        """
        total = reward + after
        if abs(total) > MAX_REWARD and abs(total) > abs(reward + before):
            raise InputError(
                f"reward = {total:g} of {place}, with this feedback",
                f"a step's reward with all its feedback is between -{MAX_REWARD:g} and {MAX_REWARD:g}",
                "Give feedback of a smaller weight, or reweight its source.",
            )
        limit = self.max_step_feedback
        if limit is not None and abs(after) > limit and abs(after) > abs(before):
            raise InputError(
                f"feedback = {after:g} of {place}, with this one",
                f"the feedback of a step adds up to at most {limit:g} in this memory, in either direction",
                "Revoke other feedback of the step, or ask the memory's operator (seasoned memory limits).",
            )
