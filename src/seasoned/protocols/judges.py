"""Judges of finished episodes: the protocols, and the judgement of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from seasoned.protocols.models import Usage
from seasoned.types import Episode

__all__ = ["Judge", "Judgement", "ModelJudge"]


@runtime_checkable
class Judge(Protocol):
    """Scores the steps of a finished episode."""

    @property
    def source(self) -> str:
        """The judge's name, recorded with every reward it gives."""
        ...

    def score(self, episode: Episode) -> Mapping[int, float]:
        """Return rewards by step index; a step without an entry gets none."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's complete scores of one finished episode, and the cost of the model calls.

    Args:
        source: recorded with every reward.
        rewards: by step index, in reward units.
        weights: by step index, in (0, 1]: the weight of each reward; for the same steps.
        votes: by step index, the value of each vote, where votes were taken.
        usage: of the model; replies that were refused are included.
    """

    source: str
    rewards: Mapping[int, float]
    weights: Mapping[int, float]
    votes: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class ModelJudge(Protocol):
    """Scores the steps of a finished episode by calls to a model, asynchronously."""

    @property
    def source(self) -> str:
        """The judge's name, recorded with every reward it gives."""
        ...

    async def judge(self, episode: Episode) -> Judgement:
        """Return the complete judgement, or raise a ModelError; a partial judgement is never returned."""
        ...
