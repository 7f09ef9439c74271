"""Encoders, memories, policies and judges: what learns from episodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from seasoned.protocols.models import Usage
from seasoned.types import Backup, Decision, Episode, Evidence

__all__ = ["Admissible", "EvidenceSource", "Judge", "Judgement", "ModelJudge", "Policy", "StateEncoder"]

Admissible = Collection[str] | Callable[[str], bool] | Literal["any"] | None
"""Which actions may be taken now. None: the candidates are all there is. A collection, a predicate or "any" lets memory
add the actions it has seen, where they pass."""


@runtime_checkable
class StateEncoder(Protocol):
    """Turns a state's text into the feature set that similarity compares. Deterministic, local, no model call."""

    @property
    def identity(self) -> str:
        """Names the encoder and every setting that changes a feature; stored with each namespace."""
        ...

    def features(self, state: str) -> frozenset[str]:
        """Return the feature set of `state`."""
        ...


@runtime_checkable
class EvidenceSource(Protocol):
    """What a policy asks of a memory."""

    def evidence(
        self,
        state: str,
        *,
        k: int,
        unit: Literal["steps", "states"],
        threshold: float,
        gamma: float | None,
        similarity_power: float = 0.0,
        decay: float = 1.0,
        exclude_task: str | None = None,
        backup: Backup | None = None,
        propensity_floor: float | None = None,
        shown_steps: Collection[tuple[str, int]] = (),
    ) -> Evidence:
        """Return what is known about the `k` steps (or distinct states) most like `state`.

        With `backup` the totals are of values backed up through the memory's graph. With `propensity_floor` a step
        weighs `1 / max(propensity, floor)`. `unshown` counts the steps
        that are none of `shown_steps`, given as (episode id, step); without these it may be None.
        """
        ...


@runtime_checkable
class Policy(Protocol):
    """Chooses an action from the model's own logprobs over candidates."""

    @property
    def name(self) -> str:
        """Recorded with each decision and episode."""
        ...

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
        """Return a decision with every number that led to it."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Scores the steps of a finished episode."""

    @property
    def source(self) -> str:
        """Recorded with every reward it gives."""
        ...

    def score(self, episode: Episode) -> Mapping[int, float]:
        """Return rewards by step index, for the steps that it has an opinion on."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said of one finished episode, whole, and what asking it cost.

    Args:
        source: recorded with every reward.
        rewards: by step index, in reward units.
        weights: by step index, in (0, 1]: how much each reward counts; for the same steps.
        votes: by step index, what each vote said, where votes were taken.
        usage: of the model; replies that were refused are in it.
    """

    source: str
    rewards: Mapping[int, float]
    weights: Mapping[int, float]
    votes: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class ModelJudge(Protocol):
    """Scores the steps of a finished episode by asking a model: a judge whose answer is waited for."""

    @property
    def source(self) -> str:
        """Recorded with every reward it gives."""
        ...

    async def judge(self, episode: Episode) -> Judgement:
        """Return the whole judgement; ModelError if there is none, never a part of it."""
        ...
