"""Impressions: steps at which stored steps were shown, and their returns compared with their peers'."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Impression", "PeerComparison"]


@dataclass(frozen=True, slots=True)
class PeerComparison:
    """A stored step's return, compared with the other steps at its distinct state; in reward units.

    Args:
        return_: of the step.
        n_others: the number of the other steps.
        others_mean: their mean return; None if there are none.
    """

    return_: float
    n_others: int
    others_mean: float | None


@dataclass(frozen=True, slots=True)
class Impression:
    """An impression: a stored step was shown at another step.

    Args:
        example: the queried step; it, or another one with the same state and action, was shown.
        place: the step at which it was shown.
        share: its share of the steps shown there, in (0, 1].
        peers: the return at `place`, compared with the other steps at that state.
    """

    example: tuple[str, int]
    place: tuple[str, int]
    share: float
    peers: PeerComparison
