"""Call syntax: equal actions, unchanged literals, and unchanged text that is no call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.actions import ActionCall, canonical_call, equivalent, parse_call
from seasoned.errors import InputError
from seasoned.types import normalize_action

SPACES = st.text(alphabet=" \t\n\u00a0", max_size=3)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)


def literal(text: str, quote: str) -> str:
    return quote + text.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote


LITERALS = st.builds(literal, st.text(max_size=12, alphabet=st.characters(codec="utf-8")), st.sampled_from("'\""))
WORDS = st.one_of(
    LITERALS, st.integers().map(str), st.sampled_from(["True", "add to cart", "[1, 'a,b']", "{'k': (1)}"])
)


@st.composite
def spelled_twice(draw):
    """A call, and two spellings of it: other blanks, another case of the name, other orders of the keywords."""
    name = draw(NAMES)
    args = draw(st.lists(WORDS, max_size=3))
    keywords = draw(st.dictionaries(NAMES, WORDS, max_size=3))

    def spelling():
        pairs = draw(st.permutations(list(keywords.items())))
        parts = [*args, *(f"{key}{draw(SPACES)}={draw(SPACES)}{value}" for key, value in pairs)]
        inner = ",".join(f"{draw(SPACES)}{part}{draw(SPACES)}" for part in parts)
        cased = "".join(draw(st.sampled_from([char.lower(), char.upper()])) for char in name)
        return f"{draw(SPACES)}{cased}{draw(SPACES)}({inner}){draw(SPACES)}"

    expected = ActionCall(name.lower(), tuple(args), tuple(sorted(keywords.items())))
    return expected, spelling(), spelling()


@given(spelled_twice())
def test_spellings_of_a_call_have_one_canonical_form_without_loss(case):
    expected, first, second = case
    assert parse_call(first) == expected == parse_call(second)
    assert canonical_call(first) == canonical_call(second) == str(expected)
    assert parse_call(str(expected)) == expected


@given(st.one_of(st.text(min_size=1), st.text(alphabet="f(,='\" a[]{}\\\n", min_size=1)))
def test_canonical_form_is_idempotent_and_preserves_any_text(text):
    if not text.strip():
        with pytest.raises(InputError):
            canonical_call(text)
        return
    once = canonical_call(text)
    assert canonical_call(once) == once
    if parse_call(text) is None:
        assert once == text
    else:  # nothing but blanks and order has changed
        assert sorted("".join(once.split()).casefold()) == sorted("".join(text.split()).casefold())


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Click ( 'a51' )", "click('a51')"),
        ("search(page = 2,query='Red, \"big\" Shoes')", "search(page=2, query='Red, \"big\" Shoes')"),
        ("fill('b', 'it\\'s  a\\\\b')", "fill('b', 'it\\'s  a\\\\b')"),
        ("f( [ 'a','b' ] ,{1:( 2,3 )} )", "f(['a', 'b'], {1:(2, 3)})"),
        ("say(hello   big    world)", "say(hello big world)"),
        ("page.Go_Back()", "page.go_back()"),
        ("f(x==1)", "f(x==1)"),
        ("f('''it's  \"x\"''',b=1,a=2)", "f('''it's  \"x\"''', a=2, b=1)"),
    ],
)
def test_example_calls_have_their_canonical_forms(text, canonical):
    assert canonical_call(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "Go  North",
        "f(a",
        "f(a))",
        "f(a]",
        "f('a)",
        "f(a,,b)",
        "f(,)",
        "f(a,)",
        "f(k=1, k=2)",
        "f(k=1, a)",
        "f(k=)",
        "f(a); g(b)",
        "(a)",
        "3(a)",
        "f(k= =1)",
        "don't (  panic )",
    ],
)
def test_text_without_call_syntax_is_unchanged(text):
    assert parse_call(text) is None
    assert canonical_call(text) == text


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Click('a')", "click( 'a' )", True),
        ("f(a=1, b=2)", "F(b=2, a=1)", True),
        ("f(1, 2)", "f(2, 1)", False),
        ("f('a, b')", "f('a', 'b')", False),
        ("f('x')", 'f("x")', False),
        ("type('abc')", "type('ABC')", True),  # the memory's key folds case: documented, decision 6
        ("go north", "Go  North", True),
    ],
)
def test_actions_are_equivalent_if_their_canonical_keys_are_equal(first, second, same):
    assert equivalent(first, second) is same
    assert (normalize_action(canonical_call(first)) == normalize_action(canonical_call(second))) is same


N = 200_000


def hostile(n):
    return {
        "open": "f(" + "(" * n,
        "nested": "f(" + "(" * n + ")" * n + ")",
        "quotes": "f(" + "'" * n,
        "triple": "f(" + "'''" + "'" * n,
        "backslashes": "f('" + "\\" * n,
        "word": "a" * n,
        "arguments": "f(" + "a," * n + "b)",
        "blanks": "f(" + " " * n + ")",
        "mixed": "f(" + '"""a\'' * (n // 5),
        "equals": "f(" + "a=" * n,
    }


@pytest.mark.parametrize("n", [N, pytest.param(5 * N, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", sorted(hostile(1)))
def test_long_hostile_text_is_parsed_in_linear_time(kind, n):
    once = canonical_call(hostile(n)[kind])
    assert canonical_call(once) == once


@pytest.mark.parametrize("text", ["", "  \n", None, 3, b"f(a)", "f('\ud800')"])
def test_an_action_that_is_not_a_text_is_refused(text):
    with pytest.raises(InputError) as caught:
        canonical_call(text)
    assert caught.value.seen
    assert caught.value.rule
    assert caught.value.next_step


@pytest.mark.parametrize("canonical", [5, None, "canonical_call", lambda text: None, lambda text: 3])
def test_canonical_must_be_a_function_from_text_to_text(canonical):
    with pytest.raises(InputError) as caught:
        equivalent("a", "a", canonical)
    assert all((caught.value.seen, caught.value.rule, caught.value.next_step))
