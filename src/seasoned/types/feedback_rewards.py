"""Maths of feedback: scores, choices, test counts and edits as rewards in [-1, 1]."""

from __future__ import annotations

import math

from seasoned.errors import InputError

__all__ = ["MAX_EDIT_CHARACTERS", "choice_rewards", "edit_distance", "edit_reward", "score_reward", "success_reward"]

MAX_EDIT_CHARACTERS = 50_000
"""The longest texts that are compared, without their common beginning and end: about a second."""


def score_reward(value: float, low: float, high: float) -> float:
    """Return the position of a score on its scale, from -1 to 1: `2 (value - low) / (high - low) - 1`.

    Example:
        >>> score_reward(4, 1, 5)
        0.5
    """
    span = high - low
    if math.isinf(span):  # always in halves would make 0 of a narrow scale
        value, low, span = value / 2, low / 2, high / 2 - low / 2
    return max(-1.0, min(1.0, (value - low) / span * 2 - 1))


def choice_rewards(n: int, chosen: int) -> list[float]:
    """Return the rewards of n answers of which one was chosen as the best: Borda's count over the pairs it decides.

    The chosen one wins its `n - 1` pairs, each other loses one; over `n - 1`: +1, and `-1 / (n - 1)`. They sum to 0.
    (Borda, 1781; as the mean of pairwise advantages.)

    Raises:
        InputError: there are fewer than two, or none is chosen.

    Example:
        >>> choice_rewards(3, 1)
        [-0.5, 1.0, -0.5]
    """
    if n < 2 or not 0 <= chosen < n:
        raise InputError(f"n = {n}, chosen = {chosen}", "one of two or more is chosen", "Count from 0.")
    return [1.0 if index == chosen else -1.0 / (n - 1) for index in range(n)]


def success_reward(passed: int, total: int) -> float:
    """Return `2 passed / total - 1`: -1 if nothing passed, 1 if all did.

    Example:
        >>> success_reward(3, 4)
        0.5
    """
    return 2 * passed / total - 1


def edit_distance(a: str, b: str) -> int:
    """Return the number of characters to insert, delete or replace to turn one text into the other.

    (Levenshtein, 1966; computed a row at a time in the bits of an integer: Myers, 1999; Hyyro, 2003.)

    Raises:
        InputError: without the common beginning and end, one text has more than 50,000 characters.

    Example:
        >>> edit_distance("kitten", "sitting")
        3
    """
    a, b = _without_shared_ends(a, b)
    if len(a) > len(b):
        a, b = b, a
    if not a:
        return len(b)
    if len(b) > MAX_EDIT_CHARACTERS:
        raise InputError(
            f"two texts of {len(a)} and {len(b)} other characters",
            f"texts are compared where at most {MAX_EDIT_CHARACTERS} characters differ",
            "Pass it as an OwnAnswer.",
        )
    places: dict[str, int] = {}
    for index, character in enumerate(a):
        places[character] = places.get(character, 0) | 1 << index
    every, last = (1 << len(a)) - 1, 1 << len(a) - 1
    up, down, distance = every, 0, len(a)  # where the column rises, where it falls, and its last value
    for character in b:
        same = places.get(character, 0)
        diagonal = (((same & up) + up) ^ up) | same | down
        right_up, right_down = down | ~(diagonal | up) & every, up & diagonal
        distance += bool(right_up & last) - bool(right_down & last)
        right_up = right_up << 1 | 1
        right_down <<= 1
        up, down = (right_down | ~(diagonal | right_up)) & every, right_up & diagonal & every
    return distance


def _without_shared_ends(a: str, b: str) -> tuple[str, str]:
    least = min(len(a), len(b))
    begin = _n_alike(a[:least], b[:least])
    a, b = a[begin:], b[begin:]
    least = min(len(a), len(b))
    end = _n_alike(a[len(a) - least :][::-1], b[len(b) - least :][::-1])
    return a[: len(a) - end], b[: len(b) - end]


def _n_alike(a: str, b: str) -> int:
    """How many characters two texts of one length share at the beginning: by bisection, since slices are fast."""
    low, high = 0, len(a)
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def edit_reward(shown: str, edited: str) -> float:
    """Return `1 - 2 d`, d the edit distance over the length of the longer text: 1 if nothing was changed, -1 if all.

    The edit distance is the user's cost in PRELUDE, arXiv 2404.15269. Here it is normalised, so that a reward does not
    depend on the length of the answer.

    Raises:
        InputError: as for `edit_distance`.

    Example:
        >>> edit_reward("abcd", "abcx")
        0.5
    """
    longer = max(len(shown), len(edited))
    return 1.0 - 2.0 * edit_distance(shown, edited) / longer if longer else 1.0
