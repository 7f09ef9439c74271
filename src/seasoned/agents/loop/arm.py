"""An arm of a comparison: how it decides, how it plays an episode, and what it learns when one has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from seasoned.agents.loop.episode import play_episode
from seasoned.agents.loop.step_log import EpisodeLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.protocols import Chooser, Environment, Policy, PriorReader, PriorReading, Usage
from seasoned.types import Episode

__all__ = ["Arm", "InformedReader", "Learn", "Play", "PromptMemory"]


class Play(Protocol):
    """Plays one episode and records it; `play_episode` is one."""

    def __call__(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> Awaitable[EpisodeResult]:
        """Return how the episode went; its executed steps are in `log`."""
        ...


Learn = Callable[[Episode], Awaitable[Usage]]
"""Told of every finished episode, in order; returns what the model was asked for it. What an arm knows is a function of
the episodes that it was told of (and the model's answers), so that a run that was broken off is made up by telling it
again."""


class PromptMemory(Protocol):
    """Knowledge that is read rather than weighed: it puts text before the state."""

    def context(self, state: str, task: str) -> str:
        """Return what precedes the state in the prompt; an empty text for nothing."""
        ...

    async def learn(self, episode: Episode) -> Usage:
        """Take in a finished episode; return what the model was asked for it."""
        ...


@dataclass(frozen=True)
class InformedReader:
    """Reads a model's own policy with a prompt memory's text before the state.

    Args:
        reader: reads the policy.
        memory: says what precedes the state.
    """

    reader: PriorReader
    memory: PromptMemory

    @property
    def name(self) -> str:
        """The model's name."""
        return self.reader.name

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return the model's policy over `candidates`; see `seasoned.protocols.PriorReader`."""
        context = self.memory.context(state, task)
        return await self.reader.read(f"{context}\n{state}" if context else state, task, candidates)


@dataclass(frozen=True)
class Arm:
    """One way to act and to learn, ready to be run.

    Args:
        policy: decides.
        reader: gives the model's own policy, with what the arm puts into the prompt.
        play: plays one episode; more than one where the arm tries again.
        learn: told of every finished episode; None where the memory that stores it is all that learns.
    """

    policy: Policy
    reader: PriorReader | Chooser
    play: Play = play_episode
    learn: Learn | None = None
