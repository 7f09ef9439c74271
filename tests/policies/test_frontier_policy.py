"""Exploration before the first reward: to the end of a chain in few episodes, and nowhere once something has paid."""

from __future__ import annotations

import math

import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.errors import InputError

EVEN = {"left": math.log(0.5), "right": math.log(0.5)}


def play(memory, policy, n_rooms, seed, prior=EVEN):
    """Walk a corridor of rooms for 3 n steps, from the first; the last pays. Return whether it was reached."""
    room = 0
    with memory.episode(task="walk") as episode:
        for step in range(3 * n_rooms):
            decision = policy.decide(f"room{room}", prior, task="walk", step=step, seed=seed)
            before, room = room, max(0, room + (1 if decision.action == "right" else -1))
            reached = room == n_rooms - 1
            episode.record(f"room{before}", decision, reward=float(reached))
            if reached:
                return True
        episode.final_state, episode.ending = f"room{room}", "truncated"
    return False


def episodes_needed(n_rooms, seed, **settings):
    with Memory.open(":memory:") as memory:
        policy = JitRL(memory, **settings)
        return next((e for e in range(2 * n_rooms) if play(memory, policy, n_rooms, 1000 * seed + e)), 2 * n_rooms)


def test_end_of_a_chain_is_reached_in_fewer_episodes_than_it_has_rooms():
    needed = [episodes_needed(12, seed, frontier=True) for seed in range(2)]
    assert max(needed) < 12
    assert sum(needed) < sum(episodes_needed(12, seed) for seed in range(2))


def walked(memory, rewards=(0.0, 0.0), task="walk", prior=EVEN):
    steps = [
        Step(state, "left", reward, prior=prior) for state, reward in zip(("room0", "room1"), rewards, strict=True)
    ]
    memory.add_many([Episode(task, steps, final_state="room0", ending="truncated") for _ in range(4)])


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


def test_decision_says_where_it_is_heading(memory):
    walked(memory)
    decision = JitRL(memory, frontier=True).decide("room0", EVEN, task="walk", seed=0)
    assert decision.probs["right"] > 0.8
    assert "nothing has paid yet: towards the nearest action that was not tried, here" in " ".join(
        decision.explain().split()
    )
    beta_a = {a: decision.logprobs[a] + decision.beta * decision.advantages[a] for a in EVEN}
    norm = math.log(sum(map(math.exp, beta_a.values())))
    assert decision.probs == pytest.approx({a: math.exp(z - norm) for a, z in beta_a.items()})


@pytest.mark.parametrize(
    ("settings", "rewards", "task"),
    [
        ({}, (0.0, 0.0), "walk"),  # off unless asked for
        ({"frontier": True}, (0.0, 1.0), "walk"),  # it has paid
        ({"frontier": True}, (0.0, 1.0), None),
        ({"frontier": True}, (1.0, 1.0), "walk"),  # all succeed
        ({"frontier": True}, (-0.01, 1.0), "walk"),
    ],
)
def test_rule_does_not_act_where_it_is_off_or_something_was_earned(memory, settings, rewards, task):
    walked(memory, rewards)
    with_rule = JitRL(memory, **settings).decide("room0", EVEN, task=task, seed=0)
    plain = JitRL(memory).decide("room0", EVEN, task=task, seed=0)
    assert with_rule.probs == plain.probs
    assert "paid" not in with_rule.reason


@pytest.mark.parametrize("cost", [-0.01, -1.0])
def test_costs_of_steps_leave_the_task_to_be_explored(memory, cost):
    walked(memory, (cost, cost))
    assert "nothing has paid yet" in JitRL(memory, frontier=True).decide("room0", EVEN, task="walk", seed=0).reason


def test_another_task_that_pays_leaves_this_one_to_be_explored(memory):
    walked(memory)
    walked(memory, (0.0, 1.0), task="other")
    policy = JitRL(memory, frontier=True)
    assert "nothing has paid yet" in policy.decide("room0", EVEN, task="walk", seed=0).reason
    assert "paid" not in policy.decide("room0", EVEN, task="other", seed=0).reason


def test_late_feedback_ends_the_exploration(memory):
    walked(memory)
    policy = JitRL(memory, frontier=True)
    assert policy.decide("room0", EVEN, task="walk", seed=0).explored
    memory.feedback(memory.episodes()[0].id, reward=1.0, step=1)
    assert not policy.decide("room0", EVEN, task="walk", seed=0).explored


def test_sure_model_is_not_moved(memory):
    sure = {"left": math.log(0.9999), "right": math.log(0.0001)}
    walked(memory, prior=sure)
    decision = JitRL(memory, frontier=True).decide("room0", sure, task="walk", seed=0)
    assert decision.probs["right"] < 0.002


def test_state_that_was_never_visited_is_left_to_the_model(memory):
    walked(memory)
    decision = JitRL(memory, frontier=True).decide("room0 again", EVEN, task="walk", seed=0)
    assert decision.probs == pytest.approx({"left": 0.5, "right": 0.5})


def test_frontier_needs_the_process():
    with Memory.open(":memory:") as memory, pytest.raises(InputError):
        JitRL.preset("means", memory, frontier=True)
