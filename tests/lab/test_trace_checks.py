"""The diagnosis of traces without priors: each check finds its fault, and says nothing of too few records."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned import Episode, Memory, Step
from seasoned.lab.diagnosis.doctor import diagnose
from seasoned.lab.diagnosis.drift import task_drifts
from seasoned.lab.diagnosis.outcome_checks import (
    OutcomeScores,
    check_outcomes,
    overall_concordance,
    sample_tasks,
    score,
    within_tasks_concordance,
)
from seasoned.lab.diagnosis.trace_checks import (
    action_names,
    alike_tasks,
    check_actions_elsewhere,
    check_coverage,
    check_task_groups,
)
from seasoned.states import SubwordEncoder, TokenEncoder
from seasoned.states.encoder_names import ENCODERS
from seasoned.states.transcript.goals import is_goal

STATE = "tool: no more results"


def trap(n_tasks=8, runs=5, seed=0):
    """Tasks of very different success, whose action names the order of the task at a state that all of them share."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(0.05, 0.95, n_tasks)
    return [
        Episode(f"task {task}", [Step(STATE, f'cancel({{"order":"W{task}"}})', float(rng.random() < rates[task]))])
        for _ in range(runs)
        for task in rng.permutation(n_tasks)
    ]


def test_actions_that_name_their_task_are_a_finding_with_the_figure_within_tasks():
    with Memory.open(":memory:") as memory:
        memory.add_many(trap())
        checks = {check.name: check for check in diagnose(memory).checks}
    named = checks["actions that name their task"]
    assert named.verdict == "finding"
    assert named.numbers["share"] == 1.0
    assert "of one task" in named.seen
    assert checks["actions that occur in other tasks"].numbers == {
        "steps": 40,
        "exact_elsewhere": 0,
        "name_elsewhere": 40,
    }


def test_goals_in_other_words_for_each_run_do_not_hide_actions_that_name_their_task():
    episodes = []
    for at, one in enumerate(trap()):
        words = "".join(chr(97 + int(digit)) for digit in f"{at:03d}")  # no two goals are alike
        state = f"goal:\nhelp {words}\ntool find:\nno more results"
        episodes.append(Episode(one.task, [Step(state, one.steps[0].action, one.steps[0].reward)]))
    with Memory.open(":memory:", encoder=ENCODERS["transcript"]) as memory:
        memory.add_many(episodes)
        assert all(any(map(is_goal, memory.encoder.features(one.steps[0].state))) for one in episodes)
        [named] = [one for one in diagnose(memory).checks if one.name == "actions that name their task"]
    assert (named.verdict, named.numbers["share"]) == ("finding", 1.0)
    assert (named.numbers["within_tasks"], "put the goal" in named.next_step) == (0.5, False)


@pytest.mark.parametrize(("said", "held_back"), [("no more results", 45), ("orders W0, W1, W2, W3: no more", 0)])
def test_remembered_calls_of_other_orders_are_counted_as_held_back(said, held_back):
    calls = [f'cancel({{"order":"W{number % 4}"}})' for number in range(15)]
    with Memory.open(":memory:") as memory:
        memory.add_many(
            Episode(f"task {number % 4}", [Step(f"tool: {said}", call, float(number % 3 == 0))])
            for number, call in enumerate(calls)
        )
        [check] = [one for one in diagnose(memory).checks if one.name == "remembered calls that fit"]
    assert check.numbers == {"calls": 60, "held_back": held_back}


def test_runs_of_one_task_are_drawn_together():
    tasks = [f"task {number % 333}" for number in range(1998)] + [f"single {number}" for number in range(300)]
    drawn = sample_tasks(tasks, seed=1)
    runs = Counter(tasks[at] for at in drawn)
    assert (len(drawn), sorted(runs.values())[1:]) == (160, [6] * 26)  # the last task gives what still fits
    assert drawn == sorted(set(drawn))
    assert drawn != sample_tasks(tasks, seed=2)
    assert not any(task.startswith("single") for task in runs)


@given(st.lists(st.sampled_from("abcdefgh"), max_size=60), st.integers(1, 30))
def test_a_draw_of_tasks_is_full_and_takes_the_latest_runs(tasks, most):
    drawn = sample_tasks(tasks, most=most)
    assert len(drawn) == len(set(drawn)) == min(most, len(tasks))
    for task in set(tasks):
        runs = [at for at, one in enumerate(tasks) if one == task]
        taken = [at for at in drawn if tasks[at] == task]
        assert taken == runs[len(runs) - len(taken) :]


def test_a_large_store_has_a_figure_within_tasks_and_says_what_was_drawn():
    episodes = [
        Episode(f"t{number % 100}", [Step(STATE, "go", float((number // 100) % 2))], id=str(number))
        for number in range(300)
    ]
    with Memory.open(":memory:") as memory:
        found = score(memory, episodes, policy="default", seed=3)
    assert within_tasks_concordance(found).n_pairs >= 40
    assert found.sampled == "160 episodes of 54 tasks, drawn by task (seed 3) from 300 episodes of 100 tasks"


def test_where_no_two_runs_of_a_task_differ_there_is_nothing_to_compare():
    alike = OutcomeScores(("a", "a", "b"), np.array([1.0, 1.0, 0.0]), np.zeros(3), (0, 0, 0), 0, 0)
    assert "nothing to compare" in str(within_tasks_concordance(alike))
    assert check_outcomes(alike).verdict == "not checked"


def test_within_tasks_the_trap_scores_all_runs_alike():
    with Memory.open(":memory:") as memory:
        found = score(memory, trap(), policy="default")
    assert np.abs(found.scores).max() < 1e-6
    assert within_tasks_concordance(found).value == pytest.approx(0.5)


def test_concordance_is_the_auc_of_pairs_by_definition():
    tasks, totals = ("a", "a", "a", "b", "b"), np.array([1.0, 0.0, 0.0, 1.0, 0.0])
    found = OutcomeScores(tasks, totals, np.array([0.5, 0.5, 0.1, -1.0, 2.0]), (0,) * 5, 0, 0)
    within, overall = within_tasks_concordance(found), overall_concordance(found)
    assert (within.value, within.n_pairs) == (pytest.approx((0.5 + 1.0 + 0.0) / 3), 3)
    assert (overall.value, overall.n_pairs) == (pytest.approx((0.5 + 1.0 + 0.0 + 0.0 + 0.0 + 0.0) / 6), 6)


def test_the_rate_of_a_task_in_other_runs_ranks_no_run_of_it_above_another():
    draw = np.random.default_rng(0)
    n_tasks, n_runs = 12, 8
    won = draw.random((n_tasks, n_runs)) < 0.5  # by chance: nothing that a run does makes a difference
    side = np.array([draw.permutation(n_runs) % 2 for _ in range(n_tasks)])
    rates = np.array([[one[half == other].mean() for other in (0, 1)] for one, half in zip(won, side, strict=True)])
    scores = np.take_along_axis(rates, 1 - side, axis=1).ravel()  # by a memory of the other half
    tasks, totals = tuple(f"t{at // n_runs}" for at in range(won.size)), won.ravel().astype(float)
    found = OutcomeScores(tasks, totals, scores, tuple(side.ravel().tolist()), 0, 0)
    within = within_tasks_concordance(found)
    assert (within.value, check_outcomes(found).verdict) == (0.5, "fine")
    across = within_tasks_concordance(replace(found, memories=(0,) * won.size))
    assert across.value == pytest.approx(0.34, abs=0.1)
    assert check_outcomes(replace(found, scores=-totals)).verdict == "finding"


@pytest.mark.parametrize(("n_tasks", "verdict"), [(40, "finding"), (20, "finding"), (13, "fine"), (4, "fine")])
def test_tasks_of_one_or_two_episodes_are_a_finding(n_tasks, verdict):
    episodes = [Episode(f"goal {i % n_tasks}", [Step("s", "go", 1.0)]) for i in range(40)]
    check = check_task_groups(episodes)
    assert check.verdict == verdict
    assert check_task_groups(episodes[:10]).verdict == "not checked"


def test_tasks_that_are_one_task_in_other_words_are_a_finding():
    ways = ("Cancel order W{0} please", "I no longer want W{0}, stop it", "get rid of my purchase (W{0})")
    paraphrased = [
        Episode(way.format(f"147{order}"), [Step("s", "go", 1.0)] * 1)
        for order in range(10)
        for way in ways
        for _ in range(3)
    ]
    check = check_task_groups(paraphrased)
    assert (check.verdict, check.numbers["alike_tasks"], check.numbers["small_tasks"]) == ("finding", 30, 0)
    assert "--task" in check.next_step
    named = [Episode(f"airline-{number % 30}", [Step("s", "go", 1.0)]) for number in range(90)]
    assert (check_task_groups(named).verdict, check_task_groups(named).numbers["alike_tasks"]) == ("fine", 0)


def test_alike_tasks_have_the_same_numbers():
    assert alike_tasks(["add 1 checked bag", "add 2 checked bag", "t1", "t2", "", "Book a flight to Rome"]) == set()
    assert alike_tasks(["open the red door now", "open the red door", "sell the car"]) == {
        "open the red door now",
        "open the red door",
    }
    assert alike_tasks([f"python3 {'abcdefghijkl'[at] * 3}" for at in range(12)]) == set()


def test_actions_that_occur_in_no_other_task_are_a_finding():
    own = [Episode(f"t{i}", [Step("s", f"tool{i} now", 1.0)] * 10) for i in range(4)]
    check = check_actions_elsewhere(own)
    assert (check.verdict, check.numbers["name_elsewhere"]) == ("finding", 0)
    assert check_actions_elsewhere(own[:1]).verdict == "not checked"


def test_names_of_actions():
    spelled = ['find({"id":1})', "find(id=1)", '{"name":"find","arguments":{"id":1}}', "click('b')", "go north", "()"]
    assert action_names(spelled) == ["find", "find", "find", "click", "go", ""]


def test_coverage_leaves_the_own_task_out_and_names_a_better_encoder():
    # Words change their endings from task to task: whole words find little, their n-grams much.
    def state(task, wish):
        return " ".join(
            f"{word}{'aeiou'[task % 5]}{task}" for word in ("refunding", "ordering", "shipping")[wish:][:1] * 3
        )

    episodes = [
        Episode(f"t{task}", [Step(f"{state(task, wish)} w{task}", ("refund", "order", "ship")[wish], 1.0)])
        for task in range(20)
        for wish in range(3)
    ]
    plain = check_coverage(TokenEncoder(), episodes)
    assert plain.numbers["covered_at_0.4"] == 0.0
    assert (plain.verdict, plain.numbers["better_encoder"]) == ("finding", "subwords")
    assert "reindex=True" in plain.command
    assert check_coverage(SubwordEncoder(), episodes).verdict == "fine"
    same = [Episode("one", [Step("s", "go", 1.0)]) for _ in range(30)]
    assert check_coverage(TokenEncoder(), same).verdict == "not checked"


@pytest.mark.parametrize("namespace", ["default", 'the shop\'s "desk"'])
def test_the_command_of_a_better_encoder_changes_the_encoder(tmp_path, namespace):
    path = str(tmp_path / "a b's.db")
    words = ["refunding", "ordering", "shipping"]
    with Memory.open(path, namespace=namespace, encoder=TokenEncoder()) as memory:
        memory.add_many(
            Episode(f"t{task}", [Step(f"{words[wish]}{'aeiou'[task % 5]}{task} w{task}", words[wish], 1.0)])
            for task in range(20)
            for wish in range(3)
        )
        check = next(one for one in diagnose(memory).findings if one.name == "steps alike in other tasks")
    program, option, code = shlex.split(check.command)
    assert (program, option) == ("python", "-c")
    exec(code, {})
    with Memory.open(path, namespace=namespace) as memory:
        assert memory.encoder.identity == ENCODERS[check.numbers["better_encoder"]].identity
        assert len(memory.episodes()) == 60
        assert all(one.name != check.name for one in diagnose(memory).findings)


def test_small_tasks_drift_together():
    won = [Episode(f"t{i % 15}", [Step("s", "go", 1.0)]) for i in range(40)]
    lost = [Episode(f"t{i % 15}", [Step("s", "go", 0.0)]) for i in range(20)]
    pooled = task_drifts(won + lost)[0]
    assert (pooled.verdict, pooled.pooled, pooled.n_older, pooled.n_recent) == ("fell", 15, 40, 20)
    assert all(one.verdict == "too few" for one in task_drifts(won + lost)[1:])
