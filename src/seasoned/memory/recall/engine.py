"""Moments by several keys at once: goal, plan, observation, reasoning."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from seasoned.core import jaccard
from seasoned.memory.reading.episode_ids import EpisodeEntry, EpisodeIds
from seasoned.memory.reading.follower import Change, CommitCursor
from seasoned.memory.reading.reader import LatestStep, Reader
from seasoned.memory.recall.feedback_totals import FeedbackTotals
from seasoned.memory.recall.impressions import Shown
from seasoned.memory.recall.note_index import Thoughts
from seasoned.memory.recall.task_index import Goals
from seasoned.memory.retrieval.retriever import Retriever
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import decode, decoding
from seasoned.memory.values.task_filter import Outside
from seasoned.protocols import StateEncoder
from seasoned.types import Ending, Experience, normalize_action
from seasoned.types.recall import Moment, Recall

__all__ = ["Recaller"]

MAX_VISITS = 256
"""How many of the latest visits to one distinct state are looked through."""

MAX_AT_ONE = 8
"""How many steps at one distinct state are recalled: more of one moment would crowd out the others."""

MAX_SCANNED = 256
"""How many steps of such episodes are compared with the observation."""

_REMEMBERED_TEXTS = 4096

_SETS = (
    "SELECT visit, tokens, set_id FROM step JOIN feature_set ON feature_set.namespace_id = step.namespace_id "
    "AND feature_set.id = set_id WHERE step.namespace_id = ? AND live"
)

Place = tuple[str, int]


class _StepSet(NamedTuple):
    visit: int
    tokens: bytes
    set_id: int


class _EpisodeRow(NamedTuple):
    ordinal: int
    ending: Ending
    arm: str | None
    n_steps: int


class _Mean(NamedTuple):
    mean: float | None


class _Visit(NamedTuple):
    visit: int


Alike = dict[int, tuple[float, int]]
"""By visit, how like its state is to what was asked, and which distinct state that is."""


class Recaller:
    """Follows what one namespace's moments can be found by, other than their states, and puts the keys together."""

    def __init__(
        self, store: Store, namespace_id: int, retriever: Retriever, encoder: StateEncoder, gamma: float
    ) -> None:
        self._store = store
        self._ns = namespace_id
        self._retriever = retriever
        self._gamma = gamma
        self._reader = Reader(store, namespace_id)
        self._encoder = encoder
        self._features = functools.lru_cache(_REMEMBERED_TEXTS)(encoder.features)
        self._goals = Goals(store, namespace_id, self._features)
        self._thoughts = Thoughts(store, namespace_id, self._features)
        self._episode_ids = EpisodeIds(store, namespace_id, retriever.follower)
        self.feedback_totals = FeedbackTotals(store, namespace_id, self._episode_ids, retriever.follower)
        self.shown = Shown(store, namespace_id, self._thoughts, self._episode_ids)
        self._retired: dict[bool, set[tuple[int, int | str]]] = {}
        self._cursor = CommitCursor(retriever.follower)
        self._medians: dict[int, float | None] = {}

    def _catch_up(self) -> None:
        """Read the rows of the commits since the last query; inside a snapshot."""
        change = self._cursor.change()
        if change is Change.NONE:
            return
        if change is Change.RESET:
            self._goals.reset()
            self._thoughts.reset()
            self._features.cache_clear()
        self._goals.catch_up()
        self._thoughts.catch_up()
        self.shown.invalidate()
        self._medians.clear()
        self._retired.clear()
        self._cursor.advance()

    # ------------------------------------------------------------------------------------------ by several keys

    def recall(
        self,
        texts: Mapping[str, str],
        *,
        pool: int,
        whole: bool,
        gamma: float,
        exclude_task: str | None,
        with_feedback_totals: bool,
    ) -> Recall:
        """Return moments that fit; see `Memory.recall`."""
        seen = texts.get("observation")
        asked = None if seen is None else self._encoder.features(seen)
        with self.following(gamma) as view_id:
            outside = Outside(exclude_task)
            alike = {} if asked is None else self._nearest_visits(view_id, asked, pool, outside)
            n_episodes = max(1, pool // 4) if alike and not whole else pool
            ordinals = self._goals.nearest(texts["goal"], n_episodes, exclude_task) if "goal" in texts else []
            if "plan" in texts:
                first = self._thoughts.nearest_plans(texts["plan"], n_episodes, exclude_task)
                ordinals += [visit >> STEP_BITS for visit in first]
            thoughts = []
            if "reasoning" in texts:
                thoughts = self._thoughts.nearest_reasonings(texts["reasoning"], pool, exclude_task)
            if whole:
                visits = [
                    ordinal << STEP_BITS for ordinal in [*ordinals, *(v >> STEP_BITS for v in (*alike, *thoughts))]
                ]
                alike = {visit: alike[visit] for visit in visits if visit in alike}
            elif asked is not None:
                visits = thoughts
                alike |= self._best_steps(dict.fromkeys(ordinals), asked)
            else:
                visits = [*thoughts, *(ordinal << STEP_BITS for ordinal in ordinals)]
            others = list({visit: None for visit in visits if visit not in alike})
            rows = self._store.execute_in(f"{_SETS} AND visit IN {{values}}", (self._ns,), others)
            alike |= self._alike(decode(self._store.path, rows, _StepSet), asked)
            moments = self._moments(view_id, texts, dict(sorted(alike.items())), outside, whole=whole)
            sql = "SELECT max(mean) FROM distribution WHERE namespace_id = ? AND view_id = ?"
            found = self._store.execute(sql, (self._ns, view_id)).fetchall()
            [(highest,)] = decode(self._store.path, found, _Mean)
            return Recall(self._with_credits(moments) if with_feedback_totals else moments, highest)

    def _nearest_visits(self, view_id: int, asked: frozenset[str], pool: int, outside: Outside) -> Alike:
        """Return visits to the distinct states most like what was asked, at most `pool` in all.

        Of each action there the visit that earned most and the one that earned least, of the latest 256 visits.
        """
        nearest = [pair for pair in self._retriever.nearest_sets(asked, pool, 0.0, outside) if pair[1] > 0.0]
        n_at = dict.fromkeys((set_id for set_id, _ in nearest), 0)
        for row in self._reader.evidence(view_id, sorted(n_at)):
            n_at[row.set_id] += row.n_steps

        def latest(n_there: dict[int, int]) -> dict[int, list[LatestStep]]:
            return self._reader.latest_steps(view_id, n_there, "key_id", outside=outside, most=MAX_VISITS)

        there = latest({set_id: n for set_id, n in n_at.items() if n <= MAX_AT_ONE})
        visits: Alike = {}
        for set_id, similarity in nearest:
            if len(visits) >= pool:
                break
            if set_id not in there:
                there |= latest({set_id: n_at[set_id]})
            of_action: dict[int, list[tuple[float, int]]] = {}
            for visit, key_id, return_ in there[set_id]:
                of_action.setdefault(key_id, []).append((return_, visit))
            found = [visit for both in of_action.values() for visit in {max(both)[1], min(both)[1]}]
            for visit in sorted(found, reverse=True)[: min(MAX_AT_ONE, pool - len(visits))]:
                visits[visit] = similarity, set_id
        return visits

    def _best_steps(self, ordinals: Iterable[int], asked: frozenset[str]) -> Alike:
        """Return of each episode the step whose state is most like what was asked, the latest among equals."""
        rows: list[Any] = []
        for ordinal in ordinals:
            rows += self._store.execute(
                f"{_SETS} AND visit BETWEEN ? AND ? ORDER BY visit LIMIT ?",
                (self._ns, ordinal << STEP_BITS, (ordinal + 1 << STEP_BITS) - 1, MAX_SCANNED - len(rows)),
            ).fetchall()
            if len(rows) >= MAX_SCANNED:
                break
        best: dict[int, tuple[float, int]] = {}
        alike = self._alike(decode(self._store.path, rows, _StepSet), asked)
        for visit, (similarity, _) in alike.items():
            best[visit >> STEP_BITS] = max(best.get(visit >> STEP_BITS, (-1.0, -1)), (similarity, visit))
        return {visit: alike[visit] for _, visit in best.values()}

    def _alike(self, rows: list[_StepSet], asked: frozenset[str] | None) -> Alike:
        """Return how like the states of some visits are to what was asked, by the stored sets; 0 if nothing was."""
        if asked is None or not rows:
            return {visit: (0.0, set_id) for visit, _, set_id in rows}
        known = np.array(self._retriever.tokens_of(asked), dtype=np.uint32)
        sizes = np.array([len(tokens) // 4 for _, tokens, _ in rows])
        with decoding(self._store.path):
            stored = np.frombuffer(b"".join(tokens for _, tokens, _ in rows), dtype="<u4")
        is_asked = np.zeros(max(int(stored.max(initial=0)), int(known.max(initial=0))) + 1, dtype=bool)
        is_asked[known] = True
        shared = is_asked[stored]
        ends = np.cumsum(sizes)
        common = np.diff(np.concatenate([[0], np.cumsum(shared)])[np.concatenate([[0], ends])])
        union = sizes + len(asked) - common
        similar = np.where(union > 0, common / np.maximum(union, 1), 1.0)
        return {visit: (near, set_id) for (visit, _, set_id), near in zip(rows, similar.tolist(), strict=True)}

    def _moments(
        self, view_id: int, texts: Mapping[str, str], alike: Alike, outside: Outside, *, whole: bool
    ) -> tuple[Moment, ...]:
        visits, retired = list(alike), self._retired_pairs(whole=whole)
        found = self._reader.experiences(view_id, visits)
        rows = self._store.execute_in(
            "SELECT ordinal, ending, arm, steps FROM episode WHERE namespace_id = ? AND ordinal IN {values}",
            (self._ns,),
            list({visit >> STEP_BITS for visit in visits}),
        )
        about = {row.ordinal: row for row in decode(self._store.path, rows, _EpisodeRow)}
        tried = self._tried(view_id, list({set_id for _, set_id in alike.values()}), outside)
        said = self._thoughts.at([(seen.episode_id, seen.step) for seen, _ in found.values()])
        asked = {key: self._features(text) for key, text in texts.items() if key != "observation"}

        @functools.cache
        def similarity(key: str, text: str | None) -> float:
            return 0.0 if text is None else jaccard(asked[key], self._features(text))

        moments = []
        for visit in visits:
            seen = found[visit][0]
            place = seen.episode_id, seen.step
            plan, reasoning = said.plans.get(seen.episode_id), said.reasonings.get(place)
            written = {"goal": seen.task, "plan": plan, "reasoning": reasoning}
            near = {key: similarity(key, written[key]) for key in asked}
            if "observation" in texts:
                near["observation"] = alike[visit][0]
            set_id, key_id = alike[visit][1], found[visit][1]
            ordinal = visit >> STEP_BITS
            _, ending, arm, n_steps = about[ordinal]
            self._episode_ids.learn(seen.episode_id, EpisodeEntry(ordinal, seen.task, n_steps))
            self.shown.learn(place, (set_id, key_id))
            count, total = tried.get((set_id, key_id), (1, seen.return_))
            done = normalize_action(plan or f"\t{place}") if whole else key_id
            moments.append(
                Moment(seen, near, ending, arm, plan, reasoning, (set_id, done) in retired, count, total / count)
            )
        return tuple(moments)

    def _tried(self, view_id: int, set_ids: list[int], outside: Outside) -> dict[tuple[int, int], tuple[int, float]]:
        """Return by distinct state and action how often it was taken there, and what that earned in all."""
        rows = self._reader.evidence_outside(view_id, set_ids, outside, by_episode=False)
        return {(row.set_id, row.key_id): (row.n_steps, row.total) for row in rows}

    def _with_credits(self, moments: tuple[Moment, ...]) -> tuple[Moment, ...]:
        """Say of each moment's episode what came from whom."""
        credited = self.feedback_totals.by_source({moment.experience.episode_id for moment in moments})
        return tuple(replace(moment, feedback_totals=credited[moment.experience.episode_id]) for moment in moments)

    def _retired_pairs(self, *, whole: bool) -> set[tuple[int, int | str]]:
        """Return which distinct states with which actions (of whole episodes: plans) are retired."""
        if whole not in self._retired:
            places = self._thoughts.retired()
            pairs = self.shown.pairs(places)
            plans = self._thoughts.at(places).plans if whole else {}
            self._retired[whole] = {
                (set_id, normalize_action(plans.get(place[0], f"\t{place}")) if whole else key_id)
                for place, (set_id, key_id) in pairs.items()
                if not whole or place[1] == 0
            }
        return self._retired[whole]

    # ------------------------------------------------------------------------------------------ by place

    def experiences(self, places: Collection[Place], *, gamma: float) -> dict[Place, Experience]:
        """Return stored steps by their places; see `Memory.experiences`."""
        with self.numbering(gamma) as view_id:
            visits = sorted(self._episode_ids.visits(places))
            rows = self._store.execute_in(
                "SELECT visit FROM step WHERE namespace_id = ? AND live AND visit IN {values}", (self._ns,), visits
            )
            live = [row.visit for row in decode(self._store.path, rows, _Visit)]
            found = self._reader.experiences(view_id, live)
        return {(seen.episode_id, seen.step): seen for seen, _ in found.values()}

    @contextlib.contextmanager
    def numbering(self, gamma: float) -> Iterator[int]:
        """A snapshot in which the episodes' numbers are known; gives the id of the view for this discount."""
        with self._retriever.view(gamma, 1.0) as view_id:
            self._episode_ids.catch_up()
            yield view_id

    @contextlib.contextmanager
    def following(self, gamma: float) -> Iterator[int]:
        """A snapshot in which everything is followed; gives the id of the view for this discount."""
        with self.numbering(gamma) as view_id:
            self._catch_up()
            yield view_id

    def median_return(self, *, gamma: float) -> float | None:
        """Return the median return; see `Memory.median_return`."""
        with self.following(gamma) as view_id:
            if view_id not in self._medians:
                rows = self._store.execute(
                    "SELECT mean FROM (SELECT mean, sum(count) OVER (ORDER BY mean) AS below, sum(count) OVER () AS n "
                    "FROM distribution WHERE namespace_id = ? AND view_id = ?) AS ranked WHERE 2 * below >= n "
                    "ORDER BY mean LIMIT 1",
                    (self._ns, view_id),
                ).fetchall()
                means = decode(self._store.path, rows, _Mean)
                self._medians[view_id] = means[0].mean if means else None
            return self._medians[view_id]
