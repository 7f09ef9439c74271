"""Everything that a report says, as numbers: what the page, the pictures and the JSON are written from."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from seasoned.agents import EpisodeResult
from seasoned.errors import InputError, excerpt
from seasoned.lab.analysis.arm_caveats import ArmCaveats, arm_caveats, unused_memory_remark
from seasoned.lab.analysis.arm_comparison import Claim, TaskClaim, Win, compare_all_arms, compare_with_reference
from seasoned.lab.analysis.arm_flips import ArmFlips, audit_arms
from seasoned.lab.analysis.measures import (
    AT_LEAST_0,
    SHARES,
    RunMean,
    curve_block,
    last_quarter,
    measure,
    run_mean,
    score_range,
)
from seasoned.lab.analysis.missing_runs import WorstCase, worst_cases
from seasoned.lab.results.run_results import ExperimentResults, RunResult
from seasoned.lab.results.unusable_answers import unusable_answers
from seasoned.lab.runner.sessions import session_endings
from seasoned.lab.suites.suite import SAME_TASK, ArmSpec, Suite, Task
from seasoned.protocols import Usage

__all__ = ["ArmRow", "AuditedArms", "Curve", "Findings", "SplitRow", "TaskFindings", "Trouble", "analyze", "arm_role"]

AuditedArms = Literal["none", "ours", "all"]
"""Whose memories are replayed: some milliseconds a stored step."""

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
    points: tuple[RunMean, ...]


@dataclass(frozen=True, slots=True)
class ArmRow:
    """An arm at a task.

    Args:
        arm: its name.
        planned, n: runs that the suite asks for, and that are finished; all means are over the latter.
        failed: runs that an error broke off.
        episodes: that each run learns from; an arm may have fewer than others.
        unusable: what its model answered when asked for something to learn from, and could not be used, a line each,
            over finished runs; None: it asks for nothing, or that is not known.
        measures: see `seasoned.lab.analysis.measures.measure`; None for what is not known of every run.
        claim: against the reference arm; None for the reference itself.
        curve: None without a finished run.
    """

    arm: str
    planned: int
    n: int
    failed: int
    episodes: int
    unusable: tuple[str, ...] | None
    measures: Mapping[str, RunMean | None]
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
    """An arm at one split of a task: its score there, and the paired difference to the reference arm, in points.

    Args:
        split, task, arm: which.
        episodes: that the score is the mean of.
        learned: episodes that it had learned from in the end; an arm may have fewer than others.
        score: in points.
        gain: None for the reference arm, and where there is no pair.
    """

    split: str
    task: str
    arm: str
    episodes: int
    learned: int
    score: RunMean
    gain: RunMean | None


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
        notes: what qualifies each arm.
        claims: every arm but the reference, against it.
        worst: gains if failed runs had gone as badly as can be, of arms that have any.
        tasks, wins, splits, flips, troubles: see each.
        unread: files of runs that could not be read, a line each; all else of these runs counts.
        changed_code: modules of environments of one's own whose code is not the same in all that was played.
        lost: what episodes that broke off had asked of the model; no other number has it.
        stopped: what ended the last session before its runs did, such as a limit of the budget; None if nothing did.
        record: provenance, as the experiment kept it.
        runs, done: learning runs asked for, and finished.
        again: the command that draws all of it again.
    """

    suite: Suite
    notes: tuple[ArmCaveats, ...]
    claims: tuple[Claim, ...]
    worst: tuple[WorstCase, ...]
    tasks: tuple[TaskFindings, ...]
    wins: tuple[Win, ...]
    splits: tuple[SplitRow, ...]
    flips: tuple[ArmFlips, ...]
    troubles: tuple[Trouble, ...]
    unread: tuple[str, ...]
    changed_code: tuple[str, ...]
    lost: Usage
    stopped: str | None
    record: Mapping[str, Any]
    runs: int
    done: int
    again: str

    def caveats_of(self, arm: str) -> ArmCaveats:
        """Return what qualifies an arm."""
        return next(each for each in self.notes if each.arm == arm)

    def to_json(self) -> dict[str, Any]:
        """Return every number as JSON data; a mean comes with `n`, and with an interval unless n is 1."""
        data: dict[str, Any] = _json(self)
        return data


def arm_role(arm: ArmSpec, suite: Suite) -> str:
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


def analyze(
    results: ExperimentResults, audited: AuditedArms = "ours", progress: Callable[[str], None] = lambda line: None
) -> Findings:
    """Measure and compare whatever is finished.

    Args:
        results: of an experiment.
        audited: the arms of the kind `jitrl` whose memories are replayed for the flip audit.
        progress: told of what takes long, in a line each.

    Raises:
        InputError: `audited` is none of its values.
    """
    if audited not in get_args(AuditedArms):
        raise InputError(f"audited = {excerpt(audited)}", "it is 'none', 'ours' or 'all'", "Leave it out.")
    suite, found = results.suite, compare_with_reference(results)
    sessions = session_endings(results.record.get("sessions") or [], results.folder)
    flips, unread = audit_arms(results, lambda arm: _is_audited(arm, suite, audited), progress)
    unusable, damaged = _unusable(results)
    again = ["seasoned", "lab", "report", str(results.folder), *(() if audited == "ours" else ("--audit", audited))]
    return Findings(
        suite,
        tuple(_note(arm, results) for arm in suite.arms),
        found,
        worst_cases(results),
        tuple(_task(results, task, found, unusable) for task in suite.tasks),
        compare_all_arms(results),
        tuple(row for task in suite.tasks for row in _splits(results, task)),
        flips,
        tuple(_trouble(suite, run) for run in results.runs if not run.done or run.error),
        (*unread, *damaged),
        _changed(results),
        sum((run.lost for run in results.runs), Usage()),
        sessions[-1].get("stopped") if sessions else None,
        {**results.record, "sessions": sessions},
        len(results.runs),
        sum(run.done for run in results.runs),
        shlex.join(again),
    )


def _note(arm: ArmSpec, results: ExperimentResults) -> ArmCaveats:
    known, silent = arm_caveats(arm, results.suite), unused_memory_remark(arm, results)
    return known if silent is None else dataclasses.replace(known, remarks=(*known.remarks, silent))


def _changed(results: ExperimentResults) -> tuple[str, ...]:
    known = {pair for run in results.runs if run.episodes for pair in run.code}
    modules = [module for module, _ in known]
    return tuple(sorted({module for module in modules if modules.count(module) > 1}))


def _is_audited(arm: ArmSpec, suite: Suite, audited: AuditedArms) -> bool:
    return audited == "all" or (audited == "ours" and arm_role(arm, suite) == "ours")


_Unusable = Mapping[tuple[str, str], tuple[str, ...] | None]


def _unusable(results: ExperimentResults) -> tuple[_Unusable, list[str]]:
    """By task and arm, the answers that could not be used; and what could not be read of them."""
    found: dict[tuple[str, str], tuple[str, ...] | None] = {}
    damaged: list[str] = []
    for task in results.suite.tasks:
        for arm in results.suite.arms:
            try:
                found[task.name, arm.name] = unusable_answers(results.of(task.name, arm.name), arm.kind)
            except InputError as error:
                found[task.name, arm.name] = None
                damaged.append(f"{task.name}, {arm.name}, {error.seen}")
    return found, damaged


def _task(results: ExperimentResults, task: Task, found: Sequence[Claim], unusable: _Unusable) -> TaskFindings:
    played = [e for run in results.runs if run.key.task == task.name for e in run.episodes]
    ends = score_range(played, task)
    by_arm = {(claim.arm, each.task): each for claim in found for each in claim.tasks}
    rows = []
    for arm in results.suite.arms:
        asked = [run for run in results.runs if (run.key.task, run.key.arm) == (task.name, arm.name)]
        if asked:
            done = results.of(task.name, arm.name)
            failed = sum(run.error is not None for run in asked)
            row = ArmRow(
                arm.name,
                len(asked),
                len(done),
                failed,
                results.suite.episodes(asked[0].key),
                unusable[task.name, arm.name],
                _measures(done, task, ends),
                by_arm.get((arm.name, task.name)),
                _curve(done, ends),
            )
            rows.append(row)
    return TaskFindings(task.name, task.env, task.episodes, ends[1], tuple(rows))


_Ends = tuple[float | None, float | None]


def _measures(runs: Sequence[RunResult], task: Task, ends: _Ends) -> dict[str, RunMean | None]:
    measured = [measure(run.episodes, task) for run in runs]
    found: dict[str, RunMean | None] = {}
    for name in measured[0] if measured else ():
        values = [each[name] for each in measured]
        known = [value for value in values if value is not None]
        least, most = ends if name in ("average", "final") else (0.0 if name in AT_LEAST_0 else None, None)
        most = 1.0 if name == "area" else most
        share = name.startswith(SHARES)
        estimated = run_mean(known, share=share, at_least=least, at_most=most)
        found[name] = estimated if len(known) == len(values) else None
    return found


def _curve(runs: Sequence[RunResult], ends: _Ends) -> Curve | None:
    if not runs:
        return None
    n = min(len(run.episodes) for run in runs)
    block = curve_block(n)
    scores = np.array([[episode.score for episode in run.episodes[:n]] for run in runs])
    starts = range(0, n, block)
    least, most = ends
    points = [
        run_mean(
            scores[:, s : s + block].mean(axis=1).tolist(), resamples=_BAND_RESAMPLES, at_least=least, at_most=most
        )
        for s in starts
    ]
    return Curve(block, tuple(min(s + block, n) for s in starts), tuple(p for p in points if p is not None))


def _splits(results: ExperimentResults, task: Task) -> list[SplitRow]:
    """The end of learning as `same task`, then what was asked in the end."""
    names = list(dict.fromkeys(transfer.split for transfer in task.transfer))
    if not names:
        return []
    rows = []
    for split in (SAME_TASK, *names):
        reference = {run.key.seed: run for run in results.of(task.name, results.suite.reference)}
        for arm in results.suite.arms:
            runs = results.of(task.name, arm.name)
            same = task if split == SAME_TASK else None
            least, most = score_range((episode for run in runs for episode in _of(run, split)), same)
            score = run_mean([_score(run, split) for run in runs], at_least=least, at_most=most)
            if score is None:
                continue
            pairs = [(run, reference[run.key.seed]) for run in runs if run.key.seed in reference]
            # An arm with fewer learning episodes ends elsewhere: those are other instances.
            alike = [(one, two) for one, two in pairs if split != SAME_TASK or len(one.episodes) == len(two.episodes)]
            other = arm.name != results.suite.reference
            gain = run_mean([_score(one, split) - _score(two, split) for one, two in alike if other])
            rows.append(
                SplitRow(split, task.name, arm.name, len(_of(runs[0], split)), len(runs[0].episodes), score, gain)
            )
    return rows


def _of(run: RunResult, split: str) -> Sequence[EpisodeResult]:
    return last_quarter(run.episodes) if split == SAME_TASK else run.transfer[split]


def _score(run: RunResult, split: str) -> float:
    return float(np.mean([episode.score for episode in _of(run, split)]))


def _trouble(suite: Suite, each: RunResult) -> Trouble:
    run = each.key
    return Trouble(run.task, run.arm, run.seed, len(each.episodes), suite.episodes(run), each.error)


def _json(value: object) -> Any:
    if isinstance(value, RunMean):
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
