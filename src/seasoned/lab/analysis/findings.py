"""The findings of an experiment: all numbers of the page, the pictures and the JSON file."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from seasoned.agents import EpisodeResult
from seasoned.checks import check_one_of
from seasoned.errors import InputError
from seasoned.lab.analysis.arm_caveats import ArmCaveats, arm_caveats, unused_memory_remark
from seasoned.lab.analysis.arm_comparison import (
    Claim,
    PairwiseComparison,
    TaskClaim,
    compare_all_arms,
    compare_with_reference,
)
from seasoned.lab.analysis.arm_flips import ArmFlips, audit_arms
from seasoned.lab.analysis.measures import (
    Limits,
    RunMean,
    curve_block,
    last_quarter,
    mean_limits,
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
"""The arms whose memories are replayed, at some milliseconds per stored step."""

_BAND_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Curve:
    """A learning curve: the mean over runs, each with a pointwise interval.

    Args:
        block: number of episodes per point; 1 up to 25 episodes.
        ends: the last episode of each block, counted from 1.
        points: one per block.
    """

    block: int
    ends: tuple[int, ...]
    points: tuple[RunMean, ...]


@dataclass(frozen=True, slots=True)
class ArmRow:
    """An arm at a task.

    Args:
        arm: its name.
        planned, n: numbers of runs in the suite, and of finished runs; all means are over the latter.
        failed: number of runs that an error aborted.
        episodes: number of episodes that each run learns from; an arm may have fewer than others.
        unusable: a line for each answer of its model that it wanted to learn from and could not use, over finished
            runs; None: it makes no such requests, or they are unknown.
        measures: see `seasoned.lab.analysis.measures.measure`; None for a measure that is unknown in some run.
        claim: the comparison with the reference arm; None for the reference itself.
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
    """A task, and every arm at it. `max_score` None: unknown, or not equal in all episodes."""

    task: str
    env: tuple[str, ...]
    episodes: int
    max_score: float | None
    rows: tuple[ArmRow, ...]


@dataclass(frozen=True, slots=True)
class SplitRow:
    """An arm at one split of a task: its score there, and the paired difference to the reference arm, in points.

    Args:
        split, task, arm: their names.
        episodes: number of episodes of the score.
        learned: number of episodes that it had learned from; an arm may have fewer than others.
        score: in points.
        gain: None for the reference arm, and without a pair.
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
    """A run that did not end. `error` None: it was stopped without an error, or is still running."""

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
        suite: the suite of the experiment.
        notes: the caveats of each arm.
        claims: the comparison of every other arm with the reference arm.
        worst: the worst case of each arm with failed runs.
        tasks, wins, splits, flips, troubles: see the class of each.
        unread: a line for each unreadable file of a run; the rest of these runs counts.
        changed_code: modules of user-written environments whose code changed during the experiment.
        lost: model usage of aborted episodes, which no other number includes.
        stopped: the reason why the last session ended early, such as a limit of the budget; None if it did not.
        record: provenance, as stored by the experiment.
        runs, done: numbers of learning runs in the suite, and of finished ones.
        again: the command that draws the report again.
    """

    suite: Suite
    notes: tuple[ArmCaveats, ...]
    claims: tuple[Claim, ...]
    worst: tuple[WorstCase, ...]
    tasks: tuple[TaskFindings, ...]
    wins: tuple[PairwiseComparison, ...]
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
        """Return the caveats of an arm."""
        return next(each for each in self.notes if each.arm == arm)

    def to_json(self) -> dict[str, Any]:
        """Return every number as JSON data; a mean comes with `n`, and with an interval unless n is 1."""
        data: dict[str, Any] = _json(self)
        return data


def arm_role(arm: ArmSpec, suite: Suite) -> str:
    """Return the role of an arm: `reference`, `placebo`, `ours` (the arm under test) or `other`.

    Ours is the arm named `default`, else the first one of the kind `jitrl`.
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
    """Measure and compare the finished runs of an experiment.

    Args:
        results: of an experiment.
        audited: the arms of the kind `jitrl` whose memories are replayed for the flip audit.
        progress: called with a line about each slow replay.

    Raises:
        InputError: `audited` is not one of its values.
    """
    check_one_of("audited", audited, get_args(AuditedArms))
    suite, claims = results.suite, compare_with_reference(results)
    sessions = session_endings(results.record.get("sessions") or [], results.folder)
    flips, unread = audit_arms(results, lambda arm: _is_audited(arm, suite, audited), progress)
    unusable, damaged = _unusable(results)
    again = ["seasoned", "lab", "report", str(results.folder), *(() if audited == "ours" else ("--audit", audited))]
    return Findings(
        suite,
        tuple(_note(arm, results) for arm in suite.arms),
        claims,
        worst_cases(results),
        tuple(_task(results, task, claims, unusable) for task in suite.tasks),
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
    caveats, remark = arm_caveats(arm, results.suite), unused_memory_remark(arm, results)
    return caveats if remark is None else dataclasses.replace(caveats, remarks=(*caveats.remarks, remark))


def _changed(results: ExperimentResults) -> tuple[str, ...]:
    known = {pair for run in results.runs if run.episodes for pair in run.code}
    modules = [module for module, _ in known]
    return tuple(sorted({module for module in modules if modules.count(module) > 1}))


def _is_audited(arm: ArmSpec, suite: Suite, audited: AuditedArms) -> bool:
    return audited == "all" or (audited == "ours" and arm_role(arm, suite) == "ours")


_Unusable = Mapping[tuple[str, str], tuple[str, ...] | None]


def _unusable(results: ExperimentResults) -> tuple[_Unusable, list[str]]:
    """Return the unusable answers by task and arm, and a line for each unreadable file."""
    answers: dict[tuple[str, str], tuple[str, ...] | None] = {}
    damaged: list[str] = []
    for task in results.suite.tasks:
        for arm in results.suite.arms:
            try:
                answers[task.name, arm.name] = unusable_answers(results.of(task.name, arm.name), arm.kind)
            except InputError as error:
                answers[task.name, arm.name] = None
                damaged.append(f"{task.name}, {arm.name}, {error.seen}")
    return answers, damaged


def _task(results: ExperimentResults, task: Task, claims: Sequence[Claim], unusable: _Unusable) -> TaskFindings:
    played = [e for run in results.runs if run.key.task == task.name for e in run.episodes]
    scores = score_range(played, task)
    by_arm = {(claim.arm, each.task): each for claim in claims for each in claim.tasks}
    rows = []
    for arm in results.suite.arms:
        planned = [run for run in results.runs if (run.key.task, run.key.arm) == (task.name, arm.name)]
        if planned:
            done = results.of(task.name, arm.name)
            failed = sum(run.error is not None for run in planned)
            row = ArmRow(
                arm.name,
                len(planned),
                len(done),
                failed,
                results.suite.episodes(planned[0].key),
                unusable[task.name, arm.name],
                _measures(done, task, scores),
                by_arm.get((arm.name, task.name)),
                _curve(done, scores),
            )
            rows.append(row)
    return TaskFindings(task.name, task.env, task.episodes, scores[1], tuple(rows))


def _measures(runs: Sequence[RunResult], task: Task, scores: Limits) -> dict[str, RunMean | None]:
    measured = [measure(run.episodes, task) for run in runs]
    means: dict[str, RunMean | None] = {}
    for name in measured[0] if measured else ():
        values = [each[name] for each in measured]
        known = [value for value in values if value is not None]
        least, most = mean_limits(name, scores)
        means[name] = run_mean(known, at_least=least, at_most=most) if len(known) == len(values) else None
    return means


def _curve(runs: Sequence[RunResult], limits: Limits) -> Curve | None:
    if not runs:
        return None
    n = min(len(run.episodes) for run in runs)
    block = curve_block(n)
    scores = np.array([[episode.score for episode in run.episodes[:n]] for run in runs])
    starts = range(0, n, block)
    least, most = limits
    points = [
        run_mean(
            scores[:, s : s + block].mean(axis=1).tolist(), resamples=_BAND_RESAMPLES, at_least=least, at_most=most
        )
        for s in starts
    ]
    return Curve(block, tuple(min(s + block, n) for s in starts), tuple(p for p in points if p is not None))


def _splits(results: ExperimentResults, task: Task) -> list[SplitRow]:
    """Return the end of learning as the split `same task`, then the transfer splits."""
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
            # The last quarters of runs of different lengths are different instances.
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
