"""Conversion of a conversation to an episode: incoming messages are states, the agent's turns are actions.

Readers of traces yield `InputMessage` and `AgentTurn`, which carry what traces have and chats do not: rewards, and
turns that are context. A live conversation (`seasoned.protocols.Message`) becomes the same items by
`conversation_items`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from seasoned.canonical_json import canonical_json
from seasoned.errors import InputError
from seasoned.integrations.json_shapes import CORRECT, describe_value
from seasoned.integrations.step_results import StepResults
from seasoned.states.transcript.conversation_states import ANSWER, MAX_TASK_CHARS, AgentTurn, ConversationStates
from seasoned.states.transcript.transcript_text import InputMessage
from seasoned.types import Ending, Episode, Step

__all__ = [
    "ANSWER",
    "MAX_TASK_CHARS",
    "AgentTurn",
    "InputMessage",
    "content_id",
    "ending_of",
    "episode_of",
    "exit_ending",
]

_CUT_OFF = {"length", "max_tokens"}
_ABORTED = {"content_filter", "error"}
_EXITS_AT_A_LIMIT = ("exit_cost", "exit_context", "exit_total_execution_time", "exit_command_timeout", "early_exit")
_EXITS_WITH_AN_ERROR = ("exit_api", "exit_error", "exit_environment_error", "exit_format", "error")


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
    plain_states: bool = False,
    results: StepResults | None = None,
) -> tuple[Episode, bool]:
    """Return the episode, and whether the conversation has a reward.

    Each action of a recorded turn is a step, at the state of `seasoned.states.ConversationStates`. Parallel calls share
    one state. The last messages are the final state. With `plain_states`, a state has neither goal nor calls.

    The task is `task`, else the first 1000 characters of the first user message, else of the first message. A turn's
    reward belongs to its last action. `rewards` has one reward for each recorded turn, or for each step. `reward` is
    the episode's, and belongs to its last step. Steps without a reward have 0. `results` collects the results of the
    steps' calls.

    Raises:
        InputError: there is no step (unless the episode was aborted), no task, rewards that contradict each other, or a
            value that an episode cannot contain.
    """
    steps: list[tuple[str, str]] = []  # states and actions
    step_rewards: list[float | None] = []
    last_of_turn: list[int] = []
    states = ConversationStates(plain=plain_states)
    first: InputMessage | None = None
    first_of_user: InputMessage | None = None
    unplaced = False  # whether the agent acted before anything was said, so that no state is known
    for item in items:
        if isinstance(item, InputMessage):
            states.add(item)
            if results is not None:
                results.add(item)
            if item.text.strip():
                first = first or item
                first_of_user = first_of_user or (item if item.speaker == "user" else None)
            continue
        state = states.act(item)
        is_step = bool(item.actions) and item.recorded and state is not None
        unplaced = unplaced or (bool(item.actions) and state is None)
        if results is not None and item.actions:
            results.act(item.actions, len(steps) if is_step else None, item.call_ids)
        if is_step and state is not None:
            steps.extend((state, action) for action in item.actions)
            step_rewards.extend([None] * (len(item.actions) - 1) + [item.reward])
            last_of_turn.append(len(steps) - 1)
    if rewards:
        step_rewards = _assign(rewards, step_rewards, last_of_turn)
    step_rewards = _with_total(reward, step_rewards)
    source = first_of_user or first
    if task is None and source is not None:
        task = source.text.strip()[:MAX_TASK_CHARS].rstrip()
    if not steps and ending != "aborted":
        seen = "turns of the agent without a message before them" if unplaced else "no turn of the agent"
        raise InputError(seen, "an episode needs at least one step", "Leave it out.")
    if task is None:
        raise InputError("no task and no message", "an episode needs a task", "Name it in a field `task`.")
    rewarded = [Step(*step, value or 0.0) for step, value in zip(steps, step_rewards, strict=True)]
    episode = Episode(task, rewarded, id, states.state, ending, model=model, policy=policy, subject=subject)
    _refuse_nul(episode)
    return episode, any(value is not None for value in step_rewards)


def _assign(rewards: Sequence[float | None], given: list[float | None], turns: list[int]) -> list[float | None]:
    if any(value is not None for value in given):
        raise InputError("rewards on the turns and in a list", "each reward must be stated once", "Keep one of them.")
    if len(rewards) == len(given):
        return list(rewards)
    if len(rewards) == len(turns):
        assigned: list[float | None] = [None] * len(given)
        for index, reward in zip(turns, rewards, strict=True):
            assigned[index] = reward
        return assigned
    raise InputError(
        f"{len(rewards)} rewards for {len(turns)} turns with {len(given)} actions",
        "rewards need one number for each turn of the agent, or for each action",
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
            "if both are stated, the rewards of the steps must add up to the episode's",
            "Keep one of them.",
        )
    return given


def _refuse_nul(episode: Episode) -> None:
    texts = [episode.task, episode.id, episode.final_state, episode.model, episode.policy, episode.subject]
    texts += [text for step in episode.steps for text in (step.state, step.action)]
    if any("\0" in text for text in texts if text is not None):
        raise InputError("a NUL character", "a text of a memory cannot contain it", "Remove it at the source.")


def content_id(kind: str, value: object) -> str:
    """Return an id computed from the content, for a source without an id."""
    return f"{kind}:{hashlib.sha256(canonical_json(value).encode()).hexdigest()[:32]}"


def ending_of(fields: dict[str, Any]) -> Ending:
    """Return the ending of an episode from `ending`, `error`, `truncated` or `finish_reason`, in this order.

    Raises:
        InputError: `ending` is none of the three.

    Example:
        >>> ending_of({"finish_reason": "length"}), ending_of({"error": "timeout"}), ending_of({})
        ('truncated', 'aborted', 'terminated')
    """
    if (ending := fields.get("ending")) is not None:
        for known in get_args(Ending):
            if ending == known:
                return known  # type: ignore[no-any-return]
        raise InputError(f"ending = {describe_value(ending)}", f"known are {', '.join(get_args(Ending))}", CORRECT)
    if fields.get("error"):
        return "aborted"
    finish = fields.get("finish_reason")
    if fields.get("truncated") is True or (isinstance(finish, str) and finish in _CUT_OFF):
        return "truncated"
    return "aborted" if isinstance(finish, str) and finish in _ABORTED else "terminated"


def exit_ending(status: object) -> Ending:
    """Return the ending of a run by the exit status of SWE-agent, or of an agent that writes alike.

    Example:
        >>> exit_ending("submitted"), exit_ending("submitted (exit_cost)"), exit_ending("exit_format")
        ('terminated', 'truncated', 'aborted')
    """
    if status is None:
        return "terminated"
    text = status if isinstance(status, str) else describe_value(status)
    if any(mark in text for mark in _EXITS_AT_A_LIMIT):
        return "truncated"
    return "aborted" if any(mark in text for mark in _EXITS_WITH_AN_ERROR) else "terminated"
