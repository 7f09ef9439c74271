"""A PostgreSQL store that an earlier release wrote is migrated with its tenants, and answers as it did."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import psycopg
import pytest
from postgres_server import PASSWORD, postgres, server  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import IntegrityError, StoreBusyError, StoreError
from seasoned.memory.stores.postgres.schema import FORMER_GROUP, POSTGRES_VERSION
from seasoned.memory.stores.postgres.tenants import migrate

STORES = Path(__file__).parent
EARLIER = range(2, POSTGRES_VERSION)
ROLES = ("owner", "ann", "bob")


class FormerStore:
    """A database that the code of that time wrote, dumped by `pg_dump --inserts`; the roles have other names."""

    def __init__(self, server, version):  # noqa: F811
        self.server = server
        self.owner = server.empty()
        self.database = self.owner.rsplit("/", 1)[1]
        self.names = {role: f"{role}_{self.database}" for role in ROLES}
        self.urls = {role: server.url(self.names[role], PASSWORD, self.database) for role in ROLES}
        self.admin = server.connect(server.url(database=self.database))
        if not self.admin.execute("SELECT FROM pg_roles WHERE rolname = %s", (FORMER_GROUP,)).fetchall():
            self.admin.execute(f"CREATE ROLE {FORMER_GROUP}")
        for role in ("ann", "bob"):
            self.admin.execute(
                f"CREATE ROLE {self.names[role]} LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'"
            )
            self.admin.execute(f"GRANT {FORMER_GROUP} TO {self.names[role]}")
        dump = (STORES / f"postgres_{version}.sql").read_text(encoding="utf-8")
        for role, name in self.names.items():
            dump = dump.replace(f"fixture_{role}", name)
        with server.connect(server.url(database=self.database)) as connection:  # the dump changes its settings
            connection.execute(dump)
        self.recorded = json.loads((STORES / f"postgres_{version}.json").read_text(encoding="utf-8"))

    def version(self):
        return self.admin.execute("SELECT version FROM seasoned.meta").fetchone()[0]

    def tables(self):
        return self.admin.execute(
            "SELECT oid::regclass::text, reltuples FROM pg_class WHERE relnamespace::regnamespace::text ~ '^seasoned' "
            "ORDER BY 1"
        ).fetchall()

    def check_as_recorded(self):
        for role in ROLES:
            for name, expected in self.recorded[f"fixture_{role}"].items():
                with Memory.open(self.urls[role], namespace=name, create=False) as memory:
                    whole = memory.verify()
                    for field in ("hash", "episodes", "steps", "states", "distinct_states", "feedback"):
                        assert getattr(whole, field) == expected[field], field
                    assert memory.stats().gamma == expected["gamma"]
                    assert memory.session.store.problems() == []
                    for answer in expected["answers"]:
                        assert [
                            [
                                n.similarity,
                                n.experience.episode_id,
                                n.experience.step,
                                n.experience.return_,
                                n.experience.reward,
                            ]
                            for n in memory.search(answer["state"], 8, 0.1)
                        ] == answer["found"]


@pytest.mark.parametrize("version", EARLIER)
def test_migrated_store_gives_the_recorded_answers(postgres, version):  # noqa: F811
    store = FormerStore(postgres, version)
    for role in ("ann", "bob"):
        for options in ({}, {"read_only": True}):
            with pytest.raises(
                StoreError, match=rf"schema {version}: schema {POSTGRES_VERSION} is needed.*seasoned memory migrate"
            ):
                Memory.open(store.urls[role], namespace="site", **options)
    assert store.version() == version
    report = migrate(store.owner)
    assert (report.version, report.made, report.remarks) == (POSTGRES_VERSION, (), ())
    assert migrate(store.owner).version == POSTGRES_VERSION  # a second time
    store.check_as_recorded()
    rows = store.admin.execute("SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class").fetchall()
    assert {name for (name,) in rows if name.startswith("seasoned")} == {
        "seasoned",
        "seasoned_1",
        "seasoned_2",
        "seasoned_3",
    }
    for role, own, foreign in (("ann", 2, 3), ("bob", 3, 2)):
        with postgres.connect(store.urls[role]) as connection:
            assert connection.execute(f"SELECT count(*) FROM seasoned_{own}.episode").fetchone()[0] > 0
            for name in ("seasoned.episode", f"seasoned_{foreign}.episode", "seasoned_1.episode"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied"):
                    connection.execute(f"SELECT count(*) FROM {name}")


def test_limits_of_feedback_are_migrated_with_a_true_checksum(postgres):  # noqa: F811
    store = FormerStore(postgres, 5)
    store.admin.execute("""UPDATE seasoned.namespace SET feedback_limits = '{"max_weight":2.0}'""")
    migrate(store.owner)
    store.check_as_recorded()
    for role in ("ann", "bob"):
        for name in store.recorded[f"fixture_{role}"]:
            with Memory.open(store.urls[role], namespace=name, create=False) as memory:
                assert memory.feedback_limits().max_weight == 2.0


def test_store_of_a_tenant_whose_role_was_dropped_is_migrated(postgres):  # noqa: F811
    store = FormerStore(postgres, 4)
    bob = store.names["bob"]
    store.admin.execute(f"DROP ROLE {bob}")
    [remark] = migrate(store.owner).remarks
    assert bob in remark
    assert store.version() == POSTGRES_VERSION
    report = migrate(store.owner, [bob], {bob: PASSWORD})
    assert (report.made, report.remarks) == ((bob,), ())
    store.check_as_recorded()  # bob has its rows again


def test_first_opening_by_the_owner_migrates_and_warns_of_the_open_database(postgres):  # noqa: F811
    store = FormerStore(postgres, 4)
    with pytest.warns(UserWarning, match=r"every role of the server may connect.*seasoned memory migrate"):
        Memory.open(store.owner, namespace="own").close()
    store.check_as_recorded()
    migrate(store.owner)
    open_ = "SELECT has_database_privilege('public', current_database(), 'CONNECT')"
    assert store.admin.execute(open_).fetchone() == (False,)


def test_opening_by_a_superuser_migrates_for_the_owner(postgres):  # noqa: F811
    store = FormerStore(postgres, 3)
    with pytest.warns(UserWarning, match=r"superuser"):
        Memory.open(store.server.url(database=store.database)).close()
    owners = store.admin.execute(
        "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace::regnamespace::text ~ '^seasoned'"
    ).fetchall()
    assert owners == [(store.names["owner"],)]
    store.check_as_recorded()


def test_migrated_namespaces_keep_their_ids_and_new_ones_get_others(postgres):  # noqa: F811
    store = FormerStore(postgres, 4)
    ids = "SELECT id, tenant, name FROM seasoned.namespace ORDER BY id"
    before = store.admin.execute(ids).fetchall()
    migrate(store.owner, [f"late_{store.database}"])
    assert store.admin.execute(ids).fetchall() == before
    with Memory.open(store.urls["ann"], namespace="new") as memory:
        memory.add(Episode("t", [Step("s", "a", 1.0)]))
        assert memory.session.namespace_id not in {row[0] for row in before}
    numbers = dict(store.admin.execute("SELECT role, number FROM seasoned.tenant").fetchall())
    assert numbers[f"late_{store.database}"] == 4
    store.check_as_recorded()


def test_failed_migration_leaves_the_store_as_it_was(postgres):  # noqa: F811
    store = FormerStore(postgres, 4)
    store.admin.execute("INSERT INTO seasoned.copy VALUES (77, 1, 'export', '/nobody', 1.0)")
    before = store.tables()
    with pytest.raises(IntegrityError, match=r"1 rows of the table copy belong to no tenant"):
        migrate(store.owner)
    assert (store.version(), store.tables()) == (4, before)
    store.admin.execute("DELETE FROM seasoned.copy WHERE namespace_id = 77")
    store.admin.execute("CREATE VIEW public.report AS SELECT count(*) FROM seasoned.episode")
    with pytest.raises(StoreError, match=r"cannot drop table"):
        migrate(store.owner)
    assert (store.version(), store.tables()) == (4, before)
    store.admin.execute("DROP VIEW public.report")
    migrate(store.owner)
    store.check_as_recorded()


@pytest.mark.slow
def test_killed_migration_is_repeated(postgres):  # noqa: F811
    """The connection ends while the migration waits, at the lock and in the middle of its copying."""
    store = FormerStore(postgres, 4)
    before = store.tables()
    for table in ("seasoned.episode", "seasoned.tenant"):
        failed = []

        def work(failed=failed):
            try:
                migrate(store.owner)
            except StoreError as error:
                failed.append(error)

        with store.admin.transaction():
            store.admin.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE")
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            blocked = (
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
                "AND pid <> pg_backend_pid()"
            )
            while not (rows := store.admin.execute(blocked).fetchall()):
                store.admin.execute("SELECT pg_stat_clear_snapshot()")
                assert thread.is_alive()
            store.admin.execute("SELECT pg_terminate_backend(%s, 5000)", rows[0])
        thread.join(30)
        assert len(failed) == 1
        assert (store.version(), store.tables()) == (4, before)
    migrate(store.owner)
    store.check_as_recorded()


@pytest.mark.slow
def test_two_owners_at_once_migrate_once(postgres):  # noqa: F811
    store = FormerStore(postgres, 3)
    errors = []

    def work():
        try:
            migrate(store.owner)
        except StoreBusyError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    store.check_as_recorded()


@pytest.mark.slow
def test_former_group_is_dropped_after_the_last_database_that_needs_it(postgres):  # noqa: F811
    one, other = FormerStore(postgres, 4), FormerStore(postgres, 4)
    exists = "SELECT count(*) FROM pg_roles WHERE rolname = %s"
    with postgres.connect() as admin:
        superuser = [postgres.url(database=store.database) for store in (one, other)]
        migrate(superuser[0])
        assert admin.execute(exists, (FORMER_GROUP,)).fetchone() == (1,)
        migrate(superuser[1])
        assert admin.execute(exists, (FORMER_GROUP,)).fetchone() == (0,)
    one.check_as_recorded()
    other.check_as_recorded()
