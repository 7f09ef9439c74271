"""Evidence: sums over the stored steps at the states most similar to one state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number
from seasoned.types.experience import Neighbor

__all__ = [
    "Backup",
    "Evidence",
    "Floats",
    "Ints",
    "LatestLabels",
    "LatestSteps",
    "ObservedChoice",
    "RecentReturns",
    "StateSums",
    "TakenLeads",
    "TaskSums",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Backup:
    """Settings of value backup: values come through the graph of all stored steps, not from stored returns.

    Args:
        beta: nats per unit of reward at every future step, finite and at least 0: the assumed greediness of the future.
        novelty: bonus of an action tried once, in reward units, finite and at least 0; it falls with the square root of
            the tries, and is backed up like a reward.

    Raises:
        InputError: a value breaks its rule.

    Example:
        >>> Backup(beta=4.0)
        Backup(beta=4.0, novelty=0.0)
    """

    beta: float
    novelty: float = 0.0

    def __post_init__(self) -> None:
        for name in ("beta", "novelty"):
            value = check_number(name, getattr(self, name), at_least=0, next_step="0 switches it off.")
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class StateSums:
    """The sums of `Evidence` for each pair of a distinct state and an action, M pairs in all.

    Args:
        states: shape (M,), the number of the distinct state, from 0 (the most similar) on.
        actions: shape (M,), rows of `Evidence.actions`.
        counts, weights, totals, squares: shape (M,), as in `Evidence`.
        shares: shape (M,), each pair's share of its action's mean; None: its weight over the action's weight.
        labelled: shape (M,), the part of the `weights` that are labels; None: none.
        leads: shape (M,), by how much the model preferred the action at this state (`seasoned.core.prior_leads`), by
            the prior of the latest step there; NaN where that has none. None: not read.
    """

    states: Ints
    actions: Ints
    counts: Floats
    weights: Floats
    totals: Floats
    squares: Floats
    shares: Floats | None = None
    labelled: Floats | None = None
    leads: Floats | None = None

    @property
    def step_weights(self) -> Floats:
        """The part of the `weights` that are stored steps, shape (M,)."""
        return self.weights if self.labelled is None else self.weights - self.labelled


@dataclass(frozen=True, slots=True)
class TaskSums:
    """The sums of `Evidence` for each distinct state, action and task, over its latest steps; L entries.

    A state, action and task with labels may have several entries, which add up.

    Args:
        states, actions: shape (L,), as in `StateSums`.
        tasks: shape (L,), numbers of the tasks, from 0.
        counts: shape (L,), steps and labels, unweighted. 0: one task is known that took this action at this state,
            before the latest steps, and not how often.
        totals: shape (L,), sums of the returns of these steps.
        episodes: shape (T,), the number of episodes of each task at these states, as far as they are known; where
            states have goals, among the latest of the namespace too.
        current: the number of the task being played; -1: it is none of these.
        situations: shape (S,), of each state the number of what it is apart from its goal, the goal of the query being
            a part of it; None: no state has a goal.
    """

    states: Ints
    actions: Ints
    tasks: Ints
    counts: Floats
    totals: Floats
    episodes: Ints
    current: int = -1
    situations: Ints | None = None


class ObservedChoice(NamedTuple):
    """One choice among several options at a similar state: one observation, whatever the number of options.

    Args:
        state: the number of the distinct state, from 0 (the most similar) on.
        options: two or more rows of `Evidence.actions`.
        chosen: one of them.
        weight: the feedback's weight, times the weight of a step at that state and of that age.
    """

    state: int
    options: tuple[int, ...]
    chosen: int
    weight: float


@dataclass(frozen=True, slots=True)
class RecentReturns:
    """The returns of the latest stored steps, robust against a few extreme ones.

    Args:
        mean: in reward units.
        spread: their standard deviation, in reward units; 0 if they are all equal, or there are none.
        n: the number of these steps.
    """

    mean: float
    spread: float
    n: int


class TakenLeads(NamedTuple):
    """By how much the model preferred the actions of the latest steps that have a prior, N steps.

    Attributes:
        leads: shape (N,), `seasoned.core.prior_leads` of the action taken.
        expected: shape (N,), the mean lead of the model's own choices there, `sum p^2 - 1 / C`.
        returns: shape (N,), in reward units.
    """

    leads: Floats
    expected: Floats
    returns: Floats


class LatestLabels(NamedTuple):
    """What labels on the latest steps tell beside these, U pairs of a step and an action.

    Attributes:
        steps: shape (U,), positions of steps.
        actions: shape (U,), rows of the sums by action: options that no step took, whose rewards are 0; and, where
            labels disagree or weigh, options that a step took.
        weights, totals, squares: shape (U,), sums of these observations.
    """

    steps: Ints
    actions: Ints
    weights: Floats
    totals: Floats
    squares: Floats


@dataclass(frozen=True, slots=True)
class LatestSteps:
    """The latest steps at the most similar states, of each state the oldest first, T in all.

    Args:
        states: shape (T,), positions of the distinct states, from 0, the most similar.
        actions: shape (T,), rows of the sums by action.
        returns: shape (T,), in reward units.
        labels: what labels on these steps tell beside them; None: nothing.
    """

    states: Ints
    actions: Ints
    returns: Floats
    labels: LatestLabels | None = None


@dataclass(frozen=True)
class Evidence:
    """Sums over the stored steps at the states most similar to one state, per action (A actions).

    Args:
        actions: A action texts, in their first spelling, distinct after normalisation.
        counts: shape (A,), observations per action: stored steps, and the labels that no step holds; 0 for an action
            that is only in `choices`.
        weights: shape (A,), their summed weights (similarity and recency); equals `counts` when unweighted. With
            a floor of propensities, effective numbers of steps.
        totals: shape (A,), weighted sums of returns, in reward units.
        squares: shape (A,), weighted sums of squared returns.
        spread: robust spread of the namespace's mean returns by distinct state and action, in reward units; 0 when all
            are equal, to three significant digits, or there are none.
        gamma: the discount of the returns.
        n_states: distinct states among the neighbours.
        neighbors: some of the steps, best first: at most 50, or as many as the query says.
        by_state: the sums by distinct state, if the memory computes them.
        n_episodes: the number of episodes added to the namespace so far.
        n_unlogged: the number of steps without a stored propensity, which was estimated; 0 if none was needed.
        unshown: shape (A,), the part of the `counts` that is not in the model's prompt; None: all of them.
        similarities: shape (S,), of the distinct states to the query, best first; None with `unit="steps"`.
        state_similarities: shape (S, S), between the distinct states; None unless asked for `similarity="rarity"`.
        recent: the returns of the latest steps; None unless asked for, or for `similarity="rarity"`.
        latest: the latest steps at the nearest states that have four steps or more; None unless asked for
            `similarity="rarity"`, and where steps have weights or their values come through the graph.
        by_task: the sums by task, if asked for.
        choices: the choices at the neighbours, if asked for; steps and returns then leave them out.
        labelled: shape (A,), the part of the `counts` that are labels, if asked for; None: none.
        frontier: shape (A,), how near each action leads to one that was not tried (`seasoned.core.FrontierGraph`), NaN
            for one that was not tried at this very state; None unless asked for, where the state was never visited or
            the current task was paid after it, and where the task is on no plateau (see `EvidenceQuery`).
        taken_leads: of the latest steps that count for the task, if asked for; None where fewer than half of
            these have a prior, or returns do not rise.

    Example:
        >>> from seasoned import Episode, EvidenceQuery, Memory, Step
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add(Episode("checkout", [Step("page:pay", "click(confirm)", 1.0)]))
        ...     evidence = memory.evidence(EvidenceQuery("page:pay", k=5, unit="states", threshold=0.8))
        >>> evidence.actions, evidence.n_steps
        (('click(confirm)',), 1)
    """

    actions: tuple[str, ...]
    counts: Floats
    weights: Floats
    totals: Floats
    squares: Floats
    spread: float
    gamma: float
    n_states: int
    neighbors: tuple[Neighbor, ...]
    by_state: StateSums | None = None
    n_episodes: int = 0
    n_unlogged: int = 0
    unshown: Floats | None = None
    similarities: Floats | None = None
    state_similarities: Floats | None = None
    recent: RecentReturns | None = None
    latest: LatestSteps | None = None
    by_task: TaskSums | None = None
    choices: tuple[ObservedChoice, ...] = ()
    frontier: Floats | None = None
    labelled: Floats | None = None
    taken_leads: TakenLeads | None = None

    @property
    def step_counts(self) -> Floats:
        """The part of the `counts` that are stored steps, shape (A,)."""
        return self.counts if self.labelled is None else self.counts - self.labelled

    @property
    def n_steps(self) -> int:
        """The number of stored steps in the evidence; each of the `choices` counts as one."""
        return int(self.step_counts.sum()) + len(self.choices)

    @property
    def n_shown(self) -> int:
        """The number of these steps that are in the model's prompt."""
        return 0 if self.unshown is None else int(self.counts.sum() - self.unshown.sum())
