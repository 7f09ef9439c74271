"""Agent Workflow Memory: after a success the model writes down the routine behind it, for reuse."""

from __future__ import annotations

from seasoned.agents.baselines.reflection import LessonArm
from seasoned.agents.baselines.transcripts import check_finished, framed, score_of
from seasoned.protocols import LLM, Usage
from seasoned.types import Episode

__all__ = ["Workflows"]

_HEAD = "Workflows that succeeded before, the latest last:"
_BEFORE = "This is an attempt at a task that went well."
_AFTER = (
    "Write down the routine behind it so that it can be used again: a first line that says what it is for, then its "
    "steps, one a line, each with the moment that it belongs to and the action. Put a general word in braces, such as "
    "{item}, where another time another name will stand. Leave out steps that did not help."
)


class Workflows(LessonArm):
    r"""Agent Workflow Memory, online (arXiv 2409.07429): routines induced from successes, all of them in the prompt.

    After an episode that is a success (see `SuccessCriterion`: the environment's score replaces the paper's model-based
    evaluator) the model induces a workflow: a goal, and steps of a moment and an action, with names abstracted. A
    workflow that is already known, but for case and blanks, becomes the latest. The newest come first into the window.

    Departures: one workflow an episode rather than several; nothing is induced from annotated examples beforehand; and
    the window bounds what the paper lets grow.

    Args:
        llm: induces, in one call a success.
        success: an episode with at least this score is one; None: see `SuccessCriterion`.
        window_tokens: of all that is put before the state, by `estimated_tokens`.
        transcript_tokens, max_tokens: of the question's transcript, and of the answer.

    Raises:
        InputError: no model, or a number that is out of its range.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> from seasoned.types import Step
        >>> arm = Workflows(ScriptedLLM(["Pay for {item}:\n1. page:pay: click(confirm)"]))
        >>> _ = asyncio.run(arm.learn(Episode("t", [Step("page:pay", "click(confirm)", 1.0)])))
        >>> print(arm.context("page:cart", "t"))
        Workflows that succeeded before, the latest last:
        Pay for {item}:
        1. page:pay: click(confirm)
        Now:
    """

    def __init__(
        self,
        llm: LLM,
        success: float | None = None,
        window_tokens: int = 800,
        transcript_tokens: int = 600,
        max_tokens: int = 192,
    ) -> None:
        super().__init__(llm, success, window_tokens, transcript_tokens, max_tokens)
        self._workflows: dict[str, str] = {}

    def context(self, state: str, task: str) -> str:
        """Return the workflows; the same at every step of an episode."""
        del state, task
        return framed(_HEAD, reversed(self._workflows.values()), self._window_tokens, newest_last=True)

    async def learn(self, episode: Episode) -> Usage:
        """Induce a workflow, if the episode was a success."""
        score = score_of(check_finished(episode))
        if not self._successes.take(episode.task, score):
            return Usage()
        lesson = await self._teller.tell(episode, _BEFORE, _AFTER)
        if lesson.text:
            key = " ".join(lesson.text.split()).casefold()
            self._workflows.pop(key, None)
            self._workflows[key] = lesson.text
        return lesson.usage
