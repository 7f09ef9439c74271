"""Placebo memory: the same memory with shuffled returns."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from seasoned.core import N_RECENT, recent_moments
from seasoned.errors import InputError
from seasoned.policies.placebo.shuffled_graph import ShuffledGraph, sums_with_values
from seasoned.protocols import ReadableMemory
from seasoned.types import (
    Backup,
    Evidence,
    EvidenceQuery,
    Experience,
    LatestSteps,
    RecentReturns,
    StepRef,
    normalize_action,
)
from seasoned.types.step_sums import CountedStep, state_sums, task_sums

__all__ = ["ShuffledReturns"]


class ShuffledReturns:
    """An `EvidenceSource` with the returns of a memory permuted across its stored steps.

    Each step gets the return of another step. With `backup` it gets the reward and the next state of another
    step, and
    values are backed up through that graph (`ShuffledGraph`). Retrieval, similarities, counts, priors, spread and the
    listed neighbours do not change; only the relation between an action and its return is broken. So a gain with this
    evidence cannot come from learning. The `recent` moments and the `latest` steps are those of the same steps with
    their permuted returns: the real mean would differ from that of the permuted returns where returns
    changed with time, and an action would look good or bad for having been tried. Choices of people and right labels
    count by their rewards here, as steps. It names no frontier, since the real rewards say where that is explored, and
    no leads of the model's policy, since the real returns say what these are worth. The permutation is drawn from the
    seed after every commit. It reads the whole memory, so it is for comparisons only.
    Weights other than 1 are refused.

    Args:
        memory: a `seasoned.Memory`.
        seed: of the permutation.
    """

    def __init__(self, memory: ReadableMemory, seed: int) -> None:
        self._memory = memory
        self._seed = seed
        self._shuffled: tuple[object, ...] = ()
        self._returns: dict[StepRef, float] = {}
        self._latest: list[tuple[str, float]] = []  # (task, permuted return), latest first
        self._rewards: dict[StepRef, float] = {}
        self._lender: dict[StepRef, StepRef] = {}
        self._graphs: dict[tuple[float, Backup, str | None], ShuffledGraph] = {}

    def evidence(self, query: EvidenceQuery) -> Evidence:
        """Return evidence with returns permuted across stored steps; see `Memory.evidence`.

        Raises:
            InputError: as for `Memory.evidence`; or the query would weight the neighbours.
        """
        if query.similarity_power != 0.0 or query.decay != 1.0 or query.propensity_floor is not None:
            raise InputError(
                f"similarity_power = {query.similarity_power}, decay = {query.decay}, "
                f"propensity_floor = {query.propensity_floor}",
                "the placebo gives every neighbour the same weight",
                "Compare with similarity_power=0, decay=1 and propensity_floor=None.",
            )
        gamma = self._memory.gamma if query.gamma is None else query.gamma
        unshuffled = dataclasses.replace(
            query,
            gamma=gamma,
            backup=None,
            compare_choices=False,
            among=None,
            frontier=False,
            labels=False,
            leads=False,
        )
        real = self._memory.evidence(unshuffled)
        number_of, found = self._steps_at(query, gamma, real.n_steps)
        self._shuffle(gamma, [step for _, step in found])
        row_of = {normalize_action(action): row for row, action in enumerate(real.actions)}
        steps = [
            CountedStep(
                number,
                row_of[normalize_action(step.action)],
                self._returns[step.episode_id, step.step],
                step.task,
                step.episode_id,
            )
            for number, step in found
        ]
        by_state = state_sums(steps)
        exclude_task, current_task = (
            None if task is None else self._memory.redacted(task) for task in (query.exclude_task, query.current_task)
        )
        if query.backup is not None:
            states_seen = list(number_of)
            cells = zip(by_state.states.tolist(), by_state.actions.tolist(), strict=True)
            pairs = [(states_seen[number], real.actions[row]) for number, row in cells]
            by_state = sums_with_values(by_state, self._graph(gamma, query.backup, exclude_task).q(pairs))
        totals, squares = np.zeros((2, len(real.actions)))
        np.add.at(totals, by_state.actions, by_state.totals)
        np.add.at(squares, by_state.actions, by_state.squares)
        recent, by_task = real.recent, real.by_task
        if recent is not None:
            returns = [step for step in self._latest if step[0] != exclude_task][:N_RECENT]
            recent = RecentReturns(*recent_moments(returns, current_task))
        latest = None if real.latest is None else self._permuted(real.latest, found)
        return dataclasses.replace(
            real,
            totals=totals,
            squares=squares,
            by_state=by_state,
            recent=recent,
            latest=latest,
            by_task=None if by_task is None else task_sums(steps, current_task, by_task.situations),
        )

    def _permuted(self, latest: LatestSteps, found: Sequence[tuple[int, Experience]]) -> LatestSteps:
        """Return the same latest steps with their permuted returns."""
        returns_at: defaultdict[int, list[float]] = defaultdict(list)  # of each state, the latest first
        for number, step in found:
            returns_at[number].append(self._returns[step.episode_id, step.step])
        n_at = Counter(latest.states.tolist())
        returns = [one for number, n in n_at.items() for one in reversed(returns_at[number][:n])]
        return dataclasses.replace(latest, returns=np.array(returns, dtype=np.float64))

    def _steps_at(
        self, query: EvidenceQuery, gamma: float, n_steps: int
    ) -> tuple[dict[frozenset[str], int], list[tuple[int, Experience]]]:
        """Return the numbers of the neighbour states, and their n steps, each with the number of its state."""
        limit = query.k if query.unit == "steps" else max(1, n_steps)
        while True:
            nearest = self._memory.search(
                query.state,
                limit,
                query.threshold,
                gamma=gamma,
                exclude_task=query.exclude_task,
                similarity=query.similarity,
            )
            features_of = {
                state: self._memory.encoder.features(state) for state in {n.experience.state for n in nearest}
            }
            number_of: dict[frozenset[str], int] = {}
            steps = []
            for neighbor in nearest:
                features = features_of[neighbor.experience.state]
                if query.unit == "steps" or features in number_of or len(number_of) < query.k:
                    steps.append((number_of.setdefault(features, len(number_of)), neighbor.experience))
            # A step of another state may be as similar, and later than some of these.
            if len(steps) == n_steps or len(nearest) < limit:
                return number_of, steps
            limit *= 4

    def _graph(self, gamma: float, backup: Backup, exclude_task: str | None) -> ShuffledGraph:
        key = gamma, backup, exclude_task
        if key not in self._graphs:
            self._graphs[key] = ShuffledGraph(
                self._memory.episodes(), self._rewards, self._lender, self._memory.encoder.features, *key
            )
        return self._graphs[key]

    def _shuffle(self, gamma: float, found: Sequence[Experience]) -> None:
        n = len(self._memory)
        version = (n, gamma, tuple(self._memory.events()), tuple(self._memory.quarantines()))
        # Erasing and adding can leave the number of steps unchanged.
        known = all((step.episode_id, step.step) in self._returns for step in found)
        if (version == self._shuffled and known) or not n:
            return
        steps = self._memory.steps(gamma=gamma)  # rewards and returns include feedback
        order = np.random.default_rng([self._seed, n]).permutation(len(steps))
        ids = [(step.episode_id, step.step) for step in steps]
        self._lender = {id_: ids[i] for id_, i in zip(ids, order.tolist(), strict=True)}
        self._returns = {id_: steps[i].return_ for id_, i in zip(ids, order.tolist(), strict=True)}
        self._latest = [(step.task, self._returns[step.episode_id, step.step]) for step in steps]
        self._rewards = {id_: step.reward for id_, step in zip(ids, steps, strict=True)}
        self._graphs = {}
        self._shuffled = version
