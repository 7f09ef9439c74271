"""An agent as an arm of a comparison: the run opens the log, seeds the episodes and stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from seasoned.agents.loop.arm import Arm
from seasoned.agents.loop.step_log import EpisodeLog
from seasoned.agents.loop.step_runner import EpisodeResult, StepRunner
from seasoned.agents.react.agent_result import OnStep
from seasoned.agents.react.agent_settings import AgentSettings
from seasoned.agents.react.episode_trace import EpisodeTrace
from seasoned.agents.react.player import play
from seasoned.errors import InputError
from seasoned.protocols import Chooser, Environment, Policy, PriorReader, PriorReading

__all__ = ["arm_of"]


@dataclass(frozen=True)
class _ByReply:
    """Stands where an arm names its reader, for an agent whose action is its reply."""

    name: str

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Refuse."""
        raise InputError(
            f"read() of {self.name}", "this agent's action is its reply, not a policy", "Give the agent a reader."
        )


def arm_of(settings: AgentSettings, on_step: OnStep | None) -> Arm:
    """Return the arm; its notes go to a log that takes them."""

    async def play_one(
        environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        del policy, reader  # the agent has its own
        trace = EpisodeTrace(StepRunner(environment, log))
        return await play(settings, trace, seed=seed, learns=True, on_step=on_step)

    reader = settings.reader if settings.reader is not None else _ByReply(settings.llm.name)
    return Arm(settings.decides, cast(PriorReader, reader), play_one)
