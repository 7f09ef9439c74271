"""Candidates of a decision: the model's proposals, and the rule for actions that memory may add."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from seasoned.actions import call_forms
from seasoned.checks import check_mapping, check_reward, check_text
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Admissible
from seasoned.types import normalize_action

__all__ = ["Candidates", "check_candidates"]

_SUM_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True)
class Candidates:
    """The model's proposals, admissible or not, and the rule for actions that memory may add.

    Args:
        logits: admissible proposal to logit (nats), in the given order.
        dropped: proposals that are not admissible.
        keys: the keys of the proposals, admissible or not (`CallForm.key`).
        admit: returns the admissible spelling of an action from memory, or None if it is not admissible.
        listed: whether the caller listed the admissible actions.
        others: the listed actions that are no proposals.
    """

    logits: Mapping[str, float]
    dropped: tuple[str, ...]
    keys: frozenset[str]
    admit: Callable[[str], str | None]
    listed: bool = True
    others: tuple[str, ...] = ()

    def added(self, remembered: Collection[str]) -> tuple[str, ...]:
        """Return the admissible actions from memory that the model did not propose."""
        spelled = (self.admit(action) for action in remembered if _key(action) not in self.keys)
        return tuple(action for action in spelled if action is not None)


def _key(action: str) -> str:
    """Return a text that is equal for two spellings of one action; long calls are parsed once."""
    return call_forms([action])[0].key


def _spellings(actions: Collection[str], name: str) -> dict[str, str]:
    """Map each normalised action to its spelling; two spellings of one action are refused.

    So are two texts with one key of a memory, such as `get({"id":"aB"})` and `get({"id":"Ab"})`: they would share their
    evidence. `ToolAction.text` escapes capitals, so that a memory keeps such calls apart.
    """
    spelling: dict[str, str] = {}
    stored_as: dict[str, str] = {}
    texts = [check_text(name, action) for action in actions]
    for action, form in zip(texts, call_forms(texts), strict=True):
        key, stored = form.key, normalize_action(action)
        same = spelling.get(key, stored_as.get(stored))
        if same is not None:
            raise InputError(
                f"{excerpt(same)} and {excerpt(action)}",
                f"each {name} must be listed once (case, blanks and the spelling of a call make no difference)",
                "Merge them. Write calls as ToolAction.text does if the case of their arguments matters.",
            )
        spelling[key] = stored_as[stored] = action
    return spelling


def _check_not_probabilities(logits: Mapping[str, float]) -> None:
    """Refuse values that are all in [0, 1] and add up to 1: taken as logits, 0.9 and 0.1 would be 0.69 and 0.31.

    Accepted are equal values, which mean the same policy either way, and whole numbers.
    """
    values = list(logits.values())
    if 0.0 <= min(values) < max(values) < 1.0 and abs(sum(values) - 1.0) <= _SUM_ROUNDING:
        raise InputError(
            f"candidates = {excerpt(dict(logits))}",
            "candidates must map to logits or logprobs, and these look like probabilities: they add up to 1",
            "Pass the logarithm of each (a logprob is at most 0); -50 for a probability of 0.",
        )


def check_candidates(candidates: object, admissible: Admissible) -> Candidates:
    """Check the candidates and `admissible` of a decision, and drop the proposals that are not admissible.

    Raises:
        InputError: there are no candidates, two are the same action, a logit is not finite, the logits look like
            probabilities, or `admissible` is of another type.
    """
    proposals = check_mapping("candidates", candidates, "each action to its logit in nats")
    if not proposals:
        raise InputError("candidates = {}", "a decision needs one candidate or more", "Pass the model's proposals.")
    spelling = _spellings(proposals, "candidate")
    logits = {action: check_reward(f"logit of {action!r}", proposals[action]) for action in spelling.values()}
    _check_not_probabilities(logits)
    if admissible is None:
        return Candidates(logits, (), frozenset(spelling), lambda _: None)
    if isinstance(admissible, str) and admissible == "any":
        return Candidates(logits, (), frozenset(spelling), lambda action: action, listed=False)
    if callable(admissible):
        passes = admissible

        def admit(action: str) -> str | None:
            return action if passes(action) else None

    elif isinstance(admissible, str) or not isinstance(admissible, Collection):
        rule = 'admissible must be None, "any", a collection or a predicate'
        raise InputError(f"admissible = {excerpt(admissible)}", rule, "Pass a list.")
    else:
        allowed = _spellings(admissible, "admissible action")

        def admit(action: str) -> str | None:
            return allowed.get(_key(action))

    kept = {action: logit for action, logit in logits.items() if admit(action) is not None}
    dropped = tuple(action for action in logits if action not in kept)
    if callable(admissible):
        return Candidates(kept, dropped, frozenset(spelling), admit, listed=False)
    others = tuple(action for key, action in allowed.items() if key not in spelling)
    return Candidates(kept, dropped, frozenset(spelling), admit, others=others)
