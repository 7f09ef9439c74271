"""What an experiment has spent, and whether it may go on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from seasoned.lab.suites.suite import ExperimentBudget
from seasoned.protocols import Usage

__all__ = ["SpendingCounter"]


@dataclass
class SpendingCounter:
    """Adds up what episodes cost, against a budget.

    Args:
        budget: the limits.
        usage: what earlier parts of the experiment cost.

    Example:
        >>> spending = SpendingCounter(ExperimentBudget(calls=2))
        >>> spending.add(Usage(calls=2))
        >>> spending.limit
        'calls: 2 of 2'
    """

    budget: ExperimentBudget
    usage: Usage = field(default_factory=Usage)
    began: float = field(default_factory=time.monotonic)

    def add(self, usage: Usage) -> None:
        """Count one episode's cost."""
        self.usage += usage

    @property
    def is_limited(self) -> bool:
        """Whether anything that is asked of a model can reach a limit."""
        return (self.budget.calls, self.budget.tokens, self.budget.usd) != (None, None, None)

    @property
    def limit(self) -> str | None:
        """The limit that was reached, with what was spent; None while there is room.

        A limit in dollars counts what is known. A model without a price costs nothing known, so `usd` with such a
        model is refused before anything is played.
        """
        spent = {
            "calls": self.usage.calls,
            "tokens": self.usage.prompt_tokens + self.usage.completion_tokens,
            "usd": self.usage.cost_usd or 0.0,
            "seconds": time.monotonic() - self.began,
        }
        for name, amount in spent.items():
            most = getattr(self.budget, name)
            if most is not None and amount >= most:
                return f"{name}: {amount:.6g} of {most:g}"
        return None
