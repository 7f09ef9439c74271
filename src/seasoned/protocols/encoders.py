"""State encoders: the protocol."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["StateEncoder"]


@runtime_checkable
class StateEncoder(Protocol):
    """Turns the text of a state into the feature set that similarity compares. Deterministic, local, no model call."""

    @property
    def identity(self) -> str:
        """The encoder and every setting that changes a feature; stored with each namespace."""
        ...

    def features(self, state: str) -> frozenset[str]:
        """Return the feature set of `state`."""
        ...
