"""A store that an earlier release wrote opens, says what it said, and works; whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from dying import dying_at, ended, forked

from seasoned import Budget, Episode, Memory, Selection, Step
from seasoned.build import open_memory
from seasoned.cli.main import cli
from seasoned.errors import NewerStoreError, ReadOnlyStoreError
from seasoned.memory.stores.sqlite_schema import SCHEMA_VERSION
from seasoned.types import EvidenceQuery

STORES = Path(__file__).parent
EARLIER = range(1, SCHEMA_VERSION)


def recorded(version):
    """What the code of that time said, by namespace: its hash, its numbers, its answers."""
    return json.loads((STORES / f"schema_{version}.json").read_text(encoding="utf-8"))


def old_store(path, version=1):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((STORES / f"schema_{version}.sql").read_text(encoding="utf-8"))
    return path


def version_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def tables_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


def check_as_recorded(path, version):
    for name, expected in recorded(version).items():
        with Memory.open(path, namespace=name, create=False) as memory:
            whole = memory.verify()
            for field in ("hash", "episodes", "steps", "states", "distinct_states", "feedback", "views"):
                assert getattr(whole, field) == expected[field], field
            stats = memory.stats()
            for field in ("aborted", "actions", "mean_episode_reward", "gamma"):
                assert getattr(stats, field) == expected[field], field
            for answer in expected["answers"]:
                neighbors = [
                    [
                        n.similarity,
                        n.experience.episode_id,
                        n.experience.step,
                        n.experience.return_,
                        n.experience.reward,
                    ]
                    for n in memory.search(answer["state"], 8, 0.2)
                ]
                assert neighbors == answer["found"]
                e = memory.evidence(EvidenceQuery(answer["state"], k=4, unit=answer["unit"], threshold=0.2))
                assert (list(e.actions), e.spread) == (answer["actions"], answer["spread"])
                for sums in ("counts", "weights", "totals", "squares"):
                    assert getattr(e, sums).tolist() == answer[sums]


@pytest.mark.parametrize("version", EARLIER)
def test_migrated_store_has_the_tables_of_a_new_one(tmp_path, version):
    migrated, new = old_store(tmp_path / "agent.db", version), tmp_path / "new.db"
    for path in (migrated, new):
        Memory.open(path).close()
    assert tables_of(migrated) == tables_of(new)
    assert version_of(migrated) == version_of(new) == SCHEMA_VERSION


@pytest.mark.parametrize("version", EARLIER)
def test_migrated_store_gives_the_recorded_answers(tmp_path, version):
    path = old_store(tmp_path / "agent.db", version)
    assert version_of(path) == version
    check_as_recorded(path, version)
    assert version_of(path) == SCHEMA_VERSION
    check_as_recorded(path, version)  # opened again


@pytest.mark.parametrize("version", EARLIER)
def test_recorded_store_has_rows_of_every_kind(tmp_path, version):
    """The fixture itself: it holds what could go wrong."""
    with closing(sqlite3.connect(old_store(tmp_path / "agent.db", version))) as c:

        def one(sql):
            return c.execute(sql).fetchone()[0]

        assert one("SELECT count(*) FROM namespace") == 2
        assert one("SELECT count(*) FROM state WHERE namespace_id = 1") > 500
        assert one("SELECT count(*) FROM state") > one("SELECT count(*) FROM feature_set")
        assert one("SELECT count(*) FROM feedback WHERE superseded_by IS NOT NULL") > 0
        assert one("SELECT count(*) FROM feedback WHERE revoked_at IS NOT NULL AND superseded_by IS NULL") > 0
        assert one("SELECT count(*) FROM feedback WHERE revoked_at IS NULL") > 0
        assert one("SELECT count(*) FROM prior") > 0
        assert one("SELECT count(*) FROM episode WHERE ending = 'aborted'") > 0
        assert one("SELECT max(n) FROM (SELECT count(*) AS n FROM view GROUP BY namespace_id)") == 2
        assert one("SELECT count(*) FROM action WHERE id <> key_id") > 0
        assert one("SELECT count(*) FROM token WHERE length(CAST(text AS BLOB)) > length(text)") > 0


@pytest.mark.parametrize("version", EARLIER)
def test_a_migrated_store_has_the_schema_of_a_new_one(tmp_path, version):
    path = old_store(tmp_path / "old.db", version)
    Memory.open(path, namespace="shop", create=False).close()
    Memory.open(tmp_path / "new.db").close()

    def columns(path):
        with closing(sqlite3.connect(path)) as connection:
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()]
            return {name: connection.execute(f"PRAGMA table_xinfo({name})").fetchall() for name in names}

    assert columns(path) == columns(tmp_path / "new.db")


def test_migrated_store_supports_every_operation(tmp_path):
    path = old_store(tmp_path / "agent.db")
    with Memory.open(path, namespace="shop", create=False) as memory, Memory.open(path, namespace="shop") as other:
        before = memory.search("shop hub 1", 99, 0.2)
        id_ = memory.add(Episode("task 0", [Step("shop hub 1 neu", "CLICK(PAY)", 1.0)], subject="customer 1"))
        event = other.feedback(id_, 2.0, author="ann")
        assert other.search("shop hub 1 neu", 1)[0].experience.reward == 3.0
        # The new spelling joins the action that the old code numbered.
        assert (
            "CLICK(PAY)" not in memory.evidence(EvidenceQuery("shop hub 1", k=3, unit="states", threshold=0.2)).actions
        )
        memory.verify()
        other.revoke(event)
        old_event = next(e for e in memory.events() if e.revoked_at is None)
        memory.revoke(old_event.id)
        memory.verify()
        held = other.quarantine(Selection(since=0.0), "a look at everything")
        assert memory.search("shop hub 1") == []
        memory.verify()
        memory.release(held)
        assert [n for n in memory.search("shop hub 1", 100, 0.2) if n.experience.episode_id != id_] == before
        memory.verify()
        assert id_ in memory.erase("customer 1").episodes
        memory.verify()
        memory.erase("ann")  # an author only
        memory.verify()
        memory.prune(Budget(steps=50))
        assert other.verify().steps <= 50
        memory.compact()
        with Memory.open(":memory:", namespace="shop", gamma=0.5) as fresh:
            fresh.import_lines(list(other.export()))
            assert fresh.verify().hash == memory.verify().hash
    with Memory.open(path, namespace="Zürich 🙂", create=False) as untouched:
        assert untouched.verify().hash == recorded(1)["Zürich 🙂"]["hash"]


def test_export_of_a_migrated_store_is_complete(tmp_path):
    path = old_store(tmp_path / "agent.db")
    for name, expected in recorded(1).items():
        with Memory.open(path, namespace=name, create=False) as memory, Memory.open(":memory:") as fresh:
            fresh.import_lines(list(memory.export()))
            assert fresh.verify().hash == expected["hash"]


def test_read_only_opening_of_an_older_schema_names_the_command(tmp_path):
    path = old_store(tmp_path / "agent.db")
    before = path.read_bytes()
    for attempt in (lambda: Memory.open(path, namespace="shop", read_only=True), lambda: Memory.namespaces(path)):
        with pytest.raises(ReadOnlyStoreError, match=r"schema 1: .*\. Run `seasoned memory migrate` on it"):
            attempt()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["agent.db"]


def test_command_line_migrates_an_older_store(tmp_path):
    path = old_store(tmp_path / "agent.db")

    def seasoned(*args):
        return CliRunner().invoke(cli, ["memory", args[0], str(path), *args[1:]])

    before = path.read_bytes()
    for command in (["stats", "-n", "shop"], ["list", "-n", "shop"], ["namespaces"], ["verify"]):
        done = seasoned(*command)
        assert (done.exit_code, done.stdout) == (4, "")
        assert f"schema 1: schema {SCHEMA_VERSION} is needed" in done.stderr
    assert path.read_bytes() == before
    assert seasoned("migrate").exit_code == 0
    namespaces = json.loads(seasoned("verify", "--json").stdout)["namespaces"]
    assert {one["namespace"]: one["hash"] for one in namespaces} == {
        name: expected["hash"] for name, expected in recorded(1).items()
    }


def test_newer_schema_is_refused_and_unchanged(tmp_path):
    path = old_store(tmp_path / "agent.db")
    Memory.open(path, namespace="shop", create=False).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = path.read_bytes()
    for settings in ({}, {"read_only": True}, {"create": False}):
        with pytest.raises(NewerStoreError, match=rf"schema {SCHEMA_VERSION + 1}: .*\. Upgrade seasoned"):
            Memory.open(path, namespace="shop", **settings)
    with pytest.raises(NewerStoreError):
        Memory.namespaces(path)
    assert path.read_bytes() == before


# ------------------------------------------------------------------------------------------ kill -9, and company


def open_and_close(path):
    Memory.open(path, namespace="shop", create=False).close()


def test_kill_9_before_any_statement_leaves_one_schema_or_the_other(tmp_path):
    old = tables_of(old_store(tmp_path / "old.db"))
    seen = []
    for statement in range(1, 200, 3):
        path = tmp_path / f"{statement}.db"
        path.write_bytes((tmp_path / "old.db").read_bytes())

        def work(path=path, statement=statement):
            sys.setprofile(dying_at(statement))
            open_and_close(path)

        code = ended(forked(work))
        assert code in (0, -signal.SIGKILL)
        seen.append(version_of(path))
        assert seen[-1] in (1, SCHEMA_VERSION)
        assert (tables_of(path) == old) == (seen[-1] == 1)
        with Memory.open(path, namespace="shop", create=False) as memory:
            assert memory.verify().hash == recorded(1)["shop"]["hash"]
        if code == 0:
            break
    assert code == 0
    assert len(seen) >= 10
    assert seen == sorted(seen)
    assert set(seen[:-1]) == {1, SCHEMA_VERSION}  # it died before and after the migration was committed


@pytest.mark.parametrize("attempt", range(3))
def test_several_processes_migrate_at_once(tmp_path, attempt):
    path = old_store(tmp_path / "agent.db")
    readable, writable = os.pipe()

    def work():
        os.close(writable)
        os.read(readable, 1)  # ends for all at once
        open_and_close(path)

    children = [forked(work) for _ in range(4)]
    os.close(readable)
    os.close(writable)
    assert [ended(child) for child in children] == [0] * 4
    check_as_recorded(path, 1)


def test_commands_that_write_bring_an_older_store_up_to_date(tmp_path):
    path = old_store(tmp_path / "agent.db")
    with open_memory(str(path), namespace="shop") as memory:
        memory.add(Episode("t", [Step("new", "go")]))
        memory.verify()
    assert Memory.namespaces(path)
