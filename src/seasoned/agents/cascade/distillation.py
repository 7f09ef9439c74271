"""Distillation: a teacher fills the memory, from which a student learns by its prompt or by evidence.

After "In-Context Distillation with Self-Consistency Cascades", arXiv 2512.02543, which stores the teacher's successes
only. Here all of its episodes are stored with their rewards, as failures are evidence too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seasoned.agents.loop.arm import Arm
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.agents.runs.run import play_run
from seasoned.agents.runs.run_record import RunRecord
from seasoned.checks import check_number, check_whole
from seasoned.errors import ConfigError
from seasoned.protocols import Environment, EpisodeMemory, Judge, ModelJudge, Usage

__all__ = ["TEACHER", "DistillationBudget", "DistillationResult", "distill"]

TEACHER = "teacher"
"""Arm of a teacher's stored episodes."""


@dataclass(frozen=True, slots=True)
class DistillationBudget:
    """Total budget for filling a memory. None: no limit.

    Answers from a cache count with the usage of their original call, so that a budget is the same with and without a
    cache.

    Args:
        usd: in dollars, at least 0.
        tokens: prompt and new tokens, at least 0.
        calls: calls of the model, at least 0.

    Raises:
        InputError: a number is negative, or not finite.

    Example:
        >>> DistillationBudget(usd=2.0, calls=100).of(Usage(calls=60, cost_usd=0.5))
        {'usd': 0.5, 'calls': 60}
    """

    usd: float | None = None
    tokens: float | None = None
    calls: float | None = None

    def __post_init__(self) -> None:
        for name in ("usd", "tokens", "calls"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), 0.0, next_step="Leave it out for no limit.")

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by name."""
        named = {"usd": self.usd, "tokens": self.tokens, "calls": self.calls}
        return {name: limit for name, limit in named.items() if limit is not None}

    def of(self, usage: Usage) -> dict[str, float]:
        """Return the amount of a usage for each limit.

        Raises:
            ConfigError: dollars are limited, and the usage has no price.
        """
        amounts: dict[str, float] = {"tokens": usage.tokens, "calls": usage.calls + usage.cached_calls}
        if usage.cost_usd is not None and usage.cached_usd is not None:
            amounts["usd"] = usage.cost_usd + usage.cached_usd
        if "usd" in self.limits and "usd" not in amounts:
            raise _unknown(f"a budget of {self.usd:g} USD, and a model without a price", "Give the model its prices.")
        return {name: amounts[name] for name in self.limits}

    def __str__(self) -> str:
        return ", ".join(f"{limit:g} {name}" for name, limit in self.limits.items()) or "no limit"


@dataclass(frozen=True)
class DistillationResult:
    """Result of filling a memory.

    Args:
        results: of the teacher's episodes, in order, including those of an earlier run.
        usage: of these episodes; unknown prices stay unknown.
        stopped: reason why there are fewer episodes than requested; None otherwise.
    """

    results: tuple[EpisodeResult, ...]
    usage: Usage
    stopped: str | None = None


class _BudgetReached(Exception):  # noqa: N818  (internal)
    pass


async def distill(
    teacher: Arm,
    environment: Environment | Callable[[int], Environment],
    memory: EpisodeMemory,
    *,
    episodes: int,
    seed: int = 0,
    run_id: str = TEACHER,
    record: RunRecord | None = None,
    budget: DistillationBudget | None = None,
    judges: tuple[Judge | ModelJudge, ...] = (),
) -> DistillationResult:
    """Let the teacher play, and store its episodes under the arm `teacher`, with its model's name and stable ids.

    Episode e has the id `run_id-e`; stored episodes are not played again. Another episode begins while the usage so far
    plus that of the most expensive episode fits into the budget; the budget therefore holds, unless an episode is more
    expensive than all before. The first episode is always played, unless a limit is 0.

    Args:
        teacher: the arm that plays.
        environment: the environment, or a function from an episode's number to its environment.
        memory: stores the episodes.
        episodes: number of episodes in all, including those of an earlier run.
        seed: of the run.
        run_id: prefix of the episodes' ids; ignored with a record, which has its own id.
        record: stores the usage of each episode, so that a resumed run knows the usage so far.
        budget: of the usage; None: no limit.
        judges: score each finished episode; their usage counts.

    Raises:
        InputError: `episodes` is not a whole number, at least 1.
        ConfigError: an amount of the budget is unknown: dollars without prices, or the usage of an earlier run's
            episodes without a record. No further episode is played.
        SeasonedError: raised by `play_run`.
    """
    check_whole("episodes", episodes, 1)
    budget = budget or DistillationBudget()
    if any(limit <= 0 for limit in budget.limits.values()):
        return DistillationResult((), Usage(), f"the budget is 0: {budget}")
    results: list[EpisodeResult] = []
    total, highest = dict.fromkeys(budget.limits, 0.0), dict.fromkeys(budget.limits, 0.0)

    def after(number: int, result: EpisodeResult) -> None:
        results.append(result)
        if budget.limits and not result.seconds:  # of an earlier run without a record
            raise _unknown(f"a budget of {budget}, and episode {number} of an earlier run", "Keep a record: record=.")
        for name, amount in budget.of(result.usage).items():
            total[name] += amount
            highest[name] = max(highest[name], amount)
        if number + 1 < episodes and any(total[name] + highest[name] > limit for name, limit in budget.limits.items()):
            raise _BudgetReached

    stopped = None
    try:
        await play_run(
            environment,
            teacher.policy,
            teacher.reader,
            memory=memory,
            episodes=episodes,
            seed=seed,
            run_id=None if record else run_id,
            record=record,
            judges=judges,
            play=teacher.play,
            learn=teacher.learn,
            arm=TEACHER,
            progress=after,
        )
    except _BudgetReached:
        stopped = f"{len(results)} of {episodes} episodes: one more might exceed {budget}"
        if record is not None:
            record.finish()
    return DistillationResult(tuple(results), sum((result.usage for result in results), Usage()), stopped)


def _unknown(seen: str, next_step: str) -> ConfigError:
    return ConfigError(seen, "a budget needs known amounts, as an unknown amount is not 0", next_step)
