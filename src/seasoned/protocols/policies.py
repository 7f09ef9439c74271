"""Policies: the protocol, and the actions that they may add to the candidates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal, Protocol, runtime_checkable

from seasoned.types import Decision

__all__ = ["Admissible", "Policy"]

Admissible = Collection[str] | Callable[[str], bool] | Literal["any"] | None
"""The actions that may be taken now. None: the candidates are complete. Otherwise a policy may add actions from memory:
those in the collection, those that pass the predicate, or with "any" all of them."""


@runtime_checkable
class Policy(Protocol):
    """Chooses an action from the model's own logprobs over candidates."""

    @property
    def name(self) -> str:
        """The policy's name, recorded with each decision and episode."""
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
