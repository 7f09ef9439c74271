"""Which steps were shown where, from the notes of the kind "shown"; nothing is kept of what followed there."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from seasoned.memory.reading.episode_ids import EpisodeIds
from seasoned.memory.reading.reader import Reader
from seasoned.memory.recall.note_index import Thoughts
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import decoding
from seasoned.memory.values.task_filter import Outside
from seasoned.types import ShownBody
from seasoned.types.impression import Impression, PeerComparison

__all__ = ["Shown"]

_MOST_KNOWN = 100_000
_PARSED_AT_ONCE = 100

Place = tuple[str, int]
Pair = tuple[int, int]
"""A distinct state and an action, by their numbers."""

Followed = tuple[PeerComparison, Collection[int]] | None
"""What a step earned, and the examples that notes that stand say were shown there; None where that does not count."""


class Shown:
    """Follows what was shown in one namespace. Every method runs inside a snapshot, after `Thoughts.catch_up`.

    Kept is what cannot change before the epoch moves: where each step was shown, and which state and action it is.
    Returns, and which notes stand, are read when asked for, and kept until the next commit.
    """

    def __init__(self, store: Store, namespace_id: int, thoughts: Thoughts, episode_ids: EpisodeIds) -> None:
        self._store = store
        self._ns = namespace_id
        self._reader = Reader(store, namespace_id)
        self._thoughts = thoughts
        self._episode_ids = episode_ids
        self._resets_seen = thoughts.n_resets
        self._reset()

    def _reset(self) -> None:
        self._n_read = 0
        self._waiting: list[str] = []
        self._place_of: dict[int, Place] = {}
        self._notes_at: dict[int, tuple[tuple[str, tuple[int, ...]], ...]] = {}
        self._number_of: dict[Place, int] = {}
        self._shown_at: list[dict[int, None]] = []
        self._set_of: dict[int, int] = {}
        self._unpaired: dict[Place, int] = {}
        self._alike: dict[Pair, list[int]] = {}
        self._pair_of: dict[Place, Pair] = {}
        self._followed: dict[tuple[int, str | None], dict[int, Followed]] = {}
        self._is_read = self._is_paired = False

    def invalidate(self) -> None:
        """Drop the returns that were read: a commit may have changed them."""
        if self._resets_seen != self._thoughts.n_resets:
            self._resets_seen = self._thoughts.n_resets
            self._reset()
        self._followed.clear()
        self._is_read = self._is_paired = False

    def _read_notes(self) -> None:
        if self._is_read:
            return
        new = [*self._waiting, *self._thoughts.shown_ids(self._n_read)]
        self._n_read += len(new) - len(self._waiting)
        self._waiting = []
        for start in range(0, len(new), _PARSED_AT_ONCE):
            rows = self._store.execute_in(
                "SELECT note.id, episode_id, note.step, ordinal, visit, set_id, live, body FROM note "
                "JOIN episode INDEXED BY episode_by_id ON episode.namespace_id = note.namespace_id "
                "AND episode.id = episode_id "
                "LEFT JOIN step ON step.namespace_id = note.namespace_id "
                f"AND visit = (ordinal << {STEP_BITS}) + coalesce(note.step, 0) "
                "WHERE note.namespace_id = ? AND note.id IN {values}",
                (self._ns,),
                new[start : start + _PARSED_AT_ONCE],
            )
            with decoding(self._store.path):
                bodies = json.loads(f"[{','.join(row[-1] for row in rows)}]")  # far quicker than one by one
            for (id_, episode_id, step, ordinal, visit, set_id, live, _), body in zip(rows, bodies, strict=True):
                if ordinal < 0:  # it has arrived, and has no number yet
                    self._waiting.append(id_)
                elif visit is not None:
                    self._place_of[visit] = episode_id, step or 0
                    if live:
                        self._set_of[visit] = set_id
                    self._take(id_, visit, ShownBody.read_examples(body))
        self._is_read = True

    def _take(self, note_id: str, visit: int, examples: Iterable[Place]) -> None:
        numbers = []
        for example in examples:
            number = self._number_of.setdefault(example, len(self._shown_at))
            if number == len(self._shown_at):
                self._shown_at.append({})
                self._unpaired[example] = number
            self._shown_at[number][visit] = None
            numbers.append(number)
        if numbers:  # tuples of what is no container are soon out of the garbage collector's sight; lists would not be
            self._notes_at[visit] = (*self._notes_at.get(visit, ()), (note_id, tuple(numbers)))

    @property
    def places(self) -> list[Place]:
        """Every step that was shown."""
        self._read_notes()
        return list(self._number_of)

    def pairs(self, places: Iterable[Place]) -> dict[Place, Pair]:
        """Return of stored steps that count which distinct state and action they are."""
        places = list(places)
        missing = [place for place in places if place not in self._pair_of]
        if missing:
            at = self._episode_ids.visits(missing)
            rows = self._store.execute_in(
                "SELECT visit, set_id, key_id FROM step "
                "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
                "WHERE step.namespace_id = ? AND live AND visit IN {values}",
                (self._ns,),
                sorted(at),
            )
            self._pair_of |= {at[visit]: (set_id, key_id) for visit, set_id, key_id in rows}
        return {place: self._pair_of[place] for place in places if place in self._pair_of}

    def learn(self, place: Place, pair: Pair) -> None:
        """Keep what somebody has read of a step that counts."""
        self._pair_of[place] = pair

    def _sets(self, visits: Iterable[int]) -> dict[int, int]:
        """Return the distinct states of visits, but of what does not count."""
        missing = [visit for visit in visits if visit not in self._set_of]
        if missing:
            self._set_of |= self._store.execute_in(
                "SELECT visit, set_id FROM step WHERE namespace_id = ? AND live AND visit IN {values}",
                (self._ns,),
                sorted(missing),
            )
        return self._set_of

    # ------------------------------------------------------------------------------------------ what followed

    def impressions(
        self, view_id: int, places: Collection[Place], *, alike: bool, task: str | None, most: int | None
    ) -> list[Impression]:
        """Return where steps were shown; see `Memory.impressions`."""
        self._read_notes()
        groups = self._groups(list(dict.fromkeys(places)), alike=alike)
        steps = {of: self._latest(of, task, most) for of in set(groups.values())}
        followed = self._followed_at(view_id, set(chain.from_iterable(steps.values())), task)
        found: list[Impression] = []
        for asked, of in groups.items():
            for visit in steps[of]:
                step = followed[visit]
                if step is not None and (told := of.intersection(step[1])):
                    found.append(Impression(asked, self._place_of[visit], len(told) / len(step[1]), step[0]))
        return found

    def _groups(self, asked: Sequence[Place], *, alike: bool) -> dict[Place, frozenset[int]]:
        """Return of each step that is asked for which examples it stands for."""
        if not alike or not self._number_of:
            return {place: frozenset([self._number_of[place]] if place in self._number_of else []) for place in asked}
        if not self._is_paired:
            for place, pair in self.pairs(self._unpaired).items():
                self._alike.setdefault(pair, []).append(self._unpaired.pop(place))
            self._is_paired = True
        pair_of = self.pairs(asked)
        return {
            place: frozenset(self._alike.get(pair_of[place], ())) if place in pair_of else frozenset()
            for place in asked
        }

    def _latest(self, of: frozenset[int], task: str | None, most: int | None) -> list[int]:
        """Return at which visits any of these was shown, in their order; at most so many of the latest."""
        visits = list(dict.fromkeys(chain.from_iterable(self._shown_at[one] for one in of)))
        if task is not None:
            numbered = self._episode_ids.of({self._place_of[visit][0] for visit in visits})
            visits = [visit for visit in visits if numbered[self._place_of[visit][0]].task != task]
        return sorted(visits if most is None or len(visits) <= most else heapq.nlargest(most, visits))

    def _followed_at(self, view_id: int, visits: Collection[int], task: str | None) -> dict[int, Followed]:
        """Return of visits what they earned, and what was shown there by notes that stand."""
        if sum(map(len, self._followed.values())) > _MOST_KNOWN:
            self._followed.clear()
        known = self._followed.setdefault((view_id, task), {})
        missing = [visit for visit in visits if visit not in known]
        if missing:
            beside = self._beside(view_id, [visit for visit in missing if visit in self._set_of], task)
            fallen = self._thoughts.fallen([id_ for visit in beside for id_, _ in self._notes_at[visit]])
            known |= dict.fromkeys(missing)
            known |= {visit: (own, self._told(visit, fallen)) for visit, own in beside.items()}
        return known

    def _told(self, visit: int, fallen: set[str]) -> Collection[int]:
        """Return what was shown at a visit by its notes that stand, each once."""
        standing = [examples for id_, examples in self._notes_at[visit] if id_ not in fallen]
        return standing[0] if len(standing) == 1 else dict.fromkeys(chain.from_iterable(standing))

    def peer_comparisons(
        self, view_id: int, places: Collection[Place], task: str | None
    ) -> dict[Place, PeerComparison]:
        """Return steps' returns beside those of others at their distinct states; see `Memory.peer_comparisons`."""
        at = self._episode_ids.visits(places)
        return {at[visit]: found for visit, found in self._beside(view_id, at, task).items()}

    def _beside(self, view_id: int, visits: Collection[int], task: str | None) -> dict[int, PeerComparison]:
        set_of = self._sets(visits)
        returns = self._store.execute_in(
            "SELECT visit, return_ FROM value WHERE namespace_id = ? AND view_id = ? AND visit IN {values}",
            (self._ns, view_id),
            sorted(visit for visit in visits if visit in set_of),
        )
        sets = sorted({set_of[visit] for visit, _ in returns})
        evidence = self._reader.evidence_outside(view_id, sets, Outside(task), by_episode=False)
        counts: dict[int, int] = dict.fromkeys(sets, 0)
        totals: dict[int, float] = dict.fromkeys(sets, 0.0)
        for row in evidence:
            counts[row.set_id] += row.n_steps
            totals[row.set_id] += row.total
        found = {}
        for visit, return_ in returns:
            set_id = set_of[visit]
            n = counts[set_id] - 1
            found[visit] = PeerComparison(return_, n, (totals[set_id] - return_) / n if n > 0 else None)
        return found

    def peer_returns(
        self, view_id: int, places: Collection[Place], task: str | None, most: int
    ) -> dict[Place, list[tuple[str, float]]]:
        """Return the latest other steps at the distinct states of some; see `Memory.peer_returns`."""
        at = self._episode_ids.visits(places)
        sets = self._sets(at)
        set_of = {visit: sets[visit] for visit in at if visit in sets}
        n_at: Counter[int] = Counter()
        for row in self._reader.evidence(view_id, sorted(set(set_of.values()))):
            n_at[row.set_id] += row.n_steps
        there = self._reader.latest_steps(view_id, n_at, "id", outside=Outside(task), most=most)
        return {
            at[visit]: [(id_, return_) for other, id_, return_ in there[set_id] if other != visit]
            for visit, set_id in set_of.items()
        }
