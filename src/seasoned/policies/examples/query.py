"""Query for examples: the texts of a moment, by the purpose that the examples serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from seasoned.checks import check_mapping, check_number, check_one_of, check_text
from seasoned.errors import InputError
from seasoned.types.recall import KEYS

__all__ = ["ExampleQuery", "Purpose", "check_weights"]

Purpose = Literal["plan", "reason", "act"]
"""The purpose of the examples: to plan, to reason, or to act."""

_KEYS_FOR: Mapping[Purpose, tuple[str, ...]] = {
    "plan": ("goal", "observation"),
    "reason": ("goal", "plan", "observation"),
    "act": KEYS,
}


@dataclass(frozen=True, slots=True)
class ExampleQuery:
    """The known texts of the moment that needs examples.

    Args:
        goal: the task; compared with the tasks of stored episodes.
        plan: compared with the plans of stored episodes.
        observation: the state; compared with stored states.
        reasoning: the reasoning before the action; compared with stored reasonings.

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
        """Return the known texts by key, for the keys of a purpose.

        Plans are retrieved by goal and first observation, reasonings by goal, plan and observation, actions by these
        and the reasoning: the separate queries of arXiv 2505.00234.

        Raises:
            InputError: there is no such purpose.
        """
        texts = {key: getattr(self, key) for key in _KEYS_FOR[check_one_of("purpose", purpose, get_args(Purpose))]}
        return {key: text for key, text in texts.items() if text is not None}


def check_weights(weights: object) -> dict[str, float]:
    """Return the weight of each key, if the weights are valid: finite, at least 0, and one of them above 0.

    Raises:
        InputError: a key is unknown, or a weight is not valid.

    Example:
        >>> check_weights({"goal": 1, "observation": 2})
        {'goal': 1.0, 'observation': 2.0}
    """
    example = "Pass {'observation': 1}, for example."
    given = check_mapping("keys", weights, "names to weights", next_step=example)
    checked = {
        check_one_of("key", key, KEYS): check_number(f"keys[{key!r}]", weight, at_least=0)
        for key, weight in given.items()
    }
    if not any(checked.values()):
        raise InputError(f"keys = {checked}", "one of keys must have a weight above 0", example)
    return checked
