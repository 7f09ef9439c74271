"""How often memory changed the action, and whether it helped, over the runs of one arm at one task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seasoned.errors import InputError, NotFoundError
from seasoned.lab.audit import Audit, AuditedGroup, audit
from seasoned.lab.experiments.measures import Estimate, estimate
from seasoned.lab.experiments.preset_settings import preset_settings
from seasoned.lab.experiments.results import CellResults, Results
from seasoned.lab.experiments.suite import ArmSpec
from seasoned.lab.replay import PolicyMaker
from seasoned.memory import Memory
from seasoned.policies import JitRL
from seasoned.protocols import Policy

__all__ = ["ArmFlips", "FlipGroup", "PolicyOf", "audit_arms", "pool_audits", "stored_policy"]

PolicyOf = Callable[[ArmSpec], PolicyMaker | None]
"""Makes an arm's policy over a memory, as it is replayed; None for an arm whose memory shifts no decision."""

_MEMORY = "memory.db"


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
    share: Estimate | None
    helped: Estimate | None


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


def stored_policy(arm: ArmSpec) -> PolicyMaker | None:
    """Return what makes the policy of an arm of the kind `jitrl`; None for another kind.

    Example:
        >>> stored_policy(ArmSpec("alone", "alone")) is None
        True
    """
    if arm.kind != "jitrl":
        return None
    name, overrides = preset_settings(arm.settings)

    def make(memory: Memory) -> Policy:
        return JitRL.preset(name, memory, **overrides)

    return make


def audit_arms(results: Results, policy_of: PolicyOf) -> tuple[ArmFlips, ...]:
    """Replay the stored memory of every finished run whose arm has a policy over it; see `seasoned.lab.audit`."""
    found = []
    for task in results.suite.tasks:
        for arm in results.suite.arms:
            policy = policy_of(arm)
            cells = results.of(task.name, arm.name)
            if policy is None or not cells:
                continue
            audits, left_out = _audited(cells, policy)
            if audits:
                found.append(pool_audits(task.name, arm.name, audits, left_out))
    return tuple(found)


def _audited(cells: Sequence[CellResults], policy: PolicyMaker) -> tuple[list[Audit], tuple[str, ...]]:
    audits, left_out = [], []
    for each in cells:
        path = each.folder / _MEMORY
        if not path.exists():
            left_out.append(f"seed {each.cell.seed}: no {_MEMORY}")
            continue
        try:
            with Memory.open(path, read_only=True) as memory:
                audits.append(audit(memory, policy, seed=each.cell.seed))
        except (InputError, NotFoundError) as error:  # nothing there that can be decided again: said, not guessed
            left_out.append(f"seed {each.cell.seed}: {error.seen}")
    return audits, tuple(left_out)


def pool_audits(task: str, arm: str, audits: Sequence[Audit], left_out: Sequence[str] = ()) -> ArmFlips:
    """Add up the audits of an arm's runs; means are over runs, which are independent where decisions are not.

    Args:
        task, arm: which.
        audits: one a run, at least one.
        left_out: what could not be looked at.

    Raises:
        InputError: there is none.
    """
    if not audits:
        raise InputError("0 audits", "flips are pooled over runs", "Audit one.")
    ranges = sorted({(group.least, group.most) for each in audits for group in each.groups}, key=lambda r: r[0])
    groups = [
        _pooled([group for each in audits for group in each.groups if (group.least, group.most) == range_])
        for range_ in ranges
    ]
    undecided = [
        f"{sum(each.undecided.get(why, 0) for each in audits)} steps: {why}"
        for why in sorted({why for each in audits for why in each.undecided})
    ]
    return ArmFlips(
        task, arm, len(audits), sum(each.ties for each in audits), (*undecided, *left_out), tuple(groups),
        _pooled([each.total for each in audits]),
    )  # fmt: skip


def _pooled(groups: Sequence[AuditedGroup]) -> FlipGroup:
    helped = [
        group.after_memory.mean - group.after_base.mean
        for group in groups
        if group.after_memory.mean is not None and group.after_base.mean is not None
    ]
    return FlipGroup(
        groups[0].least,
        groups[0].most,
        sum(group.decisions for group in groups),
        sum(group.flips for group in groups),
        sum(group.took_memory for group in groups),
        sum(group.took_base for group in groups),
        estimate([group.flips / group.decisions for group in groups if group.decisions], share=True),
        estimate(helped),
    )
