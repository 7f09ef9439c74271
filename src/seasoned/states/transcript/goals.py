"""The goal among a state's features: one feature of all its words, compared apart from the others."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from seasoned.states.subwords import subword_terms

__all__ = ["GOAL_MARK", "apart_from_goal", "goal_feature", "goal_terms", "is_goal"]

GOAL_MARK = "goal\n"
"""A feature that begins with it is a goal. No feature of a text's runs contains a line break."""


def goal_feature(words: Iterable[str]) -> str:
    r"""Return the feature of a goal with these words, each once; "" without words.

    As one feature it changes the plain Jaccard similarity of two sets little, and yet two goals can be compared by
    their words.

    Example:
        >>> goal_feature(["cancel", "my", "trip", "cancel"])
        'goal\ncancel my trip'
    """
    unique = sorted(set(words))
    return f"{GOAL_MARK}{' '.join(unique)}" if unique else ""


def is_goal(feature: str) -> bool:
    """Return whether a feature is a goal."""
    return feature.startswith(GOAL_MARK)


def apart_from_goal(features: Iterable[str]) -> frozenset[str]:
    """Return the features of a state that are no goal."""
    return frozenset(feature for feature in features if not is_goal(feature))


def goal_terms(feature: str) -> list[str]:
    r"""Return the terms of a goal: the subword terms of its words, marked, so that no other feature shares them.

    Example:
        >>> [term.strip() for term in goal_terms("goal\ngo up")]
        ['goal\ngo', 'goal\n  <go>', 'goal\nup', 'goal\n  <up>']
    """
    words = feature.removeprefix(GOAL_MARK).split()
    return list(dict.fromkeys(GOAL_MARK + term for term in chain.from_iterable(map(subword_terms, words))))
