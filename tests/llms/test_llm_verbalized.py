"""The prior by stated confidences: the rule, and every fault of an answer."""

import asyncio
import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned import errors
from seasoned.llms import ScriptedLLM, VerbalizedReader, confidence_logprobs
from seasoned.protocols import PriorReader

NAMES = ("north", "south", "wait")
GOOD = '{"1": 20, "2": 70, "3": 1}'


def read(answers, candidates=("north", "south", "wait"), **kwargs):
    llm = answers if isinstance(answers, ScriptedLLM) else ScriptedLLM(answers)
    return asyncio.run(VerbalizedReader(llm, **kwargs).read("a kitchen", "leave", list(candidates)))


@given(st.lists(st.floats(0.5, 99.5), min_size=1, max_size=6))
def test_rule_is_the_probability_of_the_only_true_statement(percents):
    """By enumeration: independent statements, given that exactly one is true."""
    q = [percent / 100 for percent in percents]
    alone = [0.0] * len(q)
    for world in itertools.product([False, True], repeat=len(q)):
        if sum(world) == 1:
            alone[world.index(True)] += math.prod(p if true else 1 - p for p, true in zip(q, world, strict=True))
    logprobs = confidence_logprobs({str(i): percent for i, percent in enumerate(percents)})
    expected = [value / sum(alone) for value in alone]
    assert [math.exp(logprob) for logprob in logprobs.values()] == pytest.approx(expected, rel=1e-9)


def test_0_and_100_are_bounded_by_half_a_percent():
    extreme = confidence_logprobs({"x": 0, "y": 100})
    assert extreme == confidence_logprobs({"x": 0.5, "y": 99.5})
    assert extreme["y"] - extreme["x"] == pytest.approx(2 * math.log(199))
    assert confidence_logprobs({"x": 0, "y": 0})["x"] == pytest.approx(math.log(0.5))


@pytest.mark.parametrize("percents", [{}, {"x": -1}, {"x": 100.5}, {"x": math.nan}, {"x": True}, {"x": "7"}])
def test_invalid_confidences_are_refused(percents):
    with pytest.raises(errors.InputError) as raised:
        confidence_logprobs(percents)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! {GOOD} I hope that helps {{friend}}.",
        '{"1": "20%", "2": 70.0, "3": "1"}',
        '{"north": 20, "SOUTH": 70, "wait": 1}',
        '{"3": 1, "1": 20, "2": 70, "why": "the fridge"}',
        '{"confidence": {"1": 20, "2": 70, "3": 1}}',
        f'My template: {{"n": 0}}. My answer: {GOOD}',
        f'At first {{"1": 90, "2": 5, "3": 5}}; but the door is shut, so: {GOOD}',
        f'Perhaps {{"1": 90}}, or {{"1": 9, "2": 9, "3": 9}}? No: {GOOD}. I am least sure of {{"3": 1}}.',
        f'{GOOD} in the form {{"1": 0, "2": 0, "3": 0}}',
        "{" * 150 + GOOD,
    ],
)
def test_readable_answers_need_one_call(answer):
    reading = read([answer])
    assert dict(reading.prior) == pytest.approx(confidence_logprobs({"north": 20, "south": 70, "wait": 1}))
    assert (reading.prior.method, reading.prior.bounded, reading.usage.calls) == ("verbalized", (), 1)


BAD = {
    "refusal": ("I'm sorry, I cannot help with that.", "no JSON object"),
    "blank": ("", "no JSON object"),
    "list": ("[20, 70, 1]", "no JSON object"),
    "cut off": ('{"1": 20, "2": 7', "cannot be read"),
    "duplicated": ('{"1": 20, "2": 70, "3": 1, "1": 30}', "twice"),
    "duplicated by name": ('{"1": 20, "2": 70, "3": 1, "North": 30}', "twice"),
    "nan": ('{"1": NaN, "2": 70, "3": 1}', "NaN"),
    "nan as text": ('{"1": "nan", "2": 70, "3": 1}', "not a number"),
    "infinite": ('{"1": 1e999, "2": 70, "3": 1}', "not from 0 to 100"),
    "too large": ('{"1": 120, "2": 70, "3": 1}', "not from 0 to 100"),
    "negative": ('{"1": -1, "2": 70, "3": 1}', "not from 0 to 100"),
    "word": ('{"1": "high", "2": 70, "3": 1}', "not a number"),
    "boolean": ('{"1": true, "2": 70, "3": 1}', "not a number"),
    "null": ('{"1": null, "2": 70, "3": 1}', "not a number"),
    "the prompt's own form": ('{"1": 0, "2": 0, "3": 0}', "every confidence in it is 0"),
    "all 0 in words": ('{"north": "0%", "south": 0.0, "wait": "0"}', "every confidence in it is 0"),
    "0 and nothing else": ('{"2": 0}', "every confidence in it is 0"),
    "deep": ('{"1":' * 3000, "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_fault_is_named_in_one_retry_then_raised(name):
    answer, words = BAD[name]
    llm = ScriptedLLM([answer, GOOD])
    reading = read(llm)
    assert dict(reading.prior) == dict(read([GOOD]).prior)
    assert (reading.prior.method, reading.usage.calls) == ("verbalized, asked twice", 2)
    assert words not in llm.requests[0].messages[-1].content
    assert words in llm.requests[1].messages[-1].content
    llm = ScriptedLLM([answer, answer, GOOD])
    with pytest.raises(errors.ModelAnswerError) as raised:
        read(llm)
    assert words in raised.value.seen
    assert raised.value.rule
    assert raised.value.next_step
    assert len(llm.requests) == 2


@pytest.mark.parametrize(
    "answer",
    ['{"1": 0.2, "2": 0.7, "3": 0.01}', '{"1": "0.2", "2": 0.7, "3": 0.01}', '{"3": 0.01, "1": 0.2, "2": 0.7}'],
)
def test_fractions_are_detected_and_recorded(answer):
    reading = read([answer])
    assert dict(reading.prior) == pytest.approx(confidence_logprobs({"north": 20, "south": 70, "wait": 1}))
    assert (reading.prior.method, reading.usage.calls) == ("verbalized, in fractions", 1)


@pytest.mark.parametrize(
    ("answer", "percent"),
    [
        ('{"1": 1, "2": 0, "3": 1}', (1, 0, 1)),  # ones and zeros alone are percents
        ('{"1": 1.0, "2": 0, "3": 0}', (1, 0, 0)),
        ('{"1": "0.7%", "2": "0.2%", "3": "0.1%"}', (0.7, 0.2, 0.1)),
        ('{"1": 0.5, "2": 2, "3": 0}', (0.5, 2, 0)),
    ],
)
def test_ambiguous_values_are_percents(answer, percent):
    reading = read([answer])
    assert dict(reading.prior) == pytest.approx(confidence_logprobs(dict(zip(NAMES, percent, strict=True))))
    assert reading.prior.method == "verbalized"


def test_fractions_with_a_candidate_missing_twice_are_bounded():
    reading = read(['{"1": 0.2, "2": 0.7}'] * 2)
    assert dict(reading.prior) == pytest.approx(confidence_logprobs({"north": 20, "south": 70, "wait": 20}))
    assert (reading.prior.method, reading.prior.bounded) == ("verbalized, asked twice, in fractions", ("wait",))


def test_one_confidence_above_0_is_enough():
    reading = read(['{"1": 0, "2": 0, "3": 1}'])
    assert dict(reading.prior) == pytest.approx(confidence_logprobs({"north": 0, "south": 0, "wait": 1}))
    assert reading.usage.calls == 1


def test_missing_candidate_is_bounded_and_recorded():
    llm = ScriptedLLM(['{"2": 70, "1": 20}'] * 2)
    reading = read(llm)
    assert "no confidence for 3" in llm.requests[1].messages[-1].content
    assert dict(reading.prior) == pytest.approx(confidence_logprobs({"north": 20, "south": 70, "wait": 20}))
    assert reading.prior.bounded == ("wait",)
    with pytest.raises(errors.ModelAnswerError):
        read([json.dumps({"4": 30})] * 2)


def test_numeric_candidate_is_no_label():
    reading = read(['{"1": 90, "2": 10}'], ["2", "1"])
    assert reading.prior["2"] > reading.prior["1"]


def test_single_candidate_costs_no_call_and_invalid_ones_are_refused():
    assert read([], ["only"]).usage.calls == 0
    assert isinstance(VerbalizedReader(ScriptedLLM([])), PriorReader)
    for candidates in ([], ["x", " X "], ["x", ""]):
        with pytest.raises(errors.InputError):
            read([], candidates)
    for setting in ({"max_tokens": 0}, {"temperature": -1.0}, {"temperature": math.nan}):
        with pytest.raises(errors.InputError):
            VerbalizedReader(ScriptedLLM([]), **setting)


def test_number_too_large_for_a_float_is_asked_again():
    huge = '{"1": 1' + "0" * 400 + ', "2": 5}'
    llm = ScriptedLLM([huge, '{"1": 90, "2": 5}'])
    reading = asyncio.run(VerbalizedReader(llm).read("a kitchen", "leave", ["go north", "wait"]))
    assert len(llm.requests) == 2
    assert reading.prior["go north"] > reading.prior["wait"]
