"""A run's flip audit, kept beside the run: replaying a memory takes milliseconds a step, reading the counts none."""

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
    """One run's decisions with so many neighbours; see `seasoned.lab.diagnosis.flip_audit.AuditedGroup`.

    Args:
        least, most: number of neighbours; `most` None: no limit.
        decisions, flips, took_memory, took_base: how many.
        after_memory, after_base: mean return after flips where memory's action, the model's was taken; None if never.
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
    """What memory flipped in one run; see `seasoned.lab.diagnosis.flip_audit.FlipAudit`.

    Args:
        ties: decisions where the model had several favourites, and memory chose one of them.
        undecided: steps that could not be decided again, by reason.
        groups: by number of neighbours; `total` is all of them.
    """

    ties: int
    undecided: Mapping[str, int]
    groups: tuple[RunFlipGroup, ...]
    total: RunFlipGroup


def flip_counts(found: FlipAudit) -> RunFlips:
    """Return the counts of one run's audit."""
    return RunFlips(found.ties, dict(found.undecided), tuple(map(_group, found.groups)), _group(found.total))


def cached_flips(folder: Path, key: Mapping[str, Any], make: Callable[[], RunFlips]) -> RunFlips:
    """Return a run's flips from its folder; made and kept there where they are not.

    What is kept counts only under the same `key`. A folder that cannot be written keeps nothing: it is made again.

    Args:
        folder: the run's.
        key: all that the flips depend on, as JSON data.
        make: replays the run's memory.
    """
    file, key = folder / _FILE, {"format": _FORMAT, **key}
    # Whatever is wrong with the file, the memory that it was made from is still there.
    with contextlib.suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept.pop("key") == key:
            groups = tuple(RunFlipGroup(**group) for group in kept.pop("groups"))
            return RunFlips(groups=groups, total=RunFlipGroup(**kept.pop("total")), **kept)
    found = make()
    with contextlib.suppress(OSError):
        draft = file.with_name(f"{_FILE}.tmp")
        draft.write_text(json.dumps({"key": key, **dataclasses.asdict(found)}) + "\n", encoding="utf-8")
        draft.replace(file)
    return found


def _group(found: AuditedGroup) -> RunFlipGroup:
    return RunFlipGroup(
        found.least,
        found.most,
        found.decisions,
        found.flips,
        found.took_memory,
        found.took_base,
        found.after_memory.mean,
        found.after_base.mean,
    )
