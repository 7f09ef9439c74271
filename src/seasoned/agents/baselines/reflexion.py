"""Reflexion: lessons that a model writes after failures, and reads in later attempts."""

from __future__ import annotations

from collections import deque

from seasoned.agents.baselines.reflection import LessonWriter
from seasoned.agents.baselines.success_criterion import SuccessCriterion
from seasoned.agents.baselines.transcripts import framed, score_of
from seasoned.checks import check_whole
from seasoned.judges.episode_view import check_finished
from seasoned.protocols import Usage
from seasoned.types import Episode

__all__ = ["Reflexion"]

_HEAD = "Lessons from earlier attempts, the latest last:"
_BEFORE = "This is an attempt at a task that did not reach the best score."
_AFTER = (
    "What went wrong, and what should be done differently next time? "
    "Answer with a short plan in the first person, two or three sentences. Do not retell the attempt."
)


class Reflexion:
    """Reflexion (arXiv 2303.11366): verbal reflections on failed trials, the last three of them in the prompt.

    The actor is the model with the reflections before the state, the evaluator is the environment's score, and the
    model that acts also writes the reflections. Reflections are stored by task, as the paper's trials are at one task;
    a task without any uses the latest of the other tasks. An episode is a failure if its score is below `success`;
    without a threshold the model reflects on every episode.

    Departures: actions are chosen from a list, so there is no reasoning trace to reflect on; a long transcript loses
    its first steps; and trials do not stop at a success.

    Args:
        writer: reflects, in one call an episode.
        success: see above.
        keep: number of reflections of a task in the prompt, the paper's 1 to 3.

    Raises:
        InputError: a number is out of its range.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> from seasoned.types import Step
        >>> arm = Reflexion(LessonWriter(ScriptedLLM(["I will pay before I go back."])), success=1.0)
        >>> _ = asyncio.run(arm.learn(Episode("t", [Step("page:pay", "click(back)")])))
        >>> print(arm.context("page:cart", "t"))
        Lessons from earlier attempts, the latest last:
        - I will pay before I go back.
        Now:
    """

    def __init__(self, writer: LessonWriter, success: float | None = None, keep: int = 3) -> None:
        self._writer, self._criterion = writer, SuccessCriterion(success)
        self._keep = check_whole("keep", keep, 1)
        self._by_task: dict[str, deque[str]] = {}
        self._latest: deque[str] = deque(maxlen=keep)

    def context(self, state: str, task: str) -> str:
        """Return the reflections; the same at every step of an episode."""
        del state
        lessons = reversed(self._by_task.get(task, self._latest))
        return framed(_HEAD, (f"- {lesson}" for lesson in lessons), self._writer.window_tokens, newest_last=True)

    async def learn(self, episode: Episode) -> Usage:
        """Reflect, if the episode was a failure."""
        if self._criterion.is_reached(score_of(check_finished(episode))):
            return Usage()
        lesson = await self._writer.write(episode, _BEFORE, _AFTER)
        if lesson.text:
            text = " ".join(lesson.text.split())
            self._by_task.setdefault(episode.task, deque(maxlen=self._keep)).append(text)
            self._latest.append(text)
        return lesson.usage
