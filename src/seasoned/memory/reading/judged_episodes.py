"""Episodes with new feedback events: by them a cache finds the steps that awaited feedback and count now.

An episode that awaited feedback has a place below the watermarks. When an event judges it, its steps become live
without a new epoch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import decode_ints, decoding

__all__ = ["SetArrays", "joined_sets", "judged_after", "set_arrays", "sets_of"]

_LAST_VISIT = 2**63 - 1

Ints = np.ndarray[Any, np.dtype[Any]]
SetArrays = tuple[Ints, Ints, Ints, Ints]
"""Feature sets: ids [n], sizes [n], the tokens of all one after the other, and last visits [n]."""


def judged_after(store: Store, namespace_id: int, event: int, visit: int = _LAST_VISIT) -> list[int]:
    """Return the ordinals, ascending, of the episodes up to a visit that have a feedback event above `event`."""
    rows = store.execute(
        f"SELECT DISTINCT visit >> {STEP_BITS} FROM feedback WHERE namespace_id = ? AND seq > ? AND visit <= ?",
        (namespace_id, event, visit),
    ).fetchall()
    return sorted(decode_ints(store.path, "ordinal", rows))


def sets_of(store: Store, namespace_id: int, ordinals: Sequence[int]) -> Iterator[SetArrays]:
    """Yield those feature sets of these episodes' steps that have a live visit."""
    sets: set[int] = set()
    for ordinal in ordinals:
        rows = store.execute(
            "SELECT DISTINCT set_id FROM step WHERE namespace_id = ? AND visit BETWEEN ? AND ?",
            (namespace_id, ordinal << STEP_BITS, (ordinal + 1 << STEP_BITS) - 1),
        ).fetchall()
        sets.update(decode_ints(store.path, "set_id", rows))
    found = store.execute_in(
        "SELECT id, tokens, last_visit FROM feature_set WHERE namespace_id = ? AND last_visit IS NOT NULL "
        "AND id IN {values}",
        (namespace_id,),
        sorted(sets),
    )
    if found:
        yield set_arrays(store.path, sorted(tuple(row) for row in found))


def set_arrays(path: str, rows: Sequence[Any]) -> SetArrays:
    """Return rows of (id, tokens, last visit) as arrays. Raises: IntegrityError: a value is damaged."""
    with decoding(path):
        # By columns without zip(*rows): one iterator a row would set off the garbage collector.
        ids, members, visits = ([row[column] for row in rows] for column in range(3))
        return (
            np.frombuffer(array("q", ids), dtype=np.int64),
            np.array(list(map(len, members)), dtype=np.int32) // 4,
            np.frombuffer(b"".join(members), dtype="<u4"),
            np.frombuffer(array("q", visits), dtype=np.int64),
        )


def joined_sets(parts: Sequence[SetArrays]) -> SetArrays:
    """Return feature sets that were read in parts."""
    ids, sizes, tokens, visits = map(np.concatenate, zip(*parts, strict=True))
    return ids, sizes, tokens, visits
