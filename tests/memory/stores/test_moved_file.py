"""A file that is moved, removed or replaced under an open memory: nothing is acknowledged that would be lost."""

from __future__ import annotations

import sqlite3

import pytest
from click.testing import CliRunner

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli
from seasoned.errors import InputError, StoreError


def episode(n):
    return Episode("t", [Step(f"page {n}", "go", 1.0)], f"e{n}")


def move(path):
    path.rename(path.with_name("moved.db"))
    return path.with_name("moved.db")


def remove(path):
    path.unlink()


def replace(path):
    other = path.with_name("other.db")
    with Memory.open(other) as memory:
        memory.add(episode(99))
    other.replace(path)


@pytest.mark.parametrize("change", [move, remove, replace])
def test_write_after_the_file_is_gone_is_refused(tmp_path, change):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(episode(1))
        change(path)
        for act in (lambda: memory.add(episode(2)), lambda: memory.feedback("e1", 1.0)):
            with pytest.raises(
                StoreError, match=r"moved, removed or replaced while it was open: .+\. Put the file back"
            ):
                act()
        assert [one.id for one in memory.episodes()] == ["e1"]


@pytest.mark.parametrize("change", [move, remove, replace])
def test_compaction_of_a_file_that_is_gone_is_refused(tmp_path, change):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(episode(1))
        change(path)
        with pytest.raises(StoreError, match=r"moved, removed or replaced"):
            memory.compact()


def test_file_that_is_put_back_is_written_again(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(episode(1))
        moved = move(path)
        with pytest.raises(StoreError):
            memory.add(episode(2))
        moved.rename(path)
        memory.add(episode(3))
    with Memory.open(path) as memory:
        assert [one.id for one in memory.episodes()] == ["e1", "e3"]
        memory.verify()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM episode").fetchone() == (2,)


@pytest.mark.parametrize("path", ["x" * 300, "\ud800", "a/" * 3000])
def test_name_that_the_system_does_not_take_is_refused(path):
    with pytest.raises(InputError, match=r"path = .+: .+\. Name another"):
        Memory.open(path)
    for command in (["stats", path], ["backup", path, "copy.db"], ["merge", "new.db", path], ["namespaces", path]):
        if "\ud800" not in path:  # no program can be given such an argument
            done = CliRunner().invoke(cli, ["memory", *command])
            assert done.exit_code == 2, done.output
            assert "path = " in done.stderr


MISUSES = {
    "quarantine": lambda memory: memory.quarantine(1, "r"),
    "selected": lambda memory: memory.selected("x"),
    "prune": lambda memory: memory.prune("x"),
    "feedback_records": lambda memory: memory.feedback_records(kinds=1),
    "add_many": lambda memory: memory.add_many(1.0),
    "record_copy": lambda memory: memory.record_copy("mine", "p"),
    "deep body": lambda memory: memory.note("e1", "plan", _nested(3000)),
    "deep selection": lambda memory: memory.quarantine(_nested(3000), "r"),
}


def _nested(depth):
    body = {}
    for _ in range(depth):
        body = {"a": body}
    return body


@pytest.mark.parametrize("misuse", MISUSES)
def test_argument_of_a_wrong_type_is_our_error(misuse):
    with Memory.open(":memory:") as memory:
        memory.add(episode(1))
        with pytest.raises(InputError, match=r".+: .+\. .+"):
            MISUSES[misuse](memory)
        memory.verify()
