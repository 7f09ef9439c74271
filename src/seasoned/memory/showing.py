"""Which steps were shown where, from the notes of the kind "shown"; nothing is kept of what followed there."""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

from seasoned.memory.outside import Outside
from seasoned.memory.reader import Reader
from seasoned.memory.schema import MAX_STEPS, STEP_BITS
from seasoned.memory.store import Store
from seasoned.memory.thoughts import Thoughts
from seasoned.types.showing import Beside, Showing

__all__ = ["Shown"]

_MOST_KNOWN = 100_000
_PARSED_AT_ONCE = 100

Place = tuple[str, int]
Pair = tuple[int, int]
"""A distinct state and an action, by their numbers."""


class Shown:
    """Follows what was shown in one namespace. Every method runs inside a snapshot, after `Thoughts.follow`.

    Kept is what cannot change before the epoch moves: where each step was shown, and which state and action it is.
    Returns, and which notes stand, are read when asked for, and kept until the next commit.
    """

    def __init__(self, store: Store, namespace_id: int, thoughts: Thoughts) -> None:
        self._store = store
        self._ns = namespace_id
        self._reader = Reader(store, namespace_id)
        self._thoughts = thoughts
        self._generation = thoughts.generation
        self._clear()

    def _clear(self) -> None:
        self._n_read = 0
        self._notes_at: dict[Place, tuple[tuple[str, tuple[Place, ...]], ...]] = {}
        self._shown_at: dict[Place, dict[Place, None]] = {}
        self._unpaired: dict[Place, None] = {}
        self._alike: dict[Pair, list[Place]] = {}
        self._episode: dict[str, tuple[int, str]] = {}
        self._pair_of: dict[Place, Pair] = {}
        self._known: dict[Hashable, tuple[Showing, ...]] = {}
        self._is_paired = False

    def committed(self) -> None:
        """Something was committed: what was read of returns may be old."""
        if self._generation != self._thoughts.generation:
            self._generation = self._thoughts.generation
            self._clear()
        self._known.clear()
        self._is_paired = False

    def _follow(self) -> None:
        new = self._thoughts.shown_ids(self._n_read)
        self._n_read += len(new)
        for start in range(0, len(new), _PARSED_AT_ONCE):
            rows = self._store.execute_in(
                "SELECT id, episode_id, step, body FROM note WHERE namespace_id = ? AND id IN {values}",
                (self._ns,), new[start : start + _PARSED_AT_ONCE],
            )  # fmt: skip
            bodies = json.loads(f"[{','.join(row[3] for row in rows)}]")  # far quicker than one by one
            for (id_, episode_id, step, _), body in zip(rows, bodies, strict=True):
                examples = _examples(body)
                if examples:
                    self._take(id_, (episode_id, step or 0), examples)

    def _take(self, note_id: str, place: Place, examples: tuple[Place, ...]) -> None:
        # Tuples of what is no container are soon out of the garbage collector's sight; lists would not be.
        self._notes_at[place] = (*self._notes_at.get(place, ()), (note_id, examples))
        for example in examples:
            at = self._shown_at.get(example)
            if at is None:
                self._shown_at[example] = {place: None}
                self._unpaired[example] = None
            else:
                at[place] = None

    @property
    def places(self) -> list[Place]:
        """Every step that was shown."""
        self._follow()
        return list(self._shown_at)

    def pairs(self, places: Iterable[Place]) -> dict[Place, Pair]:
        """Return of stored steps that count which distinct state and action they are."""
        places = list(places)
        missing = [place for place in places if place not in self._pair_of]
        if missing:
            at = self._visits(missing)
            rows = self._store.execute_in(
                "SELECT visit, set_id, key_id FROM step "
                "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
                "WHERE step.namespace_id = ? AND live AND visit IN {values}",
                (self._ns,), sorted(at),
            )  # fmt: skip
            self._pair_of |= {at[visit]: (set_id, key_id) for visit, set_id, key_id in rows}
        return {place: self._pair_of[place] for place in places if place in self._pair_of}

    def learn(self, place: Place, ordinal: int, task: str, pair: Pair) -> None:
        """Keep what somebody has read of a step that counts."""
        self._episode[place[0]] = ordinal, task
        self._pair_of[place] = pair

    def _visits(self, places: Iterable[Place]) -> dict[int, Place]:
        """Return places by their visits; what has no number yet is left out, and looked for again next time."""
        places = list(places)
        unknown = {id_ for id_, _ in places if id_ not in self._episode}
        for id_, ordinal, task in self._store.execute_in(
            "SELECT id, ordinal, task FROM episode INDEXED BY episode_by_id WHERE namespace_id = ? AND ordinal >= 0 "
            "AND id IN {values}",
            (self._ns,), sorted(unknown),
        ):  # fmt: skip
            self._episode[id_] = ordinal, task
        return {
            self._episode[id_][0] << STEP_BITS | step: (id_, step)
            for id_, step in places
            if id_ in self._episode and 0 <= step < MAX_STEPS
        }

    # ------------------------------------------------------------------------------------------ what followed

    def showings(
        self, view_id: int, places: Collection[Place], *, alike: bool, task: str | None, most: int | None
    ) -> list[Showing]:
        """Return where steps were shown; see `Memory.showings`."""
        self._follow()
        about = (view_id, alike, task, most)
        missing = [place for place in dict.fromkeys(places) if (about, place) not in self._known]
        if missing:
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
                missing = list(dict.fromkeys(places))
            found = self._found(view_id, self._groups(missing, alike=alike), task, most)
            self._known |= {(about, place): tuple(found[place]) for place in missing}
        return [one for place in dict.fromkeys(places) for one in self._known[about, place]]

    def _groups(self, asked: Sequence[Place], *, alike: bool) -> dict[Place, frozenset[Place]]:
        """Return of each step that is asked for which shown ones it stands for."""
        if not alike or not self._shown_at:
            return {place: frozenset({place} & self._shown_at.keys()) for place in asked}
        if not self._is_paired:
            for place, pair in self.pairs(self._unpaired).items():
                self._alike.setdefault(pair, []).append(place)
                del self._unpaired[place]
            self._is_paired = True
        pair_of = self.pairs(asked)
        return {
            place: frozenset(self._alike.get(pair_of[place], ())) if place in pair_of else frozenset()
            for place in asked
        }

    def _found(
        self, view_id: int, groups: dict[Place, frozenset[Place]], task: str | None, most: int | None
    ) -> dict[Place, list[Showing]]:
        shown_at = {of: list(dict.fromkeys(chain.from_iterable(self._shown_at[one] for one in of)))
                    for of in set(groups.values())}  # fmt: skip
        at = self._visits(set(chain.from_iterable(shown_at.values())))
        visit_of = {place: visit for visit, place in at.items() if task is None or self._episode[place[0]][1] != task}
        steps: dict[frozenset[Place], list[int]] = {}
        for of, there in shown_at.items():
            visits = [visit_of[place] for place in there if place in visit_of]
            steps[of] = sorted(visits if most is None or len(visits) <= most else heapq.nlargest(most, visits))
        beside = self._beside(view_id, set(chain.from_iterable(steps.values())), task)
        fallen = self._thoughts.fallen([id_ for visit in beside for id_, _ in self._notes_at[at[visit]]])
        told = {visit: self._told(at[visit], fallen) for visit in beside}
        found: dict[Place, list[Showing]] = {}
        for asked, of in groups.items():
            shares = ((visit, len(of.intersection(told[visit])) / len(told[visit]))
                      for visit in steps[of] if told.get(visit))  # fmt: skip
            found[asked] = [Showing(asked, at[visit], share, beside[visit]) for visit, share in shares if share]
        return found

    def _told(self, place: Place, fallen: set[str]) -> Collection[Place]:
        """Return what was shown at a step by its notes that stand, each once."""
        standing = [examples for id_, examples in self._notes_at[place] if id_ not in fallen]
        return standing[0] if len(standing) == 1 else dict.fromkeys(chain.from_iterable(standing))

    def beside(self, view_id: int, places: Collection[Place], task: str | None) -> dict[Place, Beside]:
        """Return steps' returns beside those of others at their distinct states; see `Memory.beside`."""
        self._follow()
        at = self._visits(places)
        return {at[visit]: found for visit, found in self._beside(view_id, at, task).items()}

    def _beside(self, view_id: int, visits: Collection[int], task: str | None) -> dict[int, Beside]:
        rows = self._store.execute_in(
            "SELECT step.visit, set_id, return_ FROM step "
            "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
            "WHERE step.namespace_id = ? AND live AND step.visit IN {values}",
            (view_id, self._ns), sorted(visits),
        )  # fmt: skip
        sets = sorted({row[1] for row in rows})
        evidence = self._reader.evidence_outside(view_id, sets, Outside(task), by_episode=False)
        counts: dict[int, int] = dict.fromkeys(sets, 0)
        totals: dict[int, float] = dict.fromkeys(sets, 0.0)
        for set_id, _, count, _, total, *_ in evidence:
            counts[set_id] += count
            totals[set_id] += total
        found = {}
        for visit, set_id, return_ in rows:
            n = counts[set_id] - 1
            found[visit] = Beside(return_, n, (totals[set_id] - return_) / n if n > 0 else None)
        return found

    def alongside(
        self, view_id: int, places: Collection[Place], task: str | None, most: int
    ) -> dict[Place, list[tuple[str, float]]]:
        """Return the latest other steps at the distinct states of some; see `Memory.alongside`."""
        self._follow()
        at = self._visits(places)
        set_of = dict(
            self._store.execute_in(
                "SELECT visit, set_id FROM step WHERE namespace_id = ? AND live AND visit IN {values}",
                (self._ns,), sorted(at),
            )
        )  # fmt: skip
        there = {}
        for set_id in set(set_of.values()):
            outside = Outside(task)
            there[set_id] = self._store.execute(
                "SELECT step.visit, id, return_ FROM step INDEXED BY step_by_set "
                f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
                "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
                f"WHERE step.namespace_id = ? AND set_id = ? AND live{outside.condition} "
                "ORDER BY step.visit DESC LIMIT ?",
                (view_id, self._ns, set_id, *outside.values, most),
            ).fetchall()
        return {
            at[visit]: [(id_, return_) for other, id_, return_ in there[set_id] if other != visit]
            for visit, set_id in set_of.items()
        }


def _examples(body: dict[str, Any]) -> tuple[Place, ...]:
    """Return what a note says was shown, each once; nothing where it does not say it in the usual form."""
    listed = body.get("examples")
    if not isinstance(listed, list):
        return ()
    return tuple({
        (pair[0], pair[1]): None
        for pair in listed
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is int
    })  # fmt: skip
