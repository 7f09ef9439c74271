"""The flip audit: flipped decisions, executed actions, and the returns after them."""

from __future__ import annotations

import numpy as np
import pytest

from seasoned import Episode, JitRL, Memory, ModelAlone, Step
from seasoned.core.statistics import difference_interval
from seasoned.errors import InputError
from seasoned.lab.diagnosis.flip_audit import BUCKETS, audit

PRIOR = {"back": -0.6, "pay": -0.9, "wait": -3.0}


def one(action, reward, prior=PRIOR, state="page:cart"):
    return Episode("checkout", [Step(state, action, reward, prior, 0.3)])


def taught(memory):
    """Add steps in which `pay` earns 1 and `back` 0, so that memory prefers `pay` against the model."""
    for action, reward in [("pay", 1.0), ("pay", 1.0), ("back", 0.0), ("back", 0.0)]:
        memory.add(one(action, reward))


def test_flip_has_the_executed_action_and_the_return():
    with Memory.open(":memory:", gamma=0.5) as memory:
        taught(memory)
        memory.add(
            Episode(
                "checkout",
                [Step("page:cart", " Pay", 1.0, PRIOR, 0.3), Step("page:done", "close", 4.0, {"close": 0.0}, 1.0)],
                id="e",
            )
        )
        memory.add(one("wait", -1.0))
        report = audit(memory, JitRL)
        kl = JitRL(memory).decide("page:cart", PRIOR, seed=0)
    *_, paid, waited = report.flips
    assert (paid.episode_id, paid.step, paid.base_action, paid.memory_action) == ("e", 0, "back", "pay")
    assert (paid.took, paid.taken_action, paid.n_neighbors, paid.return_) == ("memory", " Pay", 4, 1.0 + 0.5 * 4.0)
    assert (waited.took, waited.return_) == ("other", -1.0)
    assert paid.advantage > 0.0
    assert paid.kl_nats > 0.0
    assert kl.mode == "memory"
    assert report.n_decisions == 7
    assert report.total.flips == len(report.flips)


def test_groups_by_neighbours_sum_to_the_total():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:") as memory:
        taught(memory)
        for _ in range(40):
            action = ("pay", "back", "wait")[rng.integers(3)]
            memory.add(one(action, float(action == "pay") + rng.normal(0, 0.1)))
        report = audit(memory, JitRL)
    assert sum(group.decisions for group in report.groups) == report.n_decisions == 44
    assert sum(group.flips for group in report.groups) == len(report.flips) > 30
    assert {(group.least, group.most) for group in report.groups} <= set(BUCKETS)
    for group in (*report.groups, report.total):
        mine = [
            f for f in report.flips if group.least <= f.n_neighbors <= (10**9 if group.most is None else group.most)
        ]
        assert group.flips == group.took_memory + group.took_base + group.took_other
        for outcome, who in ((group.after_memory, "memory"), (group.after_base, "base")):
            returns = [f.return_ for f in mine if f.took == who]
            assert outcome.n_steps == outcome.n_episodes == len(returns)
            assert outcome.mean == (pytest.approx(np.mean(returns)) if returns else None)
    ours, base = ([f.return_ for f in report.flips if f.took == who] for who in ("memory", "base"))
    assert report.total.difference == difference_interval(ours, base)
    assert report.total.difference.low > 0.5  # paying earns 1 more


def test_episode_counts_once_whatever_its_length():
    with Memory.open(":memory:", gamma=0.0) as memory:
        taught(memory)
        memory.add(Episode("checkout", [Step("page:cart", "pay", 1.0, PRIOR)] * 9))
        memory.add(Episode("checkout", [Step("page:cart", "pay", 5.0, PRIOR)]))
        after = audit(memory, JitRL, last=2).total.after_memory
    assert (after.n_steps, after.n_episodes, after.mean) == (10, 2, 3.0)


def test_mean_of_no_flips_is_none():
    with Memory.open(":memory:") as memory:
        taught(memory)
        memory.add(one("pay", 1.0))
        total = audit(memory, JitRL, last=1).total
    assert (total.after_memory.n_steps, total.after_memory.mean, total.after_memory.interval) == (1, 1.0, None)
    assert (total.after_base.n_steps, total.after_base.mean, total.difference) == (0, None, None)


def test_tie_is_not_a_flip():
    even = {"back": -0.7, "pay": -0.7}
    with Memory.open(":memory:") as memory:
        taught(memory)
        memory.add(one("pay", 1.0, even))
        report = audit(memory, JitRL, last=1)
    assert (report.flips, report.ties) == ((), 1)


def test_policy_without_memory_has_no_flips_and_undecided_steps_are_counted():
    with Memory.open(":memory:") as memory:
        taught(memory)
        memory.add(one("pay", 1.0, prior=None))
        report = audit(memory, lambda known: ModelAlone())
    assert report.flips == ()
    assert report.undecided == {"no stored prior": 1}
    assert (report.policy, report.n_decisions, report.total.decisions) == ("base", 4, 4)


def test_memory_without_priors_is_refused():
    with Memory.open(":memory:") as memory:
        memory.add_many([one("pay", 1.0, prior=None)] * 3)
        with pytest.raises(InputError) as caught:
            audit(memory, JitRL)
    assert "3 by no stored prior" in caught.value.seen
    assert "prior" in caught.value.rule
    assert "record" in caught.value.next_step


@pytest.mark.parametrize("policy", [None, 5, lambda known: 5, lambda known: None])
def test_function_that_makes_no_policy_is_refused(policy):
    with Memory.open(":memory:") as memory:
        taught(memory)
        with pytest.raises(InputError, match="policy") as caught:
            audit(memory, policy)
    assert "JitRL" in caught.value.next_step


@pytest.mark.parametrize("memory", [None, "agent.db"])
def test_other_object_than_a_memory_is_refused(memory):
    with pytest.raises(InputError, match="memory must be a Memory"):
        audit(memory, JitRL)
