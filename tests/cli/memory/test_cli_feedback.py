"""`seasoned memory feedback`, `revoke` and `notes`: the stored feedback equals the options."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from dataclasses import dataclass
from typing import ClassVar

import pytest
from click.testing import CliRunner
from stored_feedback import stored_feedback

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli
from seasoned.types import (
    FEEDBACK_KINDS,
    AnswerRewards,
    Choice,
    Correction,
    Edit,
    Feedback,
    Outcome,
    OwnAnswer,
    Review,
    Score,
    Thumbs,
    feedback_kind,
)


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


FEEDBACK = {
    ("--thumbs", "down", "--comment", "rude"): Thumbs(False, "rude"),
    ("--score", "-0.5"): Score(-0.5),
    ("--score", "4", "--scale", "1", "5"): Score(4, 1, 5),
    ("--candidate", "Dear Ann", "--candidate", "Hi", "--chosen", "1"): Choice(("Dear Ann", "Hi"), 1),
    ("--edit", "Dear Anna"): Edit("Dear Anna"),
    ("--edit", "Hi Ann", "--candidate", "Dear", "--candidate", "Hi", "--chosen", "1"): Edit(
        "Hi Ann", None, ("Dear", "Hi"), 1
    ),
    ("--own-answer", "-"): OwnAnswer("Good day <b>Ann</b>"),
    ("--correction", "her name is Anna"): Correction("her name is Anna"),
    ("--exit-code", "-1"): Outcome(exit_code=-1),
    ("--tests", "11/12", "--exit-code", "1"): Outcome(exit_code=1, passed=11, total=12),
    ("--not-built",): Outcome(built=False),
    ("--review", "comment"): Review("comment"),
    ("--typed", '{"kind": "score", "value": 4, "low": 1, "high": 5, "comment": "good"}'): Score(4, 1, 5, "good"),
    ("--typed", '{"kind": "choice", "candidates": ["Dear Ann", "Hi"], "chosen": 1}'): Choice(("Dear Ann", "Hi"), 1),
}


@pytest.mark.parametrize("options", FEEDBACK)
def test_each_kind_of_feedback_is_stored_and_revoked(path, options):
    done = answer("feedback", path, "run", *options, "--author", "ada", "--weight", "2", stdin="Good day <b>Ann</b>\n")
    with Memory.open(path, namespace="shop") as memory:
        [record] = memory.feedback_records("run-1")
        assert (record.id, record.feedback, record.author, record.weight) == (done["id"], FEEDBACK[options], "ada", 2.0)
        assert done["kind"] == record.feedback.kind
        assert [r["reward"] for r in done["rewards"]] == [r.reward for r in record.rewards]
        assert memory.verify().notes == 2
    assert seasoned("revoke", path, done["id"]).stdout == f"revoked {done['id']}\n"
    with Memory.open(path, namespace="shop") as memory:
        assert memory.feedback_records()[0].revoked_at is not None
        assert all(event.revoked_at is not None for event in memory.events())


@pytest.fixture
def stars():
    """A registered kind that the package does not ship; the registry is restored afterwards."""
    before = dict(FEEDBACK_KINDS)

    @feedback_kind
    @dataclass(frozen=True, slots=True)
    class Stars(Feedback):
        kind: ClassVar[str] = "test_cli_stars"
        stars: int
        better: tuple[str, ...] = ()
        comment: str | None = None

        def rewards(self, executed: str | None) -> AnswerRewards:
            return AnswerRewards((self.stars - 3) / 2, tuple((text, 1.0) for text in self.better))

        def words(self) -> str:
            return f"{self.stars} stars"

    yield Stars
    FEEDBACK_KINDS.clear()
    FEEDBACK_KINDS.update(before)


def test_a_registered_kind_is_given_as_json(path, stars):
    document = json.dumps({"kind": "test_cli_stars", "stars": 1, "better": ["Hi Ann"]})
    done = answer("feedback", path, "run-1", "--typed", "-", "--author", "ada", stdin=document)
    assert [reward["reward"] for reward in done["rewards"]] == [-1.0, 1.0]
    assert "1 stars" in seasoned("notes", path).stdout
    with Memory.open(path, namespace="shop") as memory:
        [record] = memory.feedback_records("run-1")
        assert (record.id, record.feedback, record.author) == (done["id"], stars(1, ("Hi Ann",)), "ada")


REFUSED_JSON = {
    '{"kind": "thumb", "up": true}': "Did you mean 'thumbs'",
    '{"up": true}': "no feedback is of this kind",
    '{"kind": "thumbs", "up": true, "why": "x"}': "no field of it has this name",
    '{"kind": "thumbs"}': "thumbs without 'up'",
    '{"kind": "thumbs", "up": true, "weight": 2}': "Give the episode, --step",
    '{"kind": "thumbs", "up": true, "up": false}': "twice",
    '{"kind": "score", "value": 9, "low": 1, "high": 5}': "a score lies on its scale",
    '{"kind": "thumbs"': "--typed must be one JSON document",
    "[]": "--typed must be a JSON object",
    "4 \udcff": "--typed must be JSON in UTF-8",
}


@pytest.mark.parametrize("document", REFUSED_JSON)
def test_wrong_json_of_feedback_is_refused(path, document):
    done = seasoned("feedback", path, "run-1", "--typed", document)
    assert done.exit_code == 2
    assert REFUSED_JSON[document] in done.stderr
    with Memory.open(path, namespace="shop") as memory:
        assert memory.feedback_records() == []


def test_json_of_feedback_excludes_another_kind_and_a_comment(path):
    thumb = '{"kind": "thumbs", "up": true}'
    assert seasoned("feedback", path, "run-1", "--typed", thumb, "--built").exit_code == 2
    assert seasoned("feedback", path, "run-1", "--typed", thumb, "--comment", "x").exit_code == 2


def test_bare_reward_is_stored(path):
    id_ = seasoned("feedback", path, "run-1", "-1").stdout.strip()
    with Memory.open(path, namespace="shop") as memory:
        assert [(e.id, e.reward, e.kind) for e in memory.events()] == [(id_, -1.0, None)]


def test_notes_are_listed(path):
    seasoned("feedback", path, "run-1", "--thumbs", "up")
    notes = answer("notes", path)["notes"]
    assert [(n["kind"], n["step"], n["body"].get("text")) for n in notes] == [
        ("reasoning", 1, "she is a\nfriend"),
        ("thumbs", None, None),
    ]
    assert [n["kind"] for n in answer("notes", path, "run", "--kind", "reasoning")["notes"]] == ["reasoning"]
    shown = seasoned("notes", path).stdout
    assert "she is a friend" in shown
    assert "thumb up" in shown
    seasoned("quarantine", path, "--episode", "run-1", "--reason", "a look")
    assert seasoned("notes", path).stdout == "no notes\n"
    assert len(answer("notes", path, "--quarantined")["notes"]) == 2


WORDS = {
    Thumbs(False, "too slow"): "thumb down: too slow",
    Thumbs(True): "thumb up",
    Score(4, 1, 5): "score 4 on 1 to 5",
    Choice(("Dear Ann", "Hi", "Hey"), 1, "short"): 'chose "Hi" over "Dear Ann", "Hey": short',
    Edit("Dear Anna"): 'edited to "Dear Anna"',
    OwnAnswer("Good day"): 'would answer "Good day"',
    Correction("her name is Anna"): 'corrected by "her name is Anna"',
    Outcome(exit_code=1, passed=11, total=12): "tests 11/12, exit code 1",
    Outcome(built=False): "not built",
    Review("changes_requested", "no tests"): "changes requested: no tests",
    Review("comment"): "comment",
}


def test_feedback_is_listed_in_words(path):
    with Memory.open(path, namespace="shop") as memory:
        for number, feedback in enumerate(WORDS):
            memory.feedback("run-1", feedback, author=f"person-{number}")
        memory.feedback("run-1", Thumbs(True), author="zoe", weight=0.5)
        memory.note("run-1", "shown", {"mode": "prompt"})
    rows = re.split(r" {2,}", seasoned("notes", path).stdout.replace("\n", "  "))
    assert [
        words for words in (*WORDS.values(), "thumb up (weight 0.5)", '{"mode": "prompt"}') if words not in rows
    ] == []


def test_bare_rewards_are_listed_with_the_notes(path):
    id_ = seasoned("feedback", path, "run-1", "-1", "--weight", "2").stdout.strip()
    gone = seasoned("feedback", path, "run-1", "3", "--author", "bob").stdout.strip()
    seasoned("feedback", path, "run-1", "--thumbs", "up")
    seasoned("revoke", path, gone)
    shown = seasoned("notes", path, "--kind", "reward").stdout.splitlines()
    assert len(shown) == 2
    assert shown[1].split()[:4] == ["run-1", "1", "reward", "human"]
    assert "-1 (weight 2)" in shown[1]
    assert shown[1].endswith(id_)
    assert [reward["id"] for reward in answer("notes", path)["rewards"]] == [id_]
    assert answer("notes", path, "--kind", "thumbs")["rewards"] == []
    seasoned("quarantine", path, "--episode", "run-1", "--reason", "a look")
    assert seasoned("notes", path, "--kind", "reward").stdout == "no notes\n"
    assert len(answer("notes", path, "--kind", "reward", "--quarantined")["rewards"]) == 1


def test_unused_kind_lists_the_used_kinds(path):
    seasoned("feedback", path, "run-1", "--thumbs", "up")
    seasoned("feedback", path, "run-1", "1")
    assert seasoned("notes", path, "--kind", "thumb").stdout == (
        "no notes of kind thumb; there are: reasoning, reward, thumbs\n"
    )
    assert answer("notes", path, "--kind", "thumb") == {"notes": [], "rewards": []}


def test_revoke_takes_the_start_of_an_id(path):
    with Memory.open(path, namespace="shop") as memory:
        for id_ in ("on-1", "on-2", "on"):
            memory.feedback("run-1", Thumbs(True), author=id_, id=id_)
        memory.note("run-1", "plan", {"text": "be kind"}, id="note-1")
        reward = memory.feedback("run-1", 1.0)
    several = seasoned("revoke", path, "o")
    assert several.exit_code == 2
    assert "3 begin like this: on, on-1, on-2. Write more of it." in several.stderr
    assert seasoned("revoke", path, "on").stdout == "revoked on\n"  # a whole id means itself
    assert seasoned("revoke", path, "not").stdout == "revoked note-1\n"
    assert seasoned("revoke", path, "on-1").stdout == "revoked on-1\n"
    assert seasoned("revoke", path, "on-").stdout == "revoked on-2\n"  # an unrevoked record goes before a revoked one
    assert answer("revoke", path, reward[:8]) == {"event_id": reward}
    assert seasoned("revoke", path, reward[:8]).stdout == f"revoked {reward}\n"  # twice changes nothing
    with Memory.open(path, namespace="shop") as memory:
        assert [note.kind for note in memory.notes()] == ["reasoning"]
        assert all(event.revoked_at is not None for event in memory.events())


def test_revoke_refuses_an_unknown_id(path):
    done = seasoned("revoke", path, "nope")
    assert done.exit_code == 3
    assert done.stderr.strip().endswith("See: seasoned memory notes")


def test_id_in_a_narrow_terminal_is_a_usable_prefix(path, warm_python):
    with Memory.open(path, namespace="shop") as memory:
        record = stored_feedback(memory, "run-1", Thumbs(False, "it took far too long to answer " * 3), author="ada")
    parent, child = pty.openpty()
    done = subprocess.run(
        [*warm_python, "-c", "from seasoned.cli import main; main()", "memory", "notes", path],
        stdout=child,
        stderr=child,
        check=False,
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm"},
    )
    os.close(child)
    shown = re.sub(r"\x1b\[[\d;]*m", "", os.read(parent, 65536).decode())
    os.close(parent)
    assert done.returncode == 0
    assert max(map(len, shown.splitlines())) <= 80
    [row] = [line for line in shown.splitlines() if "thumb down: it took" in line]
    short = row.split()[-1]
    assert 8 <= len(short) < len(record.id)
    assert seasoned("revoke", path, short).stdout == f"revoked {record.id}\n"


BAD = [
    (2, []),
    (2, ["1", "--thumbs", "up"]),
    (2, ["--thumbs", "up", "--score", "1"]),
    (2, ["--thumbs", "sideways"]),
    (2, ["--score", "nan"]),
    (2, ["--score", "2"]),
    (2, ["--score", "1", "--scale", "5", "1"]),
    (2, ["--scale", "1", "5"]),
    (2, ["--candidate", "a", "--chosen", "0"]),
    (2, ["--chosen", "0"]),
    (2, ["--candidate", "a", "--candidate", "A", "--chosen", "0"]),
    (2, ["--candidate", "a", "--candidate", "b", "--chosen", "2"]),
    (2, ["--candidate", "a", "--candidate", "b"]),
    (2, ["--edit", " "]),
    (2, ["--tests", "3"]),
    (2, ["--tests", "4/3"]),
    (2, ["--tests", "0/0"]),
    (2, ["--comment", "alone"]),
    (2, ["--thumbs", "up", "--weight", "inf"]),
    (2, ["--thums", "up"]),
    (2, ["--thumbs", "up", "--weight", "-1"]),
    (3, ["--thumbs", "up", "--step", "2"]),
]


def test_bad_input_changes_nothing(path):
    with Memory.open(path, namespace="shop") as memory:
        before = memory.verify().hash
    for code, args in BAD:
        done = seasoned("feedback", path, "run-1", *args)
        assert (done.exit_code, done.stdout) == (code, ""), (args, done.stderr)
        assert done.stderr.startswith("error: "), args
    with Memory.open(path, namespace="shop") as memory:
        assert memory.verify().hash == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--thumb", "up"], "'--thumbs'"),
        (["--thumbs", "up", "--weight", "-1"], "--weight -1: a weight must be greater than 0. Give .* --thumbs down"),
        (["1", "--weight", "0"], "--weight 0: a weight must be"),
    ],
)
def test_wrong_usage_of_feedback_names_the_right_option(path, args, message):
    done = seasoned("feedback", path, "run-1", *args)
    assert done.exit_code == 2
    assert re.search(message, done.stderr), done.stderr


def test_missing_episode_or_step_is_not_found(path):
    assert seasoned("feedback", path, "nope", "--thumbs", "up").exit_code == 3
    assert seasoned("notes", path, "nope").exit_code == 3
    assert seasoned("revoke", path, "nope").exit_code == 3


@pytest.mark.parametrize("command", ["feedback", "notes", "revoke"])
def test_help_has_an_example_of(command):
    assert f"seasoned memory {command} " in seasoned(command, "--help").stdout.partition("Example:")[2]
