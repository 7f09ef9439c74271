"""The subword encoder, from its definition."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.core import jaccard
from seasoned.errors import InputError
from seasoned.states import NUMBERS, SubwordEncoder, TokenEncoder
from seasoned.states.subwords import MAX_SPLIT_FEATURE, MAX_SPLIT_WORD, subword_terms

letters = st.text("abcé日本", min_size=1, max_size=9)


@given(st.lists(letters, min_size=1, max_size=5), st.integers(2, 8))
def test_features_are_the_words_and_every_window_of_the_marked_words(words, n):
    marked = [f"<{word}>" for word in words]
    windows = {f"#{word[i : i + n]}" for word in marked for i in range(len(word)) if i + n <= len(word)}
    assert SubwordEncoder(n).features(" ".join(words)) == set(words) | windows


@given(st.lists(letters, min_size=1, max_size=5), st.sampled_from([", ", "! ", " - ", "\n", '" "']))
def test_punctuation_and_case_change_nothing(words, separator):
    encoder = SubwordEncoder()
    plain = encoder.features(" ".join(words))
    assert encoder.features("(" + separator.join(words).upper() + ")?") == plain


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_words_and_ngrams_never_meet(text):
    for feature in SubwordEncoder().features(text):
        assert feature.startswith("#") != bool(re.fullmatch(r"\w+", feature))


def test_inflected_words_are_alike_where_their_runs_are_not():
    left, right = "Refunds, please!", "refund please?"
    assert jaccard(TokenEncoder().features(left), TokenEncoder().features(right)) == 0.0
    assert jaccard(SubwordEncoder().features(left), SubwordEncoder().features(right)) > 0.6


def test_long_runs_have_no_ngrams():
    assert SubwordEncoder().features("x" * (MAX_SPLIT_WORD + 1)) == {"x" * (MAX_SPLIT_WORD + 1)}
    assert len(SubwordEncoder().features("ab" * (MAX_SPLIT_WORD // 2))) > 1


def test_text_without_a_word_has_no_features():
    assert SubwordEncoder().features("?! ...") == frozenset()


def test_masks_apply_before_the_words_are_taken():
    assert SubwordEncoder(masks=[NUMBERS]).features("order 12") == SubwordEncoder(masks=[NUMBERS]).features("order 7")


@pytest.mark.parametrize("changed", [{"n": 1}, {"n": 9}, {"n": True}, {"masks": NUMBERS}, {"masks": [1]}])
def test_a_bad_setting_is_refused(changed):
    with pytest.raises(InputError) as caught:
        SubwordEncoder(**changed)
    assert next(iter(changed)) in caught.value.seen
    assert caught.value.rule
    assert caught.value.next_step


@given(st.text("aé日_3-:?#", min_size=1, max_size=12))
def test_terms_of_a_feature_are_itself_its_words_and_the_ngrams_of_words_without_digits(feature):
    words = re.findall(r"\w+", feature)
    grams = {f"<{word}>"[i : i + 4] for word in words if "3" not in word for i in range(len(word) - 1)}
    terms = subword_terms(feature)
    assert set(terms) == {feature, *words} | {f"  {gram}" for gram in grams}
    assert len(set(terms)) == len(terms)


def test_a_feature_is_not_alike_to_another_by_the_mark_of_ngrams():
    assert set(subword_terms("#help")) != set(subword_terms("help"))


@pytest.mark.parametrize("feature", ["go north", "no\t2", "x" * (MAX_SPLIT_WORD + 1), "->", "a-b" * MAX_SPLIT_FEATURE])
def test_features_that_are_no_run_of_words_have_no_other_term(feature):
    assert subword_terms(feature) == [feature]
