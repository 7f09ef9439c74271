"""What the policy over some candidates is, as numbers that can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from seasoned.core import modulate
from seasoned.errors import InputError
from seasoned.memory import Memory
from seasoned.memory.values.derived_ids import feedback_of_answer
from seasoned.types import Choice, Decision, Edit, Feedback, OwnAnswer, normalize_action

__all__ = ["answer_key", "policy_document"]

MIN_HEARD = 3
"""Evidence of fewer answers and played steps than this is thin: as many as the policy asks stored steps for."""

_NONE = 1e-9  # of base probability: the others are never taken, and V is this action's own value


def policy_document(decision: Decision, memory: Memory) -> dict[str, Any]:
    """Return a decision over candidates as JSON: for each its probability, without and with memory, and why.

    `advantage` is what memory says of it, in the unit of `scale`; `count` how many stored steps took it;
    `interval` the 95 % interval of `prob`, None where there is nothing to compare. Two spellings of one `key` are the
    same action. `evidence` says who speaks: one answer makes several stored steps. It is None where these are more
    than a decision lists. `thin`: few speak, or every interval holds the probability without memory.
    """
    heard = _heard(decision, memory)
    ranges = _ranges(decision)
    clear = any(not low <= decision.base_probs[action] <= high for action, (low, high) in ranges.items())
    return {
        "mode": decision.mode,
        "reason": decision.reason,
        "n_steps": decision.n_steps,
        "kl_nats": decision.kl_nats,
        "evidence": heard,
        "thin": not clear or (heard is not None and heard["answers"] + heard["played"] < MIN_HEARD),
        "actions": [
            {
                "action": action,
                "key": normalize_action(action),
                "base": decision.base_probs[action],
                "prob": prob,
                "interval": ranges.get(action),
                "advantage": decision.advantages[action],
                "count": decision.counts[action],
                "from_memory": action in decision.memory_only,
            }
            for action, prob in decision.probs.items()
        ],
    }


def _ranges(decision: Decision) -> Mapping[str, tuple[float, float]]:
    """The 95 % interval of each probability: the policy where the action's advantage is at either end of its own.

    `A(a) = Q(a) - V`, and V is the mean of Q over what was tried, by the base policy: what moves A(a) moves V, and the
    advantages of all that was tried. Actions that there is nothing to compare with are left out.
    """
    actions = list(decision.probs)
    base, advantages, logprobs = (
        np.array([of[action] for action in actions])
        for of in (decision.base_probs, decision.advantages, decision.logprobs)
    )
    known = np.array([decision.intervals.get(action) is not None for action in actions])
    found: dict[str, tuple[float, float]] = {}
    for i, action in enumerate(actions):
        rest = known & (np.arange(len(actions)) != i)
        bounds, others = decision.intervals.get(action), base[rest].sum()
        if bounds is None or others < _NONE:
            continue
        ends = []
        for bound in bounds:
            moved = advantages - rest * (bound - advantages[i]) * base[i] / others
            moved[i] = bound
            ends.append(float(np.exp(modulate(logprobs, moved, decision.beta)[i])))
        found[action] = (ends[0], ends[1])
    return found


def _heard(decision: Decision, memory: Memory) -> dict[str, int] | None:
    """How many people gave how many answers, and how many steps were played; None: there are more than are listed."""
    if decision.n_steps > len(decision.neighbors):
        return None
    places = [near.experience.episode_id for near in decision.neighbors]
    ids = {feedback_of_answer(episode_id) for episode_id in places}
    made_by = {
        made: record
        for id_ in filter(str.strip, ids)
        for record in memory.feedback_records(id=id_)
        for made in record.episode_ids
    }
    answers = {made_by[episode_id] for episode_id in places if episode_id in made_by}
    return {
        "people": len({(one.source, one.author) for one in answers}),
        "answers": len(answers),
        "played": sum(episode_id not in made_by for episode_id in places),
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
