"""The schema of one tenant: partitions of every table, with grants and a policy for the tenant's role alone.

A policy filters rows after the server has read them, and `EXPLAIN ANALYZE` counts the rows that it filtered. A right on
a table is checked before. So each tenant has tables of its own: the partitions of the tables of the schema `seasoned`
for the range of its ids, in the schema `seasoned_N`, where N is its number. A connection finds them by its search path.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from seasoned.errors import StoreError
from seasoned.memory.stores.postgres.schema import SCHEMA, TABLES, TENANT_BITS, TableSchema, guard_statements

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "acting_as_owner",
    "add_tenant",
    "create_tenant_schema",
    "grant_rights",
    "guard_tenant_schema",
    "lock_schema",
    "role_exists",
    "schema_of",
]

_FIXED = {"id", "tenant"}
"""Columns of `namespace` that a tenant cannot set: PostgreSQL does."""


@contextlib.contextmanager
def acting_as_owner(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Act as the role that owns the tables, inside a transaction: what is created there belongs to it.

    Raises:
        psycopg.errors.InsufficientPrivilege: the current role is not that role, a member of it, or a superuser.
    """
    from psycopg import sql

    owner, is_owner = connection.execute(
        "SELECT pg_get_userbyid(relowner)::text, pg_get_userbyid(relowner) = current_user FROM pg_catalog.pg_class "
        "WHERE oid = $1::regclass",
        (f"{SCHEMA}.meta",),
    ).fetchone() or ("", False)
    if is_owner:
        yield
        return
    connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(owner)))
    yield  # an error ends the transaction, and the role with it
    connection.execute("RESET ROLE")


def lock_schema(connection: psycopg.Connection[Any]) -> None:
    """Wait for another process that changes the schema, its rights or its tenants, until the end of the transaction.

    Only the tables' owner and superusers can take this lock. Readers and writers of rows do not wait for it.
    """
    connection.execute(f"LOCK TABLE {SCHEMA}.meta IN SHARE UPDATE EXCLUSIVE MODE")


def role_exists(connection: psycopg.Connection[Any], name: str) -> bool:
    """Return whether the server has a role of this name."""
    return connection.execute("SELECT FROM pg_catalog.pg_roles WHERE rolname = $1", (name,)).fetchone() is not None


def schema_of(connection: psycopg.Connection[Any], path: str) -> str:
    """Return the schema that holds the tables of the current role: its own, or `seasoned` if it may read that.

    The tables' owner and a superuser may read the tables of all tenants; they are no tenants before they first write.

    Raises:
        StoreError: this role is no tenant.
    """
    number, may_read = connection.execute(
        f"SELECT (SELECT number FROM {SCHEMA}.tenant WHERE role = current_user), "
        f"has_table_privilege('{SCHEMA}.namespace', 'SELECT')"
    ).fetchone() or (None, False)
    if number is None and not may_read:
        raise StoreError(
            f"{path}: this role is no tenant of this store",
            "its owner decides which roles are tenants",
            "Run `seasoned memory migrate` as the owner of the tables, with this role as a tenant.",
        )
    return SCHEMA if number is None else f"{SCHEMA}_{number}"


def add_tenant(connection: psycopg.Connection[Any], role: str) -> None:
    """Register a role as a tenant, with a number, and create its tables; inside a transaction, as the owner.

    A tenant that is registered gets back its rights.
    """
    row = connection.execute(
        f"INSERT INTO {SCHEMA}.tenant VALUES ($1) ON CONFLICT DO NOTHING RETURNING number", (role,)
    ).fetchone()
    if row is not None:  # it is new, and no other process has just registered it
        [(partitions,)] = connection.execute(f"SELECT partitions FROM {SCHEMA}.meta").fetchall()
        create_tenant_schema(connection, row[0], partitions)
        guard_tenant_schema(connection, row[0], role, partitions)
    else:
        row = connection.execute(f"SELECT number FROM {SCHEMA}.tenant WHERE role = $1", (role,)).fetchone()
    if row is not None:
        grant_rights(connection, row[0], role)


def create_tenant_schema(connection: psycopg.Connection[Any], number: int, partitions: int) -> None:
    """Create the tables of the tenant with this number. Nobody but their owner has a right on them, or is bound yet."""
    schema = f"{SCHEMA}_{number}"
    connection.execute(f"CREATE SCHEMA {schema}")
    connection.execute(f"CREATE SEQUENCE {schema}.namespace_number MAXVALUE {2**TENANT_BITS - 1}")
    for table in TABLES:
        parts = _parts(table, partitions)
        connection.execute(table.create(schema, f" PARTITION BY HASH ({table.namespace_column})" if parts else ""))
        for remainder, name in enumerate(parts):
            connection.execute(
                f"CREATE TABLE {schema}.{name} PARTITION OF {schema}.{table.name} "
                f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {remainder}){table.storage}"
            )
        for statement in (*table.index_statements(schema), *table.statistics_statements(schema)):
            connection.execute(statement)
        # Unlike CREATE TABLE ... PARTITION OF, this waits for no reader of another tenant.
        connection.execute(
            f"ALTER TABLE {SCHEMA}.{table.name} ATTACH PARTITION {schema}.{table.name} "
            f"FOR VALUES FROM ({number << TENANT_BITS}) TO ({number + 1 << TENANT_BITS})"
        )
    connection.execute(
        f"ALTER TABLE {schema}.namespace ALTER COLUMN id "
        f"SET DEFAULT {number << TENANT_BITS} | nextval('{schema}.namespace_number')"
    )


def _parts(table: TableSchema, partitions: int) -> list[str]:
    """Return the names of the parts into which a tenant's table is divided; none if it is whole."""
    return [] if table.name == "namespace" else [f"{table.name}_{part}" for part in range(partitions)]


def guard_tenant_schema(connection: psycopg.Connection[Any], number: int, role: str, partitions: int) -> None:
    """Bind the tables of a tenant, and each of their parts, to its role: the owner reads none of its rows."""
    from psycopg import sql

    policy = sql.SQL("current_user = {}").format(sql.Literal(role)).as_string(connection)
    for table in TABLES:
        for name in (table.name, *_parts(table, partitions)):
            for statement in guard_statements(f"{SCHEMA}_{number}.{name}", policy):
                connection.execute(statement)
    connection.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {SCHEMA}_{number} FROM PUBLIC")  # of default privileges


def grant_rights(connection: psycopg.Connection[Any], number: int, role: str) -> None:
    """Grant a tenant its rights: no TRUNCATE, REFERENCES or TRIGGER, none to create, none on a table of another.

    The parts of a divided table are reached through it alone.
    """
    from psycopg import sql

    schema, own, grantee = sql.Identifier(SCHEMA), sql.Identifier(f"{SCHEMA}_{number}"), sql.Identifier(role)
    [(is_owner,)] = connection.execute("SELECT $1 = current_user", (role,)).fetchall()
    if is_owner:
        return
    for table in TABLES:
        if table.name == "namespace":
            names = [column.name for column in table.columns if column.name not in _FIXED]
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            rights: sql.Composable = sql.SQL("SELECT, DELETE, INSERT ({}), UPDATE ({})").format(columns, columns)
        else:
            rights = sql.SQL("SELECT, INSERT, UPDATE, DELETE")
        connection.execute(sql.SQL("GRANT {} ON {}.{} TO {}").format(rights, own, sql.Identifier(table.name), grantee))
    connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {}, {} TO {}").format(schema, own, grantee))
    connection.execute(sql.SQL("GRANT SELECT ON {}.meta, {}.tenant TO {}").format(schema, schema, grantee))
    connection.execute(sql.SQL("GRANT USAGE ON SEQUENCE {}.namespace_number TO {}").format(own, grantee))
