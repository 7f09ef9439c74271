"""An erasure that was killed, and copies that were never finished: a second erasure ends both."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from dying import ended, forked
from postgres_server import PASSWORD, postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import NotFoundError
from seasoned.memory.maintenance.backup import backup
from seasoned.memory.maintenance.compaction import compact
from seasoned.memory.stores.base import Rewriting
from seasoned.memory.stores.partial_folder import partial_folder, partials_of
from seasoned.memory.stores.postgres.store import PostgresStore

SECRET = "Quince Marmalade 7741"

# A backup encodes the states of its copy again, to check it: then the copy is whole, and has no name yet.
COPYING = """
import sys, time
from seasoned.memory.maintenance.backup import backup

class Waiting:
    identity = "words"

    def features(self, state):
        print("copied", flush=True)
        time.sleep(60)

backup(*sys.argv[1:], encoder=Waiting())
"""


class Words:
    """An encoder that is not built in."""

    identity = "words"

    def features(self, state):
        return frozenset(state.split())


def filled(path, n_others=30):
    with Memory.open(path, encoder=Words()) as memory:
        memory.add_many([Episode("t", [Step(f"page {n} " + "x" * 200, "go", 1.0)]) for n in range(n_others)])
        memory.add(Episode("t", [Step(f"mail from {SECRET}", "answer", 1.0)], subject="quince"))
    return path


def bytes_found(folder):
    return [file.name for file in Path(folder).rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]


def killed_while_copying(source, target):
    child = subprocess.Popen(
        [sys.executable, "-c", COPYING, str(source), str(target)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "copied\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


def test_killed_backup_leaves_nothing_that_another_user_can_read(tmp_path):
    source, target = filled(tmp_path / "agent.db"), tmp_path / "copy.db"
    killed_while_copying(source, target)
    [left] = partials_of(target)
    assert SECRET.encode() in (left / "copy.db").read_bytes()  # the finding: the whole content
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    assert left.is_dir() and not target.exists()


def test_erasure_removes_the_copy_of_a_killed_backup(tmp_path):
    source, target = filled(tmp_path / "agent.db"), tmp_path / "copies" / "copy.db"
    target.parent.mkdir()
    killed_while_copying(source, target)
    [left] = partials_of(target)
    with Memory.open(source, encoder=Words()) as memory:
        planned = memory.erase("quince", dry_run=True)
        assert ("partial", str(left)) in [(copy.kind, copy.path) for copy in planned.copies]
        assert left.exists()  # a dry run removes nothing
        erased = memory.erase("quince")
    assert [(copy.kind, copy.path) for copy in erased.copies] == [("backup", str(target))]
    assert bytes_found(tmp_path) == []
    assert partials_of(target) == []


def test_backup_that_is_killed_before_it_makes_its_folder_is_recorded(tmp_path):
    source, target = filled(tmp_path / "agent.db"), tmp_path / "copy.db"
    die = "import os, sys; sys.addaudithook(lambda event, _: event == 'tempfile.mkdtemp' and os.kill(os.getpid(), 9))\n"
    child = subprocess.run([sys.executable, "-c", die + COPYING, str(source), str(target)], check=False)
    assert child.returncode == -signal.SIGKILL
    with Memory.open(source, encoder=Words()) as memory:
        assert [copy.path for copy in memory.copies()] == [str(target)]


def test_next_backup_removes_the_copy_of_a_killed_one(tmp_path):
    source, target = filled(tmp_path / "agent.db"), tmp_path / "copy.db"
    killed_while_copying(source, target)
    backup(source, target, encoder=Words())
    assert partials_of(target) == []
    with Memory.open(source, encoder=Words()) as memory:
        assert [copy.path for copy in memory.copies()] == [str(target)] * 2


def test_copy_in_the_making_is_named_and_left_alone(tmp_path):
    source = filled(tmp_path / "agent.db")
    with partial_folder(tmp_path / "copy.db") as folder, Memory.open(source, encoder=Words()) as memory:
        (folder / "copy.db").write_text(SECRET)
        memory.record_copy("backup", str(tmp_path / "copy.db"))
        erased = memory.erase("quince")
        assert ("partial", str(folder)) in [(copy.kind, copy.path) for copy in erased.copies]
        assert (folder / "copy.db").exists()
        backup(source, tmp_path / "copy.db", encoder=Words())
        assert (folder / "copy.db").exists()
    assert not folder.exists()


def test_partial_file_of_an_earlier_version_is_named(tmp_path):
    source = filled(tmp_path / "agent.db")
    old = tmp_path / ".copy.db.4242.partial"
    old.write_text(SECRET)
    with Memory.open(source, encoder=Words()) as memory:
        memory.record_copy("backup", str(tmp_path / "copy.db"))
        assert ("partial", str(old)) in [(copy.kind, copy.path) for copy in memory.erase("quince").copies]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_killed_erasure_can_be_repeated_until_the_bytes_are_gone(tmp_path):
    path = filled(tmp_path / "agent.db")
    with Memory.open(
        path, encoder=Words()
    ) as still_open:  # it keeps the log from being removed when the killed one ends

        def erase():
            def die_at_rewriting(sql):
                if sql.startswith("VACUUM"):
                    os.kill(os.getpid(), signal.SIGKILL)

            with Memory.open(path, encoder=Words()) as memory:
                memory.session.store.connection.set_trace_callback(die_at_rewriting)
                memory.erase("quince")

        assert ended(forked(erase)) == -signal.SIGKILL
        assert still_open.session.read(lambda: still_open.session.reader.count("episode")) == 30
        assert bytes_found(tmp_path)  # the finding
        planned = still_open.erase("quince", dry_run=True)
        assert (planned.episodes, planned.feedback, planned.done) == ((), 0, False)
        erased = still_open.erase("quince")
        assert (erased.episodes, erased.done, erased.rewriting) == ((), True, Rewriting(rewritten=True))
        assert bytes_found(tmp_path) == []
        with pytest.raises(NotFoundError, match=r"nothing is stored about it"):
            still_open.erase("quince")
        still_open.verify()


def test_compaction_says_what_it_did_and_ends_an_unfinished_erasure(tmp_path):
    path = filled(tmp_path / "agent.db")
    with Memory.open(path, encoder=Words()) as memory:
        memory.session.write(
            lambda: memory.session.store.execute("UPDATE namespace SET compaction_due = 3")
        )  # as three killed erasures leave it
        memory.erase("nobody at all")
        with pytest.raises(NotFoundError):
            memory.erase("nobody at all")
        assert memory.compact() == Rewriting(rewritten=True, remains=None)
    done = compact(path, encoder=Words())
    assert (done.rewritten, done.remains) == (True, None)


def test_tenant_is_told_that_only_the_owner_can_rewrite_the_tables(postgres):  # noqa: F811
    url, tenant = postgres.fresh(), f"tenant_{uuid.uuid4().hex[:8]}"
    database = url.rpartition("/")[2]
    PostgresStore.migrate(url, [tenant], {tenant: PASSWORD})
    with Memory.open(postgres.url(tenant, database=database)) as memory:
        memory.add(Episode("t", [Step(SECRET, "go", 1.0)], subject="quince"))
        erased = memory.erase("quince")
        assert erased.rewriting is not None
        assert not erased.rewriting.rewritten
        assert "Run `seasoned memory compact` as" in str(erased.rewriting.remains)
        assert memory.compact() == erased.rewriting
    assert compact(url).rewritten


def test_copies_to_one_target_at_once_get_a_folder_each(tmp_path):
    """A folder that is not locked yet looks like a dead one's, and another copy may remove it."""

    def copy():
        for _ in range(200):
            with partial_folder(tmp_path / "copy.db") as folder:
                assert folder.is_dir()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(copy) for _ in range(4)]:
            done.result()
    assert partials_of(tmp_path / "copy.db") == []
