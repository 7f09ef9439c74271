"""Invalid input of policies is refused first, with the value seen, the rule and the next step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seasoned import Episode, JitRL, Memory, ModelAlone, SeasonedError, Step
from seasoned.core import ExplorationBonus
from seasoned.errors import InputError, UnknownNameError
from seasoned.policies import PRESETS, JitRLSettings
from seasoned.policies.examples import Examples

TWO = {"pay": -0.3, "back": -1.4}
NAN, INF = math.nan, math.inf


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


def refused(call, seen, rule, error=InputError):
    with pytest.raises(SeasonedError) as caught:
        call()
    assert type(caught.value) is error
    assert seen in caught.value.seen
    assert rule in caught.value.rule
    assert caught.value.next_step.strip()
    assert len(str(caught.value)) < 1000
    return caught.value


def ids(value):
    return ascii(value)[:20]


# ------------------------------------------------------------------------------- decide

STATES = [
    ("", "''", "not be empty"),
    (" \n\t", "' \\n\\t'", "blank"),
    (None, "None", "not NoneType"),
    (b"page", "b'page'", "not bytes"),
    (["page"], "['page']", "not list"),
    ("page\ud800", "'\\ud800'", "UTF-8"),
]
CANDIDATES = [
    ({}, "{}", "one candidate or more"),
    (["pay", "back"], "['pay', 'back']", "map each action"),
    ("pay", "'pay'", "map each action"),
    (None, "None", "map each action"),
    ({"pay": NAN}, "nan", "finite"),
    ({"pay": 0.0, "back": INF}, "inf", "finite"),
    ({"pay": -INF, "back": 0.0}, "-inf", "finite"),
    ({"pay": True}, "True", "not bool"),
    ({"pay": np.True_}, "True", "not bool"),
    ({"pay": "-0.3"}, "'-0.3'", "not str"),
    ({"pay": None}, "None", "not NoneType"),
    ({"pay": [0.0]}, "[0.0]", "not list"),
    ({"pay": 1j}, "1j", "not complex"),
    ({"pay": 10**400}, "1000", "finite"),
    ({"": 0.0}, "''", "not be empty"),
    ({" \n": 0.0}, "' \\n'", "blank"),
    ({7: 0.0}, "7", "not int"),
    ({None: 0.0}, "None", "not NoneType"),
    ({"pay\udc00": 0.0}, "'\\udc00'", "UTF-8"),
    ({"pay": 0.0, "PAY ": 0.0}, "'pay' and 'PAY '", "once"),
    ({"go north": 0.0, "go\nnorth": 0.0}, "'go north' and 'go\\nnorth'", "once"),
]
ADMISSIBLE = [
    ("pay", "'pay'", "a collection or a predicate"),
    ("", "''", "a collection or a predicate"),
    (7, "7", "a collection or a predicate"),
    (True, "True", "a collection or a predicate"),
    ([7], "7", "not int"),
    ([None], "None", "not NoneType"),
    ([""], "''", "not be empty"),
    (["pay", "Pay"], "'pay' and 'Pay'", "once"),
    ([], "2 candidates", "admissible"),
]
COUNTS = [
    ("seed", -1, "-1", "at least 0"),
    ("seed", 1.5, "1.5", "whole"),
    ("seed", True, "True", "whole"),
    ("seed", "1", "'1'", "whole"),
    ("seed", NAN, "nan", "whole"),
    ("step", -1, "-1", "at least 0"),
    ("step", 0.0, "0.0", "whole"),
    ("step", False, "False", "whole"),
    ("step", None, "None", "whole"),
    ("step", 1 << 2048, "2049 bits", "at most 2048 bits"),
]


def policies(memory):
    return [ModelAlone(), *(JitRL.preset(name, memory) for name in sorted(PRESETS))]


@pytest.mark.parametrize(("state", "seen", "rule"), STATES, ids=ids)
def test_invalid_state_is_refused(memory, state, seen, rule):
    for policy in policies(memory):
        refused(lambda policy=policy: policy.decide(state, TWO), seen, rule)


def test_oversized_state_is_refused(memory):
    for name in PRESETS:
        policy = JitRL.preset(name, memory)
        refused(
            lambda policy=policy: policy.decide("word " * 2_000_000, TWO), "10000000 bytes", "at most 1048576 bytes"
        )


@pytest.mark.parametrize(("candidates", "seen", "rule"), CANDIDATES, ids=ids)
def test_invalid_candidates_are_refused(memory, candidates, seen, rule):
    for policy in policies(memory):
        refused(lambda policy=policy: policy.decide("page", candidates), seen, rule)


@pytest.mark.parametrize(("admissible", "seen", "rule"), ADMISSIBLE, ids=ids)
def test_invalid_admissible_actions_are_refused(memory, admissible, seen, rule):
    for policy in policies(memory):
        refused(lambda policy=policy: policy.decide("page", TWO, admissible=admissible), seen, rule)


@pytest.mark.parametrize(("name", "value", "seen", "rule"), COUNTS, ids=ids)
def test_invalid_seed_or_step_is_refused(memory, name, value, seen, rule):
    for policy in policies(memory):
        error = refused(lambda policy=policy: policy.decide("page", TWO, **{name: value}), seen, rule)
        assert name in error.seen


def test_steps_beyond_the_range_of_floats_decide_as_late_steps_do(memory):
    memory.add(Episode("t", [Step("page two three", "pay", 1.0)]))
    for name in sorted(PRESETS):
        policy = JitRL.preset(name, memory)
        late, latest = (policy.decide("page two", TWO, step=step) for step in (10**6, 10**400))
        assert dict(latest.probs) == dict(late.probs)
        refused(lambda policy=policy: policy.evidence("page", step=-1), "-1", "at least 0")


def test_numbers_beyond_the_range_of_floats_and_values_nested_deeply_are_refused(memory):
    deep = []
    for _ in range(3_000):
        deep = [deep]
    for name in ("beta", "kappa", "threshold", "gamma"):
        for huge in (10**400, 10**5000, deep):  # Python writes no int of 5,000 digits
            refused(lambda name=name, huge=huge: JitRL.preset("paper-games", memory, **{name: huge}), f"{name} =", "")
    refused(lambda: JitRL(memory).decide("page", deep), "list", "map each action")
    for policy in policies(memory):
        refused(lambda policy=policy: policy.decide(deep, TWO), "list", "not list")
    refused(lambda: Examples(memory, vouched_by=True), "True", "a collection of texts")
    refused(lambda: Examples(memory, k=deep), "list", "a whole number")


@pytest.mark.parametrize(
    ("task", "seen", "rule"), [("", "''", "not be empty"), (7, "7", "not int"), (" ", "' '", "blank")], ids=ids
)
@pytest.mark.parametrize("guard", [True, False])
def test_invalid_task_is_refused(memory, task, seen, rule, guard):
    refused(lambda: JitRL(memory, exclude_same_task=guard).decide("page", TWO, task=task), seen, rule)


def test_exclude_same_task_needs_a_task(memory):
    refused(lambda: JitRL(memory, exclude_same_task=True).decide("page", TWO), "task = None", "needs the task")


def test_refused_call_does_not_change_the_policy(memory):
    policy = JitRL(memory)
    before = policy.decide("page", TWO, seed=1)
    for state, candidates in [("", TWO), ("page", {}), ("page", {"pay": NAN})]:
        with pytest.raises(InputError):
            policy.decide(state, candidates, seed=1)
    assert policy.decide("page", TWO, seed=1) == before


def test_unusual_valid_input_is_accepted(memory):
    policy = JitRL(memory)
    assert policy.decide("page", {"pay": np.float32(-1.0), "back": np.int64(0)}, seed=np.int64(3)).seed == 3
    assert policy.decide("page", {"pay": 5000.0, "back": -5000.0}, seed=2**70).action == "pay"
    assert policy.decide("стр", {"заплатить": 1, "退": 0}, seed=0).action in ("заплатить", "退")


# ------------------------------------------------------------------------------- settings

SETTINGS = [
    ("k", 0, "0", "at least 1"),
    ("k", -3, "-3", "at least 1"),
    ("k", 2.5, "2.5", "whole"),
    ("k", True, "True", "whole"),
    ("k", "10", "'10'", "whole"),
    ("k", None, "None", "whole"),
    ("unit", "episodes", "'episodes'", "'steps', 'states'"),
    ("unit", None, "None", "'steps', 'states'"),
    ("threshold", -0.1, "-0.1", "at least 0 and at most 1"),
    ("threshold", 1.1, "1.1", "at least 0 and at most 1"),
    ("threshold", NAN, "nan", "finite"),
    ("threshold", True, "True", "not bool"),
    ("threshold", "0.8", "'0.8'", "not str"),
    ("gamma", 1.01, "1.01", "in [0, 1]"),
    ("gamma", -0.5, "-0.5", "in [0, 1]"),
    ("gamma", NAN, "nan", "in [0, 1]"),
    ("gamma", True, "True", "in [0, 1]"),
    ("gamma", "0.9", "'0.9'", "in [0, 1]"),
    ("backup", -1.0, "-1.0", "at least 0"),
    ("backup", "4", "'4'", "not str"),
    ("baseline", "median", "'median'", "'neighbors', 'base_policy'"),
    ("scale", "range", "'range'", "'none', 'spread'"),
    ("levels", "none", "'none'", "'shared', 'own'"),
    ("threshold_fall", -0.1, "-0.1", "at least 0 and at most 1"),
    ("threshold_fall", None, "None", "not NoneType"),
    ("all_above", 1.5, "1.5", "at least 0 and at most 1"),
    ("all_above", "0.9", "'0.9'", "not str"),
    ("beta_ramp", -1.0, "-1.0", "at least 0"),
    ("max_kl_nats", 0.0, "0.0", "above 0"),
    ("max_kl_nats", INF, "inf", "finite"),
    ("clear_only", 1, "1", "True or False"),
    ("frontier", 1, "1", "True or False"),
    ("prior_scale", "percent", "'percent'", "'logprobs', 'probabilities'"),
    ("memory_base", "one", "'one'", "'mass', 'zero'"),
    ("memory_return_above", NAN, "nan", "finite"),
    ("kappa", -1.0, "-1.0", "at least 0"),
    ("kappa", INF, "inf", "finite"),
    ("kappa", "1", "'1'", "not str"),
    ("exploration", 0.3, "0.3", "ExplorationBonus, or None"),
    ("exploration", True, "True", "ExplorationBonus, or None"),
    ("beta", -1.0, "-1.0", "at least 0"),
    ("beta", NAN, "nan", "finite"),
    ("beta", INF, "inf", "finite"),
    ("beta", True, "True", "finite"),
    ("beta", "4", "'4'", "finite"),
    ("min_neighbors", -1, "-1", "at least 0"),
    ("min_neighbors", 1.0, "1.0", "whole"),
    ("selection", "greedy", "'greedy'", "'sample', 'argmax'"),
    ("memory_prior", 0, "0", "above 0 and below 1"),
    ("memory_prior", 1, "1", "above 0 and below 1"),
    ("memory_prior", -0.1, "-0.1", "above 0 and below 1"),
    ("memory_prior", NAN, "nan", "finite"),
    ("memory_prior", None, "None", "not NoneType"),
    ("similarity_power", -1.0, "-1.0", "at least 0"),
    ("similarity_power", INF, "inf", "finite"),
    ("propensity_floor", 0.0, "0.0", "at least 1e-06 and at most 1"),
    ("propensity_floor", 1.5, "1.5", "at least 1e-06 and at most 1"),
    ("propensity_floor", NAN, "nan", "finite"),
    ("propensity_floor", "half", "'half'", "not str"),
    ("decay", 0.0, "0.0", "above 0 and at most 1"),
    ("decay", 1.5, "1.5", "above 0 and at most 1"),
    ("decay", NAN, "nan", "finite"),
    ("exclude_same_task", "no", "'no'", "True or False"),
    ("memory_actions", 0, "0", "True or False"),
    ("similarity", "cosine", "'cosine'", "'jaccard', 'rarity'"),
    ("estimation", "median", "'median'", "'means', 'process'"),
    ("choices", "borda", "'borda'", "'comparisons', 'rewards'"),
    ("nats_per_step", 0.0, "0.0", "above 0"),
    ("nats_per_step", INF, "inf", "finite"),
    ("change_rate", 0.6, "0.6", "at most 0.5"),
    ("change_rate", -0.1, "-0.1", "at least 0"),
    ("moderation", 1.5, "1.5", "at most 1"),
    ("moderation", -0.1, "-0.1", "at least 0"),
    ("prior_slope", 1, "1", "True or False"),
]


@pytest.mark.parametrize(("name", "value", "seen", "rule"), SETTINGS, ids=ids)
def test_invalid_settings_are_refused(memory, name, value, seen, rule):
    for call in (
        lambda: JitRL(memory, **{name: value}),
        lambda: JitRL.preset("seed", memory, **{name: value}),
        lambda: JitRLSettings(**{name: value}),
    ):
        assert name in refused(call, seen, rule).seen


def test_every_setting_has_an_invalid_example():
    assert {name for name, *_ in SETTINGS} == set(JitRLSettings.__dataclass_fields__)


@pytest.mark.parametrize(
    ("call", "seen", "next_step"),
    [
        (lambda m: JitRL(m, bata=2.0), "'bata'", "Did you mean 'beta'?"),
        (lambda m: JitRL.preset("seed", m, min_neighbours=2), "'min_neighbours'", "Did you mean 'min_neighbors'?"),
        (lambda m: JitRL(m, zzz=2.0), "'zzz'", "Known are: "),
    ],
)
def test_unknown_setting_is_refused(memory, call, seen, next_step):
    assert next_step in refused(lambda: call(memory), seen, "no such setting").next_step


@pytest.mark.parametrize(
    ("name", "next_step"),
    [("defualt", "Did you mean 'default'?"), ("Seed", "Did you mean 'seed'?"), ("zzz", "default, means")],
)
def test_unknown_preset_is_refused(memory, name, next_step):
    error = refused(lambda: JitRL.preset(name, memory), repr(name), "no such preset", UnknownNameError)
    assert next_step in error.next_step


@pytest.mark.parametrize(("name", "kind"), [(None, "NoneType"), (7, "int"), (["seed"], "list")])
def test_preset_name_must_be_a_text(memory, name, kind):
    refused(lambda: JitRL.preset(name, memory), repr(name), f"not {kind}")


@pytest.mark.parametrize(
    ("settings", "seen"), [({"alpha": -1.0, "rate": 0.5}, "-1.0"), ({"alpha": 1.0, "rate": 1.5}, "1.5")]
)
def test_invalid_bonus_settings_are_refused(settings, seen):
    with pytest.raises(InputError, match=seen):
        ExplorationBonus(**settings)
