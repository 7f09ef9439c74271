"""Past steps in the prompt of an arm: shown, noted, and without weight in the shift of the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seasoned.agents.loop.arm import Arm, InformedReader
from seasoned.agents.loop.episode import play_episode
from seasoned.agents.loop.step_log import AnnotatedLog, EpisodeLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.agents.react.prompt_evidence import DiscountedEvidence
from seasoned.policies import ModelAlone
from seasoned.policies.examples import ExampleMemory
from seasoned.protocols import Admissible, Chooser, Environment, EvidenceSource, Policy, PriorReader
from seasoned.types import Decision

__all__ = ["SHOWN", "DiscountedPolicy", "example_arm"]

SHOWN = "shown"
"""The kind of the notes: `examples`, `mode` and `purpose`; curation by value follows from them."""


@dataclass(frozen=True)
class DiscountedPolicy:
    """A policy whose shift gives no weight to the steps in the prompt, so that none counts twice.

    Args:
        policy: makes the policy over evidence.
        memory: what is asked.
        knowledge: knows what the last prompt of this episode showed.
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
        """Return the decision, shifted as far as it rests on what was not shown; see `seasoned.protocols.Policy`."""
        shown = {place for example in self.knowledge.last_examples for place in example.places}
        policy = self.policy(DiscountedEvidence(self.memory, shown) if shown else self.memory)
        return policy.decide(state, candidates, admissible=admissible, task=task, step=step, seed=seed)


def example_arm(
    reader: PriorReader,
    knowledge: ExampleMemory,
    memory: EvidenceSource | None = None,
    policy: Callable[[EvidenceSource], Policy] | None = None,
) -> Arm:
    """Return an arm that shows past steps before the state, and notes beside each step which they were.

    Args:
        reader: reads the model's policy.
        knowledge: finds what is shown; over the memory that stores the arm's episodes.
        memory, policy: with both, the policy is shifted too, by the steps that were not shown (`DiscountedPolicy`).
    """
    decides: Policy = ModelAlone() if policy is None or memory is None else DiscountedPolicy(policy, memory, knowledge)
    mode = "prompt" if policy is None or memory is None else "both"

    def about(decision: Decision | str) -> Iterable[tuple[str, Mapping[str, Any]]]:
        del decision
        shown = [list(place) for place in knowledge.last_shown]
        return [(SHOWN, {"examples": shown, "mode": mode, "purpose": "act"})] if shown else []

    async def play(
        environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        knowledge.begin()
        return await play_episode(environment, policy, reader, AnnotatedLog(log, about), seed=seed)

    return Arm(decides, InformedReader(reader, knowledge), play, knowledge.learn)
