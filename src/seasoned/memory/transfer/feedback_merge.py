"""Merge of two stores' feedback histories: which events are active, superseded or revoked afterwards."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from seasoned.memory.values.derived_ids import original_event_id
from seasoned.memory.values.events import Event

__all__ = ["reconcile"]

Target = tuple[str, int, str, str | None, str | None]
"""Episode, step, source, author and kind of an event; at most one event of a target is active."""


def reconcile(ours: Sequence[Event], theirs: Sequence[Event]) -> list[Event]:
    """Return the events of both stores, ours first, each with its final `revoked_at` and `superseded_by`.

    At most one event of a target stays active:

    - An event that is revoked or superseded in either store is so afterwards. If the stores differ, revoked wins over
      superseded by a later event, that wins over superseded by an earlier event (clocks go back), and an earlier time
      wins over a later one.
    - Revocation holds for all reweightings: if either store revoked an event or a reweighting of it, all are revoked.
    - Of two active events, the later one (by time, then id) supersedes the other.
    - If the stores contradict each other, so that events would supersede each other in a circle, each event of the
      circle, and of the chain to the active event, is superseded by the next later event.

    So the result does not depend on which store is `ours`, and merging again changes nothing. An event precedes the one
    that superseded it: if one of ours superseded a new event, the events of their target exchange places.

    Args:
        ours: events in the order of one store, which the result keeps but for such exchanges.
        theirs: events in the order of the other store; an event with the same id has the same content.
    """
    versions: defaultdict[str, list[Event]] = defaultdict(list)
    for event in (*ours, *theirs):
        versions[event.id].append(event)
    revocations = _revocations(versions)
    merged: dict[str, Event] = {}
    for id_, both in versions.items():
        merged[id_] = _revoked(min(both, key=lambda event: _rank(event, versions)), revocations)
    by_target: defaultdict[Target, list[Event]] = defaultdict(list)
    for event in merged.values():
        by_target[_target(event)].append(event)
    for rivals in by_target.values():
        _settle(rivals, merged, versions)
    merged = {id_: _revoked(event, revocations) for id_, event in merged.items()}  # a circle may leave one active
    return _ordered(merged)


def _target(event: Event) -> Target:
    return event.episode_id, event.step, event.source, event.author, event.kind


def _revocations(versions: Mapping[str, list[Event]]) -> dict[str, float]:
    """Return the earliest revocation of each event or its reweightings, by the original event's id."""
    revocations: dict[str, float] = {}
    for event in itertools.chain.from_iterable(versions.values()):
        if event.revoked_at is not None and event.superseded_by is None:
            id_ = original_event_id(event.id)
            revocations[id_] = min(event.revoked_at, revocations.get(id_, event.revoked_at))
    return revocations


def _revoked(event: Event, revocations: Mapping[str, float]) -> Event:
    """Return the event, revoked if it is not superseded and any of its reweightings was revoked."""
    at = revocations.get(original_event_id(event.id))
    return event if at is None or event.superseded_by is not None else replace(event, revoked_at=at)


def _age(event: Event) -> tuple[float, str]:
    return event.created_at, event.id


def _rank(event: Event, versions: Mapping[str, list[Event]]) -> tuple[int, float, str]:
    """Sort key of the versions of one event: the smaller one wins."""
    if event.revoked_at is None:
        return 3, 0.0, ""
    if event.superseded_by is None:
        return 0, event.revoked_at, ""
    forward = _age(versions[event.superseded_by][0]) > _age(event)
    return 1 if forward else 2, event.revoked_at, event.superseded_by


def _settle(rivals: Sequence[Event], merged: dict[str, Event], versions: Mapping[str, list[Event]]) -> None:
    """Leave at most one of the events of one target active."""
    active = [event for event in rivals if event.revoked_at is None]
    ends = {event.id: _end(event, merged) for event in rivals}
    if None not in ends.values():
        for event in sorted(active, key=_age)[:-1]:
            merged[event.id] = _superseded(event, max(active, key=_age))
        return
    line = sorted((event for event in rivals if (end := ends[event.id]) is None or end.revoked_at is None), key=_age)
    for event, following in itertools.pairwise(line):
        merged[event.id] = _superseded(event, following)
    last = line[-1]
    among = {event.id for event in line}
    others = [one for one in versions[last.id] if one.superseded_by is not None and one.superseded_by not in among]
    active_last = replace(last, revoked_at=None, superseded_by=None)
    merged[last.id] = min(others, key=lambda version: _rank(version, versions), default=active_last)


def _superseded(event: Event, by: Event) -> Event:
    return replace(event, revoked_at=by.created_at, superseded_by=by.id)


def _end(event: Event, merged: Mapping[str, Event]) -> Event | None:
    """Return the last event in the chain that superseded an event; None for a circle."""
    seen: set[str] = set()
    at = event
    while at.superseded_by is not None:
        if at.id in seen:
            return None
        seen.add(at.id)
        at = merged[at.superseded_by]
    return at


def _ordered(merged: dict[str, Event]) -> list[Event]:
    """Return the events with each before the one that superseded it; only events of one target exchange places."""
    order = list(merged.values())
    places: defaultdict[Target, list[int]] = defaultdict(list)
    for number, event in enumerate(order):
        places[_target(event)].append(number)
    for numbers in places.values():
        for number, event in zip(numbers, _by_supersession([order[n] for n in numbers]), strict=True):
            order[number] = event
    return order


def _by_supersession(events: list[Event]) -> list[Event]:
    known = {event.id: event for event in events}
    place = {id_: number for number, id_ in enumerate(known)}
    end = itertools.count(len(events))
    for event in events:
        at = event
        while at.superseded_by is not None and place[at.superseded_by] < place[at.id]:
            place[at.superseded_by] = next(end)
            at = known[at.superseded_by]
    return sorted(events, key=lambda event: place[event.id])
