"""Which actions a decision is about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from seasoned.checks import check_reward, check_text
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Admissible
from seasoned.types import normalize_action

__all__ = ["Candidates", "check_candidates"]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The model's proposals that are admissible now, the ones that are not, and the rule for what memory may add.

    Args:
        logits: proposal to logit (nats), in the order given.
        dropped: proposals that are not admissible.
        keys: normalised proposal, admissible or not.
        admit: gives the spelling in which a remembered action may be taken now, or None.
    """

    logits: Mapping[str, float]
    dropped: tuple[str, ...]
    keys: frozenset[str]
    admit: Callable[[str], str | None]

    def added(self, remembered: Collection[str]) -> tuple[str, ...]:
        """Return the remembered actions that the model did not propose and that are admissible."""
        spelled = (self.admit(action) for action in remembered if normalize_action(action) not in self.keys)
        return tuple(action for action in spelled if action is not None)


def _spellings(actions: Collection[str], name: str) -> dict[str, str]:
    """Normalised action to its spelling; two spellings of one action are refused."""
    spelling: dict[str, str] = {}
    for action in actions:
        key = normalize_action(check_text(name, action))
        if key in spelling:
            raise InputError(
                f"{excerpt(spelling[key])} and {excerpt(action)}",
                f"each {name} is listed once (case and spacing make no difference)",
                "Merge them.",
            )
        spelling[key] = action
    return spelling


def check_candidates(candidates: object, admissible: Admissible) -> Candidates:
    """Check what a caller passed to `decide`, and apply `admissible` to the model's own proposals.

    Raises:
        InputError: no candidates, a duplicate, a logit that is not finite, or none of them is admissible and memory may
            add none.
    """
    if not isinstance(candidates, Mapping):
        raise InputError(
            f"candidates = {excerpt(candidates)}", "candidates map each action to its logit in nats", "Pass a dict."
        )
    if not candidates:
        raise InputError("candidates = {}", "a decision is between one action or more", "Pass the model's proposals.")
    spelling = _spellings(candidates, "candidate")
    logits = {action: check_reward(f"logit of {action!r}", candidates[action]) for action in spelling.values()}
    if admissible is None:
        return Candidates(logits, (), frozenset(spelling), lambda _: None)
    if isinstance(admissible, str):
        if admissible != "any":
            raise InputError(
                f"admissible = {admissible!r}", 'admissible is None, "any", a collection or a predicate', "Pass a list."
            )
        return Candidates(logits, (), frozenset(spelling), lambda action: action)
    if callable(admissible):
        passes = admissible

        def admit(action: str) -> str | None:
            return action if passes(action) else None

    elif not isinstance(admissible, Collection):
        raise InputError(
            f"admissible = {excerpt(admissible)}",
            'admissible is None, "any", a collection or a predicate',
            "Pass a list.",
        )
    else:
        allowed = _spellings(admissible, "admissible action")

        def admit(action: str) -> str | None:
            return allowed.get(normalize_action(action))

    kept = {action: logit for action, logit in logits.items() if admit(action) is not None}
    dropped = tuple(action for action in logits if action not in kept)
    return Candidates(kept, dropped, frozenset(spelling), admit)
