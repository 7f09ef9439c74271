"""What was said or thought beside what was experienced."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from seasoned.checks import check_number, check_text, check_whole
from seasoned.errors import InputError, excerpt

__all__ = ["JSON", "MAX_BODY_DEPTH", "Note", "check_body", "check_kind", "check_step"]

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
"""What JSON can hold."""

MAX_BODY_DEPTH = 32
"""How deep lists and objects of a note's body may lie in each other."""

_KIND = re.compile(r"[a-z][a-z0-9_.:-]{0,63}")


def check_kind(kind: object) -> str:
    """Return `kind` if it is the name of a kind of notes: a small letter, then up to 63 of `a-z 0-9 _ . : -`.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_kind("reasoning")
        'reasoning'
    """
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise InputError(
            f"kind = {excerpt(kind)}",
            "a kind of notes is a name of up to 64 of a-z 0-9 _ . : -, a letter first",
            "Call it 'plan', say.",
        )
    return kind


def check_body(body: object) -> dict[str, Any]:
    """Return a copy of `body` if it is a JSON object: dicts with texts for keys, lists, texts, numbers, truth, None.

    Tuples become lists. A text may be blank here, but UTF-8 can encode it; numbers are finite, whole ones of at most
    2,048 bits.

    Raises:
        InputError: it holds something else, or lies more than 32 deep.

    Example:
        >>> check_body({"examples": [("e1", 0)], "mode": "prompt"})
        {'examples': [['e1', 0]], 'mode': 'prompt'}
    """
    if not isinstance(body, Mapping):
        raise InputError(f"body = {excerpt(body)}", "the body of a note is a JSON object", "Pass {'text': ...}, say.")
    return dict(_plain(body, (), 0))


def _plain(value: Any, path: tuple[str | int, ...], depth: int) -> Any:
    if depth > MAX_BODY_DEPTH:
        raise InputError(_at(path), f"a note's body is at most {MAX_BODY_DEPTH} deep", "Keep it flat.")
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return _encodable(value, path)
    if isinstance(value, int | np.integer):
        try:
            return check_whole("number", value)
        except InputError as error:
            raise InputError(f"{_at(path)}: {error.seen}", error.rule, error.next_step) from None
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise InputError(
                f"{_at(path)} = {value}", "a number in a note is finite", "Find out where it was computed."
            )
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputError(
                    f"{_at(path)}: a key of the type {type(key).__name__}",
                    "the keys of a note's body are texts",
                    "Use str.",
                )
        return {_encodable(key, path): _plain(one, (*path, key), depth + 1) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(one, (*path, index), depth + 1) for index, one in enumerate(value)]
    raise InputError(f"{_at(path)} = {excerpt(value)}", "a note's body holds what JSON can hold", "Convert it first.")


def _at(path: tuple[str | int, ...]) -> str:
    """Name a place in a body; only when something is wrong there: it may be as long as the body."""
    return "body" + "".join(f"[{excerpt(part, 40)}]" for part in path[:8]) + ("..." if len(path) > 8 else "")


def _encodable(text: str, path: tuple[str | int, ...]) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{_at(path)} has a lone surrogate {text[error.start]!r} at character {error.start}",
            "a text in a note is one that UTF-8 can encode",
            "Decode the bytes it came from with errors='replace'.",
        ) from None
    return str(text)


@dataclass(frozen=True, slots=True)
class Note:
    """What was said or thought about an episode, or about one of its steps.

    Kinds in use: `plan` and `reasoning` (`{"text": ...}`), `shown` (`{"examples": [[episode_id, step], ...], "mode":
    ..., "purpose": ...}`), and one for each kind of feedback (see `Feedback`). Your own may have any other name.

    Args:
        id: names it in its namespace.
        episode_id: which episode it is about.
        step: which of its steps, from 0; None for the whole.
        kind: what kind of note it is.
        body: what was said, a JSON object; not to be changed.
        source: who speaks (`agent`, `human`, `judge`, ...).
        author: which one of them.
        created_at: when it was said, in seconds since 1970.
        revoked_at: when it was taken back, or superseded; None while it stands.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Note("n1", "e1", 0, "reasoning", {"text": "the total is right"}, "agent", None, 0.0).body["text"]
        'the total is right'
    """

    id: str
    episode_id: str
    step: int | None
    kind: str
    body: Mapping[str, JSON]
    source: str
    author: str | None
    created_at: float
    revoked_at: float | None = None

    def __post_init__(self) -> None:
        check_text("note id", self.id)
        check_text("episode id", self.episode_id)
        check_kind(self.kind)
        check_text("source", self.source)
        if self.author is not None:
            check_text("author", self.author)
        object.__setattr__(self, "body", check_body(self.body))
        object.__setattr__(self, "created_at", check_number("created_at", self.created_at))
        if self.revoked_at is not None:
            object.__setattr__(self, "revoked_at", check_number("revoked_at", self.revoked_at))
        if self.step is not None:
            object.__setattr__(self, "step", check_step(self.step))


def check_step(step: object) -> int:
    """Return `step` as an int if it is an index. Raises: InputError: it is not."""
    if isinstance(step, bool) or not isinstance(step, int | np.integer) or check_whole("step", step) < 0:
        raise InputError(f"step = {excerpt(step)}", "a step is named by its index", "Count from 0.")
    return int(step)
