"""The ordinals of the episodes of one namespace, cached by episode id until the epoch moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from seasoned.memory.reading.follower import Change, CommitCursor, CommitFollower
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS
from seasoned.memory.values.corruption import decode
from seasoned.types import StepRef

__all__ = ["EpisodeEntry", "EpisodeIds"]


class EpisodeEntry(NamedTuple):
    """An episode's ordinal, its task, and its number of steps."""

    ordinal: int
    task: str
    steps: int


class _Row(NamedTuple):
    id: str
    ordinal: int
    task: str
    steps: int


class EpisodeIds:
    """Looks up episodes by their ids. Every method runs inside a snapshot, after `catch_up`.

    A pending episode has no ordinal yet; it is looked up again the next time.
    """

    def __init__(self, store: Store, namespace_id: int, follower: CommitFollower) -> None:
        self._store = store
        self._ns = namespace_id
        self._cursor = CommitCursor(follower)
        self._entries: dict[str, EpisodeEntry] = {}

    def catch_up(self) -> None:
        """Drop the cached ids if the epoch moved."""
        if self._cursor.change() is Change.RESET:
            self._entries.clear()
        self._cursor.advance()

    def learn(self, episode_id: str, entry: EpisodeEntry) -> None:
        """Add an entry that another query has read."""
        self._entries[episode_id] = entry

    def of(self, episode_ids: Collection[str]) -> dict[str, EpisodeEntry]:
        """Return the entries of those of these episodes that are derived, in this order."""
        unknown = sorted({id_ for id_ in episode_ids if id_ not in self._entries})
        rows = self._store.execute_in(
            "SELECT id, ordinal, task, steps FROM episode INDEXED BY episode_by_id WHERE namespace_id = ? "
            "AND ordinal >= 0 AND id IN {values}",
            (self._ns,),
            unknown,
        )
        for row in decode(self._store.path, rows, _Row):
            self._entries[row.id] = EpisodeEntry(row.ordinal, row.task, row.steps)
        return {id_: self._entries[id_] for id_ in episode_ids if id_ in self._entries}

    def visits(self, places: Iterable[StepRef]) -> dict[int, StepRef]:
        """Return places by their visits, as far as their episodes are derived."""
        places = list(places)
        ordinal_of = {id_: entry.ordinal for id_, entry in self.of({id_ for id_, _ in places}).items()}
        return {
            ordinal_of[id_] << STEP_BITS | step: (id_, step)
            for id_, step in places
            if id_ in ordinal_of and 0 <= step < MAX_STEPS
        }
