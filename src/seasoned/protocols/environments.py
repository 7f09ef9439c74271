"""What an agent acts in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["DelayedFeedback", "Environment", "Observation", "TrulyScored"]


@dataclass(frozen=True, slots=True)
class Observation:
    """What an environment shows after `reset` or `step`.

    Args:
        state: what the agent sees, as text.
        admissible: the actions that are possible now, or None where the environment cannot say.
        reward: what the last action earned; 0 after reset.
        terminated: the task is over (won, lost, done).
        truncated: a limit cut it off.
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
    """A task that can be played again and again."""

    @property
    def name(self) -> str:
        """The specification that makes it again, such as `textworld:cooking?seed=3`."""
        ...

    @property
    def task(self) -> str:
        """What is attempted, in words; shown to the model and stored with each episode."""
        ...

    @property
    def max_score(self) -> float | None:
        """The best possible score, where it is known."""
        ...

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode."""
        ...

    async def step(self, action: str) -> Observation:
        """Take an action; EnvError before `reset`, after the end, or for an action that is not admissible."""
        ...

    async def aclose(self) -> None:
        """Release what it holds."""
        ...


@runtime_checkable
class DelayedFeedback(Protocol):
    """What an environment has, beside the `Environment` protocol, whose rewards arrive after later steps."""

    def feedback(self) -> tuple[tuple[int, float], ...]:
        """Return, by step, what to add to its recorded reward so that each reward counts where it was earned.

        The recorded reward of a step is that of its observation; the corrections add up to 0. Call it after the
        episode, or in the middle for what has arrived by then: a later call's value for a step replaces an earlier
        one's.
        """
        ...


@runtime_checkable
class TrulyScored(Protocol):
    """What an environment has, beside the `Environment` protocol, whose rewards are not the truth: for reports."""

    @property
    def true_score(self) -> float:
        """What the episode so far is worth, which the agent that plays it is never told."""
        ...
