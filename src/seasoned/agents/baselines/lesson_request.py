"""Asking a model to put what it learned into words; an answer that cannot be used teaches nothing, and says so."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seasoned.agents.baselines.token_checks import lines_within
from seasoned.errors import ModelAnswerError
from seasoned.protocols import LLM, CompletionRequest, Message, Usage

__all__ = ["Lesson", "ask_lesson"]

_REFUSED = re.compile(
    r"\b(can't|can’t|cannot|can not|won't|won’t|will not|(am|'m|’m) (not able|unable) to|unable to)\s+"
    r"(help|assist|comply|fulfil|fulfill|do that|provide that|continue with (this|that|the) request)\b",
    re.IGNORECASE,
)
_REFUSED_WITHIN_CHARS = 160


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a model said, cleaned and cut to size.

    Args:
        text: empty if nothing can be learned from it.
        usage: what it cost.
        fault: why the text is empty; None where it is not.
    """

    text: str
    usage: Usage
    fault: str | None = None


async def ask_lesson(llm: LLM, prompt: str, *, max_tokens: int, limit_chars: int) -> Lesson:
    """Return a model's answer at temperature 0, on lines that can be printed, cut after `limit_chars` characters.

    An empty answer, a refusal (said in so many words at its beginning) and one that cannot be read are no lesson, and
    no error: the arm goes on with what it knows, and the fault is kept.

    Raises:
        ModelError: the endpoint failed; asking again may help.

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
    if _REFUSED.search(text[:_REFUSED_WITHIN_CHARS]):
        return Lesson("", answer.usage, "the model refused")
    return Lesson(text, answer.usage)
