"""A few examples that are relevant, and not all the same one."""

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
    done: Callable[[ExampleCandidate], Hashable] | None = None,
) -> list[ExampleCandidate]:
    """Return at most k candidates by maximal marginal relevance (Carbonell and Goldstein 1998, SIGIR), best first.

    Each time the one with the largest `lambda * relevance - (1 - lambda) * max similarity to those chosen`, where
    similarity is that of states and actions (Jaccard, sharpen as in `relevance`).

    Args:
        candidates: the most relevant first; among equals the first is taken.
        k: how many.
        relevance: lambda, in [0, 1]; 1 looks at relevance alone.
        per_episode: at most so many of one episode.
        per_task: at most so many of one task; None: any number.
        done: what was done in the whole episode; two of which it is the same are clones, and one is enough. None:
            candidates are no clones of each other.
    """
    chosen: list[ExampleCandidate] = []
    left = list(candidates)
    alike = [0.0] * len(left)
    episodes: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    known: set[Hashable] = set()
    while left and len(chosen) < k:
        scores = [relevance * one.relevance - (1.0 - relevance) * near for one, near in zip(left, alike, strict=True)]
        at = max(range(len(left)), key=scores.__getitem__)
        best = left.pop(at)
        alike.pop(at)
        seen = best.moment.experience
        full = episodes[seen.episode_id] >= per_episode or (per_task is not None and tasks[seen.task] >= per_task)
        if full:
            continue
        if done is not None:
            if (what := done(best)) in known:
                continue
            known.add(what)
        chosen.append(best)
        episodes[seen.episode_id] += 1
        tasks[seen.task] += 1
        alike = [
            max(near, sharpen(jaccard(best.features, one.features))) for one, near in zip(left, alike, strict=True)
        ]
    return chosen
