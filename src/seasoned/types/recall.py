"""What memory recalls of a moment: a stored step, how it fits a query, and what was said beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seasoned.types.experience import Ending, Experience

__all__ = ["KEYS", "Moment", "Recall"]

KEYS = ("goal", "plan", "observation", "reasoning")
"""By what a moment can be looked for: its episode's task and plan, its state, what was thought before the action."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A stored step that was recalled.

    Args:
        experience: the step, with its return.
        similarities: by key of the query, in [0, 1]; 0 where nothing was written under that key.
        ending, arm: of its episode.
        plan: of its episode, if one was noted.
        reasoning: at this step, if any was noted.
        retired: whether a note of the kind "retired" stands at a step of its distinct state and action (of whole
            episodes, of its first state and plan).
        tries: how often its action was taken at its distinct state, by anybody.
        mean_return: what that earned on average, in reward units.
        feedback_totals: the sum of unrevoked feedback on its episode, by source, in reward units; None if not asked.

    Example:
        >>> step = Experience("page:pay", "click(confirm)", 1.0, 1.0, "e1", 0, "checkout")
        >>> Moment(step, {"observation": 0.8}, "terminated").place
        ('e1', 0)
    """

    experience: Experience
    similarities: Mapping[str, float]
    ending: Ending
    arm: str | None = None
    plan: str | None = None
    reasoning: str | None = None
    retired: bool = False
    tries: int = 1
    mean_return: float | None = None
    feedback_totals: Mapping[str, float] | None = None

    @property
    def place(self) -> tuple[str, int]:
        """The episode's id and the index of the step."""
        return self.experience.episode_id, self.experience.step


@dataclass(frozen=True, slots=True)
class Recall:
    """Moments that fit a query, in no promised order.

    `highest` is the highest of the namespace's mean returns by distinct state and action; None if there are none.
    """

    moments: tuple[Moment, ...]
    highest: float | None
