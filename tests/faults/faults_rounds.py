"""The numbers of rounds of the attacks that take minutes."""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["attack_rounds"]


class Rounds(NamedTuple):
    """How often to attack: usually, and at least as often as the review of November 2026 did."""

    usual: int
    review: int


ROUNDS = {
    "kills": Rounds(200, 1_145),  # of writers
    "erasures": Rounds(25, 60),  # kills of erasures, and as many of backups
    "migrations": Rounds(120, 120),  # kills
    "gateways": Rounds(2, 5),  # of 200 streams at once each
    "disks": Rounds(200, 200),  # refused writes
    "damages": Rounds(200, 250),  # of each kind of damage; a round damages up to six files, 3,386 in all
    "servers": Rounds(20, 22),  # each second one is a kill, the others are stops
    "requests": Rounds(2_000, 21_500),
    "commands": Rounds(1_000, 48_151),
}


def attack_rounds(attack: str) -> int:
    """Return how often a slow test attacks.

    `SEASONED_ATTACK_ROUNDS` is a number for all attacks, or a list such as `review,kills=50`: `review` sets all numbers
    to those of the review, `NAME=NUMBER` sets one.
    """
    rounds = {name: each.usual for name, each in ROUNDS.items()}
    for part in os.environ.get("SEASONED_ATTACK_ROUNDS", "").replace(" ", "").split(","):
        name, _, number = part.rpartition("=")
        if part == "review":
            rounds = {each: ROUNDS[each].review for each in ROUNDS}
        elif name in ROUNDS and number.isdecimal():
            rounds[name] = int(number)
        elif number.isdecimal() and not name:
            rounds = dict.fromkeys(ROUNDS, int(number))
        elif part:
            raise ValueError(
                f"SEASONED_ATTACK_ROUNDS has {part!r}: each part is a number, `review`, or NAME=NUMBER with a name of "
                f"{', '.join(ROUNDS)}. Write for instance `review,kills=50`."
            )
    return rounds[attack]
