"""Demonstrations: episodes that a new agent stores, each once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, replace

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_items
from seasoned.errors import InputError
from seasoned.protocols import AgentMemory
from seasoned.types import Episode, Step

__all__ = ["store_once", "with_content_ids"]


def store_once(memory: AgentMemory | None, episodes: Sequence[Episode]) -> None:
    """Store episodes that are not stored yet, under `with_content_ids`.

    Raises:
        InputError: they are not a list of episodes, or there is no memory.
        EpisodeConflictError, StoreError: as for `Memory.add_many`; nothing was stored.
    """
    demonstrations = with_content_ids(episodes)
    if demonstrations and memory is None:
        raise InputError("demonstrations, memory = None", "demonstrations need a memory", "Pass a memory.")
    if demonstrations and memory is not None:
        memory.add_many(demonstrations)


def with_content_ids(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes with ids: their own, or ids computed from their content.

    With these ids, a memory stores equal episodes once.

    Raises:
        InputError: they are not a list of episodes.

    Example:
        >>> one, same = with_content_ids([Episode("walk", [Step("hall", "east", 1)])] * 2)
        >>> one == same, one.id
        (True, 'demonstration:b62e438cad5c5e3d226bfd0dab9249a5')
    """
    checked = check_items("demonstrations", episodes, Episode, next_step="Pass [Episode(...)].")
    return [episode if episode.id is not None else replace(episode, id=_content_id(episode)) for episode in checked]


def _content_id(episode: Episode) -> str:
    record = {**_stated_fields(episode), "steps": [_stated_fields(step) for step in episode.steps]}
    return f"demonstration:{hashlib.sha256(canonical_json(record).encode()).hexdigest()[:32]}"


def _stated_fields(record: Episode | Step) -> dict[str, object]:
    """Return the fields that are not None, so that a new field of the class changes no id."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    if values.get("prior") is not None:
        values["prior"] = dict(values["prior"])
    return {name: value for name, value in values.items() if value is not None}
