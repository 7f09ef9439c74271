"""The episode so far, as text within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seasoned.agents.react.reply_parser import shown_action
from seasoned.states.text_budget import estimated_tokens, one_line

__all__ = ["Turn", "history_text"]

_TEXT_CHARS = 600


@dataclass(frozen=True, slots=True)
class Turn:
    """What was seen, thought and done at a step, and what it earned."""

    state: str
    reasoning: str | None
    action: str
    reward: float

    @property
    def text(self) -> str:
        """A line for each, long ones without their middle, so that nothing observed can pass for a line of ours."""
        lines = [f"Seen: {one_line(self.state, _TEXT_CHARS)}"]
        if self.reasoning:
            lines.append(f"Thought: {one_line(self.reasoning, _TEXT_CHARS)}")
        lines.append(f"Action: {one_line(shown_action(self.action), _TEXT_CHARS)}")
        if self.reward:
            lines.append(f"Reward: {self.reward:+g}")
        return "\n".join(lines)


def history_text(turns: Sequence[Turn], budget_tokens: int) -> str:
    r"""Return as many of the last turns as `budget_tokens` hold, by `estimated_tokens`; a note counts the others.

    Example:
        >>> turns = [Turn("a hall", None, "go north", 0.0), Turn("a kitchen", "food!", "open fridge", 1.0)]
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
    for left, turn in zip(range(len(turns) - 1, -1, -1), reversed(turns), strict=True):
        block = turn.text
        cost = estimated_tokens(f"{block}\n")
        if cost + (estimated_tokens(f"{_note(left)}\n") if left else 0) > room:
            break
        blocks.insert(0, block)
        room -= cost
    omitted = len(turns) - len(blocks)
    noted = [_note(omitted)] if omitted and estimated_tokens(f"{_note(omitted)}\n") <= room else []
    return "\n".join([*noted, *blocks])


def _note(n: int) -> str:
    return f"({n} earlier step{'s' if n > 1 else ''} left out)"
