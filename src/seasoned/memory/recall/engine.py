"""Recall engine: moments by several keys at once, and sums of feedback."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from seasoned.core import jaccard
from seasoned.memory.index.term_keys import subword_keys, whole_keys
from seasoned.memory.reading.episode_ids import EpisodeEntry, EpisodeIds
from seasoned.memory.reading.follower import Change, CommitCursor, CommitFollower
from seasoned.memory.reading.reader import Reader
from seasoned.memory.reading.rows import LatestStep
from seasoned.memory.recall.impressions import ImpressionIndex
from seasoned.memory.recall.note_index import NoteIndex
from seasoned.memory.recall.task_index import TaskIndex
from seasoned.memory.retrieval.retriever import Retriever
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS
from seasoned.memory.values.corruption import decode, decode_first, decoding
from seasoned.memory.values.ranking import latest_first, rank_key
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.protocols import StateEncoder
from seasoned.states.subwords import SubwordEncoder
from seasoned.types import Ending, Experience, RecallQuery, StepRef, normalize_action
from seasoned.types.recall import Moment, Recall

__all__ = ["RecallEngine"]

MAX_VISITS = 256
"""Maximum number of latest visits to one distinct state that a query reads."""

MAX_AT_ONE = 8
"""Maximum number of recalled steps at one distinct state; more would crowd out other states."""

MAX_SCANNED = 256
"""Maximum number of steps of the nearest episodes that are compared with the observation."""

_CACHED_TEXTS = 4096

_SETS = (
    "SELECT visit, tokens, set_id FROM step JOIN feature_set ON feature_set.namespace_id = step.namespace_id "
    "AND feature_set.id = set_id WHERE step.namespace_id = ? AND live"
)


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


class _Median(NamedTuple):
    mean: float
    highest_mean: float
    highest_count: int


class _EventRow(NamedTuple):
    visit: int
    source: str
    reward: float
    weight: float


class _WeightedEvent(NamedTuple):
    """A live event; `amount` is its reward times its weight."""

    episode_id: str
    step: int
    source: str
    amount: float


Matches = dict[int, tuple[float, int]]
"""By visit: similarity of its state to the observation, and feature set id of the state."""


class RecallEngine:
    """Recalls moments of one namespace by states, tasks, plans and reasonings; every query catches up with commits."""

    def __init__(
        self, store: Store, namespace_id: int, retriever: Retriever, encoder: StateEncoder, gamma: float
    ) -> None:
        self._store = store
        self._ns = namespace_id
        self._retriever = retriever
        self._gamma = gamma
        self._reader = Reader(store, namespace_id)
        self._encoder = encoder
        self._features = functools.lru_cache(_CACHED_TEXTS)(encoder.features)
        keys_of = whole_keys if isinstance(encoder, SubwordEncoder) else subword_keys
        self._tasks = TaskIndex(store, namespace_id, self._features, keys_of)
        self._notes = NoteIndex(store, namespace_id, self._features)
        self._episode_ids = EpisodeIds(store, namespace_id, retriever.follower)
        self.feedback_totals = FeedbackTotals(store, namespace_id, self._episode_ids, retriever.follower)
        self.impressions = ImpressionIndex(store, namespace_id, self._notes, self._episode_ids)
        self._retired: dict[bool, set[tuple[int, int | str]]] = {}
        self._cursor = CommitCursor(retriever.follower)
        self._medians: dict[int, float | None] = {}

    def _catch_up(self) -> None:
        """Update the indexes with the commits since the last query; inside a snapshot."""
        change = self._cursor.change()
        if change is Change.NONE:
            return
        if change is Change.RESET:
            self._tasks.reset()
            self._notes.reset()
            self.impressions.reset()
            self._features.cache_clear()
        self._tasks.catch_up(self._retriever.follower.n_events)
        self._notes.catch_up()
        self.impressions.invalidate()
        self._medians.clear()
        self._retired.clear()
        self._cursor.advance()

    # ------------------------------------------------------------------------------------------ by several keys

    def recall(self, query: RecallQuery, *, gamma: float) -> Recall:
        """Return the moments of a query; see `Memory.recall`."""
        texts, pool, exclude_task = query.texts, query.pool, query.exclude_task
        observation = texts.get("observation")
        features = None if observation is None else self._encoder.features(observation)
        with self.snapshot_with_indexes(gamma) as view_id:
            task_filter = TaskFilter(exclude_task)
            matches = {} if features is None else self._nearest_visits(view_id, features, pool, task_filter)
            n_episodes = max(1, pool // 4) if matches and not query.whole else pool
            ordinals = self._tasks.nearest(texts["goal"], n_episodes, exclude_task) if "goal" in texts else []
            if "plan" in texts:
                first = self._notes.nearest_plans(texts["plan"], n_episodes, exclude_task)
                ordinals += [visit >> STEP_BITS for visit in first]
            reasoned = []
            if "reasoning" in texts:
                reasoned = self._notes.nearest_reasonings(texts["reasoning"], pool, exclude_task)
            if query.whole:
                visits = [
                    ordinal << STEP_BITS for ordinal in [*ordinals, *(v >> STEP_BITS for v in (*matches, *reasoned))]
                ]
                matches = {visit: matches[visit] for visit in visits if visit in matches}
            elif features is not None:
                visits = reasoned
                matches |= self._best_steps(dict.fromkeys(ordinals), features)
            else:
                visits = [*reasoned, *(ordinal << STEP_BITS for ordinal in ordinals)]
            others = list({visit: None for visit in visits if visit not in matches})
            rows = self._store.execute_in(f"{_SETS} AND visit IN {{values}}", (self._ns,), others)
            matches |= self._match(decode(self._store.path, rows, _StepSet), features)
            moments = self._moments(view_id, texts, dict(sorted(matches.items())), task_filter, whole=query.whole)
            sql = "SELECT max(mean) FROM distribution WHERE namespace_id = ? AND view_id = ?"
            means = self._store.execute(sql, (self._ns, view_id)).fetchall()
            [(highest,)] = decode(self._store.path, means, _Mean)
            return Recall(self._with_feedback_totals(moments) if query.with_feedback_totals else moments, highest)

    def _nearest_visits(self, view_id: int, features: frozenset[str], pool: int, task_filter: TaskFilter) -> Matches:
        """Return at most `pool` visits to the distinct states most similar to the observation.

        Of each action at a state: the visits with the highest and the lowest return, among the latest 256 visits.
        """
        ranked = self._retriever.recurring_sets(features, pool, task_filter, include_pending=False)
        if len(ranked) < pool:
            ranked = self._retriever.nearest_sets(features, pool, 0.0, task_filter, include_pending=False)
        nearest = [(set_id, similarity) for similarity, _, set_id in ranked if similarity > 0.0]
        n_at = dict.fromkeys((set_id for set_id, _ in nearest), 0)
        for row in self._reader.evidence(view_id, sorted(n_at)):
            n_at[row.set_id] += row.n_steps

        def latest(n_there: dict[int, int]) -> dict[int, list[LatestStep]]:
            return self._reader.latest_steps(view_id, n_there, "key_id", task_filter=task_filter, most=MAX_VISITS)

        latest_at = latest({set_id: n for set_id, n in n_at.items() if n <= MAX_AT_ONE})
        visits: Matches = {}
        for set_id, similarity in nearest:
            if len(visits) >= pool:
                break
            if set_id not in latest_at:
                latest_at |= latest({set_id: n_at[set_id]})
            of_action: dict[int, list[tuple[float, int]]] = {}
            for visit, key_id, return_ in latest_at[set_id]:
                of_action.setdefault(key_id, []).append((return_, visit))
            extremes = [visit for both in of_action.values() for visit in {max(both)[1], min(both)[1]}]
            for visit in latest_first(extremes)[: min(MAX_AT_ONE, pool - len(visits))]:
                visits[visit] = similarity, set_id
        return visits

    def _best_steps(self, ordinals: Iterable[int], features: frozenset[str]) -> Matches:
        """Return each episode's step with the state most similar to the observation, the latest of equal ones."""
        rows: list[_StepSet] = []
        for ordinal in ordinals:
            found = self._store.execute(
                f"{_SETS} AND visit BETWEEN ? AND ? ORDER BY visit LIMIT ?",
                (self._ns, ordinal << STEP_BITS, (ordinal + 1 << STEP_BITS) - 1, MAX_SCANNED - len(rows)),
            ).fetchall()
            rows += decode(self._store.path, found, _StepSet)
            if len(rows) >= MAX_SCANNED:
                break
        matches = self._match(rows, features)
        by_episode = groupby(matches, key=lambda visit: visit >> STEP_BITS)
        best = [min(visits, key=lambda visit: rank_key(matches[visit][0], visit)) for _, visits in by_episode]
        return {visit: matches[visit] for visit in best}

    def _match(self, rows: list[_StepSet], features: frozenset[str] | None) -> Matches:
        """Return the Jaccard similarity of visits' stored feature sets to the observation; 0 without an observation."""
        if features is None or not rows:
            return {visit: (0.0, set_id) for visit, _, set_id in rows}
        known = np.array(self._retriever.tokens_of(features), dtype=np.uint32)
        sizes = np.array([len(tokens) // 4 for _, tokens, _ in rows])
        with decoding(self._store.path):
            stored = np.frombuffer(b"".join(tokens for _, tokens, _ in rows), dtype="<u4")
        is_known = np.zeros(max(int(stored.max(initial=0)), int(known.max(initial=0))) + 1, dtype=bool)
        is_known[known] = True
        shared = is_known[stored]
        ends = np.cumsum(sizes)
        common = np.diff(np.concatenate([[0], np.cumsum(shared)])[np.concatenate([[0], ends])])
        union = sizes + len(features) - common
        similar = np.where(union > 0, common / np.maximum(union, 1), 1.0)
        return {visit: (near, set_id) for (visit, _, set_id), near in zip(rows, similar.tolist(), strict=True)}

    def _moments(
        self, view_id: int, texts: Mapping[str, str], matches: Matches, task_filter: TaskFilter, *, whole: bool
    ) -> tuple[Moment, ...]:
        visits, retired = list(matches), self._retired_pairs(whole=whole)
        found = self._reader.experiences(view_id, visits)
        rows = self._store.execute_in(
            "SELECT ordinal, ending, arm, steps FROM episode WHERE namespace_id = ? AND ordinal IN {values}",
            (self._ns,),
            list({visit >> STEP_BITS for visit in visits}),
        )
        episodes = {row.ordinal: row for row in decode(self._store.path, rows, _EpisodeRow)}
        totals = self._action_totals(view_id, list({set_id for _, set_id in matches.values()}), task_filter)
        active = self._notes.at([(seen.episode_id, seen.step) for seen, _ in found.values()])
        query = {key: self._features(text) for key, text in texts.items() if key != "observation"}
        tasks = {seen.task for seen, _ in found.values()} if "goal" in texts else ()
        by_task = self._tasks.similarities(texts["goal"], tasks) if tasks else {}

        @functools.cache
        def similarity(key: str, text: str | None) -> float:
            if key == "goal":
                return by_task.get(str(text), 0.0)
            return 0.0 if text is None else jaccard(query[key], self._features(text))

        moments = []
        for visit in visits:
            seen = found[visit][0]
            place = seen.episode_id, seen.step
            plan, reasoning = active.plans.get(seen.episode_id), active.reasonings.get(place)
            written = {"goal": seen.task, "plan": plan, "reasoning": reasoning}
            near = {key: similarity(key, written[key]) for key in query}
            if "observation" in texts:
                near["observation"] = matches[visit][0]
            set_id, key_id = matches[visit][1], found[visit][1]
            ordinal = visit >> STEP_BITS
            _, ending, arm, n_steps = episodes[ordinal]
            self._episode_ids.learn(seen.episode_id, EpisodeEntry(ordinal, seen.task, n_steps))
            self.impressions.learn(place, (set_id, key_id))
            count, total = totals.get((set_id, key_id), (1, seen.return_))
            done = normalize_action(plan or f"\t{place}") if whole else key_id
            moments.append(
                Moment(seen, near, ending, arm, plan, reasoning, (set_id, done) in retired, count, total / count)
            )
        return tuple(moments)

    def _action_totals(
        self, view_id: int, set_ids: list[int], task_filter: TaskFilter
    ) -> dict[tuple[int, int], tuple[int, float]]:
        """Return the number of steps and the total return by distinct state and action."""
        rows = self._reader.filtered_evidence(view_id, set_ids, task_filter, by_episode=False)
        return {(row.set_id, row.key_id): (row.n_steps, row.total) for row in rows}

    def _with_feedback_totals(self, moments: tuple[Moment, ...]) -> tuple[Moment, ...]:
        """Add the feedback totals by source to each moment."""
        totals = self.feedback_totals.by_source({moment.experience.episode_id for moment in moments})
        return tuple(replace(moment, feedback_totals=totals[moment.experience.episode_id]) for moment in moments)

    def _retired_pairs(self, *, whole: bool) -> set[tuple[int, int | str]]:
        """Return the retired pairs of distinct state and action; with `whole`, of distinct state and plan."""
        if whole not in self._retired:
            places = self._notes.retired_steps()
            pairs = self.impressions.pairs(places)
            plans = self._notes.at(places).plans if whole else {}
            self._retired[whole] = {
                (set_id, normalize_action(plans.get(place[0], f"\t{place}")) if whole else key_id)
                for place, (set_id, key_id) in pairs.items()
                if not whole or place[1] == 0
            }
        return self._retired[whole]

    # ------------------------------------------------------------------------------------------ by step

    def experiences(self, places: Collection[StepRef], *, gamma: float) -> dict[StepRef, Experience]:
        """Return stored steps; see `Memory.experiences`."""
        with self.snapshot_with_ids(gamma) as view_id:
            found = self._reader.experiences(view_id, sorted(self._episode_ids.visits(places)), all_live=False)
        return {(seen.episode_id, seen.step): seen for seen, _ in found.values()}

    @contextlib.contextmanager
    def snapshot_with_ids(self, gamma: float) -> Iterator[int]:
        """Open a snapshot with fresh episode ids; yield the id of the view of this discount."""
        with self._retriever.fresh_snapshot(gamma, 1.0) as view_id:
            self._episode_ids.catch_up()
            yield view_id

    @contextlib.contextmanager
    def snapshot_with_indexes(self, gamma: float) -> Iterator[int]:
        """Open a snapshot with fresh indexes; yield the id of the view of this discount."""
        with self.snapshot_with_ids(gamma) as view_id:
            self._catch_up()
            yield view_id

    def median_return(self, *, gamma: float) -> float | None:
        """Return the median return; see `Memory.median_return`."""
        with self.snapshot_with_indexes(gamma) as view_id:
            if view_id not in self._medians:
                # SQLite adds a text as 0, and orders texts and bytes above every number.
                rows = self._store.execute(
                    "SELECT mean, highest_mean, highest_count FROM (SELECT mean, "
                    "sum(count) OVER (ORDER BY mean) AS below, sum(count) OVER () AS n, "
                    "max(mean) OVER () AS highest_mean, max(count) OVER () AS highest_count "
                    "FROM distribution WHERE namespace_id = ? AND view_id = ?) AS ranked "
                    "WHERE 2 * below >= n ORDER BY mean LIMIT 1",
                    (self._ns, view_id),
                ).fetchall()
                median = decode_first(self._store.path, rows, _Median)
                self._medians[view_id] = None if median is None else median.mean
            return self._medians[view_id]


class FeedbackTotals:
    """Sums of unrevoked feedback. Every method runs inside a snapshot, after `EpisodeIds.catch_up`."""

    def __init__(self, store: Store, namespace_id: int, episode_ids: EpisodeIds, follower: CommitFollower) -> None:
        self._store = store
        self._ns = namespace_id
        self._episode_ids = episode_ids
        self._follower = follower

    def by_source(self, episode_ids: Collection[str]) -> dict[str, dict[str, float]]:
        """Return the sums by source; see `Memory.feedback_totals`."""
        sums: dict[str, dict[str, float]] = {id_: {} for id_ in self._episode_ids.of(episode_ids)}
        for event in self._events(list(sums), ()):
            of_source = sums[event.episode_id]
            of_source[event.source] = of_source.get(event.source, 0.0) + event.amount
        return sums

    def by_step(self, episode_ids: Collection[str], but_sources: Collection[str]) -> dict[str, dict[int, list[float]]]:
        """Return the weighted rewards by step; see `Memory.step_feedback`."""
        rewards: dict[str, dict[int, list[float]]] = {id_: {} for id_ in self._episode_ids.of(episode_ids)}
        for event in self._events(list(rewards), but_sources):
            rewards[event.episode_id].setdefault(event.step, []).append(event.amount)
        return rewards

    def _events(self, ids: list[str], but_sources: Collection[str]) -> Iterator[_WeightedEvent]:
        """Yield the live events of episodes by step, the oldest first."""
        if not self._follower.n_events:
            return
        episodes = self._episode_ids.of(ids)
        id_of = {entry.ordinal: id_ for id_, entry in episodes.items()}
        others = f"AND source NOT IN ({', '.join('?' * len(but_sources))}) " if but_sources else ""
        # By single visits: with row-level security, PostgreSQL looks up no range that a join computes.
        visits = [entry.ordinal << STEP_BITS | step for entry in episodes.values() for step in range(entry.steps)]
        rows = self._store.execute_in(
            "SELECT visit, source, reward, weight FROM feedback INDEXED BY feedback_by_visit WHERE namespace_id = ? "
            f"AND live {others}AND visit IN {{values}} ORDER BY visit, seq",
            (self._ns, *but_sources),
            visits,
        )
        for visit, source, reward, weight in decode(self._store.path, rows, _EventRow):
            yield _WeightedEvent(id_of[visit >> STEP_BITS], visit & MAX_STEPS - 1, source, reward * weight)
