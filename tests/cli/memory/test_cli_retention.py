"""`seasoned memory prune`, `quarantine`, `quarantines`, `release`, `erase`: effects and confirmations."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from seasoned import Budget, Episode, Memory, Selection, Step
from seasoned.cli.format.value_text import size_bytes
from seasoned.cli.main import cli
from seasoned.errors import InputError

CART = "page:cart total:12"
LONE = "a\udc80b"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, namespace="shop", gamma=0.5) as memory:
        for number in range(4):
            steps = [
                Step(CART, "click(checkout)", number / 4),
                Step(f"page:pay secret-{number}", "click(confirm)", 1.0),
            ]
            memory.add(
                Episode(
                    "checkout",
                    steps,
                    f"run-{number}",
                    model=f"model {number % 2}",
                    policy="jitrl",
                    arm="holdout" if number == 3 else "memory",
                    subject=f"customer-{number // 2}",
                )
            )
        memory.feedback("run-0", 2.0, 0, "judge", author="ann")
        memory.feedback("run-2", 2.0, 0, "human", author="customer-0")
    return str(path)


def seasoned(*args, stdin=None):
    return CliRunner().invoke(cli, ["memory", *map(str, args)], input=stdin)


def answer(*args):
    """Return the JSON document that a successful command prints."""
    done = seasoned(*args, "--json")
    assert (done.exit_code, done.stderr) == (0, ""), done.stderr or done.exception
    return json.loads(done.stdout)


def ask(path, question):
    with Memory.open(path, namespace="shop", create=False) as memory:
        return question(memory)


def content(path):
    return ask(path, lambda memory: (memory.verify().hash, memory.copies()))


def ids(path):
    return ask(path, lambda memory: [episode.id for episode in memory.episodes()])


def visible_episodes(path):
    return ask(path, lambda memory: sorted({n.experience.episode_id for n in memory.search(CART, 99)}))


# ------------------------------------------------------------------------------- prune


def test_prune_removes_the_episodes_of_its_dry_run(path):
    before = content(path)
    dry = answer("prune", path, "--steps", 4, "--dry-run")
    assert content(path) == before
    expected = ask(path, lambda memory: memory.prune(Budget(steps=4), dry_run=True))
    assert (dry["episodes"], dry["reasons"], dry["done"]) == (list(expected.episodes), {"value": 2}, False)
    assert (dry["steps"], dry["bytes"], dry["steps_before"]) == (expected.steps, expected.bytes, 8)
    done = answer("prune", path, "--steps", 4, "--yes")
    assert done == {**dry, "done": True}
    assert sorted(ids(path) + dry["episodes"]) == ["run-0", "run-1", "run-2", "run-3"]
    assert answer("prune", path, "--steps", 4, "--yes")["episodes"] == []


def test_prune_prints_its_plan_and_result(path):
    done = seasoned("prune", path, "--bytes", 0, "--dry-run")
    assert done.exit_code == 0
    assert re.search(r"would be removed +4 episodes \(4 by value\): run-", done.stdout)
    assert re.search(r"steps +8 to 0\n", done.stdout)
    done = seasoned("prune", path, "--bytes", 0, "-y")
    assert re.search(r"removed +4 episodes", done.stdout)
    assert "seasoned memory compact" in done.stdout
    assert "the namespace fits the budget" in seasoned("prune", path, "--bytes", 0, "-y").stdout


@pytest.mark.parametrize(
    ("size", "n_bytes"), [("4k", 4000), ("4 K", 4000), ("1.5Mi", 3 * 2**19), ("2GB", 2 * 10**9), ("0", 0), ("7", 7)]
)
def test_size_with_a_unit_is_parsed(size, n_bytes):
    assert size_bytes("--bytes", size) == n_bytes


@pytest.mark.parametrize("size", ["", "k", "-1", "1.5", "1e3", "4m", "4 kilo", "\u0664k", "9" * 16])
def test_wrong_size_is_refused_with_the_form(size):
    with pytest.raises(InputError, match=r"--bytes .*4k, 20M"):
        size_bytes("--bytes", size)


@pytest.mark.parametrize(
    ("age", "goes"), [("30d", 0), ("1", 0), ("12h", 0), ("0s", 4), ("0", 4), ("1w", 0), ("0.0d", 4)]
)
def test_prune_by_age(path, age, goes):
    assert len(answer("prune", path, "--age", age, "--dry-run")["episodes"]) == goes


# ------------------------------------------------------------------------------- quarantine

SELECTED = [
    (["--episode", "run-1"], {"episode": "run-1"}, ["run-0", "run-2", "run-3"]),
    (["--task", "checkout"], {"task": "checkout"}, []),
    (["--model", "model 1"], {"model": "model 1"}, ["run-0", "run-2"]),
    (["--policy", "jitrl", "--arm", "holdout"], {"policy": "jitrl", "arm": "holdout"}, ["run-0", "run-1", "run-2"]),
    (["--subject", "customer-0"], {"subject": "customer-0"}, ["run-2", "run-3"]),
    (["--source", "judge"], {"source": "judge"}, ["run-0", "run-1", "run-2", "run-3"]),
    (["--since", "2020-01-01T00:00Z"], {"since": 1577836800.0}, []),
    (["--until", "0"], {"until": 0.0}, ["run-0", "run-1", "run-2", "run-3"]),
    (
        ["--since", "1577836800", "--until", "1577836801.5"],
        {"since": 1577836800.0, "until": 1577836801.5},
        ["run-0", "run-1", "run-2", "run-3"],
    ),
    (["--since", "2020-01-01T01:00:00+01:00"], {"since": 1577836800.0}, []),
]


@pytest.mark.parametrize(("options", "selection", "left"), SELECTED, ids=ascii)
def test_quarantine_and_release(path, options, selection, left):
    before = content(path)
    expected = ask(path, lambda memory: memory.selected(Selection(**selection)))
    dry = answer("quarantine", path, "--reason", "a bad day", *options, "--dry-run")
    assert dry == {"id": None, "episodes": expected[0], "feedback": expected[1]}
    assert content(path) == before
    made = answer("quarantine", path, "--reason", "a bad day", *options)
    assert {**made, "id": None} == dry
    assert visible_episodes(path) == left
    [listed] = answer("quarantines", path)["quarantines"]
    assert (listed["episodes"], listed["feedback"]) == expected
    assert (listed["id"], listed["selection"], listed["reason"]) == (made["id"], selection, "a bad day")
    assert listed["lifted_at"] is None
    assert answer("release", path, made["id"]) == {"id": made["id"]}
    assert answer("release", path, made["id"]) == {"id": made["id"]}
    assert visible_episodes(path) == ["run-0", "run-1", "run-2", "run-3"]
    assert answer("quarantines", path)["quarantines"][0]["lifted_at"] > 0


def test_quarantine_prints_its_selection_and_id(path):
    done = seasoned("quarantine", path, "--reason", "x\x1b[31mred", "--model", "model 1", "--dry-run")
    assert done.stdout == "2 episodes and 0 feedback events are selected\n"
    id_ = seasoned("quarantine", path, "--reason", "x\x1b[31mred", "--model", "model 1").stdout.strip()
    listed = seasoned("quarantines", path).stdout
    assert id_ in listed
    assert "model model 1" in listed
    assert "\x1b" not in listed
    assert seasoned("release", path, id_).stdout == f"released {id_}\n"


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("--task", "chekout"), "no episode has the task 'chekout'. Did you mean 'checkout'?"),
        (("--source", "humann"), "no feedback has the source 'humann'. Did you mean 'human'?"),
        (("--arm", "memory", "--model", "x"), "no episode has the model 'x'. Known are: model 0, model 1."),
    ],
)
def test_empty_quarantine_prints_hints(path, options, hint):
    dry = seasoned("quarantine", path, "--reason", "x", *options, "--dry-run")
    assert dry.stderr.splitlines() == [hint]
    done = seasoned("quarantine", path, "--reason", "x", *options)
    id_ = done.stdout.strip()
    first, second, third = done.stderr.splitlines()
    assert (done.exit_code, first) == (0, hint)
    assert second.startswith("0 episodes and 0 feedback events quarantined now; data stored later is")
    assert third.endswith(f"seasoned memory release {path} {id_}")
    assert "seasoned memory quarantines" in seasoned("release", path, "zz").stderr


def test_quarantine_takes_the_start_of_an_id(path):
    with Memory.open(path, namespace="shop") as memory:
        memory.add(Episode("checkout", [Step(CART, "click(back)")], "4f2a-long"))
    answer("quarantine", path, "--reason", "why", "--episode", "4f")
    assert answer("quarantines", path)["quarantines"][0]["selection"] == {"episode": "4f2a-long"}
    assert seasoned("quarantine", path, "--reason", "why", "--episode", "run-").exit_code == 2


# ------------------------------------------------------------------------------- erase


def test_erase_removes_the_data_of_its_dry_run(path, tmp_path):
    with Memory.open(path, namespace="other") as memory:
        memory.add(Episode("t", [Step("page", "go")], subject="customer-0"))
    ask(path, lambda memory: memory.record_copy("export", "/exports/monday.jsonl"))
    before = content(path)
    dry = answer("erase", path, "--subject", "customer-0", "--dry-run", "-n", "shop")
    assert content(path) == before
    assert (dry["episodes"], dry["steps"], dry["feedback"], dry["done"]) == (["run-0", "run-1"], 4, 2, False)
    assert [(copy["kind"], copy["path"]) for copy in dry["copies"]] == [("export", "/exports/monday.jsonl")]
    assert dry["other_namespaces"] == ["other"]
    assert b"secret-0" in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert answer("erase", path, "--subject", "customer-0", "--yes", "-n", "shop") == {
        **dry,
        "done": True,
        "rewriting": {"rewritten": True, "remains": None},
    }
    assert ids(path) == ["run-2", "run-3"]
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"secret-0" not in left
    assert b"secret-2" in left
    assert seasoned("erase", path, "--subject", "customer-0", "--yes", "-n", "shop").exit_code == 3


def test_erase_lists_exports_and_backups(path, tmp_path):
    export, backup = tmp_path / "agent.jsonl", tmp_path / "copy.db"
    assert seasoned("export", path, "-o", export).exit_code == 0
    assert seasoned("backup", path, backup).exit_code == 0
    done = seasoned("erase", path, "--subject", "customer-0", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.search(r"erased +2 episodes: run-0, run-1\n", done.stdout)
    for file in (export, backup):
        assert str(file) in done.stdout
        assert b"secret-0" in file.read_bytes()  # as the list says
    assert "answers.db" in done.stdout
    assert "customer-0" not in seasoned("export", path).stdout


def test_erase_without_copies_prints_so(path):
    assert "no export or backup on record" in seasoned("erase", path, "--subject", "customer-1", "--dry-run").stdout


# ------------------------------------------------------------------------------- confirmation


def at_a_terminal(python, typed, *args):
    """Run the command with a terminal for stdin; return its exit code and what it printed."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*python, "-c", "from seasoned.cli import main; main()", "memory", *map(str, args)],
        stdin=child,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(child)
    os.write(parent, typed.encode())
    out, err = process.communicate(timeout=60)
    os.close(parent)
    return process.returncode, out, err


@pytest.mark.parametrize(
    "command", [["prune", "--steps", "4"], ["erase", "--subject", "customer-0"]], ids=lambda c: c[0]
)
def test_confirmation_is_asked_at_a_terminal(path, command, warm_python):
    before = content(path)
    for typed in ("n\n", "\n"):
        code, out, err = at_a_terminal(warm_python, typed, command[0], path, *command[1:])
        assert (code, out) == (130, "")
        assert "2 episodes with 4 steps" in err
        assert content(path) == before
    code, out, err = at_a_terminal(warm_python, "y\n", command[0], path, *command[1:])
    assert code == 0, err
    assert "2 episodes" in out
    assert len(ids(path)) == 2


def test_empty_pruning_asks_no_confirmation(path):
    code, out, err = at_a_terminal([sys.executable], "", "prune", path, "--steps", 100)
    assert (code, err) == (0, "")
    assert "the namespace fits the budget" in out


# ------------------------------------------------------------------------------- bad input

WHY = ["--reason", "why"]
BAD = [
    (2, ["prune", "MEMORY", "--steps", "4"]),  # nobody to ask
    (2, ["erase", "MEMORY", "--subject", "customer-0"]),
    (2, ["prune", "MEMORY", "--yes"]),
    (2, ["prune", "MEMORY", "--dry-run"]),
    (2, ["prune", "MEMORY", "--steps", "-1", "--yes"]),
    (2, ["prune", "MEMORY", "--steps", "many", "--yes"]),
    (2, ["prune", "MEMORY", "--steps", "1.5", "--yes"]),
    (2, ["prune", "MEMORY", "--bytes", "-1", "--yes"]),
    (2, ["prune", "MEMORY", "--bytes", "1XB", "--yes"]),
    (2, ["prune", "MEMORY", "--age", "-1d", "--yes"]),
    (2, ["prune", "MEMORY", "--age", "soon", "--yes"]),
    (2, ["prune", "MEMORY", "--age", "1y", "--yes"]),
    (2, ["prune", "MEMORY", "--age", "nan", "--yes"]),
    (2, ["prune", "MEMORY", "--age", "", "--yes"]),
    (2, ["prune", "MEMORY", "--age", "9" * 400, "--yes"]),
    (2, ["prune", "MEMORY", "--age", LONE, "--yes"]),
    (2, ["prune"]),
    (2, ["prune", "MEMORY", "--step", "1", "--force"]),
    (3, ["prune", "NO.db", "--steps", "1", "--yes"]),
    (3, ["prune", "MEMORY", "-n", "shpo", "--steps", "1", "--yes"]),
    (4, ["prune", "FOREIGN", "--steps", "1", "--yes"]),
    (4, ["prune", "FOREIGN", "--steps", "1", "--dry-run"]),
    (2, ["quarantine", "MEMORY", "--task", "checkout"]),
    (2, ["quarantine", "MEMORY", "--reason", " ", "--task", "checkout"]),
    (2, ["quarantine", "MEMORY", "--reason", LONE, "--task", "checkout"]),
    (2, ["quarantine", "MEMORY", *WHY]),
    (2, ["quarantine", "MEMORY", *WHY, "--source", "judge", "--task", "checkout"]),
    (2, ["quarantine", "MEMORY", *WHY, "--source", "judge", "--episode", "run-1"]),
    (2, ["quarantine", "MEMORY", *WHY, "--task", ""]),
    (2, ["quarantine", "MEMORY", *WHY, "--task", LONE]),
    (2, ["quarantine", "MEMORY", *WHY, "--since", "yesterday"]),
    (2, ["quarantine", "MEMORY", *WHY, "--since", "2026-02-30"]),
    (2, ["quarantine", "MEMORY", *WHY, "--until", "nan"]),
    (2, ["quarantine", "MEMORY", *WHY, "--until", "-inf"]),
    (2, ["quarantine", "MEMORY", *WHY, "--until", LONE]),
    (2, ["quarantine", "MEMORY", *WHY, "--since", "2026-02-01", "--until", "2026-01-01"]),
    (2, ["quarantine", "MEMORY", *WHY, "--episode", "run-"]),
    (3, ["quarantine", "MEMORY", *WHY, "--episode", "nope"]),
    (3, ["quarantine", "MEMORY", *WHY, "--episode", "nope", "--dry-run"]),
    (3, ["quarantine", "NO.db", *WHY, "--task", "checkout"]),
    (4, ["quarantine", "FOREIGN", *WHY, "--task", "checkout"]),
    (3, ["quarantines", "NO.db"]),
    (3, ["quarantines", "MEMORY", "-n", "shpo"]),
    (3, ["release", "MEMORY", "nope"]),
    (2, ["release", "MEMORY", LONE]),
    (2, ["release", "MEMORY"]),
    (3, ["release", "NO.db", "x"]),
    (2, ["erase", "MEMORY", "--yes"]),
    (2, ["erase", "MEMORY", "--subject", " ", "--yes"]),
    (2, ["erase", "MEMORY", "--subject", LONE, "--yes"]),
    (3, ["erase", "MEMORY", "--subject", "customer-7", "--yes"]),
    (3, ["erase", "MEMORY", "--subject", "customer", "--yes"]),
    (3, ["erase", "MEMORY", "--subject", "customer-7", "--dry-run"]),
    (3, ["erase", "NO.db", "--subject", "customer-0", "--yes"]),
    (3, ["erase", "MEMORY", "-n", "shpo", "--subject", "customer-0", "--yes"]),
    (4, ["erase", "FOREIGN", "--subject", "customer-0", "--yes"]),
]


@pytest.mark.parametrize(("code", "args"), BAD, ids=[ascii(" ".join(args))[:70] for _, args in BAD])
def test_bad_input_ends_with_its_exit_code_and_changes_nothing(code, args, path, tmp_path, monkeypatch):
    foreign, folder = tmp_path / "notes.txt", tmp_path / "folder"
    foreign.write_bytes(b"\xff\xfe no memory " * 100)
    folder.mkdir()
    paths = {"MEMORY": path, "FOREIGN": foreign}
    before, files = content(path), sorted(file.name for file in tmp_path.iterdir())
    monkeypatch.chdir(folder)
    done = seasoned(*(paths.get(arg, arg) for arg in args))
    assert done.exit_code == code, done.stderr or done.exception
    assert done.stdout == ""
    assert re.fullmatch(r"error: .+: .+\. .+\n|error: .+\nSee: seasoned memory .*--help\n", done.stderr)
    assert list(folder.iterdir()) == []
    assert content(path) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == files


def test_several_namespaces_need_one_named(path):
    with Memory.open(path, namespace="other") as memory:
        memory.add(Episode("t", [Step("page", "go")], subject="customer-0"))
    for args in (
        ["prune", "--steps", "1", "--yes"],
        ["quarantine", *WHY, "--task", "t"],
        ["quarantines"],
        ["erase", "--subject", "customer-0", "--yes"],
    ):
        done = seasoned(args[0], path, *args[1:])
        assert done.exit_code == 2
        assert "other, shop" in done.stderr
