"""The drift test: few false alarms, real changes detected, small groups refused."""

from __future__ import annotations

import numpy as np
import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError
from seasoned.lab.diagnosis.drift import drift, task_drifts


def episodes(task, totals):
    """Add one episode per total, as two rewards that sum to it."""
    return [Episode(task, [Step("a", "go", t / 2), Step("b", "go", t / 2)]) for t in totals]


def test_family_wise_error_is_bounded():
    rng = np.random.default_rng(0)
    alarms = 0
    for run in range(40):
        log = [e for task in "abc" for e in episodes(task, (rng.random(36) < 0.4).astype(float))]
        alarms += any(one.verdict in {"fell", "rose"} for one in task_drifts(log, seed=run))
    assert alarms <= 6  # 2 expected at 5 %; more than 6 once in 200 times


def test_fall_is_detected_in_its_task_only():
    rng = np.random.default_rng(1)
    n_detected = 0
    for run in range(20):
        log = episodes("falls", np.concatenate([rng.normal(1, 1, 40), rng.normal(-0.5, 1, 20)]))
        log += episodes("stays", rng.normal(1, 1, 60))
        by_task = {one.task: one for one in task_drifts(log, seed=run)}
        n_detected += by_task["falls"].verdict == "fell"
        assert by_task["falls"].difference.mean < 0
    assert n_detected >= 18


def test_means_and_counts_are_those_of_the_two_groups():
    [one] = task_drifts(episodes("t", [1.0] * 20 + [3.0, 5.0] * 5))
    assert (one.n_older, one.n_recent, one.older.mean, one.recent.mean) == (20, 10, 1.0, 4.0)
    assert (one.difference.mean, one.verdict) == (3.0, "rose")
    [two] = task_drifts(episodes("t", [1.0] * 20 + [3.0, 5.0] * 5), recent=15)
    assert (two.n_older, two.n_recent) == (15, 15)


def test_p_values_are_adjusted_for_the_number_of_tasks():
    log = episodes("a", [0.0, 1.0] * 10 + [1.0, 1.0] * 5)
    [alone] = task_drifts(log)
    [first, *_] = (one for one in task_drifts(log + episodes("b", [0.0, 1.0] * 15)) if one.task == "a")
    assert first.p_value == alone.p_value == alone.adjusted
    assert first.adjusted == pytest.approx(2 * first.p_value)


def test_task_with_too_few_episodes_is_not_tested():
    drifts = task_drifts(episodes("few", [0.0] * 20 + [9.0] * 9) + episodes("enough", [0.0, 1.0] * 20))
    assert [(one.task, one.p_value is None, one.verdict) for one in drifts] == [
        ("enough", False, "no change found"),
        ("few", True, "too few"),
    ]
    assert drifts[1].older is drifts[1].recent is drifts[1].difference is None


def test_aborted_and_quarantined_episodes_are_ignored():
    with Memory.open(":memory:") as memory:
        for number in range(40):
            memory.add(Episode("t", [Step("a", "go", 1.0)], id=f"e{number}"))
            if number >= 26:
                memory.feedback(f"e{number}", -1.0)
        memory.add(Episode("t", [Step("a", "go", 100.0)], ending="aborted"))
        [one] = drift(memory).tasks
    assert (one.older.mean, one.recent.mean, one.verdict) == (pytest.approx(1.0, abs=0.05), 0.0, "fell")


@pytest.mark.parametrize(
    "options", [{}, {"recent": 0}, {"min_episodes": 4}, {"min_episodes": True}, {"level": 0.0}, {"recent": 1.5}]
)
def test_bad_input_and_too_few_episodes_are_refused(options):
    with Memory.open(":memory:") as memory:
        memory.add_many(episodes("t", [0.0] * 29))
        with pytest.raises(InputError) as caught:
            drift(memory, **options)
    assert caught.value.seen and caught.value.rule and caught.value.next_step


@pytest.mark.parametrize("wrong", [None, "agent.db"])
def test_other_object_than_a_memory_is_refused(wrong):
    with pytest.raises(InputError, match="memory must be a Memory"):
        drift(wrong)


@pytest.mark.parametrize("options", [{"level": None}, {"seed": None}, {"seed": -1}])
def test_options_of_a_wrong_type_are_refused(options):
    with Memory.open(":memory:") as memory:
        memory.add_many(Episode("t", [Step("s", "a", float(n % 2))]) for n in range(40))
        with pytest.raises(InputError) as caught:
            drift(memory, **options)
    assert caught.value.seen and caught.value.rule and caught.value.next_step
