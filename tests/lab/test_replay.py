"""The replay: each episode is decided again with a memory of the earlier episodes only."""

from __future__ import annotations

import math

import pytest

from seasoned import Episode, JitRL, Memory, ModelAlone, Selection, Step
from seasoned.errors import InputError, NotFoundError
from seasoned.lab.diagnosis.replay import NO_PRIOR, counted_episodes, replay

HALF = {"pay": math.log(0.5), "back": math.log(0.5)}


def cart(action="pay", reward=1.0, prior=HALF, propensity=0.5, **fields):
    return Episode("checkout", [Step("page:cart", action, reward, prior, propensity)], **fields)


def play(memory, n, prior=HALF, **settings):
    """Play and record episodes."""
    policy = JitRL.preset("means", memory, **settings) if settings else JitRL(memory)
    for number in range(n):
        with memory.episode(task="checkout", id=f"e{number}") as episode:
            for step in range(3):
                state = f"page:{step} of {number % 2}"
                decision = policy.decide(state, prior, task="checkout", step=step, seed=number)
                episode.record(state, decision, float(decision.action == "pay") * (step == 2))


def test_replay_of_the_recording_policy_reproduces_its_propensities():
    """For every step the replayed probability is the recorded propensity."""
    with Memory.open(":memory:", gamma=0.9) as memory:
        play(memory, 25)
        steps = [step for one in replay(memory, JitRL) for step in one.steps]
    assert len(steps) == 75
    assert sum(step.decision.mode == "memory" for step in steps) > 50
    for step in steps:
        assert step.probability == pytest.approx(step.step.propensity, abs=1e-12)


@pytest.mark.parametrize("settings", [{"backup": 4.0}, {"propensity_floor": 0.05}], ids=str)
def test_replay_reproduces_propensities_with_backup_and_propensity_weights(settings):
    """These settings read the stored priors and propensities, which are replayed as well."""
    uneven = {"pay": math.log(0.2), "back": math.log(0.8)}
    settings |= {"threshold": 0.3}
    with Memory.open(":memory:", gamma=0.9) as memory:
        play(memory, 10, uneven, **settings)
        steps = [s for one in replay(memory, lambda known: JitRL.preset("means", known, **settings)) for s in one.steps]
    assert sum(step.decision.mode == "memory" for step in steps) > 20
    for step in steps:
        assert step.probability == pytest.approx(step.step.propensity, rel=1e-3)


def test_replay_of_an_episode_uses_earlier_episodes_only():
    with Memory.open(":memory:") as memory:
        for _ in range(5):
            memory.add(cart())
        known = [one.steps[0].decision.n_steps for one in replay(memory, JitRL)]
    assert known == [0, 1, 2, 3, 4]


def test_last_limits_the_decisions_and_not_the_memory():
    with Memory.open(":memory:") as memory:
        for _ in range(5):
            memory.add(cart())
        rows = [(one.number, one.steps[0].decision.n_steps) for one in replay(memory, JitRL, last=2)]
        assert rows == [(3, 3), (4, 4)]
        assert len(list(replay(memory, JitRL, last=50))) == 5


def test_rewards_include_active_feedback():
    with Memory.open(":memory:") as memory:
        for number in range(4):
            memory.add(cart(id=f"e{number}"))
        memory.feedback("e0", -2.0, weight=0.5)
        memory.revoke(memory.feedback("e1", -5.0))
        memory.feedback("e2", -7.0, source="judge")
        memory.feedback("e2", 3.0, source="human")
        memory.quarantine(Selection(source="judge"), "wrong")
        assert [e.steps[0].reward for e in counted_episodes(memory)] == [0.0, 1.0, 4.0, 1.0]
        for one in counted_episodes(memory):
            [expected] = [n.experience.return_ for n in memory.search("page:cart") if n.experience.episode_id == one.id]
            assert one.steps[0].reward == expected


def test_aborted_and_quarantined_episodes_are_skipped():
    with Memory.open(":memory:") as memory:
        for number in range(4):
            memory.add(cart(id=f"e{number}"))
        memory.add(cart(id="broken", ending="aborted"))
        memory.add(cart(id="last"))
        memory.quarantine(Selection(episode="e1"), "wrong")
        rows = [(one.episode.id, one.steps[0].decision.n_steps) for one in replay(memory, JitRL)]
    assert rows == [("e0", 0), ("e2", 1), ("e3", 2), ("last", 3)]


def test_step_without_a_prior_is_not_decided():
    with Memory.open(":memory:") as memory:
        memory.add(cart(prior=None))
        memory.add(cart(prior={"pay": -0.5, "PAY ": -1.0}))
        steps = [one.steps[0] for one in replay(memory, JitRL)]
    assert [step.unusable for step in steps] == [NO_PRIOR, "the prior lists one action twice"]
    assert [(step.decision, step.probability) for step in steps] == [(None, None)] * 2


def test_stored_action_outside_the_prior_is_admissible():
    with Memory.open(":memory:") as memory:
        for _ in range(3):
            memory.add(cart("secret door"))
        memory.add(cart("secret door"))
        *_, last = replay(memory, JitRL)
    assert last.steps[0].memory_only
    assert last.steps[0].decision.memory_only == ("secret door",)
    assert last.steps[0].probability > 0.0


def test_spellings_of_one_action_are_equal():
    with Memory.open(":memory:") as memory:
        memory.add(cart("  PAY "))
        [one] = replay(memory, lambda known: ModelAlone())
    assert one.steps[0].probability == pytest.approx(0.5)
    assert not one.steps[0].memory_only


def test_argmax_gives_the_likeliest_action_probability_one():
    with Memory.open(":memory:") as memory:
        memory.add(cart("pay", prior={"pay": -0.1, "back": -2.4}))
        memory.add(cart("back", prior={"pay": -0.1, "back": -2.4}))
        argmax = replay(memory, lambda known: JitRL(known, selection="argmax", nats_per_step=None, min_neighbors=100))
        assert [one.steps[0].probability for one in argmax] == [1.0, 0.0]


def test_replay_writes_nothing_and_uses_the_same_encoder():
    with Memory.open(":memory:", gamma=0.3) as memory:
        play(memory, 4)
        before = memory.verify().hash
        seen = []
        list(replay(memory, lambda known: seen.append((known.encoder, known.gamma)) or JitRL(known)))
        assert seen == [(memory.encoder, 0.3)]
        assert memory.verify().hash == before


def test_bad_input_is_refused_before_the_first_decision():
    with Memory.open(":memory:") as memory:
        with pytest.raises(NotFoundError, match="no finished episode"):
            replay(memory, JitRL)
        memory.add(cart())
        for last in (0, -1, True, 1.5, "3"):
            with pytest.raises(InputError) as caught:
                replay(memory, JitRL, last=last)
            assert caught.value.seen and caught.value.rule and caught.value.next_step
