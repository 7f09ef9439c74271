"""Names that nothing in a memory has: said at once, with the closest one that something has."""

from __future__ import annotations

from seasoned.checks import suggest
from seasoned.errors import excerpt
from seasoned.memory import Memory, Selection

__all__ = ["caught", "none_like"]

_FIELDS = ("source", "task", "model", "policy", "arm", "subject")
_LISTED = 10


def none_like(memory: Memory, field: str, value: str) -> str:
    """Return the sentence that no episode, or no feedback, has this value, with the closest one that some have.

    Args:
        memory: where it was looked for.
        field: `source`, which is of feedback, or a field of an episode.
        value: what was asked for.
    """
    if field == "source":
        what, known = "feedback", {event.source for event in memory.events()}
    else:
        what, known = "episode", {str(name) for one in memory.episodes() if (name := getattr(one, field)) is not None}
    next_step = suggest(value, known)
    if not next_step.startswith("Did") and len(known) > _LISTED:
        next_step = f"Known are {len(known)} others."
    return f"no {what} has the {field} {excerpt(value)}. {next_step}"


def caught(memory: Memory, selection: Selection) -> tuple[int, int, list[str]]:
    """Return how many episodes and feedback events are selected; where none are, also which names nothing has."""
    n_episodes, n_events = memory.selected(selection)
    if n_episodes or n_events:
        return n_episodes, n_events, []
    asked = {name: value for name in _FIELDS if (value := getattr(selection, name)) is not None}
    return (
        0,
        0,
        [
            none_like(memory, name, value)
            for name, value in asked.items()
            if not any(memory.selected(Selection(**{name: value})))
        ],
    )
