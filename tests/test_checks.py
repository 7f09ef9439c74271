"""Input checks against their rules, written out independently."""

from __future__ import annotations

import inspect
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seasoned import checks
from seasoned.checks import (
    MAX_INT_BITS,
    check_flag,
    check_function,
    check_instance,
    check_items,
    check_logprobs,
    check_mapping,
    check_number,
    check_one_of,
    check_pattern,
    check_reward,
    check_text,
    check_texts,
    check_whole,
    suggest,
)
from seasoned.errors import ConfigError, InputError
from seasoned.protocols import StateEncoder

OF_ANY_TYPE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**2040, 2**2060)
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.text(st.characters(categories=["Cs", "Zs", "Cc", "Lu"]), max_size=5)
    | st.binary(max_size=5)
    | st.complex_numbers()
    | st.lists(st.integers() | st.text(), max_size=3)
    | st.dictionaries(st.text(max_size=2), st.floats(), max_size=2)
    | st.sampled_from([np.int64(3), np.float32(0.5), np.float64("nan"), np.True_, np.array([1, 2]), object(), len, str])
)
BOUNDS = st.none() | st.integers(-5, 5)


def refused(call, error=InputError):
    """Return the error of the call, which has the value seen, the rule and the next step."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert caught.value.seen and caught.value.rule and caught.value.next_step
    assert str(caught.value) == f"{caught.value.seen}: {caught.value.rule}. {caught.value.next_step}"
    return caught.value


def accepts(check, *args, **kwargs):
    try:
        check(*args, **kwargs)
    except InputError:
        return False
    return True


# ------------------------------------------------------------------------------- texts


@given(OF_ANY_TYPE)
@example("page\ud800")
@example("\u2003")
def test_a_text_is_a_str_of_utf8_with_a_printable_character(value):
    valid = (
        isinstance(value, str)
        and any(not character.isspace() for character in value)
        and not any(0xD800 <= ord(character) <= 0xDFFF for character in value)
    )
    assert accepts(check_text, "state", value) is valid
    if valid:
        assert check_text("state", value) is value
    else:
        assert "state" in refused(lambda: check_text("state", value)).rule


@pytest.mark.parametrize(
    ("value", "seen", "rule"),
    [
        (7, "state = 7", "not int"),
        (b"page", "state = b'page'", "not bytes"),
        ("", "state = ''", "not be empty or blank"),
        ("page\ud800", "'\\ud800' at character 4", "UTF-8"),
        ("x" * 1000 + "\ud800", "character 1000", "UTF-8"),
    ],
    ids=ascii,
)
def test_the_message_about_a_text_has_value_and_rule(value, seen, rule):
    error = refused(lambda: check_text("state", value))
    assert seen in error.seen
    assert rule in error.rule
    assert len(error.seen) < 100


@given(OF_ANY_TYPE | st.lists(st.text(max_size=3)) | st.sets(st.text(max_size=3)))
def test_texts_are_a_collection_of_valid_texts(values):
    valid = (
        isinstance(values, list | set | dict | np.ndarray)
        and all(isinstance(value, str) for value in values)
        and all(accepts(check_text, "task", value) for value in values)
    )
    assert accepts(check_texts, "tasks", values) is valid
    if valid:
        assert check_texts("tasks", values) == tuple(values)


# ------------------------------------------------------------------------------- numbers


def is_number(value):
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


@given(OF_ANY_TYPE, BOUNDS, BOUNDS, BOUNDS, BOUNDS)
def test_a_number_is_finite_and_in_its_range(value, at_least, at_most, above, below):
    exact = Fraction(float(value)) if is_number(value) else None
    valid = (
        exact is not None
        and (at_least is None or exact >= at_least)
        and (at_most is None or exact <= at_most)
        and (above is None or exact > above)
        and (below is None or exact < below)
    )
    assert accepts(check_number, "decay", value, at_least, at_most, above=above, below=below) is valid
    if valid:
        number = check_number("decay", value, at_least, at_most, above=above, below=below)
        assert type(number) is float
        assert number == value


@pytest.mark.parametrize(
    ("value", "seen", "rule"),
    [
        (math.nan, "nan", "finite"),
        (-math.inf, "-inf", "finite"),
        (10**400, "1000", "finite"),
        (10**5000, "too long", "finite"),
        ("1.0", "'1.0'", "not str"),
        (True, "True", "not bool"),
        (np.True_, "True", "not bool"),
        (1j, "1j", "not complex"),
        (1.5, "1.5", "at least 0 and below 1"),
    ],
    ids=lambda value: ascii(value)[:12] if not isinstance(value, int) else "int",
)
def test_the_message_about_a_number_has_value_and_rule(value, seen, rule):
    error = refused(lambda: check_number("reward", value, at_least=0, below=1))
    assert seen in error.seen
    assert rule in error.rule


def test_minus_zero_becomes_zero():
    assert math.copysign(1.0, check_number("reward", -0.0)) == 1.0


@given(st.integers(-(10**101), 10**101) | st.floats(-1e101, 1e101))
@example(1e100)
@example(-1e100)
@example(math.nextafter(1e100, math.inf))
def test_a_reward_is_at_most_1e100_in_size(value):
    valid = abs(float(value)) <= 1e100
    assert accepts(check_reward, "reward", value) is valid
    if valid:
        assert math.isfinite(check_reward("reward", value) ** 2)


@given(OF_ANY_TYPE, BOUNDS, BOUNDS)
@example(2**MAX_INT_BITS - 1, None, None)
@example(2**MAX_INT_BITS, None, None)
@example(-(2**MAX_INT_BITS), None, 0)
@example(np.int64(3), 3, 3)
def test_a_whole_number_is_an_int_in_its_range(value, at_least, at_most):
    valid = (
        type(value) in {int, np.int64}
        and (at_least is None or int(value) >= at_least)
        and (at_most is None or int(value) <= at_most)
        and abs(int(value)) < 2**MAX_INT_BITS
    )
    assert accepts(check_whole, "k", value, at_least, at_most) is valid
    if valid:
        assert type(check_whole("k", value, at_least, at_most)) is int
        assert check_whole("k", value, at_least, at_most) == value


@pytest.mark.parametrize(
    ("bounds", "rule"),
    [
        ({}, "k must be a whole number"),
        ({"at_least": 1}, "k must be a whole number, at least 1"),
        ({"at_least": 1, "at_most": 9}, "k must be a whole number, at least 1 and at most 9"),
    ],
)
def test_a_range_is_part_of_the_rule(bounds, rule):
    assert refused(lambda: check_whole("k", "x", **bounds)).rule == rule


# ------------------------------------------------------------------------------- other types


@given(OF_ANY_TYPE)
def test_a_flag_is_a_bool(value):
    assert accepts(check_flag, "clear_only", value) is (value is True or value is False)


@given(OF_ANY_TYPE)
@example(1)
@example(1.0)
@example("steps")
@example(np.array(["steps"]))
def test_a_choice_equals_a_listed_value_of_its_type(value):
    valid = value is None or (type(value) is str and value == "steps") or (type(value) is int and value == 1)
    assert accepts(check_one_of, "unit", value, ("steps", None, 1)) is valid


def test_misspelt_choice_gets_the_closest_suggestion():
    error = refused(lambda: check_one_of("unit", "step", ("steps", "states", None)))
    assert error.rule == "unit must be one of 'steps', 'states', None"
    assert error.next_step == "Did you mean 'steps'?"
    assert refused(lambda: check_one_of("unit", 7, ("steps", "states"))).next_step == "Pass one of these."


@given(OF_ANY_TYPE)
def test_a_function_can_be_called(value):
    assert accepts(check_function, "redact", value, "takes a text") is callable(value)


@pytest.mark.parametrize(("kind", "article"), [(int, "an int"), (dict, "a dict"), (StateEncoder, "a StateEncoder")])
def test_an_instance_is_of_the_class_or_protocol(kind, article):
    error = refused(lambda: check_instance("value", "x", kind))
    assert error.rule == f"value must be {article}, not str"


def test_an_instance_is_returned():
    value = {"a": 1}
    assert check_instance("value", value, dict) is value
    assert refused(lambda: check_instance("value", 1, dict, "the rule", "The next step.")).rule == "the rule"


@given(OF_ANY_TYPE | st.lists(st.integers()) | st.tuples(st.integers(), st.integers()))
def test_items_are_a_sequence_of_instances(values):
    valid = isinstance(values, list | tuple) and all(isinstance(value, int) for value in values)
    assert accepts(check_items, "layers", values, int) is valid
    if valid:
        assert check_items("layers", values, int) == tuple(values)


def test_the_message_about_items_has_the_index():
    error = refused(lambda: check_items("steps", [1, "x"], int))
    assert error.seen == "steps[1] = 'x'"
    assert error.rule == "each of steps must be an int, not str"


@pytest.mark.parametrize(
    "values",
    [None, 7, "ab", b"ab", {1: 2}, {1, 2}, iter([1])],
    ids=["None", "int", "str", "bytes", "dict", "set", "iterator"],
)
def test_items_are_not_a_text_a_set_a_mapping_or_an_iterator(values):
    assert refused(lambda: check_items("layers", values, int)).rule == "layers must be a list of int"


@given(OF_ANY_TYPE)
def test_a_mapping_is_returned_or_refused(value):
    assert accepts(check_mapping, "shifts", value, "each action to nats") is isinstance(value, dict)


@given(OF_ANY_TYPE)
@example("[0-9")
@example("(?P<a>.)(?P<a>.)")
@example("a{99999999999}")
def test_a_pattern_is_a_regular_expression(value):
    valid = accepts(check_text, "pattern", value)
    try:
        re.compile(value)
    except (re.error, TypeError, OverflowError):
        valid = False
    assert accepts(check_pattern, "pattern", value) is valid


# ------------------------------------------------------------------------------- logprobs


@given(OF_ANY_TYPE | st.dictionaries(st.text(max_size=2), st.floats(max_value=1e-8) | st.none()))
@example({"a": 1e-9})
@example({"a": 1.0000001e-9})
def test_logprobs_are_finite_and_at_most_0(value):
    valid = (
        isinstance(value, dict)
        and len(value) > 0
        and all(accepts(check_text, "action", action) for action in value)
        and all(is_number(logprob) and logprob <= 1e-9 for logprob in value.values())
    )
    assert accepts(check_logprobs, "prior", value) is valid
    if valid:
        checked = check_logprobs("prior", value)
        assert checked == value
        assert checked is not value


@pytest.mark.parametrize(
    ("value", "seen"), [({"a": 0.1}, "prior['a'] = 0.1"), ({"a": None}, "prior['a'] = None"), ({}, "prior = {}")]
)
def test_the_message_about_a_logprob_has_the_action(value, seen):
    assert refused(lambda: check_logprobs("prior", value)).seen == seen


# ------------------------------------------------------------------------------- all checks


REFUSED = {
    check_flag: ("x", ()),
    check_function: (7, ("takes a text",)),
    check_instance: (7, (str,)),
    check_items: (7, (int,)),
    check_mapping: (7, ("each action to nats",)),
    check_number: ("x", ()),
    check_one_of: ("x", (("steps", "states"),)),
    check_pattern: ("[", ()),
    check_text: ("", ()),
    check_whole: ("x", ()),
}


def test_every_check_with_an_error_class_is_tried():
    assert set(REFUSED) == {
        function
        for name, function in vars(checks).items()
        if name.startswith("check_") and "error" in inspect.signature(function).parameters
    }


@pytest.mark.parametrize("check", REFUSED, ids=lambda check: check.__name__)
def test_the_error_class_can_be_chosen(check):
    value, args = REFUSED[check]
    assert refused(lambda: check("the name", value, *args)).seen.startswith("the name")
    assert "the name" in refused(lambda: check("the name", value, *args, error=ConfigError), ConfigError).rule


@pytest.mark.parametrize(
    ("name", "known", "next_step"),
    [
        ("defualt", ["seed", "default"], "Did you mean 'default'?"),
        ("other", ["seed", "default"], "Known are: default, seed."),
        (7, ["seed"], "Known are: seed."),
        ("other", [], "Known are: none."),
    ],
)
def test_suggest_returns_the_closest_name_or_all_names(name, known, next_step):
    assert suggest(name, known) == next_step
