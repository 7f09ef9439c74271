"""What an agent reports: of a step, of an episode, and what a check said of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.checks import check_reward, check_text
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Completion, Message, Observation, Usage
from seasoned.types import Decision, Episode

__all__ = [
    "AgentResult",
    "Mode",
    "ModelCall",
    "OnStep",
    "PromptImpression",
    "Purpose",
    "StepEvent",
    "Verification",
    "Verify",
    "check_verification",
]

Mode = Literal["none", "prompt", "logits", "both"]
"""What memory does: nothing, examples in the prompt, the policy's shift, or both."""

Purpose = Literal["plan", "reason", "act"]
"""What a call is for; reasoning and acting in one call is `act`."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call as it was made.

    Args:
        purpose: what for.
        messages: what the model was shown; where a reader asked, the text that it was given as the state.
        reply: the model's; None where a reader asked, or where no answer could be used at all.
        fault: why the reply could not be used; None where it could.

    Example:
        >>> ModelCall("act", (Message("user", "Now: a kitchen"),)).fault is None
        True
    """

    purpose: Purpose
    messages: tuple[Message, ...]
    reply: Completion | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class PromptImpression:
    """Past steps that a prompt showed, (episode id, step) each.

    Args:
        purpose: of the prompt.
        examples: the steps that were found, one an example: what is credited with what follows.
        steps: these and their windows: every stored step that could be read.

    Example:
        >>> PromptImpression("act", (("e1", 1),), (("e1", 0), ("e1", 1), ("e1", 2))).purpose
        'act'
    """

    purpose: Purpose
    examples: tuple[tuple[str, int], ...]
    steps: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class StepEvent:
    """One executed step, with everything that led to it.

    Args:
        step: its index.
        task: what is attempted.
        seed: of the episode; None where there is none.
        learns: whether the episode will be stored.
        before: the observation before the action.
        plan, reasoning: what the model said; None where it was not asked, or gave none.
        model_calls: of this step, in order; the first step's begin with the plan's.
        impressions: the past steps in their prompts.
        decision: with every number, where a policy decided; None where the reply is the action.
        action: what was done.
        after: what followed, the reward in it.
        usage: of this step.
    """

    step: int
    task: str
    seed: int | None
    learns: bool
    before: Observation
    plan: str | None
    reasoning: str | None
    model_calls: tuple[ModelCall, ...]
    impressions: tuple[PromptImpression, ...]
    decision: Decision | None
    action: str
    after: Observation
    usage: Usage


OnStep = Callable[[StepEvent], Awaitable[object] | object]
"""Told of every step; waited for where it is async. An exception of it breaks the episode off."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check said of a finished episode.

    Args:
        success: whether the task was done; alone, it is the reward +1 or -1.
        reward: in reward units, in place of that.
        source: recorded with the reward.

    Raises:
        InputError: neither, a reward that is no finite number, or a blank source.

    Example:
        >>> Verification(success=False, source="tests").reward
        -1.0
    """

    success: bool | None = None
    reward: float | None = None
    source: str = "verification"

    def __post_init__(self) -> None:
        check_text("source", self.source)
        if self.success is not None and not isinstance(self.success, bool):
            raise InputError(f"success = {self.success!r}", "it is True, False or None", "Give a number as reward.")
        if self.reward is None:
            if self.success is None:
                raise InputError(
                    "success = None, reward = None", "a verdict says one of them", "Return None for no verdict."
                )
            object.__setattr__(self, "reward", 1.0 if self.success else -1.0)
        object.__setattr__(self, "reward", check_reward("reward", self.reward))


def check_verification(said: object) -> Verification:
    """Return what a check said, if it is a verdict.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_verification(Verification(success=True)).reward
        1.0
    """
    if not isinstance(said, Verification):
        raise InputError(
            f"verify returned {excerpt(said)}",
            "it returns a Verification, or None",
            "Return Verification(success=True), say.",
        )
    return said


Verify = Callable[[Episode], Awaitable[Verification | None] | Verification | None]
"""Checks a finished episode; waited for where it is async. None: it cannot say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult(EpisodeResult):
    """How an agent's episode went: `EpisodeResult`, and what an agent adds.

    An episode that broke off has the ending `aborted`, its `error`, and the score and the usage up to there.

    Args:
        episode: its steps, whole; without priors, which the memory keeps.
        episode_id: in the memory; None where nothing was stored.
        seed: of the episode.
        plan: what the model planned.
        usage_by: usage of `plan`, `reason` and `act`, where they were asked for.
        example_steps: steps at which past steps were shown.
        verdict: what the check said; None: nothing, or there is no check.
        verify_error: what the check raised; then nothing was recorded of it.
        error: what broke the episode off.
        close_error: what closing its environment raised, where it was closed after the episode; the rest is as played.
    """

    episode: Episode | None = None
    episode_id: str | None = None
    seed: int | None = None
    plan: str | None = None
    usage_by: Mapping[Purpose, Usage]
    example_steps: int = 0
    verdict: Verification | None = None
    verify_error: Exception | None = None
    error: Exception | None = None
    close_error: Exception | None = None
