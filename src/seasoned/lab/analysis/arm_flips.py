"""How often memory changed the action, and whether it helped, over the runs of one arm at one task."""

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
from seasoned.lab.results.run_results import MEMORY, ExperimentResults, RunResult
from seasoned.lab.suites.suite import ArmSpec
from seasoned.memory import Memory
from seasoned.policies import JitRL
from seasoned.policies.presets import preset
from seasoned.protocols import Policy

__all__ = ["ArmFlips", "FlipGroup", "arm_policy", "audit_arms", "pool_flips"]


@dataclass(frozen=True, slots=True)
class FlipGroup:
    """The decisions with so many neighbours, of all runs.

    Args:
        least, most: number of neighbours; `most` None: no limit.
        decisions, flips, took_memory, took_base: how many, over all runs.
        share: of decisions that were flipped, over runs.
        helped: mean return after a flip where memory's action was taken less that where the model's was, over the runs
            that have both; None if none has. The two differ in states and times too, not in the action alone.
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
    """What memory flipped in the runs of an arm at a task.

    Args:
        task, arm: which.
        runs: how many were looked at.
        ties: decisions where the model had several favourites, and memory chose one of them: no flips.
        left_out: steps that could not be decided again, and runs that could not be looked at, with the reason.
        groups: by number of neighbours; `total` is all of them.
    """

    task: str
    arm: str
    runs: int
    ties: int
    left_out: tuple[str, ...]
    groups: tuple[FlipGroup, ...]
    total: FlipGroup


def arm_policy(arm: ArmSpec) -> PolicyMaker | None:
    """Return what makes the policy of an arm of the kind `jitrl`; None for another kind.

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
    wanted: Callable[[ArmSpec], bool],
    progress: Callable[[str], None] = lambda line: None,
    *,
    patience_s: float = 10.0,
) -> tuple[tuple[ArmFlips, ...], tuple[str, ...]]:
    """Replay the memory of every finished run whose arm has a policy over it (`seasoned.lab.diagnosis.flip_audit`).

    What was found in a run is kept in its folder, and not replayed again while neither it nor the policy changes.

    Args:
        results: of an experiment.
        wanted: whether to look at an arm.
        progress: told of each run, in a line, once all of it has taken so long.
        patience_s: how long.

    Returns:
        the flips, and the runs whose memory could not be read or decided again, a line each.
    """
    found: list[ArmFlips] = []
    unread: list[str] = []
    began = time.monotonic()
    for task in results.suite.tasks:
        for arm in results.suite.arms:
            policy = arm_policy(arm) if wanted(arm) else None
            if policy is None:
                continue
            runs, left_out = [], []
            for run in results.of(task.name, arm.name):
                if time.monotonic() - began > patience_s:
                    progress(f"deciding again what was stored: {run.key}")
                try:
                    runs.append(_flips(run, arm, policy))
                except SeasonedError as error:  # this run has no say: said, not guessed, and the others go on
                    left_out.append(f"seed {run.key.seed}: {error.seen}")
            unread += [f"{task.name}, {arm.name}, {why}" for why in left_out]
            if runs:
                found.append(pool_flips(task.name, arm.name, runs, left_out))
    return tuple(found), tuple(unread)


def _flips(run: RunResult, arm: ArmSpec, policy: PolicyMaker) -> RunFlips:
    path = run.folder / MEMORY
    if not path.exists():
        raise InputError(f"no {MEMORY}", "a run's flips are counted from its memory", "Play it again.")

    def make() -> RunFlips:
        with open_memory(str(path), read_only=True) as memory:
            own = len(run.episodes)  # what the memory was filled with before them was nobody's decision
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
    """Add up the flips of an arm's runs; means are over runs, which are independent where decisions are not.

    Args:
        task, arm: which.
        runs: at least one.
        left_out: what could not be looked at.

    Raises:
        InputError: there is none.
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
