"""What followed where examples were shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from seasoned.core.showing import Observed, observed_showings
from seasoned.policies.examples.example import Place
from seasoned.policies.examples.source import ExampleSource
from seasoned.types import Experience, Note

__all__ = ["Showings", "neighborhood_advantage"]

NEIGHBOR_STATES, NEIGHBOR_THRESHOLD = 10, 0.8
"""The neighbourhood of a step: all steps at the 10 distinct states most like its own, at 0.8 or more, as in `JitRL`."""


def neighborhood_advantage(memory: ExampleSource, seen: Experience, gamma: float) -> float | None:
    """Return a step's return less the mean of its neighbourhood's without it, in reward units; None if it is alone."""
    place = seen.episode_id, seen.step
    around = memory.evidence(
        seen.state, k=NEIGHBOR_STATES, unit="states", threshold=NEIGHBOR_THRESHOLD, gamma=gamma, exclude_steps=(place,)
    )
    weight = float(around.weights.sum())
    return seen.return_ - float(around.totals.sum()) / weight if weight > 0.0 else None


class Showings:
    """Follows the notes of the kind "shown": which examples stood in the prompt of which step.

    A step's advantage is what it earned above its neighbourhood. It is worked out when the note is first read, and
    again by `refresh`: later feedback, and what was stored since, count from then on. A step that is alone, or gone,
    says nothing.
    """

    def __init__(self, memory: ExampleSource, gamma: float) -> None:
        self._memory = memory
        self._gamma = gamma
        self._forget()

    def _forget(self) -> None:
        self._position = (0, 0)
        self._examples_at: dict[Place, tuple[Place, ...]] = {}
        self._advantage_at: dict[Place, float | None] = {}
        self._number_of: dict[Place, int] = {}
        self._n_shown: Counter[Place] = Counter()
        self._observed = Observed(np.zeros(0), np.zeros(0), np.zeros(0))

    def refresh(self) -> None:
        """Work everything out anew."""
        self._forget()
        self.follow()

    def follow(self) -> None:
        """Take in what was noted since."""
        self._position, notes, anew = self._memory.shown_after(self._position)
        if anew:
            position = self._position
            self._forget()
            self._position = position
        new: set[Place] = set()
        for place, examples in filter(None, map(_told, notes)):
            # A step may have been planned, thought about and acted on with examples, a note each.
            self._examples_at[place] = tuple(dict.fromkeys((*self._examples_at.get(place, ()), *examples)))
            new.add(place)
        if not new:
            return
        seen = self._memory.experiences(new, gamma=self._gamma)
        for place in new:
            self._advantage_at[place] = (
                neighborhood_advantage(self._memory, seen[place], self._gamma) if place in seen else None
            )
        self._n_shown = Counter(example for examples in self._examples_at.values() for example in examples)
        self._number_of = {example: number for number, example in enumerate(self._n_shown)}
        self._observed = self._summed_up()

    def _summed_up(self) -> Observed:
        episode_number: dict[str, int] = {}
        rows = [
            (self._number_of[example], episode_number.setdefault(place[0], len(episode_number)), 1 / len(examples), a)
            for place, examples in self._examples_at.items()
            if (a := self._advantage_at[place]) is not None
            for example in examples
        ]
        which, episodes, shares, advantages = zip(*rows, strict=True) if rows else ((), (), (), ())
        return observed_showings(
            np.array(which, dtype=np.int64), np.array(episodes, dtype=np.int64), shares, advantages,
            len(self._number_of),
        )  # fmt: skip

    @property
    def places(self) -> tuple[Place, ...]:
        """The examples that were shown."""
        return tuple(self._number_of)

    def n_shown(self, places: Iterable[Place]) -> int:
        """Return at how many steps these were shown, taken together."""
        return sum(self._n_shown[place] for place in places)

    def observed(self, places: Sequence[Place]) -> Observed:
        """Return what followed where these were shown; nothing for one that was not."""
        rows = np.array([self._number_of.get(place, -1) for place in places], dtype=np.int64)
        held = np.where(rows >= 0, rows, len(self._number_of))
        return Observed(*(np.append(of_all, 0.0)[held] for of_all in (
            self._observed.counts, self._observed.totals, self._observed.squares)))  # fmt: skip


def _told(note: Note) -> tuple[Place, tuple[Place, ...]] | None:
    """Return the step that a note is about (the first, if the whole), and what was shown there; None if nothing."""
    listed = note.body.get("examples")
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        return None
    places = [
        (pair[0], pair[1])
        for pair in listed
        if isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], int)
    ]
    return ((note.episode_id, note.step or 0), tuple(dict.fromkeys(places))) if places else None
