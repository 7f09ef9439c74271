"""The tree of errors equals the drawing in the docstring; every message has the value, the rule and the next step."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from seasoned import errors
from seasoned.errors import SeasonedError, excerpt

CLASSES = sorted(
    (value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, BaseException)),
    key=lambda cls: cls.__name__,
)
LINE = re.compile(
    r"^ {4}(?P<branch>[│├└─ ]*)(?P<name>\w+Error)(?: \((?P<builtins>[\w, ]+)\))?(?: {2,}(?P<meaning>.+))?$"
)
BUILTIN_PARENTS = {
    "EnvError": (),
    "InputError": (ValueError,),
    "MissingExtraError": (ImportError,),
    "NotFoundError": (LookupError,),
    "UnknownNameError": (LookupError,),
}


def drawn_tree():
    """Each drawn error: its parent's name, the builtin parents drawn in parentheses, and its meaning."""
    tree, path = {}, []
    for line in (errors.__doc__ or "").splitlines():
        if match := LINE.match(line):
            depth = len(match["branch"]) // 4
            del path[depth:]
            builtins = set((match["builtins"] or "").replace(",", " ").split())
            tree[match["name"]] = (path[-1] if path else "Exception", builtins, match["meaning"])
            path.append(match["name"])
    return tree


def test_drawn_tree_equals_the_class_tree():
    assert {name: parent for name, (parent, _, _) in drawn_tree().items()} == {
        c.__name__: c.__bases__[0].__name__ for c in CLASSES
    }


def test_builtins_drawn_in_parentheses_are_parents():
    tree = drawn_tree()
    for cls in CLASSES:
        _, builtins, _ = tree[cls.__name__]
        assert builtins <= {parent.__name__ for parent in cls.__bases__[1:]}, cls


def test_every_error_has_a_meaning_and_a_docstring():
    tree = drawn_tree()
    for cls in set(CLASSES) - {SeasonedError}:
        _, _, meaning = tree[cls.__name__]
        assert meaning, cls
        assert cls.__doc__ and cls.__doc__ != SeasonedError.__doc__, cls


def test_the_public_list_is_sorted_and_complete():
    assert errors.__all__ == sorted(errors.__all__)
    assert {c.__name__ for c in CLASSES} | {"counted", "excerpt"} == set(errors.__all__)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_a_message_has_value_rule_and_next_step(cls):
    error = cls("k = 0", "k is at least 1", "Ask for one neighbour or more.")
    assert str(error) == "k = 0: k is at least 1. Ask for one neighbour or more."
    assert (error.seen, error.rule, error.next_step) == ("k = 0", "k is at least 1", "Ask for one neighbour or more.")
    assert isinstance(error, SeasonedError)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_error_needs_value_rule_and_next_step(cls):
    for arguments in ((), ("k = 0",), ("k = 0", "k is at least 1")):
        with pytest.raises(TypeError):
            cls(*arguments)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_error_survives_pickling(cls):
    error = cls("k = 0", "k is at least 1", "Ask for more.")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is cls
        assert str(again) == str(error)
        assert (again.seen, again.rule, again.next_step) == (error.seen, error.rule, error.next_step)


@pytest.mark.parametrize(("name", "parents"), BUILTIN_PARENTS.items())
def test_errors_can_be_caught_as_their_builtins(name, parents):
    assert getattr(errors, name).__bases__[1:] == parents


@pytest.mark.parametrize(
    ("value", "limit_chars", "expected"),
    [
        ("short", 80, "'short'"),
        (0, 80, "0"),
        (None, 80, "None"),
        ("x" * 200, 10, "'xxxxxx..."),
        ([1] * 200, 10, "[1, 1, ..."),
        ("12345678", 10, "'12345678'"),
        ("line\nbreak", 80, "'line\\nbreak'"),
    ],
)
def test_an_excerpt_is_short_and_unambiguous(value, limit_chars, expected):
    assert excerpt(value, limit_chars) == expected
    assert len(excerpt(value, limit_chars)) <= limit_chars
