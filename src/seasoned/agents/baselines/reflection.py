"""Reflection on past episodes: a model's lessons in words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from seasoned.agents.baselines.transcripts import transcript
from seasoned.checks import check_instance, check_whole
from seasoned.errors import ModelAnswerError
from seasoned.protocols import LLM, CompletionRequest, Message, Usage
from seasoned.protocols.template_marks import escape_marks, unescape_marks
from seasoned.states.text_budget import lines_within
from seasoned.types import Episode

__all__ = ["Lesson", "LessonWriter", "ask_lesson"]

_LESSON_CHARS = 600
_CHARS_PER_TOKEN = 2
_TEXT_CHARS = 400
_REFUSAL = re.compile(
    r"\b(can't|can’t|cannot|can not|won't|won’t|will not|(am|'m|’m) (not able|unable) to|unable to)\s+"
    r"(help|assist|comply|fulfil|fulfill|do that|provide that|continue with (this|that|the) request)\b",
    re.IGNORECASE,
)
_REFUSAL_WITHIN_CHARS = 160


@dataclass(frozen=True, slots=True)
class Lesson:
    """A model's lesson, cleaned and cut to size.

    Args:
        text: empty if the answer contains no lesson.
        usage: of the call.
        fault: reason of an empty text; None otherwise.
    """

    text: str
    usage: Usage
    fault: str | None = None


async def ask_lesson(llm: LLM, prompt: str, *, max_tokens: int, limit_chars: int) -> Lesson:
    """Return a model's answer at temperature 0, as printable lines, cut after `limit_chars` characters.

    An empty answer, a refusal at its beginning and an unreadable answer are no lesson and no error: the arm continues
    with the lessons it has, and the fault is reported.

    Raises:
        ModelError: the endpoint failed; a second request may succeed.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> llm = ScriptedLLM(["Open the door first.", "  ", "Sorry, I cannot help with that."])
        >>> ask = lambda: asyncio.run(ask_lesson(llm, "What did you learn?", max_tokens=50, limit_chars=100))
        >>> [(lesson.text, lesson.fault) for lesson in (ask(), ask(), ask())]
        [('Open the door first.', None), ('', 'the answer was empty'), ('', 'the model refused')]
    """
    try:
        answer = await llm.complete(CompletionRequest((Message("user", prompt),), max_tokens=max_tokens))
    except ModelAnswerError as error:
        return Lesson("", Usage(calls=1, cost_usd=None), f"the answer cannot be used: {error.seen}")
    text = lines_within(escape_marks(unescape_marks(lines_within(answer.text, limit_chars))), limit_chars)
    if not text:
        return Lesson("", answer.usage, "the answer was empty")
    if _REFUSAL.search(text[:_REFUSAL_WITHIN_CHARS]):
        return Lesson("", answer.usage, "the model refused")
    return Lesson(text, answer.usage)


@dataclass
class LessonWriter:
    """Shows a model an episode and asks for a lesson; one call, at temperature 0.

    Args:
        llm: the model that also plays.
        window_tokens: size of the arm's whole text before the state, by `estimated_tokens`. A lesson has at most 600
            characters, and at most 2 a token of the window; the rest is cut off.
        transcript_tokens: limit of the transcript, by `estimated_tokens`; a longer one loses its first steps.
        max_tokens: limit of the answer.

    Attributes:
        faults: episodes without a lesson because of the model's answer, and the reasons, in order.

    Raises:
        InputError: no model, or a number below 1.
    """

    llm: LLM
    window_tokens: int = 800
    transcript_tokens: int = 600
    max_tokens: int = 192
    faults: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        check_instance("llm", self.llm, LLM, "this arm asks a model for lessons", "Pass an LLM, not 'uniform'.")
        for name in ("window_tokens", "transcript_tokens", "max_tokens"):
            check_whole(name, getattr(self, name), 1)

    async def write(self, episode: Episode, before: str, after: str) -> Lesson:
        """Return the model's lesson from an episode; the prompt is `before`, the transcript and `after`."""
        text, _ = transcript(episode, self.transcript_tokens, _TEXT_CHARS)
        lesson = await ask_lesson(
            self.llm,
            "\n".join(part for part in (before, text, after) if part),
            max_tokens=self.max_tokens,
            limit_chars=min(_LESSON_CHARS, _CHARS_PER_TOKEN * self.window_tokens),
        )
        if lesson.fault is not None:
            self.faults.append(f"episode {episode.id or 'without an id'}: {lesson.fault}")
        return lesson
