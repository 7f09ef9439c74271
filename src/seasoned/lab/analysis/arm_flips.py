"""Flips of the runs of one arm at one task: how often memory changed the likeliest action, and its effect."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seasoned.build import open_memory
from seasoned.errors import InputError, SeasonedError
from seasoned.lab.analysis.flip_cache import RunFlipGroup, RunFlips, cached_flips, flip_counts
from seasoned.lab.analysis.measures import RunMean, run_mean
from seasoned.lab.arms.preset_settings import preset_settings
from seasoned.lab.diagnosis.flip_audit import audit
from seasoned.lab.diagnosis.replay import PolicyMaker
from seasoned.lab.results.run_results import MEMORY_FILE, ExperimentResults, RunResult
from seasoned.lab.suites.suite import ArmSpec
from seasoned.memory import Memory
from seasoned.policies import JitRL
from seasoned.policies.presets import preset
from seasoned.protocols import Policy

__all__ = ["ArmFlips", "FlipGroup", "arm_policy", "audit_arms", "pool_flips"]


@dataclass(frozen=True, slots=True)
class FlipGroup:
    """The decisions of all runs by number of neighbours.

    Args:
        least, most: the range of the number of neighbours; `most` None: no upper limit.
        decisions, flips, took_memory, took_base: counts over all runs.
        share: of flipped decisions, over runs.
        helped: mean return after a flip with memory's action less that with the model's, over the runs that have both;
            None if none has. The two also differ in states and times.
    """

    least: int
    most: int | None
    decisions: int
    flips: int
    took_memory: int
    took_base: int
    share: RunMean | None
    helped: RunMean | None


@dataclass(frozen=True, slots=True)
class ArmFlips:
    """The flips of the runs of an arm at a task.

    Args:
        task, arm: their names.
        runs: the number of audited runs.
        ties: decisions where the model had several likeliest actions, and memory chose one of them: no flips.
        left_out: steps that cannot be decided again, and runs that cannot be audited, with the reason.
        groups: by number of neighbours.
        total: the group of all decisions.
    """

    task: str
    arm: str
    runs: int
    ties: int
    left_out: tuple[str, ...]
    groups: tuple[FlipGroup, ...]
    total: FlipGroup


def arm_policy(arm: ArmSpec) -> PolicyMaker | None:
    """Return the function that makes the policy of an arm of the kind `jitrl`; None for another kind.

    Example:
        >>> arm_policy(ArmSpec("alone", "alone")) is None
        True
    """
    if arm.kind != "jitrl":
        return None
    name, overrides = preset_settings(arm.settings)

    def make(memory: Memory) -> Policy:
        return JitRL.preset(name, memory, **overrides)

    return make


def audit_arms(
    results: ExperimentResults,
    selected: Callable[[ArmSpec], bool],
    progress: Callable[[str], None] = lambda line: None,
    *,
    patience_s: float = 10.0,
) -> tuple[tuple[ArmFlips, ...], tuple[str, ...]]:
    """Replay the memory of every finished run whose arm has a policy over it (`seasoned.lab.diagnosis.flip_audit`).

    The result of a run is stored in its folder, and used until the run or the policy changes.

    Args:
        results: of an experiment.
        selected: whether to audit an arm.
        progress: called with a line about each run, once the audit has taken `patience_s`.
        patience_s: in seconds.

    Returns:
        the flips, and a line for each run whose memory cannot be read or decided again.
    """
    flips: list[ArmFlips] = []
    unread: list[str] = []
    began = time.monotonic()
    for task in results.suite.tasks:
        for arm in results.suite.arms:
            policy = arm_policy(arm) if selected(arm) else None
            if policy is None:
                continue
            runs, left_out = [], []
            for run in results.of(task.name, arm.name):
                if time.monotonic() - began > patience_s:
                    progress(f"replaying the stored decisions of {run.key}")
                try:
                    runs.append(_flips(run, arm, policy))
                except SeasonedError as error:  # the run is listed as unread; the others are audited
                    left_out.append(f"seed {run.key.seed}: {error.seen}")
            unread += [f"{task.name}, {arm.name}, {why}" for why in left_out]
            if runs:
                flips.append(pool_flips(task.name, arm.name, runs, left_out))
    return tuple(flips), tuple(unread)


def _flips(run: RunResult, arm: ArmSpec, policy: PolicyMaker) -> RunFlips:
    path = run.folder / MEMORY_FILE
    if not path.exists():
        raise InputError(f"no {MEMORY_FILE}", "a run's flips are counted from its memory", "Play the run again.")

    def make() -> RunFlips:
        with open_memory(str(path), read_only=True) as memory:
            own = len(run.episodes)  # without the episodes that the memory was filled with
            return flip_counts(audit(memory, policy, last=own, seed=run.key.seed))

    name, overrides = preset_settings(arm.settings)
    key = {
        "episodes": len(run.episodes),
        "seed": run.key.seed,
        "policy": repr(preset(name, **overrides)),
        "version": importlib.metadata.version("seasoned"),
        "memory_bytes": path.stat().st_size,
    }
    return cached_flips(run.folder, key, make)


def pool_flips(task: str, arm: str, runs: Sequence[RunFlips], left_out: Sequence[str] = ()) -> ArmFlips:
    """Add up the flips of an arm's runs; means are over runs, because decisions of a run are not independent.

    Args:
        task, arm: their names.
        runs: at least one.
        left_out: the runs that cannot be audited, with the reason.

    Raises:
        InputError: there is no run.
    """
    if not runs:
        raise InputError("0 runs", "flips are pooled over runs", "Audit one.")
    ranges = sorted({(group.least, group.most) for each in runs for group in each.groups}, key=lambda r: r[0])
    groups = [
        _pooled([group for each in runs for group in each.groups if (group.least, group.most) == range_])
        for range_ in ranges
    ]
    undecided = [
        f"{sum(each.undecided.get(why, 0) for each in runs)} steps: {why}"
        for why in sorted({why for each in runs for why in each.undecided})
    ]
    return ArmFlips(
        task,
        arm,
        len(runs),
        sum(each.ties for each in runs),
        (*undecided, *left_out),
        tuple(groups),
        _pooled([each.total for each in runs]),
    )


def _pooled(groups: Sequence[RunFlipGroup]) -> FlipGroup:
    helped = [
        group.after_memory - group.after_base
        for group in groups
        if group.after_memory is not None and group.after_base is not None
    ]
    return FlipGroup(
        groups[0].least,
        groups[0].most,
        sum(group.decisions for group in groups),
        sum(group.flips for group in groups),
        sum(group.took_memory for group in groups),
        sum(group.took_base for group in groups),
        run_mean([group.flips / group.decisions for group in groups if group.decisions], share=True),
        run_mean(helped),
    )
