"""Decisions made inside the server: the policy equals that over a read prior, and the model draws."""

from __future__ import annotations

import asyncio

import pytest
from test_logit_bias import LIMIT_2_DEGREES, WEIGHTS, g_statistic
from true_policy import TruePolicy, softmax

from seasoned import Episode, JitRL, Memory, ModelAlone, Step
from seasoned.agents import StepLog, play_episode
from seasoned.build import make_reader
from seasoned.envs import ContextualBandit
from seasoned.errors import InputError, ModelError
from seasoned.llms import BiasChooser
from seasoned.policies import decide_on_server

STATE = "a kitchen"


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        for action, reward in [("go north", 1.0), ("go north", 0.8), ("open fridge", 0.0), ("open fridge", 0.1)] * 3:
            opened.add(Episode("leave", [Step(STATE, action, reward)]))
        yield opened


def inside(policy, model, names=tuple(WEIGHTS), **arguments):
    return asyncio.run(
        decide_on_server(policy, BiasChooser(model), STATE, list(names), **{"task": "leave", **arguments})
    )


@pytest.mark.parametrize("baseline", ["neighbors", "base_policy"])
def test_decision_is_the_closed_form_on_the_models_own_policy(memory, baseline):
    """All three actions were tried, so V shifts all equally: the decision equals that of label."""
    memory.add_many([Episode("leave", [Step(STATE, "wait", reward)]) for reward in (0.3, 0.4)])
    model, policy = TruePolicy(WEIGHTS), JitRL.preset("means", memory, baseline=baseline)
    decision, usage = inside(policy, model, seed=3)
    assert list(decision.probs) == list(decision.base_probs) == list(decision.advantages) == list(decision.logprobs)
    read_first = policy.decide(STATE, WEIGHTS, task="leave", seed=3)
    assert decision.probs == pytest.approx(read_first.probs)
    assert decision.base_probs == pytest.approx(read_first.base_probs)
    assert decision.kl_nats == pytest.approx(read_first.kl_nats)
    assert decision.counts == read_first.counts
    assert decision.propensity == decision.probs[decision.action]
    assert decision.prior.method == "bias"
    assert (usage.calls, len(model.requests)) == (1, 1)


def test_draws_follow_the_recorded_policy(memory):
    counts = dict.fromkeys(WEIGHTS, 0)
    model, policy = TruePolicy(WEIGHTS), JitRL(memory, beta=1.0)
    for step in range(700):
        decision, _ = inside(policy, model, seed=11, step=step)
        counts[decision.action] += 1
    assert g_statistic(counts, decision.probs) < LIMIT_2_DEGREES
    assert g_statistic(counts, decision.base_probs) > LIMIT_2_DEGREES


SHARP = {"go north": -4.0, "open fridge": 0.0, "wait": -1.0}  # far from uniform, and `wait` was never tried


@pytest.mark.parametrize(
    ("preset", "settings"),
    [
        ("default", {}),
        ("default", {"max_kl_nats": 0.05}),
        ("means", {}),
        ("means", {"max_kl_nats": 0.05}),
        ("means", {"baseline": "neighbors"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("biased_logprobs", [False, True])
def test_decision_equals_label_with_an_untried_action_and_a_cap(memory, preset, settings, biased_logprobs):
    policy = JitRL.preset(preset, memory, **settings)
    model = TruePolicy(SHARP, biased_logprobs=biased_logprobs)
    decision, usage = inside(policy, model, seed=3, step=2)
    read_first = policy.decide(STATE, SHARP, task="leave", seed=3, step=2)
    for name in ("probs", "base_probs", "advantages", "logprobs", "intervals"):
        assert getattr(decision, name) == {
            action: value and pytest.approx(value) for action, value in getattr(read_first, name).items()
        }
    for name in ("kl_nats", "baseline", "beta"):
        assert getattr(decision, name) == pytest.approx(getattr(read_first, name))
    assert decision.kl_nats <= settings.get("max_kl_nats", 99.0) + 1e-9
    assert decision.propensity == decision.probs[decision.action]
    assert usage.calls == 1


@pytest.mark.parametrize(
    ("preset", "settings"),
    [("means", {"beta": 2.0}), ("means", {"max_kl_nats": 0.05}), ("default", {"max_kl_nats": 0.05})],
)
def test_draws_follow_the_decision_if_the_server_drew_from_another_policy(memory, preset, settings):
    counts = dict.fromkeys(SHARP, 0)
    model, policy = TruePolicy(SHARP), JitRL.preset(preset, memory, **settings)
    replaced = 0
    for step in range(250):
        decision, _ = inside(policy, model, seed=5, step=step)
        counts[decision.action] += 1
        replaced += "replaced" in decision.reason
    assert 0 < replaced < 250
    assert g_statistic(counts, decision.probs) < LIMIT_2_DEGREES


def test_servers_draw_is_used_if_every_action_was_tried(memory):
    memory.add_many([Episode("leave", [Step(STATE, "wait", reward)]) for reward in (0.3, 0.4)])
    model, policy = TruePolicy(SHARP), JitRL.preset("means", memory)
    assert not any("replaced" in inside(policy, model, seed=1, step=step)[0].reason for step in range(60))


def test_equal_seeds_and_steps_draw_equally(memory):
    model, policy = TruePolicy(WEIGHTS), JitRL(memory, beta=0.5)
    drawn = [[inside(policy, model, seed=s, step=t)[0].action for t in range(30)] for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_without_evidence_the_base_policy_decides():
    with Memory.open(":memory:") as empty:
        decision, _ = inside(JitRL(empty), TruePolicy(WEIGHTS), seed=0)
    assert (decision.mode, decision.kl_nats) == ("base", 0.0)
    assert decision.probs == pytest.approx(softmax(WEIGHTS))
    alone, _ = inside(ModelAlone(), TruePolicy(WEIGHTS), seed=0)
    assert alone.probs == pytest.approx(softmax(WEIGHTS))


def test_candidates_from_memory_are_sent_to_the_model(memory):
    decision, _ = inside(JitRL(memory), TruePolicy(WEIGHTS), ["open fridge", "wait"], admissible="any", seed=0)
    assert decision.memory_only == ("go north",)
    assert decision.base_probs == pytest.approx(softmax(WEIGHTS))


@pytest.mark.parametrize("settings", [{"selection": "argmax"}, {"prior_scale": "probabilities"}], ids=str)
def test_settings_that_need_the_prior_are_refused(memory, settings):
    model = TruePolicy(WEIGHTS)
    with pytest.raises(InputError, match="inside the server"):
        inside(JitRL(memory, nats_per_step=None, **settings), model)
    assert model.requests == []


def test_endpoint_without_logprobs_is_refused(memory):
    with pytest.raises(ModelError):
        inside(JitRL(memory), TruePolicy(WEIGHTS, top=0), seed=0)


def test_episode_loop_accepts_a_chooser(memory):
    log = StepLog()
    bandit = ContextualBandit({STATE: {"go north": 1.0, "open fridge": 0.0, "wait": 0.0}}, rounds=5)
    model = TruePolicy(WEIGHTS)
    result = asyncio.run(play_episode(bandit, JitRL(memory), BiasChooser(model), log, seed=0))
    assert (result.steps, result.usage.calls, len(model.requests)) == (5, 5, 5)
    assert result.memory_steps == 5
    assert result.kl_nats > 0.0


def test_specification_opens_a_chooser():
    assert isinstance(make_reader("openai:m", method="bias", base_url="http://127.0.0.1:9/v1"), BiasChooser)


def test_kl_cap_on_the_chooser_is_refused_before_any_call():
    """The policy would undo the cap: it decides on the prior that the call returns."""
    model = TruePolicy({"go north": 3.0, "wait": 1.0})
    with Memory.open(":memory:") as memory, pytest.raises(InputError, match=r"on the chooser.*Give the policy the cap"):
        asyncio.run(
            decide_on_server(
                JitRL(memory), BiasChooser(model, max_kl_nats=0.1), "a hall", ["go north", "wait"], task="t"
            )
        )
    assert not getattr(model, "requests", [])
