"""Arm of a comparison: its policy, its reader, its way to play an episode, and its learning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from seasoned.agents.loop.episode import play_episode
from seasoned.agents.loop.step_log import EpisodeLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.protocols import Chooser, Environment, Policy, PriorReader, PriorReading, Usage
from seasoned.protocols.template_marks import EscapedText, escape_marks
from seasoned.types import Episode

__all__ = ["Arm", "InformedReader", "Learn", "Play", "PromptMemory"]


class Play(Protocol):
    """Plays one episode and records it, as `play_episode` does."""

    def __call__(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> Awaitable[EpisodeResult]:
        """Return the result of the episode; its executed steps are in `log`."""
        ...


Learn = Callable[[Episode], Awaitable[Usage]]
"""Called with every finished episode, in order; returns the usage of the model. An arm's knowledge is a function of
these episodes (and of the model's answers), so that a resumed run restores it by the same calls."""


class PromptMemory(Protocol):
    """Knowledge as text before the state in a prompt."""

    def context(self, state: str, task: str) -> str:
        """Return the text before the state; empty for none."""
        ...

    async def learn(self, episode: Episode) -> Usage:
        """Learn from a finished episode; return the usage of the model."""
        ...


@dataclass(frozen=True)
class InformedReader:
    """Reads a model's own policy with a prompt memory's text before the state.

    Args:
        reader: reads the policy.
        memory: returns the text before the state.
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
        text = EscapedText(f"{context}\n{escape_marks(state)}") if context else state  # the context is escaped
        return await self.reader.read(text, task, candidates)


@dataclass(frozen=True)
class Arm:
    """A way to act and to learn, for `play_run`.

    Args:
        policy: decides.
        reader: reads the model's own policy, with the arm's text in the prompt.
        play: plays one episode, or several attempts at it.
        learn: called with every finished episode; None if only the memory that stores it learns.
    """

    policy: Policy
    reader: PriorReader | Chooser
    play: Play = play_episode
    learn: Learn | None = None
