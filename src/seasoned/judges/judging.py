"""One way to any judge: ask it, and give a memory what it said."""

from __future__ import annotations

from typing import Protocol

from seasoned.protocols import Judge, Judgement, ModelJudge
from seasoned.types import Episode

__all__ = ["FeedbackMemory", "give_feedback", "judge_episode"]


class FeedbackMemory(Protocol):
    """What takes rewards; see `seasoned.Memory.feedback`."""

    def feedback(self, episode_id: str, reward: float, step: int | None, source: str, *, weight: float) -> str:
        """Add `weight * reward` to a step's reward."""
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


def give_feedback(memory: FeedbackMemory, episode_id: str, judgement: Judgement) -> list[str]:
    """Store a judgement as feedback, a step an event, and return the events' ids; the same source supersedes.

    Raises:
        NotFoundError, InputError, StoreError: as for `Memory.feedback`.
    """
    return [
        memory.feedback(episode_id, reward, step, judgement.source, weight=judgement.weights[step])
        for step, reward in judgement.rewards.items()
    ]
