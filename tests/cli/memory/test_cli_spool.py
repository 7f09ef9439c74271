"""`seasoned memory spool` and the hints: writes that wait on this host are shown and delivered."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """A file, and a default spool with two writes to it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "agent.db"
    memory = Memory.open(file, timeout_s=0.1, spool=True)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        memory.add(Episode("shop", [Step("cart", "pay")], "e1"))
        memory.feedback("e1", reward=1.0)
        memory.close()
        other.execute("ROLLBACK")
    return file


def run(*arguments):
    return CliRunner().invoke(cli, ["memory", *map(str, arguments)])


def test_spool_is_shown_and_delivered(waiting, tmp_path):
    root = tmp_path / "state" / "seasoned" / "spool"
    shown = run("spool", "--json")
    [found] = json.loads(shown.stdout)["spools"]
    assert (found["entries"], found["refused"], found["store"]) == (2, 0, str(waiting))
    for command in ("stats", "doctor"):
        assert "2 writes of this host" in run(command, waiting).stderr
    done = run("spool", root, "--deliver", waiting, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["spools"][0]["entries"] == 0
    with Memory.open(waiting) as memory:
        assert memory.get("e1").steps[0].action == "pay" and len(memory.events()) == 1


def test_missing_folder_is_named(tmp_path):
    failed = run("spool", tmp_path / "none")
    assert failed.exit_code == 3 and "does not exist" in failed.stderr


def test_stats_and_doctor_look_into_a_named_folder(waiting, tmp_path, monkeypatch):
    root = tmp_path / "state" / "seasoned" / "spool"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    for command in ("stats", "doctor"):
        assert "2 writes" not in run(command, waiting).stderr
        hinted = run(command, waiting, "--spool", root)
        assert f"seasoned memory spool {root} --deliver {waiting}" in hinted.stderr
        failed = run(command, waiting, "--spool", tmp_path / "none")
        assert failed.exit_code == 3 and "does not exist" in failed.stderr


def test_stats_and_doctor_count_refused_calls(waiting, tmp_path):
    for folder, name in ((f"{waiting}.calls", "refused"), (tmp_path / "named" / "calls", "refused")):
        (Path(folder) / name).mkdir(parents=True)
        (Path(folder) / name / "1.call").touch()
    for command in ("stats", "doctor"):
        assert f"refused 1 file of calls that the service recorded, for good: {waiting}.calls/refused" in (
            run(command, waiting).stderr
        )
        assert f"{tmp_path}/named/calls/refused" in run(command, waiting, "--spool", tmp_path / "named").stderr
