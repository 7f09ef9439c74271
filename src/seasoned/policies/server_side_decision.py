"""The same decision, made inside the server: the policy's shifts go to the model, and one call draws the action."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from seasoned.core import redraw_index
from seasoned.errors import InputError, ModelError
from seasoned.policies.jitrl import JitRL
from seasoned.protocols import Admissible, Chooser, Policy, Usage
from seasoned.types import Decision

__all__ = ["decide_on_server"]

_REDRAW = 1
"""Tells these random numbers from the decision's own."""


async def decide_on_server(
    policy: Policy,
    chooser: Chooser,
    state: str,
    candidates: Sequence[str],
    *,
    task: str,
    admissible: Admissible = None,
    step: int = 0,
    seed: int | None = None,
) -> tuple[Decision, Usage]:
    """Have a model choose under a policy's shifts, `beta * A(a)` nats for action a, and return what was decided.

    The action follows `policy.decide` on the prior that the call shows, exactly, with one call, whose prompt does not
    grow. The shifts that are sent are those under a uniform prior. Where all actions were tried and nothing caps KL,
    they are the policy's: V moves all alike. Else the true prior moves V against the untried, or the cap: then the
    policy decides on it, and the server's draw is kept or replaced so that it follows that decision
    (`seasoned.core.redraw_index`); the reason says so if it was replaced. Actions that memory adds are asked of the
    model like the others, and hold no `memory_prior`.

    Args:
        policy: gives the shifts, then decides; it must sample.
        chooser: such as `seasoned.llms.BiasChooser`.
        state: what the agent sees.
        candidates: what can be done, or what the model proposes.
        task: what is attempted.
        admissible: as for `Policy.decide`.
        step, seed: the same seed and step give the same draw, where the endpoint honours seeds.

    Returns:
        The decision, and what the call cost.

    Raises:
        InputError: the policy takes the argmax or shifts probabilities; the chooser has a cap of its own; or as for
            `Policy.decide` and `Chooser.choose`.
        ModelError: the endpoint shows no logprobs, so that nobody could say what was decided from.
    """
    if isinstance(policy, JitRL):
        settings = policy.settings
        if settings.selection != "sample" or settings.prior_scale != "logprobs":
            raise InputError(
                f"selection = {settings.selection}, prior_scale = {settings.prior_scale}",
                "inside the server an action is sampled, from shifted logprobs",
                "Read the prior first, by label, and let the policy decide.",
            )
    if getattr(chooser, "max_kl_nats", None) is not None:
        raise InputError(
            f"max_kl_nats = {chooser.max_kl_nats} on the chooser",  # type: ignore[attr-defined]
            "the policy decides here, on the prior that the call shows, and would undo the chooser's cap",
            "Give the policy the cap: JitRL(memory, max_kl_nats=...).",
        )
    planned = policy.decide(
        state, dict.fromkeys(candidates, 0.0), admissible=admissible, task=task, step=step, seed=seed
    )
    shifts = {action: planned.beta * advantage for action, advantage in planned.advantages.items()}
    draw = None if seed is None else int(np.random.SeedSequence([seed, step]).generate_state(1)[0])
    choice = await chooser.choose(state, task, list(shifts), shifts, draw)
    if choice.prior is None or choice.probs is None:
        raise ModelError(
            f"{chooser.name} chose {choice.action!r} and showed no logprobs",
            "a decision records the policy it was drawn from",
            "Use an endpoint that returns logprobs, call the chooser yourself, or use votes or advice.",
        )
    decided = policy.decide(state, choice.prior, task=task, step=step, seed=seed)
    actions = list(decided.probs)
    drawn, kept = redraw_index(
        actions.index(choice.action),
        [choice.probs[action] for action in actions],
        list(decided.probs.values()),
        np.random.default_rng(None if seed is None else [seed, step, _REDRAW]),
    )
    replaced = "" if kept else ", and replaced: the prior that came with the draw moved what was wanted"
    return dataclasses.replace(
        decided,
        action=actions[drawn],
        propensity=decided.probs[actions[drawn]],
        memory_only=planned.memory_only,
        dropped=planned.dropped,
        reason=f"{decided.reason}; drawn inside the server{replaced}",
    ), choice.usage
