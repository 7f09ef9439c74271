"""What examples ask of a memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol

from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Evidence, Experience, Note
from seasoned.types.moment import Recall

__all__ = ["ExampleSource"]


class ExampleSource(Protocol):
    """A `seasoned.Memory`, as far as examples need one."""

    gamma: float
    encoder: StateEncoder

    def recall(
        self,
        texts: Mapping[str, str],
        *,
        pool: int = 16,
        whole: bool = False,
        gamma: float | None = None,
        exclude_task: str | None = None,
        with_credits: bool = False,
    ) -> Recall:
        """Return moments that fit under several keys."""
        ...

    def experiences(
        self, places: Collection[tuple[str, int]], *, gamma: float | None = None
    ) -> dict[tuple[str, int], Experience]:
        """Return stored steps by their places."""
        ...

    def median_return(self, *, gamma: float | None = None) -> float | None:
        """Return the namespace's median return."""
        ...

    def evidence(
        self,
        state: str,
        *,
        k: int,
        unit: Literal["steps", "states"],
        threshold: float,
        gamma: float | None = None,
        exclude_steps: Collection[tuple[str, int]] = (),
    ) -> Evidence:
        """Return what is known about the moments most like a state."""
        ...

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode."""
        ...

    def shown_after(self, position: tuple[int, int] = (0, 0)) -> tuple[tuple[int, int], list[Note], bool]:
        """Return where to go on, the notes of what was shown since a position, and whether these are all there are."""
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
