"""What the policy over some candidates is, as numbers that can be drawn."""

from __future__ import annotations

from typing import Any

from seasoned.types import Decision

__all__ = ["policy_document"]


def policy_document(decision: Decision) -> dict[str, Any]:
    """Return a decision over candidates as JSON: for each its probability, without and with memory, and why.

    `advantage` is what memory says of it, in the unit of `scale`; `count` how many stored steps took it.
    """
    return {
        "mode": decision.mode,
        "reason": decision.reason,
        "n_steps": decision.n_steps,
        "kl_nats": decision.kl_nats,
        "actions": [
            {
                "action": action,
                "base": decision.base_probs[action],
                "prob": prob,
                "advantage": decision.advantages[action],
                "count": decision.counts[action],
                "from_memory": action in decision.memory_only,
            }
            for action, prob in decision.probs.items()
        ],
    }
