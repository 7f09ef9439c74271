"""Everything that a report says, as numbers: what the page, the pictures and the JSON are written from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from seasoned.agents import EpisodeResult
from seasoned.errors import InputError, excerpt
from seasoned.lab.experiments.comparing import Claim, TaskClaim, Win, claims, wins
from seasoned.lab.experiments.flips import ArmFlips, audit_arms, stored_policy
from seasoned.lab.experiments.measures import SHARES, Estimate, curve_block, estimate, last_quarter, measure
from seasoned.lab.experiments.results import CellResults, Results
from seasoned.lab.experiments.suite import ArmSpec, Suite, Task
from seasoned.lab.replay import PolicyMaker

__all__ = ["ArmRow", "Audited", "Curve", "Findings", "SplitRow", "TaskFindings", "Trouble", "find", "role"]

Audited = Literal["none", "ours", "all"]
"""Whose memories are replayed: some milliseconds a stored step."""

SAME_TASK = "same task"
_BAND_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Curve:
    """A learning curve: the mean over runs, each with a pointwise interval.

    Args:
        block: episodes that a point is the mean of; 1 up to 25 episodes.
        ends: the last episode of each block, counted from 1.
        points: one a block.
    """

    block: int
    ends: tuple[int, ...]
    points: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True)
class ArmRow:
    """An arm at a task.

    Args:
        arm: its name.
        planned, n: runs that the suite asks for, and that are finished; all means are over the latter.
        failed: runs that an error broke off.
        measures: see `seasoned.lab.experiments.measures.measure`; None for what is not known of every run.
        claim: against the reference arm; None for the reference itself.
        curve: None without a finished run.
    """

    arm: str
    planned: int
    n: int
    failed: int
    measures: Mapping[str, Estimate | None]
    claim: TaskClaim | None
    curve: Curve | None


@dataclass(frozen=True, slots=True)
class TaskFindings:
    """A task, and every arm at it. `max_score` None: unknown, or not the same in every episode."""

    task: str
    env: tuple[str, ...]
    episodes: int
    max_score: float | None
    rows: tuple[ArmRow, ...]


@dataclass(frozen=True, slots=True)
class SplitRow:
    """An arm at one split of a task: its score there, and the paired difference to the reference arm, in points."""

    split: str
    task: str
    arm: str
    episodes: int
    score: Estimate
    gain: Estimate | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """A run that did not end. `error` None: none was raised; it was stopped, or goes on."""

    task: str
    arm: str
    seed: int
    episodes: int
    wanted: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Findings:
    """An experiment's numbers.

    Args:
        suite: what was asked.
        claims: every arm but the reference, against it.
        tasks, wins, splits, flips, troubles: see each.
        stopped: the limit of the budget that stopped the last part of the experiment; None if none did.
        record: provenance, as the experiment kept it.
        runs, done: learning runs asked for, and finished.
    """

    suite: Suite
    claims: tuple[Claim, ...]
    tasks: tuple[TaskFindings, ...]
    wins: tuple[Win, ...]
    splits: tuple[SplitRow, ...]
    flips: tuple[ArmFlips, ...]
    troubles: tuple[Trouble, ...]
    stopped: str | None
    record: Mapping[str, Any]
    runs: int
    done: int

    def to_json(self) -> dict[str, Any]:
        """Return every number as JSON data; a mean comes with `n`, and with an interval unless n is 1."""
        data: dict[str, Any] = _json(self)
        return data


def role(arm: ArmSpec, suite: Suite) -> str:
    """Return what an arm is there for: `reference`, `placebo`, `ours` (the arm to be judged first) or `other`.

    Ours is the arm called `default`, else the first one of the kind `jitrl`.
    """
    if arm.name == suite.reference:
        return "reference"
    if arm.kind == "placebo" or arm.name == "placebo":
        return "placebo"
    jitrl = [each.name for each in suite.arms if each.kind == "jitrl" and each.name != suite.reference]
    ours = "default" if any(each.name == "default" for each in suite.arms) else next(iter(jitrl), None)
    return "ours" if arm.name == ours else "other"


def find(results: Results, audited: Audited = "ours") -> Findings:
    """Measure and compare whatever is finished.

    Args:
        results: of an experiment.
        audited: the arms of the kind `jitrl` whose memories are replayed for the flip audit.

    Raises:
        InputError: `audited` is none of its values.
    """
    if audited not in get_args(Audited):
        raise InputError(f"audited = {excerpt(audited)}", "it is 'none', 'ours' or 'all'", "Leave it out.")
    found = claims(results)
    sessions = results.record.get("sessions") or [{}]
    return Findings(
        results.suite,
        found,
        tuple(_task(results, task, found) for task in results.suite.tasks),
        wins(results),
        tuple(row for task in results.suite.tasks for row in _splits(results, task)),
        () if audited == "none" else audit_arms(results, lambda arm: _policy(arm, results.suite, audited)),
        tuple(_trouble(results.suite, cell) for cell in results.cells if not cell.done or cell.error),
        sessions[-1].get("stopped"),
        results.record,
        len(results.cells),
        sum(cell.done for cell in results.cells),
    )


def _policy(arm: ArmSpec, suite: Suite, audited: Audited) -> PolicyMaker | None:
    return stored_policy(arm) if audited == "all" or role(arm, suite) == "ours" else None


def _task(results: Results, task: Task, found: Sequence[Claim]) -> TaskFindings:
    by_arm = {(claim.arm, each.task): each for claim in found for each in claim.tasks}
    rows = []
    for arm in results.suite.arms:
        asked = [cell for cell in results.cells if (cell.cell.task, cell.cell.arm) == (task.name, arm.name)]
        if asked:
            done = results.of(task.name, arm.name)
            failed = sum(cell.error is not None for cell in asked)
            claim = by_arm.get((arm.name, task.name))
            rows.append(ArmRow(arm.name, len(asked), len(done), failed, _measures(done, task), claim, _curve(done)))
    played = [e for cell in results.cells if cell.cell.task == task.name for e in cell.episodes]
    best = {task.max_score} if task.max_score is not None else {e.max_score for e in played}
    return TaskFindings(task.name, task.env, task.episodes, best.pop() if len(best) == 1 else None, tuple(rows))


def _measures(cells: Sequence[CellResults], task: Task) -> dict[str, Estimate | None]:
    runs = [measure(cell.episodes, task) for cell in cells]
    found: dict[str, Estimate | None] = {}
    for name in runs[0] if runs else ():
        values = [run[name] for run in runs]
        known = [value for value in values if value is not None]
        share = name.startswith(SHARES)
        found[name] = estimate(known, share=share) if len(known) == len(values) else None
    return found


def _curve(cells: Sequence[CellResults]) -> Curve | None:
    if not cells:
        return None
    n = min(len(cell.episodes) for cell in cells)
    block = curve_block(n)
    scores = np.array([[episode.score for episode in cell.episodes[:n]] for cell in cells])
    starts = range(0, n, block)
    points = [estimate(scores[:, s : s + block].mean(axis=1).tolist(), resamples=_BAND_RESAMPLES) for s in starts]
    return Curve(block, tuple(min(s + block, n) for s in starts), tuple(p for p in points if p is not None))


def _splits(results: Results, task: Task) -> list[SplitRow]:
    """The end of learning as `same task`, then what was asked in the end."""
    names = list(dict.fromkeys(transfer.split for transfer in task.transfer))
    if not names:
        return []
    rows = []
    for split in (SAME_TASK, *names):
        reference = {cell.cell.seed: cell for cell in results.of(task.name, results.suite.reference)}
        for arm in results.suite.arms:
            cells = results.of(task.name, arm.name)
            score = estimate([_score(cell, split) for cell in cells])
            if score is None:
                continue
            pairs = [(cell, reference[cell.cell.seed]) for cell in cells if cell.cell.seed in reference]
            # An arm with fewer learning episodes ends elsewhere: those are other instances.
            alike = [(one, two) for one, two in pairs if split != SAME_TASK or len(one.episodes) == len(two.episodes)]
            other = arm.name != results.suite.reference
            gain = estimate([_score(one, split) - _score(two, split) for one, two in alike if other])
            rows.append(SplitRow(split, task.name, arm.name, len(_of(cells[0], split)), score, gain))
    return rows


def _of(cell: CellResults, split: str) -> Sequence[EpisodeResult]:
    return last_quarter(cell.episodes) if split == SAME_TASK else cell.transfer[split]


def _score(cell: CellResults, split: str) -> float:
    return float(np.mean([episode.score for episode in _of(cell, split)]))


def _trouble(suite: Suite, each: CellResults) -> Trouble:
    cell = each.cell
    return Trouble(cell.task, cell.arm, cell.seed, len(each.episodes), suite.episodes(cell), each.error)


def _json(value: object) -> Any:
    if isinstance(value, Estimate):
        return value.to_json()
    if isinstance(value, Suite):
        return value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return value
