"""Reflection on past episodes: a model's lessons in words, and arms that learn from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from seasoned.agents.baselines.success_criterion import SuccessCriterion
from seasoned.agents.baselines.transcripts import transcript
from seasoned.checks import check_instance, check_whole
from seasoned.errors import ModelAnswerError
from seasoned.protocols import LLM, CompletionRequest, Message, Usage
from seasoned.states.text_budget import lines_within
from seasoned.types import Episode

__all__ = ["Lesson", "LessonArm", "LessonWriter", "ask_lesson", "lesson_chars"]

_LESSON_CHARS = 600
_CHARS_PER_TOKEN = 2
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
    text = lines_within(answer.text, limit_chars)
    if not text:
        return Lesson("", answer.usage, "the answer was empty")
    if _REFUSAL.search(text[:_REFUSAL_WITHIN_CHARS]):
        return Lesson("", answer.usage, "the model refused")
    return Lesson(text, answer.usage)


def lesson_chars(window_tokens: int) -> int:
    """Return the limit of a lesson, in characters: 600, or less for a small window.

    Example:
        >>> lesson_chars(800), lesson_chars(100)
        (600, 200)
    """
    return min(_LESSON_CHARS, _CHARS_PER_TOKEN * check_whole("window_tokens", window_tokens, 1))


@dataclass
class LessonWriter:
    """Shows a model an episode and asks for a lesson; one call, at temperature 0.

    Args:
        llm: the model that also plays.
        transcript_tokens: limit of the transcript, by `estimated_tokens`; a longer one loses its first steps.
        max_tokens: limit of the answer.
        limit_chars: limit of the lesson; the rest is cut off.
        text_chars: limit of one state or action in the transcript.
        faults: episodes without a lesson, and the reasons, in order.

    Raises:
        InputError: no model, or a number below 1.
    """

    llm: LLM
    transcript_tokens: int = 600
    max_tokens: int = 128
    limit_chars: int = _LESSON_CHARS
    text_chars: int = 400
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_instance("llm", self.llm, LLM, "this arm asks a model for lessons", "Pass an LLM, not 'uniform'.")
        for name in ("transcript_tokens", "max_tokens", "limit_chars", "text_chars"):
            check_whole(name, getattr(self, name), 1)

    async def write(self, episode: Episode, before: str, after: str) -> Lesson:
        """Return the model's lesson from an episode; the prompt is `before`, the transcript and `after`."""
        text, _ = transcript(episode, self.transcript_tokens, self.text_chars)
        lesson = await ask_lesson(
            self.llm,
            "\n".join(part for part in (before, text, after) if part),
            max_tokens=self.max_tokens,
            limit_chars=self.limit_chars,
        )
        if lesson.fault is not None:
            self.faults.append(f"episode {episode.id or 'without an id'}: {lesson.fault}")
        return lesson


class LessonArm:
    """The parts that all arms with lessons share: lesson writer, success criterion, window and faults."""

    def __init__(
        self, llm: LLM, success: float | None, window_tokens: int, transcript_tokens: int, max_tokens: int
    ) -> None:
        self._writer = LessonWriter(llm, transcript_tokens, max_tokens, lesson_chars(window_tokens))
        self._criterion = SuccessCriterion(success)
        self._window_tokens = window_tokens

    @property
    def faults(self) -> tuple[str, ...]:
        """Episodes without a lesson because of the model's answer, and the reasons."""
        return tuple(self._writer.faults)
