"""Judgements of episodes: one call for every kind of judge, and storage as feedback."""

from __future__ import annotations

from collections.abc import Mapping

from seasoned.checks import check_instance, check_number, check_reward, check_text, check_whole
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.protocols import EpisodeMemory, Judge, Judgement, ModelJudge
from seasoned.types import Episode

__all__ = ["add_judgement", "check_judgement", "judge_episode"]


async def judge_episode(judge: Judge | ModelJudge, episode: Episode) -> Judgement:
    """Return the judgement of a finished episode; rewards of rules have weight 1 and no usage.

    Raises:
        ModelError: a model was asked, and gave no judgement.
        InputError: raised by the judge.

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
    """Return `judgement` if a memory can store it: rewards and weights are numbers, for the same steps.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_judgement(Judgement("tests", {0: 1.0}, {0: 0.5})).source
        'tests'
    """
    checked = check_instance("judgement", judgement, Judgement, next_step="Ask a judge: judge_episode(...).")
    check_text("source", checked.source)
    rewards, weights = checked.rewards, checked.weights
    if not isinstance(rewards, Mapping) or not isinstance(weights, Mapping) or set(rewards) != set(weights):
        raise InputError(
            f"rewards = {excerpt(rewards)}, weights = {excerpt(weights)}",
            "both must map the same steps to numbers",
            "Pass the weight 1 for a reward at full weight.",
        )
    for step, reward in rewards.items():
        check_whole("step", step, next_step="Pass the index of a step, counted from 0.")
        weight = check_number(f"weight of step {step}", weights[step])
        check_reward(f"weighted reward of step {step}", check_reward(f"reward of step {step}", reward) * weight)
    return checked


def add_judgement(memory: EpisodeMemory, episode_id: str, judgement: Judgement) -> list[str]:
    """Store a judgement as feedback, one event per step, and return the events' ids; they supersede the same source's.

    The whole judgement is checked against the stored episode first; if a part is refused, nothing is written. If the
    store fails midway, add the judgement again: it supersedes the events that were written.

    Raises:
        InputError: it is not a judgement, or a value breaks a rule.
        NotFoundError: the episode or one of the steps does not exist.
        StoreError: as for `Memory.feedback`.
    """
    check_judgement(judgement)
    n_steps = len(memory.get(episode_id).steps)
    for step in judgement.rewards:
        if not 0 <= step < n_steps:
            raise NotFoundError(
                f"step {step} of episode {excerpt(episode_id)}",
                f"the episode has {n_steps} steps, counted from 0",
                "Pass the id of the judged episode; nothing was written.",
            )
    return [
        memory.feedback(episode_id, reward, step, judgement.source, weight=judgement.weights[step])
        for step, reward in judgement.rewards.items()
    ]
