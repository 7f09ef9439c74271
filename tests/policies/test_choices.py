"""What choices do to a decision: one click counts as one observation, in every limit on evidence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.core import ChoiceModel
from seasoned.policies import PRESETS
from seasoned.types import Choice

STATE, NEAR, FAR = "where is my order", "where is my parcel", "cancel the contract"
OPTIONS = ("it is lost", "on monday", "which order")
LEARNERS = [name for name in PRESETS if PRESETS[name].choices == "comparisons"]


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


def click(memory, options=OPTIONS, chosen=1, state=STATE, **more):
    return memory.feedback(feedback=Choice(options, chosen), task="support", state=state, **more)


def decide(memory, preset, candidates=OPTIONS, state=STATE, **settings):
    priors = candidates if isinstance(candidates, dict) else dict.fromkeys(candidates, 0.0)
    options = {"min_neighbors": 1, **settings}
    return JitRL.preset(preset, memory, **options).decide(state, priors, seed=0)


def log_odds(decision, first, second):
    return float(np.log(decision.probs[first] / decision.probs[second]))


def test_presets_that_learn_compare_choices_and_published_ones_keep_rewards():
    assert {"default", "means"} == set(LEARNERS)
    assert not {"seed", "snippet", "paper-games", "paper-web", "released-games", "released-web"} & set(LEARNERS)


@pytest.mark.parametrize("preset", LEARNERS)
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_one_click_among_n_is_one_step_and_less_than_one_nat(memory, preset, n):
    options = tuple(f"reply {number}" for number in range(n))
    click(memory, options, 0)
    decision = decide(memory, preset, options)
    assert (decision.mode, decision.n_steps, set(decision.counts.values())) == ("memory", 1, {1})
    assert 0.67 < log_odds(decision, options[0], options[1]) < 1.0
    low, high = decision.intervals[options[0]]
    assert low < 0.0 < high


@pytest.mark.parametrize("preset", LEARNERS)
def test_one_author_does_not_outvote_the_rest(memory, preset):
    for number in range(40):  # under many tasks, and on many episodes
        memory.add(Episode(f"task {number}", [Step(STATE, OPTIONS[0])], f"e{number}"))
        memory.feedback(f"e{number}", Choice(OPTIONS, 2), author="eve")
        memory.feedback(feedback=Choice(OPTIONS, 2), task=f"task {number}", state=STATE, author="eve")
    for person in ("ann", "bob"):
        click(memory, OPTIONS, 1, author=person)
    decision = decide(memory, preset)
    assert decision.probs[OPTIONS[1]] > decision.probs[OPTIONS[2]] > decision.probs[OPTIONS[0]]


@pytest.mark.parametrize("preset", LEARNERS)
def test_clicks_reach_min_neighbors_one_at_a_time(memory, preset):
    for number in range(3):
        decision = decide(memory, preset, min_neighbors=3)
        assert (decision.mode, decision.n_steps) == ("base", number)
        click(memory, author=f"person {number}")
    assert decide(memory, preset, min_neighbors=3).mode == "memory"


def test_the_limit_per_step_counts_a_click_once(memory):
    click(memory, tuple("abcdefgh"), 0)
    prior = {**dict.fromkeys("bcdefgh", 0.0), "a": -12.0}
    limit = 1e-7
    decision = decide(memory, "default", prior, nats_per_step=limit, unit="states")
    assert decision.kl_nats == pytest.approx(limit, rel=1e-3)
    assert decision.beta < JitRL.preset("default", memory).settings.beta


@pytest.mark.parametrize("preset", LEARNERS)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
def test_the_order_of_the_options_changes_nothing(preset, order):
    probs = []
    for shown in ((0, 1, 2), order):
        with Memory.open(":memory:") as memory:
            memory.add(Episode("support", [Step(STATE, OPTIONS[2], 0.5)], "talk"))
            options = [OPTIONS[place] for place in shown]
            memory.feedback("talk", Choice(options, options.index(OPTIONS[1])))
            probs.append(decide(memory, preset).probs)
    assert probs[0] == pytest.approx(probs[1], abs=1e-12)


@pytest.mark.parametrize("preset", LEARNERS)
def test_the_decision_is_the_closed_form_of_utilities_and_advantages(memory, preset):
    """z' = z + beta * A, and with choices alone beta * A is the posterior mode of the utilities."""
    for options, chosen in (((0, 1), 0), ((1, 2), 1), ((0, 1, 2), 2), ((0, 1), 0)):
        click(memory, [OPTIONS[at] for at in options], chosen)
    prior = dict(zip(OPTIONS, (-0.2, -2.0, -3.0), strict=True))
    decision = decide(memory, preset, prior)
    found = ChoiceModel().estimate(
        [(0, (0, 1), 0, 1.0), (0, (1, 2), 2, 1.0), (0, (0, 1, 2), 2, 1.0), (0, (0, 1), 0, 1.0)],
        np.ones(1),
        np.ones((1, 1)),
        rows=np.arange(3),
        base_probs=np.array(list(decision.base_probs.values())),
    )
    expected = np.array(list(decision.logprobs.values())) + found.beta * found.advantages
    expected -= np.log(np.exp(expected).sum())
    np.testing.assert_allclose(np.log(list(decision.probs.values())), expected, atol=1e-9)
    again = np.array(list(decision.logprobs.values())) + decision.beta * np.array(list(decision.advantages.values()))
    np.testing.assert_allclose(again - np.log(np.exp(again).sum()), expected, atol=1e-9)


@pytest.mark.parametrize("preset", LEARNERS)
def test_a_click_adds_the_same_nats_to_what_rewards_say(memory, preset):
    for reward, action in ((0.0, OPTIONS[0]), (1.0, OPTIONS[1]), (0.5, OPTIONS[2])):
        memory.add_many([Episode("support", [Step(STATE, action, reward)]) for _ in range(3)])
    before = log_odds(decide(memory, preset, beta=1.0, nats_per_step=None), OPTIONS[0], OPTIONS[2])
    click(memory, chosen=0)
    after = log_odds(decide(memory, preset, beta=1.0, nats_per_step=None), OPTIONS[0], OPTIONS[2])
    assert after - before == pytest.approx(0.7345, abs=1e-4)


@pytest.mark.parametrize("preset", LEARNERS)
def test_clicks_at_random_average_out(memory, preset):
    rng = np.random.default_rng(0)
    for number in range(60):
        click(memory, OPTIONS, int(rng.integers(3)), author=f"person {number}")
    assert max(decide(memory, preset).probs.values()) < 0.5


@pytest.mark.parametrize("preset", LEARNERS)
def test_options_rank_by_whom_they_met(memory, preset):
    """A beats B in 6 of 10, C beats D in 9 of 10, A beats C in 3 of 3."""
    met = [("a", "b")] * 6 + [("b", "a")] * 4 + [("c", "d")] * 9 + [("d", "c")] + [("a", "c")] * 3
    for number, pair in enumerate(met):
        click(memory, pair, 0, author=f"person {number}")
    decision = decide(memory, preset, "abcd")
    assert decision.probs["a"] > decision.probs["c"] > decision.probs["d"]


def test_similar_states_lend_choices_by_similarity(memory):
    click(memory)
    click(memory, OPTIONS, 0, state=FAR)
    gaps = [log_odds(decide(memory, "default", state=state), OPTIONS[1], OPTIONS[2]) for state in (STATE, NEAR)]
    assert gaps[0] > gaps[1] > 0.1


@pytest.mark.parametrize("preset", LEARNERS)
def test_a_revoked_click_leaves_the_model_alone(memory, preset):
    memory.revoke(click(memory))
    decision = decide(memory, preset)
    assert (decision.mode, decision.n_steps) == ("base", 0)


@pytest.mark.parametrize("preset", LEARNERS)
def test_chosen_actions_may_be_added_by_memory(memory, preset):
    click(memory)
    policy = JitRL.preset(preset, memory, min_neighbors=1)
    decision = policy.decide(STATE, {OPTIONS[0]: 0.0}, admissible="any", seed=0)
    assert set(decision.memory_only) == {OPTIONS[1], OPTIONS[2]}


@pytest.mark.parametrize("preset", LEARNERS)
def test_no_beta_no_shift_and_unclear_choices_are_left_to_the_model(memory, preset):
    click(memory)
    assert decide(memory, preset, beta=0.0).probs == pytest.approx(dict.fromkeys(OPTIONS, 1 / 3))
    assert decide(memory, preset, clear_only=True).mode == "base"
    for number in range(20):
        click(memory, author=f"person {number}")
    assert decide(memory, preset, clear_only=True).probs[OPTIONS[1]] > 0.7


@pytest.mark.parametrize("preset", LEARNERS)
def test_as_rewards_a_click_is_n_steps(memory, preset):
    click(memory)
    assert decide(memory, preset, choices="rewards").n_steps == 3
