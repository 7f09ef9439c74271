"""How examples stand that were shown: ranking them, and retiring those that do harm."""

from __future__ import annotations

from seasoned.core.impression_value import Observed, derived_shrinkage, posterior_worth
from seasoned.errors import InputError, excerpt
from seasoned.policies.examples.example import ExampleValuation
from seasoned.policies.examples.example_source import ExampleSource
from seasoned.policies.examples.impression_effects import ImpressionEffects

__all__ = ["Curation"]


class Curation:
    """Values the examples of one memory by their own outcome, and by what followed where they were shown."""

    def __init__(self, memory: ExampleSource, gamma: float, showings: ImpressionEffects) -> None:
        self._memory = memory
        self._gamma = gamma
        self._showings = showings

    def values(self, *, confidence: float = 0.95) -> tuple[ExampleValuation, ...]:
        """Return how every example stands that was shown at least once, worked out anew from what is stored.

        With A the advantage of a step, its return less the mean return of the m others at its distinct state, and
        w = m / (m + 1) what that weighs (`seasoned.core.advantages_over_peers`):

            value = (w A of its own + n mean) / (w + n + kappa),

        where mean is that of A over the steps at which it was shown, weighted by w and by its share in what was shown
        there, n the effective number of episodes that showed it (`seasoned.core.observed_impressions`), and kappa the
        shrinkage to the baseline that their scatter calls for (`derived_shrinkage`). The interval is
        `posterior_worth`'s. One that is no longer stored, or is set aside, is not listed; episodes that do not count
        say nothing.

        Args:
            confidence: of the intervals, in (0, 1).
        """
        shown, observed, n_shown = self._showings.all()
        seen = self._memory.experiences(shown, gamma=self._gamma)
        rows = [row for row, place in enumerate(shown) if place in seen]
        places = [shown[row] for row in rows]
        observed = Observed(observed.counts[rows], observed.totals[rows], observed.squares[rows])
        observed = observed.with_own(*self._showings.own(places))
        worth = posterior_worth(observed, derived_shrinkage(observed), confidence=confidence)
        retired = {(note.episode_id, note.step) for note in self._memory.notes(kind="retired")}
        rejected = self._showings.rejected(list(seen.values()))
        return tuple(
            ExampleValuation(
                *place,
                seen[place].task,
                seen[place].return_,
                float(worth.values[row]),
                float(worth.low[row]),
                float(worth.high[row]),
                n_shown[rows[row]],
                float(observed.counts[row]),
                place in retired,
                place in rejected,
            )
            for row, place in enumerate(places)
        )

    def ranking(self) -> tuple[ExampleValuation, ...]:
        """Return how the examples stand, the most valuable first; among equals the one that is known better."""
        return tuple(sorted(self.values(), key=lambda one: (-one.value, one.high - one.low, one.place)))

    def best_per_task(self, n: int = 1) -> dict[str, tuple[ExampleValuation, ...]]:
        """Return for each task its n most valuable examples that are neither retired nor rejected.

        Raises:
            InputError: n is not a whole number, at least 1.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InputError(f"n = {excerpt(n)}", "it is a whole number, at least 1", "1 is usual.")
        best: dict[str, list[ExampleValuation]] = {}
        for one in self.ranking():
            if not (one.retired or one.rejected) and len(best.setdefault(one.task, [])) < n:
                best[one.task].append(one)
        return {task: tuple(standings) for task, standings in best.items() if standings}

    def prune(self, confidence: float = 0.95, *, dry_run: bool = False) -> tuple[ExampleValuation, ...]:
        """Retire the examples of which it is sure, at this confidence, that to show them is worse than the baseline.

        One is retired where the upper bound of its value, one-sided, is below 0. It is not shown as a model any more,
        but stays stored, as evidence too: retiring is a note of the kind "retired", and `memory.revoke` of its id takes
        it back. Failures teach this as much as successes: call it after either.

        Args:
            confidence: that one which is retired deserves it, above 0.5 and below 1.
            dry_run: only say which.

        Returns:
            Those that were retired, or would be.

        Raises:
            InputError: the confidence is out of range.
        """
        if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.5 < confidence < 1.0:
            raise InputError(f"confidence = {confidence!r}", "it is above 0.5 and below 1", "0.95 is usual.")
        # The upper end of a central interval at 2c - 1 is the one-sided bound at c.
        worse = tuple(
            one for one in self.values(confidence=2.0 * confidence - 1.0) if one.high < 0.0 and not one.retired
        )
        for one in () if dry_run else worse:
            self._memory.note(
                one.episode_id,
                "retired",
                {"value": one.value, "high": one.high, "confidence": float(confidence)},
                step=one.step,
                source="curation",
            )
        return worse
