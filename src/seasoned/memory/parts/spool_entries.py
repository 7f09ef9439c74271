"""Spooled writes as plain data, and back: episodes with the notes of their recording, feedback and notes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from seasoned.checks import check_number, check_reward, check_text
from seasoned.errors import InputError, excerpt
from seasoned.memory.values.author_cap import AuthorCap
from seasoned.memory.values.content_hash import episode_from_record, episode_record
from seasoned.memory.values.redacted import RedactedEpisode, RedactedFeedback, RedactedNote, already_redacted
from seasoned.memory.values.spool_entry import EPISODE, FEEDBACK, NOTE, REWARD, SpoolEntry
from seasoned.memory.writing.note_records import note_record
from seasoned.memory.writing.typed_feedback import AnswerContext, FeedbackRequest
from seasoned.types import FEEDBACK_KINDS, Note, feedback_from_record, feedback_record

__all__ = [
    "EPISODE",
    "FEEDBACK",
    "NOTE",
    "REWARD",
    "RewardRequest",
    "check_speaker",
    "checked_reward",
    "episode_entry",
    "feedback_entry",
    "note_entry",
    "read_episode",
    "read_feedback_request",
    "read_note",
    "read_reward_request",
    "reward_entry",
]


@dataclass(frozen=True, slots=True)
class RewardRequest:
    """A checked reward before it is stored; `step` None is the last one, `is_callers_id` says who made the id."""

    id: str
    episode_id: str
    step: int | None
    reward: float
    weight: float
    source: str
    author: str | None
    at: float
    is_callers_id: bool
    cap: AuthorCap | None = None


def episode_entry(episode: RedactedEpisode, notes: Sequence[RedactedNote], at: float) -> SpoolEntry:
    """Return an episode as an entry of the spool."""
    record, noted = episode_record(episode), [note_record(note) for note in notes]
    return {"kind": EPISODE, "id": episode.id, "at": at, "episode": record, "notes": noted}


def read_episode(entry: SpoolEntry) -> tuple[RedactedEpisode, list[RedactedNote], float]:
    """Return the episode of an entry, the notes of its recording, and when it was written."""
    notes = [already_redacted(Note(**note)) for note in entry["notes"]]
    return already_redacted(episode_from_record(entry["episode"])), notes, float(entry["at"])


def checked_reward(
    reward: object,
    episode_id: str,
    step: int | None,
    source: str,
    author: str | None,
    weight: float,
    id_: str | None,
    cap: AuthorCap | None = None,
) -> RewardRequest:
    """Return a caller's reward.

    Raises:
        InputError: a value breaks a rule.
    """
    if not isinstance(reward, bool | int | float | np.bool_ | np.integer | np.floating):
        raise InputError(
            f"feedback = {excerpt(reward)}",
            f"feedback is a number, or one of {', '.join(FEEDBACK_KINDS)}",
            "Pass -1.0 or Thumbs(up=False), for example.",
        )
    check_text("episode id", episode_id)
    check_speaker(source, author)
    number, weight = check_reward("reward", reward), check_number("weight", weight)
    check_reward("reward * weight", number * weight)
    if step is not None and (isinstance(step, bool) or not isinstance(step, int | np.integer)):
        raise InputError(f"step = {excerpt(step)}", "a step is named by its index", "Count from 0.")
    if id_ is not None:
        check_text("feedback id", id_)
    return RewardRequest(
        uuid.uuid4().hex if id_ is None else id_,
        episode_id,
        None if step is None else int(step),
        number,
        weight,
        source,
        author,
        time.time(),
        id_ is not None,
        cap,
    )


def check_speaker(source: object, author: object) -> None:
    """Check the source and the author of feedback. InputError: one is blank or no text."""
    check_text("source", source)
    if author is not None:
        check_text("author", author)


def reward_entry(request: RewardRequest) -> SpoolEntry:
    """Return a reward as an entry of the spool."""
    return {"kind": REWARD, **asdict(request)}


def read_reward_request(entry: SpoolEntry) -> RewardRequest:
    """Return the reward of an entry."""
    fields = {name: value for name, value in entry.items() if name not in ("kind", "cap")}
    return RewardRequest(**fields, cap=AuthorCap.from_record(entry.get("cap")))


def feedback_entry(request: FeedbackRequest) -> SpoolEntry:
    """Return typed feedback as an entry of the spool."""
    names = ("id", "episode_id", "step", "source", "author", "weight", "at")
    context = None if request.context is None else asdict(request.context)
    feedback = {"name": request.feedback.kind, "record": feedback_record(request.feedback)}
    cap = None if request.cap is None else asdict(request.cap)
    about = {name: getattr(request, name) for name in names}
    return {"kind": FEEDBACK, **about, **feedback, "context": context, "cap": cap}


def read_feedback_request(entry: SpoolEntry) -> FeedbackRequest:
    """Return the feedback of an entry."""
    fields = dict(entry)
    context, cap = fields.pop("context"), AuthorCap.from_record(fields.pop("cap", None))
    feedback = feedback_from_record(fields.pop("name"), fields.pop("record"))
    fields.pop("kind")
    place = None
    if context is not None:
        task, state = already_redacted(str(context["task"])), already_redacted(str(context["state"]))
        place = AnswerContext(task, state, context["action"], context["subject"])
    return FeedbackRequest(feedback=_redacted(feedback), context=place, cap=cap, **fields)


def note_entry(note: RedactedNote) -> SpoolEntry:
    """Return a note as an entry of the spool."""
    return {"kind": NOTE, "id": note.id, "at": note.created_at, "note": note_record(note)}


def read_note(entry: SpoolEntry) -> RedactedNote:
    """Return the note of an entry."""
    return already_redacted(Note(**entry["note"]))


def _redacted(feedback: Any) -> RedactedFeedback:
    redacted: RedactedFeedback = already_redacted(feedback)
    return redacted
