"""An example: a stored moment, what surrounds it, and what is known of its worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from seasoned.types import Step, StepRef

__all__ = ["Example", "ExampleValuation"]


@dataclass(frozen=True, slots=True)
class Example:
    """A past step, as it is shown in a prompt.

    Args:
        episode_id, step: where it is stored.
        task: of its episode.
        steps: the window of executed steps around it, in order; around a model it ends before what was rejected.
            Rewards include feedback.
        at: which of `steps` it is.
        plan: of its episode, if one was noted.
        reasoning: at the step, if any was noted.
        return_: what followed, discounted, in reward units: its own.
        value: what it is worth above its neighbourhood's baseline, from what followed it and what followed where it
            was shown; see `Examples`.
        low, high: 95 % interval of the value.
        n_shown: at how many steps it, or what is the same state and action, was shown; of the latest 256.
        kind: to imitate or to avoid.
        similarity: to the query, in [0, 1].
        shortened: whether its texts were cut, or its window, to fit a budget.
        same_goal: whether its task is the query's goal, which a prompt need not say again.

    Example:
        >>> example = Example("e1", 0, "buy a lamp", (Step("page:cart", "click(pay)", 1.0),), 0, None, None, 1.0,
        ...     value=0.25, low=-0.1, high=0.6, n_shown=2, kind="imitate", similarity=0.9)
        >>> example.place, example.action
        (('e1', 0), 'click(pay)')
    """

    episode_id: str
    step: int
    task: str
    steps: tuple[Step, ...]
    at: int
    plan: str | None
    reasoning: str | None
    return_: float
    value: float
    low: float
    high: float
    n_shown: int
    kind: Literal["imitate", "avoid"]
    similarity: float
    shortened: bool = False
    same_goal: bool = False

    @property
    def place(self) -> StepRef:
        """The episode's id and the index of the step."""
        return self.episode_id, self.step

    @property
    def places(self) -> tuple[StepRef, ...]:
        """Of every step whose text it shows, in order."""
        first = self.step - self.at
        return tuple((self.episode_id, first + index) for index in range(len(self.steps)))

    @property
    def state(self) -> str:
        """What was seen at the step."""
        return self.steps[self.at].state

    @property
    def action(self) -> str:
        """What was done at the step."""
        return self.steps[self.at].action


@dataclass(frozen=True, slots=True)
class ExampleValuation:
    """How an example that was shown stands.

    Args:
        episode_id, step: where it is stored.
        task: of its episode.
        return_: its own, in reward units.
        value: posterior mean of its worth above the baseline, in reward units.
        low, high: the interval of the value.
        n_shown: at how many steps it was shown.
        n_observed: the effective number of observations: episodes that showed it, and its own outcome.
        retired: whether it is retired.
        rejected: whether people or judges rejected it: their feedback on it, or from it on, adds up to less than 0.
    """

    episode_id: str
    step: int
    task: str
    return_: float
    value: float
    low: float
    high: float
    n_shown: int
    n_observed: float
    retired: bool
    rejected: bool = False

    @property
    def place(self) -> StepRef:
        """The episode's id and the index of the step."""
        return self.episode_id, self.step
