"""Which tasks there are, and which episodes had them, found by their words."""

from __future__ import annotations

from collections.abc import Callable

from seasoned.memory.store import Store
from seasoned.memory.texts import TextIndex

__all__ = ["Goals"]


class Goals:
    """Follows the tasks of a namespace's finished episodes; each distinct task is indexed once.

    Episodes that are set aside are among them: whoever reads their steps sees that.
    """

    def __init__(self, store: Store, namespace_id: int, features: Callable[[str], frozenset[str]]) -> None:
        self._store = store
        self._ns = namespace_id
        self._features = features
        self.clear()

    def clear(self) -> None:
        """Forget everything; something went that may be in here."""
        self._index = TextIndex(self._features)
        self._number_of: dict[str, int] = {}
        self._ordinals: list[list[int]] = []
        self._seen = -1

    def follow(self) -> None:
        """Take in what was committed since; inside a snapshot."""
        rows = self._store.execute(
            "SELECT ordinal, task FROM episode WHERE namespace_id = ? AND ordinal > ? AND ending <> 'aborted' "
            "ORDER BY ordinal",
            (self._ns, self._seen),
        ).fetchall()
        new: list[tuple[int, str]] = []
        for ordinal, task in rows:
            number = self._number_of.setdefault(task, len(self._ordinals))
            if number == len(self._ordinals):
                self._ordinals.append([])
                new.append((number, task))
            self._ordinals[number].append(ordinal)
            self._seen = max(self._seen, ordinal)
        self._index.add(new)

    def nearest(self, goal: str, n: int, exclude_task: str | None = None) -> list[int]:
        """Return the ordinals of n episodes whose tasks are most like `goal`, the most alike first, then the newest."""
        left_out = None if exclude_task is None else self._number_of.get(exclude_task)
        found: list[int] = []
        for number, _ in self._index.search(goal, n + 1):
            if number == left_out:
                continue
            found += reversed(self._ordinals[number][-(n - len(found)) :])
            if len(found) >= n:
                break
        return found
