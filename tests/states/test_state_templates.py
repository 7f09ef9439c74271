"""Templates, fields, buckets and recent actions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned import states
from seasoned.errors import InputError
from seasoned.states import (
    NUMBERS,
    Buckets,
    Nouns,
    PatternMatch,
    RecentVerbs,
    Template,
    TemplateEncoder,
    TokenEncoder,
    split_recent,
    with_recent_actions,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
edges = st.lists(finite.map(lambda edge: edge + 0.0), min_size=1, max_size=5, unique=True).map(sorted)


def refused(call, *arguments, seen, **settings):
    with pytest.raises(InputError) as caught:
        call(*arguments, **settings)
    assert seen in caught.value.seen
    assert caught.value.rule
    assert caught.value.next_step


@given(edges, finite, finite)
def test_numbers_share_a_label_unless_an_edge_separates_them(edges, a, b):
    buckets = Buckets(edges)
    parted = any(min(a, b) < edge <= max(a, b) for edge in edges)
    assert (buckets.label(a) == buckets.label(b)) == (not parted)


def test_bucket_labels_contain_the_name_and_the_range():
    assert Buckets([10, 20.5]).label(10, "total") == "total:10-20.5"
    assert Buckets([-5, 0]).label(-7) == "<-5"
    assert Buckets([-5, 0]).label(-0.0, "the total") == "the_total:>=0"


@pytest.mark.parametrize("edges", [[], [2, 1], [1, 1], [1, math.nan], [math.inf], "12", 3, [True], ["1"]])
def test_bad_edges_are_refused(edges):
    refused(Buckets, edges, seen="edge")


@pytest.mark.parametrize("number", [math.nan, math.inf, "3", None, True])
def test_invalid_number_is_refused(number):
    refused(Buckets([1]).label, number, seen="number")


actions = st.lists(st.text("abc (_)", min_size=1, max_size=5).filter(str.strip), max_size=5)


@given(actions, st.integers(0, 6), st.booleans())
def test_recent_actions_add_one_feature_for_each_of_the_last_n(actions, n, ordered):
    last = actions[len(actions) - min(n, len(actions)) :]
    state = with_recent_actions("dark hall", actions, n, ordered=ordered)
    expected = {"_".join(action.split()) for action in last}
    if ordered:
        expected = {f"recent{len(last) - i}:{'_'.join(action.split())}" for i, action in enumerate(last)}
    else:
        expected = {f"recent:{action}" for action in expected}
    assert TokenEncoder().features(state) == {"dark", "hall"} | expected
    assert split_recent(state) == ("dark hall", tuple("_".join(action.split()) for action in last))


def test_page_text_is_not_parsed_as_recent_actions():
    for state in ("recent: orders", "hall recent:look", "recent:look\nhall", "hall\n", "hall"):
        assert split_recent(state) == (state, ())


def test_ids_in_recent_actions_are_masked():
    encoder = TokenEncoder(masks=[NUMBERS])
    assert encoder.features(with_recent_actions("hall", ["click(item_42)"])) == {"hall", "recent:click(item_<*>)"}


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ((" ", []), "state"),
        (("hall", "look"), "actions"),
        (("hall", None), "actions"),
        (("hall", [""]), "action"),
        (("hall", [3]), "action"),
        (("hall", [], -1), "n = -1"),
        (("hall", [], True), "n = True"),
    ],
)
def test_bad_recent_actions_are_refused(arguments, seen):
    refused(with_recent_actions, *arguments, seen=seen)


def test_nouns_are_extracted_once_in_order():
    text = "You are in the Kitchen. A well-worn table; the table is old.\nrecent:take_lamp"
    assert Nouns().extract(text) == ("kitchen", "well-worn", "table")
    assert Nouns(["Lamp", "TABLE"]).extract(text) == ("table",)
    assert Nouns().extract("...") == ()


def test_recent_verbs_are_first_words_of_recent_actions():
    assert RecentVerbs(2).extract("hall\nrecent:look recent:go_north recent:click(ok)") == ("go", "click")
    assert RecentVerbs().extract("look around") == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("total: 12", "10-20"),
        ("Total: 1,200.5", ">=20"),
        ("total: -3", "<10"),
        ("total: n/a", "none"),
        ("", "none"),
        ("total: nan", "none"),
    ],
)
def test_matched_number_gives_its_bucket_label(text, value):
    assert PatternMatch(r"total: (\S+)", Buckets((10, 20))).extract(text) == value


def test_matched_text_is_joined_to_one_token():
    assert PatternMatch(r"in the (\w+ \w+)").extract("In the living  room in the living room") == "living_room"
    assert PatternMatch("living room").extract("a Living Room") == "Living_Room"
    assert PatternMatch("(x)|y", missing="not there").extract("y") == "not_there"


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (lambda: Nouns("lamp"), "lamp"),
        (lambda: Nouns(["brass lamp"]), "brass lamp"),
        (lambda: Nouns([""]), "word"),
        (lambda: RecentVerbs(0), "n = 0"),
        (lambda: PatternMatch("("), "("),
        (lambda: PatternMatch("x", buckets=[1, 2]), "buckets"),
        (lambda: PatternMatch("x", missing=" "), "missing"),
        (lambda: Template(""), "template"),
        (lambda: Template("{a"), "{a"),
        (lambda: Template("a}"), "a}"),
        (lambda: Template("{}"), "''"),
        (lambda: Template("{a.b}"), "a.b"),
        (lambda: Template("{a:3}"), "'a'"),
        (lambda: Template("{a!r}"), "'a'"),
        (lambda: Template("{a}").fill({}), "'a'"),
        (lambda: Template("{a}").fill({"a": 3}), "a = 3"),
        (lambda: Template("{a}").fill({"a": ("x", 3)}), "a = "),
        (lambda: TemplateEncoder("{noun}"), "'noun'"),
        (lambda: TemplateEncoder("{x}", {"x": "lamp"}), "'x'"),
        (lambda: TemplateEncoder("{nouns}", [("x", Nouns())]), "fields"),
        (lambda: TemplateEncoder("{nouns}", tokens="tokens/v1"), "tokens"),
    ],
)
def test_a_bad_template_or_field_is_refused(make, seen):
    refused(make, seen=seen)


def test_misspelt_field_is_suggested():
    with pytest.raises(InputError, match="Did you mean 'nouns'"):
        TemplateEncoder("{noun}")


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("[{a}] {a}", {"a": "x y"}, "[x_y] x_y"),
        ("[{a}]", {"a": ("x", "y z")}, "[ x y_z ]"),
        ("[A: {a}] b", {"a": ()}, "[A: ] b"),
        ("{a}{b}", {"a": "1", "b": ("x",)}, "1 x"),
        ("{a}{b}", {"a": ("x",), "b": "1"}, "x 1"),
        ("{{{a}}}", {"a": "{a}"}, "{{a}}"),
        ("none", {"a": "unused"}, "none"),
    ],
)
def test_template_is_filled_with_values(template, values, text):
    assert Template(template).fill(values) == text


def test_a_template_encoder_encodes_only_the_filled_template():
    encoder = TemplateEncoder(
        "[State: {nouns}] [Action: {recent_verbs}] total:{total}",
        {"total": PatternMatch(r"total (\d+)", Buckets((10, 20)))},
    )
    seen = with_recent_actions("The cart holds a lamp, total 12", ["go north", "take lamp"])
    like = with_recent_actions("A lamp is in the cart: total 19", ["go south", "take cup"])
    other = with_recent_actions("A lamp is in the cart: total 25", ["go south", "take cup"])
    assert encoder.features(seen) >= {"cart", "lamp", "go", "take", "total:10-20"}
    assert "total:>=20" in encoder.features(other)
    assert {"lamp", "take"} <= encoder.features(seen) & encoder.features(like)


def test_the_public_list_is_sorted_and_complete():
    assert states.__all__ == sorted(states.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    assert all(hasattr(states, name) for name in states.__all__)
