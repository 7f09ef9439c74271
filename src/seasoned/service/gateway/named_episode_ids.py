"""Ids of new episodes that a session goes on with after the end of one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor

from seasoned.errors import SeasonedError
from seasoned.memory import Memory

__all__ = ["NamedEpisodeIds", "free_episode_id"]

_LOOKUP_S = 0.01
_MOST_NAMES = 10_000


def free_episode_id(memory: Memory, wanted: str, running: Collection[str]) -> str:
    """Return the wanted id, or else the first of `ID~2`, `ID~3`, ... under which no episode is stored or running.

    Where the store is down, an id counts as free: a conflict is found when the episode is stored.

    Example:
        >>> with Memory.open(":memory:") as memory:
        ...     free_episode_id(memory, "run-7", {"run-7", "run-7~2"})
        'run-7~3'
    """
    n = _n_stored(memory, wanted) + 1
    while _numbered(wanted, n) in running:
        n += 1
    return _numbered(wanted, n)


class NamedEpisodeIds:
    """Ids of the episodes that the clients of one process name.

    The store is asked for each name once, and waited for 10 ms: while it is locked no call waits for it, and an id
    counts as free. A conflict is found when the episode is stored.

    Args:
        memory: has the episodes of earlier processes.

    Not safe for threads.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._n_used: OrderedDict[str, int] = OrderedDict()  # by name, the least recently used first
        self._lookups = ThreadPoolExecutor(1, "seasoned-episode-ids")
        self._lookup: Future[int] | None = None

    def take(self, wanted: str, running: Collection[str]) -> str:
        """Return the wanted id, or else the first of `ID~2`, `ID~3`, ... that no episode has."""
        n = self._n_used.pop(wanted, None)
        n = (self._asked(wanted) if n is None else n) + 1
        while _numbered(wanted, n) in running:
            n += 1
        self._n_used[wanted] = n
        while len(self._n_used) > _MOST_NAMES:
            self._n_used.popitem(last=False)
        return _numbered(wanted, n)

    def _asked(self, wanted: str) -> int:
        """Return how many episodes of a name are stored; 0 if the store does not say so in time."""
        if self._lookup is not None and not self._lookup.done():  # an earlier one still waits
            return 0
        self._lookup = self._lookups.submit(_n_stored, self._memory, wanted)
        try:
            return self._lookup.result(_LOOKUP_S)
        except (TimeoutError, SeasonedError):
            return 0

    def close(self) -> None:
        """End the thread that asks the store."""
        self._lookups.shutdown(wait=False)


def _numbered(wanted: str, n: int) -> str:
    return wanted if n == 1 else f"{wanted}~{n}"


def _n_stored(memory: Memory, wanted: str) -> int:
    """Return how many of `ID`, `ID~2`, ... are stored; they are stored in this order, so few of many are looked up."""
    low, high = 0, 1  # stored, and not known yet
    while _is_stored(memory, _numbered(wanted, high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_stored(memory, _numbered(wanted, middle)) else (low, middle)
    return low


def _is_stored(memory: Memory, id_: str) -> bool:
    session = memory.session  # `Memory.get` waits for the recorders, and these may wait for the caller
    try:
        return bool(session.read(lambda: list(session.reader.episodes(id_=id_))))
    except SeasonedError:
        return False
