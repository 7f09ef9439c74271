"""Choices in the evidence, in a file and on PostgreSQL: each is one observation, and no reward of a step."""

from __future__ import annotations

import random
import uuid
from collections import Counter

import numpy as np
import pytest
from postgres_server import postgres  # noqa: F401

from seasoned import Episode, EvidenceQuery, Memory, Selection, Step
from seasoned.errors import InputError
from seasoned.memory import FeedbackLimits
from seasoned.memory.transfer.merge import merge
from seasoned.types import Choice, OwnAnswer, Thumbs

STATE, OTHER = "where is my order?", "thanks a lot"
OPTIONS = ("It is lost.", "On Monday.", "Which order?")


@pytest.fixture
def memory(place):
    with Memory.open(place, namespace=f"n{uuid.uuid4().hex}", gamma=0.5) as opened:
        yield opened


def query(state=STATE, **changes):
    options = {"k": 50, "unit": "states", "threshold": 0.3, "similarity": "rarity", "compare_choices": True}
    return EvidenceQuery(state, **{**options, **changes})


def cells(evidence):
    """Return count, weight, total and squares by (state, action), where a step is."""
    sums = evidence.by_state
    columns = zip(sums.counts, sums.weights, sums.totals, sums.squares, strict=True)
    keys = [(state, evidence.actions[row]) for state, row in zip(sums.states, sums.actions, strict=True)]
    return {key: tuple(map(float, row)) for key, row in zip(keys, columns, strict=True) if row[0] > 0}


def choices_of(evidence):
    """Return (options, chosen, weight) of each choice, in texts."""
    return Counter(
        (frozenset(evidence.actions[row] for row in one.options), evidence.actions[one.chosen], one.weight)
        for one in evidence.choices
    )


def observed(*choices, weight=1.0):
    return Counter((frozenset(options), chosen, weight) for options, chosen in choices)


def test_a_choice_on_no_episode_is_one_observation(memory):
    memory.feedback(feedback=Choice(OPTIONS, 1), task="support", state=STATE)
    evidence = memory.evidence(query())
    assert (evidence.n_steps, evidence.n_states, cells(evidence)) == (1, 1, {})
    assert choices_of(evidence) == observed((OPTIONS, "On Monday."))
    assert evidence.recent.n == 0
    assert memory.evidence(query(compare_choices=False)).n_steps == 3  # as rewards of stored steps
    assert memory.search(STATE)[0].experience.action in OPTIONS


def test_an_executed_step_keeps_the_reward_of_the_environment_alone(memory):
    memory.add(Episode("support", [Step(OTHER, "hello", 0.25), Step(STATE, OPTIONS[0], 2.0)], "talk"))
    memory.feedback("talk", Choice(OPTIONS, 1), weight=2.0)
    memory.feedback("talk", Thumbs(up=True), author="bob")
    evidence = memory.evidence(query())
    assert cells(evidence) == {(0, OPTIONS[0]): (1.0, 1.0, 3.0, 9.0)}
    assert choices_of(evidence) == observed((OPTIONS, "On Monday."), weight=2.0)
    [earlier] = cells(memory.evidence(query(OTHER))).values()
    assert earlier == (1.0, 1.0, 0.25 + 0.5 * 3.0, (0.25 + 0.5 * 3.0) ** 2)
    assert evidence.recent.n == 2


def test_an_answer_with_other_feedback_is_a_step(memory):
    memory.feedback(feedback=Choice(OPTIONS, 1), task="support", state=STATE, id="c")
    memory.feedback("c-1", Thumbs(up=True), author="bob")
    evidence = memory.evidence(query())
    assert cells(evidence) == {(0, OPTIONS[1]): (1.0, 1.0, 1.0, 1.0)}
    assert evidence.n_steps == 2


def test_revoked_superseded_and_quarantined_choices_leave_nothing(memory):
    memory.add(Episode("support", [Step(STATE, OPTIONS[0], 1.0)], "talk"))
    before = memory.evidence(query())
    first = memory.feedback("talk", Choice(OPTIONS, 1), author="ann")
    second = memory.feedback("talk", Choice(OPTIONS, 2), author="ann")
    assert choices_of(memory.evidence(query())) == observed((OPTIONS, OPTIONS[2]))
    memory.revoke(first)
    quarantine = memory.quarantine(Selection(source="human"), "test")
    assert choices_of(memory.evidence(query())) == Counter()
    assert cells(memory.evidence(query())) == cells(before)
    memory.release(quarantine)
    assert choices_of(memory.evidence(query())) == observed((OPTIONS, OPTIONS[2]))
    memory.revoke(second)
    evidence = memory.evidence(query())
    assert (choices_of(evidence), cells(evidence), evidence.n_steps) == (Counter(), cells(before), 1)


def vote(memory, chosen, author="ann", task="support", state=STATE, episode=None, **more):
    """A choice, on an episode of its own if that is named."""
    if episode is None:
        return memory.feedback(feedback=Choice(OPTIONS, chosen), task=task, state=state, author=author, **more)
    memory.add(Episode(task, [Step(state, OPTIONS[0])], episode))
    return memory.feedback(episode, Choice(OPTIONS, chosen), author=author, **more)


def test_an_author_has_one_choice_at_a_state_where_others_chose(memory):
    """Whatever the task, the source and the episode, the latest unrevoked one counts."""
    vote(memory, 0, episode="e0")
    vote(memory, 1, episode="e1", source="review")
    vote(memory, 0, task="sales")
    last = vote(memory, 2, task="returns", weight=2.0)
    for chosen in (0, 1):  # nobody else chose there
        vote(memory, chosen, state=OTHER, task=f"t{chosen}")
    vote(memory, 0, author="bob")
    by_ann, by_bob = observed((OPTIONS, OPTIONS[2]), weight=2.0), observed((OPTIONS, OPTIONS[0]))
    evidence = memory.evidence(query())
    assert choices_of(evidence) == by_ann + by_bob
    assert {cell[2] for cell in cells(evidence).values()} == {0.0}  # the others are no rewards of steps instead
    assert choices_of(memory.evidence(query(OTHER))) == observed((OPTIONS, OPTIONS[0]), (OPTIONS, OPTIONS[1]))
    memory.revoke(last)
    assert choices_of(memory.evidence(query())) == by_bob + by_bob  # ann's is the one of sales
    memory.reweight_source("human", 0.0)
    assert choices_of(memory.evidence(query())) == observed((OPTIONS, OPTIONS[1]))  # ann's as a reviewer


def test_choices_without_an_author_count_each(memory):
    for number in range(3):
        vote(memory, 1, author=None, task=f"t{number}")
    assert choices_of(memory.evidence(query())).total() == 3


def test_a_choice_without_an_author_limits_nobody(memory):
    for number in range(3):
        vote(memory, 1, task=f"t{number}")
    vote(memory, 0, author=None)
    assert choices_of(memory.evidence(query())) == observed(*[(OPTIONS, OPTIONS[1])] * 3, (OPTIONS, OPTIONS[0]))


def test_the_operator_sets_how_many_choices_of_an_author_count(memory):
    for number in range(4):
        vote(memory, min(number, 1), task=f"t{number}")
    vote(memory, 2, author="bob")
    for limit, by_ann in ((2, [OPTIONS[1]] * 2), (None, [OPTIONS[0]] + [OPTIONS[1]] * 3), (1, [OPTIONS[1]])):
        memory.set_feedback_limits(FeedbackLimits(max_author_choices=limit))
        assert choices_of(memory.evidence(query())) == observed(
            *((OPTIONS, chosen) for chosen in [*by_ann, OPTIONS[2]])
        )


def test_reweighted_choices_weigh_so_many(memory):
    memory.feedback(feedback=Choice(OPTIONS, 1), task="support", state=STATE, source="crowd")
    memory.reweight_source("crowd", 0.25)
    assert choices_of(memory.evidence(query())) == observed((OPTIONS, OPTIONS[1]), weight=0.25)
    memory.reweight_source("crowd", 0.0)
    evidence = memory.evidence(query())
    assert (choices_of(evidence), cells(evidence)) == (Counter(), {})
    memory.reweight_source("crowd", 1.0)
    assert choices_of(memory.evidence(query())) == observed((OPTIONS, OPTIONS[1]))


def test_an_erased_answer_leaves_the_choice_among_the_rest(memory):
    memory.feedback(feedback=Choice(OPTIONS, 1), task="support", state=STATE, id="c")
    memory.evidence(query())
    memory.quarantine(Selection(episode="c-2"), "test")
    assert choices_of(memory.evidence(query())) == observed((OPTIONS[:2], OPTIONS[1]))
    memory.quarantine(Selection(episode="c-1"), "test")
    assert choices_of(memory.evidence(query())) == Counter()  # the chosen one is gone


def test_an_excluded_task_excludes_its_choices(memory):
    memory.feedback(feedback=Choice(OPTIONS, 1), task="support", state=STATE)
    memory.feedback(feedback=Choice(OPTIONS, 2), task="sales", state=STATE)
    assert choices_of(memory.evidence(query(exclude_task="support"))) == observed((OPTIONS, OPTIONS[2]))


def test_choices_in_the_prompt_count_no_more(memory):
    memory.add(Episode("support", [Step(STATE, OPTIONS[0], 1.0)], "talk"))
    for number in range(2):
        memory.feedback(feedback=Choice(OPTIONS, 1), task="support", state=STATE, id=f"c{number}")
    shown = memory.evidence(query(shown_steps={("c0-1", 0)}))
    assert choices_of(shown) == observed((OPTIONS, OPTIONS[1]))
    assert (shown.n_shown, shown.n_steps) == (0, 2)
    assert memory.evidence(query(shown_steps={("talk", 0)})).n_shown == 1


def test_weights_follow_similarity_and_age(memory):
    memory.feedback(feedback=Choice(OPTIONS, 1), task="support", state=STATE)
    memory.add(Episode("support", [Step("something else", "wait")]))
    [found] = memory.evidence(query("where is my parcel?", similarity_power=2.0, decay=0.5)).choices
    similarity = memory.evidence(query("where is my parcel?")).similarities[0]
    assert found.weight == pytest.approx(similarity**2 * 0.5)


def test_latest_returns_leave_choices_out(memory):
    for number in range(40):
        memory.add(Episode("support", [Step(f"{STATE} {number}", "wait", float(number % 2))], f"e{number}"))
    before = memory.evidence(query()).recent
    for number in range(300):
        memory.feedback(feedback=Choice(OPTIONS, number % 3), task="support", state=OTHER, author=f"a{number}")
    after = memory.evidence(query()).recent
    assert (after.n, after.mean, after.spread) == (before.n, before.mean, before.spread)


@pytest.mark.parametrize("changes", [{"unit": "steps", "similarity": "jaccard"}, {"propensity_floor": 0.1}])
def test_choices_are_compared_in_plain_sums_only(memory, changes):
    with pytest.raises(InputError):
        query(**changes)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_evidence_less_choices_is_that_of_a_memory_where_nobody_chose(place, seed, tmp_path):
    """Random work with choices and without: the sums are equal, and the choices are those of the unrevoked records."""
    chance = random.Random(seed)
    space = f"n{uuid.uuid4().hex}"
    with (
        Memory.open(place, namespace=space, gamma=0.5) as chosen,
        Memory.open(tmp_path / "plain.db", gamma=0.5) as plain,
    ):
        ids = []
        for step in range(60):
            work = chance.randrange(8)
            if work < 2 or not ids:
                steps = [
                    Step(chance.choice([STATE, OTHER]), chance.choice(OPTIONS), float(chance.randrange(3)))
                    for _ in range(chance.randint(1, 3))
                ]
                ids.append(f"e{step}")
                for memory in (chosen, plain):
                    whole = Episode(
                        f"task {step % 2}", steps, ids[-1], subject=f"s{step % 5}", awaits_feedback=False
                    )  # a choice would end the wait for feedback
                    memory.add(whole)
            elif work < 6:
                options = chance.sample(OPTIONS, chance.randint(2, 3))
                choice, author = Choice(options, chance.randrange(len(options))), f"author {chance.randrange(4)}"
                weight = chance.choice([1.0, 0.5])
                if work < 4:
                    id_ = chance.choice(ids)
                    last = len(chosen.get(id_).steps)
                    at = chance.randrange(last)
                    chosen.feedback(id_, choice, at, author=author, weight=weight)
                else:
                    chosen.feedback(feedback=choice, task="t", state=chance.choice([STATE, OTHER]), author=author)
            elif work == 6:
                id_, up, author = chance.choice(ids), chance.random() < 0.5, f"author {chance.randrange(4)}"
                for memory in (chosen, plain):
                    memory.feedback(id_, Thumbs(up), 0, author=author)
            elif records := chosen.feedback_records(kinds=["choice"]):
                chosen.revoke(chance.choice(records).id)
            if step == 40:
                for memory in (chosen, plain):
                    memory.erase("s1")
                ids = [one.id for one in plain.episodes()]
            if step % 3 == 0:
                for decay in (1.0, 0.9):  # the ages of episodes differ, since answers are episodes too
                    _assert_same(chosen, plain, decay)
        chosen.verify()
        if not isinstance(place, str):
            chosen.close()
            merge(tmp_path / "merged.db", place, namespace=space)
            with Memory.open(tmp_path / "merged.db", namespace=space) as merged:
                _assert_same(merged, plain, 1.0)


def _assert_same(chosen, plain, decay):
    for state in (STATE, OTHER):
        ours, theirs = (memory.evidence(query(state, threshold=1.0, decay=decay)) for memory in (chosen, plain))
        assert all(values[0] > 0 for values in cells(ours).values())
        if decay == 1.0:
            mine, other = cells(ours), cells(theirs)
            assert mine.keys() == other.keys()
            for key, values in mine.items():
                np.testing.assert_allclose(values, other[key], atol=1e-12)
            assert ours.recent.n == theirs.recent.n
            np.testing.assert_allclose(ours.recent.mean, theirs.recent.mean, atol=1e-12)
            by_words = [memory.evidence(query(state, similarity="jaccard")).spread for memory in (chosen, plain)]
            assert by_words[0] == by_words[1]
        found = [
            one
            for one in chosen.feedback_records(kinds=["choice"])
            if one.revoked_at is None and _state(chosen, one) == state
        ]
        latest = {one.author: one for one in found}
        counted = list(latest.values()) if len(latest) > 1 else found  # all, where nobody else chose
        assert len(ours.choices) == len(counted)
        if decay == 1.0:
            expected = Counter(
                (frozenset(one.feedback.candidates), one.feedback.candidates[one.feedback.chosen], one.weight)
                for one in counted
            )
            assert choices_of(ours) == expected


def _state(memory, record):
    steps = memory.get(record.episode_id).steps
    return steps[-1 if record.step is None else record.step].state


def test_own_answers_stay_steps(memory):
    memory.add(Episode("support", [Step(STATE, OPTIONS[0])], "talk", awaits_feedback=False))
    memory.feedback("talk", OwnAnswer("Tomorrow."))
    assert cells(memory.evidence(query())) == {
        (0, OPTIONS[0]): (1.0, 1.0, 0.0, 0.0),
        (0, "Tomorrow."): (1.0, 1.0, 1.0, 1.0),
    }
