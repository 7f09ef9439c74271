"""Runs that failed are not missing at random: what a gain would be if they had gone as badly as can be."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from seasoned.lab.analysis.arm_comparison import overall_gain
from seasoned.lab.analysis.measures import RunMean
from seasoned.lab.results.run_results import ExperimentResults, RunResult

__all__ = ["WorstCase", "worst_cases"]


@dataclass(frozen=True, slots=True)
class WorstCase:
    """An arm's gain over the reference arm if its failed runs had scored the worst in every episode.

    Of an arm of which no run played an episode there is nothing to say but that: `gain` is None.

    The worst is 0, or the lowest score that any arm got at the task, whichever is less.

    Args:
        arm: its name.
        task: where; None: over all of its tasks, as in its claim.
        runs: how many failed runs are counted so. Those whose seed the reference has not finished cannot be.
        gain: paired by seed; None: no run of the arm played an episode.
        unit: of the gain.
    """

    arm: str
    task: str | None
    runs: int
    gain: RunMean | None
    unit: str


def worst_cases(results: ExperimentResults) -> tuple[WorstCase, ...]:
    """Return the worst case of every arm with a failed run: over its tasks, or one by one where they do not add up."""
    found: list[WorstCase] = []
    for arm in results.suite.arms:
        if arm.name != results.suite.reference:
            found += _of_arm(results, arm.name)
    return tuple(found)


def _of_arm(results: ExperimentResults, arm: str) -> list[WorstCase]:
    reference = results.suite.reference
    counted = {}
    for run in results.runs:
        if run.key.arm == arm and run.error is not None and not run.done:
            beside = next((c for c in results.of(run.key.task, reference) if c.key.seed == run.key.seed), None)
            if beside is not None and beside.episodes:
                counted[run.key] = _worst(results, run, beside)
    if not counted:
        return []
    if not any(run.episodes for run in results.runs if run.key.arm == arm):
        return [WorstCase(arm, None, len(counted), None, "")]
    filled = dataclasses.replace(results, runs=tuple(counted.get(each.key, each) for each in results.runs))
    gain, unit, _ = overall_gain(filled, arm)
    if gain is not None:
        return [WorstCase(arm, None, len(counted), gain, unit)]
    worst = []
    for task in dict.fromkeys(run.task for run in counted):
        gain, unit, _ = overall_gain(filled, arm, task)
        if gain is not None:
            worst.append(WorstCase(arm, task, sum(run.task == task for run in counted), gain, unit))
    return worst


def _worst(results: ExperimentResults, run: RunResult, beside: RunResult) -> RunResult:
    """The failed run as if it had ended: the instances of the reference's run, each at the lowest score."""
    seen = (e.score for each in results.runs if each.key.task == run.key.task for e in each.episodes)
    lowest = min(0.0, *seen)
    played = beside.episodes[: results.suite.episodes(run.key)]
    return dataclasses.replace(run, episodes=tuple(dataclasses.replace(e, score=lowest) for e in played), done=True)
