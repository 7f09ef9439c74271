"""`seasoned memory backup`, `restore`, `diff`, `merge`, `compact`: output and exit codes."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pytest
from click.testing import CliRunner

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli
from seasoned.memory.stores.sqlite_schema import APPLICATION_ID, MIGRATIONS


def fill(path, *names, reward=1.0, **settings):
    with Memory.open(path, **settings) as memory:
        memory.add_many(Episode("shop", [Step(f"page {name}", "click", reward)], name) for name in names)
    return str(path)


def seasoned(*args):
    return CliRunner().invoke(cli, ["memory", *map(str, args)])


def answer(*args, code=0):
    done = seasoned(*args, "--json")
    assert (done.exit_code, done.stderr) == (code, ""), done.stderr or done.exception
    return json.loads(done.stdout)


def ids(path):
    with Memory.open(path, create=False) as memory:
        return [e.id for e in memory.episodes()]


@pytest.fixture
def path(tmp_path):
    return fill(tmp_path / "agent.db", "e1", "e2")


@pytest.fixture
def copy(tmp_path):
    return str(tmp_path / "copy.db")


def test_backup_and_restore(path, copy):
    made = answer("backup", path, copy)
    assert (made["source"], made["target"], list(made["hashes"])) == (path, copy, ["default"])
    fill(path, "later")
    assert seasoned("restore", copy, path).exit_code == 2
    assert answer("restore", copy, path, "--overwrite")["hashes"] == made["hashes"]
    assert ids(path) == ["e1", "e2"]
    done = seasoned("backup", path, copy, "--overwrite")
    assert done.exit_code == 0
    assert made["hashes"]["default"] in done.stdout
    assert str(made["schema"]) in done.stdout


def test_copy_of_an_older_store_names_the_migration(tmp_path, copy):
    old = tmp_path / "old store.db"
    with contextlib.closing(sqlite3.connect(old)) as store:
        store.executescript(MIGRATIONS[0])
        store.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        store.execute("PRAGMA user_version = 1")
    assert f"seasoned memory migrate {copy}\n" in seasoned("backup", old, copy).stderr
    old.unlink()
    assert f"seasoned memory migrate '{old}'\n" in seasoned("restore", copy, old).stderr


def test_diff_ends_with_0_if_equal_and_1_if_not(path, copy):
    answer("backup", path, copy)
    assert answer("diff", path, copy)["equal"] is True
    assert seasoned("diff", path, copy).stdout == "equal\n"
    fill(path, "later")
    diff = answer("diff", path, copy, code=1)
    assert diff["equal"] is False
    assert diff["namespaces"]["default"]["episodes"]["only_in_a"] == ["later"]
    done = seasoned("diff", path, copy)
    assert done.exit_code == 1
    assert done.stderr == ""
    assert "1 episodes only in A: later" in done.stdout
    assert done.stdout.endswith("different\n")


def test_diff_names_the_field_and_the_settings(path, tmp_path):
    other = fill(tmp_path / "other.db", "e1", "e2", reward=2.0, gamma=0.5, namespace="theirs")
    fill(other, "x", namespace="more")
    done = seasoned("diff", path, other, "-n", "default", "--other", "theirs")
    assert done.exit_code == 1
    assert "steps[0].reward" in done.stdout
    assert "gamma 0.95 in A, 0.5 in B" in done.stdout
    done = seasoned("diff", path, other)
    assert "namespace 'default' is only in A\nnamespace 'more' is only in B\n" in done.stdout
    assert seasoned("diff", path, other, "--other", "theirs").exit_code == 2


def test_merge_prints_the_added_records(path, tmp_path):
    other = fill(tmp_path / "other.db", "e3", "e4")
    [one] = answer("merge", path, other)["namespaces"]
    assert (one["namespace"], one["made"], one["episodes"]) == ("default", False, 2)
    assert ids(path) == ["e1", "e2", "e3", "e4"]
    done = seasoned("merge", tmp_path / "new.db", path, other, "-n", "default")
    assert done.stdout.split() == [
        "namespace",
        "episodes",
        "feedback",
        "quarantines",
        "notes",
        "changed",
        "default",
        "4",
        "0",
        "0",
        "0",
        "0",
    ]


def test_compact_prints_the_bytes(path):
    with Memory.open(path) as memory:
        long = [Step(f"page {number} {'word ' * 1000}{number}", "click") for number in range(20)]
        memory.add(Episode("shop", long, "long", subject="ada"))
        memory.erase("ada")
    done = answer("compact", path)
    assert done["bytes_after"] <= done["bytes_before"]
    with Memory.open(path) as memory:
        assert done["hashes"] == {"default": memory.verify().hash}
    assert f"bytes after   {done['bytes_after']}" in seasoned("compact", path).stdout


def test_bad_input_ends_with_its_exit_code_and_changes_nothing(path, tmp_path):
    (tmp_path / "text").write_text("hello " * 1000)
    other = fill(tmp_path / "other.db", "e1", reward=2.0)
    for code, *args in (
        (3, "backup", tmp_path / "missing.db", tmp_path / "new.db"),
        (4, "backup", tmp_path / "text", tmp_path / "new.db"),
        (2, "backup", path, other),
        (2, "backup", path, path, "--overwrite"),
        (2, "backup", path),
        (3, "restore", tmp_path / "missing.db", path, "--overwrite"),
        (4, "restore", tmp_path / "text", path, "--overwrite"),
        (2, "restore", path, other),
        (3, "diff", path, tmp_path / "missing.db"),
        (4, "diff", path, tmp_path / "text"),
        (3, "diff", path, other, "-n", "nobody's"),
        (4, "merge", path, other),
        (2, "merge", path),
        (2, "merge", path, path),
        (3, "merge", path, tmp_path / "missing.db"),
        (3, "merge", path, other, "-n", "nobody's"),
        (3, "compact", tmp_path / "missing.db"),
        (4, "compact", tmp_path / "text"),
    ):
        done = seasoned(*args)
        assert done.exit_code == code, (args, done.stderr, done.exception)
        assert done.stderr.startswith("error: ")
        assert done.stdout == ""
    assert ids(path) == ["e1", "e2"]
    assert ids(other) == ["e1"]
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("command", ["backup", "restore", "diff", "merge", "compact"])
def test_help_has_an_example(command):
    done = seasoned(command, "--help")
    assert done.exit_code == 0
    assert f"seasoned memory {command} " in done.stdout.partition("Example:")[2]
