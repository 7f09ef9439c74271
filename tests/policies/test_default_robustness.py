"""No unit, offset, single step or near page turns the default's decisions about a page that is known."""

from __future__ import annotations

import functools
import math
import random

import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.states import PatternMatch, TemplateEncoder

EVEN = {"good": math.log(0.5), "bad": math.log(0.5)}
LIKELY, UNLIKELY = {"pay": -0.1, "back": -2.4}, {"pay": -2.4, "back": -0.1}


def filled(memory, steps):
    memory.add_many([Episode(task, [Step(state, action, reward)]) for task, state, action, reward in steps])


def decided(steps, state, prior, **given):
    with Memory.open(":memory:") as memory:
        filled(memory, steps)
        return JitRL(memory).decide(state, prior, seed=0, **given)


def pages(n, unit=1.0, offset=0.0):
    return [
        ("small", f"page{page}", action, offset + unit * (action == "good"))
        for page in range(n)
        for _ in range(5)
        for action in EVEN
    ]


def steps_at(state="page", n=400):
    return [("t", state, "pay" if i % 2 else "back", float(i % 2)) for i in range(n)]


@pytest.mark.parametrize(
    ("offset", "unit"), [(0.0, 1.0), (1e3, 1.0), (10.0, 0.01), (1e6, 100.0), (0.0, 1e-100), (0.0, 1e99), (-1.0, 1.0)]
)
def test_neither_the_unit_of_rewards_nor_their_offset_changes_what_is_learned(offset, unit):
    assert decided(pages(4, unit, offset), "page0", EVEN).probs["good"] > 0.95


@pytest.mark.parametrize("n_levels", [1, 5])
def test_task_of_350_points_silences_no_task_of_one(n_levels):
    levels = [
        ("big", f"level{level}", action, 340.0 * level / n_levels + 10.0 * (action == "good"))
        for level in range(n_levels)
        for _ in range(5)
        for action in EVEN
    ]
    assert decided([*pages(5), *levels], "page0", EVEN, task="small").probs["good"] > 0.95


@pytest.mark.parametrize("task", [None, "a task of one step"])
@pytest.mark.parametrize("n_absurd", [2, 10])
@pytest.mark.parametrize("reward", [1e3, -1e6])
def test_a_few_absurd_rewards_silence_no_decision_without_a_task_of_its_own(reward, n_absurd, task):
    absurd = [("t", f"elsewhere{i}", "leave", reward) for i in range(n_absurd)]
    assert decided([*pages(20), *absurd], "page0", EVEN, task=task).probs["good"] > 0.95


def test_one_absurd_loss_among_many_steps_flips_nothing():
    decision = decided([*steps_at(), ("t", "page", "pay", -1000.0)], "page", LIKELY)
    assert decision.probs["pay"] > 0.8


@pytest.mark.parametrize(("settings", "after_two", "after_three"), [({}, 0.7, 0.0), ({"change_rate": 0.0}, 0.99, 0.99)])
def test_three_losses_after_returns_that_were_always_one_are_a_change_and_two_are_not(settings, after_two, after_three):
    with Memory.open(":memory:") as memory:
        filled(memory, [*steps_at(n=300), *[("t", "page", "pay", 0.0)] * 2])
        policy = JitRL(memory, **settings)
        assert policy.decide("page", LIKELY, seed=0).probs["pay"] > after_two
        filled(memory, [("t", "page", "pay", 0.0)])
        assert policy.decide("page", LIKELY, seed=0).probs["pay"] == pytest.approx(after_three, abs=0.02)


def test_four_losses_after_returns_that_varied_are_no_change():
    rng = random.Random(0)
    steps = [("t", "page", a, float(rng.random() < p)) for _ in range(150) for a, p in (("pay", 0.8), ("back", 0.2))]
    assert decided([*steps, *[("t", "page", "pay", 0.0)] * 4], "page", LIKELY).probs["pay"] > 0.8


def test_own_steps_outvote_hundreds_of_opposite_ones_at_a_near_page():
    words = [f"w{i}" for i in range(40)]
    page, near = " ".join(words), " ".join([*words[:39], "new"])
    opposite = [("t", near, action, 1.0 - reward) for _, _, action, reward in steps_at()]
    assert decided([*steps_at(page, 20), *opposite], page, LIKELY).probs["pay"] > 0.95


def test_action_that_once_returned_more_than_anything_is_repeated_until_its_mean_is_lower():
    """One step is believed: in a sparse game the first success is all that there is. Its failures are believed too."""
    rounds = []
    with Memory.open(":memory:") as memory:
        filled(memory, [*steps_at(n=200), ("t", "page", "new", 10.0)])
        policy = JitRL(memory)
        for n_failures in (0, 20):
            filled(memory, [("t", "page", "new", 0.0)] * n_failures)
            rounds.append(policy.decide("page", LIKELY, admissible="any", seed=0).probs["new"])
    assert rounds[0] > 0.5 > 0.05 > rounds[1]


def test_rare_success_of_an_unlikely_action_moves_it_by_no_more_than_its_steps_allow():
    """`a` failed ten times at each of 25 pages; `b`, of prior 0.001, was tried once at each, and paid at one."""
    prior = {"a": math.log(0.999), "b": math.log(0.001)}
    steps = [("t", f"s{page}", "a", 0.0) for page in range(25) for _ in range(10)]
    steps += [("t", f"s{page}", "b", float(page == 0)) for page in range(25)]
    paid, failed = (decided(steps, f"s{page}", prior) for page in (0, 1))
    assert paid.kl_nats <= 11.0 + 1e-9  # a nat for each step here
    assert failed.probs["b"] < 0.01


def test_words_added_to_a_page_leave_memory_on_and_fields_leave_it_as_it_was():
    page = " ".join(f"word{number}" for number in range(39))
    steps = steps_at(f"cart {page}", n=100)

    def pays(n_junk, policy=JitRL, **opened):
        with Memory.open(":memory:", **opened) as memory:
            filled(memory, steps)
            junk = " ".join(f"junk{number}" for number in range(n_junk))
            return policy(memory).decide(f"cart {page} {junk}".strip(), UNLIKELY, seed=0)

    by_threshold = functools.partial(JitRL.preset, "means")
    assert pays(0, by_threshold).probs["pay"] > 0.99 and pays(11, by_threshold).mode == "base"
    probabilities = [pays(n_junk).probs["pay"] for n_junk in (0, 11, 20, 40)]
    assert probabilities[1] > 0.99 and probabilities[2] > 0.9 and probabilities[3] > 0.6
    assert probabilities == sorted(probabilities, reverse=True)
    first_word = TemplateEncoder("{page}", fields={"page": PatternMatch(r"^(\w+)")})
    assert pays(400, encoder=first_word).probs == pays(0, encoder=first_word).probs
