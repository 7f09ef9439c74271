"""Steps that people or judges rejected are never models; steps with a cost may be."""

from __future__ import annotations

import asyncio

import pytest
from stored_feedback import stored_feedback

from seasoned import Episode, Memory, Selection, Step
from seasoned.agents import UniformReader, play_run
from seasoned.envs import SupportTriage
from seasoned.errors import InputError
from seasoned.policies import ModelAlone
from seasoned.policies.examples import ExampleQuery, Examples
from seasoned.policies.examples.rejected_steps import rejected_steps
from seasoned.types import LATE_REWARD, Thumbs

CART = "page:cart items:2 total:12"


@pytest.fixture
def memory():
    with Memory.open(":memory:", gamma=0.9) as opened:
        yield opened


def play(memory, id_, *rewards, action=None):
    states = (CART, "page:pay sum:12", "page:end")
    steps = [
        Step(state, action or f"{id_} {n}", reward)
        for n, (state, reward) in enumerate(zip(states, rewards, strict=False))
    ]
    return memory.add(Episode("buy a lamp", steps, id_, awaits_feedback=False))


def shown(memory, observation=CART, purpose="act", **options):
    examples = Examples(memory, k=9, window=0, keys={"observation": 1}, **options)
    return {
        (one.kind, *one.place) for one in examples.retrieve(ExampleQuery("t", observation=observation), purpose=purpose)
    }


def test_rejected_step_is_a_model_only_after_its_feedback_is_revoked(memory):
    for id_ in ("bad", "worse"):
        play(memory, id_, 0.0)
    memory.feedback("worse", -3.0)
    record = stored_feedback(memory, "bad", Thumbs(up=False))
    assert shown(memory) == set()
    assert shown(memory, min_value=-9.0) == set()
    assert shown(memory, avoid=True) == {("avoid", "bad", 0), ("avoid", "worse", 0)}
    memory.revoke(record.id)
    assert shown(memory) == {("imitate", "bad", 0)}


def test_feedback_rejects_a_step_and_environment_rewards_do_not(memory):
    play(memory, "short", -1.0)
    play(memory, "long", -1.0, -1.0)
    assert shown(memory) == {("imitate", "short", 0)}
    memory.feedback("short", 0.5)  # still a cost of 1/2
    assert shown(memory) == {("imitate", "short", 0)}
    memory.feedback("short", -0.25)  # supersedes: -1.25 is still better than -1.9
    assert shown(memory) == set()


@pytest.mark.parametrize(
    ("feedback", "models"),
    [
        ([], {0, 1, 2}),
        ([(1, -1.0, 1.0, "a"), (2, 1.0, 1.0, "a")], {0, 2}),  # one step of an episode that is on the whole approved
        ([(1, -1.0, 1.0, "a"), (1, 0.5, 2.0, "b")], {0, 1, 2}),  # weighted, they cancel out
        ([(1, 1.0, 1.0, "a"), (1, -0.5, 3.0, "b")], {2}),  # weighted, they do not; what followed stands
        ([(2, -1.0, 1.0, "a")], set()),  # the end is rejected, and all that led to it
        ([(2, -1.0, 1.0, "a"), (0, 1.0, 1.0, "a")], {0}),  # but not what was praised for itself
        ([(0, -0.1, 1.0, "a"), (0, -0.2, 1.0, "b"), (0, 0.3, 1.0, "c")], {0, 1, 2}),  # 0, but for rounding
        ([(0, -1e9, 0.7, "a"), (0, -2e9, 0.7, "b"), (0, 3e9, 0.7, "c")], {0, 1, 2}),  # the same, of large ones
        ([(0, -1e-10, 1.0, "a")], {1, 2}),  # small, and not for rounding
    ],
)
def test_negative_feedback_sum_of_a_step_or_from_it_on_rejects_the_step(memory, feedback, models):
    play(memory, "e", 5.0, 5.0, 5.0)
    for step, reward, weight, author in feedback:
        memory.feedback("e", reward, step, author=author, weight=weight)
    retrieved = {place for state in (CART, "page:pay sum:12", "page:end") for place in shown(memory, state)}
    assert retrieved == {("imitate", "e", step) for step in models}
    assert shown(memory, purpose="plan") == ({("imitate", "e", 0)} if 0 in models else set())


def test_rejected_step_is_replaced_by_another_step_of_its_action(memory):
    for id_, reward in (("dear", 3.0), ("cheap", 1.0)):
        play(memory, id_, reward, action="pay")
    play(memory, "none", -1.0)
    assert shown(memory) == {("imitate", "dear", 0)}
    memory.feedback("dear", -1.0)
    assert shown(memory) == {("imitate", "cheap", 0)}


def test_feedback_of_a_quarantined_source_rejects_no_step(memory):
    play(memory, "good", 9.0)
    memory.feedback("good", -1.0, source="troll")
    assert shown(memory) == set()
    memory.quarantine(Selection(source="troll"), "says no to everything")
    assert shown(memory) == {("imitate", "good", 0)}


def test_a_rejected_step_is_not_the_best_of_its_pair(memory):
    for id_, reward in (("good", 1.0), ("better", 3.0)):
        play(memory, id_, reward)
        play(memory, f"after {id_}", 0.0)
        memory.note(f"after {id_}", "shown", {"examples": [[id_, 0]]}, step=0)
    examples = Examples(memory)

    def best():
        return [one.episode_id for one in examples.best_per_task()["buy a lamp"]]

    assert best() == ["better"]
    memory.feedback("better", -1.0)
    assert best() == ["good"]
    assert [(one.episode_id, one.rejected) for one in examples.ranking()] == [("better", True), ("good", False)]


class Erased:
    """A memory that erases a subject before it reads feedback."""

    def __init__(self, memory):
        self._memory = memory

    def __getattr__(self, name):
        return getattr(self._memory, name)

    def step_feedback(self, episode_ids, **options):
        self._memory.erase("ann")
        return self._memory.step_feedback(episode_ids, **options)


def test_episode_erased_during_retrieval_is_not_a_model(memory):
    memory.add(Episode("buy a lamp", [Step(CART, "pay", 1.0)], "e", subject="ann"))
    memory.feedback("e", 1.0)
    assert shown(memory) == {("imitate", "e", 0)}
    assert shown(Erased(memory)) == set()


class ErasedLater(Erased):
    """A memory that erases a subject before it reads an episode."""

    def step_feedback(self, episode_ids, **options):
        return self._memory.step_feedback(episode_ids, **options)

    def get(self, episode_id):
        self._memory.erase("ann")
        return self._memory.get(episode_id)


def test_plan_erased_during_retrieval_is_not_returned(memory):
    memory.add(Episode("buy a lamp", [Step(CART, "pay", 1.0)], "e", subject="ann"))
    memory.feedback("e", 1.0)
    query = ExampleQuery("buy a lamp", observation=CART)
    assert [one.episode_id for one in Examples(memory).retrieve(query, purpose="plan")] == ["e"]
    assert Examples(ErasedLater(memory)).retrieve(query, purpose="plan") == ()


def test_late_environment_rewards_reject_no_step(memory):
    desk = SupportTriage(tickets=6, delay=2, noise=0.0)
    asyncio.run(play_run(desk, ModelAlone(), UniformReader(), memory=memory, episodes=1, seed=2))
    (episode,) = memory.episodes()
    steps = memory.experiences([(episode.id, n) for n in range(6)])
    moved = [(event.source, event.reward < 0.0) for event in memory.events()]
    assert set(moved) == {(LATE_REWARD, True), (LATE_REWARD, False)}
    assert rejected_steps(memory, steps.values()) == set()
    memory.feedback(episode.id, -0.5, 4, source="a judge")
    memory.feedback(episode.id, 1.0, 5, source="human")
    assert steps[episode.id, 4].reward == 1.0  # the environment's, which came late, makes up for nothing either
    assert rejected_steps(memory, steps.values()) == {(episode.id, 4)}


def windows(memory, **options):
    query = ExampleQuery("t", observation="page:pay sum:12")
    retrieved = Examples(memory, k=9, window=2, keys={"observation": 1}, **options).retrieve(query)
    return {(one.kind, one.step): ([step for _, step in one.places], one.action) for one in retrieved}


def test_the_window_of_a_model_ends_before_rejected_steps(memory):
    play(memory, "e", 5.0, 5.0, 5.0)
    assert windows(memory) == {("imitate", 1): ([0, 1, 2], "e 1")}
    before = memory.feedback("e", -1.0, 0, author="a")
    assert windows(memory) == {("imitate", 1): ([1, 2], "e 1")}
    memory.feedback("e", 2.0, 1, author="b")
    memory.feedback("e", -1.0, 2, author="c")
    assert windows(memory) == {("imitate", 1): ([1], "e 1")}
    memory.revoke(before)
    assert windows(memory) == {("imitate", 1): ([0, 1], "e 1")}
    memory.feedback("e", -9.0, 1, author="b")
    assert windows(memory, avoid=True) == {("avoid", 1): ([0, 1, 2], "e 1")}


@pytest.mark.parametrize(
    ("feedback", "is_model"),
    [
        ({1: -1.0, 2: 1.0}, True),  # approved on the whole
        ({1: -1.0, 2: 0.5}, False),
        ({0: -1.0, 2: 2.0}, False),  # approved, but it is the first step that is shown
    ],
)
def test_plan_of_a_rejected_episode_or_first_step_is_not_a_model(memory, feedback, is_model):
    play(memory, "e", 5.0, 5.0, 5.0)
    memory.note("e", "plan", {"text": "go and pay"})
    for step, reward in feedback.items():
        memory.feedback("e", reward, step)
    retrieved = Examples(memory, window=2).retrieve(ExampleQuery("buy a lamp"), purpose="plan")
    assert [(one.kind, one.places) for one in retrieved] == ([("imitate", (("e", 0),))] if is_model else [])


def test_feedback_on_many_episodes_is_read_in_one_indexed_query(memory):
    for id_ in ("said", "other", "silent"):
        play(memory, id_, 1.0, 1.0)
    memory.feedback("said", -1.0, 1, weight=0.5)
    memory.feedback("said", 2.0, 1, source="tests")
    memory.feedback("other", -1.0, 0, source="a")
    with memory.session.store.trace() as statements:
        feedback = memory.step_feedback(["said", "other", "silent", "unknown", "said"], but_sources=["a", "b"])
    assert feedback == {"said": {1: [-0.5, 2.0]}, "other": {}, "silent": {}}
    queries = [sql for sql in statements if "FROM feedback" in sql or "FROM episode INDEXED" in sql]
    plans = [[row[3] for row in memory.session.store.execute(f"EXPLAIN QUERY PLAN {sql}")] for sql in queries]
    assert len(plans) == 2 and not [line for plan in plans for line in plan if "SCAN" in line]
    assert "feedback_by_visit (namespace_id=? AND visit=?)" in plans[1][0]
    assert memory.step_feedback(["other"]) == {"other": {0: [-1.0]}} and memory.step_feedback([]) == {}


def test_feedback_on_an_episode_is_read_once_for_a_prompt(memory):
    play(memory, "e", 1.0, 1.0, 1.0)
    memory.feedback("e", 1.0, 1)
    examples = Examples(memory, window=2)
    query = ExampleQuery("buy a lamp", observation=CART)
    assert examples.retrieve(query)
    with memory.session.store.trace() as statements:
        [one] = examples.retrieve(query)
    assert len(one.steps) > 1 and len([sql for sql in statements if "FROM feedback" in sql]) == 1


def test_but_sources_must_be_a_collection(memory):
    with pytest.raises(InputError, match=r"but_sources = 'human': it is a collection .* Pass"):
        memory.step_feedback([], but_sources="human")
