"""What examples are looked for by, for a plan, for a thought, and for an action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from seasoned.checks import check_number, check_text
from seasoned.errors import InputError, excerpt
from seasoned.types.recall import KEYS

__all__ = ["ExampleQuery", "Purpose", "check_weights"]

Purpose = Literal["plan", "reason", "act"]
"""What the examples are to help with."""

_KEYS_FOR: Mapping[Purpose, tuple[str, ...]] = {
    "plan": ("goal", "observation"),
    "reason": ("goal", "plan", "observation"),
    "act": KEYS,
}


@dataclass(frozen=True, slots=True)
class ExampleQuery:
    """A moment for which examples are wanted, as far as it is known.

    Args:
        goal: what is attempted; compared with the tasks of stored episodes.
        plan: compared with their plans.
        observation: the state; compared with stored states.
        reasoning: what was thought before the action; compared with stored reasonings.

    Raises:
        InputError: a text is blank.

    Example:
        >>> sorted(ExampleQuery("buy a lamp", plan="search, then pay", observation="page:cart").texts("plan"))
        ['goal', 'observation']
    """

    goal: str
    plan: str | None = None
    observation: str | None = None
    reasoning: str | None = None

    def __post_init__(self) -> None:
        for key in KEYS:
            if key == "goal" or getattr(self, key) is not None:
                check_text(key, getattr(self, key))

    def texts(self, purpose: Purpose) -> dict[str, str]:
        """Return what is known under the keys that serve a purpose.

        A plan is looked for by goal and first observation, a thought by goal, plan and observation, an action by those
        and the thought before it: the separate queries of arXiv 2505.00234.

        Raises:
            InputError: there is no such purpose.
        """
        if purpose not in get_args(Purpose):
            raise InputError(
                f"purpose = {excerpt(purpose)}", f"a purpose is one of {', '.join(get_args(Purpose))}", "Choose one."
            )
        given = {key: getattr(self, key) for key in _KEYS_FOR[purpose]}
        return {key: text for key, text in given.items() if text is not None}


def check_weights(weights: object) -> dict[str, float]:
    """Return how much each key counts, if it can be meant: finite, at least 0, one of them above 0.

    Raises:
        InputError: a key is unknown, or a weight is none.

    Example:
        >>> check_weights({"goal": 1, "observation": 2})
        {'goal': 1.0, 'observation': 2.0}
    """
    if not isinstance(weights, Mapping) or not weights:
        raise InputError(f"keys = {excerpt(weights)}", "keys map names to weights", "Pass {'observation': 1}, say.")
    for key in weights:
        if key not in KEYS:
            raise InputError(f"keys[{excerpt(key)}]", f"a key is one of {', '.join(KEYS)}", "Choose among these.")
    checked = {key: check_number(f"keys[{key!r}]", weight) for key, weight in weights.items()}
    for key, weight in checked.items():
        if weight < 0.0:
            raise InputError(f"keys[{key!r}] = {weight}", "a key's weight is at least 0", "0 leaves the key out.")
    if not any(checked.values()):
        raise InputError(f"keys = {checked}", "one weight is above 0", "Weigh the observation, say.")
    return checked
