"""The same decision, made inside the server: the policy's shifts go to the model, and one call draws the action."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from seasoned.core import kl_divergence
from seasoned.errors import InputError, ModelError
from seasoned.policies.jitrl import JitRL
from seasoned.protocols import Admissible, Chooser, Policy, Usage
from seasoned.types import Decision

__all__ = ["decide_inside"]


async def decide_inside(
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

    The action is drawn from `softmax(z + beta * A)`, as `Policy.decide` would draw it from a prior that was read first,
    with one call, whose prompt does not grow. Advantages are estimated before the prior is known: where V needs one
    (`baseline="base_policy"`), a uniform prior stands in. V moves all tried actions alike, so it matters only against
    untried ones. Actions that memory adds are asked of the model like the others, and hold no `memory_prior`.

    Args:
        policy: gives the shifts; it must sample, and `JitRL` must have no `max_kl_nats`, which needs the prior first.
        chooser: such as `seasoned.llms.BiasChooser`.
        state: what the agent sees.
        candidates: what can be done, or what the model proposes.
        task: what is attempted.
        admissible: as for `Policy.decide`.
        step, seed: the same seed and step give the same draw, where the endpoint honours seeds.

    Returns:
        The decision, and what the call cost.

    Raises:
        InputError: the policy takes the argmax, caps KL or shifts probabilities; or as for `Policy.decide` and
            `Chooser.choose`.
        ModelError: the endpoint shows no logprobs, so that nobody could say what was decided from.
    """
    if isinstance(policy, JitRL):
        settings = policy.settings
        if settings.selection != "sample" or settings.max_kl_nats is not None or settings.prior_scale != "logprobs":
            raise InputError(
                f"selection = {settings.selection}, max_kl_nats = {settings.max_kl_nats}, prior_scale = "
                f"{settings.prior_scale}",
                "inside the server an action is sampled, without a cap on KL, from shifted logprobs",
                "Read the prior first, by label, and let the policy decide.",
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
    prior, shifted = choice.prior, any(shifts.values())
    untried = shifted and any(value is None for value in planned.values.values())
    stood_in = ", V under a uniform prior, which moves the untried" if untried and _asks_prior(policy) else ""
    base = {action: float(np.exp(prior[action])) for action in shifts}
    probs = {action: choice.probs[action] for action in shifts} if shifted else base
    return dataclasses.replace(
        planned,
        action=choice.action,
        probs=probs,
        base_probs=base,
        logprobs={action: prior[action] for action in shifts},
        kl_nats=kl_divergence(list(probs.values()), list(base.values())) if shifted else 0.0,
        propensity=probs[choice.action],
        prior=prior,
        reason=f"{planned.reason}; drawn inside the server{stood_in}",
    ), choice.usage


def _asks_prior(policy: Policy) -> bool:
    return isinstance(policy, JitRL) and policy.settings.baseline == "base_policy"
