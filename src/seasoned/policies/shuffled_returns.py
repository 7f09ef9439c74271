"""Placebo memory: the same memory with shuffled returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from seasoned.errors import InputError
from seasoned.policies.shuffled_graph import ShuffledGraph, sums_with_values
from seasoned.protocols import ReadableMemory
from seasoned.types import Backup, Evidence, EvidenceQuery, Neighbor, StateSums, StepRef, normalize_action

__all__ = ["ShuffledReturns"]


class ShuffledReturns:
    """An `EvidenceSource` with the returns of a memory permuted across its stored steps.

    Each step gets the return of another step. With `backup` it gets the reward and the next state of another step, and
    values are backed up through that graph (`ShuffledGraph`). Retrieval, counts, priors, spread and the listed
    neighbours do not change; only the relation between an action and its return is broken. So a gain with this evidence
    cannot come from learning. The permutation is drawn from the seed after every commit. It reads the whole memory, so
    it is for comparisons only. Weights other than 1 are refused.

    Args:
        memory: a `seasoned.Memory`.
        seed: of the permutation.
    """

    def __init__(self, memory: ReadableMemory, seed: int) -> None:
        self._memory = memory
        self._seed = seed
        self._shuffled: tuple[object, ...] = ()
        self._returns: dict[StepRef, float] = {}
        self._rewards: dict[StepRef, float] = {}
        self._lender: dict[StepRef, StepRef] = {}
        self._graphs: dict[tuple[float, Backup, str | None], ShuffledGraph] = {}

    def evidence(self, query: EvidenceQuery) -> Evidence:
        """Return evidence with returns permuted across stored steps; see `Memory.evidence`.

        Raises:
            InputError: as for `Memory.evidence`; or the query would weight the neighbours, or retrieve by rarity.
        """
        if query.similarity != "jaccard":
            raise InputError(
                f"similarity = {query.similarity!r}",
                "the placebo retrieves by the share of common features",
                "Compare with similarity='jaccard'.",
            )
        if query.similarity_power != 0.0 or query.decay != 1.0 or query.propensity_floor is not None:
            raise InputError(
                f"similarity_power = {query.similarity_power}, decay = {query.decay}, "
                f"propensity_floor = {query.propensity_floor}",
                "the placebo gives every neighbour the same weight",
                "Compare with similarity_power=0, decay=1 and propensity_floor=None.",
            )
        k, unit, backup, exclude_task = query.k, query.unit, query.backup, query.exclude_task
        gamma = self._memory.gamma if query.gamma is None else query.gamma
        real = self._memory.evidence(dataclasses.replace(query, gamma=gamma, backup=None))
        limit = k if unit == "steps" else max(1, len(self._memory))
        found = self._memory.search(query.state, limit, query.threshold, gamma=gamma, exclude_task=exclude_task)
        self._shuffle(gamma, found)
        row_of = {normalize_action(action): row for row, action in enumerate(real.actions)}
        cells: dict[tuple[int, int], list[float]] = {}
        number_of: dict[frozenset[str], int] = {}
        for neighbor in found:
            step = neighbor.experience
            features = self._memory.encoder.features(step.state)
            if unit == "states" and features not in number_of and len(number_of) == k:
                continue
            cell = number_of.setdefault(features, len(number_of)), row_of[normalize_action(step.action)]
            return_ = self._returns[step.episode_id, step.step]
            summed = cells.setdefault(cell, [0.0] * 4)
            for i, amount in enumerate((1.0, 1.0, return_, return_**2)):
                summed[i] += amount
        states, rows = np.array(list(cells), dtype=np.int64).reshape(-1, 2).T
        columns = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 4)
        by_state = StateSums(states, rows, *columns.T)
        if backup is not None:
            states_seen = list(number_of)
            pairs = [(states_seen[number], real.actions[row]) for number, row in cells]
            by_state = sums_with_values(by_state, self._graph(gamma, backup, exclude_task).q(pairs))
        totals, squares = np.zeros((2, len(real.actions)))
        np.add.at(totals, rows, by_state.totals)
        np.add.at(squares, rows, by_state.squares)
        return dataclasses.replace(real, totals=totals, squares=squares, by_state=by_state)

    def _graph(self, gamma: float, backup: Backup, exclude_task: str | None) -> ShuffledGraph:
        key = gamma, backup, exclude_task
        if key not in self._graphs:
            self._graphs[key] = ShuffledGraph(
                self._memory.episodes(), self._rewards, self._lender, self._memory.encoder.features, *key
            )
        return self._graphs[key]

    def _shuffle(self, gamma: float, found: Sequence[Neighbor]) -> None:
        n = len(self._memory)
        version = (n, gamma, tuple(self._memory.events()), tuple(self._memory.quarantines()))
        # Erasing and adding can leave the number of steps unchanged.
        known = all((one.experience.episode_id, one.experience.step) in self._returns for one in found)
        if (version == self._shuffled and known) or not n:
            return
        steps = self._memory.steps(gamma=gamma)  # rewards and returns include feedback
        order = np.random.default_rng([self._seed, n]).permutation(len(steps))
        ids = [(step.episode_id, step.step) for step in steps]
        self._lender = {id_: ids[i] for id_, i in zip(ids, order.tolist(), strict=True)}
        self._returns = {id_: steps[i].return_ for id_, i in zip(ids, order.tolist(), strict=True)}
        self._rewards = {id_: step.reward for id_, step in zip(ids, steps, strict=True)}
        self._graphs = {}
        self._shuffled = version
