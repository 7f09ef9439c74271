"""What was said of episodes, as a person reads it, and which of it a short id means."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from seasoned.checks import check_text
from seasoned.cli.format.output import number
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory import Memory
from seasoned.memory.values.derived_ids import original_event_id
from seasoned.memory.values.events import Event
from seasoned.types import Note

__all__ = ["REWARD", "bare_rewards", "find_said", "in_words", "reward_in_words"]

REWARD = "reward"
"""The kind under which a bare reward is listed, which is no note."""

_LISTED_MATCHES = 10


def find_said(memory: Memory, id_or_prefix: str) -> str:
    """Return the id of the feedback, note or bare reward that has it, or the only one whose id begins like this.

    What stands goes before what was taken back.

    Raises:
        NotFoundError: nothing does.
        InputError: several do, and the message lists them; or it is blank or no text.
    """
    check_text("id", id_or_prefix)
    standing = {note.id for note in memory.notes(quarantined=True)}
    revoked: set[str] = set()
    for record in memory.feedback_records():
        (standing if record.revoked_at is None else revoked).add(record.id)
    for event in memory.events():
        if id_or_prefix == event.id:
            return event.id
        if event.kind is None:
            (standing if event.revoked_at is None else revoked).add(original_event_id(event.id))
    revoked -= standing  # weighed anew, it stands
    if id_or_prefix in standing | revoked:
        return id_or_prefix
    for ids in (standing, revoked):
        found = sorted(id_ for id_ in ids if id_.startswith(id_or_prefix))
        if len(found) > 1:
            listed = ", ".join(found[:_LISTED_MATCHES])
            more = f" and {len(found) - _LISTED_MATCHES} more" if len(found) > _LISTED_MATCHES else ""
            raise InputError(
                f"id {excerpt(id_or_prefix)}",
                f"a short id means one thing that was said, and {len(found)} begin like this: {listed}{more}",
                "Write more of it.",
            )
        if found:
            return found[0]
    raise NotFoundError(
        f"id {excerpt(id_or_prefix)}",
        f"no feedback, note or reward of namespace {memory.namespace!r} has an id that begins like this",
        "See: seasoned memory notes",
    )


def bare_rewards(memory: Memory, episode_id: str | None, *, quarantined: bool) -> list[Event]:
    """Return the rewards that were given as a number and stand, in the order in which they were given."""
    episodes, events = (frozenset(), frozenset()) if quarantined else memory.excluded_ids()
    return [
        event
        for event in memory.events(episode_id)
        if event.kind is None
        and event.revoked_at is None
        and event.id not in events
        and event.episode_id not in episodes
    ]


def in_words(note: Note) -> str:
    """Return the body of a note as a person says it: the text, the feedback in words, else JSON.

    Example:
        >>> body = {"up": False, "comment": "too slow", "weight": 1.0, "alternatives": []}
        >>> in_words(Note("n1", "e1", 0, "thumbs", body, "human", "ann", 0.0))
        'thumb down: too slow'
    """
    if note.kind in _WORDS and "weight" in note.body:
        said, comment = _WORDS[note.kind](note.body), note.body.get("comment")
        return _weighed(said, note.body["weight"]) + (f": {comment}" if comment else "")
    text = note.body.get("text")
    return text if isinstance(text, str) else json.dumps(dict(note.body), ensure_ascii=False)


def reward_in_words(event: Event) -> str:
    """Return a bare reward, with its weight where that is not 1.

    Example:
        >>> reward_in_words(Event("v1", "e1", 0, -1.0, 2.0, "human", "ann", 0.0))
        '-1 (weight 2)'
    """
    return _weighed(number(event.reward), event.weight)


def _weighed(said: str, weight: Any) -> str:
    return said if weight == 1.0 else f"{said} (weight {number(weight)})"


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
    told = [f"tests {body['passed']}/{body['total']}"] if "passed" in body else []
    told += [f"exit code {body['exit_code']}"] if "exit_code" in body else []
    told += ["built" if body["built"] else "not built"] if "built" in body else []
    return ", ".join(told)


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
