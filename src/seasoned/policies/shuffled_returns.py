"""The placebo: the same memory, with the stored returns shuffled."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Literal, Protocol

import numpy as np

from seasoned.errors import InputError, excerpt
from seasoned.policies.shuffled_graph import ShuffledGraph, revalued
from seasoned.protocols import EvidenceSource, StateEncoder
from seasoned.types import Backup, Episode, Evidence, Neighbor, StateSums, StepRef, normalize_action

__all__ = ["ShuffledReturns"]


class _Searchable(EvidenceSource, Protocol):
    """What the placebo reads of a memory."""

    gamma: float
    encoder: StateEncoder

    def search(
        self, state: str, k: int, threshold: float, *, gamma: float | None, exclude_task: str | None
    ) -> list[Neighbor]: ...

    def episodes(self) -> list[Episode]: ...

    def events(self) -> Sequence[object]: ...

    def quarantines(self) -> Sequence[object]: ...

    def __len__(self) -> int: ...


class ShuffledReturns:
    """Gives a policy evidence from a memory in which every stored step is followed by what followed another one.

    Its return is another step's; with `backup` its reward and next state are, and values are backed up through that
    graph (`ShuffledGraph`). Retrieval, counts, priors, spread and the listed neighbours stay as they are; only the link
    between an action and what followed is cut. What a policy gains with this cannot come from having learned.
    Reshuffled after every commit, from the seed; reads the whole memory, so it is for comparisons only. Weights other
    than 1 are refused.

    Args:
        memory: a `seasoned.Memory`.
        seed: of the permutation.
    """

    def __init__(self, memory: _Searchable, seed: int) -> None:
        self._memory = memory
        self._seed = seed
        self._shuffled: tuple[object, ...] = ()
        self._returns: dict[StepRef, float] = {}
        self._rewards: dict[StepRef, float] = {}
        self._lender: dict[StepRef, StepRef] = {}
        self._graphs: dict[tuple[float, Backup, str | None], ShuffledGraph] = {}

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
        shown_steps: Collection[tuple[str, int]] = (),
    ) -> Evidence:
        """Return evidence in which what followed every neighbour is what followed another; see `Memory.evidence`.

        Raises:
            InputError: as for `Memory.evidence`; or the neighbours would be weighted.
        """
        if similarity_power != 0.0 or decay != 1.0 or propensity_floor is not None:
            raise InputError(
                f"similarity_power = {similarity_power}, decay = {decay}, propensity_floor = {propensity_floor}",
                "the placebo counts every neighbour alike",
                "Compare with similarity_power=0, decay=1 and propensity_floor=None.",
            )
        if not (backup is None or isinstance(backup, Backup)):
            raise InputError(f"backup = {excerpt(backup)}", "it is a Backup or None", "Pass Backup(beta=4.0), say.")
        gamma = self._memory.gamma if gamma is None else gamma
        real = self._memory.evidence(
            state, k=k, unit=unit, threshold=threshold, gamma=gamma, exclude_task=exclude_task, shown_steps=shown_steps
        )
        limit = k if unit == "steps" else max(1, len(self._memory))
        found = self._memory.search(state, limit, threshold, gamma=gamma, exclude_task=exclude_task)
        self._shuffle(gamma, found)
        row_of = {normalize_action(action): row for row, action in enumerate(real.actions)}
        cells: dict[tuple[int, int], list[float]] = {}
        place: dict[frozenset[str], int] = {}
        for neighbor in found:
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
        kept = StateSums(states, rows, *by_state.T)
        if backup is not None:
            features_at = list(place)
            at = [(features_at[i], real.actions[row]) for i, row in cells]
            kept = revalued(kept, self._graph(gamma, backup, exclude_task).q(at))
        totals, squares = np.zeros((2, len(real.actions)))
        np.add.at(totals, rows, kept.totals)
        np.add.at(squares, rows, kept.squares)
        return dataclasses.replace(real, totals=totals, squares=squares, by_state=kept)

    def _graph(self, gamma: float, backup: Backup, exclude_task: str | None) -> ShuffledGraph:
        asked = gamma, backup, exclude_task
        if asked not in self._graphs:
            self._graphs[asked] = ShuffledGraph(
                self._memory.episodes(), self._rewards, self._lender, self._memory.encoder.features, *asked
            )
        return self._graphs[asked]

    def _shuffle(self, gamma: float, found: Sequence[Neighbor]) -> None:
        n = len(self._memory)
        version = (n, gamma, tuple(self._memory.events()), tuple(self._memory.quarantines()))
        # Erasing and adding can leave as many steps as before.
        known = all((one.experience.episode_id, one.experience.step) in self._returns for one in found)
        if (version == self._shuffled and known) or not n:
            return
        # At threshold 0 any query finds every step, feedback included in its reward and its return.
        steps = [one.experience for one in self._memory.search("x", n, 0.0, gamma=gamma, exclude_task=None)]
        order = np.random.default_rng([self._seed, n]).permutation(len(steps))
        ids = [(step.episode_id, step.step) for step in steps]
        self._lender = {id_: ids[i] for id_, i in zip(ids, order.tolist(), strict=True)}
        self._returns = {id_: steps[i].return_ for id_, i in zip(ids, order.tolist(), strict=True)}
        self._rewards = {id_: step.reward for id_, step in zip(ids, steps, strict=True)}
        self._graphs = {}
        self._shuffled = version
