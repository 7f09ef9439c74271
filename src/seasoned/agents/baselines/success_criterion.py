"""Which past episodes count as successes, where nothing but their scores says so."""

from __future__ import annotations

import bisect
import statistics

from seasoned.checks import check_number

__all__ = ["SuccessCriterion"]


class SuccessCriterion:
    """Judges each episode as it ends, against a threshold or against those before it at the same task.

    A score at or above the threshold is a success. While none of a task's episodes has reached it, or where there is
    no threshold, so is one that is at least the median of the scores so far and above 0 or above the lowest: an arm
    that learns from successes alone would otherwise learn nothing from a task that is never solved.

    Args:
        threshold: in the environment's points; None where no best is known.

    Example:
        >>> successes = SuccessCriterion(10.0)
        >>> [successes.take("t", score) for score in (0.0, 4.0, 2.0, 1.0, 10.0, 9.0)]
        [False, True, True, False, True, False]
    """

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = None if threshold is None else check_number("success", threshold)
        self._scores: dict[str, list[float]] = {}

    def reached(self, score: float) -> bool:
        """Return whether a score is at or above the threshold; no score is, where there is none."""
        return self.threshold is not None and score >= self.threshold

    def take(self, task: str, score: float) -> bool:
        """Count an episode in, and return whether it is a success."""
        scores = self._scores.setdefault(task, [])
        bisect.insort(scores, score)
        if self.reached(scores[-1]):
            return self.reached(score)
        return score >= statistics.median(scores) and (score > 0.0 or score > scores[0])
