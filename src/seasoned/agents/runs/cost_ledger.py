"""Cost ledger of arms: dollars per success, share of the teacher's steps, and break-even of filling a memory.

A cached answer counts with the usage of its original call. An unknown price is never 0: a sum that includes it is
unknown, and states the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.checks import check_instance, check_number, check_one_of, check_text
from seasoned.core.costs import BreakEven, break_even, break_even_interval, ratio_difference, ratio_interval
from seasoned.core.statistics import BOOTSTRAP_MIN_RUNS, Interval
from seasoned.errors import InputError, NotFoundError, counted, excerpt
from seasoned.protocols import Usage

__all__ = ["ArmCosts", "CostEstimate", "Ledger", "LedgerEntry", "Payoff"]

_PRICE = "USD per success"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One episode of one arm.

    Args:
        episode: its name; arms with episodes of the same name are paired.
        success: 1 or 0, or a share of the task, in [0, 1].
        usage: of the model.
        steps, teacher_steps: number of all steps, and of those that the teacher decided; None: not counted.

    Raises:
        InputError: a value breaks its rule.
    """

    episode: str
    success: float
    usage: Usage
    steps: int = 0
    teacher_steps: int | None = None

    def __post_init__(self) -> None:
        check_text("episode", self.episode)
        check_number("success", float(self.success), 0.0, 1.0, next_step="Divide the score by the best score.")
        check_instance("usage", self.usage, Usage, next_step="Pass the usage of the result.")
        if not 0 <= (self.teacher_steps or 0) <= self.steps:
            raise InputError(
                f"{self.teacher_steps} of {self.steps} steps", "teacher_steps must be in [0, steps]", "Count again."
            )
        object.__setattr__(self, "success", float(self.success))

    @property
    def usd(self) -> float | None:
        """Price in dollars, with or without a cache; None if it is unknown."""
        return _usd(self.usage)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """An estimate that may be unknown.

    Args:
        value: None if it is unknown.
        interval: of at least 10 episodes.
        reason: reason why there is no value, or no interval.
        n: number of episodes; None without a value.
        unit: of the value.
    """

    value: float | None
    interval: Interval | None = None
    reason: str | None = None
    n: int | None = None
    unit: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"unknown ({self.reason})"
        value = f"{self.short()} {self.unit}".rstrip()
        level = "no interval" if self.interval is None else f"{self.interval.level:.0%} interval"
        return value if self.n is None else f"{value} (n={self.n}, {level})"

    def short(self) -> str:
        """Return the value and its interval, without unit, level and n, for a table that has these in its heads."""
        if self.value is None:
            return "unknown"
        if self.interval is None:
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.interval.low:.4g}, {self.interval.high:.4g}]"


@dataclass(frozen=True, slots=True)
class ArmCosts:
    """Costs of one arm.

    Args:
        arm: its name.
        episodes: number of played episodes.
        success: successes per episode.
        usd_per_episode, usd_per_success: in dollars.
        teacher_share: share of its steps that the teacher decided.
        usage: of all its episodes.
    """

    arm: str
    episodes: int
    success: CostEstimate
    usd_per_episode: CostEstimate
    usd_per_success: CostEstimate
    teacher_share: CostEstimate
    usage: Usage


@dataclass(frozen=True, slots=True)
class Payoff:
    """Break-even of filling the memory.

    Args:
        point: number of episodes until break-even; `point.episodes` is None for never.
        low, high: its 95 % interval, in episodes; None for never, or if there is no interval.
        reason: reason why there is no point, or no interval.
        n: number of pairs of episodes.
    """

    point: BreakEven | None
    low: int | None = None
    high: int | None = None
    reason: str | None = None
    n: int | None = None

    def __str__(self) -> str:
        if self.point is None:
            return f"unknown ({self.reason})"
        if self.reason is not None:
            return f"{self.point}; no interval: {self.reason}"
        size = "" if self.n is None else f" (n={self.n})"
        return f"{self.point}; 95 % interval: {_episodes(self.low)} to {_episodes(self.high)}{size}"


@dataclass
class Ledger:
    """Entries by arm, and the usage of filling the memory beforehand.

    Example:
        >>> ledger = Ledger(filling=Usage(calls=9, cost_usd=1.0))
        >>> for number in range(12):
        ...     ledger.add("teacher", str(number), True, Usage(calls=5, cost_usd=0.25))
        ...     ledger.add("cascade", str(number), number > 2, Usage(calls=6, cost_usd=0.0625))
        >>> print(ledger.costs("cascade").usd_per_success)
        0.08333 [0.0625, 0.15] USD per success (n=12, 95% interval)
        >>> print(ledger.break_even())
        after 6 episodes (0.1875 saved by each, 1 spent beforehand); 95 % interval: 6 to 6 (n=12)
    """

    filling: Usage = field(default_factory=Usage)
    entries: dict[str, dict[str, LedgerEntry]] = field(default_factory=dict)

    def fill(self, usage: Usage) -> None:
        """Add to the usage of filling the memory."""
        self.filling += usage

    def add(
        self, arm: str, episode: str, success: float, usage: Usage, *, steps: int = 0, teacher_steps: int | None = None
    ) -> None:
        """Add an episode.

        Raises:
            InputError: a value breaks its rule, or the arm has this episode already.
        """
        entry = LedgerEntry(episode, success, usage, steps, teacher_steps)
        of_arm = self.entries.setdefault(check_text("arm", arm), {})
        if episode in of_arm:
            raise InputError(
                f"episode {excerpt(episode)} of {arm!r}, again", "an arm has each episode once", "Choose another name."
            )
        of_arm[episode] = entry

    def add_results(
        self,
        arm: str,
        results: Sequence[EpisodeResult],
        *,
        success_at: float,
        teacher_steps: Sequence[int] | None = None,
        first: int = 0,
    ) -> None:
        """Add the results of a run, as episodes `first`, `first + 1` and so on.

        Args:
            arm: its name.
            results: of `play_run`.
            success_at: lowest score of a success.
            teacher_steps: for each result, the number of steps that the teacher decided (`CascadePlay.teacher_steps`);
                None: not counted.
            first: the number of the first result.

        Raises:
            InputError: as for `add`, or the number of `teacher_steps` differs; nothing is added.
        """
        by_teacher = [None] * len(results) if teacher_steps is None else list(teacher_steps)
        if len(by_teacher) != len(results):
            raise InputError(
                f"{len(by_teacher)} teacher_steps for {len(results)} results",
                "each result must have one",
                "Align them.",
            )
        at = check_number("success_at", success_at)
        names = [str(number) for number in range(first, first + len(results))]
        if known := sorted(set(names) & set(self.entries.get(arm, {}))):
            raise InputError(f"episode {known[0]!r} of {arm!r}, again", "an arm has each episode once", "Pass first=.")
        rows = [
            LedgerEntry(name, float(result.score >= at), result.usage, result.steps, taught)
            for name, result, taught in zip(names, results, by_teacher, strict=True)
        ]
        self.entries.setdefault(check_text("arm", arm), {}).update({row.episode: row for row in rows})

    def costs(self, arm: str) -> ArmCosts:
        """Return the costs of an arm.

        Raises:
            NotFoundError: it has no episodes.
        """
        rows = list(self._of(arm).values())
        usd, reason = _prices(rows)
        ones, success = [1.0] * len(rows), [row.success for row in rows]
        unknown = CostEstimate(None, reason=reason)
        return ArmCosts(
            arm,
            len(rows),
            _ratio(success, ones, "successes per episode", "no episodes"),
            _ratio(usd, ones, "USD per episode", "no episodes") if usd is not None else unknown,
            _ratio(usd, success, _PRICE, "no success, so that no price buys one") if usd is not None else unknown,
            _teacher_share(rows),
            sum((row.usage for row in rows), Usage()),
        )

    def difference(self, first: str, second: str) -> CostEstimate:
        """Return dollars per success of one arm minus those of another, over the episodes that both played.

        Raises:
            NotFoundError: an arm has no episodes.
        """
        rows, others = self._paired(first, second)
        usd, why = _prices(rows)
        other_usd, other_why = _prices(others)
        if usd is None or other_usd is None:
            return CostEstimate(None, reason=why or other_why)
        success, other_success = [row.success for row in rows], [row.success for row in others]
        if not sum(success) or not sum(other_success):
            return CostEstimate(None, reason="an arm without a success in the episodes that both played")
        value = math.fsum(usd) / math.fsum(success) - math.fsum(other_usd) / math.fsum(other_success)
        if len(rows) < BOOTSTRAP_MIN_RUNS:
            return CostEstimate(value, reason=_few(len(rows)), n=len(rows), unit=_PRICE)
        interval = ratio_difference((usd, success), (other_usd, other_success))
        return CostEstimate(value, interval, n=len(rows), unit=_PRICE)

    def break_even(
        self, cascade: str = "cascade", teacher: str = "teacher", *, per: Literal["episode", "success"] = "episode"
    ) -> Payoff:
        """Return the number of episodes after which filling the memory and the cascade cost less than the teacher.

        `filling + n * cascade < n * teacher`, with the mean costs of an episode. With `per="success"` the teacher's
        cost is that of as many successes as the cascade has, so that failures save nothing.

        Args:
            cascade, teacher: arms.
            per: unit of the comparison.

        Raises:
            InputError: another `per`.
            NotFoundError: an arm has no episodes.
        """
        check_one_of("per", per, ("episode", "success"))
        rows, others = self._paired(cascade, teacher)
        filling = _usd(self.filling)
        usd, why = _prices(rows)
        alone, other_why = _prices(others)
        if filling is None or usd is None or alone is None:
            return Payoff(None, reason=why or other_why or "the usage of filling the memory has no price")
        if not rows:
            return Payoff(None, reason=f"no episode that {cascade!r} and {teacher!r} both played")
        worth = 1.0
        if per == "success":
            if not sum(row.success for row in others):
                return Payoff(None, reason=f"{teacher!r} has no success, so that no price buys one")
            worth = sum(row.success for row in rows) / sum(row.success for row in others)
        n = len(rows)
        point = break_even(filling, worth * math.fsum(alone) / n, math.fsum(usd) / n)
        if n < BOOTSTRAP_MIN_RUNS:
            return Payoff(point, reason=_few(n), n=n)
        successes = ([row.success for row in others], [row.success for row in rows]) if per == "success" else None
        return Payoff(point, *break_even_interval(filling, alone, usd, successes=successes), n=n)

    def report(self) -> str:
        """Return all arms as a table, with the reasons for unknown values below it."""
        head = ("success", "USD per episode", "USD per success", "teacher's steps")
        lines, why = [f"{'arm':<12} {'n':>4}" + "".join(f"  {name:<28}" for name in head)], []
        for arm in self.entries:
            costs = self.costs(arm)
            cells = (costs.success, costs.usd_per_episode, costs.usd_per_success, costs.teacher_share)
            shown = "".join(f"  {cell.short():<28}" for cell in cells)
            lines.append(f"{arm:<12} {costs.episodes:>4}{shown}")
            named = zip(head, cells, strict=True)
            why += [f"{arm}, {name}: {cell.reason}" for name, cell in named if cell.value is None]
        why.append(f"in brackets: 95 % intervals, from {BOOTSTRAP_MIN_RUNS} episodes on")
        filling = _usd(self.filling)
        why.append(f"filling the memory: {'unknown' if filling is None else format(filling, '.4g')} USD")
        return "\n".join(line.rstrip() for line in [*lines, *why])

    def _of(self, arm: str) -> dict[str, LedgerEntry]:
        if not (entries := self.entries.get(arm)):
            raise NotFoundError(
                f"arm {excerpt(arm)}", "the ledger has no episode of it", f"Known: {sorted(self.entries)}."
            )
        return entries

    def _paired(self, first: str, second: str) -> tuple[list[LedgerEntry], list[LedgerEntry]]:
        one, other = self._of(first), self._of(second)
        both = [episode for episode in one if episode in other]
        return [one[episode] for episode in both], [other[episode] for episode in both]


def _usd(usage: Usage) -> float | None:
    return None if usage.cost_usd is None or usage.cached_usd is None else usage.cost_usd + usage.cached_usd


def _prices(rows: Sequence[LedgerEntry]) -> tuple[list[float] | None, str | None]:
    known = [usd for row in rows if (usd := row.usd) is not None]
    if len(known) < len(rows):
        return None, f"{len(rows) - len(known)} of {len(rows)} episodes have no price"
    return known, None


def _ratio(numerators: Sequence[float], denominators: Sequence[float], unit: str, none: str) -> CostEstimate:
    total = math.fsum(denominators)
    if not total:
        return CostEstimate(None, reason=none)
    value = math.fsum(numerators) / total
    n = len(numerators)
    if n < BOOTSTRAP_MIN_RUNS:
        return CostEstimate(value, reason=_few(n), n=n, unit=unit)
    return CostEstimate(value, ratio_interval(numerators, denominators), n=n, unit=unit)


def _teacher_share(rows: Sequence[LedgerEntry]) -> CostEstimate:
    taught = [float(row.teacher_steps) for row in rows if row.teacher_steps is not None]
    if len(taught) < len(rows):
        return CostEstimate(None, reason=f"not counted in {len(rows) - len(taught)} of {len(rows)} episodes")
    return _ratio(taught, [float(row.steps) for row in rows], "of the steps", "no steps entered")


def _few(n: int) -> str:
    return f"{counted(n, 'episode')}; an interval needs {BOOTSTRAP_MIN_RUNS}"


def _episodes(n: int | None) -> str:
    return "never" if n is None else str(n)
