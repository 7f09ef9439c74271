"""The states of stored episodes, as the encoder sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seasoned.protocols import StateEncoder
from seasoned.types import Episode

__all__ = ["States", "describe", "featured"]


@dataclass(frozen=True, slots=True)
class States:
    """The states of the episodes that count, as feature sets; one list per episode, in commit order."""

    texts: tuple[tuple[str, ...], ...]
    features: tuple[tuple[frozenset[str], ...], ...]


def describe(encoder: StateEncoder, episodes: Sequence[Episode]) -> States:
    """Return every step's state as text and as features."""
    return featured(encoder, tuple(tuple(step.state for step in episode.steps) for episode in episodes))


def featured(encoder: StateEncoder, texts: tuple[tuple[str, ...], ...]) -> States:
    """Return states, given as one tuple of texts per episode, with their features."""
    known: dict[str, frozenset[str]] = {}
    shared: dict[frozenset[str], frozenset[str]] = {}  # equal sets once: comparing them is then quick

    def features(text: str) -> frozenset[str]:
        if text not in known:
            found = encoder.features(text)
            known[text] = shared.setdefault(found, found)
        return known[text]

    return States(texts, tuple(tuple(features(text) for text in one) for one in texts))
