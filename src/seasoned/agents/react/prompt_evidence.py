"""Evidence behind the examples in a prompt: the memory's protocol, discounted evidence, and an arm with examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from seasoned.agents.loop.arm import Arm, InformedReader
from seasoned.agents.loop.episode import play_episode
from seasoned.agents.loop.step_log import AnnotatedLog, EpisodeLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.policies import ModelAlone
from seasoned.policies.examples import ExampleMemory
from seasoned.protocols import Admissible, Chooser, Environment, EvidenceSource, Policy, PriorReader
from seasoned.types import SHOWN, Decision, Evidence, EvidenceQuery, ShownBody

__all__ = ["DiscountedEvidence", "DiscountedPolicy", "example_arm"]


@dataclass(frozen=True)
class DiscountedEvidence:
    """A memory's evidence in which the steps shown in a prompt inform the estimate, and add no weight to the shift.

    The model's own policy already follows the steps in its prompt, and a shift by the same steps would count them
    twice. With n stored steps of an action, s of them shown, a policy shifts by `beta * A * (n - s) / n`. A is
    estimated from all n steps: the shown steps were chosen for their high returns, so the rest alone would
    underestimate the action.

    Args:
        memory: the source of evidence.
        steps: (episode id, step) of the shown steps.
    """

    memory: EvidenceSource
    steps: Collection[tuple[str, int]]

    def evidence(self, query: EvidenceQuery) -> Evidence:
        """Return the evidence of all steps, with the number that were not shown; see `EvidenceSource`."""
        return self.memory.evidence(replace(query, shown_steps=frozenset((*self.steps, *query.shown_steps))))


@dataclass(frozen=True)
class DiscountedPolicy:
    """A policy whose shift gives no weight to the steps in the prompt, so that none counts twice.

    Args:
        policy: makes the policy over evidence; see `DiscountedEvidence`.
        memory: the source of evidence.
        knowledge: the examples in the last prompt of this episode.
    """

    policy: Callable[[EvidenceSource], Policy]
    memory: EvidenceSource
    knowledge: ExampleMemory

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.policy(self.memory).name

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
        """Return the decision on discounted evidence; see `seasoned.protocols.Policy`."""
        shown = {place for example in self.knowledge.last_examples for place in example.places}
        policy = self.policy(DiscountedEvidence(self.memory, shown) if shown else self.memory)
        return policy.decide(state, candidates, admissible=admissible, task=task, step=step, seed=seed)


def example_arm(
    reader: PriorReader,
    knowledge: ExampleMemory,
    memory: EvidenceSource | None = None,
    policy: Callable[[EvidenceSource], Policy] | None = None,
) -> Arm:
    """Return an arm that puts past steps before the state, and notes them at each step.

    Args:
        reader: reads the model's policy.
        knowledge: retrieves the past steps, from the memory that stores the arm's episodes.
        memory, policy: with both, the policy is shifted too, by the steps that were not shown (`DiscountedPolicy`).
    """
    deciding_policy: Policy = ModelAlone()
    if policy is not None and memory is not None:
        deciding_policy = DiscountedPolicy(policy, memory, knowledge)
    mode = "prompt" if policy is None or memory is None else "both"

    def impression_notes(decision: Decision | str) -> Iterable[tuple[str, Mapping[str, Any]]]:
        del decision
        shown = tuple(knowledge.last_shown)
        return [(SHOWN, ShownBody(shown, mode).record())] if shown else []

    async def play(
        environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        knowledge.begin()
        return await play_episode(environment, policy, reader, AnnotatedLog(log, impression_notes), seed=seed)

    return Arm(deciding_policy, InformedReader(reader, knowledge), play, knowledge.learn)
