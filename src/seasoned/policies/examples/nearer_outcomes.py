"""Outcomes of one action at nearer states: a success far away is no model of what failed nearby."""

from __future__ import annotations

from collections.abc import Sequence

from seasoned.actions import NamedCall, named_calls
from seasoned.policies.call_evidence import all_occur, any_occurs
from seasoned.policies.examples.example_value import ExampleCandidate, sharpen

__all__ = ["failed_nearer", "same_action"]

_MOSTLY = 2.0  # failures for one success
_CLEARLY = 2.0  # the ratio of sharpened similarities
_FEWEST_TRIES = 3  # at clearly nearer states alone


def failed_nearer(one: ExampleCandidate, others: Sequence[ExampleCandidate]) -> bool:
    """Return whether the action of a success mostly failed at states nearer to the observation.

    With the weight w = the number of tries times the sharpened similarity of their state to the observation, it did if
    the w of failures is at least twice the w of successes, either

    - at the states as near as the success or nearer, its own among them; or
    - at clearly nearer states alone (twice its sharpened similarity, which is 1.19 times its similarity), if the action
      was tried there three times or more: many successes far away do not outweigh them.

    Tries at a nearer state count only if their whole moment, goal included, is at least as similar to the query: what
    failed on this page for another goal says little about this one.

    Args:
        one: the success.
        others: all candidates; `one` may be among them.
    """
    nearness, similarity = one.nearness, one.similarity
    nearer = [other for other in others if other.similarity >= similarity and other.nearness >= nearness]
    failures = [other for other in nearer if other.kind == "avoid" and same_action(one, other)]
    if not failures:
        return False
    same = [*failures, *(other for other in nearer if other.kind == "imitate" and same_action(one, other))]
    clearly = [other for other in same if sharpen(other.nearness) >= _CLEARLY * sharpen(nearness)]
    return _mostly_failed(same) or (sum(other.tries for other in clearly) >= _FEWEST_TRIES and _mostly_failed(clearly))


def _mostly_failed(pairs: Sequence[ExampleCandidate]) -> bool:
    weights = {"imitate": 0.0, "avoid": 0.0}
    for one in pairs:
        weights[one.kind] += one.weight
    return weights["avoid"] > 0.0 and weights["avoid"] >= _MOSTLY * weights["imitate"]


def same_action(one: ExampleCandidate, other: ExampleCandidate) -> bool:
    """Return whether two candidates did the same, each at its own state.

    They did if their actions are one call, however it is spelled; or calls of one tool whose differing arguments are
    taken from the state: `restart(service=cart)` where the state names `cart`, and `restart(service=search)` where it
    names `search`. A value that the other state names too was a choice, such as which button of a page to click.
    """
    if one.key == other.key:
        return True
    first, second = named_calls((one.action, other.action))
    if first.key == second.key:
        return True
    if not first.shape or first.shape != second.shape:
        return False
    here, there = one.moment.experience.state, other.moment.experience.state
    return _only_here(first, second, here, there) and _only_here(second, first, there, here)


def _only_here(call: NamedCall, other: NamedCall, here: str, there: str) -> bool:
    """Return whether all values that a call alone has are in its own state, and none in the other's."""
    own = [value for value in call.values if value not in other.values]
    return bool(own) and all_occur(own, [here]) and not any_occurs(own, there)
