"""What memory knows of a step at which past steps were shown, and of what else happened at its state."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Impression", "PeerComparison"]


@dataclass(frozen=True, slots=True)
class PeerComparison:
    """A stored step's return beside those of the other steps at its distinct state, in reward units.

    Args:
        return_: its own.
        n_others: how many others there are.
        others_mean: the mean of theirs; None without others.
    """

    return_: float
    n_others: int
    others_mean: float | None


@dataclass(frozen=True, slots=True)
class Impression:
    """That a stored step was shown at another one.

    Args:
        example: which was asked for: it, or what is the same state and action, was shown.
        place: at which step.
        share: how much of what was shown there that is, in (0, 1].
        peers: what that step earned, beside the others at its state.
    """

    example: tuple[str, int]
    place: tuple[str, int]
    share: float
    peers: PeerComparison
