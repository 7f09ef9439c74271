"""Agent Workflow Memory: routines that a model extracts from successful episodes, for reuse."""

from __future__ import annotations

from seasoned.agents.baselines.reflection import LessonWriter
from seasoned.agents.baselines.success_criterion import SuccessCriterion
from seasoned.agents.baselines.transcripts import framed, score_of
from seasoned.judges.episode_view import check_finished
from seasoned.protocols import Usage
from seasoned.types import Episode

__all__ = ["Workflows"]

_HEAD = "Workflows that succeeded before, the latest last:"
_BEFORE = "This is an attempt at a task that went well."
_AFTER = (
    "Write down the routine behind it so that it can be used again: a first line that says what it is for, then its "
    "steps, one a line, each with the moment that it belongs to and the action. Put a general word in braces, such as "
    "{item}, where another time another name will stand. Leave out steps that did not help."
)


class Workflows:
    r"""Agent Workflow Memory, online (arXiv 2409.07429): routines induced from successes, all of them in the prompt.

    After a successful episode (see `SuccessCriterion`: the environment's score replaces the paper's model-based
    evaluator) the model induces a workflow: a goal, and steps of a moment and an action, with abstract names. A
    workflow that equals a stored one, but for case and blanks, becomes the latest. The window is filled with the newest
    workflows.

    Departures: one workflow an episode instead of several; no workflows from annotated examples; and the prompt is
    limited by the window, where the paper's grows.

    Args:
        writer: induces, in one call a success.
        success: the lowest score of a success; None: see `SuccessCriterion`.

    Raises:
        InputError: a number is out of its range.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> from seasoned.types import Step
        >>> arm = Workflows(LessonWriter(ScriptedLLM(["Pay for {item}:\n1. page:pay: click(confirm)"])))
        >>> _ = asyncio.run(arm.learn(Episode("t", [Step("page:pay", "click(confirm)", 1.0)])))
        >>> print(arm.context("page:cart", "t"))
        Workflows that succeeded before, the latest last:
        Pay for {item}:
        1. page:pay: click(confirm)
        Now:
    """

    def __init__(self, writer: LessonWriter, success: float | None = None) -> None:
        self._writer, self._criterion = writer, SuccessCriterion(success)
        self._workflows: dict[str, str] = {}

    def context(self, state: str, task: str) -> str:
        """Return the workflows; the same at every step of an episode."""
        del state, task
        return framed(_HEAD, reversed(self._workflows.values()), self._writer.window_tokens, newest_last=True)

    async def learn(self, episode: Episode) -> Usage:
        """Induce a workflow, if the episode was a success."""
        score = score_of(check_finished(episode))
        if not self._criterion.add(episode.task, score):
            return Usage()
        lesson = await self._writer.write(episode, _BEFORE, _AFTER)
        if lesson.text:
            key = " ".join(lesson.text.split()).casefold()
            self._workflows.pop(key, None)
            self._workflows[key] = lesson.text
        return lesson.usage
