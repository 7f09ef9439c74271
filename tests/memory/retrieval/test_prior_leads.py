"""By how much the model preferred stored actions, read from the priors of the steps."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, EvidenceQuery, JitRL, Memory, Selection, Step
from seasoned.errors import InputError
from seasoned.policies import ShuffledReturns

QUERY = {"k": 50, "unit": "states", "threshold": 0.0, "similarity": "rarity", "leads": True}


def prior(**probs):
    return {action: math.log(p) for action, p in probs.items()}


def add(memory, state, action, reward, probs=None, task="desk"):
    given = None if probs is None else prior(**probs)
    return memory.add(Episode(task, [Step(state, action, reward, prior=given)]))


def leads(memory, state, **changes):
    """Return the lead by action at the state itself."""
    evidence = memory.evidence(EvidenceQuery(state, **{**QUERY, **changes}))
    sums = evidence.by_state
    if sums.leads is None:
        return None
    here = zip(sums.states.tolist(), sums.actions.tolist(), sums.leads.tolist(), strict=True)
    return {evidence.actions[row]: lead for number, row, lead in here if number == 0}


def add_rising(memory, n=10):
    """Store steps in other words, whose returns rise with the lead."""
    for number in range(n):
        for action, reward in (("refund", 1.0), ("wait", 0.0)):
            add(memory, f"box{number} wet", action, reward, {"refund": 0.75, "wait": 0.25}, task="boxes")


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request):
    with Memory.open(":memory:" if request.param == "sqlite" else request.getfixturevalue("fresh_url")) as opened:
        add_rising(opened)
        yield opened


def test_leads_are_those_of_the_latest_prior_at_each_state(memory):
    add(memory, "the lamp is late", "refund", 1.0, {"refund": 0.5, "wait": 0.25, "call": 0.25})
    add(memory, "the lamp is late", "wait", 0.0, {"refund": 0.9, "wait": 0.1})
    add(memory, "the desk is late", "call", 0.0)
    assert leads(memory, "the lamp is late") == pytest.approx({"refund": 0.4, "wait": -0.4})
    assert math.isnan(leads(memory, "the desk is late")["call"])


def test_an_action_that_the_model_did_not_propose_has_the_lead_of_probability_0(memory):
    add(memory, "the lamp is late", "scrap", 1.0, {"refund": 0.75, "wait": 0.25})
    assert leads(memory, "the lamp is late") == pytest.approx({"scrap": -0.5})


def test_taken_leads_are_those_of_the_latest_steps_with_a_prior():
    with Memory.open(":memory:") as memory:
        add_rising(memory)
        add(memory, "the lamp is late", "refund", 0.8, {"refund": 0.7, "wait": 0.3})
        add(memory, "the sofa is late", "wait", 0.0)
        taken = memory.evidence(EvidenceQuery("the lamp", **QUERY)).taken_leads
    found = Counter(zip(*(column.round(6).tolist() for column in taken), strict=True))
    assert found == {(0.25, 0.125, 1.0): 10, (-0.25, 0.125, 0.0): 10, (0.2, 0.08, 0.8): 1}


@pytest.mark.parametrize("n_without", [20, 21])
def test_a_minority_of_steps_with_a_prior_does_not_speak_for_the_others(n_without):
    with Memory.open(":memory:") as memory:
        add_rising(memory)
        memory.add_many([Episode("desk", [Step(f"box{number} wet", "wait", 0.0)]) for number in range(n_without)])
        taken = memory.evidence(EvidenceQuery("the lamp", **QUERY)).taken_leads
    assert (taken is None) == (n_without > 20)


@pytest.mark.parametrize("rewards", [(0.0, 1.0), (1.0, 1.0)])
def test_nothing_is_read_where_returns_do_not_rise_with_leads(rewards):
    with Memory.open(":memory:") as memory:
        for action, reward in zip(("refund", "wait") * 10, rewards * 10, strict=True):
            add(memory, "the lamp is late", action, reward, {"refund": 0.75, "wait": 0.25})
        evidence = memory.evidence(EvidenceQuery("the lamp is late", **QUERY))
    assert evidence.taken_leads is None and evidence.by_state.leads is None


def test_steps_of_the_task_count_where_they_are_enough():
    with Memory.open(":memory:") as memory:
        for number in range(20):
            wrong = number % 2
            probs = {"refund": 0.75, "wait": 0.25} if wrong else {"refund": 0.2, "wait": 0.8}
            add(memory, f"lamp {number}", "wait", 1.0 - wrong, probs, task="lamps")
            add(memory, f"desk {number}", "refund", 1.0, {"refund": 0.9, "wait": 0.1}, task="desks")
        taken = memory.evidence(EvidenceQuery("the lamp", **QUERY, current_task="lamps")).taken_leads
        assert set(taken.leads.round(6).tolist()) == {-0.25, 0.3}
        taken = memory.evidence(EvidenceQuery("the lamp", **QUERY, current_task="sofas")).taken_leads
        assert len(taken.leads) == 40


def test_nothing_is_read_where_the_model_preferred_nothing():
    with Memory.open(":memory:") as memory:
        add(memory, "the lamp is late", "refund", 1.0, {"refund": 0.5, "wait": 0.5})
        add(memory, "the desk is late", "refund", 1.0)
        evidence = memory.evidence(EvidenceQuery("the lamp is late", **QUERY))
        assert evidence.taken_leads is None and evidence.by_state.leads is None


def test_no_leads_unless_asked_for():
    with Memory.open(":memory:") as memory:
        add_rising(memory)
        add(memory, "the lamp is late", "refund", 1.0, {"refund": 0.75, "wait": 0.25})
        evidence = memory.evidence(EvidenceQuery("the lamp is late", **{**QUERY, "leads": False}))
        assert evidence.taken_leads is None and evidence.by_state.leads is None
        with pytest.raises(InputError):
            EvidenceQuery("the lamp", k=5, unit="states", threshold=0.8, leads=True)


def test_the_excluded_task_has_no_leads():
    with Memory.open(":memory:") as memory:
        add_rising(memory)
        add(memory, "the lamp is late", "refund", 1.0, {"refund": 0.75, "wait": 0.25}, task="a")
        add(memory, "the lamp is late", "refund", 1.0, {"refund": 0.6, "wait": 0.4}, task="b")
        assert leads(memory, "the lamp is late", exclude_task="b") == pytest.approx({"refund": 0.25})


def test_a_long_prior_is_unknown():
    many = {f"option {number}": math.log(1 / 2000) for number in range(2000)}
    with Memory.open(":memory:") as memory:
        add_rising(memory)
        memory.add(Episode("desk", [Step("the lamp is late", "option 1", 1.0, prior=many)]))
        add(memory, "the desk is late", "refund", 1.0, {"refund": 0.75, "wait": 0.25})
        assert math.isnan(leads(memory, "the lamp is late")["option 1"])


def test_commits_and_quarantines_of_another_memory_are_followed(tmp_path):
    path = str(tmp_path / "desk.db")
    with Memory.open(path) as reader, Memory.open(path) as writer:
        add_rising(writer)
        add(writer, "the lamp is late", "refund", 1.0, {"refund": 0.75, "wait": 0.25})
        assert leads(reader, "the lamp is late") == pytest.approx({"refund": 0.25})
        second = add(writer, "the lamp is late", "refund", 1.0, {"refund": 0.6, "wait": 0.4})
        assert leads(reader, "the lamp is late") == pytest.approx({"refund": 0.1})
        writer.quarantine(Selection(episode=second), "a wrong desk")
        assert leads(reader, "the lamp is late") == pytest.approx({"refund": 0.25})


def sentences(memory, n=60):
    """Store what a model that is right three times in four did: its favourite pays, and other actions do not."""
    rng = np.random.default_rng(0)
    for number in range(n):
        favourite, other = ("refund", "wait") if number % 2 else ("wait", "refund")
        action, reward = (favourite, 1.0) if rng.random() < 0.75 else (other, 0.0)
        probs = {favourite: 0.75, other: 0.25}
        add(memory, f"about item {number} in box {rng.integers(9)}", action, reward, probs)


@pytest.mark.parametrize("favourite", ["refund", "wait"])
def test_a_model_that_is_mostly_right_is_not_outweighed_by_chance(favourite):
    other = "wait" if favourite == "refund" else "refund"
    given = prior(**{favourite: 0.75, other: 0.25})
    with Memory.open(":memory:") as memory:
        sentences(memory)
        for box in range(9):
            decision = JitRL(memory).decide(f"about item x in box {box}", given, seed=0)
            assert decision.probs[favourite] >= 0.75
        without = [
            JitRL(memory, prior_slope=False).decide(f"about item x in box {box}", given, seed=0).probs[favourite]
            for box in range(9)
        ]
    assert min(without) < 0.75


def test_a_house_rule_is_learned_against_a_model_that_is_mostly_right():
    with Memory.open(":memory:") as memory:
        sentences(memory)
        for number in range(6):
            add(memory, f"a broken vase {number}", "scrap", 1.0, {"refund": 0.75, "scrap": 0.25})
            add(memory, f"a broken vase {number}", "refund", 0.0, {"refund": 0.75, "scrap": 0.25})
        given = prior(refund=0.75, scrap=0.25)
        assert JitRL(memory).decide("a broken vase again", given, seed=0).probs["scrap"] > 0.9


def add_pages(memory, n=20):
    """Store many steps at one state, where waiting pays."""
    for _ in range(n):
        add(memory, "the page of the cart", "wait", 1.0, {"refund": 0.45, "wait": 0.55})
        add(memory, "the page of the cart", "refund", 0.0, {"refund": 0.45, "wait": 0.55})


@pytest.mark.parametrize("state", ["the page of the cart", "the page of the cart now"])
@pytest.mark.parametrize("invented", [{"wait": 1 - 1e-9, "refund": 1e-9}, {"wait": 1e-9, "refund": 1 - 1e-9}])
def test_one_invented_prior_does_not_change_what_many_steps_say_there(state, invented):
    with Memory.open(":memory:") as memory:
        sentences(memory)
        add_pages(memory)
        add(memory, "the page of the cart", "refund", 0.0, invented)
        decision = JitRL(memory).decide(state, prior(refund=0.45, wait=0.55), seed=0)
    assert decision.probs["wait"] > 0.99


@pytest.mark.parametrize("known", [True, False])
def test_many_steps_at_the_state_itself_outweigh_a_model_that_changed_its_mind(known):
    with Memory.open(":memory:") as memory:
        sentences(memory)
        for _ in range(20):
            for action, reward in (("wait", 1.0), ("refund", 0.0)):
                add(memory, "the page of the cart", action, reward, {"refund": 0.45, "wait": 0.55} if known else None)
        decision = JitRL(memory).decide("the page of the cart", prior(refund=0.9, wait=0.1), seed=0)
    assert decision.probs["wait"] > 0.99
    assert decision.estimated_advantages["wait"] - decision.estimated_advantages["refund"] > 1.5


@pytest.mark.parametrize("probs", [None, {"refund": 0.5, "wait": 0.5}, {"refund": 0.75, "wait": 0.25}])
@pytest.mark.parametrize("reward", [1.0, 1e6])
def test_unrelated_steps_with_invented_priors_move_no_decision(probs, reward):
    sure = {"junk": 0.0, **{f"option {number}": -40.0 for number in range(200)}}
    steps = [Step("zz", "junk", reward, prior=sure), Step("yy", "junk", -reward, prior={"other": 0.0})]
    with Memory.open(":memory:") as memory:
        for number in range(48):
            action = ("refund", "wait")[number // 2 % 2]
            add(memory, f"about item {number} in box {number % 5}", action, float(number % 2), probs)
        policy, given = JitRL(memory), prior(refund=0.7, wait=0.3)
        before = policy.decide("about item x in box 3", given, seed=0).probs
        for step in steps:
            memory.add(Episode("poison", [step]))
            after = policy.decide("about item x in box 3", given, seed=0).probs
            assert after["refund"] == pytest.approx(before["refund"], abs=0.05)


def test_the_reason_says_what_the_preference_adds():
    with Memory.open(":memory:") as memory:
        sentences(memory)
        policy, state = JitRL(memory), "about item x in box 3"
        preferred = policy.estimate(
            ("refund", "wait"), np.array([0.75, 0.25]), policy.evidence(state), np.random.default_rng(0)
        ).preferred
        decision = policy.decide(state, prior(refund=0.75, wait=0.25), seed=0)
        even = policy.decide(state, prior(refund=0.5, wait=0.5), seed=0)
    assert decision.action == "refund" and preferred[0] > 0.1
    assert f"; {preferred[0]:+.3f} of the advantage of the chosen one is the model's own preference" in decision.reason
    assert "preference" not in even.reason


def test_an_even_policy_decides_as_without_the_slope():
    even = prior(refund=0.5, wait=0.5)
    with Memory.open(":memory:") as memory:
        sentences(memory)
        found, without = (
            JitRL(memory, prior_slope=flag).decide("about item x in box 3", even, seed=0) for flag in (True, False)
        )
    assert found.probs == without.probs


def test_the_placebo_has_no_leads():
    with Memory.open(":memory:") as memory:
        sentences(memory)
        evidence = ShuffledReturns(memory, seed=0).evidence(EvidenceQuery("about item x", **QUERY))
    assert evidence.taken_leads is None
