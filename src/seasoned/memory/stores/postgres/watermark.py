"""The low watermark of pending episodes, from PostgreSQL's snapshots.

A pending episode has the number of its transaction. A snapshot lists the open transactions, so it bounds the numbers
that may still become visible.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from seasoned.memory.stores.postgres.schema import FIRST_ARRIVAL

__all__ = ["FULL_SCAN_S", "VERSION", "SnapshotBounds", "Watermark", "parse_snapshot"]

FULL_SCAN_S = 60.0
"""How often a scan begins at the first number, for pending episodes that no transaction of this server has made."""

# `EXISTS` may be answered from the index of the ids, by reading the whole namespace; an ordered subquery is not. In a
# Citus cluster each node numbers by transactions of its own, and this snapshot does not cover those.
VERSION = (
    "SELECT revision, epoch, (SELECT ordinal FROM episode "
    "WHERE namespace_id = ? AND ordinal >= ? AND ordinal < 0 ORDER BY ordinal LIMIT 1), "
    "CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus') THEN NULL "
    "ELSE pg_current_snapshot()::text END, pg_is_in_recovery() FROM namespace WHERE id = ?"
)


@dataclass(frozen=True, slots=True)
class SnapshotBounds:
    """The bounds of pending numbers in one snapshot; see `PendingBounds`. The defaults: nothing is known."""

    low: int = FIRST_ARRIVAL
    high: int = FIRST_ARRIVAL
    in_progress: tuple[int, ...] | None = None


def parse_snapshot(snapshot: str | None, *, standby: bool) -> SnapshotBounds:
    """Parse `xmin:xmax:xip,...`. A standby's snapshot does not list the transactions that are in progress.

    None, on Citus: nothing is known of any number.

    Example:
        >>> parse_snapshot("10:14:10,12", standby=False).in_progress == (FIRST_ARRIVAL + 10, FIRST_ARRIVAL + 12)
        True
        >>> parse_snapshot("10:14:", standby=True).in_progress is None
        True
    """
    if snapshot is None:
        return SnapshotBounds()
    low, high, running = snapshot.split(":")
    in_progress = tuple(FIRST_ARRIVAL + int(number) for number in running.split(",") if number)
    return SnapshotBounds(FIRST_ARRIVAL + int(low), FIRST_ARRIVAL + int(high), None if standby else in_progress)


class Watermark:
    """For each namespace the number below which no pending episode is left: an old snapshot preserves dead rows there.

    A restored dump, or a replica's subscription, may bring pending episodes below it all the same. So a scan begins at
    the first number every `full_scan_s` seconds.
    """

    def __init__(self) -> None:
        self.full_scan_s = FULL_SCAN_S
        self._lowest: dict[tuple[int, int], tuple[int, float]] = {}

    def start(self, generation: int, namespace_id: int) -> int:
        """Return the number at which the next scan begins."""
        lowest, since = self._lowest.get((generation, namespace_id), (FIRST_ARRIVAL, 0.0))
        return FIRST_ARRIVAL if time.monotonic() - since > self.full_scan_s else lowest

    def advance(self, generation: int, namespace_id: int, start: int, first: int | None, low: int) -> None:
        """Record the result of a scan from `start`: the `first` pending number, and the snapshot's `low` bound."""
        key = generation, namespace_id
        since = time.monotonic() if start == FIRST_ARRIVAL or key not in self._lowest else self._lowest[key][1]
        self._lowest[key] = low if first is None else min(first, low), since

    def reset(self, generation: int, namespace_id: int) -> None:
        """Begin the next scan at the first number."""
        self._lowest.pop((generation, namespace_id), None)
