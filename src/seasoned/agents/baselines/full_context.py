"""Full-context learning: past transcripts in the prompt, as many as the window holds."""

from __future__ import annotations

from collections.abc import Iterator

from seasoned.agents.baselines.transcripts import framed, room_within, transcript
from seasoned.checks import check_whole
from seasoned.judges.episode_view import check_finished
from seasoned.protocols import Usage
from seasoned.states.text_budget import estimated_tokens
from seasoned.types import Episode

__all__ = ["FullContext"]

_HEAD = "Past episodes, the latest last:"


class FullContext:
    """Puts past transcripts before the state: task, states, actions, rewards and final score, of good and bad episodes.

    In-context learning over the whole history was the strongest arm of Continual Learning Bench (arXiv 2606.05661).
    The window is filled with the newest transcripts, shown in order of time; the oldest one shown may lose its first
    steps. Learning makes no model call.

    Args:
        window_tokens: size of the whole text before the state, by `estimated_tokens`.
        text_chars: limit of one state or action; longer ones lose their middle.

    Raises:
        InputError: a number is not whole, or below 1.

    Example:
        >>> import asyncio
        >>> from seasoned.types import Step
        >>> past = FullContext()
        >>> _ = asyncio.run(past.learn(Episode("t", [Step("page:pay", "click(confirm)", 1.0)])))
        >>> print(past.context("page:cart", "t"))
        Past episodes, the latest last:
        Episode with score 1, terminated:
        State: page:pay
        Action: click(confirm)
        Reward: +1
        Now:
    """

    def __init__(self, window_tokens: int = 800, text_chars: int = 400) -> None:
        self._window_tokens = check_whole("window_tokens", window_tokens, 1)
        self._text_chars = check_whole("text_chars", text_chars, 1)
        self._episodes: list[Episode] = []
        self._contexts: dict[str, str] = {}

    def context(self, state: str, task: str) -> str:
        """Return the transcripts that fit; the same at every step of an episode."""
        del state
        if task not in self._contexts:
            self._contexts[task] = framed(_HEAD, self._transcripts(task), self._window_tokens, newest_last=True)
        return self._contexts[task]

    async def learn(self, episode: Episode) -> Usage:
        """Store the episode; no usage."""
        self._episodes.append(check_finished(episode))
        self._contexts.clear()
        return Usage()

    def _transcripts(self, task: str) -> Iterator[str]:
        """Yield transcripts, newest first, up to the first one that is cut."""
        room = room_within(_HEAD, self._window_tokens)
        for episode in reversed(self._episodes):
            text, is_whole = transcript(episode, room, self._text_chars, task=task)
            yield text
            if not is_whole:
                return
            room -= estimated_tokens(f"{text}\n")
