"""What has arrived, for a reader that cannot fold it: derived in RAM, and laid over what is stored.

A private store in RAM holds copies of the rows that the arrivals touch. The writer that folds adds the arrivals to it,
in their order: so they get the numbers, and their states the evidence, that folding gives them. Of two rows the one in
RAM is read. What was derived stays until the namespace changes.

A transaction that is still open may bring an arrival of a lower number. So there are three layers. *Sure* is what
nothing can come before any more. The *tail* is what follows the lowest number that may still come, and can be taken
back by itself; but it holds few, so that a long transaction, which is hardly one of an add, does not keep all the rest
in it. What lies between is the *base*: it is derived anew if such a long one was an arrival after all.

What a look asks for is what became visible since the last: it costs what is new, however much waits.
"""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

from seasoned.memory.pending.merged_reader import Layered, LayerIndex, Ranked, nearest
from seasoned.memory.pending.shadow_store import Copies
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store, Version
from seasoned.memory.stores.postgres.schema import FIRST_ARRIVAL
from seasoned.memory.stores.postgres.watermark import LOOK_AGAIN_S
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.content_hash import episode_from_line
from seasoned.memory.values.corruption import carrying
from seasoned.memory.writing.episode_writer import Writer
from seasoned.protocols import StateEncoder

__all__ = ["TAIL", "Overlay"]

TAIL = 64
"""How many arrivals the tail holds: late by so many is hardly any `add`."""

_BATCH = 250
_ROWS = "SELECT ordinal, id, created_at, digest, line FROM episode WHERE namespace_id = ? AND ordinal"

Row = tuple[Any, ...]
"""An arrival: number, id, created_at, digest, line."""


class Overlay:
    """Follows what has arrived in one namespace. Every method runs inside one snapshot.

    Attributes:
        reader: reads both layers; None while nothing waits.
        store: what was derived from the arrivals, while something waits.
        n_changes: moves with every change of what lies above.
        n_derived: how many arrivals were derived, those that were derived anew included.
        tail: how many arrivals a late one may precede without the base being derived anew.
        again_s: how often all numbers are compared, for arrivals that no transaction of this server has made.
    """

    def __init__(self, store: Store, namespace_id: int, encoder: StateEncoder) -> None:
        self._below = store
        self._ns = namespace_id
        self._encoder = _Carrying(encoder)
        self.tail = TAIL
        self.again_s = LOOK_AGAIN_S
        self.n_changes = self.n_derived = 0
        self._seen = Version(None)
        self._undone: list[int] = []
        self._n_forgotten = 0
        self.store: Copies | None = None
        self.reader: Layered | None = None

    @property
    def n_undone(self) -> int:
        """How often something that was derived was taken back."""
        return self._n_forgotten + len(self._undone)

    def gone_since(self, n_undone: int) -> int | None:
        """Return from which visit on something was taken back since `n_undone` was so; None if nothing was."""
        return min(self._undone[max(0, n_undone - self._n_forgotten) :], default=None)

    def clear(self) -> None:
        """Forget everything."""
        if self.store is not None:
            self.n_changes += 1
            self._n_forgotten += len(self._undone)
            self._undone = [0]
            self.store.close()
        self.store = self.reader = None

    def follow(self, version: Version) -> None:
        """Take in what has arrived up to this snapshot; costs what is new.

        Raises:
            EncoderFailedError: the encoder refuses a state of it.
        """
        if version.waiting is None or self.store is None or self._seen.mark != version.mark:
            self.clear()
        if version.waiting is None:
            return
        try:
            new = None if self.store is None else self._arrived(version)
            if new is None:
                since = version.waiting if self.store is None else FIRST_ARRIVAL
                self.clear()
                self._begin()
                new = self._below.execute(f"{_ROWS} >= ? AND ordinal < 0", (self._ns, since)).fetchall()
            self._seen = version
            if new:
                self._take(sorted(new), version)
        except BaseException:
            self.clear()
            raise

    def _begin(self) -> None:
        self.store = store = Copies(self._below, self._ns)
        self._over = over = Reader(store, self._ns)
        last = over.last_ordinal()
        self.reader = Layered(self._below, self._ns, over, last)
        self._writer = Writer(store, self._ns, self._encoder)
        [(n_tokens,)] = store.execute("SELECT tokens FROM namespace WHERE id = ?", (self._ns,)).fetchall()
        sure = LayerIndex(n_tokens, (last + 1 << STEP_BITS) - 1)
        self._layers = [sure, sure.above(), sure.above()]
        self._numbers: list[int] = []
        self._last_sure = FIRST_ARRIVAL
        self._base: list[Row] = []
        self._tail: list[Row] = []
        self._compared_at = time.monotonic()

    # ------------------------------------------------------------------------------------------ what is new

    def _arrived(self, version: Version) -> list[Row] | None:
        """Return what was not taken in; None if it comes before what was derived for good."""
        before = self._seen
        if time.monotonic() - self._compared_at > self.again_s:
            self._compared_at = time.monotonic()
            return self._compare(FIRST_ARRIVAL)
        if before.late is None or not self._numbers or self._numbers[-1] >= before.reached:
            return self._compare(before.settled)
        if (before.reached, before.late) == (version.reached, version.late):
            return []
        since = f"{_ROWS} >= ? AND ordinal < 0"
        if not before.late:
            return self._below.execute(since, (self._ns, before.reached)).fetchall()
        return self._below.execute_in(
            f"{since} UNION ALL {_ROWS} IN {{values}}", (self._ns, before.reached, self._ns), before.late
        )

    def _compare(self, since: int) -> list[Row] | None:
        """Find what is new among the numbers from `since` on, by reading all of these."""
        rows = self._below.execute(
            "SELECT ordinal FROM episode WHERE namespace_id = ? AND ordinal >= ? AND ordinal < 0", (self._ns, since)
        )
        there = {number for (number,) in rows.fetchall()}
        known = set(self._numbers[bisect_left(self._numbers, since) :])
        new = sorted(there - known)
        if known - there or (new and new[0] < self._last_sure):
            return None
        return self._below.execute_in(f"{_ROWS} IN {{values}}", (self._ns,), new)

    # ------------------------------------------------------------------------------------------ deriving it

    def _take(self, new: list[Row], version: Version) -> None:
        """Derive more arrivals; take back what follows the first of them."""
        if self.store is None:
            return
        self.n_changes += 1
        for number, *_ in new:
            insort(self._numbers, number)
        cut = self._cut(version)
        first, n_before = new[0][0], _n_below(cut, self._tail)
        if self._base and first < self._base[-1][0]:
            new, self._base, self._tail = sorted([*self._base, *self._tail, *new]), [], []
            self._take_back(self.store.undo)
            self._layers[1:] = [self._layers[0].above(), self._layers[0].above()]
        elif self._tail and (first < self._tail[-1][0] or self.tail <= n_before < len(self._tail)):
            new, self._tail = sorted([*self._tail, *new]), []
            self._take_back(self.store.undo_marked)
        elif self._tail and n_before == len(self._tail):
            self.store.unmark()
            self._base, self._tail = [*self._base, *self._tail], []
            self._layers[1].follow(self._over)
        elif self._tail:
            self._tail += self._derive(2, new)
            return
        self._place(new, cut, version.settled)

    def _cut(self, version: Version) -> int:
        """Return the number at which the tail begins: the lowest that may still come, but for those far behind."""
        behind = self._numbers[-self.tail - 1] + 1 if len(self._numbers) > self.tail else FIRST_ARRIVAL
        if version.late is None:
            return max(version.settled, behind)
        return min((number for number in version.late if number >= behind), default=version.reached)

    def _take_back(self, undo: Any) -> None:
        undo()
        self._undone.append(self._over.last_ordinal() + 1 << STEP_BITS)

    def _place(self, new: list[Row], cut: int, settled: int) -> None:
        """Derive arrivals into the layers where they belong; the tail is empty."""
        if self.store is None:
            return
        if not self._base or self._base[-1][0] < settled:
            self.store.keep()
            n_sure = _n_below(settled, new)
            self._last_sure = [self._last_sure, *(row[0] for row in (*self._base, *new[:n_sure]))][-1]
            self._base = []
            with self.store.transaction(None):
                self._derive(0, new[:n_sure])
            self._layers[1] = self._layers[0].above()
            new = new[n_sure:]
            if new:
                self.store.begin()
        n_base = _n_below(cut, new)
        self._base += self._derive(1, new[:n_base])
        self._layers[2] = self._layers[1].above()
        if new[n_base:]:
            self.store.mark()
            self._tail = self._derive(2, new[n_base:])

    def _derive(self, layer: int, arrivals: list[Row]) -> list[Row]:
        """Derive them, have this layer's index follow, and return them."""
        if self.store is not None and arrivals:
            self.n_derived += len(arrivals)
            episodes = [
                (episode_from_line(self._below.path, id_, line, content), created_at)
                for _, id_, created_at, content, line in arrivals
            ]
            with self.store.copying():
                for start in range(0, len(episodes), _BATCH):
                    self._writer.add(episodes[start : start + _BATCH])
        self._layers[layer].follow(self._over)
        return arrivals

    def nearest(
        self, below: Ranked, features: frozenset[str], tokens: Sequence[int], *, k: int, threshold: float
    ) -> Ranked:
        """Return the k most similar distinct states, given those among the stored ones; see `layered.nearest`."""
        if self.store is None:
            return below
        return nearest(self._layers, below, features, tokens, k=k, threshold=threshold)


def _n_below(number: int, rows: Sequence[Row]) -> int:
    """How many of some arrivals, in their order, are numbered below `number`."""
    return bisect_left(rows, number, key=lambda row: row[0])


class _Carrying:
    """An encoder whose failures are no damage of the store."""

    def __init__(self, encoder: StateEncoder) -> None:
        self.identity = encoder.identity
        self.features = carrying(encoder.features)
