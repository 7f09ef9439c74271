"""Stored episodes decided once more, each on what was known before it: test before train."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seasoned.core import discounted_returns
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory import Memory
from seasoned.protocols import Admissible, Policy
from seasoned.types import Decision, Episode, Floats, Prior, Step, normalize_action

__all__ = ["NO_PRIOR", "PolicyMaker", "ReplayedEpisode", "ReplayedStep", "counted_episodes", "make_policy", "replay"]

PolicyMaker = Callable[[Memory], Policy]
"""Makes the policy that is judged, over the memory that it may ask."""

NO_PRIOR = "no stored prior"
TWO_SPELLINGS = "the prior lists one action twice"
_MAKE = "Pass what makes a policy over a memory: JitRL, or lambda known: JitRL(known, beta=2.0)."


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """A stored step, and what the policy would have decided there.

    Args:
        step: as stored; its reward is the environment's and the feedback that counts.
        decision: None where the step cannot be decided again; `unusable` says why.
        probability: with which the policy would take the stored action; None without a decision.
        memory_only: the stored action was none of the model's proposals: memory had added it.
    """

    step: Step
    decision: Decision | None
    unusable: str | None
    probability: float | None
    memory_only: bool


@dataclass(frozen=True, slots=True)
class ReplayedEpisode:
    """A stored episode, decided on what the episodes before it taught.

    Args:
        number: how many counted episodes came before it.
        episode: as stored, with the rewards that count.
        steps: one for each of its steps.
    """

    number: int
    episode: Episode
    steps: tuple[ReplayedStep, ...]

    def returns(self, gamma: float) -> Floats:
        """Return what followed each step, discounted, in reward units."""
        return discounted_returns([step.reward for step in self.episode.steps], gamma)


def counted_episodes(memory: Memory) -> list[Episode]:
    """Return the episodes that count, in commit order: finished, not quarantined, with the rewards that count.

    A step's reward is the environment's plus `weight * reward` of every feedback event on it that is neither revoked
    nor quarantined.

    Example:
        >>> with Memory.open(":memory:") as memory:
        ...     id_ = memory.add(Episode("checkout", [Step("page:pay", "click(confirm)", 1.0)]))
        ...     _ = memory.feedback(id_, -1.5)
        ...     counted_episodes(memory)[0].steps[0].reward
        -0.5

    Raises:
        InputError: `memory` is none.
    """
    if not isinstance(memory, Memory):
        raise InputError(f"memory = {excerpt(memory)}", "what is looked at is a memory", "Pass a seasoned.Memory.")
    gone, silenced = memory.excluded_ids()
    said: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for event in memory.events():
        if event.revoked_at is None and event.id not in silenced:
            said[event.episode_id, event.step].append(event.reward * event.weight)
    return [
        _rewarded(episode, said)
        for episode in memory.episodes()
        if episode.ending != "aborted" and episode.id not in gone
    ]


def make_policy(make: PolicyMaker, known: Memory) -> Policy:
    """Return the policy that is judged, over the memory that it may ask.

    Raises:
        InputError: nothing was made, or it is no policy.
    """
    if not callable(make):
        raise InputError(f"policy = {excerpt(make)}", "a function makes the policy that is judged", _MAKE)
    made: object = make(known)
    if not isinstance(made, Policy) or not isinstance(made.name, str):
        raise InputError(f"policy made: {excerpt(made)}", "a policy has a name and decides", _MAKE)
    return made


def _rewarded(episode: Episode, said: Mapping[tuple[str, int], list[float]]) -> Episode:
    heard = {index: said[key] for index in range(len(episode.steps)) if (key := (str(episode.id), index)) in said}
    if not heard:
        return episode
    steps = [
        dataclasses.replace(step, reward=step.reward + math.fsum(heard[index])) if index in heard else step
        for index, step in enumerate(episode.steps)
    ]
    return dataclasses.replace(episode, steps=steps)


def replay(
    memory: Memory,
    policy: PolicyMaker,
    *,
    last: int | None = None,
    seed: int = 0,
    episodes: Sequence[Episode] | None = None,
) -> Iterator[ReplayedEpisode]:
    """Yield the stored episodes in commit order, every step decided by `policy` on what was known before its episode.

    A new memory in RAM, with the same encoder and discount, is filled as the replay goes on: an episode is decided,
    then added with the rewards that count now (feedback that came late counts from the start). So a setting is judged
    only on earlier episodes. Nothing is written to `memory`. A step without a stored prior is not decided: a prior is
    never guessed.

    The candidates are the model's stored proposals. Where the stored action is none of them, memory had added it: it is
    then admissible, so that memory may add it again; what else was admissible is not known.

    Args:
        memory: what is replayed; it is read at once, and may be used meanwhile.
        policy: makes the policy over the new memory.
        last: decide only the last so many; the earlier ones are still added.
        seed: of the policy's draws.
        episodes: what `counted_episodes` gave for `memory`, if it was asked already.

    Raises:
        InputError: `last` is not a whole number above 0, `seed` not one from 0 on, `memory` is none, or `policy` does
            not make one that decides.
        NotFoundError: the namespace holds no episode that counts.

    Example:
        >>> from seasoned import JitRL
        >>> with Memory.open(":memory:") as memory:
        ...     for reward in (1.0, 1.0, 1.0, 0.0):
        ...         step = Step("page:cart", "pay", reward, {"pay": -0.7, "back": -0.7}, propensity=0.5)
        ...         _ = memory.add(Episode("checkout", [step]))
        ...     [one.steps[0].decision.mode for one in replay(memory, JitRL)]
        ['base', 'base', 'base', 'memory']
    """
    if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < 1):
        raise InputError(f"last = {excerpt(last)}", "it is a whole number, at least 1", "None decides all.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed = {excerpt(seed)}", "it is a whole number, at least 0", "Keep the default.")
    counted = list(counted_episodes(memory) if episodes is None else episodes)
    if not counted:
        raise NotFoundError(
            f"namespace {memory.namespace!r}", "it holds no finished episode that counts", "Record one, or import some."
        )
    return _replayed(memory, policy, counted, 0 if last is None else max(0, len(counted) - last), seed)


def _replayed(
    memory: Memory, make: PolicyMaker, counted: Sequence[Episode], first: int, seed: int
) -> Iterator[ReplayedEpisode]:
    with Memory.open(
        ":memory:", encoder=memory.encoder, gamma=memory.gamma, max_text_bytes=memory.max_text_bytes
    ) as known:
        policy = make_policy(make, known)
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
        return ReplayedStep(step, None, TWO_SPELLINGS, None, memory_only=False)
    taken = keys.get(normalize_action(step.action))
    admissible: Admissible = None if taken is not None else [*step.prior, step.action]
    prior = step.prior if isinstance(step.prior, Prior) else Prior(step.prior, "stored")
    decision: object = policy.decide(step.state, prior, admissible=admissible, task=task, step=index, seed=seed)
    if not isinstance(decision, Decision):
        raise InputError(f"policy {policy.name!r} decided {excerpt(decision)}", "it returns a Decision", _MAKE)
    return ReplayedStep(step, decision, None, _probability(decision, step.action), memory_only=taken is None)


def _probability(decision: Decision, action: str) -> float:
    """With which probability the decision's policy takes `action`; one that took the likeliest took it for certain."""
    key = normalize_action(action)
    if decision.propensity == 1.0:
        return float(normalize_action(decision.action) == key)
    return next((p for known, p in decision.probs.items() if normalize_action(known) == key), 0.0)
