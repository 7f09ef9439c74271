"""A store in RAM for what is derived from arrivals: it copies the stored rows that they touch."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite import SqliteStore
from seasoned.memory.stores.sqlite_schema import COLUMNS, COUNTERS

__all__ = ["Copies"]

_NAMESPACE = ("id", "name", "encoder", "gamma", "created_at", *COUNTERS)
_COPIED = ("token", "feature_set", "state", "action", "prior", "evidence", "note")
_LOOKUP = re.compile(rf"SELECT .+? FROM ({'|'.join(_COPIED)})(?: INDEXED BY \w+)? WHERE (.+?)(?: GROUP BY .+)?")


class Copies(SqliteStore):
    """A store in RAM of one namespace. A writer that looks a row up in it finds the stored one, unless it changed it.

    To be made, and written to, inside a snapshot of the store below. What is written lies in up to three layers:
    committed, since `begin`, and since `mark`; the upper ones can be taken back.
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

    def begin(self) -> None:
        """Begin what `undo` takes back."""
        self.execute("BEGIN")

    def keep(self) -> None:
        """Commit what was written since `begin`, if that was called."""
        if self.in_transaction():
            self.execute("COMMIT")

    def undo(self) -> None:
        """Take back what was written since `begin`."""
        self.execute("ROLLBACK")
        self.looked_up.clear()

    def mark(self) -> None:
        """Begin what `undo_marked` takes back."""
        self.execute("SAVEPOINT marked")

    def unmark(self) -> None:
        """Keep what was written since `mark` as long as what was written before."""
        self.execute("RELEASE marked")

    def undo_marked(self) -> None:
        """Take back what was written since `mark`."""
        self.execute("ROLLBACK TO marked")
        self.execute("RELEASE marked")
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
