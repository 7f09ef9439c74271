"""Feedback is an event: added to the reward, superseded, revoked, never edited."""

from __future__ import annotations

import math

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError
from seasoned.types import EvidenceQuery, Thumbs


@pytest.fixture
def memory():
    with Memory.open(":memory:", gamma=0.5) as opened:
        opened.add(Episode("t", [Step("first", "a", 1.0), Step("second", "b", 2.0), Step("third", "c", 4.0)], id="e1"))
        yield opened


def rewards(memory):
    by_step = {n.experience.step: n.experience.reward for n in memory.search("x", k=99)}
    return [by_step[step] for step in sorted(by_step)]


def returns(memory):
    by_step = {n.experience.step: n.experience.return_ for n in memory.search("x", k=99)}
    return [by_step[step] for step in sorted(by_step)]


def test_feedback_adds_to_the_reward_and_the_returns(memory):
    assert returns(memory) == [1 + 1 + 1, 2 + 2, 4]
    memory.feedback("e1", reward=-1.0, step=1)
    assert rewards(memory) == [1, 1, 4]
    assert returns(memory) == [1 + 0.5 + 1, 1 + 2, 4]
    assert [s.reward for s in memory.get("e1").steps] == [1, 2, 4]  # the environment's stay as they were
    memory.verify()


def test_feedback_without_a_step_is_on_the_last_step(memory):
    memory.feedback("e1", 3.0)
    assert rewards(memory) == [1, 2, 7]
    assert memory.events()[0].step == 2


def test_sources_add_up_by_weight(memory):
    memory.feedback("e1", 2.0, 0, source="human", weight=0.5)
    memory.feedback("e1", 1.0, 0, source="judge", weight=-3.0)
    memory.feedback("e1", 8.0, 0, source="human", author="ann", weight=0.25)
    assert rewards(memory)[0] == 1 + 1 - 3 + 2


@pytest.mark.parametrize("author", [None, "ann"])
def test_the_same_source_author_and_step_supersedes(memory, author):
    first = memory.feedback("e1", 10.0, 1, author=author)
    memory.feedback("e1", 100.0, 2, author=author)
    memory.feedback("e1", 1000.0, 1, source="judge", author=author)
    memory.feedback("e1", 5000.0, 1, author="bob")
    second = memory.feedback("e1", 20.0, 1, author=author)
    assert rewards(memory) == [1, 2 + 1000 + 5000 + 20, 104]
    old, *_, new = memory.events("e1")
    assert (old.id, old.superseded_by, new.id, new.superseded_by) == (first, second, second, None)
    assert old.revoked_at is not None
    assert [e.reward for e in memory.events()] == [10, 100, 1000, 5000, 20]
    memory.verify()


def test_a_revoked_event_keeps_its_predecessor_superseded(memory):
    before = returns(memory)
    first = memory.feedback("e1", 10.0, 1)
    second = memory.feedback("e1", 20.0, 1)
    memory.revoke(first)
    assert rewards(memory)[1] == 22.0
    memory.revoke(second)
    memory.revoke(second)
    assert returns(memory) == before
    assert all(e.revoked_at is not None for e in memory.events())
    memory.verify()
    memory.feedback("e1", 30.0, 1)
    assert rewards(memory)[1] == 32.0


def test_many_events_sum_without_rounding(memory):
    for i in range(30):
        memory.feedback("e1", 0.1, 0, author=str(i))
    assert rewards(memory)[0] == 1.0 + math.fsum([0.1] * 30)
    for event in memory.events():
        memory.revoke(event.id)
    assert rewards(memory)[0] == 1.0


def test_feedback_on_an_aborted_episode_is_stored_and_not_retrieved(memory):
    memory.add(Episode("t", [Step("x", "a")], id="gone", ending="aborted"))
    before = memory.evidence(EvidenceQuery("x", k=9, unit="states", threshold=0.0)).totals.tolist()
    memory.revoke(memory.feedback("gone", 5.0))
    memory.feedback("gone", 7.0)
    assert memory.evidence(EvidenceQuery("x", k=9, unit="states", threshold=0.0)).totals.tolist() == before
    assert len(memory.events("gone")) == 2
    memory.verify()


def test_events_hold_source_and_author(memory):
    id_ = memory.feedback("e1", -1, step=1, source="tests", author="ci", weight=2)
    [event] = memory.events("e1")
    assert (event.id, event.episode_id, event.step, event.reward, event.weight) == (id_, "e1", 1, -1.0, 2.0)
    assert (event.source, event.author, event.revoked_at, event.superseded_by) == ("tests", "ci", None, None)
    assert event.created_at > 1e9
    assert memory.events("nobody") == []


@pytest.mark.parametrize(
    ("episode_id", "step", "error"),
    [
        ("nobody", None, NotFoundError),
        ("nobody", 0, NotFoundError),
        ("", 0, (NotFoundError, InputError)),
        ("e1", 3, NotFoundError),
        ("e1", -1, NotFoundError),
        ("e1", 2**70, NotFoundError),
        ("e1", True, InputError),
        ("e1", 1.0, InputError),
        ("e1", "1", InputError),
        (None, 0, (NotFoundError, InputError)),
        (7, None, (NotFoundError, InputError)),
        (["e1"], None, InputError),
        ("\ud800", None, (NotFoundError, InputError)),
    ],
)
def test_feedback_on_an_unknown_episode_or_step_is_refused(memory, episode_id, step, error):
    before = memory.verify()
    with pytest.raises(error) as caught:
        memory.feedback(episode_id, 1.0, step)
    assert caught.value.seen
    assert caught.value.rule
    assert caught.value.next_step
    assert memory.verify() == before


@pytest.mark.parametrize(
    "fields",
    [
        {"reward": math.nan},
        {"reward": math.inf},
        {"reward": -math.inf},
        {"reward": 1e101},
        {"reward": True},
        {"reward": "1"},
        {"reward": None},
        {"reward": 10**400},
        {"reward": 1.0, "weight": math.nan},
        {"reward": 1.0, "weight": math.inf},
        {"reward": 1.0, "weight": True},
        {"reward": 1e60, "weight": 1e60},
        {"reward": 1e60, "weight": 1e300},
        {"reward": 1.0, "weight": None},
        {"reward": 1.0, "source": ""},
        {"reward": 1.0, "source": None},
        {"reward": 1.0, "source": "\ud800"},
        {"reward": 1.0, "author": " "},
        {"reward": 1.0, "author": 3},
        {},
        {"feedback": 1.0, "reward": 1.0},
        {"feedback": Thumbs(True), "reward": 1.0},
        {"reward": Thumbs(True)},
        {"feedback": "thumbs"},
        {"feedback": Thumbs},
        {"reward": 1.0, "task": "t"},
        {"reward": 1.0, "state": "s"},
        {"reward": 1.0, "subject": "s"},
        {"reward": 1.0, "id": " "},
        {"reward": 1.0, "id": 7},
    ],
)
def test_bad_feedback_is_refused(memory, fields):
    before = memory.verify()
    with pytest.raises(InputError) as caught:
        memory.feedback("e1", **fields)
    assert caught.value.seen
    assert caught.value.rule
    assert caught.value.next_step
    assert memory.verify() == before


@pytest.mark.parametrize("event_id", ["nobody", "", None, 3, "\ud800", ["x"]])
def test_revoking_an_unknown_id_is_refused(memory, event_id):
    with pytest.raises((NotFoundError, InputError)):
        memory.revoke(event_id)


def test_a_reward_without_an_episode_is_refused(memory):
    for options in ({"reward": 1.0}, {"feedback": 1.0, "task": "t", "state": "s"}):
        with pytest.raises(InputError, match="stored episode"):
            memory.feedback(**options)


def test_a_reward_is_passed_by_position_or_by_name(memory):
    for step, options in enumerate(({"feedback": 3.0}, {"reward": 3.0})):
        assert memory.events()[step:] == []
        memory.feedback("e1", step=step, **options)
    assert rewards(memory) == [4, 5, 4]


def test_a_reward_with_an_id_is_stored_once(memory):
    assert [memory.feedback("e1", reward=3.0, id="r1") for _ in range(2)] == ["r1", "r1"]
    assert rewards(memory) == [1, 2, 7]
    memory.reweight_source("human", 2.0)
    memory.feedback("e1", reward=3.0, id="r1")
    assert rewards(memory) == [1, 2, 10]
    with pytest.raises(EpisodeConflictError):
        memory.feedback("e1", reward=2.0, id="r1")
    memory.revoke("r1")
    memory.feedback("e1", reward=3.0, id="r1")  # it stays revoked
    assert rewards(memory) == [1, 2, 4]
    memory.verify()


def test_a_reward_does_not_take_the_id_of_a_note(memory):
    memory.feedback("e1", Thumbs(True), id="f1")
    memory.note("e1", "remark", {}, id="n1")
    for id_ in ("f1", "n1"):
        with pytest.raises(EpisodeConflictError, match="note"):
            memory.feedback("e1", reward=1.0, id=id_)
    assert rewards(memory) == [1, 2, 5]
