"""Derived ids are parsed back to the id that they were made of, whatever characters it has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seasoned.memory.values.derived_ids import (
    answer_id,
    event_id,
    event_number,
    feedback_of_answer,
    feedback_of_event,
    may_be_answer,
    original_event_id,
    reweighted_at_us,
    reweighted_event_id,
)

IDS = st.text(min_size=1) | st.sampled_from(["a-0", "a.0", "~", "a~000643706cbd30003fe0000000000000x"])
NUMBERS = st.integers(0, 10**6)


@given(IDS, NUMBERS)
def test_answer_id_contains_its_feedback_id(feedback, number):
    answer = answer_id(feedback, number)
    assert may_be_answer(answer)
    assert feedback_of_answer(answer) == feedback


@given(IDS, NUMBERS, st.floats(0.0, 10.0), st.integers(0, 2**62))
def test_event_id_contains_its_feedback_id_and_number_after_reweightings(feedback, number, weight, at_us):
    first = event_id(feedback, number)
    again = reweighted_event_id(reweighted_event_id(first, 1.0, 1), weight, at_us)
    assert {original_event_id(first), original_event_id(again)} == {first}
    assert {feedback_of_event(first), feedback_of_event(again)} == {feedback}
    assert {event_number(first), event_number(again)} == {number}
    assert (reweighted_at_us(first), reweighted_at_us(again)) == (-1, at_us)


@given(IDS, st.lists(st.tuples(st.integers(0, 2**62), st.floats(0.0, 10.0)), unique_by=lambda pair: pair[0]))
def test_ids_of_later_reweightings_sort_later(original, reweightings):
    ids = [reweighted_event_id(original, weight, at_us) for at_us, weight in sorted(reweightings)]
    assert ids == sorted(ids)
