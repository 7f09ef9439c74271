"""Tenants of a PostgreSQL store: roles, each with tables of its own that row-level security binds to it.

A tenant is a role, never a variable that a client could set. Each may read and write the rows of its own namespaces,
which may have any names. That holds for the tables' owner too, but not for superusers. It protects
stored rows; it does not limit the load: a tenant can occupy the server and fill its disk. The catalogues of PostgreSQL
show every role that may connect the names of the tenants, and the sizes of their tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seasoned.errors import ConfigError, InputError, StoreError, excerpt
from seasoned.memory.stores.base import MigrationReport
from seasoned.memory.stores.postgres.schema import FORMER_GROUP, POSTGRES_VERSION, SCHEMA
from seasoned.memory.stores.postgres.tenant_schema import acting_as_owner, add_tenant, lock_schema, role_exists
from seasoned.registry import load_extra

if TYPE_CHECKING:
    import psycopg

__all__ = ["migrate"]

_RESERVED = (FORMER_GROUP, "public", "none", "current_user", "session_user", "current_role")
_MAX_NAME_BYTES = 63  # PostgreSQL truncates a longer name, and two tenants would be one


def migrate(url: str, tenants: Sequence[str] = (), passwords: Mapping[str, str] | None = None) -> MigrationReport:
    """Make or update the schema, its policies, and the roles of its tenants. Doing it again changes nothing.

    Args:
        url: of the database, as the role that owns the tables or shall own them; making tenants needs CREATEROLE.
        tenants: names of roles; those that do not exist are made. None is ever removed.
        passwords: by tenant. A tenant without one here keeps its password; without any it cannot log in by password.

    Raises:
        InputError: a name or a password breaks a rule, or the role named is none that row-level security would bind.
        ConfigError, NotFoundError, ForeignStoreError, NewerStoreError, StoreError: as `Memory.open` does.
    """
    load_extra("psycopg", "postgres")
    from seasoned.memory.stores.postgres import migration, wire
    from seasoned.memory.stores.postgres.error_translation import postgres_errors

    secrets = dict(passwords or {})
    _check(tenants, secrets)
    parameters = wire.parse_url(url)
    path = wire.safe_url(parameters)
    with postgres_errors(path):
        connection = wire.connect(parameters, read_only=False)
        with connection:
            migration.prepare_schema(connection, path, create=True, migrate=True)
            with connection.transaction():
                _check_owner(connection, path)
                lock_schema(connection)
                migration.ensure_tenant(connection, path)  # the owner is one too
                known = tuple(name for name in tenants if role_exists(connection, name))
                for name in tenants:
                    _admit(connection, path, name, secrets.get(name))
                remarks = (*_close_database(connection), *_missing_roles(connection))
            _drop_former_group(connection)
    made = tuple(name for name in tenants if name not in known)
    return MigrationReport(path, POSTGRES_VERSION, made, known, remarks)


def _check(tenants: Sequence[str], passwords: Mapping[str, str]) -> None:
    if isinstance(tenants, str):
        raise InputError(f"tenants = {excerpt(tenants)}", "they are a list of names", "Put it in a list.")
    for name in tenants:
        if not isinstance(name, str) or not name or "\0" in name or len(name.encode()) > _MAX_NAME_BYTES:
            raise InputError(
                f"tenant {excerpt(name)}",
                f"a role's name has 1 to {_MAX_NAME_BYTES} bytes, none of them NUL",
                "Choose another name.",
            )
        if name.startswith("pg_") or name in _RESERVED:
            raise InputError(f"tenant {excerpt(name)}", "PostgreSQL or seasoned uses this name", "Choose another one.")
    for name, password in passwords.items():
        if name not in tenants:
            raise InputError(f"a password for {excerpt(name)}", "a password belongs to a tenant", "Name it as one.")
        if not isinstance(password, str) or not password or "\0" in password:
            raise InputError(f"the password of {excerpt(name)}", "it is a text that is not empty", "Choose another.")


def _check_owner(connection: psycopg.Connection[Any], path: str) -> None:
    row = connection.execute(
        "SELECT pg_has_role(current_user, relowner, 'USAGE'), pg_get_userbyid(relowner)::text "
        "FROM pg_catalog.pg_class WHERE oid = $1::regclass",
        (f"{SCHEMA}.namespace",),
    ).fetchone()
    if row is not None and not row[0]:
        raise StoreError(
            f"{path}: the tables belong to {row[1]!r}",
            "their owner decides which roles are tenants",
            "Connect as that role.",
        )


def _admit(connection: psycopg.Connection[Any], path: str, name: str, password: str | None) -> None:
    from psycopg import sql

    role = sql.Identifier(name)
    if not role_exists(connection, name):
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN NOCREATEROLE NOCREATEDB").format(role))
    # A role that may become another one is bound by that role's policies, not by its own.
    bad = connection.execute(
        "SELECT rolname::text FROM pg_catalog.pg_roles WHERE pg_has_role($1, oid, 'MEMBER') "
        "AND (rolsuper OR rolbypassrls OR rolcreaterole OR oid = (SELECT relowner FROM pg_catalog.pg_class "
        "WHERE oid = $2::regclass) OR (rolname <> $1 AND rolname <> $3)) ORDER BY rolname LIMIT 1",
        (name, f"{SCHEMA}.namespace", FORMER_GROUP),
    ).fetchone()
    if bad is not None:
        raise ConfigError(
            f"{path}: the role {name!r} is or may become {bad[0]!r}",
            "a tenant is a role of its own: no superuser, no maker of roles, not the owner, a member of no other role",
            "Choose another name, or REVOKE that.",
        )
    if not connection.execute("SELECT rolcanlogin FROM pg_catalog.pg_roles WHERE rolname = $1", (name,)).fetchone()[0]:  # type: ignore[index]
        connection.execute(sql.SQL("ALTER ROLE {} LOGIN").format(role))
    if password is not None:
        secret = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
        connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, secret))
    with acting_as_owner(connection):
        add_tenant(connection, name)


def _close_database(connection: psycopg.Connection[Any]) -> tuple[str, ...]:
    """Let the tenants connect to this database, and no role that is none: it could read the catalogues.

    Returns:
        What the owner of the database must do instead, if this role may not.
    """
    from psycopg import sql

    [(database, is_owner, is_open)] = connection.execute(
        "SELECT datname::text, pg_has_role(datdba, 'USAGE'), has_database_privilege('public', oid, 'CONNECT') "
        "FROM pg_catalog.pg_database WHERE datname = current_database()"
    ).fetchall()
    rows = connection.execute(
        f"SELECT rolname::text FROM {SCHEMA}.tenant JOIN pg_catalog.pg_roles ON rolname = role "
        "WHERE $1 OR NOT has_database_privilege(pg_roles.oid, current_database(), 'CONNECT') ORDER BY number",
        (is_open,),
    ).fetchall()
    [(n_tenants,)] = connection.execute(f"SELECT count(*) FROM {SCHEMA}.tenant").fetchall()
    if not rows or n_tenants < 2:  # the owner alone
        return ()
    name, roles = sql.Identifier(database), sql.SQL(", ").join(sql.Identifier(row[0]) for row in rows)
    statements = [
        sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(name, roles),
        sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(name),
    ]
    if is_owner:
        for statement in statements:
            connection.execute(statement)
        return ()
    shown = "; ".join(statement.as_string(connection) for statement in statements)
    return (
        f"only the owner of the database {database!r} decides which roles may connect to it. As that role: {shown}",
    )


def _missing_roles(connection: psycopg.Connection[Any]) -> tuple[str, ...]:
    """Return a remark on each tenant whose role was dropped: its rows are kept, and nobody has rights on them."""
    rows = connection.execute(
        f"SELECT role FROM {SCHEMA}.tenant WHERE role NOT IN (SELECT rolname::text FROM pg_catalog.pg_roles) "
        "ORDER BY number"
    ).fetchall()
    return tuple(
        f"the role {role!r} of a tenant does not exist; its rows are kept. A migration with it as a tenant makes it "
        "again, with its rows"
        for (role,) in rows
    )


def _drop_former_group(connection: psycopg.Connection[Any]) -> None:
    """Drop the role that held all tenants' rights before version 5, unless another database still needs it."""
    import psycopg

    if not role_exists(connection, FORMER_GROUP):
        return
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.DependentObjectsStillExist):
        connection.execute(f"DROP ROLE {FORMER_GROUP}")
