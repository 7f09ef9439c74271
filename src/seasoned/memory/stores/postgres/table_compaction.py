"""Rewriting of the tables of all tenants, each for itself: a tenant that holds a lock delays its own tables alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seasoned.memory.stores.postgres.schema import SCHEMA
from seasoned.memory.stores.postgres.wire import LOCK_TIMEOUT_S

if TYPE_CHECKING:
    import psycopg

__all__ = ["TableRewriting", "rewrite_tables"]

_BUSY_TIMEOUT_S = 1
"""How long a table is waited for, once another table of the tenant or an older transaction was not free in time."""

_POLL_S = 0.02

# Everybody may read the locks and the roles of the processes, but the snapshots of their own role alone. A process has
# a snapshot only inside a transaction, and a transaction holds the lock of its own number. Those of other databases
# delay nothing.
_TRANSACTIONS = """
SELECT virtualtransaction, format('process %s of role %L', pid, usename) FROM pg_catalog.pg_locks
JOIN pg_catalog.pg_stat_activity USING (pid)
WHERE locktype = 'virtualxid' AND datname = current_database() AND pid <> pg_backend_pid()
UNION ALL SELECT gid, format('the prepared transaction %L of role %L', gid, owner) FROM pg_catalog.pg_prepared_xacts
WHERE database = current_database()
"""
_HOLDERS = """
SELECT DISTINCT coalesce(format('process %s of role %L', pid, usename), 'a prepared transaction')
FROM pg_catalog.pg_locks LEFT JOIN pg_catalog.pg_stat_activity USING (pid)
WHERE relation = $1::regclass AND granted AND pid IS DISTINCT FROM pg_backend_pid()
"""


@dataclass(slots=True)
class TableRewriting:
    """What kept deleted rows from being overwritten; nothing, if both are empty.

    Attributes:
        busy: the tables that were held for too long, each with the transactions that held it. They were not rewritten.
        old: the transactions that began before, and may still read deleted rows: the rewritten tables may have kept
            these rows.
    """

    busy: dict[str, list[str]] = field(default_factory=dict)
    old: list[str] = field(default_factory=list)


def rewrite_tables(connection: psycopg.Connection[Any], wait_s: float = LOCK_TIMEOUT_S) -> TableRewriting:
    """Run VACUUM FULL and ANALYZE on every table of every tenant, as the owner of the tables.

    The marks of erasures that were committed before (`namespace.compaction_due`) are taken back, for each tenant of
    whose tables every one was rewritten without their rows.

    Args:
        connection: outside a transaction.
        wait_s: how long a table is waited for that another transaction holds, and how long older transactions.
    """
    tables: dict[str, list[tuple[str, str]]] = {}
    for schema, name, kind in connection.execute(
        "SELECT nspname::text, relname::text, relkind::text FROM pg_catalog.pg_class "
        "JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace "
        "WHERE nspname ~ $1 AND relkind IN ('r', 'p') AND pg_has_role(relowner, 'USAGE') "
        "ORDER BY nspname, relkind DESC, relname",  # the parts of a divided table before the table
        (f"^{SCHEMA}_[0-9]+$",),
    ).fetchall():
        tables.setdefault(schema, []).append((f"{schema}.{name}", kind))
    done = TableRewriting()
    try:
        due = {schema: _marks(connection, schema, wait_s) for schema in tables}
        done.old = _wait_for_snapshots(connection, wait_s)
        for schema, names in tables.items():
            busy = _rewrite(connection, names, min(_BUSY_TIMEOUT_S, wait_s) if done.old else wait_s)
            done.busy |= busy
            if not (busy or done.old):
                _take_back(connection, schema, due[schema], wait_s)
    finally:
        if not connection.closed:
            connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'")
    return done


def _rewrite(connection: psycopg.Connection[Any], tables: list[tuple[str, str]], wait_s: float) -> dict[str, list[str]]:
    """Rewrite the tables of one tenant, given with their kinds, and return those that were busy with their holders."""
    import psycopg

    busy: dict[str, list[str]] = {}
    for name, kind in tables:
        _set_timeout(connection, min(_BUSY_TIMEOUT_S, wait_s) if busy else wait_s)
        try:
            connection.execute(f"{'VACUUM (FULL, ANALYZE)' if kind == 'r' else 'ANALYZE'} {name}")
        except psycopg.errors.LockNotAvailable:
            busy[name] = [holder for (holder,) in connection.execute(_HOLDERS, (name,)).fetchall()]
    return busy


def _wait_for_snapshots(connection: psycopg.Connection[Any], wait_s: float) -> list[str]:
    """Wait until no snapshot is left to which rows that are deleted by now are visible; return who still has one.

    A snapshot that was taken while an older transaction ran keeps the rows that this transaction could see. So it
    waits twice: for the present transactions, and then for those that began while it waited.
    """
    deadline = time.monotonic() + wait_s
    old: dict[str, str] = {}
    for _ in range(2):
        old = dict(connection.execute(_TRANSACTIONS).fetchall())
        while old and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            present = dict(connection.execute(_TRANSACTIONS).fetchall())
            old = {number: who for number, who in old.items() if number in present}
        if old:
            break
    return sorted(old.values())


def _marks(connection: psycopg.Connection[Any], schema: str, wait_s: float) -> list[tuple[int, int]]:
    """Return the marks of a tenant's erasures by namespace; none if its table is busy, and then they stay.

    Row-level security hides the rows of a tenant from the owner too. It is off for the owner inside this transaction.
    """
    return _as_any_tenant(connection, schema, "SELECT id, compaction_due FROM {} WHERE compaction_due > 0", wait_s)


def _take_back(connection: psycopg.Connection[Any], schema: str, marks: list[tuple[int, int]], wait_s: float) -> None:
    """Take back marks, but for those of namespaces where an erasure was committed since they were read."""
    if marks:
        pairs = ", ".join(f"({id_}, {n})" for id_, n in marks)
        update = f"UPDATE {{}} SET compaction_due = 0 WHERE (id, compaction_due) IN ({pairs}) RETURNING id, 0"
        _as_any_tenant(connection, schema, update, wait_s)


def _as_any_tenant(
    connection: psycopg.Connection[Any], schema: str, statement: str, wait_s: float
) -> list[tuple[int, int]]:
    import psycopg

    table = f"{schema}.namespace"
    _set_timeout(connection, wait_s)
    try:
        with connection.transaction():
            connection.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
            rows = connection.execute(statement.format(table)).fetchall()
            connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    except psycopg.errors.LockNotAvailable:
        return []
    return [(int(id_), int(n)) for id_, n in rows]


def _set_timeout(connection: psycopg.Connection[Any], wait_s: float) -> None:
    connection.execute(f"SET lock_timeout = {round(1000 * wait_s)}")
