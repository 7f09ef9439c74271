"""Plain retrieval: steps of past successes, found by their states, in the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from seasoned.agents.baselines.bm25 import BM25
from seasoned.agents.baselines.success_criterion import SuccessCriterion
from seasoned.agents.baselines.token_checks import check_whole, estimated_tokens, one_line
from seasoned.agents.baselines.transcripts import check_finished, framed, room_within, score_of
from seasoned.protocols import Usage
from seasoned.types import Episode, Neighbor

__all__ = ["ByBM25", "BySearch", "Example", "Finder", "PastSuccesses", "Search"]

_HEAD = "What worked before in moments like this, the most alike first:"
_FETCHED_MOST = 2000
_LEAST_CHARS = 40

Search = Callable[[str, int], Sequence[Neighbor]]
"""The k stored steps most like a state, best first, such as `lambda state, k: memory.search(state, k, 0.0)`."""


@dataclass(slots=True)
class Example:
    """A step of a past success, and what was earned from it to the end, in reward units, undiscounted."""

    state: str
    action: str
    return_: float

    def text(self, state_chars: int, action_chars: int) -> str:
        """Return it as the prompt shows it."""
        state, action = one_line(self.state, state_chars), one_line(self.action, action_chars)
        return f"State: {state}\nAction: {action}\nEarned from there: {self.return_:g}"

    def within(self, room_tokens: int, limit_chars: int) -> str:
        """Return it with as much of its state as fits, about, 40 characters at least; else an empty text.

        What was done is not cut that far: half an action is no model.
        """

        def cut(state_chars: int) -> str:
            text = self.text(state_chars, limit_chars)
            return text if estimated_tokens(f"{text}\n") <= room_tokens else ""

        low, high = min(_LEAST_CHARS, limit_chars), min(limit_chars, max(_LEAST_CHARS, len(self.state)))
        if fit := cut(high):
            return fit
        fit = cut(low)
        while fit and high - low > low // 4:
            middle = (low + high + 1) // 2
            more = cut(middle)
            fit, low, high = (more, middle, high) if more else (fit, low, middle - 1)
        return fit


class Finder(Protocol):
    """Finds examples by their states."""

    def add(self, example: Example, episode_id: str | None, step: int) -> None:
        """Take in a step of a success."""
        ...

    def find(self, state: str, k: int) -> Sequence[Example]:
        """Return the k examples whose states match best, best first, each pair of state and action once."""
        ...


class ByBM25:
    """Finds by BM25 over the texts of the states; see `BM25` for the rule.

    Each pair of state and action is one text, whose example is the one that earned most. Equal scores: what earned
    more, then what is newer. A state that shares no word is not found.
    """

    def __init__(self, k1: float = 1.2, b: float = 0.75) -> None:
        self._index = BM25(k1, b)
        self._examples: list[Example] = []
        self._of: dict[tuple[str, str], Example] = {}

    def add(self, example: Example, episode_id: str | None, step: int) -> None:
        """Take in a step of a success."""
        del episode_id, step
        known = self._of.get((example.state, example.action))
        if known is not None:
            known.return_ = max(known.return_, example.return_)
            return
        self._of[example.state, example.action] = example
        self._examples.append(example)
        self._index.add(example.state)

    def find(self, state: str, k: int) -> Sequence[Example]:
        """Return the k best examples; see `Finder`."""
        scores = self._index.scores(state)
        best = sorted(scores, key=lambda i: (-scores[i], -self._examples[i].return_, -i))[:k]
        return [self._examples[i] for i in best]


class BySearch:
    """Finds by a memory's own similarity, and keeps what belongs to a success that it was told of.

    It asks for more and more neighbours until enough are of successes (2,000 at most). Equal similarity: what earned
    more, then what is newer. A state with similarity 0 is not found.

    Args:
        search: the memory's.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._examples: dict[tuple[str | None, int], Example] = {}

    def add(self, example: Example, episode_id: str | None, step: int) -> None:
        """Take in a step of a success."""
        self._examples[episode_id, step] = example

    def find(self, state: str, k: int) -> Sequence[Example]:
        """Return the k best examples; see `Finder`."""
        if not self._examples:
            return []
        fetched = 4 * k
        while True:
            near = self._search(state, fetched)
            found: dict[tuple[str, str], tuple[float, Example]] = {}
            for neighbor in near:
                seen = neighbor.experience
                example = self._examples.get((seen.episode_id, seen.step))
                if example is None or neighbor.similarity <= 0.0:
                    continue
                key = example.state, example.action
                if key not in found or found[key][1].return_ < example.return_:
                    found[key] = neighbor.similarity, example
            if len(found) >= k or len(near) < fetched or fetched >= _FETCHED_MOST:
                break
            fetched = min(4 * fetched, _FETCHED_MOST)
        ranked = sorted(found.values(), key=lambda pair: (-pair[0], -pair[1].return_))
        return [example for _, example in ranked[:k]]


class PastSuccesses:
    """Puts the k steps of past successes whose states are most like this one before the state.

    The plain retrieval that every memory is to be held against; in-context examples of an agent's own successes are
    those of ICRL (arXiv 2505.00234), here single steps, with the return that followed. What is a success is said in
    `SuccessCriterion`, and decided when an episode ends. No call is made to learn.

    Args:
        finder: `ByBM25`, or `BySearch` over a memory.
        success: an episode with at least this score is one; None: see `SuccessCriterion`.
        k: at most this many steps.
        window_tokens: of all that is put before the state, by `estimated_tokens`. A state that does not fit is cut as
            far as needed, to 40 characters at least; then its step is left out, and the next is tried: as
            `seasoned.policies.examples` fills a window, so that what is compared is what was chosen.
        text_chars: of one state or action; longer ones lose their middle.

    Raises:
        InputError: a value is outside its range.

    Example:
        >>> import asyncio
        >>> from seasoned.types import Step
        >>> past = PastSuccesses(ByBM25())
        >>> _ = asyncio.run(past.learn(Episode("t", [Step("page:pay", "click(confirm)", 1.0)])))
        >>> print(past.context("page:pay total:12", "t"))
        What worked before in moments like this, the most alike first:
        State: page:pay
        Action: click(confirm)
        Earned from there: 1
        Now:
    """

    def __init__(
        self, finder: Finder, success: float | None = None, k: int = 3, window_tokens: int = 800, text_chars: int = 400
    ) -> None:
        self._finder = finder
        self._successes = SuccessCriterion(success)
        self._k = check_whole("k", k)
        self._window_tokens = check_whole("window_tokens", window_tokens)
        self._text_chars = check_whole("text_chars", text_chars)

    def context(self, state: str, task: str) -> str:
        """Return the examples for this state."""
        del task
        room = room_within(_HEAD, self._window_tokens)
        shown: list[str] = []
        for example in self._finder.find(state, self._k):
            if text := example.within(room, self._text_chars):
                shown.append(text)
                room -= estimated_tokens(f"{text}\n")
        return framed(_HEAD, shown, self._window_tokens)

    async def learn(self, episode: Episode) -> Usage:
        """Keep the episode's steps, if it is a success; free."""
        score = score_of(check_finished(episode))
        if self._successes.take(episode.task, score):
            left = score
            for number, step in enumerate(episode.steps):
                self._finder.add(Example(step.state, step.action, left), episode.id, number)
                left -= step.reward
        return Usage()
