"""What a memory held at one time, as counts and hashes, and what came to it since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TypedDict

from seasoned.errors import StoreError
from seasoned.memory import Memory

__all__ = ["Base", "base_of", "grown"]


class _Held(TypedDict):
    count: int
    sha256: str


Base = Mapping[str, _Held]
"""For each kind of line in an export (episodes, feedback, ...): how many there were, and their hash in order."""


def base_of(memory: Memory, *, upto: Base | None = None) -> Base:
    """Return what a memory holds; with `upto`, of each kind only as many lines as it counts."""
    counts: dict[str, int] = {}
    hashes = {} if upto is None else {kind: hashlib.sha256() for kind in upto}
    for line in memory.export():
        kind = json.loads(line)["type"]
        if kind == "header":
            continue
        n = counts.get(kind, 0)
        if upto is not None and (kind not in upto or n >= upto[kind]["count"]):
            continue
        counts[kind] = n + 1
        hashes.setdefault(kind, hashlib.sha256()).update(line.encode() + b"\n")
    return {kind: {"count": counts.get(kind, 0), "sha256": one.hexdigest()} for kind, one in sorted(hashes.items())}


def grown(memory: Memory, base: Base) -> list[str]:
    """Return the lines that came since `base`.

    Raises:
        StoreError: what was there is not as it was: erased, pruned, revoked or lifted since.
    """
    if base_of(memory, upto=base) != dict(base):
        raise StoreError(
            f"namespace {memory.namespace!r} changed what it held when it was forked",
            "a fork follows what is added, not what is erased, pruned, superseded, revoked or lifted",
            "Fork again, and make the changes there.",
        )
    counts: dict[str, int] = {}
    since = []
    for line in memory.export():
        kind = json.loads(line)["type"]
        counts[kind] = counts.get(kind, 0) + 1
        if kind != "header" and counts[kind] > (base[kind]["count"] if kind in base else 0):
            since.append(line)
    return since
