"""Files that are not ours, and files that are not for us. What faults do to a store: see tests/faults."""

from __future__ import annotations

import hashlib
import sqlite3

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import ForeignStoreError, NewerStoreError, NotFoundError, ReadOnlyStoreError


def episode(n):
    return Episode("t", [Step(f"page {n} filler", "click", 1.0)], id=f"e{n}")


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
def test_foreign_file_is_refused_and_unchanged(tmp_path, make, read_only):
    path = tmp_path / "file"
    make(path)
    before = digest_of(path)
    with pytest.raises(ForeignStoreError) as caught:
        Memory.open(path, read_only=read_only)
    assert str(path) in caught.value.seen
    assert caught.value.next_step
    assert digest_of(path) == before
    other_files = {p.name for p in tmp_path.iterdir()} - {"file"}
    # A read-only look into a database with a log makes SQLite leave the log's two files, empty, beside it.
    assert not other_files or (read_only and make is foreign_wal_database and other_files <= {"file-wal", "file-shm"})


def test_folder_is_refused(tmp_path):
    with pytest.raises(ForeignStoreError, match="folder"):
        Memory.open(tmp_path)


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "agent.db"
    path.touch()
    with Memory.open(path) as memory:
        memory.add(episode(1))
        assert memory.verify().episodes == 1


def test_newer_store_is_refused_and_unchanged(tmp_path):
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


def test_read_only_memory_refuses_a_new_discount(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, gamma=0.5) as memory:
        memory.add(Episode("t", [Step("one", "a"), Step("two", "b", 1.0)]))
    with Memory.open(path, read_only=True) as memory:
        assert memory.search("one", k=1)[0].experience.return_ == 0.5
        assert memory.stats().steps == 2
        with pytest.raises(ReadOnlyStoreError, match=r"gamma = 0\.25.*derived once, by writing.*Open the memory"):
            memory.search("one", k=1, gamma=0.25)
