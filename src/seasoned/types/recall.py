"""Recalled moments: stored steps with their similarity to a query, their notes and their feedback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seasoned.types.experience import Ending, Experience

__all__ = ["KEYS", "Moment", "Recall"]

KEYS = ("goal", "plan", "observation", "reasoning")
"""The keys of a query: an episode's task and plan, a step's state, and the reasoning before its action."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A stored step that was recalled.

    Args:
        experience: the step, with its return.
        similarities: by key of the query, in [0, 1]; 0 if the moment has no text under that key.
        ending, arm: of its episode.
        plan: of its episode, if one was noted.
        reasoning: at this step, if any was noted.
        retired: whether there is an unrevoked note of the kind "retired" on a step with its distinct state and action
            (for whole episodes, with its first state and plan).
        tries: the number of stored steps with its action at its distinct state.
        mean_return: the mean return of these steps, in reward units.
        feedback_totals: the sum of unrevoked feedback on its episode, by source, in reward units; None if not queried.

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
    """Moments that fit a query, in no particular order.

    `highest` is the highest of the namespace's mean returns by distinct state and action; None if there are none.
    """

    moments: tuple[Moment, ...]
    highest: float | None
