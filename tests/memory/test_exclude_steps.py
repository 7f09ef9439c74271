"""Steps that a question leaves out weigh nothing: the answer is that of a memory that never valued them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from seasoned import Episode, Memory, Step
from seasoned.core import discounted_returns, jaccard
from seasoned.errors import InputError
from seasoned.memory import Selection
from seasoned.policies.shuffled import ShuffledReturns
from seasoned.types import Backup, normalize_action

GAMMA = 0.5
STATES = [f"page {a} {b}" for a in "abc" for b in "xy"] + ["page a", "end"]


def some_episodes(seed, n=14):
    rng = random.Random(seed)
    for number in range(n):
        steps = [
            Step(rng.choice(STATES), rng.choice(["go", "GO", "wait", "pay"]), rng.choice([0.0, 1.0, -0.5, 1e6]),
                 propensity=rng.choice([None, 0.25, 1.0]))
            for _ in range(rng.randint(1, 4))
        ]  # fmt: skip
        yield Episode(rng.choice(["buy", "find"]), steps, f"e{number}", ending=rng.choice(["terminated", "truncated"]))


@pytest.fixture(scope="module")
def memory():
    with Memory.open(":memory:", gamma=GAMMA) as opened:
        opened.add_many(some_episodes(3))
        yield opened


def drawn(memory, seed, share=0.3):
    rng = random.Random(seed)
    every = [(e.id, i) for e in memory.episodes() for i in range(len(e.steps))]
    return [one for one in every if rng.random() < share]


def by_definition(memory, state, left_out, *, k, unit, threshold, decay, power, task):
    """Count, weight, total, squares by action: over the steps that are left, best first, then latest."""
    asked, rows, episodes = memory.encoder.features(state), [], memory.episodes()
    for ordinal, episode in enumerate(episodes, start=1):
        returns = discounted_returns([step.reward for step in episode.steps], GAMMA)
        for index, step in enumerate(episode.steps):
            features = memory.encoder.features(step.state)
            near = jaccard(asked, features)
            if (episode.id, index) not in left_out and near >= threshold and episode.task != task:
                rows.append((near, ordinal, index, features, step, float(returns[index])))
    rows.sort(key=lambda row: (-row[0], -row[1], -row[2]))
    if unit == "steps":
        rows = rows[:k]
    else:
        order = list(dict.fromkeys(row[3] for row in rows))[:k]
        rows = [row for row in rows if row[3] in order]
    sums = defaultdict(lambda: np.zeros(4))
    for near, ordinal, _, _, step, g in rows:
        w = near**power * decay ** (len(episodes) - ordinal)
        sums[normalize_action(step.action)] += (1.0, w, w * g, w * g * g)
    return dict(sums), len({row[3] for row in rows})


@pytest.mark.parametrize("unit", ["steps", "states"])
@pytest.mark.parametrize("task", [None, "buy"])
@pytest.mark.parametrize("settings", [{}, {"decay": 0.8}, {"similarity_power": 2.0}])
def test_it_equals_the_definition(memory, unit, task, settings):
    for seed in range(4):
        left_out = set(drawn(memory, seed))
        for state in STATES[::3]:
            for k, threshold in ((2, 0.0), (50, 0.5)):
                found = memory.evidence(
                    state, k=k, unit=unit, threshold=threshold, exclude_task=task, exclude_steps=left_out, **settings
                )
                wanted, n_states = by_definition(
                    memory, state, left_out, k=k, unit=unit, threshold=threshold, decay=settings.get("decay", 1.0),
                    power=settings.get("similarity_power", 0.0), task=task,
                )  # fmt: skip
                seen = {
                    normalize_action(action): row
                    for action, *row in zip(found.actions, found.counts, found.weights, found.totals, found.squares,
                                            strict=True)
                }  # fmt: skip
                assert seen.keys() == wanted.keys()
                for key, row in seen.items():
                    assert np.allclose(row, wanted[key], rtol=1e-12, atol=1e-9)
                assert found.n_states == n_states
                assert not {(n.experience.episode_id, n.experience.step) for n in found.neighbors} & left_out


def same(one, other):
    assert one.actions == other.actions
    for name in ("counts", "weights", "totals", "squares"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9), name
    assert one.neighbors == other.neighbors
    assert (one.n_states, one.n_unlogged) == (other.n_states, other.n_unlogged)


@pytest.mark.parametrize(
    "settings", [{}, {"propensity_floor": 0.05}, {"propensity_floor": 0.1, "decay": 0.9}, {"backup": Backup(2.0)}]
)
def test_whole_episodes_left_out_are_those_in_quarantine(memory, settings):
    """What else takes steps away without a trace says the same, with graphs and propensities."""
    gone = {"e1", "e4", "e9"}
    left_out = [(e.id, i) for e in memory.episodes() if e.id in gone for i in range(len(e.steps))]
    with Memory.open(":memory:", gamma=GAMMA) as other:
        other.add_many(some_episodes(3))
        for id_ in gone:
            other.quarantine(Selection(episode=id_), "left out")
        for state in STATES:
            asked = {"k": 3, "unit": "states", "threshold": 0.2, **settings}
            same(memory.evidence(state, exclude_steps=left_out, **asked), other.evidence(state, **asked))


def test_a_huge_return_leaves_no_rounding_behind():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("s", "go", 1e16)], "huge"))
        memory.add(Episode("t", [Step("s", "go", 0.1)], "small"))
        found = memory.evidence("s", k=1, unit="states", threshold=1.0, exclude_steps=[("huge", 0)])
        assert (found.totals.tolist(), found.counts.tolist()) == ([0.1], [1.0])


def test_a_state_whose_steps_are_all_left_out_makes_room_for_the_next():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("a b c", "go", 1.0)], "e1"))
        memory.add(Episode("t", [Step("a b d", "wait", 2.0)], "e2"))
        memory.add(Episode("t", [Step("a b e", "pay", 3.0)], "e3"))
        asked = {"k": 1, "unit": "states", "threshold": 0.0}
        assert memory.evidence("a b c", **asked).actions == ("go",)
        assert memory.evidence("a b c", exclude_steps=[("e1", 0)], **asked).actions == ("pay",)  # the latest of a tie
        assert memory.evidence("a b c", exclude_steps=[("e1", 0), ("e3", 0)], **asked).actions == ("wait",)
        assert memory.evidence("a b c", exclude_steps=[("e1", 0), ("e2", 0), ("e3", 0)], **asked).actions == ()


def test_what_is_not_stored_is_passed_over(memory):
    asked = {"k": 5, "unit": "states", "threshold": 0.2}
    same(memory.evidence("page a", exclude_steps=[("gone", 0), ("e1", 99), ("e1", 2**40)], **asked),
         memory.evidence("page a", **asked))  # fmt: skip


@pytest.mark.parametrize("bad", ["e1", [("e1",)], [("e1", -1)], [("e1", True)], [("e1", 0.5)], [("", 0)], ["e1"], [3],
                                 [("e1", 0, 1)], None, 7, [("e", n) for n in range(10_001)]])  # fmt: skip
def test_what_names_no_step_is_refused(memory, bad):
    with pytest.raises(InputError) as caught:
        memory.evidence("page a", k=5, unit="states", threshold=0.2, exclude_steps=bad)
    assert caught.value.seen
    assert caught.value.rule
    assert caught.value.next_step


@pytest.mark.parametrize("unit", ["steps", "states"])
def test_the_placebo_leaves_the_same_steps_out(memory, unit):
    placebo = ShuffledReturns(memory, 0)
    left_out = drawn(memory, 7)
    asked = {"k": 4, "unit": unit, "threshold": 0.2, "gamma": GAMMA}
    for state in STATES:
        real, shuffled = (one.evidence(state, exclude_steps=left_out, **asked) for one in (memory, placebo))
        assert (real.actions, real.neighbors) == (shuffled.actions, shuffled.neighbors)
        counted = Counter()
        for row, count in zip(shuffled.by_state.actions, shuffled.by_state.counts, strict=True):
            counted[int(row)] += count
        assert [counted[row] for row in range(len(real.actions))] == real.counts.tolist()


def test_the_placebo_through_the_graph_refuses_them(memory):
    with pytest.raises(InputError, match=r"exclude_steps.*backup"):
        ShuffledReturns(memory, 0).evidence(
            "page a", k=2, unit="states", threshold=0.2, gamma=GAMMA, backup=Backup(1.0), exclude_steps=[("e1", 0)]
        )
