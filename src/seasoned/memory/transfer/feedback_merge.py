"""Feedback of two stores about the same episodes, as one: who stands, who was superseded, who was revoked."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from seasoned.memory.values.derived_ids import original_event_id
from seasoned.memory.values.events import Event

__all__ = ["reconcile"]

Target = tuple[str, int, str, str | None, str | None]
"""What an event is about, and who gave it: of the events of one target, one stands."""


def reconcile(ours: Sequence[Event], theirs: Sequence[Event]) -> list[Event]:
    """Return the events of both, ours first, each with what became of it.

    Of the events of one target at most one stands:

    - What either store knows to be revoked is revoked, and what either knows to be superseded is superseded; where they
      differ on when or by what, revoked comes before superseded by a later event, that before superseded by an earlier
      one (clocks go back), and sooner before later.
    - What was said once is revoked however it was weighed: where either store knows that an event or one that weighs it
      anew was revoked, none of them stands.
    - Where two stand, the later one (by its time, then its id) supersedes the other.
    - Where the stores contradict each other, so that events would supersede each other in a circle, each of those and
      of the ones that lead to what stands is superseded by the next later one.

    So what became of the events does not depend on whose are `ours`, and merging again changes nothing. An event comes
    before the one that superseded it: where a new one was superseded by one of ours, those of their target exchange
    places.

    Args:
        ours: in the order of one store, which stays but for such exchanges.
        theirs: in the order of the other store; an event of the same id has the same content.
    """
    views: defaultdict[str, list[Event]] = defaultdict(list)
    for event in (*ours, *theirs):
        views[event.id].append(event)
    ends = _ends(views)
    found: dict[str, Event] = {}
    for id_, seen in views.items():
        found[id_] = _ended(min(seen, key=lambda event: _rank(event, views)), ends)
    by_target: defaultdict[Target, list[Event]] = defaultdict(list)
    for event in found.values():
        by_target[_target(event)].append(event)
    for rivals in by_target.values():
        _settle(rivals, found, views)
    found = {id_: _ended(event, ends) for id_, event in found.items()}  # a circle may have let one stand
    return _ordered(found)


def _target(event: Event) -> Target:
    return event.episode_id, event.step, event.source, event.author, event.kind


def _ends(views: Mapping[str, list[Event]]) -> dict[str, float]:
    """Return when what was said was revoked, where it was, by its first event's id."""
    ends: dict[str, float] = {}
    for event in itertools.chain.from_iterable(views.values()):
        if event.revoked_at is not None and event.superseded_by is None:
            word = original_event_id(event.id)
            ends[word] = min(event.revoked_at, ends.get(word, event.revoked_at))
    return ends


def _ended(event: Event, ends: Mapping[str, float]) -> Event:
    """Return the event, revoked if it is not superseded and what it says was revoked in any weighing."""
    at = ends.get(original_event_id(event.id))
    return event if at is None or event.superseded_by is not None else replace(event, revoked_at=at)


def _said(event: Event) -> tuple[float, str]:
    return event.created_at, event.id


def _rank(event: Event, views: Mapping[str, list[Event]]) -> tuple[int, float, str]:
    """Which of two views of an event holds: the lower one."""
    if event.revoked_at is None:
        return 3, 0.0, ""
    if event.superseded_by is None:
        return 0, event.revoked_at, ""
    forward = _said(views[event.superseded_by][0]) > _said(event)
    return 1 if forward else 2, event.revoked_at, event.superseded_by


def _settle(rivals: Sequence[Event], found: dict[str, Event], views: Mapping[str, list[Event]]) -> None:
    """Let one of the events of one target stand, at most."""
    standing = [event for event in rivals if event.revoked_at is None]
    ends = {event.id: _end(event, found) for event in rivals}
    if None not in ends.values():
        for event in sorted(standing, key=_said)[:-1]:
            found[event.id] = _superseded(event, max(standing, key=_said))
        return
    line = sorted((event for event in rivals if (end := ends[event.id]) is None or end.revoked_at is None), key=_said)
    for event, following in itertools.pairwise(line):
        found[event.id] = _superseded(event, following)
    last = line[-1]
    among = {event.id for event in line}
    outside = [view for view in views[last.id] if view.superseded_by is not None and view.superseded_by not in among]
    alone = replace(last, revoked_at=None, superseded_by=None)
    found[last.id] = min(outside, key=lambda view: _rank(view, views), default=alone)


def _superseded(event: Event, by: Event) -> Event:
    return replace(event, revoked_at=by.created_at, superseded_by=by.id)


def _end(event: Event, found: Mapping[str, Event]) -> Event | None:
    """Return the last of those that superseded an event, one after the other; None if they do so in a circle."""
    seen: set[str] = set()
    at = event
    while at.superseded_by is not None:
        if at.id in seen:
            return None
        seen.add(at.id)
        at = found[at.superseded_by]
    return at


def _ordered(found: dict[str, Event]) -> list[Event]:
    """Let each event precede the one that superseded it; those of one target exchange places, no others."""
    order = list(found.values())
    places: defaultdict[Target, list[int]] = defaultdict(list)
    for number, event in enumerate(order):
        places[_target(event)].append(number)
    for numbers in places.values():
        for number, event in zip(numbers, _one_after_the_other([order[n] for n in numbers]), strict=True):
            order[number] = event
    return order


def _one_after_the_other(events: list[Event]) -> list[Event]:
    known = {event.id: event for event in events}
    place = {id_: number for number, id_ in enumerate(known)}
    end = itertools.count(len(events))
    for event in events:
        at = event
        while at.superseded_by is not None and place[at.superseded_by] < place[at.id]:
            place[at.superseded_by] = next(end)
            at = known[at.superseded_by]
    return sorted(events, key=lambda event: place[event.id])
