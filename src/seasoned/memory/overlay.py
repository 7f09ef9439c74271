"""What has arrived, for a reader that cannot fold it: derived in RAM, and laid over what is stored.

A private store in RAM holds copies of the rows that the arrivals touch. The writer that folds adds the arrivals to it,
in their order: so they get the numbers, and their states the evidence, that folding gives them. Of two rows the one in
RAM is read. What was derived stays until the namespace changes; only the last few, before which another arrival may
still become visible, are derived in a transaction that can be taken back.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from seasoned.memory.canonical import episode_from_line
from seasoned.memory.damage import carrying
from seasoned.memory.index import JaccardIndex
from seasoned.memory.reader import EvidenceRow, Reader
from seasoned.memory.schema import COLUMNS, COUNTERS, STEP_BITS
from seasoned.memory.sqlite import SqliteStore
from seasoned.memory.store import Store, Version
from seasoned.memory.writer import Writer
from seasoned.protocols import StateEncoder
from seasoned.types import Experience

__all__ = ["Layered", "Overlay"]

Ranked = list[tuple[int, float]]

_BATCH = 250
_NAMESPACE = ("id", "name", "encoder", "gamma", "created_at", *COUNTERS)
_COPIED = ("token", "feature_set", "state", "action", "prior", "evidence")
_LOOKUP = re.compile(rf"SELECT .+? FROM ({'|'.join(_COPIED)})(?: INDEXED BY \w+)? WHERE (.+?)(?: GROUP BY .+)?")


class _Copies(SqliteStore):
    """A store in RAM of one namespace. A writer that looks a row up in it finds the stored one, unless it changed it.

    To be made, and written to, inside a snapshot of the store below.
    """

    def __init__(self, below: Store, namespace_id: int) -> None:
        super().__init__(":memory:", create=True, read_only=False, synchronous="OFF")
        self.execute("PRAGMA foreign_keys = OFF")  # what a copied row refers to may not be here
        self._below = below
        self._copying = False
        with self.transaction(None):
            names = ", ".join(_NAMESPACE)
            row = below.execute(f"SELECT {names} FROM namespace WHERE id = ?", (namespace_id,)).fetchone()
            self.execute(f"INSERT INTO namespace ({names}) VALUES ({', '.join('?' * len(_NAMESPACE))})", tuple(row))
            for table in ("view", "distribution", "quarantine"):
                self._copy(table, "namespace_id = ?", below.execute, (namespace_id,))

    def _copy(self, table: str, which: str, ask: Any, *arguments: Any) -> None:
        rows = ask(f"SELECT {', '.join(COLUMNS[table])} FROM {table} WHERE {which}", *arguments)
        self._write("INSERT OR IGNORE", table, list(rows))

    @contextlib.contextmanager
    def copying(self) -> Iterator[None]:
        """Copy whatever is looked up."""
        self._copying = True
        try:
            yield
        finally:
            self._copying = False

    def undo(self) -> None:
        """Take back what was written since BEGIN."""
        self.execute("ROLLBACK")
        self.looked_up.clear()

    def execute_in(self, sql: str, parameters: tuple[Any, ...], values: Sequence[Any]) -> list[Any]:
        """Run a statement; what it looks up is copied first, if that was said."""
        found = _LOOKUP.fullmatch(sql) if self._copying else None
        if found:
            self._copy(found[1], found[2], self._below.execute_in, parameters, values)
        return super().execute_in(sql, parameters, values)

    def update(
        self, table: str, columns: tuple[str, ...], keys: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Change columns of rows, which are copied first."""
        if table in _COPIED:
            which = f"{keys[0]} = ? AND {keys[1]} IN {{values}}"
            self._copy(table, which, self._below.execute_in, rows[0][-2:-1], [row[-1] for row in rows])
        super().update(table, columns, keys, rows)


class Layered(Reader):
    """Reads a namespace as it will be when what has arrived is folded.

    Args:
        store: what is stored, and
        namespace_id: where.
        over: reads what was derived from the arrivals.
        last: the last ordinal that is stored.
    """

    def __init__(self, store: Store, namespace_id: int, over: Reader, last: int) -> None:
        super().__init__(store, namespace_id)
        self.over = over
        self._first_visit = last + 1 << STEP_BITS

    def recent_visits(self, set_id: int, limit: int, exclude_task: str | None) -> list[int]:
        """Return the latest live visits to a distinct state, latest first."""
        new = self.over.recent_visits(set_id, limit, exclude_task)
        return new if len(new) == limit else new + super().recent_visits(set_id, limit - len(new), exclude_task)

    def latest_visits(self, set_ids: Sequence[int], exclude_task: str) -> dict[int, int]:
        """Return the latest live visit to each distinct state outside a task; states without one are left out."""
        return super().latest_visits(set_ids, exclude_task) | self.over.latest_visits(set_ids, exclude_task)

    def experiences(self, view_id: int, visits: Sequence[int]) -> dict[int, tuple[Experience, int]]:
        """Return each visit's experience and the key of its action."""
        old = super().experiences(view_id, [visit for visit in visits if visit < self._first_visit])
        return old | self.over.experiences(view_id, [visit for visit in visits if visit >= self._first_visit])

    def evidence(self, view_id: int, set_ids: Sequence[int]) -> list[EvidenceRow]:
        """Return the aggregated evidence at some distinct states."""
        rows = {row[:2]: row for row in super().evidence(view_id, set_ids)}
        rows |= {row[:2]: row for row in self.over.evidence(view_id, set_ids)}
        return [rows[group] for group in sorted(rows)]

    def sums(self, sql: str, parameters: tuple[Any, ...], set_ids: Sequence[int]) -> list[Any]:
        """Return sums over live steps at some distinct states: a row for each layer where both have steps."""
        rows = [*super().sums(sql, parameters, set_ids), *self.over.sums(sql, parameters, set_ids)]
        return sorted(rows, key=lambda row: tuple(row[:2]))

    def action_texts(self, key_ids: Sequence[int]) -> dict[int, str]:
        """Return the first spelling of each action."""
        return super().action_texts(key_ids) | self.over.action_texts(key_ids)

    def spread(self, view_id: int) -> float:
        """Return the robust spread of the mean returns of all (distinct state, action) pairs, in reward units."""
        return self.over.spread(view_id)  # the whole distribution is copied

    def last_ordinal(self) -> int:
        """Return the number of the last episode."""
        return self.over.last_ordinal()


class _Index:
    """Finds the feature sets that were visited after `visit`, with the tokens numbered above `token`."""

    def __init__(self, token: int, visit: int) -> None:
        self.token, self.visit = token, visit
        self.token_of: dict[str, int] = {}
        self.index = JaccardIndex()

    def follow(self, reader: Reader) -> None:
        for token_id, text in reader.tokens_after(self.token):
            self.token_of[text] = token_id
            self.token = max(self.token, token_id)
        for ids, sizes, tokens, visits in reader.sets_after(self.visit):
            self.index.add_arrays(ids, sizes, tokens, visits)
            self.visit = max(self.visit, int(visits.max()))


class Overlay:
    """Follows what has arrived in one namespace. Every method runs inside one snapshot.

    Attributes:
        reader: reads both layers; None while nothing waits.
        n_changes: moves with every change of what lies above.
        n_undone: moves where a number that was given above may have another meaning now.
        store: what was derived from the arrivals, while something waits.
    """

    def __init__(self, store: Store, namespace_id: int, encoder: StateEncoder) -> None:
        self._below = store
        self._ns = namespace_id
        self._encoder = _Carrying(encoder)
        self.n_changes = self.n_undone = 0
        self.store: _Copies | None = None
        self.reader: Layered | None = None

    def clear(self) -> None:
        """Forget everything."""
        if self.store is not None:
            self.n_changes += 1
            self.n_undone += 1
            self.store.close()
        self.store = self.reader = None

    def follow(self, version: Version) -> None:
        """Take in what has arrived up to this snapshot; costs what is new.

        Raises:
            EncoderFailedError: the encoder refuses a state of it.
        """
        if version.waiting is None or self.store is None or self._mark != version.mark:
            self.clear()
        if version.waiting is None:
            return
        try:
            if self.store is None:
                self._begin(version)
            new = self._arrived()
            self._settled = version.settled
            if new:
                self._take(new)
        except BaseException:
            self.clear()
            raise

    def _begin(self, version: Version) -> None:
        self._mark, self._settled = version.mark, version.waiting or 0
        self._loose: list[Any] = []
        self.store = store = _Copies(self._below, self._ns)
        over = Reader(store, self._ns)
        last = over.last_ordinal()
        self.reader = Layered(self._below, self._ns, over, last)
        self._writer = Writer(store, self._ns, self._encoder)
        [(n_tokens,)] = store.execute("SELECT tokens FROM namespace WHERE id = ?", (self._ns,)).fetchall()
        self._indexes = [_Index(n_tokens, (last + 1 << STEP_BITS) - 1)] * 2

    def _arrived(self) -> list[Any]:
        """Return (number, id, created_at, digest, line) of what was not taken in, in its order."""
        known = [row[0] for row in self._loose if row[0] >= self._settled]
        rows = self._below.execute_in(
            "SELECT ordinal, id, created_at, digest, line FROM episode "
            "WHERE namespace_id = ? AND ordinal >= ? AND ordinal < 0 AND ordinal NOT IN {values}",
            (self._ns, self._settled), [0, *known],
        )  # fmt: skip
        return sorted(rows)

    def _take(self, new: list[Any]) -> None:
        """Derive more arrivals. Those that nothing can come before any more are derived for good."""
        if self.store is None or self.reader is None:
            return
        self.n_changes += 1
        if self._loose and new[0][0] < self._loose[-1][0]:
            self.n_undone += 1
            self.store.undo()
            new, self._loose = sorted([*self._loose, *new]), []
        elif self._loose and self._loose[-1][0] < self._settled:
            self.store.execute("COMMIT")
            self._loose = []
        if not self._loose:
            n_sure = sum(row[0] < self._settled for row in new)
            with self.store.transaction(None):
                self._derive(new[:n_sure])
            new = new[n_sure:]
            sure = self._indexes[0]
            sure.follow(self.reader.over)
            self._indexes = [sure, _Index(sure.token, sure.visit)]
            if new:
                self.store.execute("BEGIN")
        if new:
            self._derive(new)
            self._indexes[1].follow(self.reader.over)
            self._loose += new

    def _derive(self, arrivals: Sequence[Any]) -> None:
        if self.store is None:
            return
        episodes = [
            (episode_from_line(self._below.path, id_, line, content), created_at)
            for _, id_, created_at, content, line in arrivals
        ]
        with self.store.copying():
            for start in range(0, len(episodes), _BATCH):
                self._writer.add(episodes[start : start + _BATCH])

    def nearest(
        self, below: Ranked, features: frozenset[str], tokens: Sequence[int], *, k: int, threshold: float
    ) -> Ranked:
        """Return the k most similar distinct states, given those among the stored ones.

        Args:
            below: what the index of what is stored answers.
            features: of the state that is asked for.
            tokens: the numbers of those that are stored.
            k: see `JaccardIndex.search`, and
            threshold: likewise.
        """
        if self.store is None:
            return below
        token_of = self._indexes[0].token_of | self._indexes[1].token_of
        asked = [*tokens, *(token_of[feature] for feature in features if feature in token_of)]
        # The later layer first: its visits are later. A state that it has, but does not name, has k before it.
        best: dict[int, float] = {}
        for one in reversed(self._indexes):
            for set_id, near in one.index.search(asked, n_features=len(features), k=k, threshold=threshold):
                best.setdefault(set_id, near)
        for set_id, near in below:
            best.setdefault(set_id, near)
        return sorted(best.items(), key=lambda pair: -pair[1])[:k]


class _Carrying:
    """An encoder whose failures are no damage of the store."""

    def __init__(self, encoder: StateEncoder) -> None:
        self.identity = encoder.identity
        self.features = carrying(encoder.features)
