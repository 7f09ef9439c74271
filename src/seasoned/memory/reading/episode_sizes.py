"""Episodes that fit into a number of bytes, found without reading their texts."""

from __future__ import annotations

import sys

from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import decode_ints
from seasoned.types import Episode

__all__ = ["episodes_within"]

_SHARE_OF_ONE = 8


def episodes_within(store: Store, reader: Reader, task: str | None, last: int | None, max_bytes: int) -> list[Episode]:
    """Return the latest stored episodes whose texts together take at most `max_bytes`, in commit order.

    An episode that takes more than an eighth of `max_bytes` is left out, and counts as an eighth. The sizes are those
    of states, actions and priors, in UTF-8. Inside a snapshot.

    Args:
        store: an open store.
        reader: of the namespace.
        task: of the episodes; None: of all tasks.
        last: of at most so many episodes, those among them that are left out; None: of all.
        max_bytes: see above.

    Raises:
        IntegrityError: a stored value is damaged.
    """
    rows = store.execute(
        f"SELECT ordinal FROM episode WHERE namespace_id = ? AND ordinal >= 0{'' if task is None else ' AND task = ?'} "
        "ORDER BY ordinal DESC LIMIT ?",
        (reader.namespace_id, *([] if task is None else [task]), sys.maxsize if last is None else last),
    ).fetchall()
    fitting: list[int] = []
    left, most = max_bytes, max_bytes // _SHARE_OF_ONE
    for ordinal in decode_ints(store.path, "ordinal", rows):
        size = _size_up_to(store, reader.namespace_id, ordinal, most)
        left -= min(size, most)
        if left < 0:
            break
        if size <= most:
            fitting.append(ordinal)
    found = (reader.episodes(ordinals=range(one, one + 1)) for one in reversed(fitting))
    return [episode for stored in found for *_, episode in stored]


def _size_up_to(store: Store, namespace_id: int, ordinal: int, most: int) -> int:
    """Return the bytes of an episode; once they are more than `most`, the rest is not read."""
    size = 0
    for row in store.execute(
        "SELECT octet_length(state.text) + octet_length(action.text) + octet_length(coalesce(logprobs, '')) FROM step "
        "JOIN state ON state.namespace_id = step.namespace_id AND state.id = state_id "
        "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
        "LEFT JOIN prior ON prior.namespace_id = step.namespace_id AND prior.id = prior_id "
        "WHERE step.namespace_id = ? AND visit BETWEEN ? AND ? ORDER BY visit",
        (namespace_id, ordinal << STEP_BITS, (ordinal + 1 << STEP_BITS) - 1),
    ):
        size += decode_ints(store.path, "size", [row])[0]
        if size > most:
            break
    return size
