"""What one branch got since, added to the other; and what is known of copies of either."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence

from seasoned.lab.forks.snapshot_diff import Base, base_of, contains, lines_of, missing
from seasoned.memory import Memory
from seasoned.memory.parts.retention import Copy
from seasoned.memory.stores.base import open_store
from seasoned.memory.transfer.manifest import find_entry

__all__ = ["carry", "carry_copies", "carry_rest"]


def carry(memory: Memory, lines: Sequence[str]) -> int:
    """Add exported lines to a memory in one transaction; return how many episodes were new.

    What is said of episodes that this branch has parted with is left out.

    Raises:
        InputError: an id is there with other content; nothing was added.
    """
    if not lines:
        return 0
    records = [json.loads(line) for line in lines]
    there = {str(episode.id) for episode in memory.episodes()}
    there |= {record["id"] for record in records if record["type"] == "episode"}
    wanted = [
        line
        for line, record in zip(lines, records, strict=True)
        if record.get("episode_id") is None or record["episode_id"] in there
    ]
    return memory.import_lines(wanted)[0]


def carry_rest(old: Memory, new: Memory, before: Base) -> tuple[int, bool]:
    """Carry what a replaced memory got since `before`, and leave alone what the new one has under the same ids.

    Returns:
        How many episodes were new, and whether that was all: nothing was taken back, or said otherwise, meanwhile.
    """
    lines = lines_of(old)
    there = {_name(line): line for line in lines_of(new)}
    since = missing(lines, before)
    all_of_it = contains(base_of(lines), before) and all(there.get(_name(line), line) == line for line in since)
    return carry(new, [line for line in since if _name(line) not in there]), all_of_it


def _name(line: str) -> tuple[str, str]:
    record = json.loads(line)
    return record["type"], record["id"]


def carry_copies(copies: Iterable[Copy], path: str | os.PathLike[str], namespace: str) -> None:
    """Have a namespace know of these copies, so that an erasure names them; what it knows of already is left alone."""
    with contextlib.closing(open_store(path, create=False, read_only=False)) as store:
        wanted = list(copies)

        def attempt() -> None:
            with store.snapshot():
                id_ = find_entry(store, namespace).id
            with store.transaction(id_):
                rows = store.execute("SELECT kind, path, created_at FROM copy WHERE namespace_id = ?", (id_,))
                known = {Copy(*row) for row in rows.fetchall()}
                new = [one for one in dict.fromkeys(wanted) if one not in known]
                if not new:
                    return
                counted = "UPDATE namespace SET copies = copies + ? WHERE id = ?"
                store.execute(counted, (len(new), id_))
                last = store.execute("SELECT copies FROM namespace WHERE id = ?", (id_,)).fetchone()[0]
                first = last - len(new) + 1
                store.insert(
                    "copy", [(id_, first + n, one.kind, one.path, one.created_at) for n, one in enumerate(new)]
                )

        store.retrying(attempt)
