"""The decisions that memory flipped, and how they turned out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from seasoned.core import Interval, mean_interval
from seasoned.core.statistics import difference_interval
from seasoned.errors import InputError
from seasoned.lab.diagnosis.replay import PolicyMaker, ReplayedEpisode, replay
from seasoned.memory import Memory
from seasoned.types import Decision, normalize_action

__all__ = ["BUCKETS", "Audit", "AuditedGroup", "Auditor", "Flip", "Outcome", "Took", "audit"]

Took = Literal["memory", "base", "other"]
"""Whose favourite the action was that was taken in fact."""

BUCKETS: tuple[tuple[int, int | None], ...] = ((0, 0), (1, 2), (3, 9), (10, 29), (30, 99), (100, None))
"""Numbers of neighbours (stored steps), from and to."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Flip:
    """A decision whose likeliest action is another one with memory than without.

    Args:
        episode_id, step: where.
        base_action: the model's favourite.
        memory_action: the favourite with memory.
        taken_action: what was done in fact.
        took: whose favourite that was.
        n_neighbors: stored steps that memory knew there.
        advantage: of memory's action over the model's, per unit of beta.
        kl_nats: what the whole decision spent.
        return_: what followed in fact, discounted, in reward units.
    """

    episode_id: str
    step: int
    base_action: str
    memory_action: str
    taken_action: str
    took: Took
    n_neighbors: int
    advantage: float
    kl_nats: float
    return_: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The mean return after some flips: each episode's mean counts once. None where there is no such flip.

    Args:
        n_steps, n_episodes: how many flips, in how many episodes.
        mean: in reward units.
        interval: of the mean, over episodes; None below two of them.
    """

    n_steps: int
    n_episodes: int
    mean: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class AuditedGroup:
    """The decisions with so many neighbours.

    Args:
        least, most: number of neighbours; `most` None: no limit.
        decisions, flips: how many.
        took_memory, took_base, took_other: of the flips, those where memory's action was taken, the base's, another.
        after_memory, after_base: how the first two turned out.
        difference: the first less the second, with an interval; None below two episodes each.
    """

    least: int
    most: int | None
    decisions: int
    flips: int
    took_memory: int
    took_base: int
    took_other: int
    after_memory: Outcome
    after_base: Outcome
    difference: Interval | None


@dataclass(frozen=True, slots=True)
class Audit:
    """What memory flipped.

    Args:
        policy: the policy's name.
        gamma: discount of the returns.
        n_episodes, n_decisions: that were decided again.
        undecided: steps that could not be, by reason.
        ties: decisions where the model had several favourites, and memory chose one of them: no flips.
        flips: in commit order.
        groups: by number of neighbours, those that occurred; `total` is all of them.
    """

    policy: str
    gamma: float
    n_episodes: int
    n_decisions: int
    undecided: Mapping[str, int]
    ties: int
    flips: tuple[Flip, ...]
    groups: tuple[AuditedGroup, ...]
    total: AuditedGroup


@dataclass
class Auditor:
    """Looks at replayed episodes, one after the other.

    Args:
        gamma: discount of the returns, where the policy has none of its own.
    """

    gamma: float
    policy: str = ""
    episodes: int = 0
    ties: int = 0
    undecided: Counter[str] = field(default_factory=Counter)
    decisions: Counter[int] = field(default_factory=Counter)
    flips: list[Flip] = field(default_factory=list)

    def see(self, one: ReplayedEpisode) -> None:
        """Take in one episode."""
        self.episodes += 1
        asked = next((s.decision.gamma for s in one.steps if s.decision and s.decision.gamma is not None), None)
        self.gamma = self.gamma if asked is None else asked
        returns = one.returns(self.gamma)
        for index, step in enumerate(one.steps):
            if step.decision is None:
                self.undecided[str(step.unusable)] += 1
                continue
            self.policy = step.decision.policy
            self.decisions[step.decision.n_steps] += 1
            self._compare(step.decision, step.step.action, str(one.episode.id), index, float(returns[index]))

    def _compare(self, decision: Decision, taken: str, episode_id: str, index: int, return_: float) -> None:
        base, ours = favorite(decision.base_probs), favorite(decision.probs)
        if base == ours:
            return
        if decision.base_probs[ours] >= decision.base_probs[base] - _ROUNDING:
            self.ties += 1
            return
        key = normalize_action(taken)
        took: Took = "other"
        if key in {normalize_action(ours), normalize_action(base)}:
            took = "memory" if key == normalize_action(ours) else "base"
        advantage = decision.advantages[ours] - decision.advantages[base]
        self.flips.append(
            Flip(episode_id, index, base, ours, taken, took, decision.n_steps, advantage, decision.kl_nats, return_)
        )

    def finish(self) -> Audit:
        """Return what was found so far."""
        groups = (self._group(least, most) for least, most in BUCKETS)
        return Audit(
            self.policy,
            self.gamma,
            self.episodes,
            sum(self.decisions.values()),
            dict(self.undecided),
            self.ties,
            tuple(self.flips),
            tuple(group for group in groups if group.decisions),
            self._group(0, None),
        )

    def _group(self, least: int, most: int | None) -> AuditedGroup:
        def inside(n: int) -> bool:
            return least <= n <= (math.inf if most is None else most)

        flips = [flip for flip in self.flips if inside(flip.n_neighbors)]
        took = Counter(flip.took for flip in flips)
        ours, base = (by_episode([f for f in flips if f.took == who]) for who in ("memory", "base"))
        comparable = min(len(ours), len(base)) >= 2
        return AuditedGroup(
            least,
            most,
            sum(count for n, count in self.decisions.items() if inside(n)),
            len(flips),
            took["memory"],
            took["base"],
            took["other"],
            _outcome(took["memory"], ours),
            _outcome(took["base"], base),
            difference_interval(ours, base) if comparable else None,
        )


def favorite(probs: Mapping[str, float]) -> str:
    """Return the likeliest action, the first one of several."""
    return max(probs, key=lambda action: probs[action])


def by_episode(flips: Sequence[Flip]) -> list[float]:
    """Return each episode's mean return over its flips: steps of one episode are no independent runs."""
    returns: defaultdict[str, list[float]] = defaultdict(list)
    for flip in flips:
        returns[flip.episode_id].append(flip.return_)
    return [float(np.mean(values)) for values in returns.values()]


def _outcome(n_steps: int, means: Sequence[float]) -> Outcome:
    mean = float(np.mean(means)) if means else None
    return Outcome(n_steps, len(means), mean, mean_interval(means) if len(means) >= 2 else None)


def audit(memory: Memory, policy: PolicyMaker, *, last: int | None = None, seed: int = 0) -> Audit:
    """List the decisions that memory would have flipped, and how the stored steps turned out.

    Every stored step is decided again on what was known before its episode (`replay`). It is flipped if the likeliest
    action with memory was less likely than the likeliest one without. How it turned out is what followed the action
    that was taken in fact: memory's, the model's, or another. The two groups of flips differ in their states and their
    times, not only in the action: `evaluate` weighs by propensities, this only looks.

    Args:
        memory: whose episodes.
        policy: makes the policy over the memory that it may ask.
        last: only the decisions of the last so many episodes.
        seed: of the policy's draws.

    Raises:
        InputError: no step can be decided again, or a value breaks its rule.
        NotFoundError: the namespace holds no episode that counts.

    Example:
        >>> from seasoned import Episode, JitRL, Step
        >>> prior = {"back": -0.6, "pay": -0.8}
        >>> with Memory.open(":memory:") as memory:
        ...     for action, reward in [("pay", 1.0), ("pay", 1.0), ("back", 0.0), ("back", 0.0), ("pay", 1.0)]:
        ...         _ = memory.add(Episode("checkout", [Step("page:cart", action, reward, prior)]))
        ...     found = audit(memory, JitRL)
        >>> [(flip.base_action, flip.memory_action, flip.took, flip.return_) for flip in found.flips]
        [('back', 'pay', 'base', 0.0), ('back', 'pay', 'memory', 1.0)]
    """
    replayed = replay(memory, policy, last=last, seed=seed)
    auditor = Auditor(memory.gamma)
    for one in replayed:
        auditor.see(one)
    if not auditor.decisions:
        why = ", ".join(f"{count} by {reason}" for reason, count in auditor.undecided.items())
        raise InputError(
            f"{auditor.undecided.total()} steps of {auditor.episodes} episodes, none of which can be decided ({why})",
            "a step is decided again from its stored prior, the model's logprobs",
            "Record decisions, not their texts: episode.record(state, decision, ...).",
        )
    return auditor.finish()
