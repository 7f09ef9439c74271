"""A conversation becomes an episode: what came in is the state, what the agent did about it is the action."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seasoned.errors import InputError
from seasoned.types import Ending, Episode, Step

__all__ = ["MAX_TASK_CHARS", "AgentTurn", "InputMessage", "episode_of"]

MAX_TASK_CHARS = 1000
_INSTRUCTIONS = {"system", "developer"}


@dataclass(frozen=True, slots=True)
class InputMessage:
    """Something that came in: who said it (`user`, `tool search`) and what."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """What the agent did at once: one action, several (parallel calls), or none (a thought).

    `recorded` is False where another episode holds it, or none does: it is context here, and no step.
    """

    actions: tuple[str, ...]
    reward: float | None = None
    recorded: bool = True


def episode_of(
    items: Iterable[InputMessage | AgentTurn],
    *,
    task: str | None = None,
    id: str | None = None,  # noqa: A002
    reward: float | None = None,
    rewards: Sequence[float | None] = (),
    ending: Ending = "terminated",
    model: str | None = None,
    policy: str | None = None,
    subject: str | None = None,
) -> tuple[Episode, bool]:
    """Return the episode, and whether it was given a reward.

    Each action of a recorded turn is a step. Its state is what came in since the turn before: one message as it is,
    several (or an empty one) each under a header line, `user:` or `tool search:`. Parallel calls share one state, and
    so do turns between which nothing came in. Instructions (`system`, `developer`) are left out of a state, unless
    nothing else came in. A turn before anything came in is no decision on a state: it is told in the next one, as
    `assistant:`. What came in last is the final state.

    The task is the one given, else the first 1000 characters of the first user message, else of the first message. A
    turn's reward lands on its last action. `rewards` are for each recorded turn, or for each step. `reward` is for the
    episode, and lands on its last step. Steps without a reward have 0.

    Raises:
        InputError: there is no step (unless the episode was aborted), no task, rewards that contradict each other, or a
            value that no episode can hold.
    """
    steps: list[Step] = []
    given: list[float | None] = []
    last_of_turn: list[int] = []
    came_in: list[InputMessage] = []
    state: str | None = None
    first: InputMessage | None = None
    asked: InputMessage | None = None
    for item in items:
        if isinstance(item, InputMessage):
            came_in.append(item)
            if item.text.strip():
                first = first or item
                asked = asked or (item if item.speaker == "user" else None)
            continue
        if not item.actions:
            continue
        state = _state(came_in) or state
        if state is None:
            came_in.extend(InputMessage("assistant", action) for action in item.actions)
            continue
        came_in.clear()
        if item.recorded:
            steps.extend(Step(state, action) for action in item.actions)
            given.extend([None] * (len(item.actions) - 1) + [item.reward])
            last_of_turn.append(len(steps) - 1)
    if rewards:
        given = _spread(rewards, given, last_of_turn)
    given = _with_total(reward, given)
    source = asked or first
    if task is None and source is not None:
        task = source.text.strip()[:MAX_TASK_CHARS].rstrip()
    if not steps and ending != "aborted":
        raise InputError("no turn of the agent", "an episode has one step or more", "Leave it out.")
    if task is None:
        raise InputError("no task and no message", "an episode has a task", "Name it in a field `task`.")
    rewarded = [Step(step.state, step.action, value or 0.0) for step, value in zip(steps, given, strict=True)]
    episode = Episode(task, rewarded, id, _state(came_in), ending, model=model, policy=policy, subject=subject)
    _refuse_nul(episode)
    return episode, any(value is not None for value in given)


def _state(came_in: Sequence[InputMessage]) -> str | None:
    told = [heard for heard in came_in if heard.speaker not in _INSTRUCTIONS] or list(came_in)
    if not told:
        return None
    if len(told) == 1 and told[0].text.strip():
        return told[0].text
    return "\n".join(f"{heard.speaker}:\n{heard.text}" if heard.text.strip() else f"{heard.speaker}:" for heard in told)


def _spread(rewards: Sequence[float | None], given: list[float | None], turns: list[int]) -> list[float | None]:
    if any(value is not None for value in given):
        raise InputError("rewards on the turns and in a list", "each reward is given once", "Keep one of them.")
    if len(rewards) == len(given):
        return list(rewards)
    if len(rewards) == len(turns):
        spread: list[float | None] = [None] * len(given)
        for index, reward in zip(turns, rewards, strict=True):
            spread[index] = reward
        return spread
    raise InputError(
        f"{len(rewards)} rewards for {len(turns)} turns with {len(given)} actions",
        "there is one reward for each turn of the agent, or for each action",
        "Give the sum as `reward`.",
    )


def _with_total(total: float | None, given: list[float | None]) -> list[float | None]:
    if total is None or not given:
        return given
    if all(value is None for value in given):
        return [*given[:-1], total]
    sum_of_steps = math.fsum(value or 0.0 for value in given)
    if not math.isclose(sum_of_steps, total, rel_tol=1e-9, abs_tol=1e-12):
        raise InputError(
            f"a reward of {total:g} for the episode, and {sum_of_steps:g} over its steps",
            "where both are given, the steps add up to the episode",
            "Keep one of them.",
        )
    return given


def _refuse_nul(episode: Episode) -> None:
    texts = [episode.task, episode.id, episode.final_state, episode.model, episode.policy, episode.subject]
    texts += [text for step in episode.steps for text in (step.state, step.action)]
    if any("\0" in text for text in texts if text is not None):
        raise InputError("a NUL character", "no text of a memory holds one", "Remove it at the source.")
