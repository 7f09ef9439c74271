"""Weights of the sources of feedback: a part of `Memory`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from seasoned.checks import check_instance, check_number, check_reward, check_text
from seasoned.errors import NotFoundError, excerpt
from seasoned.memory.session import Session
from seasoned.memory.values.corruption import decode_texts
from seasoned.memory.values.derived_ids import original_event_id
from seasoned.memory.values.events import Event
from seasoned.memory.values.feedback_limits import FeedbackLimits
from seasoned.memory.writing.feedback_events import FeedbackWriter
from seasoned.memory.writing.namespace_row import read_feedback_limits, write_feedback_limits

__all__ = ["SourceSummary", "SourceWeights"]


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """Summary of one source's unrevoked events.

    Args:
        events: number of unrevoked events, quarantined ones included.
        total: sum of `reward * weight`, in reward units, without quarantined events.
        factors: the factors by which events were reweighted; (1.0,) without a reweighting.
    """

    events: int
    total: float
    factors: tuple[float, ...]


class SourceWeights:
    """Reweights the feedback of one namespace by source."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = session.store
        self._ns = session.namespace_id

    def reweight_source(self, source: str, factor: float) -> int:
        """Multiply the original weights of a source's events by a factor; returns are derived again.

        Each unrevoked event of the source is superseded by an event with the same reward and time, and `factor` times
        the original weight. So a reweighting is recorded, and reversible: factor 1 restores the original weights. A new
        factor replaces the previous one, and the same factor again is a no-op. Later feedback of the source has the
        weight that it is stored with: reweight again to include it.

        A reweighted event keeps its original time, also for a quarantine with a time window, and `revoke` accepts the
        original id. The id of a reweighted event holds the time of the reweighting.

        To exclude a source, later feedback included, quarantine it: `quarantine(Selection(source=...), reason)`.

        Args:
            source: as in `feedback`.
            factor: at least 0; 0 keeps the events without an effect.

        Returns:
            The number of reweighted events.

        Raises:
            InputError: the factor is negative or not finite, makes a reward too large, or exceeds a limit of the
                memory.
            NotFoundError: the source has no unrevoked event.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     episode_id = memory.add(Episode("shop", [Step("cart", "pay")]))
            ...     _ = memory.feedback(episode_id, 1.0, 0, "judge", weight=0.5)
            ...     _ = memory.reweight_source("judge", 0.5)
            ...     memory.search("cart")[0].experience.reward
            0.25
        """
        check_text("source", source)
        factor = check_number("factor", factor, at_least=0, next_step="0 takes the effect of the source away.")
        now_us = int(time.time() * 1e6)
        counts: list[int] = []

        def change() -> None:
            events = [event for _, event in self._session.reader.events()]
            unrevoked = [event for event in events if event.source == source and event.revoked_at is None]
            if not unrevoked:
                known = ", ".join(sorted({repr(e.source) for e in events if e.revoked_at is None})[:10])
                raise NotFoundError(
                    f"source {excerpt(source)}", "it has no unrevoked feedback", f"Known are: {known or 'none'}."
                )
            versions = _versions(events)
            changed: list[Event] = []
            for event in unrevoked:
                original, latest = versions[_key(event)][0], versions[_key(event)][-1]
                weight = original.weight * factor
                check_reward("reward * weight", event.reward * weight)
                if weight != event.weight:  # the times of reweightings differ, even with a coarse clock
                    changed.append(original.reweighted(weight, max(now_us, latest.reweighted_at_us + 1)))
            FeedbackWriter(self._store, self._ns).add_many(changed)
            counts.append(len(changed))

        self._session.write(change)
        return max(counts)  # an earlier attempt may have been committed, and its result lost

    def feedback_limits(self) -> FeedbackLimits:
        """Return the limits of new feedback in this namespace."""
        return self._session.read(lambda: read_feedback_limits(self._store, self._ns))

    def set_feedback_limits(self, limits: FeedbackLimits) -> None:
        """Set the limits of new feedback in this namespace, for every process; they replace the earlier ones.

        Feedback that exceeds one is refused, whether it is given, imported, merged or reweighted. Stored feedback stays
        as it is.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> from seasoned.memory import FeedbackLimits
            >>> with Memory.open(":memory:") as memory:
            ...     memory.set_feedback_limits(FeedbackLimits(max_weight=1, max_step_feedback=3))
            ...     _ = memory.add(Episode("shop", [Step("cart", "pay")], "e1"))
            ...     try:
            ...         memory.feedback("e1", -1.0, weight=36)
            ...     except ValueError as error:
            ...         print(error.rule)
            feedback of this source has a weight of at most 1 in this memory
        """
        check_instance("limits", limits, FeedbackLimits, next_step="Build it with FeedbackLimits(...).")
        self._session.write(lambda: write_feedback_limits(self._store, self._ns, limits))

    def sources(self) -> dict[str, SourceSummary]:
        """Return a summary of the unrevoked feedback of each source."""
        live_ids = "SELECT id FROM feedback WHERE namespace_id = ? AND live"

        def query() -> tuple[list[Event], set[str]]:
            rows = self._store.execute(live_ids, (self._ns,)).fetchall()
            live = set(decode_texts(self._store.path, "feedback id", rows))
            return [event for _, event in self._session.reader.events()], live

        events, live = self._session.read(query)
        versions = _versions(events)
        by_source: defaultdict[str, list[Event]] = defaultdict(list)
        for event in events:
            if event.revoked_at is None:
                by_source[event.source].append(event)
        return {
            source: SourceSummary(
                len(of_source),
                sum(event.reward * event.weight for event in of_source if event.id in live),
                tuple(sorted({_factor(event, versions[_key(event)][0]) for event in of_source})),
            )
            for source, of_source in sorted(by_source.items())
        }


Key = tuple[str, str, int, str, str | None, float]
"""Identifies an original event and its reweighted successors."""


def _key(event: Event) -> Key:
    return original_event_id(event.id), event.episode_id, event.step, event.source, event.author, event.reward


def _versions(events: Iterable[Event]) -> dict[Key, list[Event]]:
    """Return each original event, followed by its reweighted successors in order."""
    versions: defaultdict[Key, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.id):
        versions[_key(event)].append(event)
    return versions


def _factor(event: Event, original: Event) -> float:
    return event.weight / original.weight if original.weight else 1.0
