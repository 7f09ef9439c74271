"""Environments: the protocol, the observation, and the protocols of delayed rewards and of true scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["DelayedFeedback", "Environment", "Observation", "TrulyScored"]


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of `reset` or `step`.

    Args:
        state: the observation, as text.
        admissible: the actions that are possible now, or None if the environment does not know them.
        reward: of the last action; 0 after reset.
        terminated: the task is over (won, lost, done).
        truncated: a limit ended the episode.
        score: the episode's score so far, in the environment's points.
    """

    state: str
    admissible: tuple[str, ...] | None
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    score: float = 0.0


@runtime_checkable
class Environment(Protocol):
    """A task that can be played repeatedly."""

    @property
    def name(self) -> str:
        """The specification that makes the same environment, such as `textworld:cooking?seed=3`."""
        ...

    @property
    def task(self) -> str:
        """The task in words; shown to the model and stored with each episode."""
        ...

    @property
    def max_score(self) -> float | None:
        """The best possible score, or None if it is unknown."""
        ...

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode."""
        ...

    async def step(self, action: str) -> Observation:
        """Take an action; EnvError before `reset`, after the end, or for an action that is not admissible."""
        ...

    async def aclose(self) -> None:
        """Release processes, files and connections."""
        ...


@runtime_checkable
class DelayedFeedback(Protocol):
    """An addition to `Environment` for environments whose rewards arrive after later steps."""

    def feedback(self) -> tuple[tuple[int, float], ...]:
        """Return (step, correction) pairs: add each correction to the step's recorded reward to credit the right step.

        The recorded reward of a step is the reward of its observation. The corrections add up to 0. Call it after the
        episode, or during it for the rewards so far: a later call's correction of a step replaces an earlier one's.
        """
        ...


@runtime_checkable
class TrulyScored(Protocol):
    """An addition to `Environment` for environments whose rewards differ from the true score; for reports."""

    @property
    def true_score(self) -> float:
        """The true score of the episode so far; the agent never sees it."""
        ...
