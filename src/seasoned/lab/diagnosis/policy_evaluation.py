"""What a setting would have earned, estimated from stored episodes, or refused."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from seasoned.core.off_policy import OffPolicyEstimate, one_step_value, sequence_value
from seasoned.errors import InputError, excerpt
from seasoned.lab.diagnosis.overlap import check_support, untaken_share, widened
from seasoned.lab.diagnosis.replay import NO_PRIOR, PolicyMaker, ReplayedEpisode, make_policy, replay
from seasoned.memory import Memory
from seasoned.protocols import Policy
from seasoned.types import normalize_action

__all__ = ["MIN_EFFECTIVE", "Estimator", "Evaluation", "evaluate"]

Estimator = Literal["sequence", "one-step"]
"""`sequence`: every decision is the new policy's. `one-step`: one decision at a time, then the behaviour goes on."""

MIN_EFFECTIVE = 10.0
MAX_ADDED = 0.2

NO_PROPENSITY = "no stored propensity"
ADDED = "an action that memory had added"
CERTAIN = "an action taken for certain among several"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An off-policy estimate, and what it rests on.

    Args:
        policy: whose value it is.
        estimator: see `Estimator`.
        gamma: discount of the value.
        estimate: of the episodes used: the value, the behaviour's mean, their difference, the effective sample size.
        n_episodes, n_steps: that were used.
        left_out: episodes that could not be used, by reason.
        mean_ratio: mean of `pi_new / propensity`; near 1, or the estimate had been refused.
        untaken_share: how much of the policy's episodes (`one-step`: decisions) is an action that no step took.
    """

    policy: str
    estimator: Estimator
    gamma: float
    estimate: OffPolicyEstimate
    n_episodes: int
    n_steps: int
    left_out: Mapping[str, int]
    mean_ratio: float
    untaken_share: float


def evaluate(
    memory: Memory,
    policy: PolicyMaker,
    *,
    estimator: Estimator = "sequence",
    last: int | None = None,
    gamma: float = 1.0,
    min_effective: float = MIN_EFFECTIVE,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Estimate what `policy` earns per episode, from episodes that another policy played.

    Each stored decision is made again on what was known before it (`replay`), and weighted by `pi_new / propensity`:
    `seasoned.core.off_policy.sequence_value` (PDWIS), or `one_step_value` (SNIPS). The value is the one of a policy
    that learns from the *stored* episodes; what it would have learned from its own is in no log. Episodes count as
    independent, though each was played on what the earlier ones taught.

    An episode is left out, and counted, if a step has no prior or propensity; if an action was taken for certain among
    several (the log then says nothing of the others, whatever the new policy thinks of them); or if its action was
    added by memory: among which others is not stored. The last are no random part of the log, so that more than a fifth
    of them is refused.

    Refused too is a log that lacks what the new policy would do, as the effective sample size cannot see it: the mean
    of the ratios, and for `sequence` of their products, is 1 unless it does (`overlap`). A little that is
    lacking is in no such test. Where it is an action that no step of the log took, `untaken_share` says how much, and
    the intervals are widened by the worst and the best return of the log for that share. An action that was taken
    elsewhere, but could not be where the new policy would, is not seen.

    Args:
        memory: whose episodes.
        policy: makes the policy over the memory that it may ask.
        estimator: `sequence` or `one-step`.
        last: only the last so many episodes.
        gamma: discount of the value, in [0, 1]; 1 is the episode's total reward.
        min_effective: refuse an effective sample size below this, at least 2.
        level: confidence of the interval.
        seed: of the bootstrap and of the policy's draws.

    Raises:
        InputError: too few episodes can be used, the effective sample size is too small, the mean ratio is not
            compatible with 1, or a value breaks its rule.
        NotFoundError: the namespace holds no episode that counts.

    Example:
        >>> import math
        >>> from seasoned import Episode, ModelAlone, Step
        >>> half = {"pay": math.log(0.5), "back": math.log(0.5)}
        >>> with Memory.open(":memory:") as memory:
        ...     for _ in range(10):
        ...         _ = memory.add(Episode("checkout", [Step("page:cart", "pay", 1.0, half, propensity=0.5)]))
        ...         _ = memory.add(Episode("checkout", [Step("page:cart", "back", 0.0, half, propensity=0.5)]))
        ...     found = evaluate(memory, lambda known: ModelAlone())
        >>> found.estimate.value.mean, found.estimate.effective
        (0.5, 20.0)
    """
    if estimator not in get_args(Estimator):
        raise InputError(
            f"estimator = {excerpt(estimator)}", f"it is one of {', '.join(get_args(Estimator))}", "Choose one."
        )
    name = ""

    def named(known: Memory) -> Policy:
        nonlocal name
        made = make_policy(policy, known)
        name = made.name
        return made

    rewards: list[list[float]] = []
    ratios: list[list[float]] = []
    used: list[ReplayedEpisode] = []
    left_out: Counter[str] = Counter()
    for one in replay(memory, named, last=last, seed=seed):
        ratio = _ratios(one)
        if isinstance(ratio, str):
            left_out[ratio] += 1
            continue
        rewards.append([step.step.reward for step in one.steps])
        ratios.append(ratio)
        used.append(one)
    if not rewards:
        why = ", ".join(f"{count} by {reason}" for reason, count in left_out.items())
        raise InputError(
            f"{sum(left_out.values())} episodes, none of which can be used ({why})",
            "an estimate weighs steps by their stored prior and propensity",
            "Record decisions, not their texts: episode.record(state, decision, ...); sample, do not take the argmax.",
        )
    if left_out[ADDED] > MAX_ADDED * (len(rewards) + sum(left_out.values())):
        raise InputError(
            f"{left_out[ADDED]} of {len(rewards) + sum(left_out.values())} episodes with {ADDED}",
            f"at most {MAX_ADDED:.0%} are left out for that: among which others it was taken is not stored",
            "Evaluate episodes whose actions the model proposed (--last N), or ask it for all admissible actions.",
        )
    value = sequence_value if estimator == "sequence" else one_step_value
    estimate = value(rewards, ratios, gamma=gamma, level=level, seed=seed, min_effective=min_effective)
    whole = estimator == "sequence"
    mean_ratio = check_support(ratios, whole_episodes=whole).mean
    share = untaken_share(ratios, _untaken(used), whole_episodes=whole)
    if share > 0.0:
        earned = np.concatenate([one.returns(gamma)[:1] if whole else one.returns(gamma) for one in used])
        low, high = float(earned.min()), float(earned.max())
        estimate = dataclasses.replace(
            estimate,
            value=widened(estimate.value, share, low, high),
            difference=widened(estimate.difference, share, low - estimate.behavior, high - estimate.behavior),
        )
    n_steps = sum(map(len, ratios))
    return Evaluation(name, estimator, gamma, estimate, len(rewards), n_steps, dict(left_out), mean_ratio, share)


def _untaken(episodes: Sequence[ReplayedEpisode]) -> list[list[float]]:
    """At each step, the new policy's probability of the actions that no step of these episodes took."""
    taken = {normalize_action(step.step.action) for one in episodes for step in one.steps}
    return [
        [
            math.fsum(p for action, p in step.decision.probs.items() if normalize_action(action) not in taken)
            for step in one.steps
            if step.decision is not None
        ]
        for one in episodes
    ]


def _ratios(one: ReplayedEpisode) -> list[float] | str:
    """Each step's `pi_new / propensity`, or why the episode cannot be weighed."""
    ratios: list[float] = []
    for step in one.steps:
        if step.probability is None:
            return step.unusable or NO_PRIOR
        propensity = step.step.propensity
        if propensity is None:
            return NO_PROPENSITY
        if step.memory_only:
            return ADDED
        if propensity == 1.0 and len(step.step.prior or ()) > 1:
            return CERTAIN
        ratios.append(step.probability / propensity)
    return ratios
