"""Typed feedback as JSON, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from seasoned.checks import suggest
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory import Memory
from seasoned.service.json_documents import check_json_fields
from seasoned.service.schemas import FEEDBACK_TARGET
from seasoned.types import FEEDBACK_KINDS, Feedback, FeedbackRecord, feedback_from_record, feedback_record

__all__ = ["feedback_from_json", "read_record", "record_to_json"]


def feedback_from_json(body: Mapping[str, Any]) -> tuple[Feedback, dict[str, Any]]:
    """Return the feedback of a JSON object, and the other arguments of `Memory.feedback`.

    Raises:
        InputError: the kind is unknown, a field is missing or unknown, or a value breaks a rule of its kind.

    Example:
        >>> feedback_from_json({"kind": "thumbs", "up": True, "episode_id": "e1"})
        (Thumbs(up=True, comment=None), {'episode_id': 'e1'})
    """
    kind = body.get("kind")
    if not isinstance(kind, str) or kind not in FEEDBACK_KINDS:
        raise InputError(f"kind = {excerpt(kind)}", "no feedback is of this kind", suggest(kind, FEEDBACK_KINDS))
    feedback_class = FEEDBACK_KINDS[kind]
    names = [field.name for field in dataclasses.fields(feedback_class)]  # type: ignore[arg-type]
    check_json_fields(kind, body, ["kind", *names, *FEEDBACK_TARGET], feedback_class.json_schema()["required"])
    return feedback_from_record(kind, body), {name: body[name] for name in FEEDBACK_TARGET if name in body}


def record_to_json(record: FeedbackRecord) -> dict[str, Any]:
    """Return stored feedback as JSON."""
    document = dataclasses.asdict(dataclasses.replace(record, feedback=None))  # type: ignore[arg-type]
    return {**document, "feedback": {"kind": record.feedback.kind, **feedback_record(record.feedback)}}


def read_record(memory: Memory, feedback_id: str) -> FeedbackRecord:
    """Return the stored feedback with this id.

    Raises:
        NotFoundError: there is none.
    """
    for record in memory.feedback_records(id=feedback_id):
        return record
    raise NotFoundError(f"feedback {excerpt(feedback_id)}", "no feedback has this id", "See: GET /v1/feedback.")
