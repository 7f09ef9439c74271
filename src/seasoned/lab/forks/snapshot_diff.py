"""What a memory held at one time, as hashes, and what came to it since."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TypedDict

from seasoned.errors import StoreError
from seasoned.memory import Memory

__all__ = ["Base", "base_of", "contains", "grown", "lines_of", "missing"]

_DIGEST_BYTES = 16


class _Held(TypedDict):
    count: int
    digests: str


Base = Mapping[str, _Held]
"""For each kind of line in an export (episodes, feedback, ...): how many there were, and a hash of each, in base64.

A set, not a sequence: what an episode in flight noted before the fork is committed after it, and is then exported
between what was there; what is on its way to a server is numbered when it has arrived.
"""


def lines_of(memory: Memory) -> list[str]:
    """Return what a memory holds as exported lines, without the header."""
    return list(memory.export())[1:]


def base_of(lines: Iterable[str]) -> Base:
    """Return what these lines hold."""
    digests: dict[str, list[bytes]] = {}
    for line in lines:
        digests.setdefault(_kind(line), []).append(_digest(line))
    return {
        kind: {"count": len(some), "digests": base64.b64encode(b"".join(sorted(some))).decode()}
        for kind, some in sorted(digests.items())
    }


def contains(whole: Base, part: Base) -> bool:
    """Whether all that `part` counts is in `whole` too."""
    return _all_digests(part) <= _all_digests(whole)


def grown(memory: Memory, base: Base, lines: Iterable[str] | None = None) -> list[str]:
    """Return the lines that came since `base`.

    Args:
        memory: what has grown.
        base: what it held.
        lines: what it holds now; None: as it exports it.

    Raises:
        StoreError: what was there is not as it was: erased, pruned, revoked or lifted since.
    """
    now = lines_of(memory) if lines is None else list(lines)
    if not contains(base_of(now), base):
        raise StoreError(
            f"namespace {memory.namespace!r} changed what it held when it was forked",
            "a fork follows what is added, not what is erased, pruned, superseded, revoked or lifted",
            "Fork again, and make the changes there.",
        )
    return missing(now, base)


def missing(lines: Iterable[str], base: Base) -> list[str]:
    """Return the lines that are not in `base`, in their order."""
    before = _all_digests(base)
    return [line for line in lines if _digest(line) not in before]


def _kind(line: str) -> str:
    return str(json.loads(line)["type"])


def _digest(line: str) -> bytes:
    return hashlib.sha256(line.encode()).digest()[:_DIGEST_BYTES]


def _all_digests(base: Base) -> set[bytes]:
    """Return the hashes of all kinds; a line says its kind, so that no two kinds share one."""
    every = b"".join(base64.b64decode(held["digests"]) for held in base.values())
    return {every[at : at + _DIGEST_BYTES] for at in range(0, len(every), _DIGEST_BYTES)}
