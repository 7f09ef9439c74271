"""The check of `doctor` that labels are of right answers too."""

from __future__ import annotations

import pytest

from seasoned import Decider, Label, Memory
from seasoned.lab.diagnosis.doctor import diagnose
from seasoned.lab.diagnosis.record_checks import check_labels

DESKS = {"sales": 0.65, "refunds": 0.25, "it": 0.1}


def verdict(labels_right, labels_wrong, n_unlabelled, prior=DESKS):
    """Return the verdict about decisions for `sales`, so many of which are labelled and right or wrong."""
    with Memory.open(":memory:") as memory:
        desk = Decider(memory, prior, choose="argmax")
        rights = ["sales"] * labels_right + ["refunds"] * labels_wrong + [None] * n_unlabelled
        made = [desk.decide(f"ticket {n}", list(prior), question="desk", task="desk") for n in range(len(rights))]
        for decision, right in zip(made, rights, strict=True):
            if right is not None:
                memory.feedback(decision.id, Label(f"desk: {right}"))
        events = memory.events()
        raw = [one for one in memory.episodes() if any(event.episode_id == one.id for event in events)]
        return [one.verdict for one in check_labels(raw, events, len(memory.awaiting()))]


@pytest.mark.parametrize(
    ("labels_right", "labels_wrong", "n_unlabelled", "found"),
    [
        (0, 20, 10, ["finding"]),
        (14, 6, 10, ["fine"]),  # a random part is labelled
        (0, 20, 0, ["fine"]),  # the model is never right, as all decisions show
        (0, 10, 10, ["not checked"]),
        (0, 0, 10, []),
    ],
)
def test_labels_for_wrong_answers_alone_are_a_finding(labels_right, labels_wrong, n_unlabelled, found):
    assert verdict(labels_right, labels_wrong, n_unlabelled) == found


def test_a_model_that_expects_to_be_wrong_is_no_finding():
    assert verdict(0, 20, 10, prior={f"desk {n}": 0.02 for n in range(49)} | {"refunds": 0.02}) == ["fine"]


def test_doctor_names_it():
    with Memory.open(":memory:") as memory:
        desk = Decider(memory, DESKS, choose="argmax")
        for number in range(30):
            decision = desk.decide(f"ticket {number}", list(DESKS), question="desk", task="desk")
            if number % 3 != 0:
                desk.learn(decision, right=next(one for one in DESKS if one != decision.action))
        [check] = [one for one in diagnose(memory, last=5).checks if one.name == "labels of right answers"]
        assert (check.verdict, check.numbers["right"], check.numbers["labelled"]) == ("finding", 0, 20)
