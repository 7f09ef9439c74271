"""Where a look for arrivals begins, and what a snapshot of PostgreSQL says of those that may come late."""

from __future__ import annotations

import time
from dataclasses import dataclass

from seasoned.memory.stores.postgres.schema import FIRST_ARRIVAL

__all__ = ["LOOK_AGAIN_S", "VERSION", "Looks", "Numbers", "numbers_of"]

LOOK_AGAIN_S = 60.0
"""How often a look begins at the first number, for arrivals that no transaction of this server has made."""

# `EXISTS` may be answered from the index of the ids, by reading the whole namespace; what is ordered is not. In a Citus
# cluster each node numbers by transactions of its own, of which this snapshot says nothing.
VERSION = (
    "SELECT revision, epoch, (SELECT ordinal FROM episode "
    "WHERE namespace_id = ? AND ordinal >= ? AND ordinal < 0 ORDER BY ordinal LIMIT 1), "
    "CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus') THEN NULL "
    "ELSE pg_current_snapshot()::text END, pg_is_in_recovery() FROM namespace WHERE id = ?"
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a snapshot says of arrivals' numbers; see `Version`."""

    settled: int = FIRST_ARRIVAL
    reached: int = FIRST_ARRIVAL
    late: tuple[int, ...] | None = None


def numbers_of(snapshot: str | None, *, standby: bool) -> Numbers:
    """Read `xmin:xmax:xip,...`. A standby's snapshot does not list the transactions that are in progress.

    None: nothing is known of any number.

    Example:
        >>> numbers_of("10:14:10,12", standby=False).late == (FIRST_ARRIVAL + 10, FIRST_ARRIVAL + 12)
        True
        >>> numbers_of("10:14:", standby=True).late is None
        True
    """
    if snapshot is None:
        return Numbers()
    low, high, running = snapshot.split(":")
    late = tuple(FIRST_ARRIVAL + int(number) for number in running.split(",") if number)
    return Numbers(FIRST_ARRIVAL + int(low), FIRST_ARRIVAL + int(high), None if standby else late)


class Looks:
    """Remembers for each namespace below which number nothing waits: an old snapshot keeps dead rows there.

    A dump that is loaded, or a replica's subscription, may bring arrivals there all the same. So from time to time a
    look begins at the first number.
    """

    def __init__(self) -> None:
        self.again_s = LOOK_AGAIN_S
        self._lowest: dict[tuple[int, int], tuple[int, float]] = {}

    def begin(self, generation: int, namespace_id: int) -> int:
        """Return the number at which a look begins."""
        lowest, since = self._lowest.get((generation, namespace_id), (FIRST_ARRIVAL, 0.0))
        return FIRST_ARRIVAL if time.monotonic() - since > self.again_s else lowest

    def ended(self, generation: int, namespace_id: int, begun: int, waiting: int | None, settled: int) -> None:
        """Take a look's answer in: the lowest number that waits, and below which nothing becomes visible any more."""
        key = generation, namespace_id
        since = time.monotonic() if begun == FIRST_ARRIVAL or key not in self._lowest else self._lowest[key][1]
        self._lowest[key] = settled if waiting is None else min(waiting, settled), since

    def forget(self, generation: int, namespace_id: int) -> None:
        """Have the next look begin at the first number."""
        self._lowest.pop((generation, namespace_id), None)
