"""A cache of flip audits in the folders of runs, because a replay takes milliseconds per step."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seasoned.lab.diagnosis.flip_audit import AuditedGroup, FlipAudit

__all__ = ["RunFlipGroup", "RunFlips", "cached_flips", "flip_counts"]

_FILE = "flips.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class RunFlipGroup:
    """The decisions of one run by number of neighbours; see `seasoned.lab.diagnosis.flip_audit.AuditedGroup`.

    Args:
        least, most: the range of the number of neighbours; `most` None: no upper limit.
        decisions, flips, took_memory, took_base: counts.
        after_memory, after_base: mean return after flips with memory's action, and with the model's; None: no such
            flip.
    """

    least: int
    most: int | None
    decisions: int
    flips: int
    took_memory: int
    took_base: int
    after_memory: float | None
    after_base: float | None


@dataclass(frozen=True, slots=True)
class RunFlips:
    """The flips of one run; see `seasoned.lab.diagnosis.flip_audit.FlipAudit`.

    Args:
        ties: decisions where the model had several likeliest actions, and memory chose one of them.
        undecided: number of steps that cannot be decided again, by reason.
        groups: by number of neighbours.
        total: the group of all decisions.
    """

    ties: int
    undecided: Mapping[str, int]
    groups: tuple[RunFlipGroup, ...]
    total: RunFlipGroup


def flip_counts(audit: FlipAudit) -> RunFlips:
    """Return the counts of one run's audit."""
    return RunFlips(audit.ties, dict(audit.undecided), tuple(map(_group, audit.groups)), _group(audit.total))


def cached_flips(folder: Path, key: Mapping[str, Any], make: Callable[[], RunFlips]) -> RunFlips:
    """Return a run's flips from the file in its folder, or compute and store them.

    A stored result is valid for an equal `key`. In a read-only folder nothing is stored.

    Args:
        folder: of the run.
        key: everything that the flips depend on, as JSON data.
        make: replays the run's memory.
    """
    file, key = folder / _FILE, {"format": _FORMAT, **key}
    # A damaged file is no loss: the flips are computed again from the memory.
    with contextlib.suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored.pop("key") == key:
            groups = tuple(RunFlipGroup(**group) for group in stored.pop("groups"))
            return RunFlips(groups=groups, total=RunFlipGroup(**stored.pop("total")), **stored)
    flips = make()
    with contextlib.suppress(OSError):
        draft = file.with_name(f"{_FILE}.tmp")
        draft.write_text(json.dumps({"key": key, **dataclasses.asdict(flips)}) + "\n", encoding="utf-8")
        draft.replace(file)
    return flips


def _group(group: AuditedGroup) -> RunFlipGroup:
    return RunFlipGroup(
        group.least,
        group.most,
        group.decisions,
        group.flips,
        group.took_memory,
        group.took_base,
        group.after_memory.mean,
        group.after_base.mean,
    )
