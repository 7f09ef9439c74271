"""Worst cases for failed runs, which are not missing at random: the gain if they had the lowest scores."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from seasoned.lab.analysis.arm_comparison import overall_gain
from seasoned.lab.analysis.measures import RunMean
from seasoned.lab.results.run_results import ExperimentResults, RunResult

__all__ = ["WorstCase", "worst_cases"]


@dataclass(frozen=True, slots=True)
class WorstCase:
    """An arm's gain over the reference arm if its failed runs had the worst score in every episode.

    The worst score is 0, or the lowest score of any arm at the task, whichever is less.

    Args:
        arm: its name.
        task: the task; None: over all of its tasks, as in its claim.
        runs: the number of failed runs assumed this way: those whose seed the reference has finished.
        gain: paired by seed; None: no run of the arm played an episode.
        unit: of the gain.
    """

    arm: str
    task: str | None
    runs: int
    gain: RunMean | None
    unit: str


def worst_cases(results: ExperimentResults) -> tuple[WorstCase, ...]:
    """Return the worst case of every arm with a failed run: over its tasks, or per task without a common scale."""
    cases: list[WorstCase] = []
    for arm in results.suite.arms:
        if arm.name != results.suite.reference:
            cases += _of_arm(results, arm.name)
    return tuple(cases)


def _of_arm(results: ExperimentResults, arm: str) -> list[WorstCase]:
    reference = results.suite.reference
    assumed = {}
    for run in results.runs:
        if run.key.arm == arm and run.error is not None and not run.done:
            reference_run = next((c for c in results.of(run.key.task, reference) if c.key.seed == run.key.seed), None)
            if reference_run is not None and reference_run.episodes:
                assumed[run.key] = _worst(results, run, reference_run)
    if not assumed:
        return []
    if not any(run.episodes for run in results.runs if run.key.arm == arm):
        return [WorstCase(arm, None, len(assumed), None, "")]
    filled = dataclasses.replace(results, runs=tuple(assumed.get(each.key, each) for each in results.runs))
    gain, unit, _ = overall_gain(filled, arm)
    if gain is not None:
        return [WorstCase(arm, None, len(assumed), gain, unit)]
    worst = []
    for task in dict.fromkeys(run.task for run in assumed):
        gain, unit, _ = overall_gain(filled, arm, task)
        if gain is not None:
            worst.append(WorstCase(arm, task, sum(run.task == task for run in assumed), gain, unit))
    return worst


def _worst(results: ExperimentResults, run: RunResult, reference_run: RunResult) -> RunResult:
    """Return the failed run as a finished one: the episodes of the reference's run, each with the lowest score."""
    seen = (e.score for each in results.runs if each.key.task == run.key.task for e in each.episodes)
    lowest = min(0.0, *seen)
    played = reference_run.episodes[: results.suite.episodes(run.key)]
    return dataclasses.replace(run, episodes=tuple(dataclasses.replace(e, score=lowest) for e in played), done=True)
