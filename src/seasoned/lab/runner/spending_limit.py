"""The usage of an experiment, compared with its budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from seasoned.lab.suites.suite import ExperimentBudget
from seasoned.protocols import Usage

__all__ = ["SpendingCounter"]


@dataclass
class SpendingCounter:
    """The sum of the usage of episodes, compared with a budget.

    Args:
        budget: the limits.
        usage: of earlier sessions.
        began: start of the session, by the monotonic clock.

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
        """Add the usage of one episode."""
        self.usage += usage

    @property
    def is_limited(self) -> bool:
        """Whether model usage is limited."""
        return (self.budget.calls, self.budget.tokens, self.budget.usd) != (None, None, None)

    @property
    def limit(self) -> str | None:
        """The limit that was reached, with the amount spent; None if no limit was reached.

        A limit in dollars counts known costs only. For a model without a price `usd` is refused before the first
        episode.
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
