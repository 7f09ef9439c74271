"""What the policy over some candidates is, as numbers that can be drawn."""

from __future__ import annotations

from typing import Any

from seasoned.errors import InputError
from seasoned.types import Choice, Decision, Edit, Feedback, OwnAnswer, normalize_action

__all__ = ["answer_key", "policy_document"]


def policy_document(decision: Decision) -> dict[str, Any]:
    """Return a decision over candidates as JSON: for each its probability, without and with memory, and why.

    `advantage` is what memory says of it, in the unit of `scale`; `count` how many stored steps took it. Two spellings
    of one `key` are the same action.
    """
    return {
        "mode": decision.mode,
        "reason": decision.reason,
        "n_steps": decision.n_steps,
        "kl_nats": decision.kl_nats,
        "actions": [
            {
                "action": action,
                "key": normalize_action(action),
                "base": decision.base_probs[action],
                "prob": prob,
                "advantage": decision.advantages[action],
                "count": decision.counts[action],
                "from_memory": action in decision.memory_only,
            }
            for action, prob in decision.probs.items()
        ],
    }


def answer_key(answer: Feedback) -> str:
    """Return the `key` of what was chosen or written.

    Raises:
        InputError: nothing was.

    Example:
        >>> answer_key(Choice(("Yes", "It is  SO."), chosen=1))
        'it is so.'
    """
    match answer:
        case Choice(candidates=shown, chosen=place):
            return normalize_action(shown[place])
        case Edit(text=text) | OwnAnswer(text=text):
            return normalize_action(text)
    raise InputError(f"{answer.kind}", "an answer must be a choice, an edit or an own answer", "Pass one of these.")
