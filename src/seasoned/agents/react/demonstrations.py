"""Episodes that an agent is given to begin with: stored once, however often it is started."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, replace

from seasoned.canonical_json import canonical_json
from seasoned.errors import InputError, excerpt
from seasoned.protocols import AgentMemory
from seasoned.types import Episode, Step

__all__ = ["store_once", "with_content_ids"]


def store_once(memory: AgentMemory | None, episodes: Sequence[Episode]) -> None:
    """Store episodes that are not stored yet, under `with_content_ids`.

    Raises:
        InputError: they are no list of episodes, or there is no memory.
        EpisodeConflictError, StoreError: as for `Memory.add_many`; nothing was stored.
    """
    named = with_content_ids(episodes)
    if named and memory is None:
        raise InputError("demonstrations, memory = None", "demonstrations are stored", "Pass a memory.")
    if named and memory is not None:
        memory.add_many(named)


def with_content_ids(episodes: Sequence[Episode]) -> list[Episode]:
    """Return episodes that all have an id: their own, or one that follows from their content.

    Under it a memory stores an episode once, whoever brings it, and however often.

    Raises:
        InputError: they are no list of episodes.

    Example:
        >>> one, same = with_content_ids([Episode("walk", [Step("hall", "east", 1)])] * 2)
        >>> one == same, one.id
        (True, 'demonstration:b62e438cad5c5e3d226bfd0dab9249a5')
    """
    given: object = episodes
    if not isinstance(given, Sequence) or not all(isinstance(one, Episode) for one in given):
        raise InputError(f"demonstrations = {excerpt(given)}", "they are a list of episodes", "Pass [Episode(...)].")
    return [one if one.id is not None else replace(one, id=_content_id(one)) for one in episodes]


def _content_id(episode: Episode) -> str:
    record = {**_said(episode), "steps": [_said(step) for step in episode.steps]}
    return f"demonstration:{hashlib.sha256(canonical_json(record).encode()).hexdigest()[:32]}"


def _said(one: Episode | Step) -> dict[str, object]:
    """The fields that say something; so a field that is added to the class one day renames nothing."""
    held = {field.name: getattr(one, field.name) for field in fields(one)}
    if held.get("prior") is not None:
        held["prior"] = dict(held["prior"])
    return {name: value for name, value in held.items() if value is not None}
