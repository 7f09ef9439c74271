"""Rewriting of the tables of all tenants, each for itself: a tenant that holds a lock delays its own tables alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seasoned.memory.stores.postgres.schema import SCHEMA
from seasoned.memory.stores.postgres.wire import LOCK_TIMEOUT_S

if TYPE_CHECKING:
    import psycopg

__all__ = ["rewrite_tables"]

_BUSY_TIMEOUT_S = 1
"""How long each further table of a tenant is waited for, once one was not free in time."""


def rewrite_tables(connection: psycopg.Connection[Any], wait_s: float = LOCK_TIMEOUT_S) -> list[str]:
    """Run VACUUM FULL and ANALYZE on every table of every tenant, as the owner of the tables.

    Args:
        connection: outside a transaction.
        wait_s: how long a table is waited for that another transaction holds.

    Returns:
        The tables that another transaction held for too long, and that were not rewritten.
    """
    import psycopg

    tables = connection.execute(
        "SELECT nspname::text, relname::text, relkind::text FROM pg_catalog.pg_class "
        "JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace "
        "WHERE nspname ~ $1 AND relkind IN ('r', 'p') AND pg_has_role(relowner, 'USAGE') "
        "ORDER BY nspname, relkind DESC, relname",  # the parts of a divided table before the table
        (f"^{SCHEMA}_[0-9]+$",),
    ).fetchall()
    busy: dict[str, list[str]] = {}
    try:
        for schema, name, kind in tables:
            timeout_s = min(_BUSY_TIMEOUT_S, wait_s) if schema in busy else wait_s
            connection.execute(f"SET lock_timeout = {round(1000 * timeout_s)}")
            work = "VACUUM (FULL, ANALYZE)" if kind == "r" else "ANALYZE"
            try:
                connection.execute(f"{work} {schema}.{name}")
            except psycopg.errors.LockNotAvailable:
                busy.setdefault(schema, []).append(f"{schema}.{name}")
    finally:
        if not connection.closed:
            connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'")
    return [name for names in busy.values() for name in names]
