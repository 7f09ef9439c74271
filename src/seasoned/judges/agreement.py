"""Agreement of a judge's scores with true rewards of the environment."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from seasoned.checks import check_instance, check_number
from seasoned.errors import InputError
from seasoned.judges.judge_feedback import check_judgement
from seasoned.protocols import Judgement
from seasoned.types import Episode, Floats

__all__ = ["Correlation", "JudgeAgreement", "agreement"]

SIGNS = ("-", "0", "+")


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation over `n` steps, and an interval at `level`.

    `value` is None if one side is constant. `low` and `high` are None if there is no interval: with fewer than 4 steps,
    or with a perfect correlation, where the formula's interval has length 0 and is too narrow.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float

    def __str__(self) -> str:
        if self.value is None:
            return f"undefined (n={self.n})"
        interval = "" if self.low is None else f" [{self.low:+.2f}, {self.high:+.2f}]"
        return f"{self.value:+.2f}{interval} (n={self.n}, {self.level:.0%})"


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Agreement of a judge's scores with true rewards, over `n` judged steps.

    Args:
        confusion: `confusion[i][j]` counts the steps whose true reward has the sign i and whose score has the sign j,
            both in the order -, 0, +.
        pearson: linear correlation of scores and rewards.
        spearman: rank correlation, ties averaged.
        n: number of steps.
    """

    confusion: tuple[tuple[int, int, int], ...]
    pearson: Correlation
    spearman: Correlation
    n: int

    @property
    def accuracy(self) -> float:
        """The share of steps whose score has the sign of the reward."""
        return sum(self.confusion[i][i] for i in range(3)) / self.n

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, at most 1 (Cohen 1960); None if agreement by chance is certain.

        A judge with equal scores for all steps has 0, whatever the rewards are.
        """
        table = np.array(self.confusion, dtype=np.float64) / self.n
        chance = float(table.sum(axis=0) @ table.sum(axis=1))
        return None if math.isclose(chance, 1.0) else (self.accuracy - chance) / (1.0 - chance)

    def __str__(self) -> str:
        rows = [f"{'true / judged':>13}" + "".join(f"{sign:>7}" for sign in SIGNS)]
        for sign, counts in zip(SIGNS, self.confusion, strict=True):
            rows.append(f"{sign:>13}" + "".join(f"{count:>7}" for count in counts))
        kappa = "undefined" if self.kappa is None else f"{self.kappa:+.2f}"
        rows.append(f"accuracy {self.accuracy:.2f}, kappa {kappa}, n = {self.n} steps")
        rows.append(f"Pearson {self.pearson}, Spearman {self.spearman}")
        return "\n".join(rows)


def agreement(
    episodes: Iterable[Episode], judgements: Iterable[Judgement], *, neutral: float = 0.0, level: float = 0.95
) -> JudgeAgreement:
    """Compare a judge's scores with the environment's rewards, over the judged steps.

    Intervals are by Fisher's z: `tanh(atanh(r) +- q * se)`, with `se^2 = 1 / (n - 3)` for Pearson's and
    `(1 + r^2 / 2) / (n - 3)` for Spearman's r (Bonett and Wright 2000). They assume independent steps. Steps of one
    episode are correlated, so that a correct interval is somewhat wider.

    Args:
        episodes: with the environment's rewards.
        judgements: of the same episodes, in the same order.
        neutral: scores up to this size count as 0 in the confusion matrix, in [0, 1).
        level: confidence, in (0, 1).

    Raises:
        InputError: the numbers of episodes and judgements differ, a judged step does not exist, or there is none.

    Example:
        >>> from seasoned.types import Step
        >>> episode = Episode("t", [Step("a", "x", 0.0), Step("b", "y", 1.0)])
        >>> result = agreement([episode], [Judgement("judge", {0: -0.5, 1: 0.5}, {0: 1.0, 1: 1.0})])
        >>> result.confusion
        ((0, 0, 0), (1, 0, 0), (0, 0, 1))
    """
    check_number("neutral", neutral, 0.0, below=1.0)
    check_number("level", level, above=0.0, below=1.0, next_step="Pass 0.95, for example.")
    for name, values in (("episodes", episodes), ("judgements", judgements)):
        check_instance(name, values, Iterable, f"{name} must be a list", "Pass a list with one item for one episode.")
    played, judged = list(episodes), list(judgements)
    if len(played) != len(judged):
        raise InputError(
            f"{len(played)} episodes, {len(judged)} judgements",
            "each episode must have one judgement",
            "Leave out the others.",
        )
    rewards: list[float] = []
    scores: list[float] = []
    for episode, judgement in zip(played, judged, strict=True):
        check_instance("episode", episode, Episode, next_step="Build it with Episode(...).")
        for step, score in check_judgement(judgement).rewards.items():
            if not 0 <= step < len(episode.steps):
                raise InputError(
                    f"step {step} of {len(episode.steps)}",
                    "a judgement must be about steps of its episode",
                    "Pass the judgements in the order of the episodes.",
                )
            rewards.append(episode.steps[step].reward)
            scores.append(score)
    if not scores:
        raise InputError("no judged step", "agreement needs at least one judged step", "Judge an episode first.")
    true, judged_scores = np.array(rewards), np.array(scores)
    table = np.zeros((3, 3), dtype=np.int64)
    np.add.at(table, (_signs(true, 0.0), _signs(judged_scores, neutral)), 1)
    confusion = tuple((int(row[0]), int(row[1]), int(row[2])) for row in table)
    return JudgeAgreement(
        confusion,
        _correlation(true, judged_scores, level, ranked=False),
        _correlation(_ranks(true), _ranks(judged_scores), level, ranked=True),
        len(scores),
    )


def _signs(values: Floats, neutral: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return 0 for values below zero, 1 for about zero, 2 for above."""
    return np.where(np.abs(values) <= neutral, 1, np.where(values < 0, 0, 2)).astype(np.int64)


def _ranks(values: Floats) -> Floats:
    """Return ranks from 0; equal values share their mean rank."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts).astype(np.float64)
    shared: Floats = (ends - (counts + 1) / 2)[group]
    return shared


def _correlation(x: Floats, y: Floats, level: float, *, ranked: bool) -> Correlation:
    n = len(x)
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x)) * math.sqrt(float(y @ y))
    if n < 2 or np.ptp(x) == 0 or np.ptp(y) == 0 or size == 0:
        return Correlation(None, None, None, n, level)
    value = max(-1.0, min(1.0, float(x @ y) / size))
    if n < 4 or math.isclose(abs(value), 1.0, abs_tol=1e-12):
        return Correlation(value, None, None, n, level)
    error = math.sqrt((1 + value**2 / 2 if ranked else 1.0) / (n - 3))
    half = NormalDist().inv_cdf(0.5 + level / 2) * error
    centre = math.atanh(value)
    return Correlation(value, math.tanh(centre - half), math.tanh(centre + half), n, level)
