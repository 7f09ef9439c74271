"""Tenants are kept apart: one logs in with nothing but its own password, and tries to reach another's rows."""

from __future__ import annotations

import json

import psycopg
import pytest
from postgres_server import postgres  # noqa: F401
from psycopg import sql

from seasoned import Episode, Memory, Step
from seasoned.errors import ConfigError, InputError, NotFoundError, StoreError
from seasoned.memory.stores.base import MigrationReport
from seasoned.memory.stores.postgres import wire
from seasoned.memory.stores.postgres.schema import FORMER_GROUP, POSTGRES_VERSION, TABLES
from seasoned.memory.stores.postgres.table_compaction import TableRewriting, rewrite_tables
from seasoned.memory.stores.postgres.tenants import migrate
from seasoned.memory.stores.sqlite_schema import COLUMNS
from seasoned.memory.values.selection import Selection
from seasoned.testing import check_memory

ALL = [table.name for table in TABLES]
SECRET = "the secret page of a"


class Site:
    """A store with two tenants, `a` with everything in it that a memory can hold, `b` with a little."""

    def __init__(self, server):
        self.server = server
        self.owner = server.empty()
        self.database = self.owner.rsplit("/", 1)[1]
        self.names = [f"{name}_{self.database}" for name in "ab"]
        passwords = dict(zip(self.names, ("a's \\word", "word/b"), strict=True))
        self.report = migrate(self.owner, self.names, passwords)
        self.a, self.b = (server.url(name, passwords[name], self.database) for name in self.names)
        self.admin = server.connect(server.url(database=self.database))
        with Memory.open(self.a, namespace="site") as memory:
            memory.add(
                Episode("t", [Step(SECRET, "go", 1.0, prior={"go": -0.1, "stay": -2.0})], "a1", final_state="end")
            )
            memory.feedback("a1", 0.5)
            memory.quarantine(Selection(subject="nobody"), reason="r")
            memory.note("a1", "plan", {"text": "a plan of a"}, author="a")
            memory.record_copy("export", "/a")
            self.hash = memory.verify().hash
            self.id = memory.session.namespace_id
            self.a_schema = memory.session.store.schema
        with Memory.open(self.b, namespace="site") as memory:
            memory.add(Episode("t", [Step("a page of b", "go", 1.0)], "b1"))
            self.b_id = memory.session.namespace_id
            self.b_schema = memory.session.store.schema
        self.before = self.everything()

    def everything(self):
        """What is stored for a, as the superuser sees it."""
        return {
            table: self.admin.execute(
                f"SELECT to_jsonb(t) FROM seasoned.{table} AS t "
                f"WHERE {'id' if table == 'namespace' else 'namespace_id'} = {self.id} ORDER BY to_jsonb(t)::text"
            ).fetchall()
            for table in ALL
        }


@pytest.fixture(scope="module")
def site(postgres):  # noqa: F811
    return Site(postgres)


@pytest.fixture
def b(site):
    """What b has: a plain connection. Afterwards nothing of a's has changed."""
    connection = site.server.connect(site.b)
    connection.execute(f"SET search_path = {site.b_schema}, pg_temp")
    connection.execute("SET lock_timeout = '2s'")
    yield connection
    connection.close()
    assert site.everything() == site.before
    with Memory.open(site.a, namespace="site") as memory:
        assert memory.verify().hash == site.hash


def test_admin_reads_rows_of_every_table(site):
    assert all(site.before[table] for table in ALL)


def test_each_tenant_passes_the_memory_checker(site):
    for url in (site.a, site.b):
        check_memory(lambda name, url=url: Memory.open(url, namespace=name, gamma=0.5))
    site.before = site.everything()


def test_tenants_may_have_namespaces_of_the_same_name(site):
    with Memory.open(site.a, namespace="site") as one, Memory.open(site.b, namespace="site") as other:
        assert [e.id for e in one.episodes()] == ["a1"]
        assert [e.id for e in other.episodes()] == ["b1"]
    assert set(Memory.namespaces(site.owner)) == set()
    with pytest.raises(NotFoundError):
        Memory.open(site.owner, namespace="site", create=False)


# ------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("table", ALL)
def test_tenant_cannot_read_rows_of_another(site, b, table):
    key = "id" if table == "namespace" else "namespace_id"
    assert b.execute(f"SELECT count(*) FROM {table} WHERE {key} = %s", (site.id,)).fetchone() == (0,)
    rows_json = b.execute(f"SELECT coalesce(json_agg(t), '[]')::text FROM {table} AS t").fetchone()[0]
    assert str(site.id) not in rows_json and SECRET not in rows_json
    for schema in ("seasoned", site.a_schema):
        for statement in (
            "SELECT FROM {}",
            "TABLE {}",
            "COPY {} TO STDOUT",
            "SELECT FROM {} FOR UPDATE",
            "EXPLAIN SELECT FROM {}",
            "LOCK TABLE {} IN ACCESS SHARE MODE",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied for"), b.transaction():
                b.execute(statement.format(f"{schema}.{table}"))


READ = {
    "row_security off": ["SET row_security = off", "SELECT text FROM state"],
    "the owner's role": ["SET ROLE {owner}"],
    "a's role": ["SET ROLE {a}"],
    "a superuser's role": ["SET ROLE postgres"],
    "a's session": ["SET SESSION AUTHORIZATION {a}"],
    "a role that may read everything": ["GRANT pg_read_all_data TO CURRENT_USER"],
    "membership in a": ["GRANT {a} TO CURRENT_USER"],
    "a right of one's own": ["ALTER ROLE CURRENT_USER BYPASSRLS"],
    "becoming superuser": ["ALTER ROLE CURRENT_USER SUPERUSER"],
    "a's password": ["ALTER ROLE {a} PASSWORD 'mine'"],
    "a role of one's own": ["CREATE ROLE henchman BYPASSRLS"],
    "statistics": ["SELECT * FROM pg_statistic"],
    "passwords": ["SELECT * FROM pg_authid"],
    "the server's files": ["SELECT pg_read_file('PG_VERSION')"],
    "a file of the server": ["COPY state TO '/tmp/out'"],
    "a program on the server": ["COPY state TO PROGRAM 'cat'"],
}


@pytest.mark.parametrize("statements", READ.values(), ids=READ)
def test_tenant_cannot_bypass_the_policy(site, b, statements):
    names = {"owner": site.owner.split("/")[2].split(":")[0], "a": site.names[0]}
    *first, last = [s.format(**{k: f'"{v}"' for k, v in names.items()}) for s in statements]
    for statement in first:
        b.execute(statement)
    with pytest.raises(psycopg.Error, match=r"permission denied|must be|cannot|would be affected|[Oo]nly roles with"):
        b.execute(last).fetchall()


def test_policy_binds_each_table_to_its_tenant_even_with_rights_on_it(site, b):
    """The second line: a right that an administrator gives by mistake shows no row."""
    site.admin.execute(f'GRANT USAGE ON SCHEMA {site.a_schema} TO "{site.names[1]}"')
    for table in ALL:
        for name in (f"{site.a_schema}.{table}", f"seasoned.{table}"):
            site.admin.execute(f'GRANT ALL ON {name} TO "{site.names[1]}"')
            n_own = len(b.execute(f"SELECT FROM {table}").fetchall()) if name.startswith("seasoned.") else 0
            assert b.execute(f"SELECT count(*) FROM {name}").fetchone() == (n_own,)
            site.admin.execute(f'REVOKE ALL ON {name} FROM "{site.names[1]}"')
    site.admin.execute(f'REVOKE ALL ON SCHEMA {site.a_schema} FROM "{site.names[1]}"')


def test_session_settings_do_not_change_the_tenant(site, b):
    for setting in ("role", "session_authorization"):
        with pytest.raises(psycopg.Error):
            b.execute(f"SELECT set_config('{setting}', %s, false)", (site.names[0],))
    b.execute("SELECT set_config('seasoned.tenant', %s, false)", (site.names[0],))
    b.execute(sql.SQL("SET application_name = {}").format(site.names[0]))
    assert b.execute("SELECT count(*) FROM state WHERE namespace_id = %s", (site.id,)).fetchone() == (0,)
    b.execute(f"SET search_path = {site.a_schema}")
    with pytest.raises(psycopg.Error, match=r"does not exist|permission denied"):
        b.execute("SELECT count(*) FROM state")


def test_conditions_of_a_tenant_are_not_evaluated_on_rows_of_another(site, b):
    """Neither an error that depends on a row, nor a function that tells what it saw."""
    b.execute("SELECT count(*) FROM state WHERE 1 / (length(text) - %s) > 0", (len(SECRET),)).fetchone()
    b.execute("SELECT count(*) FROM step WHERE 1 / (reward - 7.0) > 0").fetchone()
    b.execute(
        "CREATE FUNCTION pg_temp.spy(text) RETURNS boolean COST 0.0000001 LANGUAGE plpgsql AS "
        "'BEGIN RAISE NOTICE ''saw %', $1; RETURN true; END'".replace("saw %'", "saw %''")
    )
    seen = []
    b.add_notice_handler(lambda notice: seen.append(notice.message_primary))
    b.execute("SELECT count(*) FROM state WHERE pg_temp.spy(text)").fetchone()
    assert seen and all(SECRET not in notice_text for notice_text in seen)
    with pytest.raises(psycopg.Error, match=r"superuser"):
        b.execute("ALTER FUNCTION pg_temp.spy(text) LEAKPROOF")
    b.execute("CREATE TEMP VIEW mine AS SELECT * FROM state")
    assert SECRET not in str(b.execute("SELECT * FROM mine").fetchall())


def test_planner_statistics_reveal_no_content(site, b):
    site.admin.execute("ANALYZE")
    content = {(table.name, column.name) for table in TABLES for column in table.columns if column.is_content}
    statistics = site.admin.execute(
        "SELECT tablename, attname FROM pg_stats WHERE schemaname LIKE 'seasoned%'"
    ).fetchall()
    assert statistics and not content & set(statistics)
    assert not site.admin.execute(
        "SELECT FROM pg_stats WHERE schemaname = 'seasoned' AND tablename = 'tenant' AND attname = 'role'"
    ).fetchall()
    assert b.execute(
        "SELECT count(*) FROM pg_stats WHERE schemaname LIKE 'seasoned%' AND tablename <> 'meta'"
    ).fetchone() == (0,)

    def expected(text):
        plan = b.execute(f"EXPLAIN (FORMAT JSON) SELECT FROM state WHERE text = '{text}'").fetchone()[0]
        return (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]["Plan Rows"]

    assert expected(SECRET) == expected("nowhere to be found")


def test_tenant_reads_only_its_own_name_and_changes_none(site, b):
    assert b.execute("SELECT role FROM seasoned.tenant").fetchall() == [(site.names[1],)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        b.execute("UPDATE seasoned.tenant SET role = 'c'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        b.execute("INSERT INTO seasoned.tenant (role) VALUES ('c')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        b.execute("DELETE FROM seasoned.tenant")


# ------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("table", ALL)
def test_tenant_cannot_change_or_delete_rows_of_another(site, b, table):
    key = "id" if table == "namespace" else "namespace_id"
    column = "gamma" if table == "namespace" else COLUMNS[table][-1]
    with b.transaction(force_rollback=True):
        assert b.execute(f"UPDATE {table} SET {column} = {column} WHERE {key} = %s", (site.id,)).rowcount == 0
        assert b.execute(f"DELETE FROM {table} WHERE {key} = %s", (site.id,)).rowcount == 0
        b.execute(f"DELETE FROM {table}")  # all that it sees, which is its own
        assert site.everything() == site.before
    for statement in (
        "TRUNCATE {}",
        "DROP TABLE {}",
        "ALTER TABLE {} DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE {} OWNER TO CURRENT_USER",
        "DROP POLICY own ON {}",
        "CREATE POLICY mine ON {} USING (true)",
        "ALTER POLICY own ON {} USING (true)",
        "CREATE TRIGGER t BEFORE INSERT ON {} EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE RULE r AS ON INSERT TO {} DO ALSO NOTHING",
        "GRANT SELECT ON {} TO PUBLIC",
        "CREATE INDEX i ON {} ((1))",
        "CREATE TABLE public.child () INHERITS ({})",
        "VACUUM FULL {}",
        "REINDEX TABLE {}",
        "CLUSTER {} USING x",
        f"CREATE TABLE public.r (x bigint REFERENCES {{}} ({'id' if table == 'namespace' else 'namespace_id'}))",
    ):
        if statement.startswith(("VACUUM", "GRANT")):
            b.execute(statement.format(table))  # PostgreSQL only warns, and does nothing
            continue
        for name in (table, f"seasoned.{table}", f"{site.a_schema}.{table}"):
            with pytest.raises(psycopg.Error, match=r"permission denied|must be owner"):
                b.execute(statement.format(name))
                pytest.fail(statement)
    for schema in ("seasoned", site.a_schema):
        for statement in ("UPDATE {} SET {} = {}", "DELETE FROM {}", "INSERT INTO {} SELECT"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied for"):
                b.execute(statement.format(f"{schema}.{table}", column, column))
        rights = "SELECT has_table_privilege('public', %s, 'SELECT, INSERT, UPDATE, DELETE')"
        assert site.admin.execute(rights, (f"{schema}.{table}",)).fetchone() == (False,)


@pytest.mark.parametrize("table", [name for name in ALL if name != "namespace"])
def test_tenant_cannot_insert_rows_for_another_or_detect_its_keys(site, b, table):
    """A key that a has and one that it has not give one and the same answer."""
    declared = next(one for one in TABLES if one.name == table)
    names = [column.name for column in declared.columns if column.name != "visit_ordinal"]
    rows = [dict(row[0]) for row in site.before[table]]
    taken = {**{k: v for k, v in rows[0].items() if k in names}, "namespace_id": site.id}
    numeric = next(
        c.name for c in reversed(declared.columns) if c.name in declared.primary and c.kind in ("integer", "real")
    )
    free = {**taken, numeric: 987654, "digest": "\\x1234", "id": 987655 if isinstance(taken.get("id"), int) else "free"}
    answers = set()
    for row in (taken, {name: value for name, value in free.items() if name in names}):
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) {}")
        for conflict in ("", "ON CONFLICT DO NOTHING"):
            with pytest.raises(psycopg.errors.CheckViolation) as caught:
                b.execute(
                    statement.format(
                        sql.Identifier(table),
                        sql.SQL(", ").join(map(sql.Identifier, row)),
                        sql.SQL(", ").join(sql.Literal(value) for value in row.values()),
                        sql.SQL(conflict),
                    )
                )
            answers.add(caught.value.diag.message_primary)
    assert answers == {f'new row for relation "{table}" violates partition constraint'}
    copying = f"COPY {table} ({', '.join(taken)}) FROM STDIN"
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=r"row-level"), b.cursor().copy(copying) as copy:
        copy.write_row(list(taken.values()))
    moved = b.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    if moved:
        with pytest.raises(psycopg.errors.CheckViolation):
            b.execute(f"UPDATE {table} SET namespace_id = %s", (site.id,))


def test_tenant_cannot_take_a_namespace_of_another(site, b):
    own = "gamma = 0.1 WHERE"
    assert b.execute(f"UPDATE namespace SET {own} id = %s", (site.id,)).rowcount == 0
    for statement in (
        "UPDATE namespace SET tenant = %(a)s",
        "UPDATE namespace SET id = %(id)s",
        "UPDATE namespace SET id = id + 1",
        "INSERT INTO namespace (id, name, encoder, gamma, created_at) VALUES (%(id)s, 'x', 'e', 1, 1)",
        "INSERT INTO namespace (id, name, encoder, gamma, created_at) VALUES (%(id)s + 7, 'x', 'e', 1, 1)",
        "INSERT INTO namespace (name, encoder, gamma, created_at, tenant) VALUES ('site', 'e', 1, 1, %(a)s)",
        "INSERT INTO namespace (name, encoder, gamma, created_at, tenant) VALUES ('new', 'e', 1, 1, %(a)s)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied"):
            b.execute(statement, {"a": site.names[0], "id": site.id})


def test_tenant_cannot_reset_sequences_or_schema(site, b):
    for statement in (
        "SELECT setval('namespace_number', 1)",
        "ALTER SEQUENCE namespace_number RESTART",
        "SELECT last_value FROM namespace_number",
        "DROP SEQUENCE namespace_number",
        f"SELECT nextval('{site.a_schema}.namespace_number')",
        f"CREATE FUNCTION {site.b_schema}.length(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        f"DROP SCHEMA {site.b_schema} CASCADE",
        "UPDATE seasoned.meta SET version = 1",
        "DELETE FROM seasoned.meta",
        "DROP SCHEMA seasoned CASCADE",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            b.execute(statement)


def test_tenant_cannot_shadow_objects_of_another(site, b):
    for statement in (
        "CREATE TABLE seasoned.trap (x text)",
        "CREATE TABLE trap (x text)",
        f"CREATE TABLE {site.a_schema}.trap (x text)",
        "CREATE VIEW seasoned.trap AS SELECT 1",
        "CREATE FUNCTION seasoned.length(text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE pg_catalog.state (x text)",
        "CREATE SCHEMA planted",
        "CREATE OPERATOR seasoned.= (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)",
    ):
        with pytest.raises(psycopg.Error, match=r"permission denied"):
            b.execute(statement)
    # Whatever lies in `public`, and in b's own temporary schema, is not looked at.
    site.admin.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    b.execute("CREATE TABLE public.episode (x text)")
    b.execute("CREATE FUNCTION public.count(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 666::bigint'")
    b.execute(
        "CREATE FUNCTION public.take() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER "
        f"AS 'SELECT text FROM {site.b_schema}.state'"
    )
    with Memory.open(site.a, namespace="site") as memory:
        assert len(memory) == 1 and memory.stats().episodes == 1
        with site.server.connect(site.a) as a:  # even if a is lured into it, b's function shows b's rows
            assert SECRET not in str(a.execute("SELECT public.take()").fetchall())
    site.admin.execute("DROP TABLE public.episode")
    site.admin.execute("DROP FUNCTION public.count(bigint), public.take()")


def test_tenant_cannot_block_a_writer_of_another(site, b):
    with b.transaction():
        b.execute("SELECT * FROM namespace FOR UPDATE").fetchall()
        b.execute("SELECT * FROM namespace WHERE id = %s FOR UPDATE", (site.id,)).fetchall()
        with Memory.open(site.a, namespace="other") as memory:
            memory.add(Episode("t", [Step("p", "go")], "x"))
    with Memory.open(site.a, namespace="site") as memory, memory.session.store.transaction(memory.session.namespace_id):
        memory.session.store.execute("SELECT 1").fetchone()
        assert b.execute("UPDATE namespace SET gamma = gamma").rowcount >= 1  # and waits for none
    site.before = site.everything()  # the revision moved


def test_only_superusers_bypass_the_policies(site):
    owner = site.server.connect(site.owner)
    for table in ALL:
        for schema in ("seasoned", site.a_schema, site.b_schema):
            assert owner.execute(f"SELECT count(*) FROM {schema}.{table}").fetchone() == (0,)


# ------------------------------------------------------------------------------- compaction and sizes


def files_of(site, schema):
    """The bytes in the files of all tables and indexes of a schema."""
    site.admin.execute("CHECKPOINT")
    paths = site.admin.execute(
        "SELECT pg_relation_filepath(c) FROM (SELECT oid FROM pg_class WHERE relnamespace = %s::regnamespace "
        "AND relkind IN ('r', 'i') UNION SELECT reltoastrelid FROM pg_class WHERE relnamespace = %s::regnamespace "
        "AND reltoastrelid <> 0) AS t (c)",
        (schema, schema),
    ).fetchall()
    folder = site.server.folder / "data"
    return b"".join((folder / path).read_bytes() for (path,) in paths)


def test_compaction_by_a_tenant_says_that_only_the_owner_can_rewrite_the_tables(site):
    owner = site.owner.split("/")[2].split(":")[0]
    with Memory.open(site.b, namespace="short") as memory:
        memory.add(Episode("t", [Step("a page about ann", "go", 1.0)], "gone", subject="ann"))
        memory.add(Episode("t", [Step("a page that stays", "go", 1.0)], "stays"))
        assert len(memory) == 2
        memory.erase("ann")
        done = memory.compact()
        assert not done.rewritten
        assert owner in done.remains and "seasoned memory compact" in done.remains
        assert b"about ann" in files_of(site, site.b_schema)
        before = memory.verify().hash
        with Memory.open(site.owner) as own:
            assert own.compact().rewritten
        found = files_of(site, site.b_schema)
        assert b"about ann" not in found and b"that stays" in found
        assert memory.verify().hash == before


def test_table_that_a_tenant_holds_is_named_and_the_others_are_rewritten(site):
    files = (
        "SELECT oid::regclass::text, pg_relation_filenode(oid) FROM pg_class "
        "WHERE relnamespace::regnamespace::text ~ '^seasoned_' AND relkind = 'r'"
    )
    before = dict(site.admin.execute(files).fetchall())
    held = f"{site.a_schema}.token"
    with site.server.connect(site.a) as holder, Memory.open(site.owner) as owner, holder.transaction():
        holder.execute(f"LOCK TABLE {held} IN ACCESS EXCLUSIVE MODE")
        assert owner.stats().size_bytes > 0
        with wire.connect(wire.parse_url(site.owner), read_only=False) as connection:
            done = rewrite_tables(connection, wait_s=0.1)
        process = f"process {holder.info.backend_pid} of role '{site.names[0]}'"
        assert done == TableRewriting({held: [process]}, [process])
    after = dict(site.admin.execute(files).fetchall())
    assert [table for table in after if after[table] == before[table]] == [held]


def erased(memory, text, subject):
    memory.add(Episode("t", [Step(text, "go", 1.0)], subject=subject))
    assert len(memory) == 1
    return memory.erase(subject)


def test_erasure_of_a_tenant_is_unfinished_until_the_owner_rewrote_its_tables(site):
    with Memory.open(site.b, namespace="marked") as memory, Memory.open(site.owner) as owner:
        assert erased(memory, "a page about kay", "kay").episodes
        again = memory.erase("kay")  # the bytes are still there
        assert (again.episodes, again.rewriting.rewritten) == ((), False)
        assert "seasoned memory compact" in again.rewriting.remains
        with site.server.connect(site.b) as holder, holder.transaction():
            holder.execute(f"LOCK TABLE {site.b_schema}.note IN ACCESS SHARE MODE")
            with wire.connect(wire.parse_url(site.owner), read_only=False) as connection:
                assert list(rewrite_tables(connection, wait_s=0.1).busy) == [f"{site.b_schema}.note"]
        assert memory.erase("kay").episodes == ()
        assert owner.compact().rewritten
        with pytest.raises(NotFoundError):
            memory.erase("kay")
        assert b"about kay" not in files_of(site, site.b_schema)
    with site.server.connect(site.owner) as owner:  # its tenants' rows are as hidden from it as before
        assert owner.execute(f"SELECT count(*) FROM {site.b_schema}.namespace").fetchone() == (0,)


def test_rows_that_an_old_snapshot_may_read_are_not_reported_as_overwritten(site):
    with Memory.open(site.b, namespace="snapshot") as memory:
        with site.server.connect(site.a) as reader, reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT 1 FROM pg_class").fetchone()  # holds no lock on a table of b
            erased(memory, "a page about lou", "lou")
            with wire.connect(wire.parse_url(site.owner), read_only=False) as connection:
                done = rewrite_tables(connection, wait_s=0.1)
            assert done == TableRewriting({}, [f"process {reader.info.backend_pid} of role '{site.names[0]}'"])
            assert b"about lou" in files_of(site, site.b_schema)
            assert memory.erase("lou").episodes == ()
        with wire.connect(wire.parse_url(site.owner), read_only=False) as connection:
            assert rewrite_tables(connection) == TableRewriting()
        with pytest.raises(NotFoundError):
            memory.erase("lou")
        assert b"about lou" not in files_of(site, site.b_schema)


@pytest.mark.slow
def test_lock_of_a_tenant_stops_neither_compaction_nor_stats_of_the_owner(site):
    with Memory.open(site.b, namespace="held") as memory:
        memory.add(Episode("t", [Step("a page about joe", "go", 1.0)], "gone", subject="joe"))
        assert len(memory) == 1
        memory.erase("joe")
    with site.server.connect(site.a) as holder, Memory.open(site.owner) as owner:
        with holder.transaction():
            holder.execute(f"LOCK TABLE {site.a_schema}.token IN ACCESS EXCLUSIVE MODE")
            assert owner.stats().size_bytes > 0
            done = owner.compact()
            assert not done.rewritten
            assert f"{site.a_schema}.token" in done.remains
            assert site.b_schema + "." not in done.remains
            assert b"about joe" not in files_of(site, site.b_schema)
        assert owner.compact().rewritten


def test_size_is_that_of_the_own_tables(site):
    with Memory.open(site.owner) as memory:
        before = memory.stats().size_bytes
        with Memory.open(site.a, namespace="large") as other:
            other.add(Episode("t", [Step(f"page {n} " + "x" * 5_000, "go") for n in range(100)]))
            assert len(other) == 100
        assert 0 < memory.stats().size_bytes == before
    site.before = site.everything()


# ------------------------------------------------------------------------------- making tenants


def test_second_migration_changes_nothing(site):
    catalogue = (
        "SELECT relname::text, relacl::text, relrowsecurity, relforcerowsecurity FROM pg_class "
        "WHERE relnamespace::regnamespace::text LIKE 'seasoned%' ORDER BY relnamespace::regnamespace::text, 1"
    )
    before = site.admin.execute(catalogue).fetchall()
    assert migrate(site.owner, site.names) == MigrationReport(site.report.path, POSTGRES_VERSION, (), tuple(site.names))
    assert migrate(site.owner).made == ()
    assert site.admin.execute(catalogue).fetchall() == before
    with Memory.open(site.a, namespace="site") as memory:
        assert memory.verify().hash == site.hash


def test_tenant_name_may_contain_any_characters(site):
    name = f'x"; DROP TABLE seasoned.state; --{site.database}'
    migrate(site.owner, [name], {name: "pass'\"word"})
    check_memory(lambda ns: Memory.open(site.server.url(name, "pass'\"word", site.database), namespace=ns, gamma=0.5))
    migrate(site.owner, [name], {name: "new"})
    with pytest.raises(ConfigError):
        Memory.open(site.server.url(name, "pass'\"word", site.database))
    Memory.open(site.server.url(name, "new", site.database)).close()


REFUSED = [
    ("ab", None, InputError, "list of names"),
    ([""], None, InputError, "1 to 63 bytes"),
    (["x" * 64], None, InputError, "1 to 63 bytes"),
    (["é" * 32], None, InputError, "1 to 63 bytes"),
    (["a\0"], None, InputError, "none of them NUL"),
    ([7], None, InputError, "1 to 63 bytes"),
    (["pg_monitor"], None, InputError, "uses this name"),
    (["public"], None, InputError, "uses this name"),
    ([FORMER_GROUP], None, InputError, "uses this name"),
    (["c"], {"d": "x"}, InputError, "belongs to a tenant"),
    (["c"], {"c": ""}, InputError, "not empty"),
    (["c"], {"c": None}, InputError, "not empty"),
    (["postgres"], None, ConfigError, "superuser"),
]


@pytest.mark.parametrize(("tenants", "passwords", "error", "message"), REFUSED)
def test_invalid_tenant_is_refused_and_nothing_created(site, tenants, passwords, error, message):
    roles = site.admin.execute("SELECT rolname FROM pg_roles ORDER BY 1").fetchall()
    with pytest.raises(error, match=message):
        migrate(site.owner, tenants, passwords)
    with pytest.raises(error, match=message):
        migrate(site.server.url(database=site.database), tenants, passwords)
    assert site.admin.execute("SELECT rolname FROM pg_roles ORDER BY 1").fetchall() == roles


def test_owner_and_its_members_are_refused_as_tenants(site):
    owner = site.owner.split("/")[2].split(":")[0]
    member = f"member_{site.database}"
    site.admin.execute(f"CREATE ROLE {member} LOGIN")
    site.admin.execute(f"GRANT {owner} TO {member}")
    for name in (owner, member):
        with pytest.raises(ConfigError, match=r"is or may become.*a role of its own"):
            migrate(site.owner, [name])


def test_only_the_owner_creates_tenants(site):
    with pytest.raises(StoreError, match=r"the tables belong to.*Connect as that role"):
        migrate(site.b, ["c"])


def test_unregistered_role_is_reported_with_the_command(site):
    name = f"loose_{site.database}"
    site.admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    site.admin.execute(f"GRANT CONNECT ON DATABASE {site.database} TO {name}")
    with pytest.raises(StoreError, match=r"may not use the schema.*seasoned memory migrate"):
        Memory.open(site.server.url(name, "x", site.database))
    site.admin.execute(f"GRANT USAGE ON SCHEMA seasoned TO {name}")
    site.admin.execute(f"GRANT SELECT ON seasoned.meta, seasoned.tenant TO {name}")
    with pytest.raises(StoreError, match=r"no tenant of this store.*seasoned memory migrate"):
        Memory.open(site.server.url(name, "x", site.database))
