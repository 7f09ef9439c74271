"""Memory protocols of examples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Experience, Note, RecallQuery
from seasoned.types.impression import Impression, PeerComparison
from seasoned.types.recall import Recall

__all__ = ["ExampleSource", "MomentSource"]


@runtime_checkable
class MomentSource(Protocol):
    """Recalls the moments that fit a query: a `seasoned.Memory`, or `VectorRecall`."""

    def recall(self, query: RecallQuery) -> Recall:
        """Return moments that fit a query of several keys; see `Memory.recall`."""
        ...


@runtime_checkable
class ExampleSource(MomentSource, Protocol):
    """The methods of a `seasoned.Memory` that examples call."""

    gamma: float
    encoder: StateEncoder

    def experiences(
        self, places: Collection[tuple[str, int]], *, gamma: float | None = None
    ) -> dict[tuple[str, int], Experience]:
        """Return stored steps by reference."""
        ...

    def median_return(self, *, gamma: float | None = None) -> float | None:
        """Return the namespace's median return."""
        ...

    def impressions(
        self,
        places: Collection[tuple[str, int]] | None,
        *,
        alike: bool = False,
        gamma: float | None = None,
        exclude_task: str | None = None,
        most: int | None = None,
    ) -> list[Impression]:
        """Return the steps at which these steps were shown; with None, of all that were shown."""
        ...

    def peer_comparisons(
        self, places: Collection[tuple[str, int]], *, gamma: float | None = None, exclude_task: str | None = None
    ) -> dict[tuple[str, int], PeerComparison]:
        """Return each step's return, and the mean return of the other steps at its distinct state."""
        ...

    def peer_returns(
        self,
        places: Collection[tuple[str, int]],
        *,
        gamma: float | None = None,
        exclude_task: str | None = None,
        most: int = 256,
    ) -> dict[tuple[str, int], list[tuple[str, float]]]:
        """Return the latest other steps at the distinct state of each step, as (episode id, return)."""
        ...

    def feedback_totals(self, episode_ids: Collection[str]) -> dict[str, dict[str, float]]:
        """Return the sum of unrevoked feedback by episode and source."""
        ...

    def step_feedback(
        self, episode_ids: Collection[str], *, but_sources: Collection[str] = ()
    ) -> dict[str, dict[int, list[float]]]:
        """Return the weighted amount of each unrevoked feedback, by episode and step."""
        ...

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode."""
        ...

    def notes(self, *, kind: str | None = None, episode_id: str | None = None) -> list[Note]:
        """Return unrevoked notes, in order."""
        ...

    def note(
        self,
        episode_id: str,
        kind: str,
        body: Mapping[str, Any],
        *,
        step: int | None = None,
        source: str = "agent",
        author: str | None = None,
    ) -> str:
        """Append a note, and return its id."""
        ...
