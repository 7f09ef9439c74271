"""Reports of an agent: events of steps, results of episodes, and verifications."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.checks import check_flag, check_instance, check_reward, check_text
from seasoned.errors import InputError
from seasoned.policies.examples.query import Purpose
from seasoned.protocols import Completion, Message, Observation, Usage
from seasoned.types import Decision, Episode

__all__ = [
    "AgentMode",
    "AgentResult",
    "ModelCall",
    "OnStep",
    "PromptImpression",
    "Purpose",
    "StepEvent",
    "Verify",
    "VerifyResult",
    "check_verify_result",
]

AgentMode = Literal["none", "prompt", "logits", "both"]
"""Use of the memory: none, examples in the prompt, a shift of the policy, or both."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of the model.

    Args:
        purpose: plan, reason or act; reasoning and acting in one call is `act`.
        messages: of the request; if a reader asked, the text that it got as the state.
        reply: of the model; None if a reader asked, or if there was no usable answer.
        fault: reason why the reply could not be used; None if it could.

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
    """Past steps in a prompt, as (episode id, step).

    Args:
        purpose: of the prompt.
        examples: the retrieved steps, one an example; they are credited with the rewards that follow.
        steps: these and their windows: every stored step in the prompt.

    Example:
        >>> PromptImpression("act", (("e1", 1),), (("e1", 0), ("e1", 1), ("e1", 2))).purpose
        'act'
    """

    purpose: Purpose
    examples: tuple[tuple[str, int], ...]
    steps: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class StepEvent:
    """One executed step, with the model calls and the decision behind it.

    Args:
        step: its index.
        task: of the environment.
        seed: of the episode; None if there is none.
        learns: whether the episode will be stored.
        before: the observation before the action.
        plan, reasoning: of the model; None if it was not asked, or gave none.
        model_calls: of this step, in order; those of the first step begin with the plan's.
        impressions: the past steps in the prompts of this step.
        decision: of the policy, with its numbers; None if the reply is the action.
        action: the executed action.
        after: the observation after the action, with the reward.
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
"""Called after every step, and awaited if it is async. An exception in it aborts the episode."""


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Outcome of a check of a finished episode.

    Args:
        success: whether the task was done; without `reward`, the reward is +1 or -1.
        reward: in reward units.
        source: recorded with the reward.

    Raises:
        InputError: neither `success` nor `reward`, a reward that is not a finite number, or a blank source.

    Example:
        >>> VerifyResult(success=False, source="tests").reward
        -1.0
    """

    success: bool | None = None
    reward: float | None = None
    source: str = "verification"

    def __post_init__(self) -> None:
        check_text("source", self.source)
        if self.success is not None:
            check_flag("success", self.success)
        if self.reward is None:
            if self.success is None:
                raise InputError(
                    "success = None, reward = None",
                    "a verification has a success or a reward",
                    "Return None if the check is not possible.",
                )
            object.__setattr__(self, "reward", 1.0 if self.success else -1.0)
        object.__setattr__(self, "reward", check_reward("reward", self.reward))


def check_verify_result(value: object) -> VerifyResult:
    """Return the value that a check returned, if it is a `VerifyResult`.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_verify_result(VerifyResult(success=True)).reward
        1.0
    """
    return check_instance(
        "result of verify",
        value,
        VerifyResult,
        "verify must return a VerifyResult, or None",
        "Return VerifyResult(success=True), for example.",
    )


Verify = Callable[[Episode], Awaitable[VerifyResult | None] | VerifyResult | None]
"""Checks a finished episode; awaited if it is async. It returns None if it cannot check it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult(EpisodeResult):
    """Result of an agent's episode: the fields of `EpisodeResult`, and these.

    An aborted episode has the ending `aborted`, its `error`, and the score and usage so far.

    Args:
        episode: the whole episode, without priors, which the memory stores.
        episode_id: in the memory; None if nothing was stored.
        seed: of the episode.
        plan: of the model.
        usage_by: usage of `plan`, `reason` and `act`, where the model was asked for them.
        example_steps: number of steps with past steps in a prompt.
        verification: of `verify`; None if it returned none, or was not set.
        verify_error: error of `verify`; nothing was stored then.
        error: error that aborted the episode.
        close_error: error of closing the environment after the episode; the other fields are unaffected.
    """

    episode: Episode | None = None
    episode_id: str | None = None
    seed: int | None = None
    plan: str | None = None
    usage_by: Mapping[Purpose, Usage]
    example_steps: int = 0
    verification: VerifyResult | None = None
    verify_error: Exception | None = None
    error: Exception | None = None
    close_error: Exception | None = None
