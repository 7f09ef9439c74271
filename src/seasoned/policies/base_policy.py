"""The base policy: the model alone, the baseline of every comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from seasoned.checks import check_one_of, check_text, check_whole
from seasoned.core import log_softmax, sample_index
from seasoned.errors import InputError
from seasoned.policies.candidates import check_candidates
from seasoned.protocols import Admissible
from seasoned.types import Decision, Prior

__all__ = ["ModelAlone", "base_decision", "generator"]


def generator(seed: int | None, step: int) -> np.random.Generator:
    """Return the random generator of one decision: the same seed and step give the same draw.

    Raises:
        InputError: the seed or the step is negative or not whole.
    """
    step = check_whole("step", step, 0)
    return np.random.default_rng(None if seed is None else [check_whole("seed", seed, 0), step])


def base_decision(
    state: str,
    logits: Mapping[str, float],
    *,
    rng: np.random.Generator,
    selection: str,
    reason: str,
    **recorded: object,
) -> Decision:
    """Return a decision by the model's own policy, unchanged."""
    actions = list(logits)
    logprobs = log_softmax(list(logits.values()))
    probs = np.exp(logprobs)
    chosen = int(np.argmax(probs)) if selection == "argmax" else sample_index(probs, rng)
    table = dict(zip(actions, probs.tolist(), strict=True))
    fields: dict[str, object] = {
        "advantages": dict.fromkeys(actions, 0.0),
        "values": dict.fromkeys(actions),
        "counts": dict.fromkeys(actions, 0),
        "estimated_advantages": dict.fromkeys(actions),
        "intervals": dict.fromkeys(actions),
        "baseline": None,
        "beta": 0.0,
        "scale": 1.0,
        "gamma": None,
        "kl_nats": 0.0,
        "mode": "base",
    }
    return Decision(
        state=state,
        action=actions[chosen],
        probs=table,
        base_probs=dict(table),
        logprobs=dict(zip(actions, logprobs.tolist(), strict=True)),
        reason=reason,
        propensity=1.0 if selection == "argmax" else table[actions[chosen]],
        **{**fields, **recorded},  # type: ignore[arg-type]
    )


@dataclass(frozen=True, slots=True)
class ModelAlone:
    """Decides by the model's own policy, without a memory.

    Args:
        selection: `sample` from the model's policy, or take its `argmax`. A gain over a baseline that samples can come
            from the greedy choice alone.

    Raises:
        InputError: the selection is neither of these.

    Example:
        >>> ModelAlone("argmax").decide("page:cart", {"click(checkout)": -0.1, "click(back)": -2.4}).action
        'click(checkout)'
    """

    selection: Literal["sample", "argmax"] = "sample"

    def __post_init__(self) -> None:
        check_one_of("selection", self.selection, ("sample", "argmax"))

    @property
    def name(self) -> str:
        """`base`, or `base-argmax`."""
        return "base" if self.selection == "sample" else f"base-{self.selection}"

    def decide(
        self,
        state: str,
        candidates: Mapping[str, float],
        *,
        admissible: Admissible = None,
        task: str | None = None,
        step: int = 0,
        seed: int | None = None,
    ) -> Decision:
        """Return a decision by the model's own policy; see `seasoned.protocols.Policy`."""
        check_text("state", state)
        checked = check_candidates(candidates, admissible)
        if not checked.logits:
            raise InputError(
                f"{len(checked.dropped)} candidates, none admissible",
                "at least one candidate must be admissible",
                "Ask the model to choose among the possible actions.",
            )
        return base_decision(
            state,
            checked.logits,
            rng=generator(seed, step),
            selection=self.selection,
            reason="this policy has no memory",
            policy=self.name,
            dropped=checked.dropped,
            prior=candidates if isinstance(candidates, Prior) else None,
            step=step,
            seed=seed,
        )
