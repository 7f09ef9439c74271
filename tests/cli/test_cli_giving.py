"""Feedback by its kinds, and notes, from the command line: what the library keeps is what was said."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli
from seasoned.types import Choice, Correction, Edit, Outcome, OwnAnswer, Review, Score, Thumbs


def seasoned(*args, stdin=None):
    return CliRunner().invoke(cli, ["memory", *map(str, args)], input=stdin)


def answer(*args, stdin=None):
    done = seasoned(*args, "--json", stdin=stdin)
    assert (done.exit_code, done.stderr) == (0, ""), done.stderr or done.exception
    return json.loads(done.stdout)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, namespace="shop") as memory:
        memory.add(Episode("mail", [Step("a letter", "read"), Step("an answer to ann", "Dear Ann")], "run-1"))
        memory.note("run-1", "reasoning", {"text": "she is a\nfriend"}, step=1)
    return str(path)


SAID = {
    ("--thumbs", "down", "--comment", "rude"): Thumbs(False, "rude"),
    ("--score", "-0.5"): Score(-0.5),
    ("--score", "4", "--scale", "1", "5"): Score(4, 1, 5),
    ("--candidate", "Dear Ann", "--candidate", "Hi", "--chosen", "1"): Choice(("Dear Ann", "Hi"), 1),
    ("--edit", "Dear Anna"): Edit("Dear Anna"),
    ("--own-answer", "-"): OwnAnswer("Good day <b>Ann</b>"),
    ("--correction", "her name is Anna"): Correction("her name is Anna"),
    ("--exit-code", "-1"): Outcome(exit_code=-1),
    ("--tests", "11/12", "--exit-code", "1"): Outcome(exit_code=1, passed=11, total=12),
    ("--not-built",): Outcome(built=False),
    ("--review", "comment"): Review("comment"),
}


@pytest.mark.parametrize("said", SAID)
def test_each_kind_is_kept_as_it_was_said(path, said):
    done = answer("feedback", path, "run", *said, "--author", "ada", "--weight", "2", stdin="Good day <b>Ann</b>\n")
    with Memory.open(path, namespace="shop") as memory:
        [given] = memory.given("run-1")
        assert (given.id, given.feedback, given.author, given.weight) == (done["id"], SAID[said], "ada", 2.0)
        assert done["kind"] == given.feedback.kind
        assert [r["reward"] for r in done["rewards"]] == [r.reward for r in given.rewards]
        assert memory.verify().notes == 2
    assert seasoned("revoke", path, done["id"]).stdout == f"revoked {done['id']}\n"
    with Memory.open(path, namespace="shop") as memory:
        assert memory.given()[0].revoked_at is not None
        assert all(event.revoked_at is not None for event in memory.events())


def test_a_bare_reward_still_works(path):
    id_ = seasoned("feedback", path, "run-1", "-1").stdout.strip()
    with Memory.open(path, namespace="shop") as memory:
        assert [(e.id, e.reward, e.kind) for e in memory.events()] == [(id_, -1.0, None)]


def test_notes_are_listed(path):
    seasoned("feedback", path, "run-1", "--thumbs", "up")
    found = answer("notes", path)["notes"]
    assert [(n["kind"], n["step"], n["body"].get("text")) for n in found] == [
        ("reasoning", 1, "she is a\nfriend"), ("thumbs", None, None),
    ]  # fmt: skip
    assert [n["kind"] for n in answer("notes", path, "run", "--kind", "reasoning")["notes"]] == ["reasoning"]
    shown = seasoned("notes", path).stdout
    assert "she is a friend" in shown
    assert "'up': True" in shown
    seasoned("quarantine", path, "--episode", "run-1", "--reason", "a look")
    assert seasoned("notes", path).stdout == "no notes\n"
    assert len(answer("notes", path, "--quarantined")["notes"]) == 2


BAD = [
        (2, []), (2, ["1", "--thumbs", "up"]), (2, ["--thumbs", "up", "--score", "1"]), (2, ["--thumbs", "sideways"]),
        (2, ["--score", "nan"]), (2, ["--score", "2"]), (2, ["--score", "1", "--scale", "5", "1"]),
        (2, ["--scale", "1", "5"]), (2, ["--candidate", "a", "--chosen", "0"]), (2, ["--chosen", "0"]),
        (2, ["--candidate", "a", "--candidate", "A", "--chosen", "0"]),
        (2, ["--candidate", "a", "--candidate", "b", "--chosen", "2"]), (2, ["--candidate", "a", "--candidate", "b"]),
        (2, ["--edit", " "]), (2, ["--tests", "3"]), (2, ["--tests", "4/3"]), (2, ["--tests", "0/0"]),
        (2, ["--comment", "alone"]), (2, ["--thumbs", "up", "--weight", "inf"]), (2, ["--thums", "up"]),
        (3, ["--thumbs", "up", "--step", "2"]),
]  # fmt: skip


def test_bad_input_changes_nothing(path):
    with Memory.open(path, namespace="shop") as memory:
        before = memory.verify().hash
    for code, args in BAD:
        done = seasoned("feedback", path, "run-1", *args)
        assert (done.exit_code, done.stdout) == (code, ""), (args, done.stderr)
        assert done.stderr.startswith("error: "), args
    with Memory.open(path, namespace="shop") as memory:
        assert memory.verify().hash == before


def test_what_is_not_there_is_not_found(path):
    assert seasoned("feedback", path, "nope", "--thumbs", "up").exit_code == 3
    assert seasoned("notes", path, "nope").exit_code == 3
    assert seasoned("revoke", path, "nope").exit_code == 3


@pytest.mark.parametrize("command", ["feedback", "notes", "revoke"])
def test_help_has_an_example_of(command):
    assert f"seasoned memory {command} " in seasoned(command, "--help").stdout.partition("Example:")[2]
