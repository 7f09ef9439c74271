"""Steps, episodes, priors and evidence: texts and numbers that cannot be stored or compared are refused."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest

from seasoned.errors import InputError
from seasoned.types import Episode, Evidence, Prior, Step, normalize_action

STEP = Step("page:cart", "click(checkout)")

NOT_TEXT = [
    (None, "None", "not NoneType"),
    (7, "7", "not int"),
    (b"page", "b'page'", "not bytes"),
    (["page"], "['page']", "not list"),
    ("", "''", "not be empty or blank"),
    (" \n\t", "' \\n\\t'", "not be empty or blank"),
    ("\u2003", "'\\u2003'", "not be empty or blank"),
    ("page\ud800", "'\\ud800' at character 4", "UTF-8"),
]
NOT_FINITE = [
    (math.nan, "nan", "finite"),
    (math.inf, "inf", "finite"),
    (-math.inf, "-inf", "finite"),
    (10**400, "1000", "finite"),
    ("1.0", "'1.0'", "not str"),
    (None, "None", "not NoneType"),
    (True, "True", "not bool"),
    (np.True_, "True", "not bool"),
    (1j, "1j", "not complex"),
    ([1.0], "[1.0]", "not list"),
    (np.float64("nan"), "nan", "finite"),
]


def refused(call, seen, rule):
    """The call raises InputError, and its message says the value, the rule and a next step."""
    with pytest.raises(InputError) as caught:
        call()
    assert seen in caught.value.seen
    assert rule in caught.value.rule
    assert caught.value.next_step
    assert str(caught.value) == f"{caught.value.seen}: {caught.value.rule}. {caught.value.next_step}"


def ids(row):
    return ascii(row)[:24]


# ------------------------------------------------------------------------------- Step


@pytest.mark.parametrize("name", ["state", "action"])
@pytest.mark.parametrize(("value", "seen", "rule"), NOT_TEXT, ids=ids)
def test_state_and_action_must_be_text(name, value, seen, rule):
    refused(lambda: Step(**{"state": "s", "action": "a", name: value}), seen, rule)


@pytest.mark.parametrize(("value", "seen", "rule"), NOT_FINITE, ids=ids)
def test_a_reward_is_a_finite_number(value, seen, rule):
    refused(lambda: Step("s", "a", reward=value), seen, rule)


@pytest.mark.parametrize(
    ("prior", "seen", "rule"),
    [
        ({"a": 0.1}, "prior['a'] = 0.1", "at most 0"),
        ({"a": -1.0, "b": 2}, "prior['b'] = 2.0", "at most 0"),
        ({"a": math.nan}, "prior['a'] = nan", "finite"),
        ({"a": -math.inf}, "prior['a'] = -inf", "finite"),
        ({"a": None}, "prior['a'] = None", "not NoneType"),
        ({"a": "-0.1"}, "prior['a'] = '-0.1'", "not str"),
        ({"": -0.1}, "''", "not be empty or blank"),
        ({3: -0.1}, "3", "not int"),
        ({"\udfff": -0.1}, "surrogate", "UTF-8"),
    ],
    ids=ids,
)
def test_a_prior_holds_logprobs(prior, seen, rule):
    refused(lambda: Step("s", "a", prior=prior), seen, rule)


@pytest.mark.parametrize(
    ("propensity", "seen", "rule"),
    [
        (0.0, "propensity = 0.0", "above 0 and at most 1"),
        (-0.5, "propensity = -0.5", "above 0 and at most 1"),
        (1.0001, "propensity = 1.0001", "above 0 and at most 1"),
        (math.nan, "nan", "finite"),
        (math.inf, "inf", "finite"),
        ("0.5", "'0.5'", "not str"),
        (True, "True", "not bool"),
    ],
    ids=ids,
)
def test_a_propensity_is_a_probability(propensity, seen, rule):
    refused(lambda: Step("s", "a", propensity=propensity), seen, rule)


@pytest.mark.parametrize("reward", [2, np.int32(2), np.float32(2.0), np.float64(2.0), 2.0])
def test_any_number_becomes_a_float(reward):
    step = Step("s", "a", reward=reward)
    assert type(step.reward) is float
    assert step.reward == 2.0


def test_minus_zero_becomes_zero():
    # The two are equal, but would be stored and hashed as different.
    assert math.copysign(1.0, Step("s", "a", reward=-0.0).reward) == 1.0


def test_rounding_above_logprob_0_is_allowed():
    assert Step("s", "a", prior={"a": 1e-12, "b": -30}).prior == {"a": 1e-12, "b": -30.0}


def test_step_copies_its_prior():
    prior = {"a": -0.1}
    step = Step("s", "a", prior=prior)
    prior["a"] = 5.0
    assert step.prior == {"a": -0.1}


def test_step_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        STEP.reward = 1.0


# ------------------------------------------------------------------------------- Episode


@pytest.mark.parametrize("name", ["task", "id", "final_state", "model", "policy", "arm", "subject"])
@pytest.mark.parametrize(("value", "seen", "rule"), NOT_TEXT, ids=ids)
def test_the_texts_of_an_episode_are_checked(name, value, seen, rule):
    if value is None and name != "task":
        assert getattr(Episode(**{"task": "t", "steps": [STEP], name: value}), name) is None
        return
    refused(lambda: Episode(**{"task": "t", "steps": [STEP], name: value}), seen, rule)


@pytest.mark.parametrize("ending", ["", "done", "Terminated", None, 1, ["terminated"]], ids=repr)
def test_an_ending_is_one_of_three(ending):
    refused(lambda: Episode("t", [STEP], ending=ending), f"ending = {ending!r}", "'terminated', 'truncated', 'aborted'")


@pytest.mark.parametrize(
    ("steps", "seen", "rule"),
    [
        (None, "None", "list of Step"),
        ("steps", "'steps'", "list of Step"),
        (b"steps", "b'steps'", "list of Step"),
        (STEP, "steps = Step(", "list of Step"),
        ({}, "{}", "list of Step"),
        (iter([STEP]), "iterator", "list of Step"),
        ([STEP, None], "steps[1] = None", "must be a Step"),
        ([("s", "a", 1.0)], "steps[0] = ('s', 'a', 1.0)", "must be a Step"),
        ([STEP, {"state": "s", "action": "a"}], "steps[1]", "must be a Step"),
    ],
    ids=["None", "str", "bytes", "one step", "dict", "iterator", "None inside", "tuple inside", "dict inside"],
)
def test_steps_are_a_list_of_steps(steps, seen, rule):
    refused(lambda: Episode("t", steps), seen, rule)


@pytest.mark.parametrize("ending", ["terminated", "truncated"])
def test_a_finished_episode_has_steps(ending):
    refused(lambda: Episode("t", [], ending=ending), "steps = []", "at least one step")


def test_aborted_episode_may_have_no_steps():
    assert Episode("t", [], ending="aborted").steps == ()


def test_episode_copies_its_steps_and_is_immutable():
    steps = [STEP]
    episode = Episode("t", steps)
    steps.append(STEP)
    assert episode.steps == (STEP,)
    with pytest.raises(dataclasses.FrozenInstanceError):
        episode.task = "other"


def test_episode_survives_pickling():
    episode = Episode("t", [Step("s", "a", 1.0, {"a": -0.1}, 0.5)], id="e", final_state="f", subject="someone")
    assert pickle.loads(pickle.dumps(episode)) == episode


# ------------------------------------------------------------------------------- Prior, Evidence, action keys


def test_a_prior_is_a_mapping_in_its_own_order():
    prior = Prior({"b": -0.3, "a": -1.4}, method="label", model="tiny", bounded=("a",))
    assert list(prior) == ["b", "a"]
    assert dict(prior) == {"b": -0.3, "a": -1.4}
    assert len(prior) == 2
    assert prior["a"] == -1.4
    assert "c" not in prior
    with pytest.raises(KeyError):
        prior["c"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        prior.model = "other"


@pytest.mark.parametrize(
    ("prior", "seen", "rule"),
    [
        ({"a": math.log(3.0)}, "prior['a'] = 1.09", "at most 0"),
        ({"a": math.nan}, "prior['a'] = nan", "finite"),
        ({" ": -0.1}, "' '", "not be empty or blank"),
    ],
    ids=ids,
)
def test_step_refuses_invalid_values_of_a_prior(prior, seen, rule):
    refused(lambda: Step("s", "a", prior=Prior(prior)), seen, rule)


def test_a_step_accepts_a_prior():
    assert Step("s", "a", prior=Prior({"a": -0.1, "b": -2.4})).prior == {"a": -0.1, "b": -2.4}


def test_evidence_counts_its_steps():
    ones = np.ones(2)
    evidence = Evidence(("a", "b"), np.array([2.0, 3.0]), ones, ones, ones, 1.0, 0.9, 2, ())
    assert evidence.n_steps == 5


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Go North", "  go   NORTH\n", True),
        ("click(a)", "click(a)", True),
        ("STRASSE", "straße", True),
        ("go north", "gonorth", False),
        ("click(a)", "click( a)", False),
    ],
)
def test_two_spellings_of_one_action_share_a_key(one, other, same):
    assert (normalize_action(one) == normalize_action(other)) is same
    assert normalize_action(normalize_action(one)) == normalize_action(one)
