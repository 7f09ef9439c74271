"""The placebo: the same memory, with the stored returns shuffled."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from seasoned.errors import InputError
from seasoned.protocols import EvidenceSource, StateEncoder
from seasoned.types import Backup, Evidence, Neighbor, StateSums, normalize_action

__all__ = ["ShuffledReturns"]


class _Searchable(EvidenceSource, Protocol):
    """What the placebo reads of a memory."""

    gamma: float
    encoder: StateEncoder

    def search(
        self, state: str, k: int, threshold: float, *, gamma: float | None, exclude_task: str | None
    ) -> list[Neighbor]: ...

    def events(self) -> Sequence[object]: ...

    def __len__(self) -> int: ...


class ShuffledReturns:
    """Gives a policy evidence from a memory whose returns are permuted among all its stored steps.

    Retrieval, counts, spread and the listed neighbours stay as they are; only the link between an action and what
    followed is cut. What a policy gains with this cannot come from having learned. Reshuffled after every commit, from
    the seed; reads the whole memory, so it is for comparisons only. Weights other than 1 are refused.

    Args:
        memory: a `seasoned.Memory`.
        seed: of the permutation.
    """

    def __init__(self, memory: _Searchable, seed: int) -> None:
        self._memory = memory
        self._seed = seed
        self._shuffled: tuple[object, ...] = ()
        self._returns: dict[tuple[str, int], float] = {}

    def evidence(
        self,
        state: str,
        *,
        k: int,
        unit: Literal["steps", "states"],
        threshold: float,
        gamma: float | None,
        similarity_power: float = 0.0,
        decay: float = 1.0,
        exclude_task: str | None = None,
        backup: Backup | None = None,
        propensity_floor: float | None = None,
    ) -> Evidence:
        """Return evidence in which every neighbour counts with another step's return; see `Memory.evidence`.

        Raises:
            InputError: as for `Memory.evidence`, the neighbours would be weighted, or values through the
                graph were asked for.
        """
        if backup is not None:
            raise InputError(
                f"backup = {backup}",
                "the placebo shuffles returns, and values through the graph are not made of them",
                "Compare with backup=None.",
            )
        if similarity_power != 0.0 or decay != 1.0 or propensity_floor is not None:
            raise InputError(
                f"similarity_power = {similarity_power}, decay = {decay}, propensity_floor = {propensity_floor}",
                "the placebo counts every neighbour alike",
                "Compare with similarity_power=0, decay=1 and propensity_floor=None.",
            )
        gamma = self._memory.gamma if gamma is None else gamma
        real = self._memory.evidence(state, k=k, unit=unit, threshold=threshold, gamma=gamma, exclude_task=exclude_task)
        self._shuffle(gamma)
        row_of = {normalize_action(action): row for row, action in enumerate(real.actions)}
        cells: dict[tuple[int, int], list[float]] = {}
        place: dict[frozenset[str], int] = {}
        limit = k if unit == "steps" else max(1, len(self._memory))
        for neighbor in self._memory.search(state, limit, threshold, gamma=gamma, exclude_task=exclude_task):
            seen = neighbor.experience
            features = self._memory.encoder.features(seen.state)
            if unit == "states" and features not in place and len(place) == k:
                continue
            cell = place.setdefault(features, len(place)), row_of[normalize_action(seen.action)]
            return_ = self._returns[seen.episode_id, seen.step]
            summed = cells.setdefault(cell, [0.0] * 4)
            for i, amount in enumerate((1.0, 1.0, return_, return_**2)):
                summed[i] += amount
        states, rows = np.array(list(cells), dtype=np.int64).reshape(-1, 2).T
        by_state = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 4)
        sums = np.zeros((len(real.actions), 4))
        np.add.at(sums, rows, by_state)
        return dataclasses.replace(
            real, totals=sums[:, 2], squares=sums[:, 3], by_state=StateSums(states, rows, *by_state.T)
        )

    def _shuffle(self, gamma: float) -> None:
        n = len(self._memory)
        version = (n, gamma, tuple(self._memory.events()))
        if version == self._shuffled or not n:
            return
        # At threshold 0 any query finds every step, feedback included in its return.
        steps = [found.experience for found in self._memory.search("x", n, 0.0, gamma=gamma, exclude_task=None)]
        order = np.random.default_rng([self._seed, n]).permutation(len(steps))
        self._returns = {
            (step.episode_id, step.step): steps[i].return_ for step, i in zip(steps, order.tolist(), strict=True)
        }
        self._shuffled = version
