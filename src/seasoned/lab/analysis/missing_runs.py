"""Runs that failed are not missing at random: what a gain would be if they had gone as badly as can be."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from seasoned.lab.analysis.arm_comparison import overall_gain
from seasoned.lab.analysis.measures import Estimate
from seasoned.lab.results.run_results import CellResults, Results

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
    gain: Estimate | None
    unit: str


def worst_cases(results: Results) -> tuple[WorstCase, ...]:
    """Return the worst case of every arm with a failed run: over its tasks, or one by one where they do not add up."""
    found: list[WorstCase] = []
    for arm in results.suite.arms:
        if arm.name != results.suite.reference:
            found += _of_arm(results, arm.name)
    return tuple(found)


def _of_arm(results: Results, arm: str) -> list[WorstCase]:
    reference = results.suite.reference
    counted = {}
    for cell in results.cells:
        if cell.cell.arm == arm and cell.error is not None and not cell.done:
            beside = next((c for c in results.of(cell.cell.task, reference) if c.cell.seed == cell.cell.seed), None)
            if beside is not None and beside.episodes:
                counted[cell.cell] = _worst(results, cell, beside)
    if not counted:
        return []
    if not any(cell.episodes for cell in results.cells if cell.cell.arm == arm):
        return [WorstCase(arm, None, len(counted), None, "")]
    filled = dataclasses.replace(results, cells=tuple(counted.get(each.cell, each) for each in results.cells))
    gain, unit, _ = overall_gain(filled, arm)
    if gain is not None:
        return [WorstCase(arm, None, len(counted), gain, unit)]
    worst = []
    for task in dict.fromkeys(cell.task for cell in counted):
        gain, unit, _ = overall_gain(filled, arm, task)
        if gain is not None:
            worst.append(WorstCase(arm, task, sum(cell.task == task for cell in counted), gain, unit))
    return worst


def _worst(results: Results, cell: CellResults, beside: CellResults) -> CellResults:
    """The failed run as if it had ended: the instances of the reference's run, each at the lowest score."""
    seen = (e.score for each in results.cells if each.cell.task == cell.cell.task for e in each.episodes)
    lowest = min(0.0, *seen)
    played = beside.episodes[: results.suite.episodes(cell.cell)]
    return dataclasses.replace(cell, episodes=tuple(dataclasses.replace(e, score=lowest) for e in played), done=True)
