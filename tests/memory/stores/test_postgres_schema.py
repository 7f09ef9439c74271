"""The tables of PostgreSQL: those of SQLite, keyed by namespace first, whole or in partitions."""

from __future__ import annotations

import re
import sqlite3

import psycopg
import pytest
from postgres_server import empty_url, fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import ForeignStoreError, NewerStoreError, NotFoundError, StoreError
from seasoned.memory.stores.postgres.former_schema import FIRST_PARTITIONED_VERSION
from seasoned.memory.stores.postgres.migration import prepare_schema
from seasoned.memory.stores.postgres.schema import (
    MIGRATIONS,
    POSTGRES_VERSION,
    TABLES,
    citus_statements,
    create_statements,
    partition_statements,
)
from seasoned.memory.stores.postgres.store import PostgresStore
from seasoned.memory.stores.postgres.wire import connect, parse_url
from seasoned.memory.stores.sqlite_schema import APPLICATION_ID, COLUMNS
from seasoned.testing import check_memory

FURTHER = {"namespace": {"tenant"}, "episode": {"line"}, "step": {"visit_ordinal"}, "feedback": {"visit_ordinal"}}
TRUTHS = ("live", "awaiting", "awaits_feedback")
KINDS = {"INTEGER": "integer", "REAL": "real", "TEXT": "text", "BLOB": "blob"}


def test_every_table_has_the_columns_that_sqlite_has(tmp_path):
    Memory.open(tmp_path / "a.db").close()
    file = sqlite3.connect(tmp_path / "a.db")
    names = {row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names == {table.name for table in TABLES}
    for table in TABLES:
        theirs = {row[1]: (row[2], bool(row[3] or row[5])) for row in file.execute(f"PRAGMA table_info({table.name})")}
        ours = {column.name: column for column in table.columns}
        assert ours.keys() - theirs.keys() == FURTHER.get(table.name, set())
        assert theirs.keys() <= ours.keys()
        for name, (kind, required) in theirs.items():
            assert ours[name].kind == ("truth" if name in TRUTHS else KINDS[kind])
            assert ours[name].rule.startswith("NOT NULL") == required, (table.name, name)


def test_table_columns_equal_those_of_the_rows():
    for table in TABLES:
        if table.name != "namespace":
            further = FURTHER.get(table.name, set())
            assert tuple(c.name for c in table.columns if c.name not in further) == COLUMNS[table.name]


def test_every_key_begins_with_the_namespace():
    for table in TABLES:
        if table.name == "namespace":
            assert (table.primary, table.unique) == (("id",), (("tenant", "name"),))
        else:
            for key in (table.primary, *table.unique):
                assert key[0] == "namespace_id", table.name
            for name, what in table.indexes:
                assert what.startswith("(namespace_id, "), name


def test_migrated_schema_has_the_version_of_a_new_one():
    assert set(MIGRATIONS) == set(range(FIRST_PARTITIONED_VERSION, POSTGRES_VERSION))


def test_partitioned_store_passes_the_checks(postgres, empty_url):  # noqa: F811
    with postgres.connect(empty_url) as connection:
        for statement in partition_statements(3):
            connection.execute(statement)
    check_memory(lambda name: Memory.open(empty_url, namespace=name, gamma=0.5))
    with Memory.open(empty_url, namespace="many") as memory:
        memory.add(Episode("t", [Step("a page", "go", 1.0)], "e"))
        assert memory.verify().episodes == 1
        assert memory.session.store.problems() == []
    with postgres.connect(empty_url) as connection:
        partitions = connection.execute(
            "SELECT count(*) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE relkind = 'r'"
        ).fetchone()[0]
        assert partitions == 1 + 3 * (len(TABLES) - 1)
        [(n_rows,)] = connection.execute("SELECT count(*) FROM seasoned_1.step").fetchall()
        assert n_rows > 0
    name = f"tenant_{empty_url.rsplit('/', 1)[1]}"
    PostgresStore.migrate(empty_url, [name], {name: "w"})
    with Memory.open(postgres.url(name, "w", empty_url.rsplit("/", 1)[1])) as memory:
        memory.add_many([Episode("t", [Step("a page of a tenant", "go", 1.0)])])
        assert memory.session.store.problems() == []
    parts = [f"seasoned_2.state{part}" for part in ("", "_0", "_1", "_2")]
    with postgres.connect(postgres.url(database=empty_url.rsplit("/", 1)[1])) as admin:
        assert sum(admin.execute(f"SELECT count(*) FROM {part}").fetchone()[0] for part in parts) == 2
    with postgres.connect(empty_url) as owner:
        assert sum(owner.execute(f"SELECT count(*) FROM {part}").fetchone()[0] for part in parts) == 0


def test_citus_statements_distribute_every_table_by_namespace():
    statements = " ".join(citus_statements())
    for table in TABLES:
        # A key of `namespace` lacks the column by which it could be distributed.
        assert (f"create_distributed_table('seasoned.{table.name}'" in statements) == (table.name != "namespace")


# ------------------------------------------------------------------------------- whose the schema is


def opened(url, **options):
    return PostgresStore(url, **{"create": True, "read_only": False, **options})


FOREIGN = {
    "tables of someone else": ["CREATE SCHEMA seasoned", "CREATE TABLE seasoned.salad (leaf text)"],
    "a meta table of someone else": ["CREATE SCHEMA seasoned", "CREATE TABLE seasoned.meta (version text)"],
    "another application": [
        "CREATE SCHEMA seasoned",
        "CREATE TABLE seasoned.meta (application bigint, version bigint)",
        "CREATE TABLE seasoned.namespace (id bigint)",
        "INSERT INTO seasoned.meta VALUES (7, 2)",
    ],
    "no row": [*create_statements(), "DELETE FROM seasoned.meta"],
}


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("create", [True, False])
def test_foreign_schema_is_refused_and_unchanged(postgres, empty_url, statements, create):  # noqa: F811
    with postgres.connect(empty_url) as connection:
        for statement in statements:
            connection.execute(statement)
        tables = "SELECT relname FROM pg_class WHERE relnamespace = 'seasoned'::regnamespace ORDER BY 1"
        before = connection.execute(tables).fetchall()
        with pytest.raises(ForeignStoreError, match=r"a schema 'seasoned' that is not ours.*Choose another database"):
            opened(empty_url, create=create)
        assert connection.execute(tables).fetchall() == before


def test_newer_schema_of_a_server_is_refused_and_unchanged(postgres, fresh_url):  # noqa: F811
    opened(fresh_url).close()
    with postgres.connect(fresh_url) as connection:
        connection.execute("UPDATE seasoned.meta SET version = 99")
    with pytest.raises(NewerStoreError, match=rf"schema 99.*up to {POSTGRES_VERSION}.*Upgrade seasoned"):
        opened(fresh_url)


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_missing_schema_is_not_created_without_create(postgres, empty_url, options):  # noqa: F811
    with pytest.raises(NotFoundError, match=r"no memory in this database"):
        opened(empty_url, **options)
    with postgres.connect(empty_url) as connection:
        assert not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'seasoned'").fetchall()


def test_existing_empty_schema_is_used(postgres, empty_url):  # noqa: F811
    with postgres.connect(empty_url) as connection:
        connection.execute("CREATE SCHEMA seasoned")
    assert opened(empty_url).problems() == []


def test_migration_is_atomic(fresh_url):  # noqa: F811
    store = opened(fresh_url)
    store.close()
    now, later = POSTGRES_VERSION, POSTGRES_VERSION + 1
    steps = {now: ["ALTER TABLE seasoned.state ADD COLUMN colour text"], later: ["SELECT 1 / 0"]}
    with connect(parse_url(fresh_url), read_only=False) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero, match=r"division by zero"):
            prepare_schema(connection, "p", create=False, migrate=True, version=later + 1, steps=steps)
        assert connection.execute("SELECT version FROM seasoned.meta").fetchone() == (now,)
        columns = "SELECT FROM pg_attribute WHERE attrelid = 'seasoned_1.state'::regclass AND attname = 'colour'"
        assert not connection.execute(columns).fetchall()
        with pytest.raises(StoreError, match=rf"schema {now}: schema {later} is needed.*seasoned memory migrate"):
            prepare_schema(connection, "p", create=False, migrate=False, version=later, steps=steps)
        prepare_schema(connection, "p", create=False, migrate=True, version=later, steps=steps)
        assert connection.execute("SELECT version FROM seasoned.meta").fetchone() == (later,)
        assert len(connection.execute(columns).fetchall()) == 1


DAMAGE = {
    "DROP TABLE seasoned.copy": "the table copy lacks",
    "ALTER TABLE seasoned.state DROP COLUMN text": "the table state lacks text",
    "ALTER TABLE seasoned.value DISABLE ROW LEVEL SECURITY": "value does not isolate tenants",
    "ALTER TABLE seasoned_1.token DISABLE ROW LEVEL SECURITY": "token does not isolate tenants",
    "ALTER TABLE seasoned_1.token NO FORCE ROW LEVEL SECURITY": "token does not isolate tenants",
    "DROP POLICY own ON seasoned_1.step": "step does not isolate tenants",
    "ALTER TABLE seasoned_1.namespace DROP CONSTRAINT namespace_tenant_name_key": (
        r"namespace lacks its key \(tenant, name\)"
    ),
    "ALTER TABLE seasoned.episode DROP CONSTRAINT episode_namespace_id_id_key": (
        r"episode lacks its key \(namespace_id, id\)"
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.items(), ids=DAMAGE)
def test_damage_to_the_tables_is_reported(postgres, fresh_url, damage, message):  # noqa: F811
    store = opened(fresh_url)
    assert store.problems() == []
    with postgres.connect(fresh_url) as connection:
        connection.execute(damage)
    problems = store.problems()
    assert len(problems) >= 1
    assert any(re.search(message, problem) for problem in problems), problems


def test_application_id_equals_that_of_a_file(postgres, empty_url):  # noqa: F811
    opened(empty_url).close()
    with postgres.connect(empty_url) as connection:
        assert connection.execute("SELECT application, version FROM seasoned.meta").fetchall() == [
            (APPLICATION_ID, POSTGRES_VERSION)
        ]
