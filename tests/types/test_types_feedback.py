"""Kinds of feedback: their fields, the values that they refuse, and their records."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from seasoned.checks import check_number
from seasoned.errors import InputError
from seasoned.types import (
    FEEDBACK_KINDS,
    MAX_CANDIDATES,
    Choice,
    Correction,
    Edit,
    Outcome,
    OwnAnswer,
    Review,
    Score,
    Thumbs,
    check_body,
    check_kind,
    check_step,
    feedback_from_record,
    feedback_record,
)

GOOD = [
    Thumbs(True),
    Thumbs(np.bool_(False), "so"),
    Score(1),
    Score(np.float64(3), 1, 5),
    Choice(["a", "b"], np.int64(1)),
    Edit("x"),
    Edit("x", None, ["a"], 0),
    Edit("x", "so", ("a", "b"), np.int64(1)),
    OwnAnswer("x", "because"),
    Correction("no"),
    Outcome(exit_code=-9),
    Outcome(passed=0, total=1),
    Outcome(built=True, exit_code=0, passed=2, total=2, comment="all"),
    Review("approved"),
    Review("comment", "hm"),
]


@pytest.mark.parametrize("feedback", GOOD, ids=repr)
def test_feedback_is_hashable_data(feedback):
    record = json.loads(json.dumps(feedback_record(feedback)))
    assert feedback_from_record(feedback.kind, record) == feedback
    assert feedback_from_record(feedback.kind, {**record, "weight": 1.0}) == feedback
    assert len({feedback, feedback_from_record(feedback.kind, record)}) == 1
    assert FEEDBACK_KINDS[feedback.kind] is type(feedback)
    with pytest.raises(AttributeError):
        feedback.comment = "another"


def test_stored_names_of_the_kinds_never_change():
    names = {"choice": Choice, "correction": Correction, "edit": Edit, "outcome": Outcome}
    names |= {"own_answer": OwnAnswer, "review": Review, "score": Score, "thumbs": Thumbs}
    assert names.items() <= FEEDBACK_KINDS.items()


def test_page_lists_every_kind():
    page = Path(__file__).parents[2] / "docs" / "how-to" / "feedback.md"
    listed = re.findall(r"^\| `(\w+)`", page.read_text(encoding="utf-8"), re.MULTILINE)
    ours = [kind.__name__ for kind in FEEDBACK_KINDS.values() if kind.__module__ == Thumbs.__module__]
    assert sorted(listed) == sorted(ours)


HUGE = 10**5000
"""A whole number with more digits than Python prints (4,300)."""

BAD = [
    lambda: Thumbs(1),
    lambda: Thumbs("up"),
    lambda: Thumbs(True, " "),
    lambda: Thumbs(True, 3),
    lambda: Score(math.nan),
    lambda: Score(math.inf),
    lambda: Score(1.01),
    lambda: Score(0, 1, 5),
    lambda: Score("4"),
    lambda: Score(0, 1, 1),
    lambda: Score(0, 1, -1),
    lambda: Score(True),
    lambda: Score(0, math.nan, 1),
    lambda: Choice((), 0),
    lambda: Choice(("a",), 0),
    lambda: Choice(("a", "b"), 2),
    lambda: Choice(("a", "b"), -1),
    lambda: Choice(("a", "b"), True),
    lambda: Choice(("a", "b"), 0.0),
    lambda: Choice(("a", " A "), 0),
    lambda: Choice(("go  north", "GO north"), 0),
    lambda: Choice(("a", ""), 0),
    lambda: Choice(("a", None), 0),
    lambda: Choice("ab", 0),
    lambda: Choice(None, 0),
    lambda: Choice({"a", "b"}, 0),
    lambda: Edit(""),
    lambda: Edit(" \n"),
    lambda: Edit(None),
    lambda: Edit("x", None, ("a",)),
    lambda: Edit("x", None, None, 0),
    lambda: Edit("x", None, (), 0),
    lambda: Edit("x", None, ("a",), 1),
    lambda: Edit("x", None, "a", 0),
    lambda: Edit("x", None, ("a", " "), 0),
    lambda: Edit("x", None, ("a",), False),
    lambda: Edit("x", None, ("a", "A "), 0),
    lambda: OwnAnswer("\ud800"),
    lambda: Correction(3),
    Outcome,
    lambda: Outcome(comment="x"),
    lambda: Outcome(passed=1),
    lambda: Outcome(total=1),
    lambda: Outcome(passed=2, total=1),
    lambda: Outcome(passed=0, total=0),
    lambda: Outcome(passed=-1, total=1),
    lambda: Outcome(exit_code="0"),
    lambda: Outcome(exit_code=False),
    lambda: Outcome(built="yes"),
    lambda: Outcome(passed=0.5, total=1),
    lambda: Review("ok"),
    lambda: Review(None),
    lambda: Review(["approved"]),
    lambda: feedback_record({"up": True}),
    lambda: feedback_record(Thumbs),
    lambda: feedback_from_record("stars", {}),
    lambda: feedback_from_record("thumbs", {}),
    lambda: feedback_from_record("choice", {"candidates": ["a", "b"]}),
    lambda: check_kind("Plan"),
    lambda: check_body([("a", 1)]),
    lambda: Choice([str(n) for n in range(MAX_CANDIDATES + 1)], 0),
    lambda: Choice(("a", "b"), HUGE),
    lambda: Outcome(exit_code=HUGE),
    lambda: Outcome(passed=HUGE, total=HUGE),
    lambda: Outcome(passed=HUGE),
    lambda: Outcome(passed=-HUGE, total=1),
    lambda: Score(HUGE),
    lambda: Score(-HUGE, 0, 1),
    lambda: check_step(HUGE),
    lambda: check_body({"a": [{"n": HUGE}]}),
    lambda: check_body({"n": -HUGE}),
    lambda: check_number("weight", HUGE),
    lambda: check_body({HUGE: 1}),
    lambda: check_body({"a": {1: 2}}),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_feedback_values_are_refused(number):
    with pytest.raises(InputError) as caught:
        BAD[number]()
    assert all((caught.value.seen, caught.value.rule, caught.value.next_step))


def test_a_body_is_copied_as_plain_data():
    given = {"a": (1, np.int64(2)), "b": {"c": np.float64(0.5), "d": [None, np.bool_(True)]}}
    body = check_body(given)
    assert body == {"a": [1, 2], "b": {"c": 0.5, "d": [None, True]}}
    assert json.loads(json.dumps(body)) == body
    given["b"]["c"] = 7
    assert body["b"]["c"] == 0.5


def test_the_largest_allowed_values_are_accepted():
    assert len(Choice([str(n) for n in range(64)], 63).candidates) == MAX_CANDIDATES
    assert check_body({"n": 2**2048 - 1}) == {"n": 2**2048 - 1}
    assert Outcome(exit_code=-(2**31)).exit_code == -(2**31)


def test_long_keys_are_copied_once_and_shortened_in_errors():
    counted = Counting("k" * 50_000)
    assert check_body({counted: list(range(5_000))}) == {"k" * 50_000: list(range(5_000))}
    assert counted.shown == 0
    with pytest.raises(InputError, match=r"^body\['kkk") as caught:
        check_body({"k" * 50_000: [{"a": [object()]}]})
    assert len(str(caught.value.seen)) < 300


class Counting(str):
    """A text that counts how often it is shown."""

    shown = 0

    def __repr__(self):
        self.shown += 1
        return super().__repr__()
