"""The prior by label: softmax, bounds, groups, rotations, refusals."""

import asyncio
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned import errors
from seasoned.llms import ScriptedLLM, label_prior, label_prompt
from seasoned.protocols import Completion, TokenLogprob, Usage


def menu(request):
    return dict(re.findall(r"^([A-Z])\) (.*)$", request.messages[-1].content, re.MULTILINE))


def luce(weights, bias=lambda letter: 0.0):
    """A model that obeys Luce's axiom: the odds of two candidates are their weights', whatever the menu."""

    def script(request):
        logits = {letter: weights[name] + bias(letter) for letter, name in menu(request).items()}
        logits = logits or {"A": 0.0, "B": 0.0}
        total = math.log(sum(map(math.exp, logits.values())))
        return {letter: logit - total for letter, logit in logits.items()}

    return script


def read(llm, candidates, **kwargs):
    return asyncio.run(label_prior(llm, "a kitchen", candidates, **kwargs))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-8, 0), min_size=1, max_size=80), st.sampled_from([2, 5, 20, 40]), st.integers(1, 3))
def test_groups_recover_a_luce_model_exactly(logits, top, debias):
    weights = {f"action {i}": logit for i, logit in enumerate(logits)}
    total = math.log(sum(map(math.exp, weights.values())))
    prior = read(ScriptedLLM(luce(weights), max_top_logprobs=top), list(weights), debias=debias).prior
    assert list(prior) == list(weights)
    assert prior.bounded == ()
    for name, logit in weights.items():
        assert prior[name] == pytest.approx(logit - total, abs=1e-9)


def test_all_rotations_cancel_a_position_bias():
    weights = {"north": -0.2, "south": -1.0, "wait": -2.0}
    llm = ScriptedLLM(luce(weights, bias=lambda letter: 3.0 if letter == "A" else 0.0))
    total = math.log(sum(map(math.exp, weights.values())))
    prior = read(llm, list(weights), debias=3).prior
    assert {n: prior[n] for n in weights} == pytest.approx({n: w - total for n, w in weights.items()})


def test_variants_are_summed_and_a_missing_label_is_bounded():
    llm = ScriptedLLM(lambda r: {"A": math.log(0.2), " A": math.log(0.3), "a": math.log(0.2), "The": math.log(0.1)})
    reading = read(llm, ["x", "y"])
    assert reading.prior["x"] == pytest.approx(math.log(0.5 / 0.6))
    assert reading.prior.bounded == ("y",)
    assert (reading.prior.method, reading.prior.capabilities) == ("label", "logprobs, top 20")
    assert reading.usage.calls == len(llm.requests) == 1


def test_one_candidate_costs_nothing():
    reading = read(ScriptedLLM([]), ["only"])
    assert dict(reading.prior) == {"only": 0.0}
    assert reading.usage.calls == 0


def test_the_stable_part_comes_first():
    assert label_prompt("S", "T", ["x"]).startswith("Task: T\nS\n")


@pytest.mark.parametrize(
    ("tokens", "probs"),
    [
        ({"A": 0.2, "B": 0.6}, (0.25, 0.75)),
        ({" A": 0.2, " B": 0.6}, (0.25, 0.75)),
        ({"A": 0.2, " B": 0.6}, (0.25, 0.75)),
        ({"A": 0.1, " A": 0.1, "B": 0.2, " B": 0.4}, (0.25, 0.75)),
        ({"A": 0.1, "A ": 0.05, "\nA": 0.05, "B": 0.6, "b": 0.1, "B)": 0.05}, (0.25, 0.75)),
        ({"▁A": 0.1, "ĠA": 0.05, "A": 0.2, "B": 0.6}, (0.25, 0.75)),  # raw vocabulary entries are no letters
    ],
)
def test_labels_with_and_without_blanks_are_the_same_label(tokens, probs):
    prior = read(ScriptedLLM([{token: math.log(p) for token, p in tokens.items()}]), ["x", "y"]).prior
    assert [math.exp(prior[name]) for name in ("x", "y")] == pytest.approx(probs)
    assert prior.bounded == ()


def test_fewer_labels_than_asked_are_bounded_by_the_least_that_came():
    """Two of four letters came: the others have at most the least returned logprob, whatever token it was of."""
    llm = ScriptedLLM([{"B": math.log(0.6), "The": math.log(0.3), "D": math.log(0.05), "I": math.log(0.02)}])
    prior = read(llm, ["w", "x", "y", "z"]).prior
    total = 0.6 + 0.05 + 2 * 0.02
    assert [math.exp(logprob) for logprob in prior.values()] == pytest.approx(
        [p / total for p in (0.02, 0.6, 0.02, 0.05)]
    )
    assert prior.bounded == ("w", "y")


def test_an_endpoint_that_returns_fewer_than_it_was_probed_for_is_read_by_what_came():
    llm = ScriptedLLM([Completion("A", "m", Usage(1), None, ((TokenLogprob("A", -0.1),),))], max_top_logprobs=20)
    assert read(llm, ["x", "y"]).prior.bounded == ("y",)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_logprob_that_is_not_finite_is_refused_wherever_it_stands(value):
    alternatives = ((TokenLogprob("A", -0.1), TokenLogprob("The", value)),)
    with pytest.raises(errors.ModelAnswerError, match="finite"):
        read(ScriptedLLM([Completion("A", "m", Usage(1), None, alternatives)]), ["x", "y"])


@pytest.mark.parametrize("answer", [{"The": -0.1}, {"A": float("nan")}, "A"])
def test_nonsense_is_never_a_prior(answer):
    with pytest.raises(errors.ModelAnswerError):
        read(ScriptedLLM([answer]), ["x", "y"])


def test_an_endpoint_without_logprobs_is_refused():
    with pytest.raises(errors.ModelError, match="no logprobs"):
        read(ScriptedLLM(["A"], max_top_logprobs=0), ["x", "y"])


@pytest.mark.parametrize("candidates", [[], "north", ["x", " X "], ["x", " "], ["x", 3]])
def test_bad_candidates(candidates):
    with pytest.raises(errors.InputError) as raised:
        read(ScriptedLLM([]), candidates)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


@pytest.mark.parametrize("debias", [0, 1.5, True])
def test_bad_debias(debias):
    with pytest.raises(errors.InputError):
        read(ScriptedLLM([]), ["x", "y"], debias=debias)


LETTER_BIAS = {letter: 2.5 * math.sin(7 * i) for i, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-6, 0), min_size=2, max_size=45))
def test_calibration_divides_out_any_preference_for_letters(logits):
    """l(c) = u(c) + bias(letter), and u("N/A") is the same for all: the calibrated policy is softmax(u), exactly."""
    weights = {f"action {i}": logit for i, logit in enumerate(logits)} | {"N/A": -1.0}
    llm = ScriptedLLM(luce(weights, bias=LETTER_BIAS.__getitem__))
    names = [name for name in weights if name != "N/A"]
    total = math.log(sum(math.exp(weights[name]) for name in names))
    reading = read(llm, names, calibrate=True)
    assert reading.prior.method == "label, calibrated"
    for name in names:
        assert reading.prior[name] == pytest.approx(weights[name] - total, abs=1e-9)


def test_calibration_asks_a_question_without_the_state_but_with_the_task():
    llm = ScriptedLLM(luce({"north": -0.2, "south": -1.0, "N/A": -1.0}))
    plain = read(llm, ["north", "south"], task="Leave.")
    asked_before = len(llm.requests)
    calibrated = read(llm, ["north", "south"], task="Leave.", calibrate=True)
    texts = [request.messages[-1].content for request in llm.requests[asked_before:]]
    free = [text for text in texts if "north" not in text]
    assert len(texts) == 2
    assert len(free) == 1
    assert "Leave." in free[0]
    assert "kitchen" not in free[0]
    assert calibrated.usage.calls == 2 * plain.usage.calls
    assert plain.prior.method == "label"
