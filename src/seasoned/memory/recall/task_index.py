"""Which tasks there are, and which episodes had them, found by their words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import chain, zip_longest

from seasoned.memory.index.text_index import TextIndex
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.types import ALTERNATIVE

__all__ = ["Goals"]

_REMEMBERED = 64


class Goals:
    """Follows the tasks of a namespace's episodes that count; each distinct task is indexed once.

    What is aborted or set aside, or has no steps, is not among them: when an episode ceases or begins to count, the
    epoch moves, and everything here is read again.
    """

    def __init__(self, store: Store, namespace_id: int, features: Callable[[str], frozenset[str]]) -> None:
        self._store = store
        self._ns = namespace_id
        self._features = features
        self.reset()

    def reset(self) -> None:
        """Drop everything: an episode of it may be deleted."""
        self._index = TextIndex(self._features)
        self._search = functools.lru_cache(_REMEMBERED)(self._index.search)  # each step of an episode has one goal
        self._number_of: dict[str, int] = {}
        self._executed: list[list[int]] = []
        self._alternatives: list[list[int]] = []
        self._last_ordinal = -1

    def catch_up(self) -> None:
        """Read the episodes of the commits since the last query; inside a snapshot."""
        rows = self._store.execute(
            "SELECT ordinal, task, arm, EXISTS (SELECT 1 FROM step WHERE step.namespace_id = episode.namespace_id "
            f"AND step.visit = ordinal << {STEP_BITS} AND live) "
            "FROM episode WHERE namespace_id = ? AND ordinal > ? ORDER BY ordinal",
            (self._ns, self._last_ordinal),
        ).fetchall()
        new: list[tuple[int, str]] = []
        for ordinal, task, arm, counts in rows:
            self._last_ordinal = ordinal
            if not counts:
                continue
            number = self._number_of.setdefault(task, len(self._executed))
            if number == len(self._executed):
                self._executed.append([])
                self._alternatives.append([])
                new.append((number, task))
            (self._alternatives if arm == ALTERNATIVE else self._executed)[number].append(ordinal)
        if new:
            self._index.add(new)
            self._search.cache_clear()

    def nearest(self, goal: str, n: int, exclude_task: str | None = None) -> list[int]:
        """Return the ordinals of n episodes whose tasks are most like `goal`, the most alike first, then the newest.

        Feedback makes an episode of one step of every answer that was not executed. Of one task these take every other
        place at most, or one where nothing was executed; more of them come where nothing else is left.
        """
        left_out = None if exclude_task is None else self._number_of.get(exclude_task)
        found: list[int] = []
        spare: list[int] = []
        for number, _ in self._search(goal, n + 1):  # each has an episode at least
            if number == left_out:
                continue
            executed, answers = self._executed[number][: -n - 1 : -1], self._alternatives[number][: -n - 1 : -1]
            n_beside = max(1, len(executed))
            taking_turns = chain.from_iterable(zip_longest(executed, answers[:n_beside]))
            found += (ordinal for ordinal in taking_turns if ordinal is not None)
            spare += answers[n_beside:]
            if len(found) >= n:
                break
        return [*found, *spare][:n]
