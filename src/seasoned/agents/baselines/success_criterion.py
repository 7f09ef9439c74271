"""Criterion of a successful episode, from scores alone."""

from __future__ import annotations

import bisect
import statistics

from seasoned.checks import check_number

__all__ = ["SuccessCriterion"]


class SuccessCriterion:
    """Classifies each finished episode by a threshold, or by the earlier scores at the same task.

    A score at or above the threshold is a success. While no episode of a task has reached the threshold, or if there is
    none, a score is also a success if it is at least the median of the task's scores so far, and above 0 or above the
    lowest of them: an arm that learns from successes alone would otherwise learn nothing from a task that is never
    solved.

    Args:
        threshold: in the environment's points; None if the best score is not known.

    Example:
        >>> criterion = SuccessCriterion(10.0)
        >>> [criterion.add("t", score) for score in (0.0, 4.0, 2.0, 1.0, 10.0, 9.0)]
        [False, True, True, False, True, False]
    """

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = None if threshold is None else check_number("success", threshold)
        self._scores: dict[str, list[float]] = {}

    def is_reached(self, score: float) -> bool:
        """Return whether a score is at or above the threshold; False without a threshold."""
        return self.threshold is not None and score >= self.threshold

    def add(self, task: str, score: float) -> bool:
        """Add the score of an episode, and return whether the episode is a success."""
        scores = self._scores.setdefault(task, [])
        bisect.insort(scores, score)
        if self.is_reached(scores[-1]):
            return self.is_reached(score)
        return score >= statistics.median(scores) and (score > 0.0 or score > scores[0])
