"""`seasoned memory`: output equals the library's results; bad input ends with its exit code and changes nothing."""

from __future__ import annotations

import json
import math
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from seasoned import Episode, JitRL, Memory, Selection, Step
from seasoned.cli.exit_codes import EXIT_CODES
from seasoned.cli.format.json_records import decision_record
from seasoned.cli.main import cli
from seasoned.cli.memory.group import HEADINGS
from seasoned.cli.memory.group import memory as memory_group
from seasoned.errors import InputError
from seasoned.policies import ModelAlone
from seasoned.states import ALL_MASKS, NUMBERS, TokenEncoder
from seasoned.states.encoder_names import named_encoder
from seasoned.types import Label, Prior, Thumbs

CART = "cart total:12"
STORED_PRIOR = {"click(checkout)": -0.5, "click(back)": -1.5}
PAY = "page:pay\n\x1b[31mred " + "x" * 200
ESC = "\x1b"


def episode(number, action, reward, **fields):
    steps = [Step(CART, "click(checkout)", 0.0, prior=STORED_PRIOR), Step(PAY, action, reward)]
    return Episode("checkout", steps, f"run-{number}", "page:done", **fields)


def seasoned(*args, stdin=None):
    return CliRunner().invoke(cli, [str(arg) for arg in args], input=stdin)


def answer(*args, stdin=None):
    """Return the JSON document that a successful command prints."""
    done = seasoned("memory", *args, "--json", stdin=stdin)
    assert (done.exit_code, done.stderr) == (0, ""), done.stderr or done.exception
    return json.loads(done.stdout)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, namespace="shop", gamma=0.5) as memory:
        for number in range(4):
            reward = float(number % 2)
            memory.add(episode(number, "click(confirm)" if reward else "click(back)", reward, model="tiny"))
        memory.add(Episode("login", [Step("sign in", "type(name)", 0.25)], "log-1", ending="truncated"))
    return str(path)


def written(path):
    """Return the bytes of the store: the file and its log."""
    return [file.read_bytes() for file in (Path(path), Path(f"{path}-wal")) if file.exists() and file.stat().st_size]


def content_hash(path):
    with Memory.open(path, namespace="shop", create=False) as memory:
        return memory.verify().hash


# ------------------------------------------------------------------------------- reading


def test_stats_equal_those_of_the_library(path):
    stats = answer("stats", path)
    assert (stats["namespace"], stats["episodes"], stats["steps"], stats["tasks"]) == ("shop", 5, 9, 2)
    assert stats["mean_episode_reward"] == pytest.approx((0 + 1 + 0 + 1 + 0.25) / 5)


def test_list_counts_feedback_in_the_reward(path):
    answer("feedback", path, "run-1", "-0.75")
    listed = {e["id"]: e for e in answer("list", path)["episodes"]}
    assert list(listed) == ["run-0", "run-1", "run-2", "run-3", "log-1"]
    assert (listed["run-1"]["reward"], listed["run-1"]["feedback"], listed["run-1"]["total_reward"]) == (
        1.0,
        -0.75,
        0.25,
    )
    assert (listed["run-1"]["model"], listed["log-1"]["ending"], listed["run-0"]["steps"]) == ("tiny", "truncated", 2)


def test_list_by_task_and_last(path):
    ids = [e["id"] for e in answer("list", path, "--task", "checkout", "--last", 2)["episodes"]]
    assert ids == ["run-2", "run-3"]


def test_show_prints_every_step_whole(path):
    event_id = answer("feedback", path, "run-1", "-2", "--step", 0, "--source", "judge", "--author", "ada")["event_id"]
    shown = answer("show", path, "run-1")
    assert [(s["state"], s["action"], s["reward"], s["feedback"]) for s in shown["steps"]] == [
        (CART, "click(checkout)", 0.0, -2.0),
        (PAY, "click(confirm)", 1.0, 0.0),
    ]
    assert shown["steps"][0]["prior"] == {"click(checkout)": -0.5, "click(back)": -1.5}
    assert shown["final_state"] == "page:done"
    [event] = shown["events"]
    assert (event["id"], event["source"], event["author"], event["revoked_at"]) == (event_id, "judge", "ada", None)


def test_labels_count_by_their_mean_and_replace_a_thumb(path):
    with Memory.open(path, namespace="shop", create=False) as memory:
        memory.add(Episode("desk", [Step("ticket", "refunds", 0.0, prior={"refunds": -0.1, "sales": -2.4})], "desk-1"))
        memory.feedback("desk-1", Thumbs(False))
        for author, right in (("ann", "refunds"), ("bob", "refunds"), ("eve", "refunds"), ("joe", "sales")):
            memory.feedback("desk-1", Label(right), author=author)
        found = [one.experience for one in memory.search("ticket")]
    expected = {one.episode_id: one.reward for one in found}["desk-1"]
    [listed] = [one for one in answer("list", path)["episodes"] if one["id"] == "desk-1"]
    shown = answer("show", path, "desk-1")
    assert expected == listed["feedback"] == shown["feedback"] == shown["steps"][0]["feedback"] == 0.75


def test_prefix_of_one_episode_id_is_enough(path):
    assert answer("show", path, "log")["id"] == "log-1"
    done = seasoned("memory", "show", path, "run-")
    assert done.exit_code == 2
    assert "run-0, run-1, run-2, run-3" in done.stderr


def test_exact_id_goes_before_longer_ids(path):
    with Memory.open(path, namespace="shop") as memory:
        memory.add(episode("1b", "click(back)", 0.0))
    assert answer("show", path, "run-1")["id"] == "run-1"


def test_search_equals_that_of_the_library(path):
    result = answer("search", path, CART, "-k", 3, "--threshold", 0.5, "--gamma", 0.9)
    with Memory.open(path, namespace="shop") as memory:
        expected = memory.search(CART, 3, 0.5, gamma=0.9)
    assert result["gamma"] == 0.9
    assert [(n["similarity"], n["return"], n["episode_id"], n["step"]) for n in result["neighbors"]] == [
        (n.similarity, n.experience.return_, n.experience.episode_id, n.experience.step) for n in expected
    ]
    assert {n["return"] for n in result["neighbors"]} == {0.9, 0.0}


def test_dash_reads_the_state_from_stdin(path):
    result = answer("search", path, "-", stdin=f"{CART}\n")
    assert result["state"] == CART
    assert len(result["neighbors"]) == 4


def test_search_without_a_match_succeeds(path):
    assert answer("search", path, "nothing like it")["neighbors"] == []
    assert "--threshold" in seasoned("memory", "search", path, "nothing like it").stdout


def test_namespaces_and_verify_cover_all_namespaces(path):
    with Memory.open(path, namespace="other") as memory:
        memory.add(episode(0, "click(back)", 0.0))
        other = memory.verify().hash
    assert [n["namespace"] for n in answer("namespaces", path)["namespaces"]] == ["other", "shop"]
    hashes = {n["namespace"]: n["hash"] for n in answer("verify", path)["namespaces"]}
    assert hashes == {"other": other, "shop": content_hash(path)}
    assert [n["namespace"] for n in answer("verify", path, "-n", "shop")["namespaces"]] == ["shop"]
    done = seasoned("memory", "stats", path)
    assert done.exit_code == 2
    assert "other, shop" in done.stderr


def test_reading_commands_write_nothing(path):
    answer("stats", path)  # gathers the returns of this discount, once
    before = written(path)
    for command in (["stats"], ["list"], ["show", "log"], ["search", CART], ["explain"], ["verify"], ["namespaces"]):
        answer(command[0], path, *command[1:])
    seasoned("memory", "export", path)
    assert written(path) == before


class Letters:
    """An encoder that is not built in."""

    identity = "letters/v1"

    def features(self, state):
        return frozenset(state)


def test_memory_of_an_unknown_encoder_can_be_read_without_features(tmp_path):
    path = str(tmp_path / "letters.db")
    with Memory.open(path, namespace="l", encoder=Letters()) as memory:
        memory.add(episode(0, "click(back)", 0.0))
    answer("feedback", path, "run-0", "-1")
    assert answer("stats", path)["encoder"] == "letters/v1"
    assert answer("list", path)["episodes"][0]["total_reward"] == -1.0
    assert answer("show", path, "run")["id"] == "run-0"
    assert seasoned("memory", "export", path).exit_code == 0
    for command in (["search", path, CART], ["explain", path, CART], ["verify", path]):
        done = seasoned("memory", *command)
        assert done.exit_code == 4
        assert "which is not built in" in done.stderr
    with Memory.open(path, namespace="l", encoder=Letters()) as memory:
        assert memory.verify().feedback == 1


# ------------------------------------------------------------------------------- explain


def decide(path, preset, state, candidates, **options):
    with Memory.open(path, namespace="shop") as memory:
        return JitRL.preset(preset, memory).decide(state, candidates, **options)


@pytest.mark.parametrize("preset", ["default", "seed", "snippet"])
def test_explain_equals_the_policys_decision(path, preset):
    result = answer(
        "explain", path, PAY, "-c", "click(confirm)=-2.5", "-c", "a=b=-0.1", "--policy", preset, "--seed", 7
    )
    expected = decide(path, preset, PAY, {"click(confirm)": -2.5, "a=b": -0.1}, seed=7)
    assert result["prior"] == "given"
    for name in ("action", "probs", "base_probs", "advantages", "counts", "kl_nats", "mode", "n_steps", "seed"):
        assert result["decision"][name] == getattr(expected, name), name
    assert len(result["decision"]["neighbors"]) == len(expected.neighbors) > 0


def test_default_prior_is_uniform_over_known_actions(path):
    result = answer("explain", path, PAY)
    assert result["prior"] == "uniform"
    assert result["decision"]["base_probs"] == pytest.approx({"click(back)": 0.5, "click(confirm)": 0.5})
    assert "uniform over the 2 actions" in seasoned("memory", "explain", path, PAY).stdout


def test_stored_step_is_explained_with_its_prior(path):
    result = answer("explain", path, "--episode", "run-2", "--step", 0)
    expected = decide(path, "default", CART, STORED_PRIOR, task="checkout", step=0, seed=0)
    assert (result["prior"], result["episode_id"], result["step"]) == ("stored", "run-2", 0)
    assert result["decision"]["probs"] == expected.probs


def test_explain_prints_the_source_and_values_of_the_prior(path):
    candidates = {"click(confirm)": -2.5, "a=b": -0.1}
    options = [part for action, logprob in candidates.items() for part in ("-c", f"{action}={logprob}")]
    unread = {"model": None, "bounded": [], "capabilities": None}
    prior = answer("explain", path, PAY, *options)["decision"]["prior"]
    assert prior == {"method": "given", **unread, "logprobs": candidates}
    prior = answer("explain", path, PAY)["decision"]["prior"]
    uniform = {"click(back)": pytest.approx(math.log(0.5)), "click(confirm)": pytest.approx(math.log(0.5))}
    assert prior == {"method": "uniform", **unread, "logprobs": uniform}
    prior = answer("explain", path, "--episode", "run-2", "--step", 0)["decision"]["prior"]
    with Memory.open(path, namespace="shop") as memory:
        model = memory.get("run-2").model
    logprobs = {"click(checkout)": -0.5, "click(back)": -1.5}  # which of them were bounds is not stored
    assert prior == {"method": "stored", **unread, "model": model, "bounded": None, "logprobs": logprobs}


def test_decision_record_holds_the_whole_prior():
    prior = Prior({"a": -0.1, "b": -2.5}, "label", "m", ("b",), "logprobs, top 1")
    record = json.loads(json.dumps(decision_record(ModelAlone().decide("s", prior, seed=0))))
    assert record["prior"] == {
        "logprobs": {"a": -0.1, "b": -2.5},
        "method": "label",
        "model": "m",
        "bounded": ["b"],
        "capabilities": "logprobs, top 1",
    }
    assert decision_record(ModelAlone().decide("s", {"a": -0.1}, seed=0))["prior"] is None


def test_default_step_is_the_one_with_the_largest_shift(path):
    steps = [answer("explain", path, "--episode", "run-3", "--step", n)["decision"]["kl_nats"] for n in (0, 1)]
    result = answer("explain", path, "--episode", "run-3")
    assert result["decision"]["kl_nats"] == steps[result["step"]] == max(steps) > min(steps)


def test_default_episode_is_the_latest_finished_one(path):
    with Memory.open(path, namespace="shop") as memory:
        memory.add(episode(9, "click(back)", 0.0))
        memory.add(episode(10, "click(back)", 0.0, ending="aborted"))
    result = answer("explain", path)
    assert result["episode_id"] == "run-9"
    text = seasoned("memory", "explain", path).stdout
    assert f"step {result['step']} of 2 in episode run-9 where memory would shift the policy most" in " ".join(
        text.split()
    )
    assert max(map(len, text.splitlines())) <= 80


# ------------------------------------------------------------------------------- feedback


def test_feedback_prints_an_id_for_revoke(path):
    before = content_hash(path)
    event_id = seasoned("memory", "feedback", path, "run-0", "-1").stdout.strip()
    assert content_hash(path) != before
    assert answer("show", path, "run-0")["total_reward"] == -1.0
    assert seasoned("memory", "revoke", path, event_id).exit_code == 0
    shown = answer("show", path, "run-0")
    assert shown["total_reward"] == 0.0
    assert shown["events"][0]["revoked_at"] is not None
    assert "revoked" in seasoned("memory", "show", path, "run-0").stdout


# ------------------------------------------------------------------------------- export, import


def test_import_of_an_export_gives_an_equal_memory(path, tmp_path):
    answer("feedback", path, "run-0", "-1")
    out = tmp_path / "agent.jsonl"
    assert seasoned("memory", "export", path, "-o", out).exit_code == 0
    assert out.read_bytes() == seasoned("memory", "export", path).stdout_bytes
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []
    copy = tmp_path / "copy.db"
    result = answer("import", copy, out, "--create")
    assert result == {"namespace": "shop", "episodes": 5, "feedback": 1}
    assert content_hash(str(copy)) == content_hash(path)
    assert answer("import", copy, "-", stdin=out.read_text()) == {"namespace": "shop", "episodes": 0, "feedback": 0}


def test_import_creates_the_namespace_with_the_exported_encoder_and_discount(path, tmp_path):
    encoder = TokenEncoder(masks=[NUMBERS])
    with Memory.open(tmp_path / "masked.db", namespace="m", encoder=encoder, gamma=0.25) as memory:
        memory.add(episode(0, "click(back)", 0.0))
    lines = seasoned("memory", "export", tmp_path / "masked.db").stdout
    answer("import", path, "-", "--create", stdin=lines)
    stats = answer("stats", path, "-n", "m")
    assert (stats["encoder"], stats["gamma"], stats["episodes"]) == (encoder.identity, 0.25, 1)


def test_import_creates_nothing_without_create(path, tmp_path):
    lines = seasoned("memory", "export", path).stdout
    assert seasoned("memory", "import", tmp_path / "new.db", "-", stdin=lines).exit_code == 3
    assert seasoned("memory", "import", tmp_path / "new.db", "-", "--create", stdin=lines + "{}\n").exit_code == 2
    assert not (tmp_path / "new.db").exists()


def test_failed_export_leaves_the_old_file(path, tmp_path):
    before = written(path)
    assert seasoned("memory", "export", path, "-o", path).exit_code == 2
    assert written(path) == before
    assert seasoned("memory", "export", path, "-o", tmp_path / "no" / "x.jsonl").exit_code == 2
    assert seasoned("memory", "export", path, "-o", tmp_path).exit_code == 2


def test_export_overwrites_only_with_overwrite(path, tmp_path):
    text, other, empty = tmp_path / "thesis.txt", tmp_path / "other.db", tmp_path / "empty"
    text.write_text("mine")
    empty.touch()
    Memory.open(other).close()
    before = written(path)
    for target in (text, other):
        content = target.read_bytes()
        done = seasoned("memory", "export", path, "-o", target)
        assert (done.exit_code, target.read_bytes()) == (2, content)
        assert f"{target} exists: nothing is overwritten unasked" in done.stderr
        assert "--overwrite" in done.stderr
    assert written(path) == before  # no copy is noted that was not made
    for target, options in ((empty, ()), (text, ("--overwrite",))):
        assert seasoned("memory", "export", path, "-o", target, *options).exit_code == 0
        assert target.read_bytes() == seasoned("memory", "export", path).stdout_bytes
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


# ------------------------------------------------------------------------------- unknown names


def test_unknown_task_gets_a_suggestion(path):
    done = seasoned("memory", "list", path, "--task", "chekout")
    assert (done.exit_code, done.stdout) == (0, "no episode has the task 'chekout'. Did you mean 'checkout'?\n")
    assert answer("list", path, "--task", "chekout") == {"episodes": []}


def test_stats_print_the_encoders_name_and_the_episodes_of_the_mean(path, tmp_path):
    assert answer("stats", path)["mean_over_episodes"] == 5
    with Memory.open(path, namespace="shop") as memory:
        memory.quarantine(Selection(episode="run-0"), "x")
        memory.add(Episode("login", [Step("page:login", "wait", 1.0)], "gone", ending="aborted"))
    assert answer("stats", path)["mean_over_episodes"] == 4
    shown = seasoned("memory", "stats", path).stdout
    assert re.search(r"^mean episode reward  0\.5625, over 4 episodes ", shown, re.MULTILINE)
    Memory.open(tmp_path / "masked.db", encoder=TokenEncoder(masks=ALL_MASKS)).close()
    for command in ("stats", "namespaces"):
        shown = seasoned("memory", command, tmp_path / "masked.db").stdout
        assert "masked\n" in shown
        assert max(map(len, shown.splitlines())) < 120


def test_misspelt_encoder_gets_a_suggestion():
    assert named_encoder("masked").identity == TokenEncoder(masks=ALL_MASKS).identity
    with pytest.raises(InputError, match=r"must be words, masked, .*Did you mean 'masked'"):
        named_encoder("maskd")


# ------------------------------------------------------------------------------- bad input

LONE = "a\udc80b"
BAD = [
    (3, ["stats", "NO.db"]),
    (3, ["stats", "MEMORY", "-n", "shpo"]),
    (2, ["stats", "MEMORY", "-n", LONE]),
    (4, ["stats", "FOREIGN"]),
    (4, ["stats", "FOLDER"]),
    (3, ["stats", LONE]),
    (2, ["stats"]),
    (2, ["stats", "MEMORY", "--jsn"]),
    (4, ["stats", "postgresql://host/db"]),
    (4, ["verify", "FOREIGN"]),
    (3, ["verify", "NO.db"]),
    (3, ["namespaces", "NO.db"]),
    (2, ["list", "MEMORY", "--last", "0"]),
    (2, ["list", "MEMORY", "--last", "many"]),
    (2, ["list", "MEMORY", "--task", LONE]),
    (2, ["list", "MEMORY", "--task", " "]),
    (3, ["show", "MEMORY", "nope"]),
    (2, ["show", "MEMORY", ""]),
    (2, ["show", "MEMORY", LONE]),
    (2, ["search", "MEMORY", " "]),
    (2, ["search", "MEMORY", LONE]),
    (2, ["search", "MEMORY", CART, "-k", "0"]),
    (2, ["search", "MEMORY", CART, "--threshold", "1.5"]),
    (2, ["search", "MEMORY", CART, "--threshold", "nan"]),
    (2, ["search", "MEMORY", CART, "--gamma", "2"]),
    (2, ["explain", "MEMORY", CART, "-c", "click(pay)"]),
    (2, ["explain", "MEMORY", CART, "-c", "click(pay)=much"]),
    (2, ["explain", "MEMORY", CART, "-c", "click(pay)=nan"]),
    (2, ["explain", "MEMORY", CART, "-c", "=-1"]),
    (2, ["explain", "MEMORY", CART, "-c", "a=-1", "-c", "a=-2"]),
    (2, ["explain", "MEMORY", CART, "-c", f"{LONE}=-1"]),
    (2, ["explain", "MEMORY", CART, "--policy", "best"]),
    (2, ["explain", "MEMORY", CART, "--seed", "-1"]),
    (2, ["explain", "MEMORY", CART, "--episode", "run-1"]),
    (2, ["explain", "MEMORY", CART, "--step", "0"]),
    (3, ["explain", "MEMORY", "nothing like it"]),
    (3, ["explain", "MEMORY", "--episode", "nope"]),
    (3, ["explain", "MEMORY", "--episode", "run-1", "--step", "2"]),
    (3, ["explain", "MEMORY", "--step", "-1"]),
    (2, ["feedback", "MEMORY", "run-1", "nan"]),
    (2, ["feedback", "MEMORY", "run-1", "-inf"]),
    (2, ["feedback", "MEMORY", "run-1", "good"]),
    (2, ["feedback", "MEMORY", "run-1", "1", "--sorce", "ada"]),
    (2, ["feedback", "MEMORY", "run-1", "1", "--source", " "]),
    (2, ["feedback", "MEMORY", "run-1", "1", "--author", LONE]),
    (2, ["feedback", "MEMORY", "run-", "1"]),
    (3, ["feedback", "MEMORY", "nope", "1"]),
    (3, ["feedback", "MEMORY", "run-1", "1", "--step", "2"]),
    (3, ["feedback", "MEMORY", "run-1", "1", "--step", "-1"]),
    (3, ["feedback", "MEMORY", "run-1", "1", "--step", "99999999999999999999"]),
    (3, ["feedback", "NO.db", "run-1", "1"]),
    (3, ["revoke", "MEMORY", "nope"]),
    (2, ["revoke", "MEMORY", LONE]),
    (3, ["export", "NO.db"]),
    (3, ["export", "MEMORY", "-n", "shpo"]),
    (3, ["import", "MEMORY", "NO.jsonl"]),
    (2, ["import", "MEMORY", "FOLDER"]),
    (2, ["import", "MEMORY", "FOREIGN"]),
    (2, ["import", "MEMORY", "-"]),
    (3, ["import", "MEMORY", "EMPTY", "-n", "shpo"]),
    (4, ["import", "FOREIGN", "EMPTY", "--create"]),
]


@pytest.mark.parametrize(("code", "args"), BAD, ids=[ascii(" ".join(args)) for _, args in BAD])
def test_bad_input_ends_with_its_exit_code_and_changes_nothing(code, args, path, tmp_path, monkeypatch):
    foreign, folder, empty = tmp_path / "notes.txt", tmp_path / "folder", tmp_path / "empty.jsonl"
    foreign.write_bytes(b"\xff\xfe no memory " * 100)
    folder.mkdir()
    header = {"type": "header", "format": "seasoned.memory/1", "episodes": 0, "feedback": 0}
    empty.write_text(json.dumps(header) + "\n")
    paths = {"MEMORY": path, "FOREIGN": foreign, "FOLDER": folder, "EMPTY": empty}
    before, files = content_hash(path), sorted(p.name for p in tmp_path.iterdir())
    monkeypatch.chdir(folder)
    done = seasoned("memory", *(paths.get(arg, arg) for arg in args), stdin=b"\xff\xff{")
    assert list(folder.iterdir()) == []
    assert done.exit_code == code, done.stderr
    assert done.stdout == ""
    # Ours say the value, the rule and the next step; click's own say where the help is.
    assert re.fullmatch(r"error: .+: .+\. .+\n|error: .+\nSee: seasoned memory .*--help\n", done.stderr)
    assert content_hash(path) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == files


# ------------------------------------------------------------------------------- a real shell


def shell(*args, stdin=None, env=None, python=(sys.executable,)):
    return subprocess.run(
        [*python, "-c", "from seasoned.cli import main; main()", *map(str, args)],
        input=stdin,
        capture_output=True,
        check=False,
        env={**os.environ, **(env or {})},
    )


def test_pipe_gets_plain_lines(path, warm_python):
    for command in (["list", path], ["show", path, "run-1"], ["search", path, PAY], ["explain", path]):
        done = shell("memory", *command, env={"FORCE_COLOR": "1", "TERM": "xterm-256color"}, python=warm_python)
        assert (done.returncode, done.stderr) == (0, b"")
        text = done.stdout.decode()
        assert ESC not in text
        assert "x" * 150 not in text, "a long state is cut to a line"
    rows = shell("memory", "list", path).stdout.decode().splitlines()
    assert [row.split()[0] for row in rows] == ["id", "run-0", "run-1", "run-2", "run-3", "log-1"]


def test_terminal_gets_a_table_with_escaped_states(path, warm_python):
    parent, child = pty.openpty()
    code = "from seasoned.cli import main; main()"
    env = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    done = subprocess.run(
        [*warm_python, "-c", code, "memory", "show", path, "run-1"], stdout=child, stderr=child, check=False, env=env
    )
    os.close(child)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    assert done.returncode == 0
    assert "───" in shown
    assert "\x1b[31m" not in shown
    assert r"\x1b[31mred" in shown


def test_closed_pipe_is_no_error(path, warm_python):
    with Memory.open(path, namespace="shop") as memory:
        memory.add_many(episode(f"long-{n}", "click(back)", 0.0) for n in range(400))
    for command in ("list", "export"):
        writer = subprocess.Popen(
            [*warm_python, "-c", "from seasoned.cli import main; main()", "memory", command, path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        writer.stdout.readline()
        writer.stdout.close()
        assert (writer.wait(), writer.stderr.read()) == (0, b"")
        writer.stderr.close()


def test_bytes_outside_utf8_are_refused(path, warm_python):
    done = shell("memory", "search", path, b"\xff\xfe".decode(errors="surrogateescape"), python=warm_python)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: state has a lone surrogate")
    done = shell("memory", "search", path, "-", stdin=b"\xff\xfe")
    assert (done.returncode, done.stderr[:12]) == (2, b"error: stdin")


def test_unencodable_character_is_printed_as_its_code_point(path):
    with Memory.open(path, namespace="shop") as memory:
        memory.add(Episode("vu \u65e5", [Step("page:\u65e5", "klick")]))
    done = shell("memory", "list", path, env={"PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"vu \u65e5" in done.stdout


# ------------------------------------------------------------------------------- help


COMMANDS = [name for names in HEADINGS.values() for name in names]


@pytest.mark.parametrize("columns", [80, 120])
def test_help_lists_each_command_once_under_its_heading(columns, warm_python):
    lines = shell("memory", "--help", env={"COLUMNS": str(columns)}, python=warm_python).stdout.decode().splitlines()
    assert max(map(len, lines)) <= columns
    sections, heading = {}, None
    for line in lines:
        if line.endswith(":") and not line.startswith(" "):
            heading = line[:-1]
        elif line == "  Example:":
            break
        elif line and heading in HEADINGS:
            name, text = line.split(maxsplit=1)
            sections.setdefault(heading, []).append(name)
            assert text.endswith(".") and not text.endswith("..."), line
    assert sections == {heading: list(names) for heading, names in HEADINGS.items()}


def test_command_loads_its_own_module_only(warm_python):
    script = (
        "import sys; from seasoned.cli.main import cli\n"
        "try: cli(['memory', 'stats', '--help'])\n"
        "except SystemExit: pass\n"
        "loaded = [name for name in sys.modules if name.startswith('seasoned.cli.memory.')]\n"
        "assert 'seasoned.cli.memory.inspect' in loaded and 'seasoned.cli.memory.judge' not in loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_an_example_and_all_options(name):
    done = seasoned("memory", name, "--help")
    assert done.exit_code == 0
    help_text, _, example = done.stdout.partition("Example:\n")
    assert f"seasoned memory {name} " in example.splitlines()[0]
    assert memory_group.get_command(click.Context(memory_group), name).help
    short = memory_group.get_command(click.Context(memory_group), name).get_short_help_str(60)
    assert not short.endswith("...")
    for parameter in memory_group.get_command(click.Context(memory_group), name).params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in help_text


# ------------------------------------------------------------------------------- documentation


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "command-line.md"


def test_page_lists_the_exit_codes():
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(str(code), meaning) for code, meaning, _ in EXIT_CODES]
