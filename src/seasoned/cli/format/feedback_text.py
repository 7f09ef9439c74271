"""Feedback and notes as one line of text."""

from __future__ import annotations

import json
from typing import Any

from seasoned.cli.format.values import number
from seasoned.memory.values.events import Event
from seasoned.types import FEEDBACK_KINDS, Note, feedback_from_record

__all__ = ["note_text", "reward_text"]


def note_text(note: Note) -> str:
    """Return the body of a note as one text: feedback in words, the text of other notes, else JSON.

    Example:
        >>> body = {"up": False, "comment": "too slow", "weight": 1.0, "alternatives": []}
        >>> note_text(Note("n1", "e1", 0, "thumbs", body, "human", "ann", 0.0))
        'thumb down: too slow'
    """
    if note.kind in FEEDBACK_KINDS:
        feedback = feedback_from_record(note.kind, note.body)
        return _weighted(feedback.words(), note.body["weight"]) + (f": {feedback.comment}" if feedback.comment else "")
    text = note.body.get("text")
    return text if isinstance(text, str) else json.dumps(dict(note.body), ensure_ascii=False)


def reward_text(event: Event) -> str:
    """Return a plain reward as text, with its weight unless that is 1.

    Example:
        >>> reward_text(Event("v1", "e1", 0, -1.0, 2.0, "human", "ann", 0.0))
        '-1 (weight 2)'
    """
    return _weighted(number(event.reward), event.weight)


def _weighted(text: str, weight: Any) -> str:
    return text if weight == 1.0 else f"{text} (weight {number(weight)})"
