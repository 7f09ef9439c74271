"""Feedback and notes as one line of text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from seasoned.cli.format.values import number
from seasoned.memory.values.events import Event
from seasoned.types import Note

__all__ = ["note_text", "reward_text"]


def note_text(note: Note) -> str:
    """Return the body of a note as one text: feedback in words, the text of other notes, else JSON.

    Example:
        >>> body = {"up": False, "comment": "too slow", "weight": 1.0, "alternatives": []}
        >>> note_text(Note("n1", "e1", 0, "thumbs", body, "human", "ann", 0.0))
        'thumb down: too slow'
    """
    if note.kind in _WORDS and "weight" in note.body:
        words, comment = _WORDS[note.kind](note.body), note.body.get("comment")
        return _weighted(words, note.body["weight"]) + (f": {comment}" if comment else "")
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


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _choice(body: Mapping[str, Any]) -> str:
    shown = list(body["candidates"])
    best = shown.pop(body["chosen"])
    return f"chose {_quoted(best)} over {', '.join(map(_quoted, shown))}"


def _edit(body: Mapping[str, Any]) -> str:
    shown = f"{_quoted(body['candidates'][body['chosen']])} " if "candidates" in body else ""
    return f"edited {shown}to {_quoted(body['text'])}"


def _outcome(body: Mapping[str, Any]) -> str:
    parts = [f"tests {body['passed']}/{body['total']}"] if "passed" in body else []
    parts += [f"exit code {body['exit_code']}"] if "exit_code" in body else []
    parts += ["built" if body["built"] else "not built"] if "built" in body else []
    return ", ".join(parts)


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "thumbs": lambda body: "thumb up" if body["up"] else "thumb down",
    "score": lambda body: f"score {number(body['value'])} on {number(body['low'])} to {number(body['high'])}",
    "choice": _choice,
    "edit": _edit,
    "own_answer": lambda body: f"would answer {_quoted(body['text'])}",
    "correction": lambda body: f"corrected by {_quoted(body['text'])}",
    "outcome": _outcome,
    "review": lambda body: {"changes_requested": "changes requested"}.get(body["verdict"], body["verdict"]),
}
