"""Curation: the value of an example follows from its own outcome and from the outcomes where it was shown."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

from seasoned import Episode, Memory, Step
from seasoned.core.impression_value import derived_shrinkage, observed_impressions, posterior_worth
from seasoned.policies.examples import ExampleQuery, Examples
from seasoned.policies.examples.impression_effects import EpisodeTrust, ImpressionEffects
from seasoned.types import RecallQuery

STATE = "page:cart items:2 total:12"


@pytest.fixture
def memory():
    with Memory.open(":memory:", gamma=0.9) as opened:
        yield opened


def play(memory, id_, reward, shown=(), *, action="act", state=STATE, task="t"):
    memory.add(Episode(task, [Step(state, action, reward)], id_))
    if shown:
        note_shown(memory, id_, shown)


def note_shown(memory, id_, shown, purpose="act"):
    body = {"examples": [[of, 0] for of in shown], "mode": "prompt", "purpose": purpose}
    return memory.note(id_, "shown", body, step=0)


def by_id(standings):
    return {one.episode_id: one for one in standings}


def harmful(memory, n=12):
    """`good` and `bad` both succeeded once; the steps that were shown `bad` failed."""
    play(memory, "good", 1.0, action="pay")
    play(memory, "bad", 1.0, action="pay with points")
    for number in range(n):
        play(memory, f"g{number}", 1.0, ["good"])
        play(memory, f"b{number}", -1.0, ["bad"])
    for number in range(4):
        play(memory, f"n{number}", 0.0)


def test_example_values_equal_their_definition(memory):
    rewards = {"e0": 1.0, "e1": 0.5, "s0": 1.0, "s1": -1.0, "s2": 0.25}
    shown = {"s0": ["e0"], "s1": ["e0", "e1"], "s2": ["e1"]}
    for id_, reward in rewards.items():
        play(memory, id_, reward, shown.get(id_, ()))

    def advantage(id_):
        return rewards[id_] - float(np.mean([reward for other, reward in rewards.items() if other != id_]))

    rows = [
        (0, 0, 1.0, advantage("s0")),
        (0, 1, 0.5, advantage("s1")),
        (1, 1, 0.5, advantage("s1")),
        (1, 2, 1.0, advantage("s2")),
    ]
    which, episodes, shares, advantages = zip(*rows, strict=True)
    weight = 4 / 5  # of a step beside four others
    observed = observed_impressions(np.array(which), np.array(episodes), weight * np.array(shares), advantages, 2)
    observed = observed.with_own([advantage("e0"), advantage("e1")], weight)
    worth = posterior_worth(observed, derived_shrinkage(observed))
    standings = by_id(Examples(memory).values())
    assert set(standings) == {"e0", "e1"}
    for row, id_ in enumerate(("e0", "e1")):
        one = standings[id_]
        assert (one.value, one.low, one.high) == pytest.approx((worth.values[row], worth.low[row], worth.high[row]))
        assert (one.return_, one.n_shown) == (rewards[id_], 2)
        assert one.n_observed == pytest.approx(observed.counts[row])


def test_credit_of_a_step_is_shared_by_its_shown_examples(memory):
    play(memory, "e0", 1.0)
    play(memory, "e1", 1.0)
    play(memory, "s0", 1.0, ["e0"])
    note_shown(memory, "s0", ["e1", "e0"], purpose="reason")
    play(memory, "s1", 0.0, ["e0"])
    standings = by_id(Examples(memory).values())
    assert {id_: one.n_shown for id_, one in standings.items()} == {"e0": 2, "e1": 1}
    # Of e0's credit, half a share is of s0 and one of s1: (1/2 + 1)^2 / (1/4 + 1) episodes, and its own outcome, which
    # is beside three others.
    assert standings["e0"].n_observed == pytest.approx(1.5**2 / 1.25 + 3 / 4)


def test_harmful_example_ranks_last_despite_its_success(memory):
    harmful(memory)
    examples = Examples(memory)
    assert [one.episode_id for one in examples.ranking()] == ["good", "bad"]
    [(task, [best])] = examples.best_per_task().items()
    assert (task, best.episode_id) == ("t", "good")
    [first, *_] = examples.retrieve(ExampleQuery("t", observation=STATE))
    assert (first.episode_id, first.n_shown) == ("good", 12)


def test_example_without_effect_remains_a_model_and_a_harmful_one_does_not(memory):
    harmful(memory)
    examples = Examples(memory, k=5)
    play(memory, "idle", 1.0, action="wait")
    for number in range(10):  # a model that takes no notice of it does as it always does, or a little worse
        play(memory, f"i{number}", 0.5 if number % 2 else -0.6, ["idle"])
    idle, bad = (by_id(examples.values())[id_] for id_ in ("idle", "bad"))
    assert idle.value < 0.0 < idle.high
    assert bad.high < 0.0
    retrieved = [example.action for example in examples.retrieve(ExampleQuery("t", observation=STATE))]
    assert "wait" in retrieved
    assert retrieved.index("pay") < retrieved.index("wait")
    assert "pay with points" not in retrieved


def test_late_feedback_changes_the_value(memory):
    harmful(memory)
    examples = Examples(memory)
    before = by_id(examples.values())["good"].value
    for number in range(12):
        memory.feedback(f"g{number}", -2.0, source="human")
    assert by_id(examples.values())["good"].value < before


def test_pruning_retires_harmful_examples_and_can_be_revoked(memory):
    harmful(memory)
    examples = Examples(memory, k=5)

    def shown():
        return {example.action for example in examples.retrieve(ExampleQuery("t", observation=STATE))}

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


def values(examples, query=None):
    retrieved = examples.retrieve(query or ExampleQuery("t", observation=STATE))
    return [(one.place, one.value, one.low, one.high, one.n_shown) for one in retrieved]


def test_late_reward_counts_at_the_next_retrieval(memory):
    for id_, action, reward in (("e0", "pay", 1.0), ("e1", "back", 0.0), ("e2", "wait", 0.9)):
        play(memory, id_, reward, action=action)
    live = Examples(memory)
    for number in range(6):
        play(memory, f"s{number}", 0.0, ["e2"], action="look")
        values(live)
    before = values(live)
    for number in range(6):
        memory.feedback(f"s{number}", 1.0 + number, source="tests")
    assert values(live) == values(Examples(memory)) != before
    [note] = memory.notes(kind="shown", episode_id="s0")
    memory.revoke(note.id)
    assert values(live) == values(Examples(memory))
    assert by_id(live.values())["e2"].n_shown == 5


@pytest.mark.parametrize("resumed", [10, 30])
def test_resumed_run_retrieves_the_examples_of_an_uninterrupted_one(resumed):
    def run(breaks):
        rng, seen = random.Random(3), []
        with Memory.open(":memory:", gamma=0.9) as memory:
            examples = Examples(memory, k=2)
            for number in range(40):
                if number in breaks:
                    examples = Examples(memory, k=2)
                state = f"page:{rng.choice('abc')} total:12"
                shown = [place[0] for place, *_ in values(examples, ExampleQuery("t", observation=state))]
                seen.append(values(examples, ExampleQuery("t", observation=state)))
                play(memory, f"e{number}", rng.random(), shown, action=rng.choice("wxyz"), state=state)
                if number % 3 == 0:
                    memory.feedback(f"e{number // 2}", rng.random(), source="tests")
        return seen

    uninterrupted = run(())
    assert any(len(retrieved) == 2 and retrieved[0][-1] > 1 for retrieved in uninterrupted)
    assert run((resumed,)) == uninterrupted


def test_impressions_in_untrusted_episodes_do_not_count(memory):
    for id_, action, reward in (("e0", "pay", 1.0), ("e1", "back", 0.0), ("e2", "wait", 0.9), ("e3", "back", 0.2)):
        memory.add(Episode("t", [Step(STATE, action, 0.0)], id_))
        memory.feedback(id_, reward, source="tests")
    play(memory, "s0", 0.0, ["e2"], action="look")
    memory.feedback("s0", 0.4, source="tests")

    def believing():
        yield Examples(memory, trusted=lambda episode: not episode.id.startswith("p"))
        yield Examples(memory, vouched_by={"tests"})

    before = [(values(examples), examples.values()) for examples in believing()]
    assert all(len(retrieved) == 2 and [one.n_shown for one in standings] == [1] for retrieved, standings in before)
    for number in range(8):
        play(memory, f"p{number}", 100.0, ["e2", "e1"], action="steal")
    assert [(values(examples), examples.values()) for examples in believing()] == before
    assert "steal" in {one.action for one in Examples(memory).retrieve(ExampleQuery("t", observation=STATE))}


def test_impressions_in_an_excluded_task_do_not_count(memory):
    play(memory, "e0", 1.0, action="pay", task="other")
    play(memory, "e1", 0.0, action="back", task="other")

    def guarded():
        return values(Examples(memory), ExampleQuery("mine", observation=STATE)), values(
            Examples(memory, exclude_task="mine"), ExampleQuery("mine", observation=STATE)
        )

    _, before = guarded()
    for number in range(5):
        play(memory, f"s{number}", -3.0, ["e0"], action="look", task="mine")
    all_, after = guarded()
    assert after == before != all_


def test_two_equal_examples_in_an_episode_are_one_observation(memory):
    for id_ in ("one", "two"):
        play(memory, id_, 1.0, action="pay")
    play(memory, "e0", 0.0, action="back")
    with memory.episode("t", id="s") as episode:
        for index, of in enumerate(("one", "two")):
            episode.record("page other", "look", 0.0)
            episode.note("shown", {"examples": [[of, 0]]}, step=index)
    play(memory, "s2", 1.0, action="look", state="page other")
    observed, n_shown, _ = ImpressionEffects(memory, 0.9, EpisodeTrust(memory, None, None)).observed(
        [[("one", 0), ("two", 0)]], alike=True, exclude_task=None
    )
    assert (observed.counts.tolist(), n_shown) == ([1.0], [2])


def test_impressions_count_for_every_step_of_a_state_action_pair(memory):
    play(memory, "one", 0.9, action="pay")
    for number in range(6):
        play(memory, f"s{number}", 0.0, ["one"], action="look")
    play(memory, "better", 1.0, action="pay")
    play(memory, "worse", 0.8, action="pay")
    assert ("one", 0) not in {moment.place for moment in memory.recall(RecallQuery({"observation": STATE})).moments}
    _, n_shown, _ = ImpressionEffects(memory, 0.9, EpisodeTrust(memory, None, None)).observed(
        [[("better", 0), ("worse", 0)], [("s0", 0)]], alike=True, exclude_task=None
    )
    assert n_shown == [6, 0]


def test_a_retired_pair_stays_retired_outside_of_the_pool(memory):
    play(memory, "e0", 0.8, action="pay")
    play(memory, "back", 0.0, action="back")
    memory.note("e0", "retired", {}, step=0, source="curation")
    for number, reward in enumerate((1.0, 0.7)):
        play(memory, f"more {number}", reward, action="Pay")
    query = ExampleQuery("unheard of", observation=STATE)
    assert ("e0", 0) not in {one.place for one in memory.recall(RecallQuery(query.texts("act"))).moments}
    assert values(Examples(memory), query) == []
    [note] = memory.notes(kind="retired")
    memory.revoke(note.id)
    assert [place for place, *_ in values(Examples(memory), query)] == [("more 0", 0)]


def test_retired_plan_retires_every_episode_with_that_plan(memory):
    for number, plan in enumerate(("open then pay", "Open then  pay", "wait")):
        with memory.episode("t", id=f"e{number}") as episode:
            episode.note("plan", {"text": plan})
            episode.record(STATE, "go", 1.0 - 0.1 * number)
    play(memory, "bad", 0.0)
    memory.note("e0", "retired", {}, step=0, source="ann")
    retrieved = Examples(memory, k=5).retrieve(ExampleQuery("t", observation=STATE), purpose="plan")
    assert [one.episode_id for one in retrieved] == ["e2"]


def test_few_impressions_retire_no_example(memory):
    harmful(memory, n=1)
    assert Examples(memory).prune() == ()


def test_retired_example_retires_its_duplicates(memory):
    play(memory, "one", 1.0, action="pay")
    play(memory, "two", 1.0, action="PAY")
    play(memory, "other", 1.0, action="buy")
    memory.note("one", "retired", {}, step=0, source="ann")
    retrieved = Examples(memory, k=5).retrieve(ExampleQuery("t", observation=STATE))
    assert [example.action for example in retrieved] == ["buy"]


def test_new_impressions_count_and_revoked_ones_do_not(memory):
    play(memory, "e0", 1.0)
    play(memory, "e1", 0.0)
    examples = Examples(memory)

    def n_shown():
        return examples.retrieve(ExampleQuery("t", observation=STATE))[0].n_shown

    assert n_shown() == 0
    play(memory, "s0", 1.0, ["e0"], state="page elsewhere", task="u")
    assert n_shown() == 1
    id_ = note_shown(memory, "s0", ["e1"], purpose="reason")
    assert len(examples.values()) == 2
    memory.revoke(id_)
    assert len(examples.values()) == 1


@pytest.mark.parametrize("body", [{}, {"examples": "e0"}, {"examples": [["e0"], "e0", ["e0", "x"]]}, {"examples": []}])
def test_shown_note_without_valid_examples_is_ignored(memory, body):
    """`note` refuses some of these bodies; earlier versions stored them, so that this test writes one by SQL."""
    play(memory, "e0", 1.0)
    memory.note("e0", "shown", {}, step=0)
    memory.session.write(lambda: memory.session.store.execute("UPDATE note SET body = ?", (json.dumps(body),)))
    assert memory.notes()[0].body == body
    assert Examples(memory).values() == ()


def test_erased_example_is_not_listed(memory):
    play(memory, "e0", 1.0)
    memory.add(Episode("t", [Step(STATE, "pay", 1.0)], "gone", subject="ann"))
    play(memory, "s0", 1.0, ["e0", "gone"])
    examples = Examples(memory)
    assert len(examples.values()) == 2
    memory.erase("ann")
    assert [one.episode_id for one in examples.values()] == ["e0"]


def test_outcome_without_peers_has_weight_zero(memory):
    play(memory, "alone", 5.0, state="a page like no other")
    play(memory, "s0", 1.0, ["alone"], state="nor is this")
    [one] = Examples(memory).values()
    assert (one.n_shown, one.n_observed, one.value) == (1, 0.0, 0.0)
    assert math.isinf(one.high)
