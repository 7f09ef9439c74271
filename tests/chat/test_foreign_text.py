"""Foreign text of a chat: pages and escape sequences, in time in proportion to the text, whatever it holds."""

from __future__ import annotations

import sys

import pytest

from seasoned.chat import EscapeFilter, plain_text
from seasoned.chat.web_page import page_text


def calls(function, *arguments):
    """Return the number of calls of Python and C functions, regular expressions and searches among them."""
    n = 0

    def count(frame, event, argument):
        nonlocal n
        n += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return n


@pytest.mark.parametrize(
    "unit",
    ["<a ", "<!--", "<a b='", '<a b="x ', "<![", "<![foo[", "&#9", "<script>", "<style a='", "<", "</", "<svg>", "&"],
)
def test_page_of_unclosed_markup_is_read_once(unit):
    few, many = (calls(page_text, unit * n) for n in (1_000, 2_000))
    assert many <= 2.2 * few + 50
    page_text(unit * 300_000)  # hours where each is read to the end


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>docs</p><![<![", "docs"),
        ("<p>a < b &amp; c</p><a title='x > y'>link</a> 1<2", "a < b & c\nlink 1<2"),
        ("a<!-- x > y -->b<!DOCTYPE html>c<?php d ?>e", "abce"),
        ("<SCRIPT>if (a<b) '</p>'</SCRIPT >ok<style>p > a {}</style>", "ok"),
        ("<svg><title>q</title>w</svg>end<template><p>x</template>s", "ends"),
        ("&#" + "9" * 100_000 + ";&#65;&nosuch;", "\ufffdA&nosuch;"),
        ('<li>one<li class="a">two<br/>three</li>', "one\ntwo\nthree"),
        ("text <a href=", "text"),
    ],
)
def test_visible_text_of_a_page(markup, text):
    assert page_text(markup) == text


@pytest.mark.parametrize("unit", ["\x9d", "\x9da", "\x1b]", "\x1b", "\x9b", "\x1bP\x9d", "\x1b]0;x"])
def test_unclosed_escape_sequences_leave_no_control_character(unit):
    text = unit * 200_000  # minutes where each is read to the end
    escapes = EscapeFilter()
    shown = "".join(escapes.add(text[at : at + 9_999]) for at in range(0, len(text), 9_999)) + escapes.end()
    for found in (plain_text(text), shown):
        assert not set(found) & set("\x1b\x9b\x9d\x90\x07")
