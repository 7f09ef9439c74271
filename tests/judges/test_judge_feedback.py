"""Storage of a judgement as feedback: complete, or not at all."""

from __future__ import annotations

import math

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError, NotFoundError
from seasoned.judges import add_judgement
from seasoned.protocols import Judgement

EPISODE = Episode("t", [Step("a", "x"), Step("b", "y")], id="e")


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        opened.add(EPISODE)
        yield opened


def test_a_judgement_is_stored_step_by_step(memory):
    ids = add_judgement(memory, "e", Judgement("j", {0: 0.5, 1: -1.0}, {0: 1.0, 1: 0.5}))
    events = {event.id: (event.step, event.reward, event.weight, event.source) for event in memory.events()}
    assert [events[id_] for id_ in ids] == [(0, 0.5, 1.0, "j"), (1, -1.0, 0.5, "j")]


@pytest.mark.parametrize(
    ("episode_id", "judgement", "error"),
    [
        ("e", Judgement("j", {0: 1.0, 2: 1.0}, {0: 1.0, 2: 1.0}), NotFoundError),
        ("e", Judgement("j", {0: 1.0, -1: 1.0}, {0: 1.0, -1: 1.0}), NotFoundError),
        ("other", Judgement("j", {0: 1.0}, {0: 1.0}), NotFoundError),
        ("e", Judgement("j", {0: 1.0, "1": 1.0}, {0: 1.0, "1": 1.0}), InputError),
        ("e", Judgement("j", {0: 1.0, True: 1.0}, {0: 1.0, True: 1.0}), InputError),
        ("e", Judgement("j", {0: 1.0, 1: math.nan}, {0: 1.0, 1: 1.0}), InputError),
        ("e", Judgement("j", {0: 1.0, 1: 1.0}, {0: 1.0, 1: math.inf}), InputError),
        ("e", Judgement("j", {0: 1.0, 1: 1e99}, {0: 1.0, 1: 1e9}), InputError),
        ("e", Judgement("j", {0: 1.0, 1: 1.0}, {0: 1.0}), InputError),
        ("e", Judgement("j", {0: 1.0, 1: 1.0}, None), InputError),
        ("e", Judgement("j", [1.0, 1.0], {0: 1.0, 1: 1.0}), InputError),
        ("e", Judgement(" ", {0: 1.0}, {0: 1.0}), InputError),
        ("e", None, InputError),
        ("e", {0: 1.0}, InputError),
    ],
)
def test_refused_judgement_writes_nothing(memory, episode_id, judgement, error):
    with pytest.raises(error) as raised:
        add_judgement(memory, episode_id, judgement)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))
    assert memory.events() == []
