"""Diversity of examples: maximal marginal relevance, with limits per episode and per task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from seasoned.core import jaccard
from seasoned.policies.examples.example_value import ExampleCandidate, sharpen

__all__ = ["select_diverse"]


def select_diverse(
    candidates: Sequence[ExampleCandidate],
    k: int,
    *,
    relevance: float,
    per_episode: int,
    per_task: int | None,
    course: Callable[[ExampleCandidate], Hashable] | None = None,
) -> list[ExampleCandidate]:
    """Return at most k candidates by maximal marginal relevance (Carbonell and Goldstein 1998, SIGIR), best first.

    Each selection is the candidate with the largest `lambda * relevance - (1 - lambda) * max similarity to the selected
    candidates`, where similarity compares states and actions (Jaccard, sharpened as in `relevance`).

    Args:
        candidates: the most relevant first; among equals the first is selected.
        k: the largest number of candidates.
        relevance: lambda, in [0, 1]; 1 ignores similarity to the selected candidates.
        per_episode: the largest number from one episode.
        per_task: the largest number from one task; None: any number.
        course: returns the course of a candidate's whole episode; of candidates with equal courses only the first is
            selected. None: no two candidates have the same course.
    """
    chosen: list[ExampleCandidate] = []
    left = list(candidates)
    alike = [0.0] * len(left)
    episodes: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    courses: set[Hashable] = set()
    while left and len(chosen) < k:
        scores = [relevance * one.relevance - (1.0 - relevance) * near for one, near in zip(left, alike, strict=True)]
        at = max(range(len(left)), key=scores.__getitem__)
        best = left.pop(at)
        alike.pop(at)
        seen = best.moment.experience
        full = episodes[seen.episode_id] >= per_episode or (per_task is not None and tasks[seen.task] >= per_task)
        if full:
            continue
        if course is not None:
            if (its_course := course(best)) in courses:
                continue
            courses.add(its_course)
        chosen.append(best)
        episodes[seen.episode_id] += 1
        tasks[seen.task] += 1
        alike = [
            max(near, sharpen(jaccard(best.features, one.features))) for one, near in zip(left, alike, strict=True)
        ]
    return chosen
