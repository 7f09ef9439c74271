"""Trace of an agent's running episode: its prompts, calls, past turns and usage, beside the log of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from seasoned.agents.loop.step_runner import StepRunner
from seasoned.agents.react.agent_result import ModelCall, PromptImpression, Purpose
from seasoned.agents.react.reply_parser import action_line
from seasoned.protocols import Observation, Usage
from seasoned.states.text_budget import data_line, estimated_tokens
from seasoned.types import REASONING, SHOWN, Decision, ShownBody, text_body

__all__ = ["EpisodeTrace", "PastTurn", "history_text"]

_TEXT_CHARS = 600


@dataclass(frozen=True, slots=True)
class PastTurn:
    """State, reasoning, action and reward of one executed step."""

    state: str
    reasoning: str | None
    action: str
    reward: float

    @property
    def text(self) -> str:
        """One line per field; long texts lose their middle. An observation cannot forge a line, as it has no breaks."""
        lines = [f"Seen: {data_line(self.state, _TEXT_CHARS)}"]
        if self.reasoning:
            lines.append(f"Thought: {data_line(self.reasoning, _TEXT_CHARS)}")
        lines.append(f"Action: {data_line(action_line(self.action), _TEXT_CHARS)}")
        if self.reward:
            lines.append(f"Reward: {self.reward:+g}")
        return "\n".join(lines)


@dataclass
class EpisodeTrace:
    """A running episode of an agent.

    Args:
        runner: runs and records the steps.
        turns: the executed steps.
        plan: of the episode.
        plan_impressions: past steps in the plan's prompt.
        model_calls: calls of the current step; those of the first step begin with the plan's.
        impressions: past steps in the prompts of the current step.
        step_usage: of the current step.
        example_steps: number of steps with past steps in a prompt.
    """

    runner: StepRunner
    turns: list[PastTurn] = field(default_factory=list)
    plan: str | None = None
    plan_impressions: tuple[PromptImpression, ...] = ()
    model_calls: list[ModelCall] = field(default_factory=list)
    impressions: list[PromptImpression] = field(default_factory=list)
    step_usage: Usage = field(default_factory=Usage)
    example_steps: int = 0

    def spend(self, purpose: Purpose, usage: Usage) -> None:
        """Add the usage of one call."""
        self.runner.spend(usage, purpose)
        self.step_usage += usage

    def add_turn(
        self, observation: Observation, reasoning: str | None, decision: Decision | str, reward: float, mode: str
    ) -> None:
        """Add an executed step, and note its reasoning and the past steps in its prompts."""
        log, step = self.runner.log, len(self.turns)
        if reasoning:
            log.note(REASONING, text_body(reasoning), step)
        for impressions in self.impressions:
            log.note(SHOWN, ShownBody(impressions.examples, mode, impressions.purpose).record(), step)
        self.example_steps += bool(self.impressions)
        action = decision.action if isinstance(decision, Decision) else decision
        self.turns.append(PastTurn(observation.state, reasoning, action, reward))

    def next_step(self) -> None:
        """Clear the fields of the current step."""
        self.model_calls, self.impressions, self.step_usage = [], [], Usage()


def history_text(turns: Sequence[PastTurn], budget_tokens: int) -> str:
    r"""Return the last turns that fit into `budget_tokens`, by `estimated_tokens`; a line counts the omitted ones.

    Example:
        >>> turns = [PastTurn("a hall", None, "go north", 0.0), PastTurn("a kitchen", "food!", "open fridge", 1.0)]
        >>> print(history_text(turns, 28))
        (1 earlier step left out)
        Seen: a kitchen
        Thought: food!
        Action: open fridge
        Reward: +1
        >>> history_text(turns, 10), history_text(turns, 5)
        ('(2 earlier steps left out)', '')
    """
    blocks: list[str] = []
    room = budget_tokens
    for earlier, turn in zip(range(len(turns) - 1, -1, -1), reversed(turns), strict=True):
        block = turn.text
        cost = estimated_tokens(f"{block}\n")
        if cost + (estimated_tokens(f"{_omission(earlier)}\n") if earlier else 0) > room:
            break
        blocks.insert(0, block)
        room -= cost
    omitted = len(turns) - len(blocks)
    head = [_omission(omitted)] if omitted and estimated_tokens(f"{_omission(omitted)}\n") <= room else []
    return "\n".join([*head, *blocks])


def _omission(n: int) -> str:
    return f"({n} earlier step{'s' if n > 1 else ''} left out)"
