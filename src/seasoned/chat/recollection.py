"""Recall of a chat: past steps and advice for the next answer, and why these."""

from __future__ import annotations

import time
from dataclasses import dataclass

from seasoned.actions import readable_action
from seasoned.errors import counted
from seasoned.integrations.clients.prompt_block import framed_block
from seasoned.memory import Memory
from seasoned.policies import Advice, Advisor
from seasoned.policies.examples import Example, ExampleQuery, Examples, render
from seasoned.states.text_budget import one_line
from seasoned.types import StepRef

__all__ = ["ChatRecall", "Recollection"]

_LINE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Recollection:
    """What memory knows of a moment.

    Args:
        examples: past steps to imitate or to avoid.
        advice: actions that did clearly better or worse than others.
        seconds: that it took.
    """

    examples: tuple[Example, ...] = ()
    advice: Advice | None = None
    seconds: float = 0.0

    @property
    def block(self) -> str:
        """The text for the prompt, marked as records; empty for none."""
        parts = [render(self.examples) if self.examples else "", self.advice.text if self.advice else ""]
        text = "\n\n".join(part for part in parts if part)
        return framed_block(text) if text else ""

    @property
    def shown(self) -> tuple[StepRef, ...]:
        """The stored steps in it."""
        return tuple(example.place for example in self.examples)

    @property
    def summary(self) -> str:
        """One line: what was recalled, and why; empty for nothing."""
        parts = []
        for example in self.examples:
            verb = "avoid" if example.kind == "avoid" else "like"
            earned = (
                example.return_ if not example.returns_here else sum(example.returns_here) / len(example.returns_here)
            )
            action = one_line(readable_action(example.action), 60)
            parts.append(f"{verb} {action} (earned {earned:.2g}, {example.similarity:.0%} alike)")
        if self.advice is not None and self.advice.text:
            parts.append(f"advice on {counted(len(self.advice.prefer) + len(self.advice.avoid), 'action')}")
        return "; ".join(parts)

    def explain(self) -> str:
        """Return each recalled step with its source, its worth and its similarity, and the advice with its counts."""
        lines = []
        for example in self.examples:
            lines += [
                f"{example.kind}: {one_line(readable_action(example.action), _LINE_CHARS)}",
                f"  when: {one_line(example.state, _LINE_CHARS)}",
                f"  task: {one_line(example.task, _LINE_CHARS)}",
                f"  earned {example.return_:.3g}; worth {example.value:+.3g} "
                f"({example.low:+.3g} to {example.high:+.3g}); {example.similarity:.0%} alike; "
                f"shown {counted(example.n_shown, 'time')} before; episode {example.episode_id} step {example.step}",
            ]
        if self.advice is not None:
            lines.append(self.advice.text or f"no advice: {self.advice.reason}")
        return "\n".join(lines) or "nothing was recalled"


class ChatRecall:
    """Recalls for each answer of the model.

    Args:
        memory: of the repository.

    Example:
        >>> from seasoned import Episode, Step
        >>> with Memory.open(":memory:") as memory:
        ...     for action, reward in [("make check", 1.0), ("pytest", -0.1)] * 3:
        ...         _ = memory.add(Episode("fix the tests", [Step("fix the tests", action, reward)]))
        ...     print(ChatRecall(memory).recall("fix the tests of shop.py", "fix the tests of shop.py").summary)
        like make check (earned 1, 59% alike); avoid pytest (earned -0.1, 59% alike)
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._examples = Examples(memory, k=2, window=1, avoid=True, budget_tokens=600, per_episode=2)
        self._advisor = Advisor(memory)

    def recall(self, goal: str, state: str) -> Recollection:
        """Return what fits the user's request and the present state.

        Raises:
            StoreError: the store failed.
        """
        began = time.perf_counter()
        if not len(self._memory):
            return Recollection()
        found = self._examples.retrieve(ExampleQuery(goal, observation=state))
        # A step before a failure returns little too; only one that failed itself is a warning.
        examples = tuple(each for each in found if each.kind == "imitate" or each.steps[each.at].reward < 0.0)
        advice = self._advisor.advise(state, task=goal)
        return Recollection(examples, advice, time.perf_counter() - began)
