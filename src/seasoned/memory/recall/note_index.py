"""Plans and reasonings that were noted, found by their words and by their places; and what was retired."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from seasoned.memory.index.text_index import TextIndex
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import decoding
from seasoned.memory.values.selection import Selection
from seasoned.memory.writing.exclusions import active_selections
from seasoned.types import PLAN, REASONING, RETIRED, SHOWN, note_text_of

__all__ = ["Said", "Thoughts"]

_PARSED_AT_ONCE = 100

_PLACED = {PLAN: "note.step IS NULL", REASONING: "note.step IS NOT NULL"}
"""An SQL condition on `note`: that it stands where its kind is looked for, at an episode or at a step."""

Place = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Said:
    """What stands at some steps: plans by episode id, reasonings by episode id and step."""

    plans: dict[str, str] = field(default_factory=dict)
    reasonings: dict[tuple[str, int], str] = field(default_factory=dict)


class _Texts:
    """An index of notes' texts, of as many as were taken in when somebody asked."""

    def __init__(self, features: Callable[[str], frozenset[str]]) -> None:
        self.index = TextIndex(features)
        self.n_seen = 0


class _Kind:
    """Notes of one kind: where they stand, and, once somebody asks, their tasks and an index of their texts.

    Where one task has most of them, those of all others are indexed apart once it is left out: else each search without
    it would go through its notes.
    """

    def __init__(self, features: Callable[[str], frozenset[str]]) -> None:
        self.ids: list[str] = []
        self.number_of: dict[str, int] = {}
        self.at: dict[Place, tuple[str, ...]] = {}
        self.task_of: dict[int, str] = {}
        self.n_of: Counter[str] = Counter()
        self.texts = _Texts(features)
        self.others = "", _Texts(features)
        self.since = float("-inf")

    def take(self, rows: Iterable[Any]) -> int:
        """Take in what is not there yet, and return how many that were."""
        before = len(self.ids)
        for id_, episode_id, step, created_at in rows:
            if id_ not in self.number_of:
                self.number_of[id_] = len(self.ids)
                self.ids.append(id_)
                place = episode_id, step  # tuples of texts are soon out of the garbage collector's sight
                self.at[place] = (*self.at.get(place, ()), id_)
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
        self.n_resets = 0
        self.reset()

    def reset(self) -> None:
        """Drop everything: a note of it may be deleted."""
        self._kinds = {kind: _Kind(self._features) for kind in (PLAN, REASONING, RETIRED, SHOWN)}
        self.n_resets += 1
        self._n_noted: int | None = None
        self._aside: list[Selection] | None = None

    def catch_up(self) -> None:
        """Read the notes of the commits since the last query; costs what is new, and a count where more may be new."""
        self._aside = None
        row = self._store.execute("SELECT notes FROM namespace WHERE id = ?", (self._ns,)).fetchone()
        before, self._n_noted = self._n_noted, row[0]
        if before is not None and self._store.pending is None:
            n_new = sum(held.take(self._since(kind, held.since)) for kind, held in self._kinds.items())
            if n_new == row[0] - before:
                return
        for kind, held in self._kinds.items():
            n = self._store.execute(
                "SELECT count(*) FROM note WHERE namespace_id = ? AND kind = ?", (self._ns, kind)
            ).fetchone()[0]
            if n < len(held.ids):  # some went
                held = self._kinds[kind] = _Kind(self._features)  # noqa: PLW2901
                self.n_resets += 1
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
        if self._suspects():
            return set(ids) - {row[0] for row in self._standing(ids, "''")}
        rows = self._store.execute_in(
            "SELECT id FROM note WHERE namespace_id = ? AND revoked_at IS NOT NULL AND id IN {values}", (self._ns,), ids
        )
        return {row[0] for row in rows}

    # ------------------------------------------------------------------------------------------ by their words

    def nearest_plans(self, plan: str, n: int, exclude_task: str | None) -> list[int]:
        """Return the first visits of the n episodes that count whose plans are most like this one, best first."""
        return self._nearest(PLAN, plan, n, exclude_task)

    def nearest_reasonings(self, reasoning: str, n: int, exclude_task: str | None) -> list[int]:
        """Return the n visits that count whose reasonings are most like this one, the most alike first."""
        return self._nearest(REASONING, reasoning, n, exclude_task)

    def _nearest(self, kind: str, text: str, n: int, exclude_task: str | None) -> list[int]:
        held = self._kinds[kind]
        texts = self._texts(kind, held, exclude_task)
        wanted = n
        while True:  # what fell since it was indexed, or is left out, takes no place: until n are found, or all are
            found = [number for number, _ in texts.index.search(text, wanted)]
            ids = [
                held.ids[number] for number in found if exclude_task is None or held.task_of.get(number) != exclude_task
            ]
            visit_of = self._visits(kind, held, ids, exclude_task)
            if len(visit_of) >= n or len(found) < wanted:
                return [visit_of[id_] for id_ in ids if id_ in visit_of][:n]
            wanted *= 4

    def _visits(self, kind: str, held: _Kind, ids: list[str], exclude_task: str | None) -> dict[str, int]:
        """Return of these notes the visits of those that say what is thought there now: that stand, and are latest."""
        rows = self._counting(kind, ids, exclude_task)
        beside = {id_ for row in rows for id_ in held.at[row[1], row[2]]}
        if len(beside) > len(rows):
            rows = self._counting(kind, sorted(beside), exclude_task)
        latest = {row[3]: row[0] for row in rows}
        asked = set(ids)
        return {id_: visit for visit, id_ in latest.items() if id_ in asked}

    def _counting(self, kind: str, ids: list[str], exclude_task: str | None) -> list[Any]:
        """Return (id, episode id, step, visit) of those that stand at steps that count, the oldest first."""
        task, values = ("", ()) if exclude_task is None else ("AND task <> ? ", (exclude_task,))
        rows = self._store.execute_in(
            "SELECT note.id, episode_id, note.step, visit, source, note.created_at FROM note "
            "JOIN episode INDEXED BY episode_by_id ON episode.namespace_id = note.namespace_id "
            "AND episode.id = episode_id "
            "JOIN step ON step.namespace_id = note.namespace_id "
            f"AND visit = (ordinal << {STEP_BITS}) + coalesce(note.step, 0) "
            f"WHERE note.namespace_id = ? AND {_PLACED[kind]} AND revoked_at IS NULL AND live {task}"
            "AND note.id IN {values}",
            (self._ns, *values),
            ids,
        )
        return [row[:4] for row in self._unsuspected(rows)]

    def _texts(self, kind: str, held: _Kind, exclude_task: str | None) -> _Texts:
        """Return where to search, with what is new; see `_Kind`."""
        new = range(held.texts.n_seen, len(held.ids))
        self._index(kind, held, held.texts, new)
        if exclude_task is None or held.n_of[exclude_task] <= len(held.texts.index) / 2:
            return held.texts
        if held.others[0] != exclude_task:
            held.others = exclude_task, _Texts(self._features)
        others = held.others[1]
        new = range(others.n_seen, len(held.ids))
        self._index(kind, held, others, [number for number in new if held.task_of.get(number) != exclude_task])
        return others

    def _index(self, kind: str, held: _Kind, texts: _Texts, numbers: Iterable[int]) -> None:
        """Index what is new, but for what will never be found before the epoch moves."""
        rows = self._store.execute_in(
            f"SELECT id, episode_id, body FROM note WHERE namespace_id = ? AND {_PLACED[kind]} AND revoked_at IS NULL "
            "AND id IN {values}",
            (self._ns,),
            [held.ids[number] for number in numbers],
        )
        about = self._episodes({row[1] for row in rows})
        new: list[tuple[int, str]] = []
        for (id_, episode_id, _), text in zip(rows, _texts(self._store.path, [row[2] for row in rows]), strict=True):
            task, aside = about.get(episode_id, (None, False))
            if not aside:
                number = held.number_of[id_]
                new.append((number, text))
                if task is not None and number not in held.task_of:
                    held.task_of[number] = task
                    held.n_of[task] += 1
        texts.index.add(sorted(new))
        texts.n_seen = len(held.ids)

    def _episodes(self, episode_ids: Collection[str]) -> dict[str, tuple[str, bool]]:
        """Return of these episodes the task, and whether they do not count; one that has no number yet may."""
        rows = self._store.execute_in(
            "SELECT id, task, ordinal >= 0 AND NOT EXISTS (SELECT 1 FROM step "
            "WHERE step.namespace_id = episode.namespace_id "
            f"AND visit = ordinal << {STEP_BITS} AND live) FROM episode INDEXED BY episode_by_id "
            "WHERE namespace_id = ? AND id IN {values}",
            (self._ns,),
            sorted(episode_ids),
        )
        return {id_: (task, bool(aside)) for id_, task, aside in rows}

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
        rows = self._standing(wanted)
        for (_, episode_id, step, kind, _), text in zip(
            rows, _texts(self._store.path, [row[4] for row in rows]), strict=True
        ):
            if kind == PLAN:
                said.plans[episode_id] = text
            elif step is not None:
                said.reasonings[episode_id, step] = text
        return said

    def _standing(self, ids: list[str], body: str = "body") -> list[tuple[str, str, int | None, str, str]]:
        """Return (id, episode id, step, kind, body) of those that nobody took back or set aside, the oldest first."""
        rows = self._store.execute_in(
            f"SELECT id, episode_id, step, kind, {body}, source, created_at FROM note "
            "WHERE namespace_id = ? AND revoked_at IS NULL AND id IN {values}",
            (self._ns,),
            ids,
        )
        return [row[:5] for row in self._unsuspected(rows)]

    def _unsuspected(self, rows: list[Any]) -> list[Any]:
        """Return rows that end with source and time, the oldest first, without those whose source is set aside."""
        rows.sort(key=lambda row: (row[-1], row[0]))
        aside = self._suspects() if rows else []
        return [row for row in rows if not any(one.covers_event(row[-2], row[-1]) for one in aside)] if aside else rows

    def _suspects(self) -> list[Selection]:
        """Return what can set a note aside; read once per commit."""
        if self._aside is None:
            self._aside = active_selections(self._store, self._ns, of_events=True)
        return self._aside


def _texts(path: str, bodies: list[str]) -> list[str]:
    """Return the texts of notes' bodies; one without any is found by nothing."""
    found: list[str] = []
    for start in range(0, len(bodies), _PARSED_AT_ONCE):  # far quicker than one by one
        with decoding(path):
            parsed = json.loads(f"[{','.join(bodies[start : start + _PARSED_AT_ONCE])}]")
        found += [note_text_of(body) or "" for body in parsed]
    return found
