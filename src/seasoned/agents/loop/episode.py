"""One episode: observe, ask the model, decide, act, record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seasoned.agents.loop.observation_check import observed
from seasoned.agents.loop.usage_meter import count
from seasoned.checks import check_number
from seasoned.errors import EnvError, InputError
from seasoned.policies import decide_inside
from seasoned.protocols import Chooser, DelayedFeedback, Environment, Policy, PriorReader, Proposer, TrulyScored, Usage
from seasoned.types import Decision, Ending, Step

__all__ = ["EpisodeResult", "StepLog", "episode_seed", "play_episode"]


@dataclass
class StepLog:
    """The executed steps so far; what a recorder of a memory also offers."""

    ending: Ending = "terminated"
    final_state: str | None = None
    taken: list[Step] = field(default_factory=list)

    def record(self, state: str, decision: Decision | str, reward: float = 0.0) -> None:
        """Add an executed step."""
        action = decision.action if isinstance(decision, Decision) else decision
        self.taken.append(Step(state, action, reward))

    @property
    def steps(self) -> Sequence[Step]:
        """What was recorded so far."""
        return tuple(self.taken)


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """How an episode went.

    Args:
        score: in the environment's points; its true score, where its rewards are not the truth.
        max_score: the best possible, where it is known.
        steps: executed steps.
        ending: terminated or truncated.
        flips: steps at which the action most likely with memory was not (among) the most likely without.
        kl_nats: what memory spent, summed over the steps.
        memory_steps: steps at which memory shifted the policy.
        decision_s: time spent deciding (encode, retrieve, estimate, modulate), in seconds; 0 where the model chose.
        seconds: the whole episode.
        usage: of the model, and of the judges that asked one.
        late_rewards: by step, what to add to its reward, where rewards arrive after later steps.
        environment_s: time spent in the environment, in seconds.
    """

    score: float
    max_score: float | None
    steps: int
    ending: Ending
    flips: int
    kl_nats: float
    memory_steps: int
    decision_s: float
    seconds: float
    usage: Usage
    late_rewards: tuple[tuple[int, float], ...] = ()
    environment_s: float = 0.0


def episode_seed(run_seed: int, episode: int) -> int:
    """Return the seed of one episode of a run: different for each, the same every time.

    Example:
        >>> episode_seed(0, 1) == episode_seed(0, 1) != episode_seed(0, 2)
        True
    """
    return int(np.random.SeedSequence([run_seed, episode]).generate_state(1)[0])


async def play_episode(
    environment: Environment,
    policy: Policy,
    reader: PriorReader | Chooser,
    log: StepLog,
    *,
    seed: int,
    decision_seed: int | None = None,
) -> EpisodeResult:
    """Play one episode to its end, recording each executed step in `log`.

    The caller opens and commits the log: with a memory's recorder, what was played survives an exception as an aborted
    episode, and nothing of the running episode can be retrieved.

    Args:
        environment: offers named actions, or takes any text.
        policy: decides.
        reader: gives the model's own policy over the admissible actions, or has the model choose under the shifts.
            Where any text is taken, a `Proposer` names actions, and memory adds those it has seen.
        log: a memory's recorder, or a `StepLog`.
        seed: of the environment, and of every decision.
        decision_seed: of every decision instead; for another try at the same instance.

    Raises:
        EnvError: `reset` or `step` is not async, or returns no `Observation`; the environment does not name its
            actions, and the reader proposes none; or a reward or a score of it is not a finite number.
    """
    began = time.perf_counter()
    usage = Usage()
    flips = memory_steps = step = 0
    kl_nats = decision_s = 0.0
    decision_seed = seed if decision_seed is None else decision_seed
    seen = await observed(environment, "reset", environment.reset(seed=seed))
    environment_s = time.perf_counter() - began
    while not (seen.terminated or seen.truncated):
        await asyncio.sleep(0)  # so that Ctrl-C is heard even where no model or environment makes us wait
        here: dict[str, Any] = {"task": environment.task, "step": step, "seed": decision_seed}
        if seen.admissible is None and isinstance(reader, Proposer):
            reading = await reader.propose(seen.state, environment.task)
            spent, asked = reading.usage, time.perf_counter()
            decision = policy.decide(seen.state, reading.prior, admissible="any", **here)
            decision_s += time.perf_counter() - asked
        elif not seen.admissible:
            raise EnvError(
                f"{environment.name}: no admissible actions",
                "this loop chooses among named actions, or among what a reader's `propose` names",
                "Name them, or pass a VotesReader with a rule for what is an action.",
            )
        elif isinstance(reader, Chooser):
            decision, spent = await decide_inside(
                policy, reader, seen.state, seen.admissible, admissible=seen.admissible, **here
            )
        else:
            reading = await reader.read(seen.state, environment.task, seen.admissible)
            spent, asked = reading.usage, time.perf_counter()
            decision = policy.decide(seen.state, reading.prior, admissible=seen.admissible, **here)
            decision_s += time.perf_counter() - asked
        usage += spent
        count(spent)
        acted = time.perf_counter()
        following = await observed(environment, "step", environment.step(decision.action))
        environment_s += time.perf_counter() - acted
        _number(environment, "reward", following.reward)
        log.record(seen.state, decision, following.reward)
        likeliest = max(decision.probs, key=decision.probs.__getitem__)
        flips += decision.base_probs[likeliest] < max(decision.base_probs.values())
        kl_nats += decision.kl_nats
        memory_steps += decision.mode == "memory"
        seen, step = following, step + 1
    log.ending = "terminated" if seen.terminated else "truncated"
    log.final_state = seen.state
    score = _number(
        environment, "score", environment.true_score if isinstance(environment, TrulyScored) else seen.score
    )
    late = environment.feedback() if isinstance(environment, DelayedFeedback) else ()
    for _, reward in late:
        _number(environment, "late reward", reward)
    return EpisodeResult(
        score,
        environment.max_score,
        step,
        log.ending,
        flips,
        kl_nats,
        memory_steps,
        decision_s,
        time.perf_counter() - began,
        usage,
        late,
        environment_s,
    )


def _number(environment: Environment, name: str, value: object) -> float:
    """A reward or a score, before it gets into a mean, a memory or a record, where NaN would spoil all the others."""
    try:
        return check_number(name, value)
    except InputError as error:
        raise EnvError(
            f"{environment.name}: {error.seen}", f"a {name} is a finite number", "Mend the environment."
        ) from error
