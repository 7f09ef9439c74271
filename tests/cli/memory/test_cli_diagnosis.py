"""`seasoned memory audit`, `doctor`, `evaluate`, `drift`: output and exit codes."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import pytest
from click.testing import CliRunner

from seasoned import Episode, JitRL, Memory, Step
from seasoned.cli.main import cli
from seasoned.lab.diagnosis.flip_audit import audit
from seasoned.lab.diagnosis.policy_evaluation import evaluate

PRIOR = {"back": -0.5, "pay": -0.93}


def seasoned(*args):
    return CliRunner().invoke(cli, ["memory", *map(str, args)])


def answer(*args, code=0):
    done = seasoned(*args, "--json")
    assert (done.exit_code, done.stderr) == (code, ""), done.stderr or done.exception
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return a memory of sixty episodes of the preset means: paying is right, but the model prefers going back."""
    file = tmp_path_factory.mktemp("diagnosis") / "agent.db"
    with Memory.open(file, gamma=0.5) as memory:
        policy = JitRL.preset("means", memory)
        for number in range(60):
            with memory.episode(task="checkout", id=f"e{number}") as episode:
                for step, page in enumerate(("a cart with things", "the form for paying")):
                    decision = policy.decide(page, PRIOR, step=step, seed=number)
                    episode.record(page, decision, float(decision.action == "pay"))
    return str(file)


def test_audit_prints_flips_and_their_outcomes(path):
    with Memory.open(path) as memory:
        expected = audit(memory, JitRL)
    report = answer("audit", path)
    assert len(report["flips"]) == len(expected.flips) > 20
    assert report["flips"][-1] == {
        "episode_id": "e59",
        "step": 1,
        "base_action": "back",
        "memory_action": "pay",
        **{
            name: getattr(expected.flips[-1], name)
            for name in ("taken_action", "took", "n_neighbors", "advantage", "kl_nats", "return_")
        },
    }
    assert report["total"] == dataclasses.asdict(expected.total)
    done = seasoned("audit", path, "--flips", 2)
    assert done.exit_code == 0
    assert f"flipped  {len(expected.flips)} decisions" in done.stdout
    assert len(re.findall(r" neighbours?, A ", done.stdout)) == 2
    assert "e59 step 1: taken was" in done.stdout
    assert f"{expected.total.after_memory.mean:.4g}" in done.stdout
    verdict = " ".join(done.stdout.split("\nverdict: ")[1].split())
    assert expected.total.difference.low > 0
    assert verdict.startswith("memory's actions earned more than the model's where the two differ: ")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_audit_of_the_last_episodes_with_other_settings(path):
    report = answer(
        "audit", path, "--last", 5, "--policy", "seed", "--set", "min_neighbors=1000", "--set", "exploration=null"
    )
    assert (report["n_decisions"], report["flips"], report["policy"]) == (10, [], "seed+")
    assert "0 decisions" in seasoned("audit", path, "--set", "beta=0").stdout


def findings(report):
    return [check["name"] for check in report["checks"] if check["verdict"] == "finding"]


def test_doctor_prints_healthy_or_its_findings(path, tmp_path):
    done = seasoned("doctor", path)
    assert done.exit_code == 0
    slow = "! speed of retrieval" in done.stdout  # on a busy machine
    assert done.stdout.startswith("1 finding: 60 episodes" if slow else "healthy: 60 episodes")
    assert max(map(len, done.stdout.splitlines())) <= 80
    report = answer("doctor", path)
    assert report["healthy"] is not bool(findings(report))
    assert set(findings(report)) <= {"speed of retrieval"}
    sick = tmp_path / "sick.db"
    with Memory.open(sick) as memory:
        memory.add_many(Episode("checkout", [Step("page", "pay")]) for _ in range(30))
    done = seasoned("doctor", sick)
    assert done.exit_code == 0
    assert done.stdout.startswith("2 findings" if "! speed of retrieval" in done.stdout else "1 finding")
    assert "! rewards" in done.stdout
    assert all(f"\n  {part}  " in done.stdout for part in ("seen", "rule", "do  "))
    report = answer("doctor", sick)
    assert report["healthy"] is False
    assert set(findings(report)) - {"speed of retrieval"} == {"rewards"}


def test_evaluate_estimates_or_refuses_a_small_sample(path):
    with Memory.open(path) as memory:
        earned = [sum(step.reward for step in episode.steps) for episode in memory.episodes()]
        expected = evaluate(
            memory, lambda known: JitRL.preset("means", known, beta=3.0), estimator="one-step", min_effective=3
        )
    same = answer("evaluate", path, "--policy", "means")
    assert same["estimate"]["value"]["mean"] == pytest.approx(sum(earned) / 60)
    assert same["estimate"]["effective"] == pytest.approx(60)
    report = answer("evaluate", path, "--policy", "means", "--set", "beta=3", "--one-step", "--min-effective", 3)
    assert report["estimate"]["value"]["mean"] == expected.estimate.value.mean < same["estimate"]["behavior"]
    done = seasoned("evaluate", path, "--policy", "means", "--set", "beta=3.5")
    assert done.exit_code == 0
    assert f"as played   {sum(earned) / 60:.4g}, of the episodes used\n" in done.stdout
    assert "effective sample size" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    refused = seasoned("evaluate", path, "--policy", "means", "--min-effective", "1000")
    assert refused.exit_code == 2
    assert "an estimate needs at least 1000" in refused.stderr
    assert refused.stdout == ""


@pytest.fixture(scope="module")
def stuck_path(tmp_path_factory):
    """Return a memory of sixty tickets of two steps that memory soon decided nearly for certain."""
    file = tmp_path_factory.mktemp("stuck") / "agent.db"
    tools = dict.fromkeys(("restart", "failover", "scale", "page"), math.log(0.25))
    with Memory.open(file) as memory:
        policy = JitRL(memory)
        for number in range(60):
            with memory.episode(task="oncall", id=f"t{number}") as episode:
                for at in range(2):
                    decision = policy.decide(
                        f"alert {number % 3} step {at}", tools, task="oncall", seed=2 * number + at
                    )
                    episode.record(f"alert {number % 3} step {at}", decision, float(decision.action == "scale") - 0.5)
    return str(file)


def test_evaluate_says_exactly_what_a_log_of_a_certain_policy_lacks(stuck_path):
    refused = seasoned("evaluate", stuck_path, "--policy", "base")
    assert refused.exit_code == 2
    seldom, n = map(int, re.search(r"at (\d+) of (\d+) steps the log took", refused.stderr).groups())
    assert n == 120 > seldom > 60
    assert "Played just as the policy would: 1 of 60 episodes, which earned 1 on average" in refused.stderr
    assert "Let the policy itself play a share of the episodes" in refused.stderr


def test_audit_without_flips_ends_with_a_verdict(stuck_path):
    lines = " ".join(seasoned("audit", stuck_path).stdout.split("\nverdict: ")[1].split())
    assert re.fullmatch(
        r"memory changed the likeliest action of none of 120 decisions\. It broke \d+ ties of the model's\.", lines
    )


def test_evaluate_refuses_a_log_without_the_policys_actions(tmp_path):
    """Sixty payments with propensity 0.95: even weights, so the sample looks large, but no other action was taken."""
    log = tmp_path / "log.db"
    step = Step("page:cart", "pay", 1.0, {"pay": -0.69, "back": -0.7}, 0.95)
    with Memory.open(log) as memory:
        memory.add_many(Episode("checkout", [step]) for _ in range(60))
    for options in ((), ("--one-step",)):
        done = seasoned("evaluate", log, "--policy", "base", *options)
        assert done.exit_code == 2
        assert "mean importance ratio of 0.5" in done.stderr
        assert "[0.8, 1.25]" in done.stderr
        assert done.stdout == ""


@pytest.mark.parametrize("command", ["audit", "evaluate"])
def test_without_priors_what_can_be_said_is_said(command, tmp_path):
    log = tmp_path / "log.db"
    with Memory.open(log) as memory:
        memory.add_many(Episode(f"t{n % 3}", [Step("page:cart", "pay", float(n % 2))]) for n in range(18))
    report = answer(command, log)
    assert report["n_episodes"] == 18
    if command == "evaluate":
        assert report["value"]["mean"] == 0.5
    else:
        assert 0 < report["within_tasks"]["n_pairs"] < 27  # of the 27 of a won and a lost run: those one memory scored
    done = seasoned(command, log)
    assert done.exit_code == 0
    assert "cannot be said" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_as_played_is_the_mean_of_the_episodes_used(tmp_path):
    """The episodes left out have other rewards, so the mean of the whole log differs."""

    def one(action, reward):
        return Episode("checkout", [Step("page:cart", action, reward, {"pay": -0.7, "back": -0.69}, 0.5)])

    log = tmp_path / "log.db"
    with Memory.open(log) as memory:
        memory.add_many([one("pay", 1.0), one("back", 0.0)] * 10 + [one("wait", 9.0)] * 4)
    done = seasoned("evaluate", log, "--policy", "base")
    assert done.exit_code == 0
    rows = dict(line.split("  ", 1) for line in done.stdout.splitlines() if "  " in line)
    assert rows["as played"].strip() == "0.5, of the episodes used"
    assert rows["left out, an action that memory had added"].strip() == "4 episodes"


def test_drift_reports_a_fall_or_refuses_too_few_episodes(path, tmp_path):
    fell = tmp_path / "fell.db"
    with Memory.open(fell) as memory:
        memory.add_many(Episode("a\x1b[31m task", [Step("page", "pay", float(n < 25))]) for n in range(40))
        memory.add_many(Episode("another", [Step("page", "pay", 1.0)]) for _ in range(3))
    done = seasoned("drift", fell)
    assert done.exit_code == 0
    assert "fell: -0.9" in done.stdout
    assert "1 task not tested" in done.stdout
    assert "\x1b" not in done.stdout
    assert answer("drift", fell)["tasks"][0]["verdict"] == "fell"
    refused = seasoned("drift", path, "--min-episodes", 1000)
    assert refused.exit_code == 2
    assert "1000 recent and 1000 older" in refused.stderr


def test_diagnosis_changes_nothing(path):
    with Memory.open(path) as memory:
        before = memory.verify().hash
    for command in ("audit", "doctor", "evaluate", "drift"):
        assert seasoned(command, path, *(["--policy", "means"] if command == "evaluate" else [])).exit_code == 0
    with Memory.open(path) as memory:
        assert memory.verify().hash == before


@pytest.mark.parametrize("command", ["audit", "doctor", "evaluate", "drift"])
def test_bad_input_ends_with_its_exit_code(command, path, tmp_path):
    assert seasoned(command, tmp_path / "missing.db").exit_code == 3
    assert seasoned(command, path, "-n", "nobody's").exit_code == 3
    assert seasoned(command, path, "--seed", "-1").exit_code == 2
    help_ = seasoned(command, "--help")
    assert help_.exit_code == 0
    assert f"seasoned memory {command} " in help_.stdout.partition("Example:")[2]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("audit", "--set", "beta"), "KEY=VALUE"),
        (("audit", "--set", "beta=1", "--set", "beta=2"), "once"),
        (("audit", "--set", "betta=1"), "beta"),
        (("evaluate", "--set", "beta=-1"), "beta"),
        (("evaluate", "--policy", "base", "--set", "beta=1"), "base"),
        (("evaluate", "--gamma", "2"), "discount"),
        (("evaluate", "--min-effective", "0"), "min_effective must be a number, at least 2"),
        (("doctor", "--last", "0"), "at least 1"),
        (("drift", "--recent", "0"), "at least 1"),
        (("doctor", "--policy", "defualt"), "default"),
    ],
)
def test_wrong_option_is_refused_with_its_rule(args, says, path):
    done = seasoned(args[0], path, *args[1:])
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stdout == ""


def test_decision_with_one_candidate_is_evaluated(tmp_path):
    file = tmp_path / "one.db"
    with Memory.open(file) as memory:
        memory.add_many(Episode("t", [Step("s", "only", 1.0, {"only": 0.0}, 1.0)]) for _ in range(12))
    assert answer("evaluate", file)["estimate"]["value"]["mean"] == 1.0
