"""JSON that is read and written in parts: the same values, and the same bytes, as by the standard library."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned.integrations.json_parts import dumps_in_parts, loads_in_parts

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@settings(max_examples=60, deadline=None)
@given(VALUES, st.sampled_from([None, 1, "\t"]))
def test_parts_are_the_whole(value, indent):
    text = json.dumps(value, indent=indent)
    assert loads_in_parts(f" {text}\n", 0) == value
    try:
        whole = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            dumps_in_parts(value)
    else:
        assert dumps_in_parts(value) == whole


@settings(max_examples=200, deadline=None)
@given(st.text('{}[]",:1an \n', max_size=12))
def test_wrong_documents_are_refused_alike(text):
    try:
        expected = json.loads(text)
    except ValueError as error:
        with pytest.raises(ValueError, match=r".") as raised:
            loads_in_parts(text, 0)
        assert str(raised.value) == str(error)
    else:
        assert loads_in_parts(text, 0) == expected


def test_key_that_is_given_twice_has_its_last_value():
    assert loads_in_parts('{"a": 1, "a": [2]}', 0) == {"a": [2]}
