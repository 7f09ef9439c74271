"""Comparison of arms over the episodes that both played: paired differences, adjusted verdicts, a table of wins."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seasoned.core.arrays import as_floats
from seasoned.core.statistics import holm
from seasoned.errors import InputError
from seasoned.lab.analysis.measures import RunMean, normalized_scores, run_mean, score_range
from seasoned.lab.results.run_results import ExperimentResults, RunResult
from seasoned.lab.suites.suite import Task

__all__ = [
    "Claim",
    "PairwiseComparison",
    "TaskClaim",
    "compare_all_arms",
    "compare_with_reference",
    "gain_verdict",
    "overall_gain",
    "paired_scores",
    "runs_needed",
    "sign_flip_p_value",
]

_LEVEL = 0.05
_EXACT_UP_TO = 14
_DRAWS = 9999
_TIE = 1e-9

_Where = tuple[str, str | None]
"""An arm, and a task; None: over all tasks."""


@dataclass(frozen=True, slots=True)
class TaskClaim:
    """An arm compared with the reference arm at one task.

    Args:
        task: its name.
        gain: paired by seed, in points: the arm's average score less the reference's on the same episodes; None if
            no run can be paired.
        p: of the hypothesis that the arms are exchangeable, by flipping signs.
        adjusted: for every arm at every task, by Holm.
        verdict: `better`, `worse`, `no difference shown`, `too few runs`, `no pair`.
    """

    task: str
    gain: RunMean | None
    p: float | None
    adjusted: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Claim:
    """An arm compared with the reference arm over all tasks that both play.

    Args:
        arm: its name.
        gain: paired by seed. Of several tasks it is the mean of the gains, each divided by the task's best score. None
            if no seed has a pair at every task, or if there are several tasks and the best score of one is unknown.
        unit: of the gain: `of the maximum`, `points`.
        p: as for a task.
        adjusted: for the number of arms, by Holm. An arm that plays one task gets the greater of the two adjustments
            in both places, so that the same pairs have one verdict.
        verdict: as for a task.
        tasks: the comparison at each task.
        why: the reason if there is no gain.
        needed: the smallest number of paired runs for a verdict; see `runs_needed`.
    """

    arm: str
    gain: RunMean | None
    unit: str
    p: float | None
    adjusted: float | None
    verdict: str
    tasks: tuple[TaskClaim, ...]
    why: str | None
    needed: int = 0


@dataclass(frozen=True, slots=True)
class PairwiseComparison:
    """One arm compared with another.

    Args:
        arm, other: their names.
        won, tied, lost: paired runs, by average score.
        tasks_won, tasks_tied, tasks_lost: tasks, by the mean over those runs.
        difference: the arm less the other, paired by seed, in `unit`; its interval is not adjusted. None as for a
            claim.
    """

    arm: str
    other: str
    won: int
    tied: int
    lost: int
    tasks_won: int
    tasks_tied: int
    tasks_lost: int
    difference: RunMean | None
    unit: str


def sign_flip_p_value(differences: Sequence[float], *, seed: int = 0) -> float:
    """Return the two-sided p-value of the hypothesis that two arms are exchangeable, from paired differences.

    `p = #{|sum s[i] d[i]| >= |sum d[i]|} / 2^n` over every assignment of signs s (Fisher 1935, "The Design of
    Experiments"), up to 14 pairs; from 15 on over 9,999 random ones and the observed one. The smallest
    value is `2^(1-n)`, so five pairs cannot reach 0.05.

    Args:
        differences: one per pair, n >= 1.
        seed: of the draws.

    Raises:
        InputError: there is no difference, or one is not finite.

    Example:
        >>> sign_flip_p_value([0.3, 0.1, 0.2, 0.5, 0.4, 0.2])
        0.03125
    """
    d = as_floats("differences", differences)
    if d.ndim != 1 or not len(d) or not np.isfinite(d).all():
        raise InputError(f"differences of shape {d.shape}", "one finite number or more", "Pair runs by seed.")
    if largest := float(np.abs(d).max()):
        d = d / largest
    seen = abs(float(d.sum())) - _TIE * len(d)
    if len(d) <= _EXACT_UP_TO:
        return float((np.abs(_every_sign(len(d)) @ d) >= seen).mean())
    signs = np.random.default_rng(seed).choice((1.0, -1.0), size=(_DRAWS, len(d)))
    return float((1 + (np.abs(signs @ d) >= seen).sum()) / (1 + _DRAWS))


@functools.lru_cache(_EXACT_UP_TO)
def _every_sign(n: int) -> npt.NDArray[np.float64]:
    return np.array(list(itertools.product((1.0, -1.0), repeat=n)))


def gain_verdict(gain: RunMean | None, adjusted: float | None, m: int) -> str:
    """Return the verdict on a paired difference at 5 %.

    Args:
        gain: the difference; None without a pair.
        adjusted: its adjusted p-value.
        m: the size of the family it is adjusted for: with fewer than `runs_needed(m)` pairs no verdict is possible.
    """
    if gain is None or adjusted is None:
        return "no pair"
    if adjusted <= _LEVEL:
        return "better" if gain.mean > 0.0 else "worse"
    return "too few runs" if gain.n < runs_needed(m) else "no difference shown"


def runs_needed(m: int) -> int:
    """Return the fewest pairs whose sign-flip p-value can be 5 % after Holm's adjustment for `m`: `m * 2^(1-n)`.

    Example:
        >>> runs_needed(1), runs_needed(2), runs_needed(5)
        (6, 7, 8)
    """
    return 1 + math.ceil(math.log2(max(m, 1) / _LEVEL))


def paired_scores(ours: RunResult, theirs: RunResult) -> tuple[float, float]:
    """Return the average scores of two runs of one seed over the episodes that both played: equal instances."""
    n = min(len(ours.episodes), len(theirs.episodes))
    one, other = ([episode.score for episode in run.episodes[:n]] for run in (ours, theirs))
    return math.fsum(one) / n, math.fsum(other) / n


def compare_with_reference(results: ExperimentResults) -> tuple[Claim, ...]:
    """Compare every arm with the suite's reference arm.

    *Gain* is stateful minus stateless on the same instances, as Continual Learning Bench (arXiv 2606.05661) defines
    it, if the reference arm is the model alone. Verdicts hold at 5 % after Holm's adjustment in two families: the
    overall comparisons of all arms, and those of all arms at all tasks. If no arm differs from the reference, at most
    one experiment in twenty has a false verdict in either family, for any number of arms.
    """
    suite, ends = results.suite, _ends(results)
    raw = [_claim(results, arm.name, ends) for arm in suite.arms if arm.name != suite.reference]
    overall = _adjusted({(each.arm, None): each.p for each in raw})
    at_tasks = _adjusted({(each.arm, task.task): task.p for each in raw for task in each.tasks})
    return tuple(_judged(each, overall, at_tasks) for each in raw)


def compare_all_arms(results: ExperimentResults) -> tuple[PairwiseComparison, ...]:
    """Compare every arm with every other one, in both directions."""
    names, ends = [arm.name for arm in results.suite.arms], _ends(results)
    return tuple(_win(results, arm, other, ends) for arm, other in itertools.permutations(names, 2))


def _claim(results: ExperimentResults, arm: str, ends: _Ends) -> Claim:
    reference = results.suite.reference
    tasks = _shared_tasks(results, arm, reference)
    found = [
        (task.name, _gain(ends, [task], list(_differences(results, task, arm, reference).values()))) for task in tasks
    ]
    by_task = tuple(TaskClaim(name, gain, _p(gain), None, "no pair") for name, gain in found)
    gain, unit, why = _overall(results, tasks, arm, reference, ends)
    return Claim(arm, gain, unit, _p(gain), None, "no pair", by_task, why)


def _p(gain: RunMean | None) -> float | None:
    return None if gain is None else sign_flip_p_value(gain.values)


def _adjusted(p: Mapping[_Where, float | None]) -> dict[_Where, float]:
    """Return the adjusted p-values of one family, without comparisons that have no pair."""
    known = {where: each for where, each in p.items() if each is not None}
    return dict(zip(known, holm(list(known.values())).tolist(), strict=True))


def _judged(claim: Claim, overall: Mapping[_Where, float], at_tasks: Mapping[_Where, float]) -> Claim:
    total, m = overall.get((claim.arm, None)), len(overall)
    by_task, m_tasks = [at_tasks.get((claim.arm, each.task)) for each in claim.tasks], len(at_tasks)
    if len(by_task) == 1 and total is not None and by_task[0] is not None:
        # The same pairs are in both families, so both get the stricter adjustment.
        total = by_task[0] = max(total, by_task[0])
        m = m_tasks = max(m, m_tasks)
    tasks = (
        dataclasses.replace(each, adjusted=adjusted, verdict=gain_verdict(each.gain, adjusted, m_tasks))
        for each, adjusted in zip(claim.tasks, by_task, strict=True)
    )
    judged = gain_verdict(claim.gain, total, m)
    return dataclasses.replace(claim, adjusted=total, verdict=judged, tasks=tuple(tasks), needed=runs_needed(m))


def overall_gain(
    results: ExperimentResults, arm: str, task: str | None = None
) -> tuple[RunMean | None, str, str | None]:
    """Return an arm's gain over the reference arm, its unit, and the reason if there is no gain.

    Args:
        results: of an experiment.
        arm: its name.
        task: this task only; None: all tasks that both play, as in a claim.
    """
    reference = results.suite.reference
    tasks = [each for each in _shared_tasks(results, arm, reference) if task in {None, each.name}]
    return _overall(results, tasks, arm, reference, _ends(results))


def _shared_tasks(results: ExperimentResults, arm: str, other: str) -> list[Task]:
    played = {(run.key.task, run.key.arm) for run in results.runs}
    return [task for task in results.suite.tasks if {(task.name, arm), (task.name, other)} <= played]


def _pairs(results: ExperimentResults, task: Task, arm: str, other: str) -> dict[int, tuple[RunResult, RunResult]]:
    theirs = {run.key.seed: run for run in results.of(task.name, other)}
    ours = {run.key.seed: run for run in results.of(task.name, arm)}
    return {seed: (ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())}


def _differences(results: ExperimentResults, task: Task, arm: str, other: str) -> dict[int, float]:
    """Return by seed the arm's average score less the other's, in points."""
    scores = {seed: paired_scores(*pair) for seed, pair in _pairs(results, task, arm, other).items()}
    return {seed: ours - theirs for seed, (ours, theirs) in scores.items()}


def _normalized(results: ExperimentResults, task: Task, arm: str, other: str) -> dict[int, float] | None:
    """Return the same, with each episode's score divided by its best possible one; None if one is unknown."""
    differences = {}
    for seed, (ours, theirs) in _pairs(results, task, arm, other).items():
        n = min(len(ours.episodes), len(theirs.episodes))
        one, two = (normalized_scores(run.episodes[:n], task) for run in (ours, theirs))
        if one is None or two is None:
            return None
        differences[seed] = math.fsum(one) / n - math.fsum(two) / n
    return differences


def _overall(
    results: ExperimentResults, tasks: Sequence[Task], arm: str, other: str, ends: _Ends
) -> tuple[RunMean | None, str, str | None]:
    """Return the gain over tasks, its unit and the reason if there is none; a seed is one independent unit."""
    if len(tasks) == 1:
        values = list(_differences(results, tasks[0], arm, other).values())
        return _gain(ends, tasks, values), "points", None if values else "no two finished runs have the same seed"
    by_task = [_normalized(results, task, arm, other) for task in tasks]
    known = [each for each in by_task if each is not None]
    if len(known) < len(by_task):
        unknown = next(task.name for task, each in zip(tasks, by_task, strict=True) if each is None)
        return None, "of the maximum", f"the best possible score of {unknown} is unknown, so tasks do not add up"
    seeds = sorted(set.intersection(*(set(each) for each in known))) if known else []
    values = [math.fsum(each[seed] for each in known) / len(known) for seed in seeds]
    why = None if values else "no seed has finished runs of both at every task"
    return _gain(ends, tasks, values, of_best=True), "of the maximum", why


_Ends = Mapping[str, float | None]
"""Task to its best score, if all scores lie between 0 and the best one; else None."""


def _ends(results: ExperimentResults) -> _Ends:
    ends: dict[str, float | None] = {}
    for task in results.suite.tasks:
        played = [episode for run in results.runs if run.key.task == task.name for episode in run.episodes]
        least, most = score_range(played, task)
        known = least is not None and most is not None and most > 0.0
        ends[task.name] = most if known and all(episode.score <= (most or 0.0) for episode in played) else None
    return ends


def _gain(ends: _Ends, tasks: Sequence[Task], values: Sequence[float], *, of_best: bool = False) -> RunMean | None:
    """Return the mean of differences, which lies between the best score and its negative."""
    best = [ends[task.name] for task in tasks]
    known = [each for each in best if each is not None]
    end = None if not known or len(known) < len(best) else 1.0 if of_best else max(known)
    return run_mean(values, at_least=None if end is None else -end, at_most=end)


def _win(results: ExperimentResults, arm: str, other: str, ends: _Ends) -> PairwiseComparison:
    tasks = _shared_tasks(results, arm, other)
    runs = [list(_differences(results, task, arm, other).values()) for task in tasks]
    every = [difference for each in runs for difference in each]
    means = [math.fsum(each) / len(each) for each in runs if each]
    difference, unit, _ = _overall(results, tasks, arm, other, ends)
    return PairwiseComparison(arm, other, *_counted(every), *_counted(means), difference, unit)


def _counted(differences: Sequence[float]) -> tuple[int, int, int]:
    won, lost = sum(d > _TIE for d in differences), sum(d < -_TIE for d in differences)
    return won, len(differences) - won - lost, lost
