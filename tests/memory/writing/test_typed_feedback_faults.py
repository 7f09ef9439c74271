"""Whatever happens in the middle of it: feedback is there with all that follows from it, or not at all."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from dying import dying_at, ended, forked
from postgres_server import postgres, server  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.memory.stores.postgres.migration import prepare_schema
from seasoned.memory.stores.postgres.schema import GROUP, MIGRATIONS, POSTGRES_VERSION
from seasoned.memory.stores.postgres.tenants import migrate
from seasoned.memory.stores.postgres.wire import connect, parse_url
from seasoned.types import Choice, OwnAnswer, Thumbs

SHOWN = "It is lost."


def test_kill_9_during_feedback_leaves_all_or_none_of_it(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(Episode("support", [Step("where?", SHOWN)], "talk"))
        memory.feedback("talk", Choice((SHOWN, "A"), 1), author="ann", id="first")
        before = memory.verify().hash
    seen = []
    for statement in range(4, 400, 7):

        def work(statement=statement):
            with Memory.open(path) as memory:
                sys.setprofile(dying_at(statement))
                memory.feedback("talk", Choice((SHOWN, "A", "B"), 2), author="ann", id="second")
                sys.setprofile(None)

        code = ended(forked(work))
        assert code in (0, -signal.SIGKILL)
        with Memory.open(path) as memory:
            done = [one.id for one in memory.feedback_records() if one.revoked_at is None]
            rewards = {n.experience.action: n.experience.reward for n in memory.search("where?", 9, 1.0)}
            if done == ["first"]:
                assert (memory.verify().hash, rewards) == (before, {SHOWN: -1.0, "A": 1.0})
            else:
                assert (done, rewards) == (["second"], {SHOWN: -0.5, "A": -0.5, "B": 1.0})
                memory.verify()
        seen.append(code)
        if code == 0:
            break
    assert seen[-1] == 0
    assert len(seen) >= 5


def give_in_a_process(place, author, n):
    def work():
        with Memory.open(place) as memory:
            for number in range(n):
                memory.feedback("talk", Choice((SHOWN, f"{author} {number}"), 1), author=author)
                memory.feedback("talk", Thumbs(number % 2 == 0), author="both")

    return forked(work)


@pytest.mark.parametrize("kind", ["file", pytest.param("server", marks=pytest.mark.slow)])
def test_concurrent_feedback_of_two_processes_is_stored_whole(tmp_path, request, kind):
    place = tmp_path / "agent.db" if kind == "file" else request.getfixturevalue("postgres").fresh()
    with Memory.open(place) as memory:
        memory.add(Episode("support", [Step("where?", SHOWN)], "talk"))
    children = [give_in_a_process(place, author, 4) for author in ("ann", "bob")]
    assert [ended(child) for child in children] == [0, 0]
    with Memory.open(place) as memory:
        whole = memory.verify()
        assert (whole.episodes, whole.notes) == (1 + 8, 16)
        standing = [one for one in memory.feedback_records() if one.revoked_at is None]
        assert sorted((str(one.author), one.feedback.kind) for one in standing) == [
            ("ann", "choice"),
            ("bob", "choice"),
            ("both", "thumbs"),
        ]
        actions = {n.experience.action for n in memory.search("where?", 50, 1.0)}
        assert actions == {SHOWN, "ann 3", "bob 3"}


def test_a_database_of_version_3_gets_notes_from_its_owner(request):
    """With data in it, an arrival among them, and a tenant who may not change tables."""
    running = request.getfixturevalue("postgres")
    owner = running.fresh()
    Memory.open(owner).close()
    name = f"tenant_{os.getpid()}_{os.urandom(3).hex()}"
    database = owner.rsplit("/", 1)[1]
    with (
        running.connect() as admin
    ):  # the group of tenants belongs to the server: another test's owner may have made it
        if admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (GROUP,)).fetchone():
            admin.execute(f"GRANT {GROUP} TO owner_{database} WITH ADMIN OPTION")
    migrate(owner, [name], {name: "secret"})
    url = running.url(name, "secret", owner.rsplit("/", 1)[1])
    with Memory.open(url) as memory:
        memory.add_many([Episode("t", [Step("s", "a", 1.0)], "old")])
        memory.feedback("old", 1.0, author="ann")
    with Memory.open(url) as memory:
        memory.session.inbox.close = lambda: None  # it leaves what it added to others
        memory.add(Episode("t", [Step("s", "b", 2.0)], "waits"))
        hash_ = memory.verify().hash
    with running.connect(running.url(database=owner.rsplit("/", 1)[1])) as admin:
        admin.execute("DROP TABLE seasoned.note")
        admin.execute("ALTER TABLE seasoned.feedback DROP COLUMN kind")
        for column in ("notes", "feedback_limits", "compaction_due"):
            admin.execute(f"ALTER TABLE seasoned.namespace DROP COLUMN {column}")
        for table in ("namespace", "episode", "feedback", "quarantine", "copy"):
            admin.execute(f"ALTER TABLE seasoned.{table} DROP COLUMN checksum")
        admin.execute("UPDATE seasoned.meta SET version = 3")
    with connect(parse_url(owner), read_only=False) as connection:
        prepare_schema(connection, "p", create=False, migrate=True, steps=MIGRATIONS)
        assert connection.execute("SELECT version FROM seasoned.meta").fetchone() == (POSTGRES_VERSION,)
    with Memory.open(url) as memory, Memory.open(owner) as other:
        assert memory.session.store.problems() == []
        assert memory.verify().hash == hash_
        memory.note("waits", "plan", {"text": "x"})
        memory.feedback("old", OwnAnswer("c"), author="ann")
        with memory.episode("t") as run:
            run.note("plan", {"text": "y"})
            run.record("s", "d")
        assert len(memory.notes()) == 3
        assert (other.notes(), other.feedback_records()) == ([], [])  # another tenant
        assert memory.verify().notes == 3
        assert len(memory.erase("ann").episodes) == 1
        memory.verify()
