"""A teacher fills the memory first: its episodes are what a student learns from, in its prompt or as evidence.

After "In-Context Distillation with Self-Consistency Cascades", arXiv 2512.02543, where the teacher's successes alone
are kept. Here all of its episodes are, with their rewards: failures count as much, as numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seasoned.agents.loop.arm import Arm
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.agents.runs.run import EpisodeMemory, play_run
from seasoned.agents.runs.run_record import RunRecord
from seasoned.checks import check_number
from seasoned.errors import ConfigError, InputError, excerpt
from seasoned.protocols import Environment, Judge, ModelJudge, Usage

__all__ = ["TEACHER", "DistillationBudget", "DistillationResult", "distill"]

TEACHER = "teacher"
"""The arm that a teacher's episodes are stored under."""


@dataclass(frozen=True, slots=True)
class DistillationBudget:
    """What filling a memory may take, in all. None: as much as it likes.

    Answers from a cache count by what they took when they were asked: a budget means the same with a cache as without.

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
            value = getattr(self, name)
            if value is not None and check_number(name, value) < 0:
                raise InputError(f"{name} = {value}", "a budget is at least 0", "Leave it out for no limit.")

    @property
    def limits(self) -> dict[str, float]:
        """What is limited, and to how much."""
        named = {"usd": self.usd, "tokens": self.tokens, "calls": self.calls}
        return {name: limit for name, limit in named.items() if limit is not None}

    def of(self, usage: Usage) -> dict[str, float]:
        """Return what a usage takes of each limit.

        Raises:
            ConfigError: dollars are limited, and the usage has no price.
        """
        took: dict[str, float] = {"tokens": usage.tokens, "calls": usage.calls + usage.cached_calls}
        if usage.cost_usd is not None and usage.cached_usd is not None:
            took["usd"] = usage.cost_usd + usage.cached_usd
        if "usd" in self.limits and "usd" not in took:
            raise _unknown(f"a budget of {self.usd:g} USD, and a model without a price", "Give the model its prices.")
        return {name: took[name] for name in self.limits}

    def __str__(self) -> str:
        return ", ".join(f"{limit:g} {name}" for name, limit in self.limits.items()) or "no limit"


@dataclass(frozen=True)
class DistillationResult:
    """What a teacher put into a memory.

    Args:
        results: how its episodes went, in order; also those that an earlier run had played.
        usage: what they took; unknown prices stay unknown.
        stopped: why there are fewer than were asked for; None: there are not.
    """

    results: tuple[EpisodeResult, ...]
    usage: Usage
    stopped: str | None = None


class _Enough(Exception):  # noqa: N818  (nobody sees it)
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
    """Have the teacher play, and store what it did: arm `teacher`, its model's name, ids that do not change.

    What was played is not played again: episode e has the id `run_id-e`. Another episode is begun while what was spent,
    and the dearest episode so far, fit into the budget; so it is kept, unless episodes get dearer than any before. The
    first is always played, unless nothing may be spent at all.

    Args:
        teacher: how it decides, and what with.
        environment: what is played, or a function from an episode's number to what is played in it.
        memory: where the episodes go.
        episodes: how many in all, those of an earlier run included.
        seed: of the run.
        run_id: names the episodes; ignored with a record, which has an id of its own.
        record: keeps what each episode took, so that a run that is resumed knows what it has spent.
        budget: what may be spent; None: no limit.
        judges: score each finished episode; what they ask counts.

    Raises:
        InputError: `episodes` is no whole number, at least 1.
        ConfigError: the budget is in something that is not known: dollars without prices, or what episodes of an
            earlier run took, without a record. Nothing more is played.
        SeasonedError: what `play_run` raises.
    """
    if isinstance(episodes, bool) or not isinstance(episodes, int) or episodes < 1:
        raise InputError(f"episodes = {excerpt(episodes)}", "it is a whole number, at least 1", "Pass 1 or more.")
    budget = budget or DistillationBudget()
    if any(limit <= 0 for limit in budget.limits.values()):
        return DistillationResult((), Usage(), f"nothing may be spent: {budget}")
    results: list[EpisodeResult] = []
    total, dearest = dict.fromkeys(budget.limits, 0.0), dict.fromkeys(budget.limits, 0.0)

    def after(number: int, result: EpisodeResult) -> None:
        results.append(result)
        if budget.limits and not result.seconds:  # an earlier run played it, and nobody wrote down what it took
            raise _unknown(f"a budget of {budget}, and episode {number} of an earlier run", "Keep a record: record=.")
        for name, took in budget.of(result.usage).items():
            total[name] += took
            dearest[name] = max(dearest[name], took)
        if number + 1 < episodes and any(total[name] + dearest[name] > limit for name, limit in budget.limits.items()):
            raise _Enough

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
    except _Enough:
        stopped = f"{len(results)} of {episodes} episodes: one more might exceed {budget}"
        if record is not None:
            record.finish()
    return DistillationResult(tuple(results), sum((result.usage for result in results), Usage()), stopped)


def _unknown(seen: str, next_step: str) -> ConfigError:
    return ConfigError(seen, "what is not known is not nothing: a budget is kept in what is known", next_step)
