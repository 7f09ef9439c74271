"""The pending episodes of a PostgreSQL store: rows of `episode` with a negative ordinal and the episode as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from seasoned.memory.stores.base import PendingEpisode, Store
from seasoned.memory.stores.postgres.schema import FIRST_ARRIVAL
from seasoned.memory.stores.postgres.watermark import Watermark
from seasoned.memory.values.redacted import RedactedEpisode
from seasoned.memory.values.row_checksum import row_checksum

__all__ = ["INSERT", "PostgresPendingTable", "insert_values"]

# One row, if the namespace still has this encoder, and if the id is free. The lock blocks only a change of the encoder;
# after a wait the row is read again.
INSERT = (
    "INSERT INTO episode (namespace_id, ordinal, id, task, ending, steps, model, policy, arm, subject, created_at, "
    f"digest, line, checksum) SELECT id, pg_current_xact_id()::text::bigint + ({FIRST_ARRIVAL}), "
    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? "
    "FROM (SELECT id FROM namespace WHERE id = ? AND encoder = ? FOR KEY SHARE) AS held ON CONFLICT DO NOTHING"
)
_COLUMNS = "ordinal, id, created_at, digest, line"
_SELECT = f"SELECT {_COLUMNS} FROM episode WHERE namespace_id = ? AND ordinal"
_INSUFFICIENT_PRIVILEGE = "42501"


def insert_values(
    namespace_id: int, encoder: str, episode: RedactedEpisode, created_at: float, digest: bytes, line: str
) -> tuple[Any, ...]:
    """Return the values of the marks of `INSERT`."""
    return (
        episode.id,
        episode.task,
        episode.ending,
        len(episode.steps),
        episode.model,
        episode.policy,
        episode.arm,
        episode.subject,
        created_at,
        digest,
        line,
        row_checksum("episode", digest, created_at),
        namespace_id,
        encoder,
    )


class _PostgresStore(Store, Protocol):
    generation: int

    def commit(self, sql: str, parameters: tuple[Any, ...]) -> int: ...


class PostgresPendingTable:
    """The pending episodes of one store; see `seasoned.memory.stores.base.PendingTable`."""

    first_number = FIRST_ARRIVAL

    def __init__(self, store: _PostgresStore) -> None:
        self._store = store
        self.watermark = Watermark()

    @property
    def full_scan_s(self) -> float:
        """How often, in seconds, a scan begins at the first number again."""
        return self.watermark.full_scan_s

    def insert(
        self,
        namespace_id: int,
        encoder: str,
        episode: RedactedEpisode,
        created_at: float,
        digest: bytes,
        line: str,
        notes: Sequence[tuple[Any, ...]],
    ) -> bool:
        """Commit a pending episode and its notes; see `PendingTable.insert`."""
        values = insert_values(namespace_id, encoder, episode, created_at, digest, line)
        if not notes:
            return bool(self._store.commit(INSERT, values))
        with self._store.transaction(None):  # of no namespace: it blocks no other writer
            inserted = bool(self._store.execute(f"{INSERT} RETURNING ordinal", values).fetchall())
            if inserted:
                self._store.insert("note", notes)
        return inserted

    def numbers(self, namespace_id: int, since: int | None = None) -> list[int]:
        """Return the pending numbers upwards, from `since` or from the low watermark."""
        start = self.watermark.start(self._store.generation, namespace_id) if since is None else since
        rows = self._store.execute(
            "SELECT ordinal FROM episode WHERE namespace_id = ? AND ordinal >= ? AND ordinal < 0 ORDER BY ordinal",
            (namespace_id, start),
        )
        return [row[0] for row in rows.fetchall()]

    def read(self, namespace_id: int, since: int | None, numbers: Sequence[int] = ()) -> list[PendingEpisode]:
        """Return the pending episodes from the number `since` on (None: none of these), and those with `numbers`."""
        from_since = f"{_SELECT} >= ? AND ordinal < 0"
        if since is None:
            rows = self._store.execute_in(f"{_SELECT} IN {{values}}", (namespace_id,), numbers)
        elif not numbers:
            rows = self._store.execute(from_since, (namespace_id, since)).fetchall()
        else:  # one round trip
            rows = self._store.execute_in(
                f"{from_since} UNION ALL {_SELECT} IN {{values}}", (namespace_id, since, namespace_id), numbers
            )
        return [PendingEpisode(*row) for row in rows]

    def take(self, namespace_id: int, numbers: Sequence[int]) -> list[PendingEpisode]:
        """Delete pending episodes, and return them in the order of their numbers."""
        rows = self._store.execute_in(
            f"DELETE FROM episode WHERE namespace_id = ? AND ordinal IN {{values}} RETURNING {_COLUMNS}",
            (namespace_id,),
            numbers,
        )
        return sorted(PendingEpisode(*row) for row in rows)

    def lock(self, namespace_id: int) -> None:
        """Wait for open inserts, and block new ones until this transaction of the namespace ends."""
        self._store.execute("SELECT id FROM namespace WHERE id = ? FOR UPDATE", (namespace_id,)).fetchall()

    def rescan(self, namespace_id: int) -> None:
        """Begin the next scan at the first number."""
        self.watermark.reset(self._store.generation, namespace_id)

    def is_permission_error(self, error: Exception) -> bool:
        """Whether an error says that the role lacks a right."""
        return getattr(error.__cause__, "sqlstate", None) == _INSUFFICIENT_PRIVILEGE
