"""From a state to its neighbours and to what they are evidence of."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Hashable, Iterator
from typing import Literal

from seasoned.checks import check_number, check_text
from seasoned.core import check_gamma
from seasoned.errors import InputError, ReadOnlyStoreError
from seasoned.memory.index.jaccard import JaccardIndex, check_nearest
from seasoned.memory.pending.inbox import Inbox
from seasoned.memory.pending.overlay import Overlay
from seasoned.memory.reading.evidence_sums import summed_up, weighed
from seasoned.memory.reading.propensity_weights import check_floor, effective_sums, propensity_rows
from seasoned.memory.reading.reader import Reader
from seasoned.memory.retrieval.graph_cache import GraphKeeper, check_backup, revalued
from seasoned.memory.stores.base import Store, Version
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import EncoderFailedError, naming_damage
from seasoned.memory.values.step_ref import check_places
from seasoned.memory.values.task_filter import Outside
from seasoned.memory.values.text_limits import check_size
from seasoned.memory.writing.episode_writer import Writer
from seasoned.protocols import StateEncoder
from seasoned.types import Backup, Evidence, Neighbor

__all__ = ["MAX_LISTED_NEIGHBORS", "Retriever"]

MAX_LISTED_NEIGHBORS = 50

Ranked = list[tuple[int, float]]
"""(set id, similarity), best first."""

Visit = tuple[int, float, int]
"""A visit, the similarity of its state, and the set id of that."""


class Retriever:
    """Keeps an index that follows the store's commits, and reads what it points to."""

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
        self._index = JaccardIndex()
        self._token_of: dict[str, int] = {}
        self._seen_token = self._seen_visit = -1
        self._seen_version: Hashable = None
        self._seen_epoch: int | None = None
        self._seen_generation: int | None = None
        self._views: dict[tuple[float, float], int] = {}
        self._spreads: dict[int, float] = {}
        self._graphs = GraphKeeper(store, namespace_id)
        self._overlay = Overlay(store, namespace_id, encoder)
        self._n_changes = 0

    # ------------------------------------------------------------------------------------------ freshness

    @contextlib.contextmanager
    def view(self, gamma: float, decay: float) -> Iterator[int]:
        """A snapshot in which the index is fresh and the view for this discount and decay exists; gives its id.

        What has arrived is folded; what cannot be is laid over what is stored. Rows that make no sense are told as
        damage; what the encoder says of an arrival is passed on.
        """
        try:
            with self._viewing(gamma, decay) as view_id:
                yield view_id
        except EncoderFailedError as failed:
            raise failed.reason from None

    @contextlib.contextmanager
    def _viewing(self, gamma: float, decay: float) -> Iterator[int]:
        with self._store.lock:
            derivable, derived = self._inbox.can_derive(), False
            while True:
                with naming_damage(self._store.path):
                    view_id = self._view_id(gamma, decay)
                    with self._store.snapshot():
                        version = self._store.version(self._ns)
                        known = version.generation == self._seen_generation
                        derivable = derivable and not self._inbox.was_refused(version)
                        if known and (version.pending is None or not derivable):
                            self._refresh(version._replace(pending=None) if derived else version)
                            yield view_id
                            return
                if not known:
                    self._forget(version.generation)
                    derived = False
                    continue
                derived = self._inbox.try_derive()  # calls the encoder: an error of it is no damage
                derivable = False  # the overlay merges the rest; episodes added meanwhile are for the next query

    def _forget(self, generation: int) -> None:
        """Forget everything that was read: the server behind this connection may never have had it."""
        self._views.clear()
        self._overlay.reset()
        self._seen_epoch = self._seen_version = None
        self._seen_generation = generation

    def _view_id(self, gamma: float, decay: float) -> int:
        """Return the view's id; gather it first if nobody asked for this discount before."""
        if (gamma, decay) not in self._views:
            with self._store.snapshot():
                view_id = self._reader.view_id(gamma, decay)
            if view_id is None:
                if self._store.read_only:
                    raise ReadOnlyStoreError(
                        f"gamma = {gamma}, decay = {decay}, in a memory opened read-only",
                        "returns at a discount that nobody asked for before are gathered once, by writing",
                        "Open the memory for writing, or ask at its own gamma.",
                    )
                with self._store.transaction(self._ns):
                    view_id = self._writer.ensure_view(gamma, decay)
            self._views[gamma, decay] = view_id
        return self._views[gamma, decay]

    def _refresh(self, version: Version) -> None:
        """Bring the index, and what lies above it, up to this commit, the store's last; costs what is new."""
        if version.mark != self._seen_version:
            self._follow(version)
        self._overlay.catch_up(version)
        if self._overlay.revision != self._n_changes:
            self._spreads.clear()
            self._n_changes = self._overlay.revision

    def _follow(self, version: Version) -> None:
        self._reader.check_encoder(self._encoder.identity)
        if self._reader.epoch() != self._seen_epoch:
            self._index.clear()
            self._token_of.clear()
            self._seen_token = self._seen_visit = -1
            self._seen_epoch = self._reader.epoch()
        for token_id, text in self._reader.tokens_after(self._seen_token):
            self._token_of[text] = token_id
            self._seen_token = max(self._seen_token, token_id)
        last = self._seen_visit
        for ids, sizes, tokens, visits in self._reader.sets_after(self._seen_visit):
            self._index.add_arrays(ids, sizes, tokens, visits)
            last = max(last, int(visits.max()))
        self._seen_visit = last
        self._spreads.clear()
        self._seen_version = version.mark

    @property
    def seen(self) -> tuple[int | None, Hashable]:
        """Which connection it has read by, and the mark of the commit up to which it has followed."""
        return self._seen_generation, self._seen_version

    @property
    def _reading(self) -> Reader:
        """Reads what is stored, under what has arrived."""
        return self._overlay.reader or self._reader

    def spread(self, view_id: int) -> float:
        """Return the robust spread of the namespace's returns; read once per commit."""
        if view_id not in self._spreads:
            self._spreads[view_id] = self._reading.spread(view_id)
        return self._spreads[view_id]

    # ------------------------------------------------------------------------------------------ neighbours

    def _nearest_sets(self, features: frozenset[str], k: int, threshold: float, outside: Outside) -> Ranked:
        """Return the k most similar distinct states, of those with a step that is not left out."""
        tokens = [self._token_of[feature] for feature in features if feature in self._token_of]
        latest: dict[int, int] = {}
        asked: set[int] = set()
        wanted = k
        while True:
            found = self._index.search(tokens, n_features=len(features), k=wanted, threshold=threshold)
            found = self._overlay.nearest(found, features, tokens, k=wanted, threshold=threshold)
            if not outside:
                return found
            # The index knows the latest visit of any task; ties are broken by the latest one that counts.
            latest |= self._reading.latest_visits([set_id for set_id, _ in found if set_id not in asked], outside)
            asked.update(set_id for set_id, _ in found)
            kept = [pair for pair in found if pair[0] in latest]
            if len(found) < wanted or (len(kept) >= k and kept[k - 1][1] > found[-1][1]):
                return sorted(kept, key=lambda pair: (-pair[1], -latest[pair[0]]))[:k]
            wanted *= 4

    def _visits_at(self, sets: Ranked, limit: int, outside: Outside) -> list[Visit]:
        """Return at most `limit` visits to these distinct states, most similar first, then latest first."""
        visits: list[Visit] = []
        for position, (set_id, similarity) in enumerate(sets):
            if len(visits) >= limit and similarity < sets[position - 1][1]:
                break
            recent = self._reading.recent_visits(set_id, limit, outside)
            visits += [(visit, similarity, set_id) for visit in recent]
        visits.sort(key=lambda found: (-found[1], -found[0]))
        return visits[:limit]

    def _nearest_visits(self, features: frozenset[str], k: int, threshold: float, outside: Outside) -> list[Visit]:
        # Each of the k nearest steps is at one of the k nearest distinct states: a state further down has k states
        # before it, each with a step that comes before all of its own.
        return self._visits_at(self._nearest_sets(features, k, threshold, outside), k, outside)

    def _checked(self, state: str, k: int, threshold: float, exclude_task: str | None) -> tuple[int, float]:
        """Refuse what cannot be asked; return k and the threshold."""
        check_text("state", state)
        check_size("state", state, self._max_text_bytes)
        if exclude_task is not None:
            check_text("task", exclude_task)
        return check_nearest(k, threshold)

    def search(self, state: str, k: int, threshold: float, *, gamma: float, exclude_task: str | None) -> list[Neighbor]:
        """Return the k nearest stored steps; see `Memory.search`."""
        k, threshold = self._checked(state, k, threshold, exclude_task)
        check_gamma(gamma)
        features = self._encoder.features(state)
        with self.view(gamma, 1.0) as view_id:
            visits = self._nearest_visits(features, k, threshold, Outside(exclude_task))
            found = self._reading.experiences(view_id, [visit for visit, _, _ in visits])
            return [Neighbor(found[visit][0], similarity) for visit, similarity, _ in visits]

    # ------------------------------------------------------------------------------------------ evidence

    def _read_steps(
        self,
        shown: Collection[tuple[str, int]],
        outside: Outside,
        sets: Collection[int],
        visits: Collection[int] | None,
    ) -> Counter[int]:
        """Count by action the shown steps that are among the neighbours: these visits, or all at these states."""
        found = self._reading.visits_of(shown, outside) if shown else {}
        return Counter(
            key_id
            for visit, (set_id, key_id) in found.items()
            if (set_id in sets if visits is None else visit in visits)
        )

    def evidence(
        self,
        state: str,
        *,
        k: int,
        unit: Literal["steps", "states"],
        threshold: float,
        gamma: float,
        similarity_power: float,
        decay: float,
        exclude_task: str | None,
        backup: Backup | None = None,
        propensity_floor: float | None = None,
        shown_steps: Collection[tuple[str, int]] = (),
    ) -> Evidence:
        """Return what is known about the nearest moments, per action; see `Memory.evidence`."""
        k, threshold = self._checked(state, k, threshold, exclude_task)
        if unit not in ("steps", "states"):
            raise InputError(f"unit = {unit!r}", "evidence is counted in 'steps' or 'states'", "Choose one.")
        similarity_power, decay = check_number("similarity_power", similarity_power), check_number("decay", decay)
        if similarity_power < 0.0:
            raise InputError(f"similarity_power = {similarity_power}", "it is at least 0", "0 weighs all alike.")
        if not 0.0 < decay <= 1.0:
            raise InputError(f"decay = {decay}", "a decay per episode is in (0, 1]", "1 forgets nothing.")
        check_gamma(gamma)
        if backup is not None:
            check_backup(gamma, backup)
        floor = None if propensity_floor is None else check_floor(propensity_floor)
        if floor is not None and unit != "states":
            raise InputError(
                f"propensity_floor = {floor}, unit = 'steps'", "all steps at a state are weighed", "Use unit='states'."
            )
        shown = check_places("shown_steps", shown_steps)
        features = self._encoder.features(state)
        seconds: list[float] = []
        n_unlogged = 0
        with self.view(gamma, decay) as view_id:
            now = self._reading.last_ordinal()
            outside = Outside(exclude_task)
            if unit == "states":
                sets = dict(self._nearest_sets(features, k, threshold, outside))
                ranked = list(sets)
                if floor is None:
                    rows = self._reading.evidence_outside(view_id, ranked, outside, by_episode=decay < 1.0)
                else:
                    pairs, n_unlogged = propensity_rows(
                        self._reading, self._ns, view_id, ranked, floor=floor, outside=outside, by_episode=decay < 1.0
                    )
                    rows, seconds = [row for row, _ in pairs], [second for _, second in pairs]
                visits = self._visits_at(list(sets.items()), MAX_LISTED_NEIGHBORS, outside)
                found = self._reading.experiences(view_id, [visit for visit, _, _ in visits])
            else:
                visits = self._nearest_visits(features, k, threshold, outside)
                sets = {set_id: similarity for _, similarity, set_id in visits}
                ranked = list(sets)
                found = self._reading.experiences(view_id, [visit for visit, _, _ in visits])
                rows = [
                    (
                        set_id,
                        found[visit][1],
                        1,
                        1.0,
                        found[visit][0].return_,
                        found[visit][0].return_ ** 2,
                        visit >> STEP_BITS,
                    )
                    for visit, _, set_id in visits
                ]
            if similarity_power or decay < 1.0:
                factors = [sets[row[0]] ** similarity_power * decay ** (now - row[-1]) for row in rows]
                rows = [weighed(row, factor) for row, factor in zip(rows, factors, strict=True)]
                seconds = [factor * second for factor, second in zip(factors, seconds, strict=floor is not None)]
            if backup is not None:
                rows = revalued(rows, self._graphs.fresh(gamma, backup, exclude_task, self._overlay))
            key_ids, by_action, by_state = (
                summed_up(rows, ranked) if floor is None else effective_sums(rows, seconds, ranked)
            )
            listed = {visit for visit, _, _ in visits} if unit == "steps" else None
            read = self._read_steps(shown, outside, sets, listed)
            texts = self._reading.action_texts(key_ids)
            neighbors = tuple(Neighbor(found[visit][0], s) for visit, s, _ in visits[:MAX_LISTED_NEIGHBORS])
            spread = self.spread(view_id)
        return Evidence(
            actions=tuple(texts[key_id] for key_id in key_ids),
            counts=by_action[:, 0],
            weights=by_action[:, 1],
            totals=by_action[:, 2],
            squares=by_action[:, 3],
            spread=spread,
            gamma=gamma,
            n_states=len(ranked),
            neighbors=neighbors,
            by_state=by_state,
            n_episodes=now,
            n_unlogged=n_unlogged,
            unshown=by_action[:, 0] - [read[key_id] for key_id in key_ids] if shown else None,
        )
