"""What a judge is shown of an episode: a chunk of steps, what came before, and what the last of them led to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from seasoned.errors import InputError, excerpt
from seasoned.judges.model_query import check_whole
from seasoned.judges.prompt_fence import shorten
from seasoned.types import Episode

__all__ = ["EpisodeView", "check_finished"]

_LEAST_CHARS = 40


def check_finished(episode: object) -> Episode:
    """Return `episode` if it came to its end.

    Raises:
        InputError: it is something else, or was aborted.
    """
    if not isinstance(episode, Episode):
        raise InputError(f"episode = {excerpt(episode)}", "a judge takes an Episode", "Build it with Episode(...).")
    if episode.ending == "aborted":
        raise InputError(
            f"episode {excerpt(episode.id)}, ending = 'aborted'",
            "a judge scores finished episodes; an aborted one is never retrieved",
            "Leave it out.",
        )
    return episode


@dataclass(frozen=True, slots=True)
class EpisodeView:
    """How an episode is cut and shown.

    Args:
        show_outcome: whether the judge is told the environment's score and the ending. What the final state itself
            gives away is always seen.
        chunk_steps: at most this many steps are judged in one call.
        overlap_steps: how many steps before them are shown for context.
        text_chars: the longest state, action or task that is shown whole; longer ones lose their middle.

    Raises:
        InputError: a number is too small.
    """

    show_outcome: bool = True
    chunk_steps: int = 10
    overlap_steps: int = 2
    text_chars: int = 1000

    def __post_init__(self) -> None:
        check_whole("chunk_steps", self.chunk_steps, 1)
        check_whole("overlap_steps", self.overlap_steps, 0)
        check_whole("text_chars", self.text_chars, _LEAST_CHARS)

    def chunks(self, episode: Episode) -> Iterator[range]:
        """Yield the steps that are judged together: each step once, in order.

        Example:
            >>> from seasoned.types import Step
            >>> list(EpisodeView(chunk_steps=2).chunks(Episode("t", [Step("s", "a")] * 3)))
            [range(0, 2), range(2, 3)]
        """
        n_steps = len(episode.steps)
        for first in range(0, n_steps, self.chunk_steps):
            yield range(first, min(first + self.chunk_steps, n_steps))

    def records(self, episode: Episode, chunk: range) -> list[dict[str, object]]:
        """Return what is shown of an episode to judge the steps of `chunk`, one record a line.

        The last one is the state that the last judged action led to, so that its effect is seen by the call that judges
        it; null if it was not recorded.

        Example:
            >>> from seasoned.types import Step
            >>> episode = Episode("buy", [Step("cart", "pay"), Step("pay", "confirm", 1.0)], final_state="done")
            >>> for record in EpisodeView(show_outcome=False, overlap_steps=0).records(episode, range(1, 2)):
            ...     print(record)
            {'task': 'buy', 'number_of_steps': 2}
            {'step': 1, 'state': 'pay', 'action': 'confirm'}
            {'state_after_step': 1, 'state': 'done'}
        """
        shown: list[dict[str, object]] = [{"task": self._cut(episode.task), "number_of_steps": len(episode.steps)}]
        if self.show_outcome:
            score = math.fsum(step.reward for step in episode.steps)
            shown.append({"outcome": {"score": score, "ending": episode.ending}})
        for index in range(max(0, chunk.start - self.overlap_steps), chunk.stop):
            step = episode.steps[index]
            name = "step" if index in chunk else "earlier_step"
            shown.append({name: index, "state": self._cut(step.state), "action": self._cut(step.action)})
        after = episode.steps[chunk.stop].state if chunk.stop < len(episode.steps) else episode.final_state
        shown.append({"state_after_step": chunk.stop - 1, "state": None if after is None else self._cut(after)})
        return shown

    def _cut(self, text: str) -> str:
        return shorten(text, self.text_chars)
