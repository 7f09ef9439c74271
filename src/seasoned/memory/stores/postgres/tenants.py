"""Tenants of a PostgreSQL store: roles that row-level security isolates.

A tenant is a role, never a variable that a client could set. Each may read and write the rows of its own namespaces,
which may have any names. That holds for the tables' owner too, but not for superusers. It protects
stored rows; it does not limit the load: a tenant can occupy the server, fill its disk, and lock a table. The total size
of the tables is visible to all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seasoned.errors import ConfigError, InputError, StoreError, excerpt
from seasoned.memory.stores.base import MigrationReport
from seasoned.memory.stores.postgres.schema import GROUP, POSTGRES_VERSION, SCHEMA, TABLES
from seasoned.registry import load_extra

if TYPE_CHECKING:
    import psycopg

__all__ = ["GROUP", "migrate"]

_MAX_NAME_BYTES = 63  # PostgreSQL truncates a longer name, and two tenants would be one
_FIXED = {"id", "tenant"}  # of a namespace: a tenant that could set them could claim another tenant's rows


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
                migration.ensure_tenant(connection, path)  # the owner is one too
                known = tuple(name for name in tenants if _exists(connection, name))
                if tenants:
                    _grant(connection)
                for name in tenants:
                    _admit(connection, path, name, secrets.get(name))
    return MigrationReport(path, POSTGRES_VERSION, tuple(name for name in tenants if name not in known), known)


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
        if name.startswith("pg_") or name in (GROUP, "public", "none", "current_user", "session_user", "current_role"):
            raise InputError(f"tenant {excerpt(name)}", "PostgreSQL or seasoned uses this name", "Choose another one.")
    for name, password in passwords.items():
        if name not in tenants:
            raise InputError(f"a password for {excerpt(name)}", "a password belongs to a tenant", "Name it as one.")
        if not isinstance(password, str) or not password or "\0" in password:
            raise InputError(f"the password of {excerpt(name)}", "it is a text that is not empty", "Choose another.")


def _exists(connection: psycopg.Connection[Any], name: str) -> bool:
    return connection.execute("SELECT FROM pg_catalog.pg_roles WHERE rolname = $1", (name,)).fetchone() is not None


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


def _grant(connection: psycopg.Connection[Any]) -> None:
    """Create the group with the rights of a tenant: no TRUNCATE, REFERENCES or TRIGGER, no right on the schema."""
    from psycopg import sql

    if not _exists(connection, GROUP):
        connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(GROUP)))
    group = sql.Identifier(GROUP)
    for table in TABLES:
        where = sql.SQL("{}.{}").format(sql.Identifier(SCHEMA), sql.Identifier(table.name))
        connection.execute(sql.SQL("REVOKE ALL ON {} FROM {}, PUBLIC").format(where, group))
        if table.name == "namespace":
            names = [column.name for column in table.columns if column.name not in _FIXED]
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            rights: sql.Composable = sql.SQL("SELECT, DELETE, INSERT ({}), UPDATE ({})").format(columns, columns)
        else:
            rights = sql.SQL("SELECT, INSERT, UPDATE, DELETE")
        connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(rights, where, group))
    schema = sql.Identifier(SCHEMA)
    connection.execute(sql.SQL("REVOKE ALL ON SCHEMA {} FROM {}, PUBLIC").format(schema, group))
    connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, group))
    connection.execute(sql.SQL("GRANT SELECT ON {}.meta, {}.tenant TO {}").format(schema, schema, group))
    for name in ("namespace_number", "arrival_number"):
        sequence = sql.Identifier(SCHEMA, name)
        connection.execute(sql.SQL("GRANT USAGE ON SEQUENCE {} TO {}").format(sequence, group))


def _admit(connection: psycopg.Connection[Any], path: str, name: str, password: str | None) -> None:
    from psycopg import sql

    role = sql.Identifier(name)
    if not _exists(connection, name):
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN NOCREATEROLE NOCREATEDB").format(role))
    # A role that may become another one is bound by that role's policies, not by its own.
    bad = connection.execute(
        "SELECT rolname::text FROM pg_catalog.pg_roles WHERE pg_has_role($1, oid, 'MEMBER') "
        "AND (rolsuper OR rolbypassrls OR rolcreaterole OR oid = (SELECT relowner FROM pg_catalog.pg_class "
        "WHERE oid = $2::regclass) OR (rolname <> $1 AND rolname <> $3)) ORDER BY rolname LIMIT 1",
        (name, f"{SCHEMA}.namespace", GROUP),
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
    connection.execute(f"INSERT INTO {SCHEMA}.tenant VALUES ($1) ON CONFLICT DO NOTHING", (name,))
    if not connection.execute("SELECT pg_has_role($1, $2, 'MEMBER')", (name, GROUP)).fetchone()[0]:  # type: ignore[index]
        connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(GROUP), role))
