"""Which numbers the episodes of one namespace have, kept in RAM until the epoch moves."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import NamedTuple

from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS

__all__ = ["Numbered", "Numbers"]

Place = tuple[str, int]


class Numbered(NamedTuple):
    """An episode's number, its task, and how many steps it has."""

    ordinal: int
    task: str
    steps: int


class Numbers:
    """Looks up episodes by their ids. Every method runs inside a snapshot, after `follow`.

    What has arrived, and is not folded, has no number yet; it is looked for again next time.

    Attributes:
        epoch: moves with the namespace's, and where another server may have answered.
        n_events: how many events of feedback there have ever been.
    """

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id
        self._of: dict[str, Numbered] = {}
        self._seen: Hashable = None
        self.epoch: Hashable = None
        self.n_events = 0

    def follow(self, generation: int | None, mark: Hashable) -> None:
        """Take in what was committed since: by which connection, and up to which mark."""
        if mark == self._seen:
            return
        row = self._store.execute("SELECT epoch, events FROM namespace WHERE id = ?", (self._ns,)).fetchone()
        if (generation, row[0]) != self.epoch:
            self._of.clear()
        self.epoch, self.n_events = (generation, row[0]), row[1]
        self._seen = mark

    def learn(self, episode_id: str, numbered: Numbered) -> None:
        """Keep what somebody has read of an episode."""
        self._of[episode_id] = numbered

    def of(self, episode_ids: Collection[str]) -> dict[str, Numbered]:
        """Return those of these episodes that are stored and have a number, in this order."""
        unknown = sorted({id_ for id_ in episode_ids if id_ not in self._of})
        for id_, *numbered in self._store.execute_in(
            "SELECT id, ordinal, task, steps FROM episode INDEXED BY episode_by_id WHERE namespace_id = ? "
            "AND ordinal >= 0 AND id IN {values}",
            (self._ns,),
            unknown,
        ):
            self._of[id_] = Numbered(*numbered)
        return {id_: self._of[id_] for id_ in episode_ids if id_ in self._of}

    def visits(self, places: Iterable[Place]) -> dict[int, Place]:
        """Return places by their visits, as far as their episodes have numbers."""
        places = list(places)
        ordinal_of = {id_: numbered.ordinal for id_, numbered in self.of({id_ for id_, _ in places}).items()}
        return {
            ordinal_of[id_] << STEP_BITS | step: (id_, step)
            for id_, step in places
            if id_ in ordinal_of and 0 <= step < MAX_STEPS
        }
