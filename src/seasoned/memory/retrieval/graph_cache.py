"""Graphs of values that follow a store's commits, one for each discount and backup that was asked for."""

from __future__ import annotations

import json
import math
import sys
from bisect import bisect_left
from collections import ChainMap, OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from seasoned.core import TERMINAL, UNKNOWN, ValueGraph
from seasoned.errors import InputError, IntegrityError, excerpt
from seasoned.memory.pending.overlay import Overlay
from seasoned.memory.reading.reader import EvidenceRow
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.content_hash import text_digest
from seasoned.types import Backup, normalize_action

__all__ = ["MAX_GRAPHS", "SETTLE_BUDGET", "GraphKeeper", "check_backup", "revalued"]

MAX_GRAPHS = 4
"""How many graphs a memory keeps: the ones that were asked for last."""

SETTLE_BUDGET = 30_000
"""How many pairs and edges are looked at for the first question after a commit."""

_LATER_BUDGET = 2_000  # for each question after that, until all is settled
_TOLERANCE = 1e-3
_TINY = sys.float_info.min
_FIRST_BUDGET = 5_000_000

_ROWS = (
    "SELECT step.visit, step.set_id, key_id, step.reward + step.feedback, following.set_id, ending, final.set_id, "
    "step.prior_id, task FROM step {index} "
    "JOIN action ON action.namespace_id = step.namespace_id AND action.id = step.action_id "
    "JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {bits} "
    "LEFT JOIN step AS following ON following.namespace_id = step.namespace_id "
    "AND following.visit = step.visit + 1 AND following.visit < ordinal + 1 << {bits} "
    "LEFT JOIN state AS final ON final.namespace_id = episode.namespace_id AND final.id = final_state_id "
    "WHERE step.namespace_id = ? AND step.live AND {which} ORDER BY step.visit"
)


def check_backup(gamma: float, backup: Backup) -> None:
    """Refuse what a graph cannot have. Raises: InputError: gamma is not below 1."""
    if not isinstance(backup, Backup):
        raise InputError(f"backup = {excerpt(backup)}", "it is a Backup or None", "Pass Backup(beta=4.0), say.")
    ValueGraph(gamma, backup.beta, novelty=backup.novelty)


class GraphKeeper:
    """Keeps the graphs of one namespace. Every method runs inside one snapshot."""

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id
        self._graphs: OrderedDict[tuple[float, Backup, str | None], _Followed] = OrderedDict()

    def fresh(self, gamma: float, backup: Backup, exclude_task: str | None, overlay: Overlay) -> ValueGraph:
        """Return the graph of all live steps, without those of `exclude_task`, up to the last commit."""
        asked = gamma, backup, exclude_task
        if asked not in self._graphs:
            self._graphs[asked] = _Followed(self._store, self._ns, *asked)
        self._graphs.move_to_end(asked)
        while len(self._graphs) > MAX_GRAPHS:
            self._graphs.popitem(last=False)
        return self._graphs[asked].fresh(overlay)


def revalued(rows: Sequence[EvidenceRow], graph: ValueGraph) -> list[EvidenceRow]:
    """Return evidence with each state and action valued by the graph instead of by the mean of its returns.

    `total = weight * Q`, and `squares = weight * Q^2 + (squares - total^2 / weight)`, with the old sums on the right,
    over all rows of that state and action: the returns' scatter stays, around another mean. So a variance computed from
    these sums is no smaller than what play has shown.

    Raises:
        IntegrityError: the graph of all live steps lacks one of them.
    """
    weights: defaultdict[tuple[int, int], float] = defaultdict(float)
    totals: defaultdict[tuple[int, int], float] = defaultdict(float)
    for set_id, key_id, _, weight, total, _, _ in rows:
        weights[set_id, key_id] += weight
        totals[set_id, key_id] += total
    groups = list(weights)
    values = graph.q([set_id for set_id, _ in groups], [key_id for _, key_id in groups])
    q_of = dict(zip(groups, values.tolist(), strict=True))
    if np.isnan(values).any():
        raise IntegrityError(
            f"{int(np.isnan(values).sum())} states and actions that have evidence, but no live step",
            "evidence is of live steps",
            "Run `seasoned memory verify`.",
        )
    new = []
    for set_id, key_id, count, weight, total, squares, at in rows:
        q, mean = q_of[set_id, key_id], totals[set_id, key_id] / max(weights[set_id, key_id], _TINY)
        # The sum of w * (g - mean)^2 over a group, row by row.
        scatter = max(0.0, squares - 2.0 * mean * total + mean * mean * weight)
        new.append((set_id, key_id, count, weight, weight * q, weight * q * q + scatter, at))
    return new


class _Followed:
    """One graph, and how far into the store's log it is.

    New episodes are added, and a step that feedback spoke of has its state and action summed anew. Whatever took
    something away (erasure, pruning, quarantine, a revoked event) has the graph read again: that costs as much as the
    first question, and is rare.

    So are the steps of an overlay: they are added as what they will be. Only what the overlay took back since is read
    again; what became otherwise is summed anew.
    """

    def __init__(self, store: Store, namespace_id: int, gamma: float, backup: Backup, exclude_task: str | None) -> None:
        self._store = store
        self._ns = namespace_id
        self._gamma, self._backup = gamma, backup
        self._exclude_task = exclude_task
        self._version: Hashable = None
        self._marks: tuple[Any, ...] | None = None
        self._begin()

    def _begin(self) -> None:
        self._graph = ValueGraph(self._gamma, self._backup.beta, novelty=self._backup.novelty, tolerance=_TOLERANCE)
        self._visit = self._event = -1
        self._prior_of: dict[int, int] = {}
        # Of the overlay: its rows, the last prior at each state, the states whose priors were set at a look (with the
        # visit that was to come next), and how often it had taken something back.
        self._above: list[Any] = []
        self._priors_above: dict[int, int] = {}
        self._set_at: list[tuple[int, set[int]]] = []
        self._n_undone = 0

    def fresh(self, overlay: Overlay) -> ValueGraph:
        version = self._store.version(self._ns)
        budget = _LATER_BUDGET
        if (version.mark, overlay.revision) != self._version:
            budget = SETTLE_BUDGET
            events, before, now = self._read_marks()
            if (version.generation, *before) != self._marks:
                self._begin()
                budget = _FIRST_BUDGET
            if not self._follow(events, overlay):
                self._begin()
                budget = _FIRST_BUDGET
                self._follow(events, overlay)
            self._version, self._marks = (version.mark, overlay.revision), (version.generation, *now)
        self._graph.converge(budget)
        return self._graph

    def _read_marks(self) -> tuple[int, tuple[Any, ...], tuple[Any, ...]]:
        """Return how far events are numbered, and what moves when something that was read is no longer so, twice.

        First of what was read before, to compare; an event counts there that a newer one superseded: with that one its
        step is read again. Then of all there is now, to keep.

        While the same quarantines are active, of the events that were read some may fall silent, but none begins to
        count; where a merge changes what they are, the epoch moves. So their number tells.
        """
        epoch, events, quarantines = self._rows("SELECT epoch, events, quarantines FROM namespace WHERE id = ?")[0]
        if not events and not quarantines:
            return 0, (epoch, (), 0, 0), (epoch, (), 0, 0)
        standing = "SELECT seq FROM quarantine WHERE namespace_id = ? AND lifted_at IS NULL ORDER BY seq"
        active = tuple(row[0] for row in self._rows(standing))
        heard = self._heard("live")
        if self._event < 0:
            return events, (epoch, active, 0, 0), (epoch, active, *heard)
        before = self._heard(
            "seq <= ? AND (live OR EXISTS (SELECT 1 FROM feedback AS newer WHERE newer.seq > ? "
            "AND newer.namespace_id = feedback.namespace_id AND newer.id = feedback.superseded_by))",
            self._event,
            self._event,
        )
        return events, (epoch, active, *before), (epoch, active, *heard)

    def _heard(self, which: str, *parameters: object) -> tuple[int, int]:
        """Return how many feedback events are so, and the sum of their numbers."""
        [(count, total)] = self._rows(
            f"SELECT count(*), sum(seq) FROM feedback WHERE namespace_id = ? AND {which}", *parameters
        )
        return int(count), int(total or 0)

    def _follow(self, events: int, overlay: Overlay) -> bool:
        """Take in what is new; return whether it could be. Everything is read before anything is changed."""
        before, over = self._visit, overlay.store
        spoken_of: list[Any] = []
        if events > self._event >= 0:
            spoken_of = self._rows(
                "SELECT DISTINCT step.set_id, key_id FROM feedback "
                "JOIN step ON step.namespace_id = feedback.namespace_id AND step.visit = feedback.visit "
                "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
                "WHERE feedback.namespace_id = ? AND seq > ? AND feedback.visit <= ?",
                self._event,
                before,
            )
        sql = _ROWS.format(index="", bits=STEP_BITS, which="step.visit > ?")
        stored = self._rows(sql, before)
        undone = 0 if stored else overlay.first_visit_rolled_back(self._n_undone)
        n_kept = len(self._above) if undone is None else bisect_left(self._above, undone, key=lambda row: row[0])
        last = self._above[n_kept - 1][0] if n_kept else before
        new = [*stored, *([] if over is None else over.execute(sql, (self._ns, last)).fetchall())]
        was = self._above[n_kept:]
        n_same = next(
            (n for n, (one, now) in enumerate(zip(was, new, strict=False)) if one != now), min(len(was), len(new))
        )
        gone = was[n_same:]
        last = new[n_same - 1][0] if n_same else last
        anew = list(dict.fromkeys([*((row[0], row[1]) for row in spoken_of), *((row[1], row[2]) for row in gone)]))
        again = self._steps_of(anew, last, over)
        # A number of before may stand for another prior now, and for another action that a prior names.
        n_set = len(self._set_at) if undone is None else bisect_left(self._set_at, undone + 1, key=lambda one: one[0])
        doubtful = (set_id for _, sets in self._set_at[n_set:] for set_id in sets)
        kept = self._priors_above if undone is None else self._last_priors(self._above[:n_kept])
        of_stored, of_new = self._last_priors(stored), self._last_priors(new[len(stored) :])
        priors_now = ChainMap(of_new, kept, of_stored, self._prior_of)
        if any(row[7] is not None and row[1] not in priors_now for row in self._counted(gone)):
            return False  # a graph cannot forget that a state has a prior
        touched = {set_id for set_id in (*(row[1] for row in (*gone, *new)), *doubtful) if set_id in priors_now}
        priors = self._priors({set_id: priors_now[set_id] for set_id in touched}, over)
        end = 0 if overlay.reader is None else overlay.reader.last_ordinal() + 1 << STEP_BITS
        self._graph.clear([set_id for set_id, _ in anew], [key_id for _, key_id in anew])
        self._add([*again, *new[n_same:]])
        self._graph.set_priors(*priors)
        self._prior_of |= of_stored
        kept.update(of_new)
        self._above[n_kept:], self._priors_above = new[len(stored) :], kept
        self._set_at[n_set:] = [(end, touched)] if touched else []
        self._visit, self._event, self._n_undone = stored[-1][0] if stored else before, events, overlay.n_rollbacks
        return True

    def _last_priors(self, rows: Iterable[Any]) -> dict[int, int]:
        return {row[1]: row[7] for row in self._counted(rows) if row[7] is not None}

    def _steps_of(self, groups: Sequence[tuple[int, int]], last: int, over: Store | None) -> list[Any]:
        """Return the steps, up to a visit, of some states and actions."""
        sql = _ROWS.format(
            index="INDEXED BY step_by_set", bits=STEP_BITS, which="step.visit <= ? AND step.set_id IN {values}"
        )
        sets, asked = list(dict.fromkeys(set_id for set_id, _ in groups)), set(groups)
        stores = [self._store] if over is None else [self._store, over]
        rows = (row for store in stores for row in store.execute_in(sql, (self._ns, last), sets))
        return [row for row in rows if (row[1], row[2]) in asked]

    def _counted(self, rows: Iterable[Any]) -> list[Any]:
        return [row for row in rows if row[8] != self._exclude_task]

    def _add(self, rows: Iterable[Any]) -> None:
        kept = self._counted(rows)
        after = [_after(following, ending, final) for _, _, _, _, following, ending, final, _, _ in kept]
        self._graph.add([row[1] for row in kept], [row[2] for row in kept], [row[3] for row in kept], after)

    def _priors(self, prior_of: dict[int, int], over: Store | None) -> tuple[list[int], list[int], list[float]]:
        """Return sets, actions and probabilities: what priors say of actions that were taken somewhere."""
        stores = [self._store] if over is None else [self._store, over]
        said = {
            id_: _policy(json.loads(logprobs))
            for store in stores
            for id_, logprobs in store.execute_in(
                "SELECT id, logprobs FROM prior WHERE namespace_id = ? AND id IN {values}",
                (self._ns,),
                sorted(set(prior_of.values())),
            )
        }
        keys = {text: text_digest(text) for text in dict.fromkeys(text for policy in said.values() for text in policy)}
        key_of = dict(
            row
            for store in stores
            for row in store.execute_in(
                "SELECT key_digest, key_id FROM action INDEXED BY action_by_key "
                "WHERE namespace_id = ? AND key_digest IN {values}",
                (self._ns,),
                list(keys.values()),
            )
        )
        rows = [
            (set_id, key_of[keys[text]], probability)
            for set_id, prior_id in prior_of.items()
            for text, probability in said[prior_id].items()
            if keys[text] in key_of
        ]
        sets, actions, probs = zip(*rows, strict=True) if rows else ((), (), ())
        return list(sets), list(actions), list(probs)

    def _rows(self, sql: str, *parameters: object) -> list[Any]:
        return self._store.execute(sql, (self._ns, *parameters)).fetchall()


def _policy(logprobs: Mapping[str, float]) -> dict[str, float]:
    """A stored prior as probabilities that sum to 1, by normalised action."""
    likeliest = max(logprobs.values())
    total = sum(math.exp(value - likeliest) for value in logprobs.values())
    policy: defaultdict[str, float] = defaultdict(float)
    for action, value in logprobs.items():
        policy[normalize_action(action)] += math.exp(value - likeliest) / total
    return policy


def _after(following: int | None, ending: str, final: int | None) -> int:
    """Where a step led: the next step's state, the end, the final state of an episode cut off, or nobody knows."""
    if following is not None:
        return following
    if ending == "terminated":
        return TERMINAL
    return UNKNOWN if final is None else final
