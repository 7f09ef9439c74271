"""Unusual memories give the default a finite policy, and the model's own where nothing follows from them."""

from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seasoned import Episode, JitRL, Memory, Step

PROBS = {"pay": 0.2, "back": 0.5, "wait": 0.3}
PRIOR = {action: math.log(p) for action, p in PROBS.items()}
STATES = st.sampled_from(["page", "cart", "page cart", "1", "!", "page page", "p" * 3000])
REWARDS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e100, -1e100, 1e-300, 5e-324, 0.1])
STEPS = st.lists(st.tuples(STATES, st.sampled_from([*PRIOR, "help"]), REWARDS), min_size=1, max_size=12)


def filled(memory, steps):
    memory.add_many([Episode("t", [Step(state, action, reward)]) for state, action, reward in steps])


def check_finite(decision):
    assert sum(decision.probs.values()) == pytest.approx(1.0)
    numbers = [*decision.probs.values(), *decision.base_probs.values(), decision.kl_nats, decision.scale or 0.0]
    for by_action in (decision.advantages, decision.estimated_advantages, decision.values):
        numbers += [number for number in by_action.values() if number is not None]
    numbers += [bound for bounds in decision.intervals.values() if bounds is not None for bound in bounds]
    assert all(map(math.isfinite, numbers))
    assert all(low <= high for low, high in filter(None, decision.intervals.values()))


@given(st.sampled_from(["default", "means"]), STEPS, STATES)
@example("default", [("cart", "wait", 5e-324), ("page cart", "pay", 0.1), ("cart", "wait", 0.0)], "page cart")
@example("default", [("1", "help", 1e100), ("1", "wait", 1e-300), ("cart", "wait", -1e100)], "cart")
@example("default", [("1", "pay", -1e100), ("!", "pay", 5e-324), ("page", "wait", 1.0)], "1")
def test_every_memory_of_finite_rewards_gives_a_finite_policy(preset, steps, state):
    with Memory.open(":memory:") as memory, warnings.catch_warnings():
        warnings.simplefilter("error")  # of NumPy: what overflows is meant to
        filled(memory, steps)
        decision = JitRL.preset(preset, memory).decide(state, PRIOR, admissible="any", task="t", seed=0)
    check_finite(decision)


@pytest.mark.parametrize("rewards", [(1.0, 0.0), (1e100, -1e100), (-3.0, -5.0)])
def test_outcomes_that_contradict_each_other_evenly_leave_the_models_policy(rewards):
    with Memory.open(":memory:") as memory:
        for reward in rewards * 10:
            filled(memory, [("page:cart", action, reward) for action in PRIOR])
        decision = JitRL(memory).decide("page:cart", PRIOR, seed=0)
    assert decision.mode == "memory" and decision.n_steps == 60
    assert decision.probs == pytest.approx(PROBS, abs=0.01)


def test_states_of_one_word_lend_to_that_word_and_to_words_with_parts_in_common():
    with Memory.open(":memory:") as memory:
        filled(memory, [("refund", "pay", 1.0), ("refund", "back", 0.0), ("weather", "back", 1.0)] * 3)
        same, alike, unknown = (JitRL(memory).decide(word, PRIOR) for word in ("refund", "refunds", "xyz"))
    assert same.probs["pay"] > 0.9
    assert alike.probs["pay"] > 0.2
    assert unknown.mode == "base" and unknown.probs == unknown.base_probs


class Letters:
    """Words with a letter, so that a state of digits has no feature."""

    identity = "letters/v1"

    def features(self, state):
        return frozenset(word for word in state.split() if any(map(str.isalpha, word)))


def test_states_without_features_are_one_state_and_lend_nothing_to_others():
    with Memory.open(":memory:", encoder=Letters()) as memory:
        filled(memory, [("12", "pay", 1.0), ("34 56", "pay", 1.0), ("7", "back", 0.0), ("a page", "back", 1.0)] * 3)
        without, other = (JitRL(memory).decide(state, PRIOR, seed=0) for state in ("99", "another site"))
    assert without.mode == "memory" and {near.similarity for near in without.neighbors} == {1.0}
    assert without.n_states == 1 and without.probs["pay"] > 0.9
    check_finite(without)
    assert other.mode == "base" and other.probs == other.base_probs


def test_memory_of_states_without_features_alone_leaves_others_to_the_model():
    with Memory.open(":memory:", encoder=Letters()) as memory:
        filled(memory, [("12", "pay", 1.0), ("34", "back", 0.0)])
        decision = JitRL(memory).decide("a page", PRIOR, seed=0)
    assert decision.mode == "base" and decision.probs == decision.base_probs


@pytest.mark.slow
def test_state_of_ten_megabytes_and_a_million_words_is_learned_where_the_memory_takes_it():
    text = " ".join(f"word{i:05x}" for i in range(999_999))  # with " other" nearly as long as a state may be
    with Memory.open(":memory:", max_text_bytes=2**24) as memory:
        filled(memory, [(text, "pay", 1.0), (text, "back", 0.0), (f"{text} more", "back", 0.0)])
        decision = JitRL(memory).decide(f"{text} other", PRIOR, seed=0)
    check_finite(decision)
    assert decision.n_states == 2 and decision.probs["pay"] > 0.5
