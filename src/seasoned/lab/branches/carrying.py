"""What one branch got since, added to the other."""

from __future__ import annotations

import json
from collections.abc import Sequence

from seasoned.memory import Memory

__all__ = ["carry"]


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
