"""Plans and reasonings that were noted, found by their words and by their places; and what was retired."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from seasoned.memory.store import Store
from seasoned.memory.texts import TextIndex
from seasoned.memory.writer import active_selections

__all__ = ["Said", "Thoughts"]

PLAN, REASONING, RETIRED, SHOWN = "plan", "reasoning", "retired", "shown"

Place = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Said:
    """What stands at some steps: plans by episode id, reasonings by episode id and step."""

    plans: dict[str, str] = field(default_factory=dict)
    reasonings: dict[tuple[str, int], str] = field(default_factory=dict)


class _Kind:
    """Notes of one kind: where they stand, and, once somebody asks, an index of their texts."""

    def __init__(self, features: Callable[[str], frozenset[str]]) -> None:
        self.ids: list[str] = []
        self.number_of: dict[str, int] = {}
        self.at: dict[Place, list[str]] = {}
        self.index = TextIndex(features)
        self.n_indexed = 0
        self.since = float("-inf")

    def take(self, rows: Iterable[Any]) -> int:
        """Take in what is not there yet, and return how many that were."""
        before = len(self.ids)
        for id_, episode_id, step, created_at in rows:
            if id_ not in self.number_of:
                self.number_of[id_] = len(self.ids)
                self.ids.append(id_)
                self.at.setdefault((episode_id, step), []).append(id_)
                self.since = max(self.since, created_at)
        return len(self.ids) - before


class Thoughts:
    """Follows the notes of one namespace. Every method runs inside a snapshot.

    Only where notes stand is kept; their texts are read when they are asked for, so that one that was revoked is never
    given out. A text is indexed when the first query by its kind comes.
    """

    def __init__(self, store: Store, namespace_id: int, features: Callable[[str], frozenset[str]]) -> None:
        self._store = store
        self._ns = namespace_id
        self._features = features
        self.generation = 0
        self.clear()

    def clear(self) -> None:
        """Forget everything; something went that may be in here."""
        self._kinds = {kind: _Kind(self._features) for kind in (PLAN, REASONING, RETIRED, SHOWN)}
        self.generation += 1
        self._n_noted: int | None = None

    def follow(self) -> None:
        """Take in what was committed since; costs what is new, and a count where that may not be all."""
        row = self._store.execute("SELECT notes FROM namespace WHERE id = ?", (self._ns,)).fetchone()
        before, self._n_noted = self._n_noted, row[0]
        if before is not None and not self._store.derives_later:
            n_new = sum(held.take(self._since(kind, held.since)) for kind, held in self._kinds.items())
            if n_new == row[0] - before:
                return
        for kind, held in self._kinds.items():
            n = self._store.execute(
                "SELECT count(*) FROM note WHERE namespace_id = ? AND kind = ?", (self._ns, kind)
            ).fetchone()[0]
            if n < len(held.ids):  # some went
                held = self._kinds[kind] = _Kind(self._features)  # noqa: PLW2901
                self.generation += 1
            if n > len(held.ids):
                held.take(self._since(kind, held.since))
            if n > len(held.ids):  # some came in late: said elsewhere, or by a clock that is behind
                held.take(self._since(kind, float("-inf")))

    def _since(self, kind: str, at: float) -> list[Any]:
        return self._store.execute(
            "SELECT id, episode_id, step, created_at FROM note WHERE namespace_id = ? AND kind = ? AND created_at >= ? "
            "ORDER BY created_at, id",
            (self._ns, kind, max(at, -1e300)),
        ).fetchall()

    def shown_ids(self, n_read: int) -> list[str]:
        """Return the ids of the notes of what was shown, from a number on."""
        return self._kinds[SHOWN].ids[n_read:]

    def retired(self) -> list[tuple[str, int]]:
        """Return which steps are retired."""
        standing = self._standing(self._kinds[RETIRED].ids, "''")
        return [(episode_id, step) for _, episode_id, step, *_ in standing if step is not None]

    def fallen(self, ids: list[str]) -> set[str]:
        """Return which of these notes were taken back or set aside."""
        if active_selections(self._store, self._ns):
            return set(ids) - {row[0] for row in self._standing(ids, "''")}
        rows = self._store.execute_in(
            "SELECT id FROM note WHERE namespace_id = ? AND revoked_at IS NOT NULL AND id IN {values}",
            (self._ns,), ids,
        )  # fmt: skip
        return {row[0] for row in rows}

    # ------------------------------------------------------------------------------------------ by their words

    def nearest_plans(self, plan: str, n: int) -> list[str]:
        """Return the ids of the n episodes whose plans are most like this one, the most alike first."""
        return [episode_id for episode_id, _ in self._nearest(PLAN, plan, n)]

    def nearest_reasonings(self, reasoning: str, n: int) -> list[tuple[str, int]]:
        """Return episode id and step of the n most similar reasonings, the most alike first."""
        return [(episode_id, step) for episode_id, step in self._nearest(REASONING, reasoning, n) if step is not None]

    def _nearest(self, kind: str, text: str, n: int) -> list[Place]:
        held = self._kinds[kind]
        self._index(held)
        wanted = n
        while True:
            found = [held.ids[number] for number, _ in held.index.search(text, wanted)]
            standing = {id_: (episode_id, step) for id_, episode_id, step, *_ in self._standing(found, "''")}
            if len(standing) >= n or len(found) < wanted:
                return [standing[id_] for id_ in found if id_ in standing][:n]
            wanted *= 4

    def _index(self, held: _Kind) -> None:
        new = held.ids[held.n_indexed :]
        rows = self._store.execute_in("SELECT id, body FROM note WHERE namespace_id = ? AND id IN {values}",
                                      (self._ns,), new)  # fmt: skip
        held.index.add(sorted((held.number_of[id_], _text(body)) for id_, body in rows))
        held.n_indexed = len(held.ids)

    # ------------------------------------------------------------------------------------------ by their places

    def at(self, places: Collection[tuple[str, int]]) -> Said:
        """Return what stands at these steps, and at their episodes; of several plans or reasonings the latest."""
        said = Said()
        plans, reasonings = (self._kinds[kind].at for kind in (PLAN, REASONING))
        wanted: list[str] = []
        for place in set(places):
            wanted += reasonings.get(place, ())
        for episode_id in {episode_id for episode_id, _ in places}:
            wanted += plans.get((episode_id, None), ())
        for _, episode_id, step, kind, body in self._standing(wanted):
            if kind == PLAN:
                said.plans[episode_id] = _text(body)
            elif step is not None:
                said.reasonings[episode_id, step] = _text(body)
        return said

    def _standing(self, ids: list[str], body: str = "body") -> list[tuple[str, str, int | None, str, str]]:
        """Return (id, episode id, step, kind, body) of those that nobody took back or set aside, the oldest first."""
        rows = self._store.execute_in(
            f"SELECT id, episode_id, step, kind, {body}, source, created_at FROM note "
            "WHERE namespace_id = ? AND revoked_at IS NULL AND id IN {values}",
            (self._ns,), ids,
        )  # fmt: skip
        suspects = active_selections(self._store, self._ns) if rows else []
        rows.sort(key=lambda row: (row[6], row[0]))
        return [row[:5] for row in rows if not any(one.covers_event(row[5], row[6]) for one in suspects)]


def _text(body: str) -> str:
    """Return the text of a note's body; one without any is found by nothing."""
    text = json.loads(body).get("text")
    return text if isinstance(text, str) else ""
