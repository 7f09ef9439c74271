"""The registry of arms: every kind is built from data, plays, and resumes without a difference."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect

import pytest

from seasoned import Memory
from seasoned.agents import UniformReader, play_run
from seasoned.core import UCB
from seasoned.core.exploration import EXPLORATION_RULES
from seasoned.envs import ContextualBandit, Grid
from seasoned.errors import InputError, SeasonedError, UnknownNameError
from seasoned.lab.arms.preset_settings import preset_settings
from seasoned.lab.arms.registry import ARMS, build_arm, check_arm
from seasoned.lab.suites.suite import ArmSpec
from seasoned.llms import BiasChooser, LabelReader, ScriptedLLM
from seasoned.policies import PRESETS
from seasoned.types import Backup

NEEDED = {
    "retries": {"attempts": 2},
    "best-of-n": {"attempts": 2},
    "self-consistency": {"samples": 2},
    "cascade": {"teacher": "uniform", "mode": "logits"},
}
"""The required settings of each kind."""


def answer(request):
    """Return equal letters for a reading, a direction for a vote, else a lesson; a function of the request only."""
    if request.top_logprobs:
        return dict.fromkeys("ABCD", -1.4)
    if request.temperature:
        return ("south", "east", "north", "west")[request.seed % 4]
    return f"Go on from {len(request.messages[-1].content)}."


def spec(kind, budget_of=None, **settings):
    return ArmSpec(kind, kind, settings or ({} if budget_of else NEEDED.get(kind, {})), budget_of)


def build(arm_spec, memory, *, llm=True, reader=None, **options):
    model = ScriptedLLM(answer) if llm is True else llm
    reader = reader or (UniformReader() if model is None else LabelReader(model))
    return build_arm(arm_spec, memory=memory, llm=model, reader=reader, **{"seed": 0, **options})


def play(arm, memory, episodes, environment=None):
    return asyncio.run(
        play_run(
            environment or Grid(["S..", "..G"], max_steps=6, slip=0.2),
            arm.policy,
            arm.reader,
            memory=memory,
            episodes=episodes,
            seed=1,
            run_id="r",
            play=arm.play,
            learn=arm.learn,
            arm="it",
        )
    )


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


# ------------------------------------------------------------------------------------- playing


@pytest.mark.parametrize("kind", sorted(ARMS))
def test_every_arm_resumes_without_a_difference(kind):
    """A new arm that learns the stored episodes again plays the rest like the old one."""
    with Memory.open(":memory:") as whole, Memory.open(":memory:") as broken:
        unbroken = play(build(spec(kind), whole), whole, 4)
        play(build(spec(kind), broken), broken, 2)
        resumed = play(build(spec(kind), broken), broken, 4)
        assert [e.steps for e in whole.episodes()] == [e.steps for e in broken.episodes()]
        assert len(whole.episodes()) == 4
        tokens = [[r.usage.tokens for r in results[2:]] for results in (unbroken, resumed)]
        assert tokens[0] == tokens[1]
        facts = [[(r.score, r.steps, r.ending) for r in results] for results in (unbroken, resumed)]
        assert facts[0] == facts[1]


@pytest.mark.parametrize("kind", sorted(ARMS))
def test_every_arm_plays_a_bandit(kind, memory):
    bandit = ContextualBandit({"red": {"south": 0.0, "east": 1.0}, "blue": {"south": 1.0, "east": 0.0}}, rounds=3)
    results = play(build(spec(kind), memory), memory, 2, bandit)
    assert [result.steps for result in results] == [3, 3]


@pytest.mark.parametrize("kind", ["full-context", "bm25", "top-k", "reflexion", "workflows", "evolve"])
def test_prompt_arms_add_their_text_before_the_state(kind, memory):
    """The state stays last before the menu."""
    llm = ScriptedLLM(answer)
    arm = build(spec(kind), memory, llm=llm)
    play(arm, memory, 6, Grid(["S.G"], max_steps=20))
    last = next(r for r in reversed(llm.requests) if r.top_logprobs).messages[-1].content
    task, rest = last.split("\n", 1)
    assert task.startswith("Task: ")
    assert "\nNow:\ncell:" in rest


def test_model_that_follows_its_examples_improves_with_retrieval(memory):
    """The model repeats the action that its prompt shows for its own state."""

    def copying(request):
        lines = request.messages[-1].content.split("\n")
        letters = {line[3:]: line[0] for line in lines if line[1:3] == ") "}
        here = f"State: {lines[lines.index('Which action is best?') - 1]}"
        done = lines[lines.index(here) + 1].removeprefix("Action: ") if here in lines else None
        return {letter: (-0.05 if name == done else -5.0) for name, letter in letters.items()}

    means = {f"sign {i}": {f"press {j}": float(i == j) for j in range(4)} for i in range(4)}
    llm = ScriptedLLM(copying)
    results = play(
        build(spec("bm25"), memory, llm=llm, success=1.0), memory, 48, ContextualBandit(means, rounds=1, seed=0)
    )
    scores = [result.score for result in results]
    assert sum(scores[-16:]) > sum(scores[:16])
    assert sum(scores[-16:]) >= 13


# ------------------------------------------------------------------------------------- budgets


@pytest.mark.parametrize("kind", ["retries", "best-of-n", "self-consistency"])
def test_budget_is_the_tokens_of_the_other_arm(kind, memory):
    arm = build(spec(kind, "jitrl"), memory, tokens_per_episode=1000.0)
    corridor = Grid(["S" + "." * 7 + "G"], max_steps=8)  # an attempt is about 200 tokens, and fails
    results = play(arm, memory, 2, corridor)
    assert 800 < results[-1].usage.tokens < 1400


@pytest.mark.parametrize(
    ("arm_spec", "options", "seen"),
    [
        (spec("retries", "jitrl"), {}, "tokens_per_episode = None"),
        (spec("retries", "jitrl"), {"llm": None, "tokens_per_episode": 9.0}, "a model that uses tokens"),
        (ArmSpec("r", "retries"), {}, "attempts = None"),
        (ArmSpec("r", "best-of-n", {"attempts": 2}, "jitrl"), {"tokens_per_episode": 9.0}, "one of them"),
        (ArmSpec("r", "self-consistency"), {}, "samples = None"),
        (ArmSpec("r", "bm25", {}, "jitrl"), {"tokens_per_episode": 9.0}, "best-of-n, retries, self-consistency"),
    ],
)
def test_unusable_budget_is_refused(arm_spec, options, seen, memory):
    with pytest.raises(InputError, match=seen):
        build(arm_spec, memory, **options)


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arm_spec", "error", "seen"),
    [
        (ArmSpec("a", "jitlr"), UnknownNameError, "Did you mean 'jitrl'"),
        (ArmSpec("a", "alone", {"k": 3}), InputError, "Known are: selection"),
        (ArmSpec("a", "bm25", {"window_token": 3}), InputError, "Did you mean 'window_tokens'"),
        (ArmSpec("a", "bm25", {"fill_episodes": 20}), InputError, "an entry of the suite"),
        (ArmSpec("a", "bm25", {"k": 0}), InputError, "k must be a whole number"),
        (ArmSpec("a", "bm25", {"b": 2.0}), InputError, "b must be a number, at least 0 and at most 1"),
        (ArmSpec("a", "full-context", {"window_tokens": "many"}), InputError, "whole number"),
        (ArmSpec("a", "evolve", {"exploration": -1.0}), InputError, "at least 0"),
        (ArmSpec("a", "reflexion", {"keep": 0}), InputError, "keep"),
        (ArmSpec("a", "retries", {"attempts": 0}), InputError, "attempts"),
        (ArmSpec("a", "self-consistency", {"samples": 2, "max_tokens": 0}), InputError, "max_tokens"),
        (ArmSpec("a", "jitrl", {"preset": "defualt"}), UnknownNameError, "Did you mean 'default'"),
        (ArmSpec("a", "jitrl", {"gama": 0.9}), InputError, "Did you mean 'gamma'"),
        (ArmSpec("a", "jitrl", {"gamma": 1.5}), InputError, "gamma"),
        (ArmSpec("a", "jitrl", {"exploration": {"rule": "UBC"}}), UnknownNameError, "Did you mean 'UCB'"),
        (ArmSpec("a", "jitrl", {"exploration": {"rule": "UCB", "d": 1}}), InputError, "Known are: c"),
        (ArmSpec("a", "jitrl", {"exploration": {"rate": 0.3}}), InputError, "alpha"),
        (ArmSpec("a", "placebo", {"decay": 0.9}), InputError, "gives every neighbour the same weight"),
    ],
)
def test_bad_specification_is_refused_before_the_first_episode(arm_spec, error, seen, memory):
    for attempt in (check_arm, lambda each: build(each, memory)):
        with pytest.raises(error, match=seen) as caught:
            attempt(arm_spec)
        assert caught.value.next_step


@pytest.mark.parametrize("kind", sorted(ARMS))
def test_missing_model_is_refused(kind, memory):
    check_arm(spec(kind))
    assert ARMS[kind].about
    if ARMS[kind].needs_model:
        with pytest.raises(InputError, match="uniform"):
            build(spec(kind), memory, llm=None)
    else:
        play(build(spec(kind), memory, llm=None), memory, 2)
    llm = ScriptedLLM(answer)
    chooser = BiasChooser(llm)
    if ARMS[kind].chooses:
        assert build(spec(kind), memory, llm=llm, reader=chooser).reader is chooser
    else:
        with pytest.raises(InputError, match="alone, jitrl, placebo"):
            build(spec(kind), memory, llm=llm, reader=chooser)


# ------------------------------------------------------------------------------------- presets


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_is_an_arm(name, memory):
    assert build(spec("jitrl", preset=name), memory).policy.name == name
    assert build(spec("placebo", preset=name), memory).policy.name == name


def test_preset_settings_are_read_from_plain_data():
    name, changed = preset_settings(
        {"preset": "seed", "exploration": {"rule": "UCB", "c": 2.0}, "backup": {"beta": 4.0}, "gamma": "none"}
    )
    assert name == "seed"
    assert changed == {"exploration": UCB(2.0), "backup": Backup(4.0), "gamma": None}
    assert preset_settings({"preset": "seed", "exploration": "none"}) == ("seed", {"exploration": None})
    assert preset_settings({}) == ("default", {})


@pytest.mark.parametrize("name", sorted(EXPLORATION_RULES))
def test_every_exploration_rule_is_a_setting_of_a_suite(name):
    rule = EXPLORATION_RULES[name]
    values = {p.name: 0.5 for p in inspect.signature(rule).parameters.values() if p.default is p.empty}
    _, changed = preset_settings({"preset": "means", "exploration": {"rule": name, **values}})
    assert changed == {"exploration": rule(**values)}


@pytest.mark.parametrize("settings", [{}, {"backup": {"beta": 4.0}}], ids=str)
def test_placebo_depends_on_the_seed_and_does_not_learn(memory, settings):
    """One action always pays: JitRL prefers it, shuffled returns do not identify it."""
    bandit = ContextualBandit({"c": {"east": 1.0, "south": 0.0, "west": 0.0}})
    play(build(spec("alone"), memory, llm=None), memory, 60, bandit)
    prior = dict.fromkeys(("east", "south", "west"), -1.1)
    ours = build(spec("jitrl", **settings), memory, llm=None).policy.decide("c", prior, seed=0)
    assert ours.probs["east"] > 0.9
    shuffled = [
        build(spec("placebo", **settings), memory, llm=None, seed=seed).policy.decide("c", prior, seed=0).probs["east"]
        for seed in range(8)
    ]
    assert len(set(shuffled)) > 1
    assert sum(shuffled) / 8 < 0.7


def test_errors_derive_from_seasoned_error():
    with pytest.raises(SeasonedError):
        check_arm(dataclasses.replace(spec("alone"), kind="nothing"))
