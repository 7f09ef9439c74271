"""Recall's caches answer like the store does now, with a number of statements that does not grow."""

from __future__ import annotations

import random

from seasoned import Episode, Memory, Selection, Step
from seasoned.types import RecallQuery
from seasoned.types.impression import Impression, PeerComparison

CHANGES = ["add", "shown", "shown", "feedback", "revoke note", "revoke event", "aside", "lift", "erase"]
PAGES = ["page cart", "page list", "page cart total", "page form", "page pay now"]


def grown(memory, rng, number):
    steps = [Step(rng.choice(PAGES), rng.choice(["go", "pay"]), rng.choice([0.0, 1.0, -2.0])) for _ in range(3)]
    ending = rng.choice(["terminated", "terminated", "aborted"])
    memory.add(Episode(f"task {number % 10}", steps, f"e{number}", subject=f"s{number}", ending=ending))


def shown(memory, rng, name):
    return memory.note(
        name,
        "shown",
        {"examples": [[f"e{rng.randrange(12)}", rng.randrange(3)] for _ in range(rng.randint(1, 3))]},
        step=rng.choice([None, 0, 1, 2]),
    )


def change(memory, rng, kind, number):
    """Make a change of a kind, if possible; otherwise add an episode."""
    names = [one.id for one in memory.episodes()]
    notes = memory.notes(kind="shown", quarantined=True)
    events = [one for one in memory.events() if one.revoked_at is None]
    held = [one.id for one in memory.quarantines() if one.lifted_at is None]
    if kind == "shown":
        shown(memory, rng, rng.choice(names))
    elif kind == "feedback":
        memory.feedback(rng.choice(names), rng.choice([-1.0, 2.0]), rng.randrange(3), rng.choice(["ann", "tests"]))
    elif kind == "revoke note" and notes:
        memory.revoke(rng.choice(notes).id)
    elif kind == "revoke event" and events:
        memory.revoke(rng.choice(events).id)
    elif kind == "aside":
        which = rng.choice([Selection(episode=rng.choice(names)), Selection(source="ann"), Selection(source="agent")])
        memory.quarantine(which, "a look at it")
    elif kind == "lift" and held:
        memory.release(rng.choice(held))
    elif kind == "erase" and len(names) > 4:
        memory.erase(f"s{rng.choice(names)[1:]}")
    else:
        grown(memory, rng, number)


def answers(memory):
    """Return the results of all queries for prompts."""
    names = [f"e{number}" for number in range(26)]
    places = [(name, step) for name in names for step in range(3)]
    result = memory.recall(
        RecallQuery({"goal": "task 1", "observation": "page cart"}, pool=6, with_feedback_totals=True)
    )
    return (
        sorted(map(repr, result.moments)),
        result.highest,
        memory.median_return(),
        memory.recall(RecallQuery({"goal": "task 9"}, pool=6)).moments,
        [
            memory.impressions(places, alike=alike, exclude_task=about, most=most)
            for alike in (False, True)
            for about, most in ((None, None), ("task 1", None), (None, 2))
        ],
        sorted(memory.impressions(None), key=repr),
        memory.peer_comparisons(places),
        memory.peer_comparisons(places, exclude_task="task 0"),
        memory.peer_returns(places, most=2),
        memory.peer_returns(places, exclude_task="task 2"),
        memory.feedback_totals(names),
        memory.step_feedback(names, but_sources=["tests"]),
        memory.experiences(places),
    )


def test_warm_and_fresh_readers_return_the_same(tmp_path):
    rng = random.Random(8)
    with Memory.open(tmp_path / "m.db", gamma=0.5) as other, Memory.open(tmp_path / "m.db") as memory:
        for number in range(8):
            grown(other, rng, number)
        for number, kind in enumerate(rng.sample(2 * CHANGES, 2 * len(CHANGES)), 8):
            change(other, rng, kind, number)
            with Memory.open(tmp_path / "m.db") as fresh:
                assert answers(memory) == answers(fresh), kind


def test_impressions_and_feedback_totals_equal_those_of_notes_and_events():
    rng = random.Random(1)
    with Memory.open(":memory:", gamma=0.5) as memory:
        for number in range(12):
            grown(memory, rng, number)
        for number in range(20):
            shown(memory, rng, f"e{rng.randrange(12)}")
            memory.feedback(f"e{number % 12}", float(rng.randint(-4, 4)), rng.randrange(3), f"source {number % 2}")
        for note in memory.notes(kind="shown")[::3]:
            memory.revoke(note.id)
        memory.revoke(memory.events()[3].id)

        rewards, by_source = {}, {one.id: {} for one in memory.episodes()}
        for one in memory.events():
            if one.revoked_at is None:
                place = one.episode_id, one.step
                rewards[place] = rewards.get(place, 0.0) + one.reward
                totals = by_source[one.episode_id]
                totals[one.source] = totals.get(one.source, 0.0) + one.reward
        assert memory.feedback_totals(by_source) == by_source

        returns, state_of, examples_at = {}, {}, {}
        for one in (each for each in memory.episodes() if each.ending != "aborted"):
            following = 0.0
            for step in (2, 1, 0):
                following = one.steps[step].reward + rewards.get((one.id, step), 0.0) + 0.5 * following
                returns[one.id, step], state_of[one.id, step] = following, one.steps[step].state
        for note in memory.notes(kind="shown"):
            examples_at.setdefault((note.episode_id, note.step or 0), set()).update(map(tuple, note.body["examples"]))
        compared = {}
        for place, state in state_of.items():
            others = [returns[one] for one in state_of if state_of[one] == state and one != place]
            compared[place] = PeerComparison(returns[place], len(others), sum(others) / len(others) if others else None)
        expected = [
            Impression(example, place, 1 / len(examples_at[place]), compared[place])
            for example in returns
            for place in examples_at
            if place in compared and example in examples_at[place]
        ]
        assert len(expected) > 5
        order = {
            place: number for number, place in enumerate(sorted(returns, key=lambda one: (int(one[0][1:]), one[1])))
        }
        for most in (2, 100):
            assert memory.peer_returns(list(returns), most=most) == {
                place: [(one[0], returns[one]) for one in latest if one != place]
                for place in returns
                for latest in [
                    sorted((one for one in returns if state_of[one] == state_of[place]), key=order.get, reverse=True)[
                        :most
                    ]
                ]
            }
        assert sorted(memory.impressions(list(returns)), key=repr) == sorted(expected, key=repr)


def n_statements(memory, call):
    """Return the number of statements of a repeated query."""
    call()
    with memory.session.store.trace() as statements:
        call()
    return len(statements)


def test_number_of_statements_does_not_grow_with_states_and_episodes():
    with Memory.open(":memory:") as memory:
        for number in range(12):
            memory.add(Episode("t", [Step(f"page {number}", "go", 1.0), Step("the end", "stop")], f"e{number}"))
        memory.feedback("e1", 1.0)
        names = [f"e{number}" for number in range(12)]
        for some in (
            lambda n: memory.recall(RecallQuery({"observation": "page 1"}, pool=n)),
            lambda n: memory.peer_returns([(name, 0) for name in names[:n]]),
            lambda n: memory.feedback_totals(names[:n]),
        ):
            assert n_statements(memory, lambda some=some: some(12)) == n_statements(memory, lambda some=some: some(2))


def test_feedback_is_not_queried_without_any():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page", "go", 1.0)], "e1"))
        before = n_statements(memory, lambda: memory.step_feedback(["e1"]))
        memory.feedback("e1", -1.0, source="ann")
        assert n_statements(memory, lambda: memory.step_feedback(["e1"])) == before + 1
        assert memory.step_feedback(["e1"]) == {"e1": {0: [-1.0]}}
