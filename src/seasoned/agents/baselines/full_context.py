"""Full-context learning: as many past transcripts in the prompt as the window holds."""

from __future__ import annotations

from collections.abc import Iterator

from seasoned.agents.baselines.token_checks import check_whole, estimated_tokens
from seasoned.agents.baselines.transcripts import check_finished, framed, room_within, transcript
from seasoned.protocols import Usage
from seasoned.types import Episode

__all__ = ["FullContext"]

_HEAD = "Past episodes, the latest last:"


class FullContext:
    """Puts past transcripts before the state: task, states, actions, rewards, final score; good and bad alike.

    In-context learning over the whole history was the strongest arm of Continual Learning Bench (arXiv 2606.05661).
    The newest come first into the window, and stand last in the prompt; the oldest that comes in may lose its first
    steps. No call is made to learn.

    Args:
        window_tokens: of all that is put before the state, by `estimated_tokens`.
        text_chars: of one state or action; longer ones lose their middle.

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
        self._window_tokens = check_whole("window_tokens", window_tokens)
        self._text_chars = check_whole("text_chars", text_chars)
        self._episodes: list[Episode] = []
        self._shown: dict[str, str] = {}

    def context(self, state: str, task: str) -> str:
        """Return the past that fits; the same at every step of an episode."""
        del state
        if task not in self._shown:
            self._shown[task] = framed(_HEAD, self._transcripts(task), self._window_tokens, newest_last=True)
        return self._shown[task]

    async def learn(self, episode: Episode) -> Usage:
        """Keep the episode; free."""
        self._episodes.append(check_finished(episode))
        self._shown.clear()
        return Usage()

    def _transcripts(self, task: str) -> Iterator[str]:
        """Newest first, until one is not whole."""
        room = room_within(_HEAD, self._window_tokens)
        for episode in reversed(self._episodes):
            text, whole = transcript(episode, room, self._text_chars, task=task)
            yield text
            if not whole:
                return
            room -= estimated_tokens(f"{text}\n")
