"""Curation of the examples that were shown: their ranking, and the retirement of harmful ones."""

from __future__ import annotations

from seasoned.checks import check_number, check_whole
from seasoned.core.impression_value import Observed, derived_shrinkage, posterior_worth
from seasoned.policies.examples.example import ExampleValuation
from seasoned.policies.examples.impression_effects import ImpressionEffects
from seasoned.protocols import ReadableMemory
from seasoned.types import RETIRED

__all__ = ["Curation"]


class Curation:
    """Values the examples of one memory by their own outcome, and by the outcomes of the steps that displayed them."""

    def __init__(self, memory: ReadableMemory, gamma: float, effects: ImpressionEffects) -> None:
        self._memory = memory
        self._gamma = gamma
        self._effects = effects

    def values(self, *, confidence: float = 0.95) -> tuple[ExampleValuation, ...]:
        """Return the valuation of every example that was shown at least once, computed from the stored data.

        With A the advantage of a step, its return less the mean return of the m other steps at its distinct state, and
        w = m / (m + 1) its weight (`seasoned.core.impression_value.advantages_over_peers`):

            value = (w A of its own + n mean) / (w + n + kappa),

        where mean is the mean of A over the steps at which the example was shown, weighted by w and by the example's
        share of the prompt there, n is the effective number of episodes that showed it
        (`seasoned.core.impression_value.observed_impressions`), and kappa is the shrinkage to the baseline that follows
        from their scatter (`derived_shrinkage`). The interval is that of `posterior_worth`. An example that is erased
        or excluded is not listed; untrusted episodes do not count.

        Args:
            confidence: of the intervals, in (0, 1).
        """
        shown, observed, n_shown = self._effects.all()
        seen = self._memory.experiences(shown, gamma=self._gamma)
        rows = [row for row, place in enumerate(shown) if place in seen]
        places = [shown[row] for row in rows]
        observed = Observed(observed.counts[rows], observed.totals[rows], observed.squares[rows])
        observed = observed.with_own(*self._effects.own(places))
        worth = posterior_worth(observed, derived_shrinkage(observed), confidence=confidence)
        retired = {(note.episode_id, note.step) for note in self._memory.notes(kind=RETIRED)}
        rejected = self._effects.rejected(list(seen.values()))
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
        """Return the valuations, the largest value first; among equal values the narrowest interval first."""
        return tuple(sorted(self.values(), key=lambda one: (-one.value, one.high - one.low, one.place)))

    def best_per_task(self, n: int = 1) -> dict[str, tuple[ExampleValuation, ...]]:
        """Return for each task its n most valuable examples that are neither retired nor rejected.

        Raises:
            InputError: n is not a whole number, at least 1.
        """
        n = check_whole("n", n, 1)
        best: dict[str, list[ExampleValuation]] = {}
        for one in self.ranking():
            if not (one.retired or one.rejected) and len(best.setdefault(one.task, [])) < n:
                best[one.task].append(one)
        return {task: tuple(valuations) for task, valuations in best.items() if valuations}

    def prune(self, confidence: float = 0.95, *, dry_run: bool = False) -> tuple[ExampleValuation, ...]:
        """Retire the harmful examples: those whose effect, at this confidence, is worse than the baseline.

        An example is retired if the one-sided upper bound of its value is below 0. It is no longer shown as a model,
        but remains stored, also as evidence. Retirement is a note of the kind "retired", and `memory.revoke` with the
        id of the note undoes it. Failed episodes count as much as successful ones, so call it after both.

        Args:
            confidence: of the upper bound, above 0.5 and below 1.
            dry_run: return the examples without retiring them.

        Returns:
            The examples that were retired, or would be.

        Raises:
            InputError: the confidence is out of range.
        """
        confidence = check_number("confidence", confidence, above=0.5, below=1, next_step="0.95 is usual.")
        # The upper end of a central interval at 2c - 1 is the one-sided bound at c.
        worse = tuple(
            one for one in self.values(confidence=2.0 * confidence - 1.0) if one.high < 0.0 and not one.retired
        )
        for one in () if dry_run else worse:
            self._memory.note(
                one.episode_id,
                RETIRED,
                {"value": one.value, "high": one.high, "confidence": confidence},
                step=one.step,
                source="curation",
            )
        return worse
