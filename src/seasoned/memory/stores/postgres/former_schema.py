"""The migration from versions 2 to 5, where the rows of all tenants lay in the same tables, to partitions of each.

It is one transaction: a process that is killed, or a full disk, leaves the store as it was, and it can be repeated. It
copies every row once, so it needs as much free disk space as the store has content.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from seasoned.errors import IntegrityError
from seasoned.memory.stores.postgres.schema import SCHEMA, TABLES, TENANT_BITS, create_statements
from seasoned.memory.stores.postgres.tenant_schema import (
    create_tenant_schema,
    grant_rights,
    guard_tenant_schema,
    role_exists,
)

if TYPE_CHECKING:
    import psycopg

__all__ = ["FIRST_PARTITIONED_VERSION", "partition_former_tables"]

FIRST_PARTITIONED_VERSION = 6
"""From this version on each tenant has partitions of its own."""

_FORMER = f"{SCHEMA}_former"


def partition_former_tables(connection: psycopg.Connection[Any], path: str) -> None:
    """Copy the rows of each tenant to its own partitions, and drop the former tables; as their owner.

    Versions 2 to 4 lacked columns and a table that later ones have: checksums are computed, the others have defaults.

    Raises:
        IntegrityError: rows belong to no tenant; nothing was changed.
    """
    names = {
        name
        for (name,) in connection.execute(
            "SELECT relname::text FROM pg_catalog.pg_class WHERE relnamespace = $1::regnamespace "
            "AND relkind IN ('r', 'p') AND NOT relispartition",
            (SCHEMA,),
        ).fetchall()
    }
    former = [table for table in TABLES if table.name in names]
    listed = ", ".join(f"{SCHEMA}.{table.name}" for table in former)
    connection.execute(f"LOCK TABLE {SCHEMA}.meta, {SCHEMA}.tenant, {listed} IN ACCESS EXCLUSIVE MODE")
    [(partitions,)] = connection.execute(
        "SELECT count(*) FROM pg_catalog.pg_inherits WHERE inhparent = $1::regclass", (f"{SCHEMA}.step",)
    ).fetchall()
    connection.execute(f"ALTER SCHEMA {SCHEMA} RENAME TO {_FORMER}")
    for table in former:
        connection.execute(f"ALTER TABLE {_FORMER}.{table.name} NO FORCE ROW LEVEL SECURITY")
    for statement in create_statements(partitions):
        connection.execute(statement)
    n_copied = dict.fromkeys((table.name for table in former), 0)
    for role, number in _copy_tenants(connection):
        create_tenant_schema(connection, number, partitions)
        for table in former:
            n_copied[table.name] += _copy_rows(connection, table.name, number)
        connection.execute(
            f"SELECT setval('{SCHEMA}_{number}.namespace_number', last_value) FROM {_FORMER}.namespace_number"
        )
        guard_tenant_schema(connection, number, role, partitions)
        if role_exists(connection, role):  # the former group held the rights, so a tenant's role could be dropped
            grant_rights(connection, number, role)
    for name, n_rows in n_copied.items():
        [(n_former,)] = connection.execute(f"SELECT count(*) FROM {_FORMER}.{name}").fetchall()
        if n_former != n_rows:
            raise IntegrityError(
                f"{path}: {n_former - n_rows} rows of the table {name} belong to no tenant",
                "each row belongs to a role in the table `tenant`; nothing was changed",
                "As a superuser, look at their `namespace_id >> 40`; add that tenant, or delete the rows.",
            )
    _drop_former(connection, list(n_copied))


def _copy_tenants(connection: psycopg.Connection[Any]) -> list[tuple[str, int]]:
    """Copy the table of tenants, and return it."""
    connection.execute(f"INSERT INTO {SCHEMA}.tenant OVERRIDING SYSTEM VALUE SELECT role, number FROM {_FORMER}.tenant")
    connection.execute(
        f"SELECT setval(pg_get_serial_sequence('{SCHEMA}.tenant', 'number'), last_value, is_called) "
        f"FROM {_FORMER}.tenant_number_seq"
    )
    rows: list[tuple[str, int]] = connection.execute(
        f"SELECT role, number FROM {SCHEMA}.tenant ORDER BY number"
    ).fetchall()
    return rows


def _copy_rows(connection: psycopg.Connection[Any], table: str, number: int) -> int:
    """Copy the rows of one tenant, and return how many there are."""
    names = [
        name
        for (name,) in connection.execute(
            "SELECT attname::text FROM pg_catalog.pg_attribute WHERE attrelid = $1::regclass "
            "AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
            (f"{_FORMER}.{table}",),
        ).fetchall()
    ]
    values = {name: name for name in names}
    if table == "namespace" or (table in _CHECKED_BYTES and "checksum" not in names):
        values["checksum"] = _checksum(table, names)  # version 5 had checksums, those of settings without the redactor
    key = "id" if table == "namespace" else "namespace_id"
    return connection.execute(
        f"INSERT INTO {SCHEMA}_{number}.{table} ({', '.join(values)}) "
        f"SELECT {', '.join(values.values())} FROM {_FORMER}.{table} "
        f"WHERE {key} >= {number << TENANT_BITS} AND {key} < {number + 1 << TENANT_BITS}"
    ).rowcount


def _float_bytes(value: str) -> str:
    return f"coalesce('\\x01'::bytea || float8send({value}), '\\x00'::bytea)"


def _digest_bytes(value: str) -> str:
    return f"'\\x02'::bytea || int4send(octet_length({value})) || {value}"


def _text_bytes(value: str) -> str:
    """Return the bytes of a text as `row_checksum` hashes them; `wire.escape` is undone, in hexadecimal digits."""
    digits = f"encode(convert_to({value}, 'UTF8'), 'hex')"
    for old, new in (("ee8080ee8080", "zz"), ("ee808030", "00"), ("zz", "ee8080")):
        digits = f"replace({digits}, '{old}', '{new}')"
    return _digest_bytes(f"decode({digits}, 'hex')")


_SUPERSEDED = "(superseded_by IS NOT NULL)::int::float8"
_CHECKED_BYTES = {
    "namespace": [
        *map(_text_bytes, ("name", "encoder")),
        _float_bytes("gamma"),
        _text_bytes("''"),  # the redactor: no former version recorded one
        _float_bytes("created_at"),
    ],
    "episode": [_digest_bytes("digest"), _float_bytes("created_at")],
    "feedback": [_digest_bytes("digest"), _float_bytes("revoked_at"), _float_bytes(_SUPERSEDED)],
    "note": [_digest_bytes("digest"), _float_bytes("revoked_at")],
    "quarantine": [_digest_bytes("digest"), _float_bytes("lifted_at")],
    "copy": [_text_bytes("kind"), _text_bytes("path"), _float_bytes("created_at")],
}
"""The bytes of each table's rows that `seasoned.memory.values.row_checksum` hashes, in SQL."""


def _checksum(table: str, columns: Collection[str]) -> str:
    """Return the expression of a row's checksum, where the former table has these columns."""
    hashed = " || ".join([f"convert_to('seasoned:{table}:row:v1' || chr(10), 'UTF8')", *_CHECKED_BYTES[table]])
    if table == "namespace":
        hashed += " || " + _text_bytes("feedback_limits" if "feedback_limits" in columns else "'{}'")
    return f"substring(sha256({hashed}) FROM 1 FOR 16)"


def _drop_former(connection: psycopg.Connection[Any], tables: list[str]) -> None:
    """Drop the former schema; an object that is not ours stops this, and the migration with it."""
    for name in (*tables, "meta", "tenant"):
        connection.execute(f"DROP TABLE {_FORMER}.{name}")
    connection.execute(f"DROP FUNCTION {_FORMER}.next_namespace()")
    for name in ("namespace_number", "arrival_number"):
        connection.execute(f"DROP SEQUENCE IF EXISTS {_FORMER}.{name}")
    connection.execute(f"DROP SCHEMA {_FORMER}")
