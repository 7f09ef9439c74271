"""The measures of a learning run, and their means over runs with n and interval."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from seasoned.agents import EpisodeResult
from seasoned.core import Interval, mean_interval
from seasoned.errors import InputError
from seasoned.lab.suites.suite import Task
from seasoned.protocols import Usage

__all__ = [
    "MEASURES",
    "Limits",
    "Measure",
    "RunMean",
    "curve_block",
    "last_quarter",
    "mean_limits",
    "measure",
    "normalized_scores",
    "pass_powers",
    "passed",
    "run_mean",
    "score_range",
]

Limits = tuple[float | None, float | None]
"""The lowest and the highest possible value; None: unknown, or no limit."""

_ROUNDING = 1e-9
_MOST_POINTS = 25

# ------------------------------------------------------------------------------------------ means over runs


@dataclass(frozen=True, slots=True)
class RunMean:
    """A mean over independent runs.

    Args:
        values: one number per run.
        interval: of their mean, at 95 %; None for a single run.
    """

    values: tuple[float, ...]
    interval: Interval | None

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over runs."""
        return math.fsum(self.values) / len(self.values)

    def to_json(self) -> dict[str, Any]:
        """Return the mean with its n, interval and values."""
        interval = self.interval
        return {
            "mean": self.mean,
            "n": self.n,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "level": None if interval is None else interval.level,
            "method": None if interval is None else interval.method,
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
    """Return the mean of independent runs with its 95 % interval; None without a run.

    The interval is `seasoned.core.mean_interval`'s: Student's t below 10 runs, a bootstrap from 10 on.

    Args:
        values: one number per run.
        resamples: of the bootstrap.
        share: short for limits of 0 and 1.
        at_least, at_most: limits of the mean; the interval is cut there, which does not change how often it covers the
            true mean. None: no limit. A limit that a value exceeds is ignored.

    Example:
        >>> run_mean([]) is None, run_mean([2.0]).interval is None, run_mean([1.0, 2.0, 3.0]).n
        (True, True, 3)
    """
    if not values:
        return None
    interval = mean_interval(values, resamples=resamples) if len(values) >= 2 else None
    if share:
        at_least, at_most = 0.0, 1.0
    if at_least is not None and interval is not None and min(values) >= at_least:
        interval = dataclasses.replace(interval, low=max(at_least, interval.low))
    if at_most is not None and interval is not None and max(values) <= at_most:
        interval = dataclasses.replace(interval, high=min(at_most, interval.high))
    return RunMean(tuple(float(value) for value in values), interval)


def score_range(episodes: Iterable[EpisodeResult], task: Task | None) -> Limits:
    """Return the lowest and the highest possible mean score at a task, from its suite and the episodes played there.

    The upper limit is the best possible score: the suite's `max_score`, else that of every episode, if they agree. The
    lower limit is 0 if no episode scored below 0: environments do not state their lowest score.
    """
    played = list(episodes)
    lowest = min((episode.score for episode in played), default=0.0)
    best = {episode.max_score for episode in played} if task is None or task.max_score is None else {task.max_score}
    return (0.0 if lowest >= 0.0 else None), (best.pop() if len(best) == 1 else None)


def last_quarter(episodes: Sequence[EpisodeResult]) -> Sequence[EpisodeResult]:
    """Return the last quarter of a run's episodes, rounded up."""
    return episodes[len(episodes) - math.ceil(len(episodes) / 4) :]


def normalized_scores(episodes: Sequence[EpisodeResult], task: Task) -> tuple[float, ...] | None:
    """Return each score divided by the best possible one; None if that is unknown, or not above 0.

    The suite's `max_score` overrides the environment's.
    """
    best = [episode.max_score if task.max_score is None else task.max_score for episode in episodes]
    if any(each is None or each <= 0.0 for each in best):
        return None
    return tuple(episode.score / each for episode, each in zip(episodes, best, strict=True) if each is not None)


def passed(episode: EpisodeResult, task: Task) -> bool | None:
    """Return whether an episode's score is at least the suite's `success`, else the best possible score.

    None if neither is known.
    """
    best = episode.max_score if task.max_score is None else task.max_score
    needed = best if task.success is None else task.success
    return None if needed is None else episode.score >= needed - _ROUNDING


def pass_powers(passes: Sequence[bool]) -> dict[int, float]:
    """Return pass^k for k = 1, 2, 4, ...: the probability that k episodes drawn from these all pass.

    With c passes among n episodes, `C(c, k) / C(n, k)`, the unbiased estimate of tau-bench (arXiv 2406.12045);
    pass^1 is pass@1.

    Args:
        passes: one per episode, at least one.

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


# ------------------------------------------------------------------------------------------ measures of one run


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of one learning run, and its column in the report.

    Args:
        compute: the function that returns it from the episodes of a run; None: unknown.
        limits: the lowest and the highest possible value; None: those of a score, see `score_range`.
        column: the heading of its column in the report; None: it has no column.
        table: the table of that column.
        by_length: a sum over the run, so runs of fewer episodes have less of it.
    """

    compute: Callable[[Sequence[EpisodeResult], Task], float | None]
    limits: Limits | None = (0.0, None)
    column: str | None = None
    table: Literal["scores", "costs"] = "costs"
    by_length: bool = False


def _area(episodes: Sequence[EpisodeResult], task: Task) -> float | None:
    normalized = normalized_scores(episodes, task)
    return None if normalized is None else _mean(normalized)


def _usage(episodes: Sequence[EpisodeResult]) -> Usage:
    return sum((episode.usage for episode in episodes), Usage())


def _usd(episodes: Sequence[EpisodeResult]) -> float | None:
    usage = _usage(episodes)
    if usage.cost_usd is None or usage.cached_usd is None:
        return None
    return (usage.cost_usd or 0.0) + (usage.cached_usd or 0.0)


def _per_step(total: float, episodes: Sequence[EpisodeResult]) -> float | None:
    steps = sum(episode.steps for episode in episodes)
    return total / steps if steps else None


MEASURES: dict[str, Measure] = {
    "average": Measure(
        lambda run, task: _mean([episode.score for episode in run]), limits=None, column="average score", table="scores"
    ),
    "final": Measure(
        lambda run, task: _mean([episode.score for episode in last_quarter(run)]),
        limits=None,
        column="final score",
        table="scores",
    ),
    "area": Measure(_area, (0.0, 1.0), "area, share of maximum", "scores"),
    "tokens": Measure(lambda run, task: float(_usage(run).tokens), column="tokens a run", by_length=True),
    "usd": Measure(lambda run, task: _usd(run), column="dollars a run", by_length=True),
    "decision_ms": Measure(
        lambda run, task: _per_step(1e3 * math.fsum(episode.decision_s for episode in run), run),
        column="memory, ms a step",
    ),
    "steps": Measure(lambda run, task: sum(episode.steps for episode in run) / len(run), column="steps an episode"),
    "flipped": Measure(
        lambda run, task: _per_step(sum(episode.flips for episode in run), run), (0.0, 1.0), "steps flipped"
    ),
    "memory_steps": Measure(lambda run, task: _per_step(sum(episode.memory_steps for episode in run), run), (0.0, 1.0)),
}
"""Name to measure. An entry with a `column` is a column of the report's tables; every entry is in `report.json`.

- `average`, `final`: mean score in points, over all episodes and over the last quarter.
- `area`: area under the learning curve as a share of the best possible one, `mean(score[e] / max_score[e])`.
- `tokens`, `usd`: of the run; an answer from the cache counts with its original cost.
- `decision_ms`: milliseconds a step spent on memory alone (encode, retrieve, estimate, modulate).
- `steps`: steps an episode.
- `flipped`, `memory_steps`: share of steps whose likeliest action memory changed, and of steps that it shifted.
"""


def measure(episodes: Sequence[EpisodeResult], task: Task) -> Mapping[str, float | None]:
    """Return the measures of one learning run, those of `MEASURES` and `pass^1`, `pass^2`, ...; None for unknown ones.

    The powers of pass are over the last quarter; see `pass_powers`.

    Raises:
        InputError: there is no episode.
    """
    if not episodes:
        raise InputError("a run of 0 episodes", "a run is measured by its episodes", "Play one.")
    measured = {name: each.compute(episodes, task) for name, each in MEASURES.items()}
    passes = [passed(episode, task) for episode in last_quarter(episodes)]
    known = [each for each in passes if each is not None]
    powers: Mapping[int, float | None] = (
        pass_powers(known) if len(known) == len(passes) else {2**i: None for i in range(len(passes).bit_length())}
    )
    return measured | {f"pass^{k}": share for k, share in powers.items()}


def mean_limits(name: str, scores: Limits) -> Limits:
    """Return the lowest and the highest possible mean of a measure.

    Args:
        name: a key of the result of `measure`.
        scores: the limits of a mean score.

    Example:
        >>> mean_limits("pass^2", (0.0, 5.0)), mean_limits("average", (0.0, 5.0)), mean_limits("tokens", (0.0, 5.0))
        ((0.0, 1.0), (0.0, 5.0), (0.0, None))
    """
    known = MEASURES.get(name)
    if known is None:
        return 0.0, 1.0  # a power of pass
    return scores if known.limits is None else known.limits


def curve_block(episodes: int) -> int:
    """Return the number of episodes per point of a learning curve: 1 up to 25 episodes, so that it has at most 25."""
    return math.ceil(episodes / _MOST_POINTS)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
