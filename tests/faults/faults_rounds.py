"""The numbers of rounds of the attacks that take minutes."""

from __future__ import annotations

import os

__all__ = ["attack_rounds"]


def attack_rounds(usual: int) -> int:
    """Return how often a slow test attacks: `SEASONED_ATTACK_ROUNDS`, or its usual number."""
    return int(os.environ.get("SEASONED_ATTACK_ROUNDS", usual))
