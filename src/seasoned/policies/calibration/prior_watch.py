"""Prior watch: warns before decisions by a prior that is far from what the agent itself did."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from seasoned.actions import action_key
from seasoned.errors import StoreError
from seasoned.policies.mixed_prior import MIXED, WIDE_DEPARTURE, AgentChoices
from seasoned.policies.own_choices import PlayedMemory, latest_own_choices
from seasoned.types import Floats, Prior

__all__ = ["PriorWatch"]

_LATEST = 200  # episodes
_WITHIN_S = 0.025  # for their read, and for their count
_BETWEEN_LOOKS = 64  # readings, between two looks at how far the memory has grown
_FEWEST = 10  # choices
_MOST_FAMILIES = 1000
_VOTES = re.compile(r"\bvotes, n=(\d+)")
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Readings:
    """The readings of a family: their number, that of their votes, and the sum of their gaps by action."""

    n: int = 0
    n_votes: float = 0.0
    gaps: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


class PriorWatch:
    """Compares the priors of decisions with the agent's own choices, and warns once for each family of tasks.

    A reader asks a question of its own, so that its prior may be far from the policy that the agent had. The gap of a
    reading is its prior less the counted choices (`AgentChoices`) there; the departure of a family is the total
    variation `1/2 sum_a |mean gap of a|` over its readings so far. It is wide from `WIDE_DEPARTURE` on, and beyond
    chance: n draws from a distribution over C actions depart from it by more than

        1/2 sqrt((C - 1) / n) + sqrt(ln 20 / (2 n))

    in at most one of 20 cases (Cauchy and Schwarz; McDiarmid 1989, in Surveys in Combinatorics). That is the limit for
    the choices, and for a prior of votes that of the votes is added.

    The choices are those of the latest 200 episodes that memory did not shift (`own_choices`), of fewer where these
    take longer than 25 ms to read, or to count, or more than 2 MB. An episode of more than 256 KB is left out. They are
    read at the first reading, and again when the stored steps have doubled; so are those that a memory failed to
    return. No decision fails by them.

    Args:
        memory: holds the agent's episodes; one that is no `PlayedMemory` is not watched.
        key: by which two actions are the same; those of tools have the tool's name.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add_many([Episode("oncall", [Step("alert pool", "restart")])] * 12)
        ...     prior = Prior({"restart": math.log(0.1), "scale": math.log(0.9)}, "label")
        ...     round(PriorWatch(memory).check(prior, "alert pool", "oncall"), 2)
        0.9
    """

    def __init__(self, memory: object, *, key: Callable[[str], str] = action_key) -> None:
        self._memory = memory if isinstance(memory, PlayedMemory) else None
        self._key = key
        self._choices: AgentChoices | None = None
        self._n_steps = self._n_looked = 0
        self._readings: dict[str | None, _Readings] = {}
        self._warned: set[str | None] = set()
        self._lock = threading.Lock()

    def check(self, prior: Prior, state: str, task: str | None) -> float:
        """Return the departure of a family's priors, this one included; 0 where nothing is known. Warn if it is wide.

        Args:
            prior: as a reader gave it; a mixed one (`MixedPrior`) was compared already.
            state: of the decision.
            task: of the decision; None: all choices are compared.
        """
        if self._memory is None or len(prior) < 2 or MIXED in prior.method or task in self._warned:
            return 0.0
        if not self._lock.acquire(blocking=False):  # another decision counts
            return 0.0
        try:
            choices = self._counted(self._memory)
            names = list(prior)
            n_choices = 0 if choices is None else choices.n_among(task, names)
            if choices is None or n_choices < _FEWEST:
                return 0.0
            departure, by_chance = self._add(prior, choices.probs(state, task, names), names, task, n_choices)
            if departure < max(WIDE_DEPARTURE, by_chance):
                return departure
            self._warned.add(task)
        finally:
            self._lock.release()
        _LOG.warning(
            "the prior (%s) departs from %d choices of the agent in %r by a total variation of %.2f (by chance up to "
            "%.2f): `seasoned memory prior` compares them, and seasoned.policies.MixedPrior mixes them",
            *(prior.method, n_choices, "all tasks" if task is None else task[:80], departure, by_chance),
        )
        return departure

    def _counted(self, memory: PlayedMemory) -> AgentChoices | None:
        self._n_looked += 1
        if self._n_looked > 1 and self._n_looked % _BETWEEN_LOOKS:
            return self._choices
        try:
            n_steps = len(memory)
            if not self._n_steps <= n_steps <= 2 * self._n_steps:
                self._n_steps = n_steps  # first: a read that fails is not tried again before they have doubled
                self._choices = self._count(memory)
                self._readings.clear()
        except StoreError as error:
            _LOG.debug("the agent's choices were not read: %s", error)
        return self._choices

    def _count(self, memory: PlayedMemory) -> AgentChoices:
        choices = AgentChoices(memory.encoder.features, key=self._key)
        until = time.monotonic() + 2.0 * _WITHIN_S
        for one in latest_own_choices(memory, _LATEST, within_s=_WITHIN_S):
            for index in one.steps:
                step = one.episode.steps[index]
                choices.add(step.state, one.episode.task, step.action)
                if time.monotonic() > until and choices.n_of(one.episode.task) >= _FEWEST:
                    return choices
        return choices

    def _add(
        self, prior: Prior, counted: Floats, names: Sequence[str], task: str | None, n_choices: int
    ) -> tuple[float, float]:
        """Add a reading; return the departure of the family, and the largest that may come about by chance."""
        if len(self._readings) >= _MOST_FAMILIES:
            self._readings.clear()
        readings = self._readings.setdefault(task, _Readings())
        probs = np.exp([prior[name] for name in names])
        for name, gap in zip(names, (probs / probs.sum() - counted).tolist(), strict=True):
            readings.gaps[self._key(name)] += gap
        readings.n += 1
        voted = _VOTES.search(prior.method)
        readings.n_votes += math.inf if voted is None else int(voted[1])
        departure = 0.5 * math.fsum(map(abs, readings.gaps.values())) / readings.n
        n_actions = len(readings.gaps)
        return departure, _by_chance(n_actions, n_choices) + _by_chance(n_actions, readings.n_votes)


def _by_chance(n_actions: int, n: float) -> float:
    """Return a total variation that n draws exceed in at most one of 20 cases."""
    return 0.5 * math.sqrt((n_actions - 1) / n) + math.sqrt(math.log(20.0) / (2.0 * n))
