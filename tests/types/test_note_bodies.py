"""Bodies of notes: round trips, and checks of the records of other programs."""

from __future__ import annotations

import json

import pytest

from seasoned.errors import InputError
from seasoned.types import DecidedBody, QuestionBody, ShownBody, check_body, note_text_of, text_body

SHOWN = ShownBody((("e1", 0), ("e2", 3)), "both", "reason")


@pytest.mark.parametrize(
    "record",
    [
        text_body("search, then pay"),
        SHOWN.record(),
        DecidedBody("teacher", None, "too little evidence", 0.5, 2.0).record(),
        QuestionBody("d", [{"text": "Yes", "logprob": -0.5, "model": None}], None, "e1", 2).record(),
    ],
)
def test_bodies_are_json(record):
    assert check_body(record) == json.loads(json.dumps(record)) == record


def test_shown_steps_are_read_back():
    assert ShownBody.read_examples(SHOWN.record()) == SHOWN.examples
    assert ShownBody.from_record(SHOWN.record()) == SHOWN


@pytest.mark.parametrize("body", [{}, {"examples": None}, {"examples": "e1"}, {"examples": [["e1", True], ["e1"], 3]}])
def test_shown_bodies_of_another_shape_have_no_examples(body):
    assert ShownBody.read_examples(body) == ()


@pytest.mark.parametrize(
    "record", [{"examples": "e1"}, {"examples": [["e1", "0"]]}, {"examples": [], "mode": 1}, {"purpose": None}]
)
def test_a_malformed_shown_record_is_refused(record):
    with pytest.raises(InputError, match="pairs"):
        ShownBody.from_record(record)


def test_a_question_without_an_episode_is_about_its_own_step():
    body = QuestionBody.from_record(QuestionBody("d", [], None, None, None).record())
    assert body.target("q1") == ("q1", 0)
    assert QuestionBody("d", [], None, "e1", 2).target("q1") == ("e1", 2)


@pytest.mark.parametrize("body", [{}, {"text": None}, {"text": " \n"}, {"text": 3}])
def test_note_text_of_a_body_without_text_is_none(body):
    assert note_text_of(body) is None
