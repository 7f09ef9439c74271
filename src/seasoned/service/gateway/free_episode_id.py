"""Id of a new episode that a session goes on with after the end of one."""

from __future__ import annotations

from collections.abc import Collection

from seasoned.errors import SeasonedError
from seasoned.memory import Memory

__all__ = ["free_episode_id"]


def free_episode_id(memory: Memory, wanted: str, running: Collection[str]) -> str:
    """Return the wanted id, or else the first of `ID~2`, `ID~3`, ... under which no episode is stored or running.

    Where the store is down, an id counts as free: a conflict is found when the episode is stored.

    Example:
        >>> with Memory.open(":memory:") as memory:
        ...     free_episode_id(memory, "run-7", {"run-7", "run-7~2"})
        'run-7~3'
    """
    id_, n = wanted, 1
    while id_ in running or _is_stored(memory, id_):
        n += 1
        id_ = f"{wanted}~{n}"
    return id_


def _is_stored(memory: Memory, id_: str) -> bool:
    try:
        memory.get(id_)
    except SeasonedError:
        return False
    return True
