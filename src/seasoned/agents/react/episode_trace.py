"""What an agent's episode was so far: enough to store it, whole or broken off, and to report it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seasoned.agents.loop.episode import EpisodeResult, StepLog
from seasoned.agents.loop.usage_meter import count
from seasoned.agents.react.agent_result import Asked, Purpose, Shown
from seasoned.agents.react.history import Turn
from seasoned.checks import check_number
from seasoned.errors import EnvError, InputError
from seasoned.protocols import DelayedFeedback, Environment, Observation, TrulyScored, Usage
from seasoned.types import Decision

__all__ = ["Trace"]

Note = tuple[str, Mapping[str, Any], int | None]


@dataclass
class Trace:
    """A running episode, beside the log of its steps.

    What is noted for a step counts once the step is taken: of a step that was never taken nothing is kept.
    """

    notes: list[Note] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    usage_by: dict[Purpose, Usage] = field(default_factory=dict)
    plan: str | None = None
    plan_shown: tuple[Shown, ...] = ()
    asked: list[Asked] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    step_usage: Usage = field(default_factory=Usage)
    earned: float = 0.0
    flips: int = 0
    kl_nats: float = 0.0
    memory_steps: int = 0
    example_steps: int = 0
    decision_s: float = 0.0
    environment_s: float = 0.0
    began: float = field(default_factory=time.perf_counter)

    @property
    def usage(self) -> Usage:
        """Of every call so far."""
        return sum(self.usage_by.values(), Usage())

    def spend(self, purpose: Purpose, usage: Usage) -> None:
        """Count what a call cost."""
        self.usage_by[purpose] = self.usage_by.get(purpose, Usage()) + usage
        self.step_usage += usage
        count(usage)

    def take(
        self, log: StepLog, seen: Observation, reasoning: str | None, decision: Decision | str, reward: float, mode: str
    ) -> None:
        """Record an executed step, and what was noted for it."""
        log.record(seen.state, decision, reward)
        step = len(self.turns)
        if reasoning:
            self.notes.append(("reasoning", {"text": reasoning}, step))
        for shown in self.shown:
            body = {"examples": [list(one) for one in shown.examples], "mode": mode, "purpose": shown.purpose}
            self.notes.append(("shown", body, step))
        self.example_steps += bool(self.shown)
        action = decision.action if isinstance(decision, Decision) else decision
        self.turns.append(Turn(seen.state, reasoning, action, reward))
        self.earned += reward
        if isinstance(decision, Decision):
            likeliest = max(decision.probs, key=decision.probs.__getitem__)
            self.flips += decision.base_probs[likeliest] < max(decision.base_probs.values())
            self.kl_nats += decision.kl_nats
            self.memory_steps += decision.mode == "memory"

    def next_step(self) -> None:
        """Forget what belongs to the step that was taken."""
        self.asked, self.shown, self.step_usage = [], [], Usage()

    def finish(self, log: StepLog, environment: Environment, seen: Observation, *, ended: bool) -> EpisodeResult:
        """Close the log, and return how the episode went."""
        log.ending = "terminated" if ended else "truncated"
        log.final_state = seen.state if seen.state.strip() else None
        score = environment.true_score if isinstance(environment, TrulyScored) else seen.score
        number(environment, "score", score)
        late = environment.feedback() if isinstance(environment, DelayedFeedback) else ()
        for _, reward in late:
            number(environment, "late reward", reward)
        return self._result(score, environment.max_score, log, late)

    def broken_off(self, log: StepLog, max_score: float | None) -> EpisodeResult:
        """Mark the log aborted, and return how far the episode got."""
        log.ending = "aborted"
        return self._result(self.earned, max_score, log, ())

    def _result(
        self, score: float, max_score: float | None, log: StepLog, late: tuple[tuple[int, float], ...]
    ) -> EpisodeResult:
        return EpisodeResult(
            score,
            max_score,
            len(self.turns),
            log.ending,
            self.flips,
            self.kl_nats,
            self.memory_steps,
            self.decision_s,
            time.perf_counter() - self.began,
            self.usage,
            late,
            self.environment_s,
        )


def number(environment: Environment, name: str, value: object) -> float:
    """Return a reward or a score before it gets into a memory, where NaN would spoil all the others.

    Raises:
        EnvError: it is no finite number.
    """
    try:
        return check_number(name, value)
    except InputError as error:
        raise EnvError(
            f"{environment.name}: {error.seen}", f"a {name} is a finite number", "Mend the environment."
        ) from error
