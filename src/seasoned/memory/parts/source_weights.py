"""Weights of the sources of feedback: a part of `Memory`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from seasoned.checks import check_number, check_reward, check_text
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory.session import Session
from seasoned.memory.values.derived_ids import original_event_id
from seasoned.memory.values.events import Event
from seasoned.memory.writing.feedback_events import FeedbackWriter

__all__ = ["Source", "SourceWeights"]


@dataclass(frozen=True, slots=True)
class Source:
    """What a source has said that still stands.

    Args:
        events: how many of its events stand, those that a quarantine holds included.
        total: what they add to the rewards, in reward units; quarantined ones add nothing.
        factors: by which of them were weighed; (1.0,) where it was never weighed.
    """

    events: int
    total: float
    factors: tuple[float, ...]


class SourceWeights:
    """Weighs the sources of one namespace's feedback."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = session.store
        self._ns = session.namespace_id

    def reweight_source(self, source: str, factor: float) -> int:
        """Let all that a source has said count `factor` times as much as when it was said; returns are derived again.

        Every standing event of the source is superseded by one of the same reward, whose weight is the first one's
        times `factor`. So it is recorded, and reversible: weighing by 1 brings back the weights that were given, such
        as how far a judge's votes agreed. Factors replace each other, they do not multiply; the same one again changes
        nothing. What the source says afterwards comes with the weight that it is given: weigh again.

        It stays the same word: it was said when it was first said, also for a quarantine with a time window, and
        `revoke` takes it back by the id that `feedback` returned. When it was weighed, its new id tells.

        To silence a source, and whatever it says later, quarantine it: `quarantine(Selection(source=...), reason)`.

        Args:
            source: as in `feedback`.
            factor: >= 0; 0 leaves the events standing without a say.

        Returns:
            How many events were weighed.

        Raises:
            InputError: the factor is negative or not finite, or makes a reward too large.
            NotFoundError: the source has said nothing that stands.

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
        if check_number("factor", factor) < 0:
            raise InputError(f"factor = {factor}", "a factor must be at least 0", "0 leaves the source without a say.")
        now_us = int(time.time() * 1e6)
        counts: list[int] = []

        def change() -> None:
            events = [event for _, event in self._session.reader.events()]
            standing = [event for event in events if event.source == source and event.revoked_at is None]
            if not standing:
                known = ", ".join(sorted({repr(e.source) for e in events if e.revoked_at is None})[:10])
                raise NotFoundError(
                    f"source {excerpt(source)}", "it has said nothing that stands", f"Known are: {known or 'none'}."
                )
            words = _words(events)
            changed: list[Event] = []
            for event in standing:
                word = words[_word(event)]
                weight = word[0].weight * factor
                check_reward("reward * weight", event.reward * weight)
                if weight != event.weight:  # each weighing has a time of its own, however coarse the clock
                    changed.append(word[0].reweighted(weight, max(now_us, word[-1].reweighted_at_us + 1)))
            FeedbackWriter(self._store, self._ns).add_many(changed)
            counts.append(len(changed))

        self._session.write(change)
        return max(counts)  # of several attempts, one may have been committed though its answer was lost

    def sources(self) -> dict[str, Source]:
        """Return what each source has said that still stands, by source."""
        events, heard = self._session.read(
            lambda: (
                [event for _, event in self._session.reader.events()],
                {
                    row[0]
                    for row in self._store.execute(
                        "SELECT id FROM feedback WHERE namespace_id = ? AND live", (self._ns,)
                    )
                },
            )
        )
        words = _words(events)
        found: defaultdict[str, list[Event]] = defaultdict(list)
        for event in events:
            if event.revoked_at is None:
                found[event.source].append(event)
        return {
            source: Source(
                len(said),
                sum(event.reward * event.weight for event in said if event.id in heard),
                tuple(sorted({_factor(event, words[_word(event)][0]) for event in said})),
            )
            for source, said in sorted(found.items())
        }


Word = tuple[str, str, int, str, str | None, float]
"""What was said once, however it was weighed since."""


def _word(event: Event) -> Word:
    return original_event_id(event.id), event.episode_id, event.step, event.source, event.author, event.reward


def _words(events: Iterable[Event]) -> dict[Word, list[Event]]:
    """Return the events of each word: first as it was given, then as it was weighed, in that order."""
    found: defaultdict[Word, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.id):
        found[_word(event)].append(event)
    return found


def _factor(event: Event, first: Event) -> float:
    return event.weight / first.weight if first.weight else 1.0
