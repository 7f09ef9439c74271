"""How much each source of feedback counts. The part of `Memory` that weighs sources against each other."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory.events import Event
from seasoned.memory.feedback import FeedbackWriter
from seasoned.memory.keeping import Keeper
from seasoned.memory.writer import active_selections
from seasoned.types import check_finite, check_reward, check_text

__all__ = ["Source", "Sources"]

_MARK = "~"


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


class Sources(Keeper):
    """Weighs the sources of one namespace's feedback."""

    def weigh(self, source: str, factor: float) -> int:
        """Let all that a source has said count `factor` times as much as when it was said; returns are derived again.

        Every standing event of the source is superseded by one of the same reward and time-stamped now, whose weight is
        the first one's times `factor`. So it is recorded, and reversible: weighing by 1 brings back the weights that
        were given, such as how far a judge's votes agreed. Factors replace each other, they do not multiply; the same
        one again changes nothing. What the source says afterwards comes with the weight that it is given: weigh again.

        To silence a source, and whatever it says later, quarantine it: `quarantine(Selection(source=...), reason)`.

        Args:
            source: as in `feedback`.
            factor: >= 0; 0 leaves the events standing without a say.

        Returns:
            How many events were weighed.

        Raises:
            InputError: the factor is negative or not finite, or makes a reward too large; or a quarantine with a time
                window speaks of the source, and would treat the new events otherwise than the old ones.
            NotFoundError: the source has said nothing that stands.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     episode_id = memory.add(Episode("shop", [Step("cart", "pay")]))
            ...     _ = memory.feedback(episode_id, 1.0, 0, "judge", weight=0.5)
            ...     _ = memory.weigh("judge", 0.5)
            ...     memory.search("cart")[0].experience.reward
            0.25
        """
        check_text("source", source)
        if check_finite("factor", factor) < 0:
            raise InputError(f"factor = {factor}", "a factor is at least 0", "0 leaves the source without a say.")
        now = time.time()
        counts: list[int] = []

        def change() -> None:
            events = {event.id: event for _, event in self._reader.events()}
            standing = [e for e in events.values() if e.source == source and e.revoked_at is None]
            if not standing:
                known = ", ".join(sorted({repr(e.source) for e in events.values() if e.revoked_at is None})[:10])
                raise NotFoundError(
                    f"source {excerpt(source)}", "it has said nothing that stands", f"Known are: {known or 'none'}."
                )
            for selection in active_selections(self._store, self._id):
                if any(selection.covers_event(source, e.created_at) != selection.covers_event(source, now)
                       for e in standing):  # fmt: skip
                    raise InputError(
                        f"source {excerpt(source)}, a quarantine of {selection.record()}",
                        "what is weighed is said anew now, which this quarantine would treat otherwise",
                        "Lift it first, or quarantine the source without a time.",
                    )
            weighed = [(event, _first(event, events).weight * factor) for event in standing]
            for event, weight in weighed:
                check_reward("reward * weight", event.reward * weight)
            changed = [
                replace(event, id=_next_id(event.id, now), weight=weight, created_at=now)
                for event, weight in weighed
                if weight != event.weight
            ]
            FeedbackWriter(self._store, self._id).add_many(changed)
            counts.append(len(changed))

        self._write(change)
        return max(counts)  # of several attempts, one may have been committed though its answer was lost

    def sources(self) -> dict[str, Source]:
        """Return what each source has said that still stands, by source."""
        events, heard = self._read(
            lambda: (
                {event.id: event for _, event in self._reader.events()},
                {row[0] for row in self._store.execute("SELECT id FROM feedback WHERE namespace_id = ? AND live",
                                                       (self._id,))},
            )
        )  # fmt: skip
        found: dict[str, list[Event]] = {}
        for event in events.values():
            if event.revoked_at is None:
                found.setdefault(event.source, []).append(event)
        return {
            source: Source(
                len(said),
                sum(event.reward * event.weight for event in said if event.id in heard),
                tuple(sorted({_factor(event, events) for event in said})),
            )
            for source, said in sorted(found.items())
        }


def _first(event: Event, events: dict[str, Event]) -> Event:
    """Return the event that was given, of one that was weighed since: its id begins with the first one's."""
    first = events.get(event.id.rpartition(_MARK)[0])
    same = first is not None and (first.episode_id, first.step, first.source, first.author, first.reward) == (
        event.episode_id, event.step, event.source, event.author, event.reward,
    )  # fmt: skip
    return first if same and first is not None else event


def _factor(event: Event, events: dict[str, Event]) -> float:
    first = _first(event, events)
    return event.weight / first.weight if first.weight else 1.0


def _next_id(event_id: str, at: float) -> str:
    """Return an id that tells the first event, and sorts after those of earlier weighings."""
    first, mark, when = event_id.rpartition(_MARK)
    known = mark and len(when) == 16
    return f"{first if known else event_id}{_MARK}{int(at * 1e6):016x}"
