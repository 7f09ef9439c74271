"""Replay of stored episodes: each is decided again on the episodes before it, test before train."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seasoned.checks import check_instance, check_whole
from seasoned.core import discounted_returns
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory import Memory
from seasoned.memory.values.events import EventReward, feedback_sum
from seasoned.protocols import Admissible, Policy
from seasoned.types import Decision, Episode, Floats, Prior, Step, normalize_action

__all__ = ["NO_PRIOR", "PolicyMaker", "ReplayedEpisode", "ReplayedStep", "counted_episodes", "policy_over", "replay"]

PolicyMaker = Callable[[Memory], Policy]
"""Makes a policy over a memory."""

NO_PRIOR = "no stored prior"
_TWO_SPELLINGS = "the prior lists one action twice"
_MAKER_STEP = "Pass a function from a memory to a policy: JitRL, or lambda known: JitRL(known, beta=2.0)."


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """A stored step, and the policy's decision at its state.

    Args:
        step: as stored; its reward is the environment's plus the feedback that counts.
        decision: None if the step cannot be decided again.
        unusable: the reason why it cannot; None with a decision.
        probability: the policy's probability of the stored action; None without a decision.
        memory_only: the model did not propose the stored action: memory had added it.
    """

    step: Step
    decision: Decision | None
    unusable: str | None
    probability: float | None
    memory_only: bool


@dataclass(frozen=True, slots=True)
class ReplayedEpisode:
    """A stored episode, decided again with a memory of the episodes before it.

    Args:
        number: the number of counted episodes before it.
        episode: as stored, with the rewards that count.
        steps: one for each of its steps.
    """

    number: int
    episode: Episode
    steps: tuple[ReplayedStep, ...]

    def returns(self, gamma: float) -> Floats:
        """Return the discounted return from each step on, in reward units."""
        return discounted_returns([step.reward for step in self.episode.steps], gamma)


def counted_episodes(memory: Memory) -> list[Episode]:
    """Return the episodes that count, in commit order: finished, judged, not quarantined, with the rewards that count.

    A step's reward is the environment's plus that of the feedback on it that is neither revoked nor quarantined: a
    weighted sum, of labels the mean (`feedback_sum`). Episodes that await feedback are left out; those that are
    returned are marked as not awaiting any, so that another memory counts them as they are.

    Example:
        >>> with Memory.open(":memory:") as memory:
        ...     id_ = memory.add(Episode("checkout", [Step("page:pay", "click(confirm)", 1.0)]))
        ...     _ = memory.feedback(id_, -1.5)
        ...     counted_episodes(memory)[0].steps[0].reward
        -0.5

    Raises:
        InputError: `memory` is not a Memory.
    """
    check_instance("memory", memory, Memory, "memory must be a Memory", "Pass a seasoned.Memory.")
    excluded_episodes, excluded_events = memory.excluded_ids()
    rewards: defaultdict[tuple[str, int], list[EventReward]] = defaultdict(list)
    for event in memory.events():
        if event.revoked_at is None and event.id not in excluded_events:
            given = EventReward(event.step, event.reward, event.weight, event.kind)
            rewards[event.episode_id, event.step].append(given)
    awaiting = {one.id for one in memory.awaiting()}
    return [
        _with_feedback(episode, rewards)
        for episode in memory.episodes()
        if episode.ending != "aborted" and episode.id not in excluded_episodes and episode.id not in awaiting
    ]


def policy_over(make: PolicyMaker, known: Memory) -> Policy:
    """Return the policy that `make` makes over a memory.

    Raises:
        InputError: `make` is not a function, or its result is not a policy.
    """
    if not callable(make):
        raise InputError(f"policy = {excerpt(make)}", "policy must be a function that makes a policy", _MAKER_STEP)
    made: object = make(known)
    if not isinstance(made, Policy) or not isinstance(made.name, str):
        raise InputError(f"policy made: {excerpt(made)}", "a policy has a name and a method decide", _MAKER_STEP)
    return made


def _with_feedback(episode: Episode, rewards: Mapping[tuple[str, int], list[EventReward]]) -> Episode:
    """Return the episode with the rewards of feedback added; `rewards` are by episode id and step."""
    alone = len(episode.steps) == 1
    feedback = {
        index: feedback_sum(rewards[key], alone=alone)
        for index in range(len(episode.steps))
        if (key := (str(episode.id), index)) in rewards
    }
    if episode.awaits_feedback is None and not feedback:
        return episode
    steps = [
        dataclasses.replace(step, reward=step.reward + feedback[index]) if index in feedback else step
        for index, step in enumerate(episode.steps)
    ]
    return dataclasses.replace(episode, steps=steps, awaits_feedback=False)


def replay(
    memory: Memory,
    policy: PolicyMaker,
    *,
    last: int | None = None,
    seed: int = 0,
    episodes: Sequence[Episode] | None = None,
) -> Iterator[ReplayedEpisode]:
    """Yield the stored episodes in commit order, every step decided by `policy` on the episodes before its own.

    A new memory in RAM, with the same encoder and discount, is filled during the replay: an episode is decided, then
    added with its present rewards (late feedback counts from the start). So every decision uses earlier episodes only.
    Nothing is written to `memory`. A step without a stored prior is not decided: a prior is never guessed.

    The candidates are the model's stored proposals. A stored action that is not among them was added by memory: it is
    then admissible, so that memory may add it again; the other admissible actions are not known.

    Args:
        memory: the memory to replay; it is read at once, and may be used during the replay.
        policy: makes the policy over the new memory.
        last: decide this many latest episodes only; the earlier ones are still added.
        seed: of the policy's draws.
        episodes: the result of `counted_episodes(memory)`, if the caller has it already.

    Raises:
        InputError: `last` is not a whole number above 0, `seed` is not a whole number from 0 on, `memory` is not a
            Memory, or `policy` does not make a policy.
        NotFoundError: the namespace holds no episode that counts.

    Example:
        >>> from seasoned import JitRL
        >>> with Memory.open(":memory:") as memory:
        ...     for reward in (1.0, 1.0, 1.0, 0.0):
        ...         step = Step("page:cart", "pay", reward, {"pay": -0.7, "back": -0.7}, propensity=0.5)
        ...         _ = memory.add(Episode("checkout", [step]))
        ...     [episode.steps[0].decision.mode for episode in replay(memory, JitRL)]
        ['base', 'memory', 'memory', 'memory']
    """
    if last is not None:
        check_whole("last", last, 1, next_step="None decides all episodes.")
    check_whole("seed", seed, 0)
    counted = list(counted_episodes(memory) if episodes is None else episodes)
    if not counted:
        raise NotFoundError(
            f"namespace {memory.namespace!r}", "it has no finished episode that counts", "Record one, or import some."
        )
    return _replayed(memory, policy, counted, 0 if last is None else max(0, len(counted) - last), seed)


def _replayed(
    memory: Memory, make: PolicyMaker, counted: Sequence[Episode], first: int, seed: int
) -> Iterator[ReplayedEpisode]:
    with Memory.open(
        ":memory:", encoder=memory.encoder, gamma=memory.gamma, max_text_bytes=memory.session.max_text_bytes
    ) as known:
        policy = policy_over(make, known)
        known.add_many(counted[:first])
        for number, episode in enumerate(counted[first:], start=first):
            steps = tuple(
                _decided(policy, step, episode.task, index, seed + number) for index, step in enumerate(episode.steps)
            )
            yield ReplayedEpisode(number, episode, steps)
            known.add(episode)


def _decided(policy: Policy, step: Step, task: str, index: int, seed: int) -> ReplayedStep:
    if step.prior is None:
        return ReplayedStep(step, None, NO_PRIOR, None, memory_only=False)
    keys = {normalize_action(action): action for action in step.prior}
    if len(keys) < len(step.prior):
        return ReplayedStep(step, None, _TWO_SPELLINGS, None, memory_only=False)
    taken = keys.get(normalize_action(step.action))
    admissible: Admissible = None if taken is not None else [*step.prior, step.action]
    prior = step.prior if isinstance(step.prior, Prior) else Prior(step.prior, "stored")
    decision: object = policy.decide(step.state, prior, admissible=admissible, task=task, step=index, seed=seed)
    if not isinstance(decision, Decision):
        raise InputError(f"policy {policy.name!r} decided {excerpt(decision)}", "it returns a Decision", _MAKER_STEP)
    return ReplayedStep(step, decision, None, _probability(decision, step.action), memory_only=taken is None)


def _probability(decision: Decision, action: str) -> float:
    """Return the policy's probability of `action`: 0 or 1 where the decision is certain, as with the argmax."""
    key = normalize_action(action)
    if decision.propensity == 1.0:
        return float(normalize_action(decision.action) == key)
    return next((p for known, p in decision.probs.items() if normalize_action(known) == key), 0.0)
