"""Ten-step episodes of generated states, by the ten thousand, as data for the benchmarks of the store."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import Any

from token_sets import TokenSetMaker
from workload import VOCABULARY_WORDS, word_of

from seasoned import Episode, Step
from seasoned.memory.values.content_hash import episode_record

__all__ = ["ACTIONS", "EPISODE_STEPS", "EpisodeMaker", "as_lines"]

EPISODE_STEPS = 10
ACTIONS = tuple(f"click {name}" for name in ("save", "back", "next", "submit", "edit", "search", "close", "help"))


class EpisodeMaker:
    """Episodes with families of near-duplicates as states, 48 to 60 distinct words each, words by Zipf's law.

    Args:
        seed: the same seed, the same episodes.
        repetition: the probability of a known state at a step, in [0, 1); the state is drawn uniformly.
    """

    def __init__(self, seed: int, repetition: float = 0.0) -> None:
        self._sets = TokenSetMaker(seed)
        self._repetition = repetition
        self._met: list[str] = []
        self._number = 0

    def states(self, n: int) -> list[str]:
        """Return `n` states that were not met before, no two alike."""
        words = _words()
        return [" ".join(map(words.__getitem__, tokens.tolist())) for tokens in self._sets.distinct(n)[0]] if n else []

    def again(self, n_steps: int) -> Any:
        """Return for each of the next steps whether its state was met before."""
        return self._sets.rng.random(n_steps) < self._repetition

    def episodes(self, n: int) -> list[Episode]:
        """Return the next `n` episodes, each with an id of its own."""
        rng = self._sets.rng
        n_steps = n * EPISODE_STEPS
        again = self.again(n_steps)
        again[: 0 if self._met else 1] = False
        fresh = iter(self.states(n_steps - int(again.sum())))
        which, chosen = rng.random(n_steps).tolist(), rng.integers(len(ACTIONS), size=n_steps).tolist()
        visited = []
        for repeated, lot in zip(again.tolist(), which, strict=True):
            visited.append(self._met[int(lot * len(self._met))] if repeated else next(fresh))
            if self._repetition and not repeated:
                self._met.append(visited[-1])
        made = []
        for first in range(0, n_steps, EPISODE_STEPS):
            rewards = [0.0] * (EPISODE_STEPS - 1) + [float(rng.random() < 0.5)]
            part = zip(visited[first:], chosen[first:], rewards, strict=False)
            steps = [Step(state, ACTIONS[action], reward) for state, action, reward in part]
            made.append(Episode(f"task {self._number % 50}", steps, id=f"episode-{self._number:08d}"))
            self._number += 1
        return made


def as_lines(episodes: Iterable[Episode]) -> list[str]:
    """Return episodes as JSON Lines, as `Memory.import_lines` takes them."""
    return [json.dumps({"type": "episode", **episode_record(episode)}) for episode in episodes]


@functools.cache
def _words() -> list[str]:
    return [word_of(i) for i in range(VOCABULARY_WORDS)]
