"""What `add` returned from is on disk: killed processes, full disks, files that are not ours."""

from __future__ import annotations

import hashlib
import json
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import (
    ForeignStoreError,
    NewerStoreError,
    NotFoundError,
    ReadOnlyStoreError,
    StoreError,
    StoreFullError,
)

WRITER = """
import sys
from seasoned import Episode, Memory, Step
memory = Memory.open(sys.argv[1], gamma=0.5)
memory.search("warm up")
for n in range(10**9):
    steps = [Step(f"round {sys.argv[2]} page {n} {i}", f"click {i % 3}", float(i)) for i in range(5)]
    id_ = memory.add(Episode("t", steps, id=f"{sys.argv[2]}-{n}", final_state="end"))
    print(id_, flush=True)
    if n % 3 == 0:
        print("said", memory.feedback(id_, 1.0, 2), flush=True)
"""


def killed_writer(path, name, after_s):
    """Lines that a writer printed before it was killed."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE, text=True)
    first = process.stdout.readline()
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    return [line for line in (first + rest).splitlines(keepends=True) if line.endswith("\n")]


def kill_rounds(path, rounds, seed):
    draw = random.Random(seed)
    episodes, events = set(), set()
    for n in range(rounds):
        for line in killed_writer(path, str(n), draw.uniform(0.0, 0.25)):
            said = line.split()
            (events if said[0] == "said" else episodes).add(said[-1])
        with Memory.open(path) as memory:
            verified = memory.verify()
            stored = {episode.id: episode for episode in memory.episodes()}
            assert episodes <= set(stored)
            assert len(set(stored) - episodes) <= 1  # committed, and killed before it could be printed
            assert all(len(e.steps) == 5 and e.final_state == "end" for e in stored.values())
            heard = {event.id for event in memory.events()}
            assert events <= heard
            assert len(heard - events) <= 1
            assert verified.steps == len(memory) == 5 * len(stored)
            episodes, events = set(stored), heard
    assert len(episodes) >= rounds


def test_kill_9_loses_at_most_the_episode_in_flight(tmp_path):
    kill_rounds(tmp_path / "agent.db", 8, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kill_9_many_times(tmp_path):
    kill_rounds(tmp_path / "agent.db", 60, seed=2)


def episode(n, size=1):
    return Episode("t", [Step(f"page {n} " + "filler " * size, "click", 1.0)], id=f"e{n}")


def fill_until_refused(memory, size):
    for n in range(10_000):
        try:
            memory.add(episode(n, size))
        except StoreError as error:
            return n, error
    raise AssertionError("the disk was never full")


def test_a_full_disk_keeps_what_was_added_and_works_again_when_space_returns(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk to fill: {mounted.stderr.decode().strip()}")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(1 << 20))
        with Memory.open(disk / "agent.db") as memory:
            stored, error = fill_until_refused(memory, 4000)
            assert isinstance(error, StoreFullError)
            assert error.next_step
            assert stored > 0
            assert [e.id for e in memory.episodes()] == [f"e{n}" for n in range(stored)]
            memory.verify()
            ballast.unlink()
            assert memory.add(episode(stored, 4000)) == f"e{stored}"
            assert len(memory.search("page", k=10_000)) == stored + 1
            memory.verify()
        with Memory.open(disk / "agent.db") as memory:
            assert memory.verify().episodes == stored + 1
    finally:
        subprocess.run(["umount", disk], check=True)


LIMITED = """
import json, resource, signal, sys
sys.path.insert(0, sys.argv[2])
from test_durability import episode, fill_until_refused
from seasoned import Memory
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
with Memory.open(sys.argv[1]) as memory:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    stored, error = fill_until_refused(memory, 4000)
    assert [e.id for e in memory.episodes()] == [f"e{n}" for n in range(stored)], "earlier episodes"
    memory.verify()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    memory.add(episode(stored, 4000))
    memory.verify()
print(json.dumps([stored, type(error).__name__, str(error)]))
"""


def test_a_file_that_may_not_grow_keeps_what_was_added(tmp_path):
    path = tmp_path / "agent.db"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stored, kind, message = json.loads(done.stdout)
    assert kind in ("StoreFullError", "StoreError")
    assert "agent.db" in message
    with Memory.open(path) as memory:
        assert memory.verify().episodes == stored + 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# ------------------------------------------------------------------------------------------ not ours, not for us


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE episode (id TEXT)")
        connection.execute("INSERT INTO episode VALUES ('mine')")
    connection.close()


def foreign_wal_database(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE other (id TEXT)")
    connection.commit()
    connection.close()


def numbered_database(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.close()


FOREIGN = {
    "short text": lambda path: path.write_text("hello\n"),
    "long text": lambda path: path.write_text("hello world\n" * 2000),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "pickle": lambda path: path.write_bytes(b"\x80\x04K\x01." * 300),
    "another SQLite database": foreign_database,
    "another SQLite database with a log": foreign_wal_database,
    "another SQLite database without tables": numbered_database,
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN.keys())
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_not_ours_is_left_as_it_is(tmp_path, make, read_only):
    path = tmp_path / "file"
    make(path)
    before = digest_of(path)
    with pytest.raises(ForeignStoreError) as caught:
        Memory.open(path, read_only=read_only)
    assert str(path) in caught.value.seen
    assert caught.value.next_step
    assert digest_of(path) == before
    beside = {p.name for p in tmp_path.iterdir()} - {"file"}
    # A read-only look into a database with a log makes SQLite leave the log's two files, empty, beside it.
    assert not beside or (read_only and make is foreign_wal_database and beside <= {"file-wal", "file-shm"})


def test_a_folder_is_not_a_memory(tmp_path):
    with pytest.raises(ForeignStoreError, match="folder"):
        Memory.open(tmp_path)


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "agent.db"
    path.touch()
    with Memory.open(path) as memory:
        memory.add(episode(1))
        assert memory.verify().episodes == 1


def test_a_newer_store_is_left_as_it_is(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(episode(1))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = digest_of(path)
    for read_only in (False, True):
        with pytest.raises(NewerStoreError, match="999"):
            Memory.open(path, read_only=read_only)
    assert digest_of(path) == before


def test_read_only_reads_and_never_writes(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(episode(1))
        event = memory.feedback("e1", 1.0)
        memory.search("page 1")
        expected = memory.search("page 1"), memory.verify(), memory.stats(), list(memory.export())
    before = digest_of(path)
    with Memory.open(path, read_only=True) as memory:
        assert (memory.search("page 1"), memory.verify(), memory.stats(), list(memory.export())) == expected
        for write in (
            lambda: memory.add(episode(2)),
            lambda: memory.feedback("e1", 2.0),
            lambda: memory.revoke(event),
            lambda: memory.import_lines([]),
        ):
            with pytest.raises(ReadOnlyStoreError):
                write()
        assert memory.verify() == expected[1]
    assert digest_of(path) == before
    with pytest.raises(NotFoundError):
        Memory.open(tmp_path / "absent.db", read_only=True)


def test_read_only_sees_what_a_writer_commits(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as writer:
        writer.add(episode(1))
        writer.search("page")
        with Memory.open(path, read_only=True) as reader:
            assert len(reader.search("page", k=9)) == 1
            writer.add(episode(2))
            assert len(reader.search("page", k=9)) == 2


def test_read_only_answers_at_its_own_discount_and_says_why_not_at_a_new_one(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, gamma=0.5) as memory:
        memory.add(Episode("t", [Step("one", "a"), Step("two", "b", 1.0)]))
    with Memory.open(path, read_only=True) as memory:
        assert memory.search("one", k=1)[0].experience.return_ == 0.5
        assert memory.stats().steps == 2
        with pytest.raises(ReadOnlyStoreError, match=r"gamma = 0\.25.*gathered once, by writing.*Open the memory"):
            memory.search("one", k=1, gamma=0.25)
