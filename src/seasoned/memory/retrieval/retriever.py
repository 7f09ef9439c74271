"""Retrieval: from a state to the most similar stored steps, and to their evidence."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from seasoned.checks import check_text, check_whole
from seasoned.core import check_gamma
from seasoned.core.arrays import Floats
from seasoned.errors import InputError, ReadOnlyStoreError
from seasoned.memory.index.goal_similarity import GoalIndex, without_goals
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.kernel import Match
from seasoned.memory.index.rarity import RarityIndex
from seasoned.memory.index.term_keys import subword_keys, whole_keys
from seasoned.memory.pending.inbox import Inbox
from seasoned.memory.pending.overlay import Overlay
from seasoned.memory.reading.evidence_sums import effective_sums, propensity_rows, sum_rows, weigh_row
from seasoned.memory.reading.follower import Change, CommitCursor, CommitFollower
from seasoned.memory.reading.judged_episodes import judged_after, sets_of
from seasoned.memory.reading.reader import Reader, check_same_encoder
from seasoned.memory.reading.rows import EvidenceRow, RecentReturn
from seasoned.memory.retrieval.choice_reader import (
    ChoiceEffect,
    ChoiceReader,
    ChoicesAtStates,
    observed_choices,
    without_choices,
)
from seasoned.memory.retrieval.graph_cache import GraphCache, check_backup, revalued
from seasoned.memory.retrieval.label_sums import LabelledSums, OptionRows
from seasoned.memory.retrieval.labelled_decision_reader import LabelledDecisionReader
from seasoned.memory.retrieval.latest_step_reader import LatestStepReader, n_steps_at
from seasoned.memory.retrieval.plateau import PlateauReader
from seasoned.memory.retrieval.prior_leads import PriorLeadReader
from seasoned.memory.retrieval.return_moments import ReturnMoments
from seasoned.memory.retrieval.task_cells import TaskReader
from seasoned.memory.retrieval.visits import Visit, first_with
from seasoned.memory.stores.base import Store, Version
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import damaged
from seasoned.memory.values.ranking import latest_first, rank_key
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.memory.values.text_limits import check_size
from seasoned.memory.writing.episode_writer import Writer
from seasoned.protocols import StateEncoder
from seasoned.states.subwords import SubwordEncoder
from seasoned.types import Evidence, EvidenceQuery, Experience, Neighbor, TaskSums
from seasoned.types.queries import MAX_LISTED_NEIGHBORS, Similarity, check_nearest, check_similarity

__all__ = ["MAX_LISTED_NEIGHBORS", "Retriever"]

_CHUNK_VISITS = 16  # read at once, where the texts of a search are limited
_RECURS = 0.5  # the share of common features from which on a state is one that came back
_ALIKE = 0.3  # the least share of a state that is compared with one that came back a few times
_MOST_RECURRING = 64


class _Gathered(NamedTuple):
    """The parts of an answer: similarity by set id, rows of evidence, visits of the neighbours, their experiences.

    `squared_weights` belong to the rows, where propensities weigh them; `n_unlogged` counts steps without one;
    `nearest` are the distinct states, none where steps are asked for.
    """

    sets: dict[int, float]
    rows: list[EvidenceRow]
    squared_weights: list[float] | None
    n_unlogged: int
    visits: list[Visit]
    experiences: dict[int, tuple[Experience, int]]
    nearest: Sequence[Match]


class Retriever:
    """Searches one namespace by an index that follows the commits of its store.

    Attributes:
        follower: the commit up to which the caches of this namespace read.
    """

    def __init__(
        self,
        store: Store,
        namespace_id: int,
        reader: Reader,
        writer: Writer,
        inbox: Inbox,
        encoder: StateEncoder,
        max_text_bytes: int,
    ) -> None:
        self._store = store
        self._ns = namespace_id
        self._reader = reader
        self._writer = writer
        self._inbox = inbox
        self._encoder = encoder
        self._max_text_bytes = max_text_bytes
        self.follower = CommitFollower(store, namespace_id)
        self._cursor = CommitCursor(self.follower)
        self._index = JaccardIndex()
        keys_of = whole_keys if isinstance(encoder, SubwordEncoder) else subword_keys
        self._rarity = RarityIndex(without_goals(keys_of))
        self._goals = GoalIndex(self._rarity)
        self._last_token = self._last_visit = -1
        self._last_event = 0
        self._views: dict[tuple[float, float], int] = {}
        self._choices = ChoiceReader(store, namespace_id, self.follower)
        self._labels = LabelledDecisionReader(store, namespace_id, self.follower)
        self._latest = LatestStepReader(self._labels, lambda: self._merged)
        self._tasks = TaskReader(lambda: self._merged)
        self._moments = ReturnMoments(self._choices, self._tasks, lambda: self._merged)
        self._plateaus = PlateauReader(store, namespace_id, lambda: self._merged)
        self._leads = PriorLeadReader(self._moments, lambda: self._merged)
        self._graphs = GraphCache(store, namespace_id, self.follower)
        self._overlay = Overlay(store, namespace_id, encoder)
        self._overlay_revision = 0
        self._recurring: tuple[frozenset[str], Sequence[Match]] | None = None

    # ------------------------------------------------------------------------------------------ freshness

    @contextlib.contextmanager
    def fresh_snapshot(self, gamma: float, decay: float) -> Iterator[int]:
        """Open a snapshot with a fresh index, in which the view of this discount and decay exists; yield its id.

        Pending episodes are derived first; the overlay merges those that cannot be.

        Raises:
            IntegrityError: a stored value is damaged.
        """
        with self._store.lock:
            derivable, derived = self._inbox.can_derive(), False
            while True:
                view_id = self._view_id(gamma, decay)
                with self._store.snapshot():
                    version = self._store.version(self._ns)
                    known = version.generation == self.follower.generation
                    derivable = derivable and not self._inbox.was_refused(version)
                    if known and (version.pending is None or not derivable):
                        self._refresh(version._replace(pending=None) if derived else version)
                        yield view_id
                        return
                if not known:
                    self._views.clear()
                    self._overlay.reset()
                    self.follower.reset(version.generation)
                    derived = False
                    continue
                derived = self._inbox.try_derive()
                derivable = False  # the overlay merges the rest; episodes added meanwhile are for the next query

    def _view_id(self, gamma: float, decay: float) -> int:
        """Return the view's id; derive it first if this discount is new."""
        if (gamma, decay) not in self._views:
            with self._store.snapshot():
                view_id = self._reader.view_id(gamma, decay)
            if view_id is None:
                if self._store.read_only:
                    raise ReadOnlyStoreError(
                        f"gamma = {gamma}, decay = {decay}, in a memory opened read-only",
                        "the returns at a new discount are derived once, by writing",
                        "Open the memory for writing, or ask at its own gamma.",
                    )
                with self._store.transaction(self._ns):
                    view_id = self._writer.ensure_view(gamma, decay)
            self._views[gamma, decay] = view_id
        return self._views[gamma, decay]

    def _refresh(self, version: Version) -> None:
        """Bring the index and the overlay up to the version of this snapshot; the cost grows with the new rows."""
        self.follower.catch_up(version)
        change = self._cursor.change()
        if change is not Change.NONE:
            self._follow(change)
        self._overlay.catch_up(version)
        if self._overlay.revision != self._overlay_revision:
            for cache in (self._moments, self._tasks, self._plateaus, self._leads, self._rarity):
                cache.clear()
            self._rarity.terms.replace_pending(self._overlay.tokens)
            self._goals.replace_pending(self._overlay.tokens)
            self._overlay_revision = self._overlay.revision

    def _follow(self, change: Change) -> None:
        """Add the new tokens and feature sets to the index, or read all of them again."""
        check_same_encoder(self.follower.encoder, self._encoder.identity)
        if change is Change.RESET:
            for index in (self._index, self._rarity, self._goals, self._leads):
                index.clear()
            self._last_token = self._last_visit = -1
            tokens = self._reader.tokens_after(self._last_token)
            self._rarity.terms.replace(tokens)
        else:
            tokens = self._reader.tokens_after(self._last_token)
            self._rarity.terms.add(tokens)
        self._goals.add(tokens)
        self._last_token = max(tokens.values(), default=self._last_token)
        last = self._last_visit
        has_judged = change is Change.ADDED and self.follower.n_events > self._last_event
        judged = judged_after(self._store, self._ns, self._last_event) if has_judged else []
        known = [ordinal for ordinal in judged if ordinal << STEP_BITS <= last]
        for ids, sizes, members, visits in chain(sets_of(self._store, self._ns, known), self._reader.sets_after(last)):
            if len(members) and int(members.max()) > self._last_token:
                raise damaged(self._store.path, f"a feature set with token {members.max()}, which is not stored")
            try:
                self._index.add_arrays(ids, sizes, members, visits)
            except InputError as error:
                raise damaged(self._store.path, str(error)) from error
            last = max(last, int(visits.max()))
        self._last_visit, self._last_event = last, self.follower.n_events
        self._recurring = None
        self._tasks.add_judged(judged)
        for cache in (self._moments, self._tasks, self._plateaus):
            cache.clear() if change is Change.RESET else cache.advance()
        self._cursor.advance()

    @property
    def _merged(self) -> Reader:
        """A reader of the stored rows and of the overlay's."""
        return self._overlay.reader or self._reader

    def spread(self, view_id: int) -> float:
        """Return the robust spread of the namespace's returns; read once per commit."""
        return self._moments.spread(view_id)

    # ------------------------------------------------------------------------------------------ neighbours

    def nearest_sets(
        self,
        features: frozenset[str],
        k: int,
        threshold: float,
        task_filter: TaskFilter,
        *,
        include_pending: bool = True,
        similarity: Similarity = "jaccard",
    ) -> Sequence[Match]:
        """Return the k most similar distinct states that have a live step outside of the excluded task.

        Each is (similarity, the latest such visit, set id). Without `include_pending`, steps of pending episodes do not
        count in the search by Jaccard.
        """
        tokens = self.tokens_of(features)
        reader = self._merged if include_pending else self._reader
        latest: dict[int, int] = {}
        known: set[int] = set()
        wanted = k
        while True:
            matches: Sequence[Match]
            if similarity == "rarity":
                matches = self._goals.search(self._layers(), features, k=wanted, threshold=threshold)
            else:
                [matches] = self._index.match_many([tokens], n_features=[len(features)], k=wanted, threshold=threshold)
                if include_pending:
                    matches = self._overlay.nearest(matches, features, tokens, k=wanted, threshold=threshold)
            if not task_filter:
                return matches
            # The index knows the latest visit of any task; ties are broken by the latest one outside of the task.
            latest |= reader.latest_visits([set_id for _, _, set_id in matches if set_id not in known], task_filter)
            known.update(set_id for _, _, set_id in matches)
            rest = [(near, latest[set_id], set_id) for near, _, set_id in matches if set_id in latest]
            if len(matches) < wanted or (len(rest) >= k and rest[k - 1][0] > matches[-1][0]):
                return sorted(rest, key=lambda match: rank_key(*match[:2]))[:k]
            wanted *= 4

    def recurring_sets(
        self, features: frozenset[str], k: int, task_filter: TaskFilter, *, include_pending: bool = True
    ) -> Sequence[Match]:
        """Return the k most similar of the distinct states that share half of these, searched once a commit."""
        if task_filter or k > _MOST_RECURRING or (include_pending and self._overlay.indexes):
            return self.nearest_sets(features, k, _RECURS, task_filter, include_pending=include_pending)
        if self._recurring is None or self._recurring[0] != features:  # a prompt and its check ask for the same state
            found = self.nearest_sets(features, _MOST_RECURRING, _RECURS, task_filter, include_pending=False)
            self._recurring = features, found
        return self._recurring[1][:k]

    def _layers(self) -> list[JaccardIndex]:
        """Return the index of the stored sets, then those of pending ones."""
        return [self._index, *self._overlay.indexes]

    def tokens_of(self, features: Iterable[str]) -> list[int]:
        """Return the numbers of those of these features that are stored."""
        number_of = self._rarity.terms.number_of
        return [number_of[feature] for feature in features if feature in number_of]

    def _visits_at(
        self,
        nearest: Sequence[Match],
        limit: int,
        task_filter: TaskFilter,
        n_at: Mapping[int, int] | None = None,
        *,
        stored_sums: bool = False,
    ) -> list[Visit]:
        """Return at most `limit` visits to these distinct states, most similar first, then latest first.

        `n_at` is the number of visits to each, if it is known: so many of the nearest states are then read as have the
        `limit` visits, those with few visits by one statement. With `stored_sums` it does not come from the same tables
        as the visits, so that it may stand for them: the only visit to a state is its latest.
        """
        read: dict[int, list[int]] = {}
        if n_at and limit:
            nearest = first_with(limit, nearest, n_at)
            if stored_sums:
                read = {set_id: [visit] for _, visit, set_id in nearest if n_at[set_id] == 1}
            few = [set_id for _, _, set_id in nearest if set_id not in read and n_at[set_id] <= limit]
            read |= self._merged.visits_at(few, task_filter) if len(few) > 1 else {}
        visits: list[Visit] = []
        for position, (similarity, _, set_id) in enumerate(nearest if limit else ()):
            if len(visits) >= limit and similarity < nearest[position - 1][0]:
                break
            recent = read[set_id] if set_id in read else self._merged.recent_visits(set_id, limit, task_filter)
            visits += [Visit(visit, similarity, set_id) for visit in recent]
        visits.sort(key=lambda found: rank_key(found.similarity, found.visit))
        return visits[:limit]

    def _nearest_visits(
        self,
        features: frozenset[str],
        k: int,
        threshold: float,
        task_filter: TaskFilter,
        similarity: Similarity = "jaccard",
    ) -> list[Visit]:
        # Each of the k nearest steps is at one of the k nearest distinct states: a state further down has k states
        # before it, each with a step that comes before all of its own.
        nearest = self.nearest_sets(features, k, threshold, task_filter, similarity=similarity)
        return self._visits_at(nearest, k, task_filter)

    def search(
        self,
        state: str,
        k: int,
        threshold: float,
        *,
        gamma: float,
        exclude_task: str | None,
        similarity: Similarity = "jaccard",
        start: int = 0,
        max_chars: int | None = None,
    ) -> list[Neighbor]:
        """Return the k nearest stored steps; see `Memory.search`."""
        check_text("state", state)
        check_size("state", state, self._max_text_bytes)
        if exclude_task is not None:
            check_text("exclude_task", exclude_task)
        k, threshold = check_nearest(k, threshold)
        check_gamma(gamma)
        check_similarity(similarity)
        check_whole("start", start, 0, next_step="Leave it out for the best.")
        if max_chars is not None:
            check_whole("max_chars", max_chars, 1, next_step="Leave it out for all.")
        features = self._encoder.features(state)
        with self.fresh_snapshot(gamma, 1.0) as view_id:
            visits = self._nearest_visits(features, k, threshold, TaskFilter(exclude_task), similarity)[start:]
            chunk = max(1, len(visits)) if max_chars is None else _CHUNK_VISITS
            neighbors: list[Neighbor] = []
            n_chars = 0
            for first in range(0, len(visits), chunk):
                read = visits[first : first + chunk]
                found = self._merged.experiences(view_id, [visit.visit for visit in read])
                neighbors += [Neighbor(found[visit.visit][0], visit.similarity) for visit in read]
                if max_chars is not None:
                    n_chars += sum(len(one.experience.state) + len(one.experience.action) for one in neighbors[first:])
                    if n_chars > max_chars:
                        break
            return neighbors

    def steps(self, gamma: float) -> list[Experience]:
        """Return every stored step that is not excluded, the latest first; see `Memory.steps`."""
        check_gamma(gamma)
        with self.fresh_snapshot(gamma, 1.0) as view_id:
            nearest = self._nearest_visits(frozenset(), max(1, self._reader.step_count()), 0.0, TaskFilter(None))
            visits = latest_first(visit.visit for visit in nearest)
            found = self._merged.experiences(view_id, visits)
            return [found[visit][0] for visit in visits]

    # ------------------------------------------------------------------------------------------ evidence

    def evidence(self, query: EvidenceQuery, *, gamma: float) -> Evidence:
        """Return the evidence at the nearest states, per action; see `Memory.evidence`.

        Args:
            query: the query, its texts redacted.
            gamma: the discount, where the query names none.
        """
        check_size("state", query.state, self._max_text_bytes)
        gamma = gamma if query.gamma is None else query.gamma
        if query.backup is not None:
            check_backup(gamma, query.backup)
        features = self._encoder.features(query.state)
        task_filter = TaskFilter(query.exclude_task)
        with self.fresh_snapshot(gamma, query.decay) as view_id:
            now = self._merged.last_ordinal()
            found = self._gather(query, view_id, features, task_filter, now)
            rows, squared_weights = found.rows, found.squared_weights
            chosen = ChoicesAtStates([], [], {})
            if query.compare_choices:
                self._choices.catch_up()
                chosen = self._choices.at(found.sets, view_id, gamma, task_filter)
                rows = rows + chosen.corrections
            if query.similarity_power or query.decay < 1.0:
                factors = [
                    found.sets[row.set_id] ** query.similarity_power * query.decay ** (now - row.ordinal)
                    for row in rows
                ]
                rows = [weigh_row(row, factor) for row, factor in zip(rows, factors, strict=True)]
                if squared_weights is not None:
                    squared_weights = [factor * weight for factor, weight in zip(factors, squared_weights, strict=True)]
            if query.backup is not None:
                rows = revalued(rows, self._graphs.get(gamma, query.backup, query.exclude_task, self._overlay))
            ranked = list(found.sets)
            if squared_weights is None:
                summed = sum_rows(rows, ranked)
            else:
                summed = effective_sums(rows, squared_weights, ranked)
            shown = self._shown(query, found, task_filter)
            effects = chosen.effects
            answers = {visit for visit, effect in effects.items() if effect.is_answer}
            n_shown = Counter(key_id for visit, key_id in shown.items() if visit not in answers)
            choices = [choice for choice in chosen.choices if shown.keys().isdisjoint(choice.visits)]
            actions = self._actions(summed.keys)
            if labels := self._labelled_sums(query, found, task_filter, now, actions):
                summed, actions = labels.with_steps(summed), labels.rows.actions
            by_rarity = query.similarity == "rarity"
            # The process has its unit from the recent returns, and the spread less all choices takes longer to read.
            compared = query.compare_choices and not by_rarity
            spread = self._moments.spread_without_choices(query, view_id, gamma) if compared else self.spread(view_id)
            state_similarities = self._goals.similarities(self._layers(), ranked) if by_rarity else None
            listed = without_choices(self._listed_returns(query, view_id, found, task_filter), effects)
            with_recent = by_rarity or query.recent_returns
            recent = self._moments.recent(query, view_id, gamma, task_filter, listed) if with_recent else None
            at_states = view_id, found.rows, ranked, summed.keys, task_filter, effects, labels
            latest = self._latest.read(*at_states) if by_rarity and query.counts_alike else None
            by_task = self._by_task(query, view_id, features, found, summed.keys, effects, labels)
            frontier = self._frontier(query, view_id, found, summed.keys, by_task)
            taken_leads = self._leads.taken(query, view_id, gamma, task_filter, recent)
            by_state = self._leads.on(summed.by_state, taken_leads, ranked, actions, task_filter)
        return Evidence(
            actions=tuple(actions),
            counts=summed.sums[:, 0],
            weights=summed.sums[:, 1],
            totals=summed.sums[:, 2],
            squares=summed.sums[:, 3],
            spread=spread,
            gamma=gamma,
            n_states=len(ranked),
            neighbors=tuple(
                Neighbor(found.experiences[one.visit][0], one.similarity) for one in found.visits[: query.listed]
            ),
            by_state=by_state,
            n_episodes=now,
            n_unlogged=found.n_unlogged,
            unshown=summed.sums[:, 0] - [n_shown[key_id] for key_id in summed.keys] if query.shown_steps else None,
            similarities=np.array(list(found.sets.values())) if query.unit == "states" else None,
            state_similarities=state_similarities,
            recent=recent,
            latest=latest,
            by_task=by_task,
            choices=observed_choices(choices, query, found.sets, summed.keys, now),
            frontier=frontier,
            labelled=None if labels is None else labels.counts,
            taken_leads=taken_leads,
        )

    def _actions(self, keys: Sequence[int]) -> list[str]:
        """Return the text of each action."""
        texts = self._merged.action_texts(keys)
        if len(texts) < len(keys):
            raise damaged(self._store.path, f"{len(keys) - len(texts)} actions without a text")
        return [texts[key_id] for key_id in keys]

    def _labelled_sums(
        self, query: EvidenceQuery, found: _Gathered, task_filter: TaskFilter, now: int, actions: Sequence[str]
    ) -> LabelledSums | None:
        """Return what labels at the neighbours tell beside the stored steps; None if nothing, or not asked."""
        if not query.labels:
            return None
        self._labels.catch_up()
        labelled = self._labels.at(found.sets, task_filter, decay=query.decay, now=now)
        return LabelledSums(labelled, found.sets, query.similarity_power, OptionRows(actions)) if labelled else None

    def _frontier(
        self, query: EvidenceQuery, view_id: int, found: _Gathered, keys: Sequence[int], by_task: TaskSums | None
    ) -> Floats | None:
        """Return how near the frontier is by each action at the state itself, if the task is to be explored there."""
        here, near = next(iter(found.sets.items()), (0, 0.0))
        if near < 1.0 or not self._plateaus.is_explored(query, view_id, here, found.rows, by_task):
            return None
        taken = [key_id for key_id in keys if key_id >= 0]
        near_frontier = self._graphs.frontier(self._overlay).q([here] * len(taken), taken)
        return np.concatenate([near_frontier, np.full(len(keys) - len(taken), np.nan)])

    def _nearest_states(
        self, query: EvidenceQuery, features: frozenset[str], task_filter: TaskFilter
    ) -> Sequence[Match]:
        """Return the k distinct states most similar to the query, among those that `among` allows."""
        if query.among is not None and sum(map(len, self._layers())) > query.among:
            first = self.recurring_sets(features, query.among, task_filter)
            if query.k / 2 <= len(first) < query.k:
                first = self.nearest_sets(features, query.among, _ALIKE, task_filter)
            if len(first) >= query.k / 2:
                return self._goals.best_of(self._layers(), features, first, k=query.k, threshold=query.threshold)
        return self.nearest_sets(features, query.k, query.threshold, task_filter, similarity=query.similarity)

    def _gather(
        self, query: EvidenceQuery, view_id: int, features: frozenset[str], task_filter: TaskFilter, now: int
    ) -> _Gathered:
        """Return the nearest states, the rows of evidence there, and the listed neighbours."""
        squared_weights, n_unlogged = None, 0
        nearest: Sequence[Match] = ()
        if query.unit == "states":
            nearest = self._nearest_states(query, features, task_filter)
            sets = {set_id: near for near, _, set_id in nearest}
            by_episode = query.decay < 1.0
            if query.propensity_floor is None:
                rows = self._merged.filtered_evidence(view_id, list(sets), task_filter, by_episode=by_episode)
            else:
                pairs, n_unlogged = propensity_rows(
                    self._merged,
                    view_id,
                    list(sets),
                    floor=query.propensity_floor,
                    task_filter=task_filter,
                    by_episode=by_episode,
                )
                rows, squared_weights = [pair.row for pair in pairs], [pair.squared_weight for pair in pairs]
            visits = self._listed_visits(query, nearest, rows, task_filter, query.listed)
            experiences = self._merged.experiences(view_id, [visit.visit for visit in visits])
        else:
            visits = self._nearest_visits(features, query.k, query.threshold, task_filter)
            sets = {visit.set_id: visit.similarity for visit in visits}
            experiences = self._merged.experiences(view_id, [visit.visit for visit in visits])
            rows = []
            for visit in visits:
                step, key_id = experiences[visit.visit]
                total, ordinal = step.return_, visit.visit >> STEP_BITS
                rows.append(EvidenceRow(visit.set_id, key_id, 1, 1.0, total, total * total, ordinal))
        if max((row.ordinal for row in rows), default=now) > now:
            raise damaged(self._store.path, f"evidence of an episode after the last, {now}")
        return _Gathered(sets, rows, squared_weights, n_unlogged, visits, experiences, nearest)

    def _listed_visits(
        self,
        query: EvidenceQuery,
        nearest: Sequence[Match],
        rows: Sequence[EvidenceRow],
        task_filter: TaskFilter,
        limit: int,
    ) -> list[Visit]:
        """Return the latest visits to the nearest states, by the rows of evidence there."""
        stored_sums = query.propensity_floor is None and not task_filter
        return self._visits_at(nearest, limit, task_filter, n_steps_at(rows), stored_sums=stored_sums)

    def _listed_returns(
        self, query: EvidenceQuery, view_id: int, found: _Gathered, task_filter: TaskFilter
    ) -> Iterator[RecentReturn]:
        """Yield the returns of the listed neighbours; without a list, those of the usual one, read at the first."""
        steps = found.experiences
        if not query.listed and found.nearest:
            visits = self._listed_visits(query, found.nearest, found.rows, task_filter, MAX_LISTED_NEIGHBORS)
            steps = self._merged.experiences(view_id, [visit.visit for visit in visits])
        for visit, (step, _) in steps.items():
            yield RecentReturn(visit, step.return_, step.task)

    def _by_task(
        self,
        query: EvidenceQuery,
        view_id: int,
        features: frozenset[str],
        found: _Gathered,
        keys: Sequence[int],
        effects: Mapping[int, ChoiceEffect],
        labels: LabelledSums | None,
    ) -> TaskSums | None:
        """Return the sums by task, if they are asked for."""
        if not query.by_task:
            return None
        ranked, task_filter = list(found.sets), TaskFilter(query.exclude_task)
        situations = self._goals.situations(self._layers(), features, ranked)
        return self._tasks.sums(
            view_id, found.rows, ranked, keys, task_filter, query.current_task, effects, labels, situations
        )

    def _shown(self, query: EvidenceQuery, found: _Gathered, task_filter: TaskFilter) -> dict[int, int]:
        """Return the keys of the actions of the displayed steps that are among the neighbours, by visit."""
        if not query.shown_steps:
            return {}
        shown = self._merged.visits_of(query.shown_steps, task_filter).values()
        of_states, listed = query.unit == "states", {visit.visit for visit in found.visits}
        near = (step for step in shown if (step.set_id in found.sets if of_states else step.visit in listed))
        return {step.visit: step.key_id for step in near}
