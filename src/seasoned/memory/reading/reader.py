"""Reads of one namespace: stored steps as experiences, evidence, episodes, feedback events. Rows are decoded here."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from seasoned.core import robust_spread
from seasoned.errors import EncoderMismatchError, IntegrityError
from seasoned.memory.reading.judged_episodes import SetArrays, joined_sets, set_arrays
from seasoned.memory.reading.rows import EvidenceRow, LatestStep, RecentReturn, StepCell, StoredEpisode
from seasoned.memory.stores.base import PendingEpisode, Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS
from seasoned.memory.values.content_hash import digest, episode_from_line, episode_record
from seasoned.memory.values.corruption import check_rows, damaged, decode, decode_ints, decode_texts, decoding
from seasoned.memory.values.encoder_mismatch import excerpts_at_difference
from seasoned.memory.values.events import Event
from seasoned.memory.values.ranking import LATEST_FIRST
from seasoned.memory.values.selection import Quarantine, Selection
from seasoned.memory.values.task_filter import TaskFilter
from seasoned.types import Ending, Episode, Experience, Step

__all__ = ["Reader", "check_same_encoder"]

_Row = TypeVar("_Row", bound=tuple[Any, ...])

_ROWS_AT_ONCE = 1 << 10  # rows that are still in the processor's cache when they are taken apart
_SETS_AT_ONCE = 1 << 16
_TRUTH = {0: False, 1: True}  # SQLite has no truth values
_MAX_ORDINAL = (1 << 63 - STEP_BITS) - 1  # so that visits fit into 64 bits


class _ExperienceRow(NamedTuple):
    visit: int
    state: str
    action: str
    reward: float
    feedback: float
    return_: float
    episode_id: str
    task: str
    key_id: int


class _SetVisit(NamedTuple):
    set_id: int
    visit: int | None


class _Token(NamedTuple):
    id: int
    text: str


class _Mean(NamedTuple):
    mean: float
    n_cells: int


class _QuarantineRow(NamedTuple):
    digest: bytes
    id: str
    selection: str
    reason: str
    created_at: float
    lifted_at: float | None


class _EpisodeRow(NamedTuple):
    ordinal: int
    created_at: float
    digest: bytes
    id: str
    task: str
    final_state: str | None
    ending: Ending
    model: str | None
    policy: str | None
    arm: str | None
    subject: str | None
    awaits_feedback: bool | None


class _StepRow(NamedTuple):
    state: str
    action: str
    reward: float
    prior: str | None
    propensity: float | None


class _EventRow(NamedTuple):
    digest: bytes
    id: str
    episode_id: str
    visit: int
    reward: float
    weight: float
    source: str
    author: str | None
    created_at: float
    revoked_at: float | None
    superseded_by: str | None
    kind: str | None


class _LatestByKey(NamedTuple):
    set_id: int
    visit: int
    key: int
    return_: float


class _LatestById(NamedTuple):
    set_id: int
    visit: int
    key: str
    return_: float


_LATEST_ROW: dict[str, type[Any]] = {"key_id": _LatestByKey, "id": _LatestById}
_LATEST_COLUMN = {"key_id": "key_id", "id": "episode.id"}
_JOINS = {
    "key_id": "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id ",
    "id": f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} ",
}
_VISITS = "SELECT step.visit FROM step INDEXED BY step_by_set"
_AT_SET = "WHERE step.namespace_id = ? AND set_id = ? AND live"
_RECENT_VISITS = f"{_VISITS} {_AT_SET} {LATEST_FIRST} LIMIT ?"


def check_same_encoder(stored: str, identity: str) -> None:
    """Raise EncoderMismatchError if a namespace has another encoder than ours."""
    if stored != identity:
        ours, theirs = excerpts_at_difference(identity, stored)
        raise EncoderMismatchError(
            f"encoder {ours}",
            f"the namespace is encoded by {theirs} now, and features of two encoders are never mixed",
            "Open the memory again with that encoder.",
        )


class Reader:
    """Reads one namespace of one store. Every method runs inside one snapshot.

    Raises:
        IntegrityError: by every method, where a stored value is damaged.
    """

    def __init__(self, store: Store, namespace_id: int) -> None:
        self._store = store
        self._ns = namespace_id
        self._recent: tuple[list[Any], list[RecentReturn]] = [], []

    @property
    def namespace_id(self) -> int:
        """The id of the namespace."""
        return self._ns

    @property
    def path(self) -> str:
        """The store's name in messages."""
        return self._store.path

    def _rows(self, sql: str, *parameters: object) -> list[Any]:
        return self._store.execute(sql, parameters).fetchall()

    def _decoded(self, row_type: type[_Row], sql: str, *parameters: object) -> list[_Row]:
        return decode(self._store.path, self._rows(sql, *parameters), row_type)

    def _decoded_in(
        self, row_type: type[_Row], sql: str, parameters: tuple[Any, ...], values: Sequence[Any]
    ) -> list[_Row]:
        return decode(self._store.path, self._store.execute_in(sql, parameters, values), row_type)

    def _number(self, sql: str, *parameters: object) -> int:
        numbers = decode_ints(self._store.path, "number", self._rows(sql, *parameters))
        if not numbers:
            raise damaged(self._store.path, f"no namespace {self._ns}")
        return numbers[0]

    # ------------------------------------------------------------------------------------------ rows for the index

    def tokens_after(self, token_id: int) -> dict[str, int]:
        """Return the ids of the tokens with ids above `token_id`, by text."""
        rows = self._rows("SELECT text, id FROM token WHERE namespace_id = ? AND id > ?", self._ns, token_id)
        with decoding(self._store.path):
            ids: dict[str, int] = dict(rows)
            # Both raise TypeError for a value of another type, at less cost than a comparison of each type.
            "".join(ids)
            array("q", list(ids.values()))
        return ids

    def sets_after(self, visit: int) -> Iterator[SetArrays]:
        """Yield the feature sets visited after `visit` (-1: all that were ever visited), many at a time.

        Each time ids [n], sizes [n], the tokens of all one after the other, and last visits [n].
        """
        # All of them are read in the order on disk, and added in the order of their ids; both are quicker.
        which = "last_visit IS NOT NULL ORDER BY id"
        if visit >= 0:
            which = "id IN (SELECT set_id FROM step WHERE namespace_id = ? AND visit > ? AND live) ORDER BY last_visit"
        rows = self._store.execute(
            f"SELECT id, tokens, last_visit FROM feature_set WHERE namespace_id = ? AND {which}",
            (self._ns,) if visit < 0 else (self._ns, self._ns, visit),
        )
        parts: list[SetArrays] = []
        n = 0
        while batch := rows.fetchmany(_ROWS_AT_ONCE):
            parts.append(set_arrays(self._store.path, batch))
            n += len(batch)
            if n >= _SETS_AT_ONCE:
                yield joined_sets(parts)
                parts, n = [], 0
        if parts:
            yield joined_sets(parts)

    # ------------------------------------------------------------------------------------------ experiences

    def visits_of(self, steps: Collection[tuple[str, int]], task_filter: TaskFilter) -> dict[int, StepCell]:
        """Return the live steps among these, given as (episode id, step), by visit.

        A step that is not stored, or of the excluded task, is missing.
        """
        with decoding(self._store.path):
            ordinals: dict[str, int] = dict(
                self._store.execute_in(
                    "SELECT id, ordinal FROM episode INDEXED BY episode_by_id WHERE namespace_id = ? AND ordinal >= 0"
                    f"{task_filter.condition} AND id IN {{values}}",
                    (self._ns, *task_filter.values),
                    sorted({id_ for id_, _ in steps}),
                )
            )
            visits = sorted(
                ordinals[id_] << STEP_BITS | step for id_, step in steps if id_ in ordinals and step < MAX_STEPS
            )
        rows = self._decoded_in(
            StepCell,
            "SELECT visit, set_id, key_id FROM step "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "WHERE step.namespace_id = ? AND live AND visit IN {values}",
            (self._ns,),
            visits,
        )
        return {row.visit: row for row in rows}

    def recent_visits(self, set_id: int, limit: int, task_filter: TaskFilter) -> list[int]:
        """Return the latest live visits to a distinct state, latest first."""
        # Without statistics SQLite prefers the primary key, and reads every step of the namespace.
        if task_filter:
            sql = f"{_VISITS} {_JOINS['id']}{_AT_SET}{task_filter.condition} {LATEST_FIRST} LIMIT ?"
            rows = self._rows(sql, self._ns, set_id, *task_filter.values, limit)
        else:
            rows = self._rows(_RECENT_VISITS, self._ns, set_id, limit)
        return decode_ints(self._store.path, "visit", rows)

    def visits_at(self, set_ids: Sequence[int], task_filter: TaskFilter) -> dict[int, list[int]]:
        """Return all live visits to each of some distinct states that has one, in no order."""
        joins = _JOINS["id"] if task_filter else ""
        rows = self._decoded_in(
            _SetVisit,
            f"SELECT set_id, step.visit FROM step INDEXED BY step_by_set {joins}"
            f"WHERE step.namespace_id = ? AND live{task_filter.condition} AND set_id IN {{values}}",
            (self._ns, *task_filter.values),
            set_ids,
        )
        visits: dict[int, list[int]] = {}
        for row in rows:
            if row.visit is not None:
                visits.setdefault(row.set_id, []).append(row.visit)
        return visits

    def latest_visits(self, set_ids: Sequence[int], task_filter: TaskFilter) -> dict[int, int]:
        """Return the latest live visit outside of the excluded task to each distinct state that has one."""
        rows = self._decoded_in(
            _SetVisit,
            f"SELECT id, (SELECT step.visit FROM step INDEXED BY step_by_set {_JOINS['id']}"
            "WHERE step.namespace_id = feature_set.namespace_id AND step.set_id = feature_set.id AND live"
            f"{task_filter.condition} {LATEST_FIRST} LIMIT 1) "
            "FROM feature_set WHERE namespace_id = ? AND id IN {values}",
            (*task_filter.values, self._ns),
            set_ids,
        )
        return {row.set_id: row.visit for row in rows if row.visit is not None}

    def latest_steps(
        self, view_id: int, n_at: Mapping[int, int], key: Literal["key_id", "id"], *, task_filter: TaskFilter, most: int
    ) -> dict[int, list[LatestStep]]:
        """Return the latest live steps at some distinct states, the latest first.

        Args:
            view_id: the view of the returns.
            n_at: by distinct state, at least its number of steps; the states with few are read by one statement.
            key: the key of the action, or the id of the episode.
            task_filter: which task is excluded.
            most: at most so many steps of one state.
        """
        joins = "".join(join for name, join in _JOINS.items() if name == key or (name == "id" and task_filter))
        select = (
            f"SELECT set_id, step.visit, {_LATEST_COLUMN[key]}, return_ FROM step INDEXED BY step_by_set "
            f"{joins}JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
            f"WHERE step.namespace_id = ? AND live{task_filter.condition} AND set_id IN {{values}} {LATEST_FIRST}"
        )
        values = (view_id, self._ns, *task_filter.values)
        row_type = _LATEST_ROW[key]
        rows = self._store.execute_in(select, values, [set_id for set_id, n in n_at.items() if n <= most])
        for set_id, n in n_at.items():
            if n > most:
                rows += self._store.execute_in(f"{select} LIMIT {int(most)}", values, [set_id])
        check_rows(self._store.path, rows, row_type)
        found: dict[int, list[LatestStep]] = {set_id: [] for set_id in n_at}
        for set_id, visit, of, return_ in rows:
            found[set_id].append(LatestStep(visit, of, return_))
        return found

    def experiences(
        self, view_id: int, visits: Sequence[int], *, all_live: bool = True
    ) -> dict[int, tuple[Experience, int]]:
        """Return each live visit's experience and the key of its action.

        Raises:
            IntegrityError: one is not stored. Unless `all_live`, those are left out that are not live.
        """
        found: dict[int, tuple[Experience, int]] = {}
        rows = self._store.execute_in(
            "SELECT step.visit, state.text, action.text, reward, feedback, return_, episode.id, task, key_id "
            "FROM step "
            "JOIN state ON state.namespace_id = step.namespace_id AND state.id = state_id "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
            "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
            "WHERE step.namespace_id = ? AND step.visit IN {values}",
            (view_id, self._ns),
            visits,
        )
        check_rows(self._store.path, rows, _ExperienceRow)
        for visit, state, action, reward, feedback, return_, episode_id, task, key_id in rows:
            step = Experience(state, action, reward + feedback, return_, episode_id, visit & (MAX_STEPS - 1), task)
            found[visit] = (step, key_id)
        missing = [] if len(found) == len(visits) else sorted(set(visits) - found.keys())
        if missing and not all_live:  # only live steps have a return
            sql = "SELECT visit FROM step WHERE namespace_id = ? AND live AND visit IN {values}"
            missing = self._store.execute_in(sql, (self._ns,), missing)
        if missing:
            raise damaged(self._store.path, f"{len(missing)} live steps without a return or a text")
        return found

    # ------------------------------------------------------------------------------------------ evidence

    def evidence(self, view_id: int, set_ids: Sequence[int]) -> list[EvidenceRow]:
        """Return the aggregated evidence at some distinct states."""
        return self._decoded_in(
            EvidenceRow,
            "SELECT set_id, key_id, count, weight, total, squares, ordinal FROM evidence "
            "WHERE namespace_id = ? AND view_id = ? AND set_id IN {values} ORDER BY set_id, key_id",
            (self._ns, view_id),
            set_ids,
        )

    def filtered_evidence(
        self, view_id: int, set_ids: Sequence[int], task_filter: TaskFilter, *, by_episode: bool
    ) -> list[EvidenceRow]:
        """Return the evidence at some distinct states without the steps of the excluded task.

        It is summed from the other steps: the aggregates minus the excluded share would keep the rounding of a huge
        reward.

        Args:
            view_id: the view.
            set_ids: the distinct states.
            task_filter: which task is excluded.
            by_episode: where steps are summed, one row for each episode, so that the caller can apply a decay; else
                the ordinal is that of the last episode.
        """
        if not task_filter:
            return self.evidence(view_id, set_ids)
        sql = (
            "SELECT set_id, key_id, count(*), count(*), sum(return_), sum(return_ * return_), "
            f"max(step.visit >> {STEP_BITS}) FROM step INDEXED BY step_by_set "
            f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
            f"WHERE step.namespace_id = ? AND live{task_filter.condition} AND set_id IN {{values}} "
        )
        group = "set_id, key_id, ordinal" if by_episode else "set_id, key_id"
        values = (view_id, self._ns, *task_filter.values)
        return self.sums(f"{sql} GROUP BY {group} ORDER BY {group}", values, set_ids, EvidenceRow)

    def sums(self, sql: str, parameters: tuple[Any, ...], set_ids: Sequence[int], row_type: type[_Row]) -> list[_Row]:
        """Return the rows of a statement with `IN {values}` that sums live steps at some distinct states."""
        return self._decoded_in(row_type, sql, parameters, set_ids)

    def action_texts(self, key_ids: Sequence[int]) -> dict[int, str]:
        """Return the first spelling of each action that is stored."""
        rows = self._decoded_in(
            _Token, "SELECT id, text FROM action WHERE namespace_id = ? AND id IN {values}", (self._ns,), key_ids
        )
        return {row.id: row.text for row in rows}

    def spread(self, view_id: int) -> float:
        """Return the robust spread of the mean returns of all (distinct state, action) pairs, in reward units."""
        counts = self.mean_counts(view_id)
        return robust_spread(list(counts), list(counts.values()))

    def mean_counts(self, view_id: int) -> dict[float, int]:
        """Return how many (distinct state, action) pairs have each mean return, rounded as `histogram_bin` does."""
        rows = self._decoded(
            _Mean, "SELECT mean, count FROM distribution WHERE namespace_id = ? AND view_id = ?", self._ns, view_id
        )
        if any(row.n_cells < 1 for row in rows):
            raise damaged(self._store.path, "a count below 1 in the distribution of returns")
        return {row.mean: row.n_cells for row in rows}

    def recent_returns(
        self, view_id: int, limit: int, task_filter: TaskFilter, *, with_tasks: bool
    ) -> list[RecentReturn]:
        """Return the returns of the latest live steps outside of the excluded task, latest first.

        With their tasks, or `""` for each, which is quicker: only live steps have a return, so that none is read. Equal
        rows give the same list object.
        """
        if not with_tasks and not task_filter:
            which = "WHERE namespace_id = ? AND view_id = ? ORDER BY visit DESC LIMIT ?"
            rows = self._rows(f"SELECT visit, return_, '' FROM value {which}", self._ns, view_id, limit)
            if rows != self._recent[0]:  # most of them were read before
                known = dict(zip(*self._recent, strict=True))
                new = [row for row in rows if row not in known]
                known.update(zip(new, decode(self._store.path, new, RecentReturn), strict=True))
                self._recent = rows, [known[row] for row in rows]
            return self._recent[1]
        return self._decoded(
            RecentReturn,
            f"SELECT step.visit, return_, task FROM step {_JOINS['id']}"
            "JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
            f"WHERE step.namespace_id = ? AND live{task_filter.condition} {LATEST_FIRST} LIMIT ?",
            view_id,
            self._ns,
            *task_filter.values,
            limit,
        )

    def view_id(self, gamma: float, decay: float) -> int | None:
        """Return the view with this discount and decay, if it exists."""
        sql = "SELECT id FROM view WHERE namespace_id = ? AND gamma = ? AND decay = ?"
        numbers = decode_ints(self._store.path, "view", self._rows(sql, self._ns, gamma, decay))
        return numbers[0] if numbers else None

    def last_ordinal(self) -> int:
        """Return the ordinal of the last derived episode."""
        return self._number("SELECT episodes FROM namespace WHERE id = ?", self._ns)

    def epoch(self) -> int:
        """Return the namespace's epoch; see `follower`."""
        return self._number("SELECT epoch FROM namespace WHERE id = ?", self._ns)

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return self._number(f"SELECT count(*) FROM {table} WHERE namespace_id = ?", self._ns)

    def quarantines(self) -> Iterator[tuple[bytes, Quarantine]]:
        """Yield (digest, quarantine) in the order in which they were imposed, lifted ones included."""
        rows = self._decoded(
            _QuarantineRow,
            "SELECT digest, id, selection, reason, created_at, lifted_at FROM quarantine WHERE namespace_id = ? "
            "ORDER BY seq",
            self._ns,
        )
        for row in rows:
            with decoding(self._store.path):
                selection = Selection.from_text(row.selection)
            yield row.digest, Quarantine(row.id, selection, row.reason, row.created_at, row.lifted_at)

    def step_count(self) -> int:
        """Return the number of stored steps, aborted episodes included."""
        return self._number("SELECT coalesce(sum(steps), 0) FROM episode WHERE namespace_id = ?", self._ns)

    # ------------------------------------------------------------------------------------------ whole episodes

    def episodes(
        self, *, id_: str | None = None, task: str | None = None, last: int | None = None, ordinals: range | None = None
    ) -> Iterator[StoredEpisode]:
        """Yield episodes in commit order, pending ones last: all, or those that match; at most the `last` so many.

        Raises:
            IntegrityError: an episode differs from its hash.
        """
        filters: dict[str, object] = {"episode.id = ?": id_, "task = ?": task}
        if ordinals is not None:
            filters |= {"ordinal >= ?": ordinals.start, "ordinal < ?": ordinals.stop}
        given = {sql: value for sql, value in filters.items() if value is not None}
        most = sys.maxsize if last is None else min(last, sys.maxsize)
        pending = self._pending_rows(given, most) if self._store.pending is not None else []
        rows = self._decoded(
            _EpisodeRow,
            "SELECT ordinal, created_at, episode.digest, episode.id, task, state.text, ending, model, policy, arm, "
            "subject, awaits_feedback "
            "FROM episode LEFT JOIN state ON state.namespace_id = episode.namespace_id AND state.id = final_state_id "
            f"WHERE {' AND '.join(['episode.namespace_id = ?', 'ordinal >= 0', *given])} "
            "ORDER BY ordinal DESC LIMIT ?",
            self._ns,
            *given.values(),
            most - len(pending),
        )
        for row in reversed(rows):
            if row.ordinal > _MAX_ORDINAL:
                raise damaged(self._store.path, f"an episode with the ordinal {row.ordinal}")
            step_rows = self._decoded(
                _StepRow,
                "SELECT state.text, action.text, reward, logprobs, propensity FROM step "
                "JOIN state ON state.namespace_id = step.namespace_id AND state.id = state_id "
                "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
                "LEFT JOIN prior ON prior.namespace_id = step.namespace_id AND prior.id = prior_id "
                "WHERE step.namespace_id = ? AND visit BETWEEN ? AND ? ORDER BY visit",
                self._ns,
                row.ordinal << STEP_BITS,
                (row.ordinal + 1 << STEP_BITS) - 1,
            )
            with decoding(self._store.path):
                steps = [
                    Step(state, action, reward, None if prior is None else json.loads(prior), propensity)
                    for state, action, reward, prior, propensity in step_rows
                ]
                episode = Episode(
                    row.task,
                    steps,
                    row.id,
                    row.final_state,
                    row.ending,
                    model=row.model,
                    policy=row.policy,
                    arm=row.arm,
                    subject=row.subject,
                    awaits_feedback=None if row.awaits_feedback is None else _TRUTH[row.awaits_feedback],
                )
                found = digest("episode", episode_record(episode))
            if found != row.digest:
                raise IntegrityError(
                    f"{self._store.path}: episode {row.id!r} differs from its hash",
                    "an episode must be read as it was stored",
                    "Run `seasoned memory verify`, and restore a backup.",
                )
            yield StoredEpisode(row.ordinal, row.created_at, row.digest, episode)
        yield from pending

    def _pending_rows(self, given: dict[str, object], most: int) -> list[StoredEpisode]:
        """Return the last pending episodes, of those that match, in their order."""
        rows = self._rows(
            "SELECT ordinal, id, created_at, digest, line FROM episode "
            f"WHERE {' AND '.join(['namespace_id = ?', 'ordinal < 0', *given])} ORDER BY ordinal DESC LIMIT ?",
            self._ns,
            *given.values(),
            most,
        )
        return [
            StoredEpisode(row.number, row.created_at, row.digest, self._pending_episode(row))
            for row in decode(self._store.path, rows[::-1], PendingEpisode)
        ]

    def _pending_episode(self, row: PendingEpisode) -> Episode:
        return episode_from_line(self._store.path, row.id, row.line, row.digest)

    def pending_episodes(self) -> list[tuple[float, Episode]]:
        """Return (created_at, episode) of the pending episodes, in their order."""
        rows = [] if self._store.pending is None else self._pending_rows({}, sys.maxsize)
        return [(row.created_at, row.episode) for row in rows]

    def events(self, episode_id: str | None = None, *, id_: str | None = None) -> Iterator[tuple[bytes, Event]]:
        """Yield (digest, feedback event) in the order of their commits: all, those of one episode, or one by its id."""
        wanted = {"episode.id": episode_id, "feedback.id": id_}
        named = {column: value for column, value in wanted.items() if value is not None}
        rows = self._decoded(
            _EventRow,
            "SELECT feedback.digest, feedback.id, episode.id, visit, reward, weight, source, author, "
            "feedback.created_at, revoked_at, superseded_by, kind FROM feedback "
            f"JOIN episode ON episode.namespace_id = feedback.namespace_id AND ordinal = visit >> {STEP_BITS} "
            f"WHERE feedback.namespace_id = ? {' '.join(f'AND {column} = ?' for column in named)} ORDER BY seq",
            self._ns,
            *named.values(),
        )
        for row in rows:
            yield row.digest, Event(row.id, row.episode_id, row.visit & (MAX_STEPS - 1), *row[4:])

    def broken_supersessions(self) -> list[str]:
        """Return the events marked as superseded without a later event of their kind, source, author and step."""
        rows = self._rows(
            "SELECT old.id FROM feedback AS old LEFT JOIN feedback AS new ON new.namespace_id = old.namespace_id "
            "AND new.id = old.superseded_by AND new.seq > old.seq AND new.visit = old.visit "
            "AND new.source = old.source AND coalesce(new.author, '') = coalesce(old.author, '') "
            "AND coalesce(new.kind, '') = coalesce(old.kind, '') "
            "WHERE old.namespace_id = ? AND old.superseded_by IS NOT NULL "
            "AND (new.id IS NULL OR coalesce(old.revoked_at <> new.created_at, 1 = 1)) ORDER BY old.seq",
            self._ns,
        )
        return decode_texts(self._store.path, "id", rows)
