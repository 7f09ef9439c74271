"""What each arm costs for what it achieves: dollars per success, who decided, and when filling a memory pays.

What was asked for is counted by what it takes, whether a cache answered or not. An unknown price is never 0: a sum that
it is in is unknown, and says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.checks import check_number, check_text
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
        episode: which one; arms that played the same one are paired by it.
        success: 1 or 0, or a share of the task, in [0, 1].
        usage: what it took.
        steps, teacher_steps: all steps, and those that the teacher decided; None: nobody counted.

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
        if not 0.0 <= check_number("success", float(self.success)) <= 1.0:
            raise InputError(f"success = {self.success}", "a success is in [0, 1]", "Divide a score by the best one.")
        if not isinstance(self.usage, Usage):
            raise InputError(f"usage = {excerpt(self.usage)}", "it is a Usage", "Pass the result's.")
        if not 0 <= (self.teacher_steps or 0) <= self.steps:
            raise InputError(
                f"{self.teacher_steps} of {self.steps} steps", "the teacher decides some of them", "Count again."
            )
        object.__setattr__(self, "success", float(self.success))

    @property
    def usd(self) -> float | None:
        """What it takes, with a cache or without; None: the price is not known."""
        return _usd(self.usage)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """A number that may be unknown.

    Args:
        value: None where nobody can say.
        interval: from 10 episodes on.
        reason: why there is no value, or no interval.
        n: over how many episodes; None: it has no value.
        unit: what it is counted in.
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
        """Return the value and its interval without their unit, level and n, for a table that says them."""
        if self.value is None:
            return "unknown"
        if self.interval is None:
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.interval.low:.4g}, {self.interval.high:.4g}]"


@dataclass(frozen=True, slots=True)
class ArmCosts:
    """What one arm cost.

    Args:
        arm: its name.
        episodes: how many it played.
        success: successes per episode.
        usd_per_episode, usd_per_success: in dollars.
        teacher_share: of its steps, those that the teacher decided.
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
    """When filling the memory has paid.

    Args:
        point: after how many episodes; `point.episodes` is None for never.
        low, high: its 95 % interval, in episodes; None: never, or there is no interval.
        reason: why there is no answer, or no interval.
        n: from how many pairs of episodes.
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
        given = "" if self.n is None else f" (n={self.n})"
        return f"{self.point}; 95 % interval: {_episodes(self.low)} to {_episodes(self.high)}{given}"


@dataclass
class Ledger:
    """Entries by arm, and what was spent to fill the memory beforehand.

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
        """Add to what filling the memory took."""
        self.filling += usage

    def add(
        self, arm: str, episode: str, success: float, usage: Usage, *, steps: int = 0, teacher_steps: int | None = None
    ) -> None:
        """Enter an episode.

        Raises:
            InputError: a value breaks its rule, or the arm has this episode already.
        """
        entry = LedgerEntry(episode, success, usage, steps, teacher_steps)
        of_arm = self.entries.setdefault(check_text("arm", arm), {})
        if episode in of_arm:
            raise InputError(
                f"episode {excerpt(episode)} of {arm!r}, again", "it is entered once", "Name it otherwise."
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
        """Enter a run's results, as episodes `first`, `first + 1` and so on.

        Args:
            arm: its name.
            results: what `play_run` returned.
            success_at: a score from this on is a success.
            teacher_steps: by result, the steps that the teacher decided (`CascadePlay.teacher_steps`); None: nobody
                counted.
            first: the number of the first result.

        Raises:
            InputError: as for `add`, or there are more or fewer `teacher_steps`; nothing is entered.
        """
        by_teacher = [None] * len(results) if teacher_steps is None else list(teacher_steps)
        if len(by_teacher) != len(results):
            raise InputError(
                f"{len(by_teacher)} teacher_steps for {len(results)} results", "each result has one", "Align them."
            )
        at = check_number("success_at", success_at)
        names = [str(number) for number in range(first, first + len(results))]
        if known := sorted(set(names) & set(self.entries.get(arm, {}))):
            raise InputError(f"episode {known[0]!r} of {arm!r}, again", "it is entered once", "Pass first=.")
        rows = [
            LedgerEntry(name, float(result.score >= at), result.usage, result.steps, taught)
            for name, result, taught in zip(names, results, by_teacher, strict=True)
        ]
        self.entries.setdefault(check_text("arm", arm), {}).update({row.episode: row for row in rows})

    def costs(self, arm: str) -> ArmCosts:
        """Return what an arm cost.

        Raises:
            NotFoundError: no episode of it was entered.
        """
        rows = list(self._of(arm).values())
        usd, why = _prices(rows)
        ones, success = [1.0] * len(rows), [row.success for row in rows]
        unknown = CostEstimate(None, reason=why)
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
        """Return dollars per success of one arm less another's, over the episodes that both played.

        Raises:
            NotFoundError: no episode of an arm was entered.
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
        found = ratio_difference((usd, success), (other_usd, other_success))
        return CostEstimate(value, found, n=len(rows), unit=_PRICE)

    def break_even(
        self, cascade: str = "cascade", teacher: str = "teacher", *, per: Literal["episode", "success"] = "episode"
    ) -> Payoff:
        """Return after how many episodes filling the memory and the cascade cost less than the teacher alone.

        `filling + n * cascade < n * teacher`, by the mean cost of an episode. With `per="success"` the teacher's is
        that of as many successes as the cascade has, so that saving by failing does not pay.

        Args:
            cascade, teacher: arms.
            per: what is bought.

        Raises:
            InputError: another `per`.
            NotFoundError: no episode of an arm was entered.
        """
        if per not in ("episode", "success"):
            raise InputError(f"per = {excerpt(per)}", "it is 'episode' or 'success'", "Keep 'episode'.")
        rows, others = self._paired(cascade, teacher)
        filling = _usd(self.filling)
        usd, why = _prices(rows)
        alone, other_why = _prices(others)
        if filling is None or usd is None or alone is None:
            return Payoff(None, reason=why or other_why or "what filling the memory took has no price")
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
        """Return all arms as a table that a person can read; what is unknown says why below it."""
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
        if not (found := self.entries.get(arm)):
            raise NotFoundError(
                f"arm {excerpt(arm)}", "no episode of it was entered", f"Known: {sorted(self.entries)}."
            )
        return found

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
        return CostEstimate(None, reason=f"nobody counted in {len(rows) - len(taught)} of {len(rows)} episodes")
    return _ratio(taught, [float(row.steps) for row in rows], "of the steps", "no steps entered")


def _few(n: int) -> str:
    return f"{counted(n, 'episode')}; an interval needs {BOOTSTRAP_MIN_RUNS}"


def _episodes(n: int | None) -> str:
    return "never" if n is None else str(n)
