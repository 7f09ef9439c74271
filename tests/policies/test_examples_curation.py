"""Curation: an example is worth what followed it, and what followed where it was shown."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seasoned import Episode, Memory, Step
from seasoned.core.showing import derived_shrinkage, observed_showings, posterior_worth
from seasoned.policies.examples import Examples, Query

STATE = "page:cart items:2 total:12"


@pytest.fixture
def memory():
    with Memory.open(":memory:", gamma=0.9) as opened:
        yield opened


def play(memory, id_, reward, shown=(), *, action="act", state=STATE, task="t"):
    memory.add(Episode(task, [Step(state, action, reward)], id_))
    if shown:
        told(memory, id_, shown)


def told(memory, id_, shown, purpose="act"):
    body = {"examples": [[of, 0] for of in shown], "mode": "prompt", "purpose": purpose}
    return memory.note(id_, "shown", body, step=0)


def by_id(standings):
    return {one.episode_id: one for one in standings}


def harmful(memory, n=12):
    """`good` and `bad` both worked once; where `bad` was shown, things went wrong."""
    play(memory, "good", 1.0, action="pay")
    play(memory, "bad", 1.0, action="pay with points")
    for number in range(n):
        play(memory, f"g{number}", 1.0, ["good"])
        play(memory, f"b{number}", -1.0, ["bad"])
    for number in range(4):
        play(memory, f"n{number}", 0.0)


def test_values_are_those_of_the_definition(memory):
    rewards = {"e0": 1.0, "e1": 0.5, "s0": 1.0, "s1": -1.0, "s2": 0.25}
    shown = {"s0": ["e0"], "s1": ["e0", "e1"], "s2": ["e1"]}
    for id_, reward in rewards.items():
        play(memory, id_, reward, shown.get(id_, ()))

    def advantage(id_):
        return rewards[id_] - float(np.mean([reward for other, reward in rewards.items() if other != id_]))

    rows = [(0, 0, 1.0, advantage("s0")), (0, 1, 0.5, advantage("s1")), (1, 1, 0.5, advantage("s1")),
            (1, 2, 1.0, advantage("s2"))]  # fmt: skip
    which, episodes, shares, advantages = zip(*rows, strict=True)
    observed = observed_showings(np.array(which), np.array(episodes), shares, advantages, 2)
    observed = observed.with_own([advantage("e0"), advantage("e1")])
    worth = posterior_worth(observed, derived_shrinkage(observed))
    found = by_id(Examples(memory).values())
    assert set(found) == {"e0", "e1"}
    for row, id_ in enumerate(("e0", "e1")):
        one = found[id_]
        assert (one.value, one.low, one.high) == pytest.approx((worth.values[row], worth.low[row], worth.high[row]))
        assert (one.return_, one.n_shown) == (rewards[id_], 2)
        assert one.n_observed == pytest.approx(observed.counts[row])


def test_the_credit_of_a_step_is_shared_by_all_that_its_notes_name(memory):
    play(memory, "e0", 1.0)
    play(memory, "e1", 1.0)
    play(memory, "s0", 1.0, ["e0"])
    told(memory, "s0", ["e1", "e0"], purpose="reason")
    play(memory, "s1", 0.0, ["e0"])
    found = by_id(Examples(memory).values())
    assert {id_: one.n_shown for id_, one in found.items()} == {"e0": 2, "e1": 1}
    # Of e0's credit, half a share is of s0 and one of s1: (1/2 + 1)^2 / (1/4 + 1) episodes, and its own outcome.
    assert found["e0"].n_observed == pytest.approx(1.5**2 / 1.25 + 1.0)


def test_what_did_harm_ranks_last_though_it_worked_itself(memory):
    harmful(memory)
    examples = Examples(memory)
    assert [one.episode_id for one in examples.ranking()] == ["good", "bad"]
    [(task, [best])] = examples.best_per_task().items()
    assert (task, best.episode_id) == ("t", "good")
    [first, *_] = examples.retrieve(Query("t", observation=STATE))
    assert (first.episode_id, first.n_shown) == ("good", 12)


def test_feedback_that_comes_late_moves_the_value(memory):
    harmful(memory)
    examples = Examples(memory)
    before = by_id(examples.values())["good"].value
    for number in range(12):
        memory.feedback(f"g{number}", -2.0, source="human")
    assert by_id(examples.values())["good"].value < before


def test_pruning_retires_what_is_surely_worse_and_can_be_taken_back(memory):
    harmful(memory)
    examples = Examples(memory, k=5)

    def shown():
        return {example.action for example in examples.retrieve(Query("t", observation=STATE))}

    assert [one.episode_id for one in examples.prune(dry_run=True)] == ["bad"]
    assert memory.notes(kind="retired") == []
    [retired] = examples.prune()
    assert (retired.episode_id, retired.high < 0.0) == ("bad", True)
    assert "pay with points" not in shown()
    assert by_id(examples.values())["bad"].retired
    assert examples.prune() == ()  # once is enough
    assert memory.get("bad").steps[0].reward == 1.0
    [note] = memory.notes(kind="retired")
    assert (note.episode_id, note.step, note.body["confidence"]) == ("bad", 0, 0.95)
    memory.revoke(note.id)
    assert not by_id(examples.values())["bad"].retired


def test_little_evidence_retires_nothing(memory):
    harmful(memory, n=1)
    assert Examples(memory).prune() == ()


def test_a_retired_example_takes_its_clones_with_it(memory):
    play(memory, "one", 1.0, action="pay")
    play(memory, "two", 1.0, action="PAY")
    play(memory, "other", 1.0, action="buy")
    memory.note("one", "retired", {}, step=0, source="ann")
    found = Examples(memory, k=5).retrieve(Query("t", observation=STATE))
    assert [example.action for example in found] == ["buy"]


def test_what_was_shown_is_followed_and_what_was_taken_back_is_not_counted(memory):
    play(memory, "e0", 1.0)
    play(memory, "e1", 0.0)
    examples = Examples(memory)

    def n_shown():
        return examples.retrieve(Query("t", observation=STATE))[0].n_shown

    assert n_shown() == 0
    play(memory, "s0", 1.0, ["e0"], state="page elsewhere", task="u")
    assert n_shown() == 1
    id_ = told(memory, "s0", ["e1"], purpose="reason")
    assert len(examples.values()) == 2
    memory.revoke(id_)
    assert len(examples.values()) == 1


@pytest.mark.parametrize("body", [{}, {"examples": "e0"}, {"examples": [["e0"], "e0", ["e0", "x"]]}, {"examples": []}])
def test_a_note_that_names_nothing_is_passed_over(memory, body):
    play(memory, "e0", 1.0)
    memory.note("e0", "shown", body, step=0)
    assert Examples(memory).values() == ()


def test_an_example_that_is_gone_is_not_listed(memory):
    play(memory, "e0", 1.0)
    memory.add(Episode("t", [Step(STATE, "pay", 1.0)], "gone", subject="ann"))
    play(memory, "s0", 1.0, ["e0", "gone"])
    examples = Examples(memory)
    assert len(examples.values()) == 2
    memory.erase("ann")
    assert [one.episode_id for one in examples.values()] == ["e0"]


def test_where_nothing_is_alike_an_outcome_says_nothing(memory):
    play(memory, "alone", 5.0, state="a page like no other")
    play(memory, "s0", 1.0, ["alone"], state="nor is this")
    [one] = Examples(memory).values()
    assert (one.n_shown, one.n_observed, one.value) == (1, 0.0, 0.0)
    assert math.isinf(one.high)
