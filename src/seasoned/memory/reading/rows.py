"""Rows that readers return."""

from __future__ import annotations

from typing import Any, NamedTuple

from seasoned.types import Episode

__all__ = ["EvidenceRow", "LatestStep", "RecentReturn", "StepCell", "StepPrior", "StoredEpisode"]


class EvidenceRow(NamedTuple):
    """The sums over the steps of one action at one distinct state, weighed as of the episode `ordinal`."""

    set_id: int
    key_id: int
    n_steps: int
    weight: float
    total: float
    squares: float
    ordinal: int


class StepCell(NamedTuple):
    """A step and its cell of the evidence: distinct state and action."""

    visit: int
    set_id: int
    key_id: int


class LatestStep(NamedTuple):
    """A recent step at a distinct state: its visit, the key of its action or the id of its episode, its return."""

    visit: int
    key: Any
    return_: float


class RecentReturn(NamedTuple):
    """The return of a live step, and its task, `""` where it was not read."""

    visit: int
    return_: float
    task: str


class StepPrior(NamedTuple):
    """A live step, its action, and the model's logprobs as they are stored: JSON."""

    visit: int
    action: str
    logprobs: str


class StoredEpisode(NamedTuple):
    """An episode as it is stored; the ordinal is negative while it is pending."""

    ordinal: int
    created_at: float
    digest: bytes
    episode: Episode
