"""What examples ask of a memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Experience, Note
from seasoned.types.impression import Impression, PeerComparison
from seasoned.types.recall import Recall

__all__ = ["ExampleSource", "MomentSource"]


class MomentSource(Protocol):
    """A way to recall the moments that fit a query: a `seasoned.Memory`, or `VectorRecall`."""

    def recall(
        self,
        texts: Mapping[str, str],
        *,
        pool: int,
        whole: bool,
        gamma: float | None,
        exclude_task: str | None,
        with_feedback_totals: bool,
    ) -> Recall:
        """Return moments that fit under several keys; see `Memory.recall`."""
        ...


class ExampleSource(MomentSource, Protocol):
    """A `seasoned.Memory`, as far as examples need one."""

    gamma: float
    encoder: StateEncoder

    def experiences(
        self, places: Collection[tuple[str, int]], *, gamma: float | None = None
    ) -> dict[tuple[str, int], Experience]:
        """Return stored steps by their places."""
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
        """Return at which steps some were shown."""
        ...

    def peer_comparisons(
        self, places: Collection[tuple[str, int]], *, gamma: float | None = None, exclude_task: str | None = None
    ) -> dict[tuple[str, int], PeerComparison]:
        """Return steps' returns beside those of the others at their distinct states."""
        ...

    def peer_returns(
        self,
        places: Collection[tuple[str, int]],
        *,
        gamma: float | None = None,
        exclude_task: str | None = None,
        most: int = 256,
    ) -> dict[tuple[str, int], list[tuple[str, float]]]:
        """Return the latest others at the distinct states of some steps: whose each is, and its return."""
        ...

    def feedback_totals(self, episode_ids: Collection[str]) -> dict[str, dict[str, float]]:
        """Return by episode and source what unrevoked feedback adds up to."""
        ...

    def step_feedback(
        self, episode_ids: Collection[str], *, but_sources: Collection[str] = ()
    ) -> dict[str, dict[int, list[float]]]:
        """Return by episode and step what each unrevoked feedback counts."""
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
