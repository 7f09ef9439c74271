"""What a learning run is measured by, and means that never travel without their n and their interval."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seasoned.agents import EpisodeResult
from seasoned.core import Interval, mean_interval
from seasoned.errors import InputError
from seasoned.lab.suites.suite import Task
from seasoned.protocols import Usage

__all__ = [
    "RunMean",
    "curve_block",
    "last_quarter",
    "measure",
    "normalized_scores",
    "pass_powers",
    "passed",
    "run_mean",
    "score_range",
]

AT_LEAST_0 = {"area", "tokens", "usd", "decision_ms", "steps"}
"""Measures that cannot be negative; `area` where no score is."""

SHARES = ("pass^", "flipped", "memory_steps")
"""How the names of measures begin that are shares."""

_ROUNDING = 1e-9
_MOST_POINTS = 25


@dataclass(frozen=True, slots=True)
class RunMean:
    """A mean over independent runs.

    Args:
        values: one number a run.
        interval: of their mean, at 95 %; None for one run, which has none.
    """

    values: tuple[float, ...]
    interval: Interval | None

    @property
    def n(self) -> int:
        """How many runs."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over runs."""
        return math.fsum(self.values) / len(self.values)

    def to_json(self) -> dict[str, Any]:
        """Return the mean with all that it needs to be believed."""
        found = self.interval
        return {
            "mean": self.mean,
            "n": self.n,
            "low": None if found is None else found.low,
            "high": None if found is None else found.high,
            "level": None if found is None else found.level,
            "method": None if found is None else found.method,
            "values": list(self.values),
        }


def run_mean(
    values: Sequence[float],
    *,
    resamples: int = 20_000,
    share: bool = False,
    at_least: float | None = None,
    at_most: float | None = None,
) -> RunMean | None:
    """Return the mean of independent runs with its 95 % interval; None where there is no run.

    The interval is `seasoned.core.mean_interval`'s: Student's t below 10 runs, a bootstrap from 10 on.

    Args:
        values: one number a run.
        resamples: of the bootstrap.
        share: the mean is in [0, 1], and so is what its interval keeps.
        at_least, at_most: the mean cannot be beyond, and the interval ends there; None, or a value beyond: no such end.
            An interval holds the true mean as often with such an end as without, since that is not beyond it either.

    Example:
        >>> run_mean([]) is None, run_mean([2.0]).interval is None, run_mean([1.0, 2.0, 3.0]).n
        (True, True, 3)
    """
    if not values:
        return None
    found = mean_interval(values, resamples=resamples) if len(values) >= 2 else None
    if share:
        at_least, at_most = 0.0, 1.0
    if at_least is not None and found is not None and min(values) >= at_least:  # else it is not what it says
        found = dataclasses.replace(found, low=max(at_least, found.low))
    if at_most is not None and found is not None and max(values) <= at_most:
        found = dataclasses.replace(found, high=min(at_most, found.high))
    return RunMean(tuple(float(value) for value in values), found)


def score_range(episodes: Iterable[EpisodeResult], task: Task | None) -> tuple[float | None, float | None]:
    """Return between which ends a mean score lies, by all that was played there; None for an end that is not known.

    The upper end is the best possible score: the suite's `max_score`, else what every episode says. The lower end is
    0 where no episode scored below: environments do not say how badly they can go.
    """
    played = list(episodes)
    lowest = min((episode.score for episode in played), default=0.0)
    best = {episode.max_score for episode in played} if task is None or task.max_score is None else {task.max_score}
    return (0.0 if lowest >= 0.0 else None), (best.pop() if len(best) == 1 else None)


def last_quarter(episodes: Sequence[EpisodeResult]) -> Sequence[EpisodeResult]:
    """Return the last quarter of a run's episodes, rounded up: what it came to in the end."""
    return episodes[len(episodes) - math.ceil(len(episodes) / 4) :]


def normalized_scores(episodes: Sequence[EpisodeResult], task: Task) -> tuple[float, ...] | None:
    """Return each score divided by the best possible one; None where that is unknown, or not above 0.

    The suite's `max_score` counts before the environment's.
    """
    best = [episode.max_score if task.max_score is None else task.max_score for episode in episodes]
    if any(each is None or each <= 0.0 for each in best):
        return None
    return tuple(episode.score / each for episode, each in zip(episodes, best, strict=True) if each is not None)


def passed(episode: EpisodeResult, task: Task) -> bool | None:
    """Return whether an episode's score is at least the suite's `success`, else the best possible score.

    None where neither is known.
    """
    best = episode.max_score if task.max_score is None else task.max_score
    needed = best if task.success is None else task.success
    return None if needed is None else episode.score >= needed - _ROUNDING


def pass_powers(passes: Sequence[bool]) -> dict[int, float]:
    """Return pass^k for k = 1, 2, 4, ...: the chance that k episodes drawn from these all pass.

    With c passes among n episodes, `C(c, k) / C(n, k)`, the unbiased estimate of tau-bench (arXiv 2406.12045);
    pass^1 is pass@1.

    Args:
        passes: of the episodes that count, at least one.

    Raises:
        InputError: there is no episode.

    Example:
        >>> pass_powers([True, True, True, False])
        {1: 0.75, 2: 0.5, 4: 0.0}
    """
    n, c = len(passes), sum(passes)
    if not n:
        raise InputError("0 episodes", "a share of passes needs an episode", "Play one.")
    return {k: math.comb(c, k) / math.comb(n, k) for k in (2**i for i in range(n.bit_length()))}


def measure(episodes: Sequence[EpisodeResult], task: Task) -> Mapping[str, float | None]:
    """Return what one learning run is measured by; None for what is not known of it.

    - `average`, `final`: mean score in points, over all episodes and over the last quarter.
    - `area`: area under the learning curve as a share of what the best score in every episode would give,
      `mean(score[e] / max_score[e])`.
    - `pass^1`, `pass^2`, ...: over the last quarter; see `pass_powers`.
    - `tokens`, `usd`: of the run; an answer from the cache counts as what it took when it was asked.
    - `decision_ms`: milliseconds a step spent on memory alone (encode, retrieve, estimate, modulate).
    - `steps`: an episode.
    - `flipped`, `memory_steps`: share of steps whose likeliest action memory changed, and that it shifted at all.

    Raises:
        InputError: there is no episode.
    """
    if not episodes:
        raise InputError("a run of 0 episodes", "a run is measured by its episodes", "Play one.")
    end = last_quarter(episodes)
    normalized = normalized_scores(episodes, task)
    usage = sum((episode.usage for episode in episodes), Usage())
    known_usd = usage.cost_usd is not None and usage.cached_usd is not None
    steps = sum(episode.steps for episode in episodes)
    found: dict[str, float | None] = {
        "average": _mean([episode.score for episode in episodes]),
        "final": _mean([episode.score for episode in end]),
        "area": None if normalized is None else _mean(normalized),
        "tokens": float(usage.tokens),
        "usd": (usage.cost_usd or 0.0) + (usage.cached_usd or 0.0) if known_usd else None,
        "decision_ms": 1e3 * math.fsum(episode.decision_s for episode in episodes) / steps if steps else None,
        "steps": steps / len(episodes),
        "flipped": sum(episode.flips for episode in episodes) / steps if steps else None,
        "memory_steps": sum(episode.memory_steps for episode in episodes) / steps if steps else None,
    }
    passes = [passed(episode, task) for episode in end]
    known = [each for each in passes if each is not None]
    powers: Mapping[int, float | None] = (
        pass_powers(known) if len(known) == len(passes) else {2**i: None for i in range(len(end).bit_length())}
    )
    return found | {f"pass^{k}": share for k, share in powers.items()}


def curve_block(episodes: int) -> int:
    """Return how many episodes one point of a learning curve is the mean of: 1 up to 25 episodes."""
    return math.ceil(episodes / _MOST_POINTS)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
