"""Runs without a score await feedback where others have one; a scored run counts, whatever its score."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli
from seasoned.memory import FeedbackPolicy

MESSAGES = [{"role": "user", "content": "pool exhausted"}, {"role": "assistant", "content": "restart it"}]


def written(tmp_path, *scores, name="runs.jsonl"):
    path = tmp_path / name
    runs = [{"id": f"{name} {at}", "task": "oncall", "messages": MESSAGES} for at in range(len(scores))]
    scored = [run if score is None else {**run, "score": score} for run, score in zip(runs, scores, strict=True)]
    path.write_text("".join(json.dumps(run) + "\n" for run in scored))
    return path


def imported(target, *args):
    done = CliRunner().invoke(cli, ["memory", "import", str(target), *map(str, args), "--create"])
    assert done.exit_code == 0, done.output
    with Memory.open(target) as memory:
        memory.verify()
        return [one.id.rpartition(" ")[2] for one in memory.awaiting()], done.output


@pytest.mark.parametrize(
    ("scores", "options", "awaiting"),
    [
        ([-0.5, None, 1.0, None], [], ["1", "3"]),
        ([None, None, 0.0], [], ["0", "1"]),  # the first score comes later, and is 0
        ([None, None], [], []),  # no run has one: they count as they are
        ([1.0, None], ["--counts"], []),
        ([1.0, None], ["--awaits-feedback"], ["0", "1"]),
        ([None, None], ["--rewards", "default"], ["0", "1"]),
    ],
)
def test_a_run_without_a_score_awaits_feedback_where_others_have_one(tmp_path, scores, options, awaiting):
    found, output = imported(tmp_path / "a.db", written(tmp_path, *scores), *options)
    assert found == awaiting
    assert ("no evidence until then" in output) == (bool(awaiting) and "--awaits-feedback" not in options)


def test_runs_without_a_score_await_feedback_where_the_memory_has_rewards(tmp_path):
    with Memory.open(tmp_path / "a.db") as memory:
        memory.add(Episode("other", [Step("x", "y", 1.0)]))
    assert imported(tmp_path / "a.db", written(tmp_path, None))[0] == ["0"]


def test_scored_failures_count_where_feedback_is_required(tmp_path):
    with Memory.open(tmp_path / "a.db") as memory:
        memory.feedback(memory.add(Episode("other", [Step("x", "y")])), 1.0)
    assert imported(tmp_path / "a.db", written(tmp_path, 0.0, None, 1.0))[0] == ["1"]


@pytest.mark.parametrize(("options", "awaiting"), [([], ["0", "1"]), (["--counts"], [])])
def test_scored_failures_await_feedback_where_it_is_required_only_later(tmp_path, options, awaiting):
    path = written(tmp_path, 0.0, 0.0)
    assert imported(tmp_path / "a.db", path, *options)[0] == []
    with Memory.open(tmp_path / "a.db") as memory:
        memory.feedback(memory.add(Episode("other", [Step("x", "y")])), 1.0)
    assert imported(tmp_path / "a.db", path, *options)[0] == awaiting


def test_the_policy_of_the_owner_decides_for_runs_without_a_score(tmp_path):
    with Memory.open(tmp_path / "a.db") as memory:
        memory.set_feedback_policy(FeedbackPolicy(required=False))
    assert imported(tmp_path / "a.db", written(tmp_path, 1.0, None))[0] == []


def test_runs_imported_again_after_the_first_rewards_are_left_as_stored(tmp_path):
    plain, scored = written(tmp_path, None, None), written(tmp_path, 1.0, name="scored.jsonl")
    imported(tmp_path / "a.db", plain)
    imported(tmp_path / "a.db", scored)
    assert imported(tmp_path / "a.db", plain)[0] == []
    with Memory.open(tmp_path / "a.db") as memory:
        assert len(memory.episodes()) == 3


def test_many_runs_before_the_first_score_are_kept_in_order_beside_the_memory(tmp_path):
    scores = [None] * 40 + [1.0]
    path = written(tmp_path, *scores)
    long = "x" * 500_000
    path.write_text(path.read_text().replace("restart it", long))
    awaiting, _ = imported(tmp_path / "a.db", path)
    assert awaiting == [str(at) for at in range(40)]
    with Memory.open(tmp_path / "a.db") as memory:
        assert [one.id for one in memory.episodes()] == [f"runs.jsonl {at}" for at in range(41)]
        assert memory.episodes()[3].steps[0].action == long


@pytest.mark.parametrize(("also_played", "unstarted"), [(False, True), (True, False)])
def test_runs_without_a_first_turn_are_reported_as_such(tmp_path, also_played, unstarted):
    failed = {"task_id": 0, "trial": 0, "reward": 0.0, "info": {"error": "boom", "traceback": "x"}, "traj": []}
    played = {"task_id": 1, "trial": 0, "info": {}, "traj": MESSAGES}
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([failed, played] if also_played else [failed]))
    _, output = imported(tmp_path / "agent.db", path)
    told = " ".join(output.split())
    assert ("the runs ended before their first turn" in told) is unstarted
    assert ("--reward" in told) is not unstarted
