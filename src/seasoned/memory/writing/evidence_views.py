"""Views: returns, evidence and its distribution, derived from the steps for each discount and decay.

Every function runs inside a transaction of the caller.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from seasoned.core import discounted_returns
from seasoned.memory.reading.rows import EvidenceRow
from seasoned.memory.stores.base import Cursor, Store, TableKey
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import damaged, decode, decode_columns
from seasoned.memory.values.events import EventReward, feedback_sum

__all__ = ["CheckSum", "Deriver", "Evidences", "Group", "Moves", "PlacedSteps", "View", "histogram_bin", "summed"]

Group = tuple[int, int]
"""A distinct state and an action: set id and key id."""

CheckSum = Callable[[int, float, float, float], None]
"""Called with a step's visit, its reward, and the sums of its feedback before and after; raises for a wrong sum."""

StoredSums = tuple[int, float, float, float, int]
"""A row of evidence: number of steps, weight, total, squares, and the episode ordinal to which decay is computed.

A tuple, since one is made for each added step: as NamedTuples they made `add_many` slower by some percent.
"""


class View(NamedTuple):
    """A row of `view`: the discount and the decay of its returns and evidence."""

    id: int
    gamma: float
    decay: float


class PlacedSteps(NamedTuple):
    """An episode's ordinal, the group of each of its steps, and the reward of each."""

    ordinal: int
    groups: list[Group]
    rewards: list[float]


class _LiveStep(NamedTuple):
    visit: int
    reward: float
    feedback: float
    set_id: int
    key_id: int


class _DerivedStep(NamedTuple):
    visit: int
    reward: float
    set_id: int
    key_id: int
    live: bool
    feedback: float


class _VisitReturn(NamedTuple):
    visit: int
    return_: float


class _KeyedReturn(NamedTuple):
    key_id: int
    visit: int
    return_: float


class _Bin(NamedTuple):
    mean: float
    n_groups: int


class _DerivedRows(NamedTuple):
    """The started queries for an episode's steps, their live feedback, and their returns in each view."""

    steps: Cursor
    events: Cursor
    values: list[Cursor]


Evidences = dict[View, dict[Group, StoredSums]]
"""Rows of evidence, by view."""

Moves = defaultdict[int, Counter[float]]
"""By view id, the change of each count in the distribution of mean returns."""

_EVIDENCE_BY_SET = TableKey("evidence", ("namespace_id", "view_id"), "set_id")
_BATCH = 20_000
_QUERY_BATCH = 64


def histogram_bin(mean: float) -> float:
    """Return the bin of a mean return: the mean rounded to three significant digits (an error of at most 0.5 %)."""
    return float(f"{mean:.2e}")


def _mean_bin(sums: StoredSums) -> float:
    return histogram_bin(sums[2] / sums[1])  # total / weight


class Deriver:
    """Derives the views of one namespace."""

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id

    def views(self) -> list[View]:
        """Return every view."""
        return self.fetch_views(self.query_views())

    def query_views(self) -> Cursor:
        """Start the query for every view; `fetch_views` returns its result."""
        return self._store.execute("SELECT id, gamma, decay FROM view WHERE namespace_id = ? ORDER BY id", (self._ns,))

    def fetch_views(self, query: Cursor) -> list[View]:
        """Return the views that a query of `query_views` finds."""
        return decode(self._store.path, query.fetchall(), View)

    def known(self, views: Sequence[View], episodes: Sequence[PlacedSteps], *, new_sets: Collection[int]) -> Evidences:
        """Return the stored evidence at the states of these episodes, by view; the `new_sets` have none."""
        set_ids = {set_id for _, placed, _ in episodes for set_id, _ in placed if set_id not in new_sets}
        return {view: self._evidence(view.id, set_ids) for view in views}

    def add(self, episodes: Sequence[PlacedSteps], known: Evidences, moved: Moves) -> None:
        """Add the returns of new live episodes to the views, and the changes for `count` to `moved`."""
        for view, evidence in known.items():
            moved[view.id].update(self._gather(view, episodes, evidence))

    def count(self, moved: Moves) -> None:
        """Apply the changes to the distributions."""
        for view_id, changes in moved.items():
            self._count(view_id, changes)

    def fill(self, view: View) -> None:
        """Derive a new view from all live episodes. Raises: IntegrityError: a stored value is damaged."""
        rows = self._store.execute(
            "SELECT visit, reward, feedback, set_id, key_id FROM step "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "WHERE step.namespace_id = ? AND live ORDER BY visit",
            (self._ns,),
        ).fetchall()
        batch: list[PlacedSteps] = []
        moved: Moves = defaultdict(Counter)
        n_steps = 0
        steps = decode(self._store.path, rows, _LiveStep)
        for ordinal, of_episode in groupby(steps, key=lambda step: step.visit >> STEP_BITS):
            taken = list(of_episode)
            groups = [(step.set_id, step.key_id) for step in taken]
            batch.append(PlacedSteps(ordinal, groups, [step.reward + step.feedback for step in taken]))
            n_steps += len(taken)
            if n_steps >= _BATCH:
                self.add(batch, self.known([view], batch, new_sets=()), moved)
                batch, n_steps = [], 0
        self.add(batch, self.known([view], batch, new_sets=()), moved)
        self.count(moved)

    def rebuild(self) -> None:
        """Derive every view anew, after `live` of many steps was changed."""
        for view in self.views():
            for table in ("value", "evidence", "distribution"):
                self._store.execute(f"DELETE FROM {table} WHERE namespace_id = ? AND view_id = ?", (self._ns, view.id))
            self.fill(view)

    def _gather(self, view: View, episodes: Sequence[PlacedSteps], known: dict[Group, StoredSums]) -> Counter[float]:
        view_id, gamma, decay = view
        sums: dict[Group, StoredSums] = {}
        values: list[tuple[Any, ...]] = []
        for ordinal, placed, rewards in episodes:
            first = ordinal << STEP_BITS
            for index, (group, return_) in enumerate(
                zip(placed, discounted_returns(rewards, gamma).tolist(), strict=True)
            ):
                values.append((self._ns, view_id, first + index, return_))
                count, weight, total, squares, at = sums.get(group) or known.get(group) or (0, 0.0, 0.0, 0.0, ordinal)
                fade = decay ** (ordinal - at)
                sums[group] = (
                    count + 1,
                    fade * weight + 1.0,
                    fade * total + return_,
                    fade * squares + return_ * return_,
                    ordinal,
                )
        self._store.insert("value", values)
        return self._put(view_id, known, sums)

    def resum(self, view: View, groups: Collection[Group]) -> None:
        """Sum some groups again from their steps; a difference would keep the rounding error of a huge reward."""
        view_id, _, decay = view
        actions: defaultdict[int, list[int]] = defaultdict(list)
        for set_id, key_id in groups:
            actions[set_id].append(key_id)
        known = {row: sums for row, sums in self._evidence(view_id, actions).items() if row in set(groups)}
        visits: defaultdict[Group, list[tuple[int, float]]] = defaultdict(list)
        for set_id, keys in actions.items():
            rows = self._store.execute_in(
                "SELECT key_id, value.visit, return_ FROM step INDEXED BY step_by_set "
                "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
                "JOIN value ON value.namespace_id = step.namespace_id AND value.visit = step.visit "
                "WHERE step.namespace_id = ? AND set_id = ? AND live AND view_id = ? AND key_id IN {values}",
                (self._ns, set_id, view_id),
                keys,
            )
            for key_id, visit, return_ in decode(self._store.path, rows, _KeyedReturn):
                visits[set_id, key_id].append((visit, return_))
        moved = self._put(view_id, known, {group: summed(sorted(rows), decay) for group, rows in visits.items()})
        for set_id, key_id in known.keys() - visits.keys():
            self._store.execute(
                "DELETE FROM evidence WHERE namespace_id = ? AND view_id = ? AND set_id = ? AND key_id = ?",
                (self._ns, view_id, set_id, key_id),
            )
            moved[_mean_bin(known[set_id, key_id])] -= 1
        self._count(view_id, moved)

    def _evidence(self, view_id: int, set_ids: Iterable[int]) -> dict[Group, StoredSums]:
        columns = "set_id, key_id, count, weight, total, squares, ordinal"
        rows = self._store.lookup(_EVIDENCE_BY_SET, columns, (self._ns, view_id), sorted(set_ids))
        set_column, keys, *sums = decode_columns(self._store.path, rows, EvidenceRow)
        if min(sums[1], default=1.0) <= 0.0:
            raise damaged(self._store.path, "a weight of evidence that is not positive")
        return dict(zip(zip(set_column, keys, strict=True), zip(*sums, strict=True), strict=True))

    def _put(self, view_id: int, known: dict[Group, StoredSums], sums: dict[Group, StoredSums]) -> Counter[float]:
        """Write rows of evidence, and return the changes of the counts in the distribution of mean returns."""
        moved: Counter[float] = Counter()
        for group, new in sums.items():
            if group in known:
                moved[_mean_bin(known[group])] -= 1
            moved[_mean_bin(new)] += 1
        self._store.upsert("evidence", [(self._ns, view_id, *group, *new) for group, new in sums.items()])
        return moved

    def _count(self, view_id: int, moved: Counter[float]) -> None:
        changes = {mean: change for mean, change in moved.items() if change}
        rows = self._store.execute_in(
            "SELECT mean, count FROM distribution WHERE namespace_id = ? AND view_id = ? AND mean IN {values}",
            (self._ns, view_id),
            list(changes),
        )
        now = dict(zip(*decode_columns(self._store.path, rows, _Bin), strict=True))
        after = {mean: now.get(mean, 0) + change for mean, change in changes.items()}
        if min(after.values(), default=0) < 0:
            raise damaged(self._store.path, "a count below 0 in the distribution of returns")
        self._store.upsert("distribution", [(self._ns, view_id, mean, count) for mean, count in after.items() if count])
        self._store.execute_in(
            "DELETE FROM distribution WHERE namespace_id = ? AND view_id = ? AND mean IN {values}",
            (self._ns, view_id),
            [mean for mean, count in after.items() if not count],
        )

    def rederive(self, ordinals: Iterable[int], check_sum: CheckSum | None = None) -> None:
        """Sum the feedback of these episodes' steps again, then their returns, then the evidence of these.

        A step that is not `live` has no return; the caller has set `step.live`. `check_sum` may refuse a sum.
        """
        views = self.views()
        every = list(ordinals)
        changed: defaultdict[View, set[Group]] = defaultdict(set)
        for start in range(0, len(every), _QUERY_BATCH):
            self._rederive(every[start : start + _QUERY_BATCH], views, changed, check_sum)
        for view, groups in changed.items():
            self.resum(view, groups)

    def _rederive(
        self,
        ordinals: Sequence[int],
        views: Sequence[View],
        changed: defaultdict[View, set[Group]],
        check_sum: CheckSum | None,
    ) -> None:
        bounds = [(ordinal << STEP_BITS, (ordinal + 1 << STEP_BITS) - 1) for ordinal in ordinals]
        queries = [
            self._query_derived(views, *ends) for ends in bounds
        ]  # a server answers all of them in one round trip
        path = self._store.path
        fetched = [
            (
                decode(path, query.steps.fetchall(), _DerivedStep),
                decode(path, query.events.fetchall(), EventReward),
                [decode(path, values.fetchall(), _VisitReturn) for values in query.values],
            )
            for query in queries
        ]
        for steps, events, values in fetched:
            given: defaultdict[int, list[EventReward]] = defaultdict(list)
            for event in events:
                given[event.visit].append(event)
            feedback = [feedback_sum(given[row.visit], alone=len(steps) == 1) for row in steps]
            if check_sum is not None:
                for new, row in zip(feedback, steps, strict=True):
                    if new != row.feedback:
                        check_sum(row.visit, row.reward, row.feedback, new)
            self._store.update(
                "step",
                ("feedback",),
                ("namespace_id", "visit"),
                [(new, self._ns, row.visit) for new, row in zip(feedback, steps, strict=True) if new != row.feedback],
            )
            rewards = [row.reward + new for row, new in zip(steps, feedback, strict=True)]
            live = bool(steps and steps[0].live)
            for view, old in zip(views, values, strict=True):
                changed[view] |= self._revalue(view, steps, rewards if live else [], dict(old))

    def _query_derived(self, views: Sequence[View], first: int, last: int) -> _DerivedRows:
        steps = self._store.execute(
            "SELECT visit, reward, set_id, key_id, live, feedback FROM step "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "WHERE step.namespace_id = ? AND visit BETWEEN ? AND ? ORDER BY visit",
            (self._ns, first, last),
        )
        events = self._store.execute(
            "SELECT visit, reward, weight, kind FROM feedback "
            "WHERE namespace_id = ? AND visit BETWEEN ? AND ? AND live",
            (self._ns, first, last),
        )
        values = [
            self._store.execute(
                "SELECT visit, return_ FROM value WHERE namespace_id = ? AND view_id = ? AND visit BETWEEN ? AND ?",
                (self._ns, view_id, first, last),
            )
            for view_id, _, _ in views
        ]
        return _DerivedRows(steps, events, values)

    def _revalue(
        self, view: View, steps: Sequence[_DerivedStep], rewards: list[float], old: dict[int, float]
    ) -> set[Group]:
        """Write one episode's returns (none without rewards), and return the groups whose returns changed."""
        view_id, gamma, _ = view
        visits = [row.visit for row in steps]
        new = dict(zip(visits, discounted_returns(rewards, gamma).tolist(), strict=True)) if rewards else {}
        self._store.upsert("value", [(self._ns, view_id, visit, g) for visit, g in new.items() if old.get(visit) != g])
        self._store.execute_in(
            "DELETE FROM value WHERE namespace_id = ? AND view_id = ? AND visit IN {values}",
            (self._ns, view_id),
            sorted(old.keys() - new.keys()),
        )
        return {(row.set_id, row.key_id) for row in steps if old.get(row.visit) != new.get(row.visit)}


def summed(rows: Iterable[tuple[int, float]], decay: float) -> StoredSums:
    """Return the evidence of (visit, return) rows, with decay computed to the last row's episode."""
    rows = list(rows)
    last = rows[-1][0] >> STEP_BITS
    weights = [decay ** (last - (visit >> STEP_BITS)) for visit, _ in rows]
    total = math.fsum(w * g for w, (_, g) in zip(weights, rows, strict=True))
    squares = math.fsum(w * g * g for w, (_, g) in zip(weights, rows, strict=True))
    return len(rows), math.fsum(weights), total, squares, last
