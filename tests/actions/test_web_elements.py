"""Web actions by description: described and resolved on one page, and on a page with other ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.actions import Element, Page, canonical_call, describe, equivalent, parse_call, resolve
from seasoned.errors import InputError, NotFoundError
from seasoned.policies.candidates import check_candidates
from seasoned.types import normalize_action

SHOP = {
    "a50": Element("button", "Add to Cart"),
    "a51": Element("button", "Add to Cart"),
    "l1": Element("link", "Add to Cart"),
    "b12": Element("textbox", 'Search "all", \\ now\nor later'),
    "s1": Element("combobox", ""),
}
NASTY = st.one_of(
    st.text(max_size=10, alphabet=st.characters(codec="utf-8")), st.text(alphabet="aA \"'\\,#()\n1", max_size=10)
)
ROLES = st.sampled_from(["button", "link", "StaticText", "list-item"])
IDS = st.one_of(st.from_regex(r"[a-z]?\d{1,3}", fullmatch=True), NASTY.filter(bool))
PAGES = st.dictionaries(
    IDS, st.builds(Element, ROLES, st.one_of(NASTY, st.sampled_from(["Add", "ADD", " add"]))), min_size=1
)


def literal(text: str) -> str:
    for char, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(char, escaped)
    return f"'{text}'"


@given(PAGES, st.data())
def test_described_action_resolves_to_the_original(elements, data):
    page = Page(elements)
    id_, other = data.draw(st.sampled_from(list(elements))), data.draw(st.sampled_from(list(elements)))
    text = literal(data.draw(NASTY))
    for written in (
        f"click({literal(id_)})",
        f"fill({literal(id_)}, {text})",
        f"fill({literal(id_)}, value={text}, enter=True)",
        f"drag_and_drop({literal(id_)}, {literal(other)})",
        f"select_option({literal(id_)}, [{text}, 'b'])",
        f"click(bid={literal(id_)})",
    ):
        action = canonical_call(written)
        described = page.describe(action)
        assert page.resolve(described) == action.replace("click(bid=", "click(")  # an id has one place
        assert page.describe(described) == described == canonical_call(described)
        assert parse_call(described).args[1:] == parse_call(action).args[1:] or action.startswith("drag")
    click = f"click({literal(id_)})"
    assert page.resolve(normalize_action(page.describe(click))) == click


@given(PAGES)
def test_elements_of_a_page_have_distinct_keys(elements):
    page = Page(elements)
    described = [page.describe(f"click({literal(id_)})") for id_ in elements]
    assert len(check_candidates(dict.fromkeys(described, -1.0), None).logits) == len(elements)


@given(PAGES, st.randoms(use_true_random=False))
def test_described_action_resolves_on_a_page_with_other_ids(elements, random):
    fresh = [f"z{number}" for number in range(len(elements))]
    random.shuffle(fresh)
    tomorrow = dict(zip(fresh, elements.values(), strict=True))
    for today, then in zip(elements, tomorrow, strict=True):
        assert resolve(describe(f"click({literal(today)})", elements), tomorrow) == f"click('{then}')"


@pytest.mark.parametrize(
    ("action", "described"),
    [
        ("click('a50')", 'click(button "Add to Cart")'),
        ('Click( "a51" )', 'click(button "Add to Cart" #2)'),
        ("click(a51)", 'click(button "Add to Cart" #2)'),
        ("click('l1')", 'click(link "Add to Cart")'),
        ("fill('b12', 'a51')", 'fill(textbox "Search \\"all\\", \\\\ now\\nor later", \'a51\')'),
        (
            "fill('b12', 'text, with \"quotes\"')",
            'fill(textbox "Search \\"all\\", \\\\ now\\nor later", \'text, with "quotes"\')',
        ),
        ("drag_and_drop('a51', to_bid='l1')", 'drag_and_drop(button "Add to Cart" #2, link "Add to Cart")'),
        ("drag_and_drop(to_bid='l1', from_bid='a51')", 'drag_and_drop(button "Add to Cart" #2, link "Add to Cart")'),
        ("drag_and_drop(to_bid='l1')", 'drag_and_drop(to_bid=link "Add to Cart")'),  # its first place is empty
        ("click('a51', bid='a50')", 'click(button "Add to Cart" #2, bid=button "Add to Cart")'),  # its place is taken
        ("click(bid='a51')", 'click(button "Add to Cart" #2)'),
        ("click(button='left', bid='a51')", "click(button \"Add to Cart\" #2, button='left')"),
        ("select_option('s1', ['x, y', \"z\"])", 'select_option(combobox "", [\'x, y\', "z"])'),
        ("send_msg_to_user('a51')", "send_msg_to_user('a51')"),
        ("noop()", "noop()"),
        ("go north", "go north"),
    ],
)
def test_example_actions_are_described(action, described):
    assert describe(action, SHOP) == described
    assert Page(SHOP).describe(described) == described
    if action in ("click(a51)", "click(bid='a51')"):
        assert resolve(described, SHOP) == "click('a51')"


def test_ids_of_one_element_on_two_pages_give_one_description():
    today, tomorrow = Page({"a1": ("button", "Pay")}), Page({"q9": ("button", "PAY ")})
    assert normalize_action(today.describe("click('a1')")) == normalize_action(
        tomorrow.describe("click('q9')")
    ).replace('pay "', 'pay"')
    assert tomorrow.resolve(today.describe("click('a1')")) == "click('q9')"
    assert equivalent("click('a1')", "Click( 'a1' )", today.describe)


def test_ids_are_quoted_as_configured():
    assert Page({"12": ("link", "x")}, quote="").resolve('click(link "x")') == "click(12)"
    assert Page({"12": ("link", "x")}, quote='"').resolve('click(link "x")') == 'click("12")'


def test_arguments_of_custom_actions_are_described():
    page = Page(SHOP, arguments={"Tap": ("ref",)})
    assert page.describe("tap(ref='a51', hard=True)") == 'tap(button "Add to Cart" #2, hard=True)'
    assert page.describe("click('a51')") == "click('a51')"


@pytest.mark.parametrize(
    ("described", "error"),
    [
        ('click(button "Add to Cart" #3)', NotFoundError),
        ('click(button "Add to Card")', NotFoundError),
        ('click(checkbox "Add to Cart")', NotFoundError),
        ("click('a51')", InputError),  # of which page?
        ("click(a51)", InputError),
        ('click(button "Add to Cart" #0)', InputError),
        ('click(button "\\x")', InputError),
        ("drag_and_drop(button \"Add to Cart\", 'a51')", InputError),
    ],
)
def test_unresolvable_element_is_refused(described, error):
    with pytest.raises(error) as caught:
        resolve(described, SHOP)
    assert caught.value.rule
    assert caught.value.next_step


def test_a_close_name_is_suggested():
    with pytest.raises(NotFoundError, match=r'Did you mean button "Add to Cart"\?'):
        resolve('click(button "Add to Card")', SHOP)
    assert resolve('click(button "Add to Cart")', SHOP) == "click('a50')"  # what was suggested is a description


@pytest.mark.parametrize(
    ("described", "hint"),
    [
        ('click(button "Add to Cart" #3)', "#1 or #2"),
        ('click(link "Add to Cart" #2)', "#1"),
        ('click(row "r" #9)', "#1 to #4"),
    ],
)
def test_number_out_of_range_is_refused_with_the_valid_numbers(described, hint):
    page = SHOP | {f"r{n}": Element("row", "r") for n in range(4)}
    with pytest.raises(NotFoundError) as caught:
        resolve(described, page)
    assert hint in caught.value.next_step
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("action", ["click('a99')", "click(['a50'])", "drag_and_drop('a50', 'zz')", "click(bid='A50')"])
def test_unknown_id_is_refused(action):
    with pytest.raises(NotFoundError, match="no such id"):
        describe(action, SHOP)


@pytest.mark.parametrize(
    ("elements", "options"),
    [
        ({"a": ("push button", "x")}, {}),
        ({"a": ("", "x")}, {}),
        ({"a": ("button", None)}, {}),
        ({"a": "button"}, {}),
        ({"a": ("button", "\ud800")}, {}),
        ({7: ("button", "x")}, {}),
        ({"": ("button", "x")}, {}),
        ({"a b": ("button", "x")}, {"quote": ""}),
        ({}, {"quote": "`"}),
        ([("a", "button", "x")], {}),
        ({}, {"arguments": 5}),
        ({}, {"arguments": {"tap": "ref"}}),
        ({}, {"arguments": {"tap": (3,)}}),
        ({}, {"arguments": {3: ("ref",)}}),
    ],
)
def test_an_invalid_page_is_refused(elements, options):
    with pytest.raises(InputError) as caught:
        Page(elements, **options)
    assert caught.value.next_step


def test_long_texts_and_many_elements_are_resolved():
    long = "A  \n" * 250_000
    page = Page({f"i{n}": ("link", "next") for n in range(20_000)} | {"x": ("link", long)})
    assert page.resolve(page.describe("click('x')")) == "click('x')"
    assert page.resolve('click(link "Next" #20000)') == "click('i19999')"
    assert page.describe("fill('x', " + "(" * 1_000_000) == "fill('x', " + "(" * 1_000_000
    with pytest.raises(NotFoundError):
        page.resolve(f'click(link "{"a" * 1_000_000}")')
