"""Mixed prior: a reader's prior mixed with the agent's own counted choices."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seasoned.actions import action_key
from seasoned.checks import check_instance, check_number
from seasoned.policies.candidates import check_candidates
from seasoned.policies.own_choices import OwnChoices, own_choices
from seasoned.protocols import ChatContext, PriorReader, PriorReading, ReadableMemory
from seasoned.types import Floats, Prior, Step

__all__ = ["MIXED", "WIDE_DEPARTURE", "AgentChoices", "MixedPrior", "ScoredChoice", "fitted_weight", "scored"]

WIDE_DEPARTURE = 0.3
"""Total variation between a prior and the agent's choices from which on it is reported."""

_ENOUGH_STEPS = 20
_UNFITTED = 0.5
_GROWTH = 1.1
MIXED = "mixed with the agent's choices"
"""In the method of a prior that was mixed."""
_LOG = logging.getLogger(__name__)


class AgentChoices:
    """Counts of an agent's choices: in all, by family (task), and at each distinct state.

    The prior of C candidates is, from the most general level on, `p = (n_c + p_above) / (n + 1)`, with n_c choices of
    candidate c and n of any candidate there, and 1 / C above all: one observation of the level above, the smoothing of
    votes (Perks 1947).

    Args:
        features: of the memory's encoder.
        key: by which two actions are the same.

    Example:
        >>> choices = AgentChoices(lambda text: frozenset(text.split()))
        >>> for _ in range(3):
        ...     choices.add("page cart", "shop", "pay")
        >>> choices.probs("page cart", "shop", ["pay", "back"]).round(3).tolist()
        [0.992, 0.008]
    """

    def __init__(self, features: Callable[[str], frozenset[str]], *, key: Callable[[str], str] = action_key) -> None:
        self._features = features
        self._key = key
        self._counts: defaultdict[object, Counter[str]] = defaultdict(Counter)

    def _levels(self, state: str, task: str | None) -> tuple[object, ...]:
        return (None,) if task is None else (None, task, (task, self._features(state)))

    def add(self, state: str, task: str, action: str) -> None:
        """Count a choice."""
        for level in self._levels(state, task):
            self._counts[level][self._key(action)] += 1

    def n_of(self, task: str) -> int:
        """Return the number of choices in a family."""
        return self._counts[task].total() if task in self._counts else 0

    def n_among(self, task: str | None, candidates: Sequence[str]) -> int:
        """Return the number of choices among these candidates in a family, or without a task in all."""
        counts = self._counts.get(task, Counter())
        return sum(counts[key] for key in {self._key(candidate) for candidate in candidates})

    def probs(self, state: str, task: str | None, candidates: Sequence[str]) -> Floats:
        """Return the counted prior over the candidates, shape (C,); without a task that of all choices."""
        keys = [self._key(candidate) for candidate in candidates]
        found: Floats = np.full(len(keys), 1.0 / len(keys))
        for level in self._levels(state, task):
            counts = self._counts.get(level, Counter())
            n = np.array([counts[key] for key in keys], dtype=np.float64)
            found = (n + found) / (n.sum() + 1.0)
        return found


@dataclass(frozen=True, slots=True)
class ScoredChoice:
    """A choice of the agent, with what a prior and the choices before it gave it.

    Args:
        episode: the number of its episode.
        task: of its episode.
        candidates: C actions; one of them was taken.
        taken: its position.
        prior, counted: shape (C,), the probabilities by the prior, and by the choices in earlier episodes.
    """

    episode: int
    task: str
    candidates: tuple[str, ...]
    taken: int
    prior: Floats
    counted: Floats


def scored(
    played: Iterable[OwnChoices],
    choices: AgentChoices,
    prior_of: Callable[[int, int, Step], Mapping[str, float] | None],
) -> Iterator[ScoredChoice]:
    """Yield the agent's own choices that a prior knows, each scored before its episode is counted.

    Args:
        played: the agent's episodes in commit order, as `own_choices` returns them.
        choices: counts them; empty at first.
        prior_of: returns the prior (logprobs in nats) of the step of an episode, by their numbers; None: unknown.
    """
    for number, one in enumerate(played):
        task = one.episode.task
        own = [(index, one.episode.steps[index]) for index in one.steps]
        for index, step in own:
            prior = prior_of(number, index, step)
            keys = {} if prior is None else {action_key(name): at for at, name in enumerate(prior)}
            at = keys.get(action_key(step.action))
            if prior is not None and at is not None and len(prior) > 1:
                names = tuple(prior)
                probs = np.exp(np.array(list(prior.values())))
                counted = choices.probs(step.state, task, names)
                yield ScoredChoice(number, task, names, at, probs / probs.sum(), counted)
        for _, step in own:
            choices.add(step.state, task, step.action)


def fitted_weight(prior: Floats, counted: Floats) -> float:
    """Return the weight w of the counted choices with the least log loss `-mean log((1 - w) p + w c)`, in [0, 1].

    By expectation maximisation (Dempster, Laird and Rubin 1977); the loss is convex in w.

    Args:
        prior, counted: shape (N,), the probability of each taken action, above 0.

    Example:
        >>> round(fitted_weight(np.full(9, 0.1), np.full(9, 0.8)), 2)
        1.0
    """
    weight = 0.5
    for _ in range(500):
        mixed = (1.0 - weight) * prior + weight * counted
        weight = float(np.mean(weight * counted / np.maximum(mixed, np.finfo(float).tiny)))
    return min(1.0, max(0.0, weight))


@dataclass(frozen=True, slots=True)
class _Counted:
    """The agent's choices as they were counted last, at a number of stored steps, and the weight fitted to them."""

    n_steps: int
    quarantines: tuple[object, ...]
    choices: AgentChoices
    weight: float
    fit: str


class MixedPrior:
    """A reader whose prior is mixed with what the agent itself chose: a `seasoned.protocols.PriorReader`.

    A reader asks a question of its own, so its prior may be far from the policy of the agent that it stands for. The
    agent's counted choices (`AgentChoices`) are that policy as far as it was seen:

        p(a) = (1 - w) p_reader(a) + w p_counted(a).

    Choices that memory shifted, by numbers or by examples in the prompt, are left out, as are quarantined episodes and
    people's answers (`seasoned.policies.own_choices`). They are counted in a thread, beside the model's reading, and
    again when the memory has grown by a tenth or shrunk, or its quarantines changed; other readings use the last counts
    meanwhile. A warning is logged once for each family of tasks with 10 choices or more, before the first decision
    there for which the reader's prior departs from them by a total variation of `WIDE_DEPARTURE` or more.
    `prior.method`, which a decision records, has the weight, and the departure of each reading.

    Args:
        reader: reads the model.
        memory: holds the agent's episodes.
        weight: w, in [0, 1]; None: fitted by the log loss of the stored choices that have a prior, each predicted from
            the episodes before it. With fewer than 20 such choices it is 0.5, and `prior.method` says so.

    Raises:
        InputError: a value breaks its rule.

    Example:
        >>> import asyncio, math
        >>> from seasoned import Episode, Memory
        >>> from seasoned.agents.baselines.uniform_reader import UniformReader
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add_many([Episode("oncall", [Step("alert pool", "restart")])] * 12)
        ...     reader = MixedPrior(UniformReader(), memory, weight=0.8)
        ...     prior = asyncio.run(reader.read("alert pool", "oncall", ["restart", "scale"])).prior
        >>> round(math.exp(prior["restart"]), 2)
        0.9
    """

    def __init__(self, reader: PriorReader, memory: ReadableMemory, *, weight: float | None = None) -> None:
        rule = "reader must have a name and a method read()"
        self._reader = check_instance("reader", reader, PriorReader, rule, "Pass a LabelReader, for example.")
        rule = "memory must be a seasoned.Memory"
        self._memory = check_instance("memory", memory, ReadableMemory, rule, "Pass a seasoned.Memory.")
        self._given = None if weight is None else check_number("weight", weight, 0, 1)
        self._counted: _Counted | None = None
        self._counting = threading.Lock()
        self._warned: set[str] = set()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._reader.name

    @property
    def weight(self) -> float:
        """The weight of the counted choices, stated or fitted."""
        return self._count().weight

    async def read(
        self, state: str, task: str, candidates: Sequence[str], *, context: ChatContext | None = None
    ) -> PriorReading:
        """Return the mixed prior over `candidates`, at the cost of one reading; asked in `context` if that is given.

        Raises:
            InputError: as for the reader.
            ModelError: the endpoint failed.
        """
        check_candidates(dict.fromkeys(candidates, 0.0), None)
        given = {} if context is None else {"context": context}
        asked = self._reader.read(state, task, candidates, **given)
        reading, known = await asyncio.gather(asked, asyncio.to_thread(self._count))
        weight = known.weight
        own = np.exp(np.array([reading.prior[name] for name in candidates]))
        counted = known.choices.probs(state, task, candidates)
        departure = 0.5 * float(np.abs(own - counted).sum())
        n = known.choices.n_of(task)
        if n >= 10 and departure >= WIDE_DEPARTURE and task not in self._warned:
            _LOG.warning(
                "the prior of %s departs from %d choices of the agent in %r by a total variation of %.2f, weight %.2f",
                *(self.name, n, task[:80], departure, weight),
            )
            self._warned.add(task)
        mixed = (1.0 - weight) * own + weight * counted
        method = f"{reading.prior.method}, {MIXED}: weight {weight:.2f}{known.fit}, n={n}, departs {departure:.2f}"
        logprobs = dict(zip(candidates, np.log(mixed / mixed.sum()).tolist(), strict=True))
        bounded = reading.prior.bounded if weight < 1.0 else ()
        prior = Prior(logprobs, method, reading.prior.model, bounded, reading.prior.capabilities)
        return PriorReading(prior, reading.usage)

    def _count(self) -> _Counted:
        """Return the counts; they are renewed first if they are old and no other thread is doing so."""
        last = self._counted
        if not self._counting.acquire(blocking=last is None):
            return last  # type: ignore[return-value]  # only counts that exist are not waited for
        try:
            last = self._counted
            n_steps, quarantines = len(self._memory), tuple(self._memory.quarantines())
            if last is None or quarantines != last.quarantines or not last.n_steps <= n_steps <= _GROWTH * last.n_steps:
                last = self._counted = self._fitted(n_steps, quarantines)
            return last
        finally:
            self._counting.release()

    def _fitted(self, n_steps: int, quarantines: tuple[object, ...]) -> _Counted:
        """Count the choices anew, and fit the weight."""
        choices = AgentChoices(self._memory.encoder.features)
        pairs = [
            (float(one.prior[one.taken]), float(one.counted[one.taken]))
            for one in scored(own_choices(self._memory), choices, lambda _, __, step: _read_prior(step))
        ]
        if self._given is not None:
            weight, fit = self._given, " (given)"
        elif len(pairs) < _ENOUGH_STEPS:
            weight, fit = _UNFITTED, f" (not fitted: {len(pairs)} choices with a prior)"
        else:
            prior, counted = np.array(pairs).T
            weight, fit = fitted_weight(prior, counted), f" (fitted to {len(pairs)} choices)"
        return _Counted(n_steps, quarantines, choices, weight, fit)


def _read_prior(step: Step) -> Mapping[str, float] | None:
    """Return the prior of a step as a reader gave it; None if there is none, or it was mixed."""
    mixed = isinstance(step.prior, Prior) and MIXED in step.prior.method
    return None if mixed else step.prior
