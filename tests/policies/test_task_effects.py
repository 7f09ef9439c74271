"""The trap of tasks: where only the action says which task is played, its task's success rate is no advantage."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seasoned import Choice, Episode, EvidenceQuery, JitRL, Memory, Step
from seasoned.actions import ToolAction
from seasoned.errors import InputError
from seasoned.policies import ShuffledReturns
from seasoned.policies.examples import ExampleQuery, Examples
from seasoned.states import InputMessage, Transcript, TranscriptEncoder

STATE = "agent: anything else"


def cancel(order):
    return f'cancel({{"order":"{order}"}})'


def trapped(memory, rng, *, runs=20, easy="W100", hard="W900"):
    """Two tasks of success 0.9 and 0.1 at one state; the action names the order, and changes nothing."""
    for i in range(2 * runs):
        task, order, rate = (("easy", easy, 0.9), ("hard", hard, 0.1))[i % 2]
        memory.add(Episode(task, [Step(STATE, cancel(order), float(rng.random() < rate))]))


@pytest.mark.parametrize("seed", range(5))
def test_the_success_rate_of_a_task_is_no_advantage_of_its_actions(seed):
    with Memory.open(":memory:") as memory:
        trapped(memory, np.random.default_rng(seed))
        even = {cancel("W100"): -0.7, cancel("W900"): -0.7}
        decision = JitRL(memory).decide(STATE, even, seed=0)
    assert decision.probs[cancel("W100")] == pytest.approx(0.5, abs=0.01)


def with_an_unrelated_episode(memory):
    memory.add(Episode("long", [Step(f"room {i} of another house", "go", 0.0) for i in range(260)]))


def with_one_choice_at_the_state(memory):
    episode = memory.add(Episode("other", [Step(STATE, "look", 0.0)]))
    memory.feedback(episode, Choice(("look", "wait"), 0), author="ann", step=0)


@pytest.mark.parametrize(
    ("then", "settings"),
    [(with_an_unrelated_episode, {}), (with_one_choice_at_the_state, {}), (lambda memory: None, {"decay": 0.99})],
    ids=["unrelated episode", "choice", "decay"],
)
def test_the_trap_stays_shut(then, settings):
    with Memory.open(":memory:") as memory:
        trapped(memory, np.random.default_rng(0))
        then(memory)
        decision = JitRL(memory, **settings).decide(STATE, {cancel("W100"): -0.7, cancel("W900"): -0.7}, seed=0)
    assert decision.probs[cancel("W100")] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("n_tasks", "n_runs"), [(2, 300), (60, 20)])
def test_the_trap_stays_shut_for_tasks_played_one_after_another(n_tasks, n_runs):
    rng, rates = np.random.default_rng(1), np.linspace(0.95, 0.05, n_tasks)
    with Memory.open(":memory:") as memory:
        memory.add_many(
            Episode(f"task {t}", [Step(STATE, cancel(f"W{t}"), float(rng.random() < rate))])
            for t, rate in enumerate(rates)
            for _ in range(n_runs)
        )
        decision = JitRL(memory).decide(STATE, {cancel(f"W{t}"): 0.0 for t in range(n_tasks)}, seed=0)
    assert max(decision.probs.values()) == pytest.approx(1 / n_tasks, rel=0.01)


def test_two_runs_of_an_odd_task_silence_nothing_that_single_runs_teach():
    with Memory.open(":memory:") as memory:
        for i in range(100):
            memory.add(Episode(f"ticket {i}", [Step(STATE, ("deny", "refund")[i % 2], float(i % 2))]))
        for _ in range(2):
            memory.add(Episode("odd", [Step(STATE, "run the backup", 0.5)]))
        decision = JitRL(memory).decide(STATE, {"refund": -0.7, "deny": -0.7}, seed=0)
    assert decision.probs["refund"] > 0.99


def test_single_runs_teach_beside_a_majority_of_tasks_with_calls_of_their_own():
    with Memory.open(":memory:") as memory:
        for i in range(20):
            memory.add(Episode(f"ticket {i}", [Step(STATE, ("deny", "refund")[i % 2], float(i % 2))]))
        trapped(memory, np.random.default_rng(0))
        policy = JitRL(memory)
        own = policy.decide(STATE, {cancel("W100"): -0.7, cancel("W900"): -0.7}, seed=0)
        shared = policy.decide(STATE, {"refund": -0.7, "deny": -0.7}, seed=0)
    assert own.probs[cancel("W100")] == pytest.approx(0.5, abs=0.05)
    assert shared.probs["refund"] > 0.99


def test_actions_of_one_task_are_still_told_apart():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:") as memory:
        trapped(memory, rng)
        for i in range(20):
            memory.add(Episode("third", [Step(STATE, cancel(f"W50{i % 2}"), float(i % 2))]))
        decision = JitRL(memory).decide(STATE, {cancel("W500"): -0.7, cancel("W501"): -0.7}, seed=0)
    assert decision.probs[cancel("W501")] > 0.9


def test_one_run_of_a_task_says_nothing_about_its_action():
    with Memory.open(":memory:") as memory:
        trapped(memory, np.random.default_rng(0))
        memory.add(Episode("once lost", [Step(STATE, cancel("W1"), 0.0)]))
        memory.add(Episode("once won", [Step(STATE, cancel("W2"), 1.0)]))
        decision = JitRL(memory).decide(STATE, {cancel("W1"): -0.7, cancel("W2"): -0.7}, seed=0)
    assert decision.probs[cancel("W1")] == pytest.approx(0.5, abs=0.01)


def test_where_tasks_share_their_actions_returns_are_pooled_over_tasks_as_before():
    with Memory.open(":memory:") as mixed, Memory.open(":memory:") as pooled:
        for i in range(12):
            step = Step(STATE, ("refund", "explain")[i // 2 % 2], float(i // 2 % 2))
            mixed.add(Episode(f"task {i % 2}", [step]))
            pooled.add(Episode("task", [step]))
        decisions = [
            JitRL(memory).decide(STATE, {"refund": -0.7, "explain": -0.7}, seed=0) for memory in (mixed, pooled)
        ]
    assert decisions[0].advantages == decisions[1].advantages


def test_another_customers_call_is_not_proposed_and_a_call_that_fits_is():
    with Memory.open(":memory:") as memory:
        for i in range(6):
            memory.add(Episode("easy", [Step(STATE, cancel("W100"), 1.0)]))
            memory.add(Episode(f"any {i % 2}", [Step(STATE, 'transfer({"to":"human"})', 0.5)]))
        policy, even = JitRL(memory), {"ask": 0.0}
        elsewhere = policy.decide(STATE, even, admissible="any", task="new", seed=0)
        named = policy.decide(STATE, even, admissible="any", task="Cancel order w100, please.", seed=0)
        same = policy.decide(STATE, even, admissible="any", task="easy", seed=0)
        listed = policy.decide(STATE, even, admissible=["ask", cancel("W100")], task="new", seed=0)
    assert elsewhere.memory_only == ('transfer({"to":"human"})',)
    assert "1 remembered call not proposed" in elsewhere.reason
    assert cancel("W100") in named.memory_only
    assert cancel("W100") in same.memory_only
    assert listed.memory_only == (cancel("W100"),)


@pytest.mark.parametrize(
    "action", [cancel("W7745"), 'cancel("W7745")', "cancel(W7745)", "curl -X DELETE /orders/W7745", "I cancel W7745."]
)
def test_an_identifier_of_another_customer_is_not_proposed_in_any_text(action):
    """Nor if several tasks took it: one customer may have written several times."""
    with Memory.open(":memory:") as memory:
        for i in range(6):
            memory.add(Episode(f"I want my money {i % 3}", [Step(STATE, action, 1.0)]))
            memory.add(Episode(f"other {i}", [Step(STATE, "ask again", 0.5)]))
        policy, even = JitRL(memory), {"wait": 0.0}
        elsewhere = policy.decide(STATE, even, admissible="any", task="new", seed=0)
        named = policy.decide(f"{STATE} about w7745", even, admissible="any", task="new", seed=0)
        same = policy.decide(STATE, even, admissible="any", task="I want my money 1", seed=0)
    assert elsewhere.memory_only == ("ask again",)
    assert action in named.memory_only
    assert action in same.memory_only


@pytest.mark.parametrize("task", ["checkout", None])
def test_a_call_of_the_task_being_played_is_proposed_in_a_memory_of_one_task(task):
    fast, slow = 'pay({"mode":"fast"})', 'pay({"mode":"slow"})'
    with Memory.open(":memory:") as memory:
        for i in range(20):
            memory.add(Episode("checkout", [Step("page cart", (slow, fast)[i % 2], float(i % 2))]))
        policy = JitRL(memory)
        same = policy.decide("page cart", {"wait": 0.0}, admissible="any", task=task, seed=0)
        other = policy.decide("page cart", {"wait": 0.0}, admissible="any", task="another", seed=0)
    assert set(same.memory_only) == {fast, slow}
    assert same.probs[fast] > 0.5
    assert other.memory_only == ()


def test_calls_that_differ_in_case_alone_are_candidates_only_where_a_memory_keeps_them_apart():
    one, other = (ToolAction("get", {"id": id_}).text for id_ in ("aB", "Ab"))
    with Memory.open(":memory:") as memory:
        for i in range(20):
            memory.add(Episode("t", [Step(STATE, (one, other)[i % 2], 1.0 - i % 2)]))
        with pytest.raises(InputError, match="case"):
            JitRL(memory).decide(STATE, {'get({"id":"aB"})': -0.7, 'get({"id":"Ab"})': -0.7}, seed=0)
        probs = JitRL(memory).decide(STATE, {one: -0.7, other: -0.7}, seed=0).probs
    assert probs[one] > 0.9


def test_two_spellings_of_one_call_share_their_evidence():
    json_text = '{"arguments":{"q":"tea"},"name":"search"}'
    with Memory.open(":memory:") as memory, Memory.open(":memory:") as one:
        for i in range(6):
            memory.add(Episode("t", [Step(STATE, ('search({"q":"tea"})', json_text)[i % 2], float(i % 3 > 0))]))
            one.add(Episode("t", [Step(STATE, json_text, float(i % 3 > 0))]))
        even = {"search(q='tea')": -0.7, "stop": -0.7}
        spelled, alone = (JitRL(known).decide(STATE, even, seed=0) for known in (memory, one))
    assert spelled.counts["search(q='tea')"] == 6
    assert spelled.probs == pytest.approx(alone.probs)


def test_calls_of_one_tool_lend_to_each_other_and_not_to_another_tool():
    with Memory.open(":memory:") as memory:
        for i in range(12):
            memory.add(Episode("t", [Step(STATE, ("refund", "deny")[i % 2] + f'({{"order":"W{i}"}})', 1.0 - i % 2)]))
        even = {'refund({"order":"W77"})': -1.1, 'deny({"order":"W77"})': -1.1, 'wait({"order":"W77"})': -1.1}
        found = JitRL(memory).decide(STATE, even, seed=0).estimated_advantages
    assert found['refund({"order":"W77"})'] > found['wait({"order":"W77"})'] > found['deny({"order":"W77"})']


def test_the_placebo_has_sums_by_task_of_its_own_returns():
    from seasoned.policies.placebo.shuffled_returns import ShuffledReturns

    with Memory.open(":memory:") as memory:
        trapped(memory, np.random.default_rng(0))
        policy = JitRL(ShuffledReturns(memory, seed=0))
        decision = policy.decide(STATE, {cancel("W100"): -0.7, cancel("W900"): -0.7}, seed=0)
    assert decision.probs[cancel("W100")] == pytest.approx(0.5, abs=0.01)


WORDS = list("abcdefghijklm")


def paraphrase(words):
    return " ".join(["cancel", "it", *words.sample(WORDS, 5)])


def state_with(goal):
    return Transcript([InputMessage("tool find", '{"flights": []}')], ["find"], goal).text


def played(memory, goal_of, *, n_tasks=2, runs=20, seed=0):
    """Tasks of success 0.95 to 0.05 at one state apart from its goal; the action names the order of the task."""
    rng, rates = np.random.default_rng(seed), np.linspace(0.95, 0.05, n_tasks)
    memory.add_many(
        Episode(
            f"task {task}", [Step(state_with(goal_of(task)), cancel(f"W{task}"), float(rng.random() < rates[task]))]
        )
        for _ in range(runs)
        for task in rng.permutation(n_tasks).tolist()
    )


@pytest.mark.parametrize(("n_tasks", "runs"), [(2, 20), (20, 8), (100, 4)])
def test_a_task_with_a_goal_in_other_words_for_each_run_is_no_advantage_either(n_tasks, runs):
    """Nor where most runs of a task are not among the nearest states."""
    words = random.Random(0)
    even = {cancel(f"W{task}"): 0.0 for task in range(n_tasks)}
    with Memory.open(":memory:", encoder=TranscriptEncoder()) as memory:
        played(memory, lambda task: paraphrase(words), n_tasks=n_tasks, runs=runs)
        decision = JitRL(memory).decide(state_with(paraphrase(words)), even, task="new", seed=0)
    assert max(decision.probs.values()) < 1.2 / n_tasks


def test_tasks_of_one_run_each_teach_each_other_whatever_their_goals():
    words = random.Random(0)
    with Memory.open(":memory:", encoder=TranscriptEncoder()) as memory:
        memory.add_many(
            Episode(f"ticket {i}", [Step(state_with(paraphrase(words)), ("deny", "refund")[i % 2], float(i % 2))])
            for i in range(40)
        )
        decision = JitRL(memory).decide(state_with(paraphrase(words)), {"refund": -0.7, "deny": -0.7}, seed=0)
    assert decision.probs["refund"] > 0.99


def test_the_goal_that_is_pursued_says_which_task_is_played():
    """Under a new goal another task's success says nothing; under a task's own goal what failed in it is known."""
    goals = [f"cancel the flight of {name}" for name in "abcdefghij"]
    with Memory.open(":memory:", encoder=TranscriptEncoder()) as memory:
        played(memory, goals.__getitem__, n_tasks=10, runs=8)
        policy, even = JitRL(memory), {cancel("W0"): -0.7, cancel("W9"): -0.7}
        new = policy.decide(state_with("cancel it for zoe"), even, task="new", seed=0)
        own = policy.decide(state_with(goals[9]), {cancel("W9"): -0.2, "ask": -1.7}, task="task 9", seed=0)
    assert new.probs[cancel("W0")] == pytest.approx(0.5, abs=0.01)
    assert own.probs[cancel("W9")] < 0.2


def test_what_won_within_tasks_is_found_under_goals_in_other_words():
    words, rng = random.Random(0), np.random.default_rng(0)
    with Memory.open(":memory:", encoder=TranscriptEncoder()) as memory:
        played(memory, lambda task: paraphrase(words))
        memory.add_many(
            Episode("third", [Step(state_with(paraphrase(words)), cancel(f"W5{i % 2}"), float(rng.random() < i % 2))])
            for i in range(20)
        )
        even = {cancel("W50"): -0.7, cancel("W51"): -0.7}
        decision = JitRL(memory).decide(state_with(paraphrase(words)), even, task="third", seed=0)
    assert decision.probs[cancel("W51")] > 0.9


def test_examples_and_the_placebo_leave_goals_out_alike():
    words = random.Random(0)
    with Memory.open(":memory:", encoder=TranscriptEncoder()) as memory:
        played(memory, lambda task: paraphrase(words))
        state, examples = state_with(paraphrase(words)), Examples(memory, avoid=True)
        assert examples.retrieve(ExampleQuery("new", observation=state)) == ()
        query = EvidenceQuery(state, k=8, threshold=0.0, unit="states", similarity="rarity", by_task=True)
        real, shuffled = memory.evidence(query).by_task, ShuffledReturns(memory, seed=0).evidence(query).by_task
    assert (shuffled.situations.tolist(), shuffled.episodes.sum()) == (real.situations.tolist(), 8)
