"""Lessons in words: what a model says after an episode, kept by task, with what went wrong while asking."""

from __future__ import annotations

from dataclasses import dataclass, field

from seasoned.agents.baselines.lesson_request import Lesson, ask_lesson
from seasoned.agents.baselines.success_criterion import SuccessCriterion
from seasoned.agents.baselines.token_checks import check_whole
from seasoned.agents.baselines.transcripts import transcript
from seasoned.errors import InputError, excerpt
from seasoned.protocols import LLM
from seasoned.types import Episode

__all__ = ["LessonArm", "LessonWriter", "lesson_chars"]

_LESSON_CHARS = 600
_CHARS_PER_TOKEN = 2


def lesson_chars(window_tokens: int) -> int:
    """Return how long a lesson may be, in characters: 600, or less where the window is small.

    Example:
        >>> lesson_chars(800), lesson_chars(100)
        (600, 200)
    """
    return min(_LESSON_CHARS, _CHARS_PER_TOKEN * check_whole("window_tokens", window_tokens))


@dataclass
class LessonWriter:
    """Shows a model an episode and asks what there is to learn; one call, at temperature 0.

    Args:
        llm: the model that also plays.
        transcript_tokens: of the episode as it is shown, by `estimated_tokens`; a longer one loses its first steps.
        max_tokens: of the answer.
        limit_chars: of the lesson; what comes after is cut off.
        text_chars: of one state or action in the transcript.
        faults: where nothing was learned, and why, in order.

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
        if not isinstance(self.llm, LLM):
            raise InputError(
                f"llm = {excerpt(self.llm)}", "this arm asks a model what it learned", "Pass an LLM, not 'uniform'."
            )
        for name in ("transcript_tokens", "max_tokens", "limit_chars", "text_chars"):
            check_whole(name, getattr(self, name))

    async def tell(self, episode: Episode, before: str, after: str) -> Lesson:
        """Return what the model says of an episode, asked with `before`, the transcript and `after`."""
        shown, _ = transcript(episode, self.transcript_tokens, self.text_chars)
        lesson = await ask_lesson(
            self.llm,
            "\n".join(part for part in (before, shown, after) if part),
            max_tokens=self.max_tokens,
            limit_chars=self.limit_chars,
        )
        if lesson.fault is not None:
            self.faults.append(f"episode {episode.id or 'without an id'}: {lesson.fault}")
        return lesson


class LessonArm:
    """What arms that ask a model for lessons have in common: the teller, what a success is, the window, the faults."""

    def __init__(
        self, llm: LLM, success: float | None, window_tokens: int, transcript_tokens: int, max_tokens: int
    ) -> None:
        self._teller = LessonWriter(llm, transcript_tokens, max_tokens, lesson_chars(window_tokens))
        self._successes = SuccessCriterion(success)
        self._window_tokens = window_tokens

    @property
    def faults(self) -> tuple[str, ...]:
        """Where nothing was learned because of the model's answer, and why."""
        return tuple(self._teller.faults)
