"""One way to any judge: ask it, and give a memory what it said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from seasoned.checks import check_number, check_reward, check_text
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.protocols import Judge, Judgement, ModelJudge
from seasoned.types import Episode

__all__ = ["FeedbackMemory", "add_judgement", "check_judgement", "judge_episode"]


class FeedbackMemory(Protocol):
    """What takes rewards; see `seasoned.Memory.feedback`."""

    def feedback(self, episode_id: str, feedback: float, step: int | None, source: str, *, weight: float) -> str:
        """Add `weight * reward` to a step's reward."""
        ...

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode."""
        ...


async def judge_episode(judge: Judge | ModelJudge, episode: Episode) -> Judgement:
    """Return what a judge says of a finished episode; a rule's rewards count in full, and cost nothing.

    Raises:
        ModelError: a model was asked, and gave no judgement.
        InputError: what the judge raises.

    Example:
        >>> import asyncio
        >>> from seasoned.judges import Rule, RuleJudge
        >>> from seasoned.types import Step
        >>> judge = RuleJudge([Rule("paid", {"action": "pay"}, 1.0)])
        >>> asyncio.run(judge_episode(judge, Episode("buy", [Step("cart", "pay")]))).weights
        {0: 1.0}
    """
    if isinstance(judge, ModelJudge):
        return await judge.judge(episode)
    rewards = dict(judge.score(episode))
    return Judgement(judge.source, rewards, dict.fromkeys(rewards, 1.0))


def check_judgement(judgement: object) -> Judgement:
    """Return `judgement` if a memory could take all of it: rewards and weights are numbers, for the same steps.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_judgement(Judgement("tests", {0: 1.0}, {0: 0.5})).source
        'tests'
    """
    if not isinstance(judgement, Judgement):
        raise InputError(f"judgement = {excerpt(judgement)}", "it is a Judgement", "Ask a judge: judge_episode(...).")
    check_text("source", judgement.source)
    rewards, weights = judgement.rewards, judgement.weights
    if not isinstance(rewards, Mapping) or not isinstance(weights, Mapping) or set(rewards) != set(weights):
        raise InputError(
            f"rewards = {excerpt(rewards)}, weights = {excerpt(weights)}",
            "both map steps to numbers, the same steps",
            "Use the weight 1 for a reward that counts in full.",
        )
    for step, reward in rewards.items():
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise InputError(f"step = {excerpt(step)}", "a step is named by its index", "Count from 0.")
        weight = check_number(f"weight of step {step}", weights[step])
        check_reward(f"weighted reward of step {step}", check_reward(f"reward of step {step}", reward) * weight)
    return judgement


def add_judgement(memory: FeedbackMemory, episode_id: str, judgement: Judgement) -> list[str]:
    """Store a judgement as feedback, a step an event, and return the events' ids; the same source supersedes.

    All of it is checked against the stored episode first: if a part is refused, nothing is written. Where the store
    itself fails midway, give the judgement again: what was written is superseded.

    Raises:
        InputError: it is no judgement, or a value breaks a rule.
        NotFoundError: no such episode, or one of the steps is not its.
        StoreError: as for `Memory.feedback`.
    """
    check_judgement(judgement)
    n_steps = len(memory.get(episode_id).steps)
    for step in judgement.rewards:
        if not 0 <= step < n_steps:
            raise NotFoundError(
                f"step {step} of episode {excerpt(episode_id)}",
                f"it has {n_steps} steps, counted from 0",
                "Give each judgement to the episode that it is of; nothing was written.",
            )
    return [
        memory.feedback(episode_id, reward, step, judgement.source, weight=judgement.weights[step])
        for step, reward in judgement.rewards.items()
    ]
