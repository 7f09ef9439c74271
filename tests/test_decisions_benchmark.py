"""The benchmark of decisions: the same rounds for every arm, rewards when they arrive, and resumed runs."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from intent_files import write_intents
from seasoned.envs.intent_rounds import IntentTask, draw_rounds, read_intents
from seasoned.llms import LLMS, ScriptedLLM

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODULES = ("decisions", "decision_arms", "decision_peers", "workload")


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("decisions")
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_intents(tmp_path_factory.mktemp("intents"))


class Recorder:
    """Chooses the first option, and records every call."""

    def __init__(self, choice):
        self.calls, self.priors = [], []
        self._choice = choice

    def decide(self, text, prior, rng):
        self.calls.append(("decide", text, tuple(prior)))
        self.priors.append(prior)
        return self._choice(next(iter(prior)), 1.0)

    def learn(self, text, prior, choice, reward):
        self.calls.append(("learn", text, choice.option, reward))


def recorded(bench, folder, task, rounds=60, **settings):
    drawn = draw_rounds(read_intents(folder), task, 0, rounds)
    arm = Recorder(bench.Choice)
    played = bench.play(drawn, arm, lambda text: dict.fromkeys(drawn[0].rewards, 0.0), 0, **settings)
    return drawn, arm.calls, played


def run(bench, **changes):
    fields = {"task": "desks-3", "arm": "default", "seed": 0, "rounds": 12, "prior": "uniform", "code": "c"}
    return bench.Run(**{**fields, **changes})


def test_an_arm_sees_the_sentence_then_the_reward_of_its_own_choice_and_nothing_else(bench, folder):
    drawn, calls, played = recorded(bench, folder, IntentTask("domains"))
    first = next(iter(drawn[0].rewards))
    expected = []
    for each in drawn:
        expected.append(("decide", each.text, tuple(drawn[0].rewards)))
        expected.append(("learn", each.text, first, each.rewards[first]))
    assert calls == expected[:-1]  # no round follows the last one
    assert played.rewards.tolist() == [each.rewards[first] for each in drawn]


def test_full_information_learns_the_right_option_at_once_and_without_noise(bench, folder):
    drawn, calls, _ = recorded(bench, folder, IntentTask("domains", noise=0.3, max_delay=9), full=True)
    learned = [call for call in calls if call[0] == "learn"]
    right = [max(each.rewards, key=each.rewards.get) for each in drawn]
    assert learned == [("learn", each.text, option, 1.0) for each, option in zip(drawn, right, strict=True)][:-1]


def test_a_delayed_reward_arrives_before_the_decision_of_its_round(bench, folder):
    drawn, calls, _ = recorded(bench, folder, IntentTask("domains", max_delay=7))
    number_of = {each.text: t for t, each in enumerate(drawn)}
    learned, t = {}, -1
    for call in calls:
        if call[0] == "decide":
            t += 1
            assert call[1] == drawn[t].text
        else:
            learned[number_of[call[1]]] = t + 1  # before the decision of this round
    for u, each in enumerate(drawn):
        assert learned.get(u) == (u + each.delay if u + each.delay < len(drawn) else None)


def test_learning_sees_the_noisy_reward_and_scoring_the_true_one(bench, folder):
    drawn, calls, played = recorded(bench, folder, IntentTask("domains", noise=0.3))
    first = next(iter(drawn[0].rewards))
    assert [call[3] for call in calls if call[0] == "learn"] == [each.observed(first) for each in drawn][:-1]
    assert played.rewards.tolist() == [each.rewards[first] for each in drawn]


def test_every_arm_plays_the_same_rounds(bench, folder, tmp_path):
    shown = {}
    for name in ("one", "other"):
        arm = Recorder(bench.Choice)
        kind = bench.ArmKind(name, lambda options, seed, arm=arm: arm)
        bench.KINDS[name] = kind
        for seed in (0, 1):
            bench.play_run(run(bench, arm=name, seed=seed), folder, None)
        shown[name] = arm.calls
    assert shown["one"] == shown["other"]


def test_memory_learns_and_its_placebo_and_uniform_choice_do_not(bench, folder):
    """Every sentence is shown often: six intents, words of the intent only."""
    arms = {"seed?threshold=0.2": 0.5, "uniform": 0.0, "placebo": 0.0}
    for arm, gain in arms.items():
        means = [bench.play_run(run(bench, arm=arm, seed=s, rounds=120), folder, None).rewards[60:] for s in range(3)]
        assert np.mean(means) == pytest.approx(1 / 3 + gain / 2, abs=0.2)


def test_resumed_runs_equal_an_unbroken_run(bench, folder, tmp_path):
    runs = [run(bench, arm=arm, seed=seed) for arm in ("default", "uniform") for seed in (0, 1)]
    whole = bench.play_all(runs, folder, file=tmp_path / "whole.jsonl")
    part = tmp_path / "part.jsonl"
    bench.play_all(runs[:2], folder, file=part)
    lines = part.read_text().splitlines()
    part.write_text(lines[0] + "\n" + lines[1][:30])  # killed within a line
    resumed = bench.play_all(runs, folder, file=part)
    assert list(whole) == list(resumed) == runs
    for each in runs:
        assert whole[each].rewards.tolist() == resumed[each].rewards.tolist()
        assert bench.read_runs(part)[each].rewards.tolist() == whole[each].rewards.tolist()


def test_a_finished_run_is_not_repeated_until_its_code_changes(bench, folder, tmp_path):
    file = tmp_path / "runs.jsonl"
    bench.play_all([run(bench, arm="uniform")], folder, file=file)
    first = file.read_text()
    bench.play_all([run(bench, arm="uniform")], folder, file=file)
    assert file.read_text() == first
    bench.play_all([run(bench, arm="uniform", code="d")], folder, file=file)
    assert [json.loads(line)["code"] for line in file.read_text().splitlines()] == ["c", "d"]


def test_rows_compare_the_reference_paired_by_seed(bench):
    played = {}
    for seed, (ours, theirs) in enumerate([([1, 1, 1, 1], [0, 1, 1, 0]), ([0, 1, 1, 1], [0, 0, 1, 0.5])]):
        for arm, rewards in (("default", ours), ("uniform", theirs)):
            played[run(bench, arm=arm, seed=seed)] = bench.Played(np.array(rewards, dtype=float), 1.0)
    ours, theirs = bench.summary(played)
    assert (ours["mean"]["mean"], ours["regret"]["mean"], ours["quarters"]) == (0.875, 0.5, [0.5, 1.0, 1.0, 1.0])
    assert theirs["reference_minus_arm"]["mean"] == pytest.approx((0.5 + 0.375) / 2)
    assert theirs["reference_over_arm"]["mean"] == pytest.approx((2.0 + 2.0) / 2)
    assert "reference_minus_arm" not in ours
    assert bench.table([ours, theirs]).splitlines()[2].startswith("| desks-3 | default | 0.875 [")


def test_an_arm_takes_settings_and_an_unknown_one_is_refused(bench):
    kind, settings = bench.arm_of("means?beta=8&kappa=none")
    assert (kind, settings) == (bench.KINDS["means"], {"beta": 8, "kappa": "none"})
    assert kind.make(("a", "b"), 0, **settings)._policy.settings.beta == 8
    with pytest.raises(SystemExit, match="known are uniform"):
        bench.arm_of("defualt")


def model_of_letters(name, logprob):
    """Register a model that prefers the first option of a sentence, and no option without one."""
    scripted = ScriptedLLM(
        lambda request: {"A": logprob if "please" in str(request) else -1.2, "B": -2.1, "C": -2.1}, name=name
    )
    MODELS.append(scripted)
    return MODELS[-1]


MODELS = []


def test_priors_of_a_model_reach_the_arms_and_are_read_once(bench, folder, tmp_path):
    LLMS.register("letters", f"{__name__}:model_of_letters")  # as a program adds a kind of model
    arms = [Recorder(bench.Choice), Recorder(bench.Choice)]
    for name, arm in zip("ab", arms, strict=True):
        bench.KINDS[name] = bench.ArmKind(name, lambda options, seed, arm=arm: arm)
        runs = [run(bench, arm=name, prior="letters:x?logprob=-0.3")]
        bench.play_all(runs, folder, file=tmp_path / "runs.jsonl", cache=str(tmp_path))
    (model,) = MODELS
    assert arms[0].calls == arms[1].calls
    assert all(len(prior) == 3 and prior["desk 1"] > prior["desk 2"] + 0.5 for prior in arms[0].priors)
    assert len({str(request) for request in model.requests}) == len(model.requests) < 2 * 12 + 2


def test_simulated_prior_knows_as_much_at_every_seed_and_arm(bench, folder):
    priors = {}
    for seed in (0, 1):
        arm = Recorder(bench.Choice)
        bench.KINDS["recorder"] = bench.ArmKind("a recorder", lambda options, seed, arm=arm: arm)
        one = run(bench, task="domains", arm="recorder", seed=seed, rounds=None, prior="simulated?lift=2")
        bench.play_run(one, folder, None)
        texts = [call[1] for call in arm.calls if call[0] == "decide"]
        priors[seed] = dict(zip(texts, arm.priors, strict=True))
    assert priors[0] == priors[1]
    right = {
        each.text: max(each.rewards, key=each.rewards.get)
        for each in draw_rounds(read_intents(folder), IntentTask("domains"), 0)
    }
    assert 0.5 < np.mean([np.exp(prior[right[text]]) for text, prior in priors[0].items()]) < 0.8


def test_seeds_draw_from_the_same_few_sentences_in_orders_of_their_own(bench, folder):
    shown = []
    for seed in (0, 1, 2):
        arm = Recorder(bench.Choice)
        bench.KINDS["recorder"] = bench.ArmKind("a recorder", lambda options, seed, arm=arm: arm)
        bench.play_run(run(bench, task="domains", arm="recorder", seed=seed, rounds=None, sentences=15), folder, None)
        shown.append([call[1] for call in arm.calls if call[0] == "decide"])
    assert len(set(shown[0])) == 15
    assert set(shown[0]) == set(shown[1]) == set(shown[2])
    assert len({tuple(texts) for texts in shown}) == 3


def test_arm_whose_library_is_missing_is_left_out_with_its_install_line(bench, capsys):
    bench.KINDS["peer"] = bench.ArmKind("a peer", lambda options, seed: None, ("no_such_library",))
    assert bench.installed_arms(["uniform", "peer?a=1"]) == ["uniform"]
    assert capsys.readouterr().out == "left out: peer?a=1. pip install no_such_library\n"


@pytest.mark.parametrize("name", ["vw-squarecb", "vw-adf-squarecb", "linucb", "full"])
def test_peers_decide_and_learn(bench, folder, name):
    for library in bench.KINDS[name].needs:
        pytest.importorskip(library)
    rewards = [bench.play_run(run(bench, arm=name, seed=s, rounds=120), folder, None).rewards for s in range(3)]
    assert np.mean([each[60:] for each in rewards]) > 0.4  # a third without learning
