"""Checked arguments that `wrap` and the integrations of agent frameworks share: what memory does in calls."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args

from seasoned.checks import check_flag, check_instance, check_number, check_one_of, check_text
from seasoned.errors import InputError
from seasoned.integrations.clients.call_decisions import CallDecisions
from seasoned.integrations.clients.call_holdout import CallArms, CallHoldout
from seasoned.integrations.clients.call_modes import AdviceText, CallMode, CallVotes, ExampleText, warm_up
from seasoned.integrations.clients.call_recorder import CallRecorder, recorder_of
from seasoned.integrations.clients.conversations import CallContext
from seasoned.integrations.clients.episode_scope import CurrentEpisode, current_episode
from seasoned.integrations.clients.observed_call import CallGuard
from seasoned.integrations.rewards.reward_rules import RewardRules
from seasoned.integrations.rewards.rules_file import load_rules
from seasoned.memory import Memory
from seasoned.policies.advice import Advisor
from seasoned.policies.examples.retrieval import Examples
from seasoned.policies.jitrl import JitRL

__all__ = ["CallSettings", "Mode", "OnError", "call_settings"]

Mode = Literal["observe", "examples", "advice", "votes", "decisions"]
OnError = Literal["log", "raise"]


@dataclass(frozen=True, slots=True)
class CallSettings:
    """The checked arguments of a client.

    Attributes:
        memory, task, awaits_feedback: as they were passed.
        recorder: of the memory.
        guard: runs what needs the memory.
        mode: None: `observe`.
        arms: None: there is no holdout.
        rewards: None: there are no rules.
        client: the name of the kind of client.
    """

    memory: Memory
    recorder: CallRecorder
    guard: CallGuard
    mode: CallMode | None
    arms: CallArms | None
    task: str | None
    awaits_feedback: bool
    rewards: RewardRules | None
    client: str

    def context(self, scope: CurrentEpisode | None) -> CallContext:
        """Return what is recorded of a call in a block, or outside of blocks."""
        policy = f"{self.client}:{'observe' if self.mode is None else self.mode.name}"
        return CallContext(scope, self.task, self.awaits_feedback, policy, rewards=self.rewards)

    def current_episode(self) -> CurrentEpisode | None:
        """Return the block that runs in this context, whose end the recorder is told; None outside of blocks."""
        scope = current_episode()
        if scope is not None and self.recorder not in scope.listeners:
            scope.listeners.append(self.recorder)
        return scope

    def warm_up(self) -> None:
        """Build the indexes that the mode needs, so that no call does."""
        self.guard.run(lambda: warm_up(self.mode, self.memory))


def call_settings(
    memory: Memory,
    client: str,
    *,
    mode: object = "observe",
    holdout: bool | CallHoldout = False,
    task: str | None = None,
    awaits_feedback: bool = True,
    timeout_s: float = 0.2,
    on_error: OnError = "log",
    rewards: str | os.PathLike[str] | RewardRules | None = None,
) -> CallSettings:
    """Return the checked arguments of `seasoned.wrap`, which documents them.

    Args:
        memory, mode, holdout, task, awaits_feedback, timeout_s, on_error, rewards: see `seasoned.wrap`.
        client: the name of the kind of client, which begins the stored name of an episode's policy.

    Raises:
        InputError: an argument breaks a rule.
    """
    check_instance("memory", memory, Memory, next_step='Pass Memory.open("agent.db").')
    if task is not None:
        check_text("task", task)
    check_flag("awaits_feedback", awaits_feedback)
    check_number("timeout_s", timeout_s, above=0.0, next_step="Pass seconds, such as 0.2.")
    check_one_of("on_error", on_error, get_args(OnError))
    rules = rewards if rewards is None or isinstance(rewards, RewardRules) else load_rules(rewards)
    chosen = _mode(mode, memory)
    arms = _arms(holdout, chosen, memory, client)
    recorder = recorder_of(memory)
    guard = CallGuard(recorder, timeout_s, raises=on_error == "raise")
    return CallSettings(memory, recorder, guard, chosen, arms, task, awaits_feedback, rules, client)


def _arms(holdout: bool | CallHoldout, mode: CallMode | None, memory: Memory, client: str) -> CallArms | None:
    """Return what assigns episodes to memory or to the control group; None: all get memory."""
    if holdout is False:
        return None
    given = CallHoldout() if holdout is True else holdout
    settings = check_instance("holdout", given, CallHoldout, next_step="Pass True, or CallHoldout(bounds=(-1.0, 1.0)).")
    if mode is None:
        raise InputError(
            "holdout in the mode observe",
            "a holdout leaves memory out of some episodes, and this mode leaves it out of all",
            'Pass mode="examples", for example.',
        )
    return CallArms(settings, mode, memory, client)


def _mode(mode: object, memory: Memory) -> CallMode | None:
    """Return what a mode does with a call; None: nothing."""
    if isinstance(mode, CallVotes | CallDecisions):
        return mode
    if isinstance(mode, Examples):
        return ExampleText(mode)
    if isinstance(mode, Advisor):
        return AdviceText(mode)
    known = check_one_of("mode", mode, get_args(Mode))
    if known == "examples":
        return ExampleText(Examples(memory))
    if known == "votes":
        return CallVotes(JitRL(memory))
    if known == "decisions":
        return CallDecisions(JitRL(memory))
    return AdviceText(Advisor(memory)) if known == "advice" else None
