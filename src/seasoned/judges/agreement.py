"""How far a judge agrees with the environment, where the environment knows the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from seasoned.checks import check_number
from seasoned.errors import InputError, excerpt
from seasoned.judges.judge_feedback import check_judgement
from seasoned.protocols import Judgement
from seasoned.types import Episode, Floats

__all__ = ["Correlation", "JudgeAgreement", "agreement"]

SIGNS = ("-", "0", "+")


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation over `n` steps, and an interval at `level`.

    `value` is None where one side is constant; `low` and `high` are None where there is no interval: fewer than 4
    steps, or a perfect correlation, of which n steps prove less than the formula says.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float

    def __str__(self) -> str:
        if self.value is None:
            return f"undefined (n={self.n})"
        between = "" if self.low is None else f" [{self.low:+.2f}, {self.high:+.2f}]"
        return f"{self.value:+.2f}{between} (n={self.n}, {self.level:.0%})"


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """A judge's scores against true rewards, over `n` judged steps.

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
        """JudgeAgreement beyond chance, 1 at most (Cohen 1960); None where chance alone would always agree.

        A judge that says the same of every step has 0, however common that is.
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
    """Compare what a judge said with the rewards that the environment gave; only judged steps count.

    Intervals are by Fisher's z: `tanh(atanh(r) +- q * se)`, with `se^2 = 1 / (n - 3)` for Pearson's and
    `(1 + r^2 / 2) / (n - 3)` for Spearman's r (Bonett and Wright 2000). They take steps as independent; steps of one
    episode are not quite, so the truth is somewhat wider.

    Args:
        episodes: with the environment's rewards.
        judgements: of the same episodes, in the same order.
        neutral: scores of at most this size count as 0 in the confusion matrix, in [0, 1).
        level: confidence, in (0, 1).

    Raises:
        InputError: as many judgements as episodes are needed, on steps that they have, one at least.

    Example:
        >>> from seasoned.types import Step
        >>> episode = Episode("t", [Step("a", "x", 0.0), Step("b", "y", 1.0)])
        >>> found = agreement([episode], [Judgement("judge", {0: -0.5, 1: 0.5}, {0: 1.0, 1: 1.0})])
        >>> found.confusion
        ((0, 0, 0), (1, 0, 0), (0, 0, 1))
    """
    if not 0.0 <= check_number("neutral", neutral) < 1.0:
        raise InputError(f"neutral = {neutral}", "it is in [0, 1)", "0 takes every sign as it is.")
    if not 0.0 < check_number("level", level) < 1.0:
        raise InputError(f"level = {level}", "a confidence level is in (0, 1)", "0.95 is usual.")
    if not isinstance(episodes, Iterable) or not isinstance(judgements, Iterable):
        raise InputError(
            f"episodes = {excerpt(episodes)}, judgements = {excerpt(judgements)}",
            "they are a list of Episodes and a list of Judgements",
            "Pass [episode] and [judgement] for one.",
        )
    played, judged = list(episodes), list(judgements)
    if len(played) != len(judged):
        raise InputError(
            f"{len(played)} episodes, {len(judged)} judgements", "each episode has a judgement", "Leave others out."
        )
    rewards: list[float] = []
    scores: list[float] = []
    for episode, judgement in zip(played, judged, strict=True):
        if not isinstance(episode, Episode):
            raise InputError(f"episode = {excerpt(episode)}", "it is an Episode", "Build it with Episode(...).")
        for step, score in check_judgement(judgement).rewards.items():
            if not 0 <= step < len(episode.steps):
                raise InputError(
                    f"step {step} of {len(episode.steps)}", "a judgement is of its episode's steps", "Match them."
                )
            rewards.append(episode.steps[step].reward)
            scores.append(score)
    if not scores:
        raise InputError("no judged step", "agreement is over one step at least", "Judge an episode first.")
    truth, said = np.array(rewards), np.array(scores)
    table = np.zeros((3, 3), dtype=np.int64)
    np.add.at(table, (_signs(truth, 0.0), _signs(said, neutral)), 1)
    confusion = tuple((int(row[0]), int(row[1]), int(row[2])) for row in table)
    return JudgeAgreement(
        confusion,
        _correlation(truth, said, level, ranked=False),
        _correlation(_ranks(truth), _ranks(said), level, ranked=True),
        len(scores),
    )


def _signs(values: Floats, neutral: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """0 for below, 1 for about zero, 2 for above."""
    return np.where(np.abs(values) <= neutral, 1, np.where(values < 0, 0, 2)).astype(np.int64)


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, equal values sharing the mean of theirs."""
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
